//! The `priority` header of a request decides about its response.

use crate::setup::*;
use bytes::Bytes;
use h3::server;
use http::Request;
use hvq::StreamId;
use hvq_h3::adapter::Connection;
use hvq_h3::{Priority, UnknownStream, priority};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Barrier, mpsc};

fn urgent(path: &str, urgency: u8) -> Request<()> {
    let mut request = get(path);
    if let Some(value) = priority::header(Priority { urgency, incremental: false }) {
        request.headers_mut().insert(priority::PRIORITY, value);
    }
    request
}

/// RFC 9218 §5.
#[tokio::test]
async fn the_priority_header_of_a_request_is_the_priority_of_the_responses_stream() {
    let Ends { mut requests, driver, mut server, priorities, pair } = ends().await;
    drive(driver);
    for (header, expected) in
        [("u=1, i", (1, true)), ("u=9", (3, false)), ("nonsense,", (3, false)), ("u=7", (7, false))]
    {
        let mut request = get("/");
        request.headers_mut().insert("priority", header.parse().unwrap());
        let (sent, accepted) = tokio::join!(requests.send_request(request), within(server.accept()));
        let _client = sent.unwrap();
        let resolver = accepted.unwrap().unwrap();
        let (_, stream) = hvq_h3::adapter::resolve(resolver, &priorities).await.unwrap();
        let id = StreamId(stream.id().into_inner());
        let expected = Priority { urgency: expected.0, incremental: expected.1 };
        assert_eq!(priorities.get(id), Ok(expected), "{header}");
        let merged = Priority { urgency: 0, incremental: true };
        priorities.set(id, merged).unwrap();
        assert_eq!(priorities.get(id), Ok(merged));
        drop(stream);
        assert_eq!(priorities.set(id, merged), Err(UnknownStream(id)));
    }
    drop(pair);
}

#[tokio::test]
async fn control_and_qpack_streams_are_urgent_and_others_are_not() {
    let ends = ends().await;
    for id in [3, 7, 11] {
        let id = StreamId(id);
        assert_eq!(ends.priorities.get(id), Ok(Priority { urgency: 0, incremental: false }), "{id}");
    }
    // On both sides the fourth is the stream of a reserved type that `h3` sends after SETTINGS (RFC 9114 §6.2.3).
    let fourth = StreamId(15);
    assert_eq!(ends.priorities.get(fourth), Err(UnknownStream(fourth)));
}

/// RFC 9218 §10: the urgent response goes first, whatever was asked for first.
#[tokio::test]
async fn an_urgent_response_overtakes_a_background_one() {
    let Ends { mut requests, driver, mut server, priorities, pair } = ends().await;
    drive(driver);
    let both = Arc::new(Barrier::new(2));
    tokio::spawn(async move {
        while let Ok(Some(resolver)) = server.accept().await {
            let (priorities, both) = (priorities.clone(), both.clone());
            tokio::spawn(async move {
                let (_, mut stream) = hvq_h3::adapter::resolve(resolver, &priorities).await.unwrap();
                both.wait().await;
                stream.send_response(ok()).await.unwrap();
                stream.send_data(body(8_000_000)).await.unwrap();
                stream.finish().await.unwrap();
            });
        }
        drop(pair);
    });
    let (done, mut order) = mpsc::unbounded_channel();
    for (path, urgency) in [("/background", 7), ("/now", 0)] {
        let mut stream = requests.send_request(urgent(path, urgency)).await.unwrap();
        stream.finish().await.unwrap();
        let done = done.clone();
        tokio::spawn(async move {
            stream.recv_response().await.unwrap();
            let received = response_body(&mut stream).await.unwrap();
            done.send((path, received.len())).unwrap();
        });
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(within(order.recv()).await, Some(("/now", 8_000_000)));
    assert_eq!(within(order.recv()).await, Some(("/background", 8_000_000)));
    let ended = requests.send_request(get("/")).await;
    assert!(ended.is_ok(), "the connection goes on");
}

/// RFC 9218 §7.2: the type of PRIORITY_UPDATE is 0xF0700; RFC 9114 §9: unknown frames are ignored.
#[tokio::test]
async fn a_priority_update_frame_is_ignored() {
    let pair = pair(Duration::from_secs(20)).await;
    let connection = Connection::new(pair.server.clone());
    let mut server = server::Connection::<_, Bytes>::new(connection).await.unwrap();
    let mut control = pair.client.open_uni().await.unwrap();
    // A control stream with empty SETTINGS and a PRIORITY_UPDATE for stream 0.
    control.write_all(&[0x00, 0x04, 0x00]).await.unwrap();
    control.write_all(&[0x80, 0x0f, 0x07, 0x00, 0x04, 0x00, b'u', b'=', b'1']).await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    let (mut send, _recv) = pair.client.open_bi().await.unwrap();
    send.write_all(&[0x01]).await.unwrap();
    assert!(within(server.accept()).await.unwrap().is_some(), "the connection goes on");
    assert_eq!(pair.server.close_reason(), None);
}
