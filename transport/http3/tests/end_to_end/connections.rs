//! Tests of the ends of connections.

use crate::setup::*;
use bytes::Bytes;
use h3::error::{Code, ConnectionError, StreamError};
use h3::quic::ConnectionErrorIncoming;
use h3::{client, server};
use hvq_h3::adapter::Connection;
use std::time::Duration;
use tokio::sync::oneshot;

/// The code with which the peer's application closed the connection, if that is why it ended.
fn close_code(error: &ConnectionError) -> Option<u64> {
    match error {
        ConnectionError::Remote(ConnectionErrorIncoming::ApplicationClose { error_code }) => {
            Some(*error_code)
        }
        _ => None,
    }
}

#[tokio::test]
async fn a_client_that_is_done_closes_without_error() {
    let Ends { requests, driver, mut server, pair, .. } = ends().await;
    let driven = drive(driver);
    drop(requests);
    let error = within(driven).await.unwrap();
    assert!(error.is_h3_no_error(), "{error}");
    let Err(error) = within(server.accept()).await else { panic!("there is no request") };
    assert_eq!(close_code(&error), Some(Code::H3_NO_ERROR.value()));
    drop(pair);
}

#[tokio::test]
async fn a_server_that_is_dropped_closes_without_error() {
    let Ends { requests: _requests, driver, server, .. } = ends().await;
    let driven = drive(driver);
    drop(server);
    let error = within(driven).await.unwrap();
    assert_eq!(close_code(&error), Some(Code::H3_NO_ERROR.value()));
}

/// RFC 9114 §6.2.1: the server must not see the control stream end first.
#[tokio::test]
async fn a_client_whose_driver_is_dropped_closes_without_error() {
    let Ends { mut requests, driver, mut server, pair, .. } = ends().await;
    drop(driver);
    let Err(error) = within(server.accept()).await else { panic!("there is no request") };
    assert_eq!(close_code(&error), Some(Code::H3_NO_ERROR.value()));
    let result = within(requests.send_request(get("/"))).await;
    assert!(matches!(result, Err(StreamError::ConnectionError(_))), "a request on a closed connection");
    drop(pair);
}

#[tokio::test]
async fn a_code_of_the_peers_application_reaches_requests_and_the_driver() {
    let Ends { mut requests, driver, server: _server, pair, .. } = ends().await;
    let driven = drive(driver);
    let mut stream = requests.send_request(get("/")).await.unwrap();
    pair.server.close(0x1234, b"maintenance");
    let Err(StreamError::ConnectionError(error)) = within(stream.recv_response()).await else {
        panic!("the connection is closed");
    };
    assert_eq!(close_code(&error), Some(0x1234));
    assert_eq!(close_code(&within(driven).await.unwrap()), Some(0x1234));
}

/// RFC 9114 §6.2.1: "H3_CLOSED_CRITICAL_STREAM"; and `h3`'s own errors arrive with their code.
#[tokio::test]
async fn an_error_that_h3_finds_closes_the_connection_with_its_code() {
    let pair = pair(Duration::from_secs(20)).await;
    let mut server = server::Connection::<_, Bytes>::new(Connection::new(pair.server.clone())).await.unwrap();
    let mut control = pair.client.open_uni().await.unwrap();
    // A control stream (0x00) with empty SETTINGS (0x04), which ends.
    control.write_all(&[0x00, 0x04, 0x00]).await.unwrap();
    control.finish().unwrap();
    let Err(error) = within(server.accept()).await else { panic!("there is no request") };
    assert!(matches!(error, ConnectionError::Local { .. }), "{error}");
    let hvq::ConnectionError::PeerApplication { code, .. } = within(pair.client.closed()).await else {
        panic!("the server's application closed the connection");
    };
    assert_eq!(code, Code::H3_CLOSED_CRITICAL_STREAM.value());
}

#[tokio::test]
async fn silence_is_a_timeout() {
    let pair = pair(Duration::from_millis(400)).await;
    let (driver, _requests) = client::new(Connection::new(pair.client.clone())).await.unwrap();
    let error = within(drive(driver)).await.unwrap();
    assert!(matches!(error, ConnectionError::Timeout), "{error}");
}

/// RFC 9114 §5.2.
#[tokio::test]
async fn after_goaway_requests_under_way_are_completed_and_new_ones_are_not_sent() {
    let Ends { mut requests, driver, mut server, pair, .. } = ends().await;
    let driven = drive(driver);
    let (accepted, is_accepted) = oneshot::channel();
    let serving = tokio::spawn(async move {
        let resolver = server.accept().await.unwrap().unwrap();
        let (_, mut stream) = resolver.resolve_request().await.unwrap();
        server.shutdown(0).await.unwrap();
        accepted.send(()).unwrap();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(200)).await;
            stream.send_response(ok()).await.unwrap();
            stream.send_data(Bytes::from_static(b"the last")).await.unwrap();
            stream.finish().await.unwrap();
        });
        server.accept().await
    });
    let mut stream = requests.send_request(get("/")).await.unwrap();
    stream.finish().await.unwrap();
    is_accepted.await.unwrap();
    let mut late = get("/late");
    while let Ok(stream) = requests.send_request(late).await {
        // The GOAWAY has not arrived yet.
        drop(stream);
        tokio::time::sleep(Duration::from_millis(10)).await;
        late = get("/late");
    }
    assert!(matches!(requests.send_request(get("/late")).await, Err(StreamError::RemoteClosing)));
    within(stream.recv_response()).await.unwrap();
    assert_eq!(within(response_body(&mut stream)).await.unwrap(), b"the last");
    drop(requests);
    match within(serving).await.unwrap() {
        Ok(request) => assert!(request.is_none(), "no request is accepted after GOAWAY"),
        Err(error) => assert_eq!(close_code(&error), Some(Code::H3_NO_ERROR.value())),
    }
    let error = within(driven).await.unwrap();
    assert!(error.is_h3_no_error(), "{error}");
    drop(pair);
}
