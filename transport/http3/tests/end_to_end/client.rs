//! Requests of this crate's client: bodies both ways, interim responses, trailers, priorities, and servers that go away.

use crate::setup::*;
use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use hvq::{ConnectionError, Priority, ReadError};
use hvq_h3::client::{Client, RequestError};
use hvq_h3::serving::Server;
use hvq_h3::{Code, ReceiveError, Settings};
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, mpsc};

fn trailers(value: &'static str) -> HeaderMap {
    HeaderMap::from_iter([(http::HeaderName::from_static("digest"), value.parse().unwrap())])
}

#[tokio::test]
async fn bodies_and_trailers_go_both_ways_behind_interim_responses() {
    let client = client_of(Settings::default(), |request, mut sending, mut receiving| async move {
        assert_eq!((request.method(), request.uri().path()), (&Method::POST, "/echo"));
        for status in [100, 103] {
            let mut interim = ok();
            *interim.status_mut() = StatusCode::from_u16(status).unwrap();
            sending.head(&interim).await.unwrap();
        }
        sending.head(&ok()).await.unwrap();
        while let Some(piece) = receiving.data().await.unwrap() {
            sending.data(piece).await.unwrap();
        }
        let came = receiving.trailers().await.unwrap().unwrap();
        sending.trailers(&came).await.unwrap();
        sending.finish().await.unwrap();
    })
    .await;
    let (mut sending, mut receiving) = within(client.open(&post("/echo"))).await.unwrap();
    let sent = body(300_000);
    let upload = async {
        sending.data(sent.clone()).await.unwrap();
        sending.trailers(&trailers("of all")).await.unwrap();
        sending.finish().await.unwrap();
    };
    let download = async {
        let interim = [receiving.any_response().await.unwrap(), receiving.any_response().await.unwrap()];
        assert_eq!(interim.map(|head| head.status().as_u16()), [100, 103]);
        assert_eq!(receiving.response().await.unwrap().status(), StatusCode::OK);
        (all(&mut receiving).await.unwrap(), receiving.trailers().await.unwrap())
    };
    let ((), (echoed, came)) = within(async { tokio::join!(upload, download) }).await;
    assert!(echoed == sent);
    assert_eq!(came, Some(trailers("of all")));
}

//= https://www.rfc-editor.org/rfc/rfc9114#section-4.1
//= type=test
//# After sending a request, a client MUST close the stream for sending.
#[tokio::test]
async fn a_whole_request_arrives_whole_and_a_response_without_content_may_say_a_length() {
    // RFC 9110 §8.6: what HEAD and 304 say is the length of something else.
    let client = client_of(Settings::default(), |request, mut sending, mut receiving| async move {
        let came = all(&mut receiving).await.unwrap();
        let mut head = ok();
        head.headers_mut().insert("content-length", 1000.into());
        match request.uri().path() {
            "/unchanged" => *head.status_mut() = StatusCode::NOT_MODIFIED,
            _ if request.method() == Method::HEAD => {}
            _ => {
                head.headers_mut().insert("content-length", came.len().into());
                return sending.whole(&head, came.into()).await.unwrap();
            }
        }
        sending.whole(&head, Bytes::new()).await.unwrap();
    })
    .await;
    for length in [0, 1, 5_000] {
        let (_sent, mut receiving) = within(client.whole(&post("/"), body(length))).await.unwrap();
        within(receiving.response()).await.unwrap();
        assert!(within(all(&mut receiving)).await.unwrap() == body(length), "{length}");
    }
    let head = Request::head("https://localhost/").body(()).unwrap();
    for request in [head, get("/unchanged")] {
        let (_sent, mut receiving) = within(client.whole(&request, Bytes::new())).await.unwrap();
        within(receiving.response()).await.unwrap();
        assert_eq!(within(all(&mut receiving)).await, Ok(Vec::new()), "{request:?}");
    }
}

#[tokio::test]
async fn what_cannot_be_asked_is_not_sent() {
    let client = client_of(Settings::default(), |request, _, _| async move { panic!("{request:?}") }).await;
    let request = |name: &'static str| Request::get("https://localhost/").header(name, "a").body(()).unwrap();
    for name in ["connection", "transfer-encoding", "te"] {
        let refused = within(client.whole(&request(name), Bytes::new())).await.unwrap_err();
        assert_eq!(refused, RequestError::Malformed, "{name}");
    }
    let relative = Request::get("/a").body(()).unwrap();
    assert_eq!(within(client.open(&relative)).await.unwrap_err(), RequestError::NoUri);
}

