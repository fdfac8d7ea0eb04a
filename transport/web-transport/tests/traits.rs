//! A protocol that knows the traits only, over hvq.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use bytes::Bytes;
use hvq::{
    ClientConfig, ClientTls, ConnectOptions, Endpoint, Identity, LocalAddress, PathOptions, Policy, Priority,
    ServerConfig, ServerTls, TransportConfig, Verify,
};
use hvq_web_transport::web_transport_trait::{Error as _, RecvStream, SendStream, Session, Stats};
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Longer than any test takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("in time")
}

fn transport() -> Arc<TransportConfig> {
    Arc::new(TransportConfig::new(Arc::new(|| Policy::Hvc.scheduler())))
}

/// Both ends of a session, and their endpoints.
struct Pair {
    near: hvq_web_transport::Session,
    far: hvq_web_transport::Session,
    server: Endpoint,
    _client: Endpoint,
}

async fn pair() -> Pair {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (chain, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let identity = Identity::Pem { chain: chain.clone().into_bytes(), key: key.into_bytes() };
    let tls = ServerTls::builder(identity).alpn(["moq-lite-04"]).build().unwrap();
    let listen: [LocalAddress; 2] = ["127.0.0.1:0".parse().unwrap(), "127.0.0.2:0".parse().unwrap()];
    let server = Endpoint::server(ServerConfig::new(tls, transport()), &listen).unwrap();
    let tls = ClientTls::builder().alpn(["moq-lite-04"]).verify(Verify::CaPem(chain.into_bytes()));
    let client = Endpoint::client(&[]).unwrap();
    let config = ClientConfig::new(tls.build().unwrap(), transport());
    let options = ConnectOptions::new(server.local_addrs()[0], "localhost");
    let connecting = client.connect_with(config, options).unwrap();
    let (near, far) = within(async { tokio::join!(connecting, server.accept()) }).await;
    let near = hvq_web_transport::Session::raw(near.unwrap());
    let far = hvq_web_transport::Session::raw(far.unwrap());
    Pair { near, far, server, _client: client }
}

/// Sends a group on a stream of its own, as a publisher of media does that knows nothing of hvq.
async fn publish<S: Session>(session: &S, order: u8, group: Bytes) -> Result<S::SendStream, S::Error> {
    let mut stream = session.open_uni().await?;
    stream.set_priority(order);
    // The errors of a stream end a publisher here.
    stream.write_chunk(group).await.expect("the subscriber reads");
    stream.finish().expect("it is open");
    Ok(stream)
}

async fn subscribe<S: Session>(session: &S) -> Result<Bytes, S::Error> {
    let mut stream = session.accept_uni().await?;
    Ok(stream.read_all().await.expect("the publisher finishes it"))
}

#[tokio::test]
async fn groups_of_media_go_over_two_paths_and_protocols_are_those_of_alpn() {
    let pair = pair().await;
    assert_eq!((pair.near.protocol(), pair.far.protocol()), (Some("moq-lite-04"), Some("moq-lite-04")));
    let second: SocketAddr = pair.server.local_addrs()[1];
    let local: LocalAddress = "127.0.0.2".parse().unwrap();
    within(pair.near.hvq().open_path(PathOptions::new("second", local).to(second))).await.unwrap();
    let group = Bytes::from(vec![7; 500_000]);
    for _ in 0..4 {
        let (sent, got) =
            within(async { tokio::join!(publish(&pair.near, 255, group.clone()), subscribe(&pair.far)) })
                .await;
        assert_eq!(got.unwrap(), group);
        within(sent.unwrap().closed()).await.unwrap();
    }
    let used = pair.near.hvq().stats();
    assert_eq!(used.paths.len(), 2, "both are open");
    let figures = pair.near.stats();
    let sum: u64 = used.paths.iter().map(|path| path.counters.bytes_sent).sum();
    assert!(figures.bytes_sent().unwrap() >= sum && sum > 2_000_000, "{sum} bytes over all paths");
    assert!(figures.rtt().is_some() && figures.estimated_send_rate().is_some());
}

#[tokio::test]
async fn priorities_and_messages_reach_the_stream_of_hvq() {
    let pair = pair().await;
    let mut stream = pair.near.open_uni().await.unwrap();
    assert_eq!(stream.hvq().priority(), Priority::DEFAULT);
    stream.set_priority(255);
    assert_eq!(stream.hvq().priority().urgency, 0);
    stream.set_priority(10);
    assert_eq!(stream.hvq().priority().urgency, 6);
    stream.write_all(b"a frame").await.unwrap();
    stream.end_message(Some(Duration::from_millis(50))).unwrap();
    stream.finish().unwrap();
    assert_eq!(within(subscribe(&pair.far)).await.unwrap(), "a frame");
}

#[tokio::test]
async fn codes_of_resets_and_stops_arrive_at_the_other_end() {
    let pair = pair().await;
    let (mut send, _back) = within(pair.near.open_bi()).await.unwrap();
    send.write_all(b"begun").await.unwrap();
    let (mut answer, mut receive) = within(pair.far.accept_bi()).await.unwrap();
    let mut nothing = [];
    assert_eq!(receive.read(&mut nothing).await.unwrap(), Some(0), "asking for nothing is no end");
    assert_eq!(within(receive.read_chunk(5)).await.unwrap().unwrap(), "begun");
    send.reset(17);
    let reset = within(receive.read_chunk(5)).await.unwrap_err();
    assert_eq!(reset.stream_error(), Some(17));
    assert!(reset.session_error().is_none());
    within(send.closed()).await.unwrap();

    let (mut send, _receive) = within(pair.near.open_bi()).await.unwrap();
    send.write_all(b"x").await.unwrap();
    let (_answer, mut receive) = within(pair.far.accept_bi()).await.unwrap();
    receive.stop(23);
    assert_eq!(within(send.closed()).await.unwrap_err().stream_error(), Some(23));
    answer.finish().unwrap();
}

#[tokio::test]
async fn a_stream_that_is_dropped_unfinished_is_not_taken_for_a_whole() {
    let pair = pair().await;
    let mut stream = within(pair.near.open_uni()).await.unwrap();
    stream.write_all(b"half a group").await.unwrap();
    let mut receive = within(pair.far.accept_uni()).await.unwrap();
    assert_eq!(within(receive.read_chunk(100)).await.unwrap().unwrap(), "half a group");
    drop(stream);
    assert_eq!(within(receive.closed()).await.unwrap_err().stream_error(), Some(0));
}

#[tokio::test]
async fn a_session_is_closed_with_the_code_and_the_reason_that_the_peer_sees() {
    let pair = pair().await;
    pair.near.send_datagram(Bytes::from_static(b"datagram")).unwrap();
    assert_eq!(within(pair.far.recv_datagram()).await.unwrap(), "datagram");
    let most = pair.near.max_datagram_size();
    assert!(most > 1_000, "{most}");
    assert!(pair.near.send_datagram(vec![0; most + 100_000].into()).is_err());
    pair.near.close(42, "over");
    let error = within(pair.far.closed()).await;
    assert_eq!(error.session_error(), Some((42, "over".to_owned())));
    assert_eq!(within(pair.near.closed()).await.session_error(), None, "nobody else closed it");
}
