//! Requests for tunnels by any name: with servers that know it, that do not, and that take no tunnels.

use crate::setup::*;
use bytes::Bytes;
use h3::server;
use http::{HeaderValue, Request, Response, StatusCode};
use hvq_h3::Code;
use hvq_h3::adapter::Connection;
use hvq_h3::client::{Client, RequestError};
use hvq_h3::{Protocol, Receiving, Sending, Settings, Tunnels};
use std::future::Future;
use std::time::Duration;

/// A client of a server that takes `tunnels` and answers each request with `handler`.
async fn served<H, F>(tunnels: Tunnels, handler: H) -> Client
where
    H: Fn(Request<()>, Sending, Receiving) -> F + Send + Sync + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    client_of(Settings { tunnels, ..Settings::default() }, handler).await
}

fn tunnel() -> Request<()> {
    Request::get("https://localhost/a/tunnel/").header("x-own", "a value").body(()).unwrap()
}

fn status(status: u16) -> Response<()> {
    Response::builder().status(status).body(()).unwrap()
}

#[tokio::test]
async fn a_tunnel_of_any_name_is_asked_for_and_carries_bytes_both_ways() {
    // RFC 9220 §3, RFC 9484 §4.3.
    let client = served(Tunnels::Taken, |request, mut sending, mut receiving| async move {
        assert_eq!(request.extensions().get::<Protocol>().unwrap().as_str(), "connect-ip");
        assert_eq!((request.method().as_str(), request.uri().path()), ("CONNECT", "/a/tunnel/"));
        assert_eq!(request.headers()["x-own"], "a value");
        // What is interim is passed over (RFC 9114 §4.1).
        sending.head(&status(103)).await.unwrap();
        sending.head(&status(100)).await.unwrap();
        sending.head(&status(200)).await.unwrap();
        while let Some(piece) = receiving.data().await.unwrap() {
            sending.data(piece).await.unwrap();
        }
        sending.finish().await.unwrap();
    })
    .await;
    let (head, mut sending, mut receiving) = within(client.tunnel(&tunnel(), "connect-ip")).await.unwrap();
    assert_eq!(head.status(), StatusCode::OK);
    let sent = body(300_000);
    let upload = async {
        sending.data(sent.clone()).await.unwrap();
        sending.finish().await.unwrap();
    };
    let download = async { all(&mut receiving).await.unwrap() };
    let ((), echoed) = within(async { tokio::join!(upload, download) }).await;
    assert!(echoed == sent);
}

#[tokio::test]
async fn a_refusal_is_an_answer_with_its_fields() {
    let client = served(Tunnels::Taken, |_, mut sending, _| async move {
        let mut refusal = status(407);
        refusal.headers_mut().insert("proxy-authenticate", HeaderValue::from_static("Bearer"));
        sending.whole(&refusal, Bytes::from_static(b"no")).await.unwrap();
    })
    .await;
    let (head, _sending, mut receiving) = within(client.tunnel(&tunnel(), "connect-ip")).await.unwrap();
    assert_eq!(head.status(), StatusCode::PROXY_AUTHENTICATION_REQUIRED);
    assert_eq!(head.headers()["proxy-authenticate"], "Bearer");
    assert_eq!(within(receiving.data()).await.unwrap().unwrap(), "no");
    let relative = Request::get("/a").body(()).unwrap();
    assert_eq!(within(client.tunnel(&relative, "connect-ip")).await.unwrap_err(), RequestError::NoUri);
}

//= https://www.rfc-editor.org/rfc/rfc9114#section-7.2.4.2
//= type=test
//# An HTTP implementation MUST NOT send frames or requests that would be invalid based on its current
//# understanding of the peer's settings.
#[tokio::test]
async fn nothing_is_asked_of_a_server_that_offers_no_tunnels() {
    // RFC 9220 §3.
    let client = served(Tunnels::None, |_, _, _| async { panic!("nothing was to be asked") }).await;
    // The last needs no HTTP datagrams.
    for protocol in ["connect-ip", "websocket"] {
        let refused = within(client.tunnel(&tunnel(), protocol)).await.unwrap_err();
        assert_eq!(refused, RequestError::NotOffered, "{protocol}");
    }
}

#[tokio::test]
async fn a_client_that_is_dropped_closes_its_connection_without_an_error() {
    let pair = pair(Duration::from_secs(20)).await;
    drop(Client::new(pair.client.clone(), Settings::default()).await.unwrap());
    let closed = within(pair.server.closed()).await;
    let code = Code::H3_NO_ERROR.value();
    assert!(
        matches!(closed, hvq::ConnectionError::PeerApplication { code: said, .. } if said == code),
        "{closed}"
    );
}

#[tokio::test]
async fn a_server_that_does_not_know_the_name_gives_the_request_up() {
    // `h3` 0.0.8 knows `connect-udp` and `webtransport`; such were the servers of before.
    let pair = pair(Duration::from_secs(20)).await;
    let mut builder = server::builder();
    builder.enable_datagram(true).enable_extended_connect(true);
    let mut server = builder.build::<_, Bytes>(Connection::new(pair.server.clone())).await.unwrap();
    tokio::spawn(async move {
        while let Ok(Some(resolver)) = server.accept().await {
            let Ok((_, mut stream)) = resolver.resolve_request().await else { continue };
            stream.send_response(ok()).await.unwrap();
            stream.finish().await.unwrap();
        }
    });
    let client = Client::new(pair.client.clone(), Settings::default()).await.unwrap();
    tokio::spawn(client.watch());
    let refused = within(client.tunnel(&tunnel(), "connect-ip")).await.unwrap_err();
    assert_eq!(refused, RequestError::Reset(Code::H3_MESSAGE_ERROR.value()));
    let (head, ..) = within(client.tunnel(&tunnel(), "connect-udp")).await.unwrap();
    assert_eq!(head.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_server_breaks_the_protocol_by_what_only_clients_do() {
    // RFC 9114 §4.6, §6.1, §7.2.7.
    let control = [0x00, 0x04, 0x04, 0x08, 1, 0x33, 1];
    let hostile: [(&[u8], Code); 4] = [
        (&[0x0d, 1, 4], Code::H3_FRAME_UNEXPECTED),
        (&[0x07, 1, 5], Code::H3_ID_ERROR),
        (&[0x04, 0], Code::H3_FRAME_UNEXPECTED),
        (&[], Code::H3_STREAM_CREATION_ERROR),
    ];
    for (frame, code) in hostile {
        let pair = pair(Duration::from_secs(20)).await;
        let client = Client::new(pair.client.clone(), Settings::default()).await.unwrap();
        tokio::spawn(client.watch());
        let mut own = pair.server.open_uni().await.unwrap();
        own.write_all(&[&control[..], frame].concat()).await.unwrap();
        if frame.is_empty() {
            let (mut stream, _) = pair.server.open_bi().await.unwrap();
            stream.write_all(b"?").await.unwrap();
        }
        let closed = within(pair.server.closed()).await;
        assert!(
            matches!(closed, hvq::ConnectionError::PeerApplication { code: said, .. } if said == code.value()),
            "{frame:?}: {closed}"
        );
        let asked = within(client.tunnel(&tunnel(), "connect-ip")).await.unwrap_err();
        assert!(matches!(asked, RequestError::Connection(_)), "{asked}");
    }
}
