//! WebTransport sessions between a client and a server of this crate.

use crate::setup::*;
use crate::web_transport_echo;
use http::{Request, StatusCode};
use hvq_h3::client::Client;
use hvq_h3::web_transport::{
    Origins, Session, SessionEnd, SessionError, SessionLimits, SessionRequest, StreamError, Terms,
    asks_for_session,
};
use hvq_h3::{Code, Outcome, ReceiveError, Settings, Tunnels};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// Settings of both ends.
pub fn with_sessions() -> Settings {
    Settings { tunnels: Tunnels::WebTransport, ..Settings::default() }
}

/// A client of a server that takes sessions on these `terms`, and the sessions there, or why there are none.
pub async fn served(terms: Terms) -> (Client, UnboundedReceiver<Result<Session, SessionError>>) {
    served_through(terms, Arc::new(Semaphore::new(100))).await
}

/// The same, with a session for each permit of the `gate`.
pub async fn served_through(
    terms: Terms,
    gate: Arc<Semaphore>,
) -> (Client, UnboundedReceiver<Result<Session, SessionError>>) {
    served_within(terms, gate, SessionLimits::default()).await
}

/// The same, with these limits of both ends.
pub async fn served_within(
    terms: Terms,
    gate: Arc<Semaphore>,
    limits: SessionLimits,
) -> (Client, UnboundedReceiver<Result<Session, SessionError>>) {
    let (told, sessions) = unbounded_channel();
    let settings = Settings { sessions: limits, ..with_sessions() };
    let client = client_of(settings, move |request, sending, receiving| {
        let (terms, told, gate) = (terms.clone(), told.clone(), gate.clone());
        async move {
            gate.acquire().await.unwrap().forget();
            assert!(asks_for_session(&request));
            let _over = told.send(SessionRequest::new(request, sending, receiving).accept(&terms).await);
        }
    })
    .await;
    (client, sessions)
}

/// A session, as both ends have it. The client and the server of its connection live as long.
pub struct Ends {
    pub near: Session,
    pub far: Session,
    pub client: Client,
    _sessions: UnboundedReceiver<Result<Session, SessionError>>,
}

async fn session() -> Ends {
    session_within(SessionLimits::default()).await
}

/// The same, with these limits of both ends.
pub async fn session_within(limits: SessionLimits) -> Ends {
    let (client, mut sessions) = served_within(Terms::default(), Arc::new(Semaphore::new(100)), limits).await;
    let near = within(client.web_transport(&get("/echo"), &[])).await.unwrap();
    let far = within(sessions.recv()).await.unwrap().unwrap();
    Ends { near, far, client, _sessions: sessions }
}

#[test]
fn the_echo_comes_back() {
    web_transport_echo::main().unwrap();
}

#[tokio::test]
async fn both_ends_open_streams_of_both_kinds_and_send_datagrams() {
    let ends = session().await;
    assert_eq!(ends.near.id(), ends.far.id());
    for (from, to) in [(&ends.near, &ends.far), (&ends.far, &ends.near)] {
        let (mut send, mut receive) = within(from.open_bi()).await.unwrap();
        send.write_all(b"question").await.unwrap();
        send.finish().unwrap();
        let (mut answer, mut question) = within(to.accept_bi()).await.unwrap();
        assert_eq!(within(question.read_to_end(100)).await.unwrap(), b"question");
        answer.write_all(b"answer").await.unwrap();
        answer.finish().unwrap();
        assert_eq!(within(receive.read_to_end(100)).await.unwrap(), b"answer");
        within(answer.delivered()).await.unwrap();
        let mut send = within(from.open_uni()).await.unwrap();
        send.write_all(&[7; 100_000]).await.unwrap();
        drop(send);
        let mut receive = within(to.accept_uni()).await.unwrap();
        assert_eq!(within(receive.read_to_end(10)).await, Err(StreamError::TooLong));
        assert_eq!(from.send_datagram(b"datagram"), Ok(Outcome::Sent));
        assert_eq!(&within(to.read_datagram()).await.unwrap()[..], b"datagram");
    }
}