//= https://www.rfc-editor.org/rfc/rfc9114#section-5.2
//= type=test
//# Endpoints MUST NOT initiate new requests or promise new pushes on the connection after receipt of a
//# GOAWAY frame from the peer.
#[tokio::test]
async fn a_server_that_goes_away_finishes_what_it_accepted_and_the_client_closes_then() {
    // RFC 9114 §5.2.
    let pair = pair(Duration::from_secs(20)).await;
    let client = Arc::new(Client::new(pair.client.clone(), Settings::default()).await.unwrap());
    tokio::spawn(client.watch());
    let server = Server::new(pair.server.clone(), Settings::default()).await.unwrap();
    let (leave, finish) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (left, finishing) = (leave.clone(), finish.clone());
    let answer = move |incoming: hvq_h3::serving::Incoming| {
        let finishing = finishing.clone();
        async move {
            let (_, mut sending, _) = incoming.request(LIMIT).await.unwrap();
            finishing.notified().await;
            sending.whole(&ok(), Bytes::from_static(b"late")).await.unwrap();
        }
    };
    tokio::spawn(server.run(async move { left.notified().await }, || LIMIT, answer));
    let (_sent, mut early) = within(client.whole(&get("/"), Bytes::new())).await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    leave.notify_one();
    within(async {
        while !client.is_going_away() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let refused = within(client.whole(&get("/"), Bytes::new())).await.unwrap_err();
    assert_eq!((&refused, refused.is_unprocessed()), (&RequestError::GoingAway, true));
    finish.notify_one();
    within(early.response()).await.unwrap();
    assert_eq!(within(all(&mut early)).await.unwrap(), b"late");
    assert_eq!(pair.server.close_reason(), None, "a request is under way as long as somebody has it");
    drop((early, _sent));
    let closed = within(pair.server.closed()).await;
    assert!(matches!(closed, ConnectionError::PeerApplication { code: 0x100, .. }), "{closed}");
}

#[tokio::test]
async fn a_request_beyond_what_a_server_accepted_is_told_so_while_it_waits() {
    // RFC 9114 §5.2: the server says nothing on the request's stream.
    let pair = pair(Duration::from_secs(20)).await;
    let client = Client::new(pair.client.clone(), Settings::default()).await.unwrap();
    tokio::spawn(client.watch());
    let mut control = pair.server.open_uni().await.unwrap();
    control.write_all(&[0x00, 0x04, 0x00]).await.unwrap();
    let (_sent, mut first) = within(client.whole(&get("/"), Bytes::new())).await.unwrap();
    let (_other, mut second) = within(client.whole(&get("/"), Bytes::new())).await.unwrap();
    let waiting = tokio::spawn(async move { (second.response().await, second) });
    tokio::time::sleep(Duration::from_millis(50)).await;
    control.write_all(&[0x07, 1, 4]).await.unwrap();
    let (refused, second) = within(waiting).await.unwrap();
    assert_eq!(refused.unwrap_err(), ReceiveError::Refused);
    drop(second);
    let waits = tokio::time::timeout(Duration::from_millis(100), first.response()).await;
    assert!(waits.is_err(), "{waits:?}");
    control.write_all(&[0x07, 1, 0]).await.unwrap();
    assert_eq!(within(first.response()).await.unwrap_err(), ReceiveError::Refused);
}

//= https://www.rfc-editor.org/rfc/rfc9218#section-7.2
//= type=test
//# The PRIORITY_UPDATE frame MUST be sent on the client control stream
#[tokio::test]
async fn a_response_has_the_priority_that_the_client_asked_for_last() {
    // RFC 9218 §5, §7.1.
    let pair = pair(Duration::from_secs(20)).await;
    let client = Client::new(pair.client.clone(), Settings::default()).await.unwrap();
    tokio::spawn(client.watch());
    let server = Server::new(pair.server.clone(), Settings::default()).await.unwrap();
    let priorities = server.priorities();
    let (report, mut reports) = mpsc::unbounded_channel();
    let said = priorities.clone();
    let answer = move |incoming: hvq_h3::serving::Incoming| {
        let (said, report) = (said.clone(), report.clone());
        async move {
            let (_, sending, _) = incoming.request(LIMIT).await.unwrap();
            report.send((sending.id(), said.get(sending.id()).unwrap())).unwrap();
            pending::<()>().await;
            drop(sending);
        }
    };
    tokio::spawn(server.run(pending(), || LIMIT, answer));
    let asked = Request::get("https://localhost/").header("priority", "u=5, i").body(()).unwrap();
    let early = Priority { urgency: 1, incremental: false };
    // Before the stream is there: what comes on the control stream counts for more than the header section.
    client.reprioritize(hvq::StreamId(4), early);
    let _first = within(client.whole(&asked, Bytes::new())).await.unwrap();
    let (id, priority) = within(reports.recv()).await.unwrap();
    assert_eq!(priority, Priority { urgency: 5, incremental: true });
    tokio::time::sleep(Duration::from_millis(50)).await;
    let _second = within(client.whole(&asked, Bytes::new())).await.unwrap();
    let (second, priority) = within(reports.recv()).await.unwrap();
    assert_eq!((second, priority), (hvq::StreamId(4), early));
    // And while the response is under way; the default has no parameters.
    for wanted in [Priority { urgency: 7, incremental: true }, Priority::DEFAULT] {
        client.reprioritize(id, wanted);
        within(async {
            while priorities.get(id) != Ok(wanted) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    }
    // Other streams are as they were.
    assert_eq!(priorities.get(second), Ok(early));
}

#[tokio::test]
async fn a_request_that_is_given_up_is_reset_and_stopped() {
    // RFC 9114 §4.1.1.
    let (report, mut reports) = mpsc::unbounded_channel();
    let client = client_of(Settings::default(), move |_, mut sending, mut receiving| {
        let report = report.clone();
        async move {
            let mut interim = ok();
            *interim.status_mut() = StatusCode::CONTINUE;
            sending.head(&interim).await.unwrap();
            let read = receiving.data().await;
            sending.head(&ok()).await.ok();
            let written = within(async {
                loop {
                    if let Err(error) = sending.data(body(10_000)).await {
                        break error;
                    }
                }
            });
            report.send((read, written.await)).unwrap();
        }
    })
    .await;
    let (mut sending, mut receiving) = within(client.open(&post("/"))).await.unwrap();
    within(receiving.any_response()).await.unwrap();
    sending.reset(Code::H3_REQUEST_CANCELLED);
    drop(receiving);
    let (read, written) = within(reports.recv()).await.unwrap();
    let cancelled = Code::H3_REQUEST_CANCELLED.value();
    assert_eq!(read, Err(ReceiveError::Lost(ReadError::Reset(cancelled))));
    assert_eq!(written, hvq_h3::SendError::Lost(hvq::WriteError::Stopped(cancelled)));
}