#[tokio::test]
async fn codes_of_resets_and_stops_reach_the_other_application() {
    // Draft-ietf-webtrans-http3 §4.4.
    let ends = session().await;
    let (mut send, mut receive) = within(ends.near.open_bi()).await.unwrap();
    send.write_all(b"?").await.unwrap();
    let (mut far_send, mut far_receive) = within(ends.far.accept_bi()).await.unwrap();
    assert_eq!(&within(far_receive.read(9)).await.unwrap().unwrap()[..], b"?");
    send.reset(u32::MAX).unwrap();
    assert_eq!(within(far_receive.read(9)).await, Err(StreamError::GivenUp(Some(u32::MAX))));
    receive.stop(30);
    assert_eq!(within(far_send.delivered()).await, Err(StreamError::GivenUp(Some(30))));
    assert_eq!(send.write(b"x").await, Err(StreamError::Closed));
    // What is reset at once still reaches its session, with RESET_STREAM_AT.
    for code in 0..20 {
        let mut send = within(ends.near.open_uni()).await.unwrap();
        send.write_all(&[1; 100]).await.unwrap();
        send.reset(code).unwrap();
        let mut receive = within(ends.far.accept_uni()).await.unwrap();
        assert_eq!(within(receive.read_to_end(1000)).await, Err(StreamError::GivenUp(Some(code))));
    }
}

#[tokio::test]
async fn streams_and_datagrams_that_come_before_the_session_wait_for_it() {
    // Draft-ietf-webtrans-http3 §4.6.
    let gate = Arc::new(Semaphore::new(0));
    let (client, mut sessions) = served_through(Terms::default(), gate.clone()).await;
    let request = get("/");
    let asked = client.web_transport(&request, &[]);
    let early = async {
        // The request is on its way.
        tokio::time::sleep(Duration::from_millis(100)).await;
        let mut uni = client.connection().open_uni().await.unwrap();
        uni.write_all(b"\x40\x54\x00early").await.unwrap();
        let (mut bi, _receive) = client.connection().open_bi().await.unwrap();
        bi.write_all(b"\x40\x41\x00too").await.unwrap();
        bi.finish().unwrap();
        client.connection().send_datagram(b"\0quick".as_slice().into()).unwrap();
        uni.finish().unwrap();
        tokio::time::sleep(Duration::from_millis(300)).await;
        gate.add_permits(1);
        _receive
    };
    let (near, _receive) = within(async { tokio::join!(asked, early) }).await;
    let (_near, far) = (near.unwrap(), within(sessions.recv()).await.unwrap().unwrap());
    assert_eq!(within(within(far.accept_uni()).await.unwrap().read_to_end(9)).await.unwrap(), b"early");
    let (_, mut receive) = within(far.accept_bi()).await.unwrap();
    assert_eq!(within(receive.read_to_end(9)).await.unwrap(), b"too");
    assert_eq!(&within(far.read_datagram()).await.unwrap()[..], b"quick");
}

#[tokio::test]
async fn a_session_ends_with_code_and_reason_and_its_streams_with_it() {
    // Draft-ietf-webtrans-http3 §6.
    let ends = session().await;
    let (mut send, mut receive) = within(ends.near.open_bi()).await.unwrap();
    send.write_all(b"?").await.unwrap();
    let (mut far_send, mut far_receive) = within(ends.far.accept_bi()).await.unwrap();
    within(far_receive.read(9)).await.unwrap();
    ends.far.drain();
    within(ends.near.draining()).await;
    ends.far.close(7, "enough");
    let end = within(ends.near.closed()).await;
    assert_eq!(end, SessionEnd::ClosedByPeer { code: 7, reason: "enough".to_owned() });
    assert_eq!(within(ends.far.closed()).await, SessionEnd::ClosedHere);
    assert_eq!(within(receive.read(9)).await, Err(StreamError::SessionEnded));
    assert_eq!(within(send.write(b"x")).await, Err(StreamError::SessionEnded));
    assert_eq!(within(far_receive.read(9)).await, Err(StreamError::SessionEnded));
    assert_eq!(within(far_send.write(b"x")).await, Err(StreamError::SessionEnded));
    assert!(within(ends.near.open_uni()).await.is_err() && within(ends.far.accept_bi()).await.is_err());
    assert_eq!(ends.near.send_datagram(b"x"), Err(end));
    // Late streams of it are refused, and another session may begin.
    let mut late = ends.client.connection().open_uni().await.unwrap();
    late.write_all(&[0x40, 0x54, 0]).await.unwrap();
    assert_eq!(within(late.stopped()).await, Ok(Some(Code::WT_SESSION_GONE.value())));
    let next = within(ends.client.web_transport(&get("/"), &[])).await.unwrap();
    drop(next);
}

#[tokio::test]
async fn a_session_that_is_dropped_is_closed_without_a_reason() {
    let ends = session().await;
    drop(ends.near);
    let end = SessionEnd::ClosedByPeer { code: 0, reason: String::new() };
    assert_eq!(within(ends.far.closed()).await, end);
}

#[tokio::test]
async fn without_flow_control_a_connection_has_one_session_at_a_time() {
    // Draft-ietf-webtrans-http3 §5.1.
    let ends = session_within(SessionLimits::NONE).await;
    let second = within(ends.client.web_transport(&get("/"), &[])).await;
    assert_eq!(second.unwrap_err(), SessionError::TooMany);
    let refused =
        within(ends.client.tunnel(&get("/"), "webtransport-h3")).await.map(|(head, ..)| head.status());
    let rejected = hvq_h3::client::RequestError::Reset(Code::H3_REQUEST_REJECTED.value());
    assert_eq!(refused, Err(rejected));
    assert!(within(ends.near.open_uni()).await.is_ok(), "the first one goes on");
}

#[tokio::test]
async fn pages_of_other_origins_and_other_protocols_get_no_session() {
    // Draft-ietf-webtrans-http3 §3.2, §3.3.
    let terms = Terms {
        origins: Origins::Listed(vec!["https://a.example".to_owned()]),
        protocols: vec!["two".to_owned()],
    };
    let (client, mut sessions) = served(terms).await;
    let from = |origin: &str| Request::get("https://localhost/").header("origin", origin).body(()).unwrap();
    let refused = within(client.web_transport(&from("https://b.example"), &[])).await.unwrap_err();
    assert_eq!(refused, SessionError::Refused(StatusCode::FORBIDDEN));
    let there = within(sessions.recv()).await.unwrap().unwrap_err();
    assert_eq!(there, SessionError::Origin("https://b.example".to_owned()));
    let session = within(client.web_transport(&from("https://a.example"), &["one", "two"])).await.unwrap();
    let far = within(sessions.recv()).await.unwrap().unwrap();
    assert_eq!((session.protocol(), far.protocol()), (Some("two"), Some("two")));
}

#[tokio::test]
async fn nothing_is_asked_of_a_server_that_offers_no_sessions() {
    let settings = Settings { tunnels: Tunnels::Taken, ..Settings::default() };
    let pair = pair(Duration::from_secs(20)).await;
    let client = Client::new(pair.client.clone(), with_sessions()).await.unwrap();
    tokio::spawn(client.watch());
    answer(pair, settings, |_, _, _| async { panic!("nothing was to be asked") }).await;
    assert_eq!(within(client.web_transport(&get("/"), &[])).await.unwrap_err(), SessionError::NotOffered);
}

#[tokio::test]
async fn requests_beside_a_session_are_served() {
    let pair = pair(Duration::from_secs(20)).await;
    let client = Client::new(pair.client.clone(), with_sessions()).await.unwrap();
    tokio::spawn(client.watch());
    answer(pair, with_sessions(), |request, mut sending, receiving| async move {
        if asks_for_session(&request) {
            let session = SessionRequest::new(request, sending, receiving).accept(&Terms::default()).await;
            session.unwrap().closed().await;
        } else {
            sending.whole(&ok(), "page".into()).await.unwrap();
        }
    })
    .await;
    let _session = within(client.web_transport(&get("/"), &[])).await.unwrap();
    let (_sending, mut receiving) = within(client.whole(&get("/page"), Default::default())).await.unwrap();
    within(receiving.response()).await.unwrap();
    let page: Result<_, ReceiveError> = within(all(&mut receiving)).await;
    assert_eq!(page.unwrap(), b"page");
}
