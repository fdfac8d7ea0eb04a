//! `serving` with clients of `h3`: what goes out and comes in whole, in pieces, or not at all.

use crate::setup::*;
use bytes::Bytes;
use h3::client;
use h3::error::{Code, StreamError};
use http::{HeaderMap, HeaderValue, Request, StatusCode};
use hvq_h3::adapter::Connection;
use hvq_h3::{Receiving, SendError, Sending, Settings};
use std::future::{Future, poll_fn};
use std::time::Duration;

/// A client of a server that answers each request with `handler`, and takes field sections of 2,000 bytes.
async fn served<H, F>(handler: H) -> Requests
where
    H: Fn(Request<()>, Sending, Receiving) -> F + Send + Sync + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let pair = pair(Duration::from_secs(20)).await;
    let (driver, requests) = client::new(Connection::new(pair.client.clone())).await.unwrap();
    drive(driver);
    let settings = Settings { max_field_section_size: 2_000, ..Settings::default() };
    answer(pair, settings, handler).await;
    requests
}

#[tokio::test]
async fn a_response_goes_out_whole() {
    let mut requests = served(|request, mut sending, _| async move {
        let length = request.uri().path()[1..].parse().unwrap();
        sending.whole(&ok(), body(length)).await.unwrap();
    })
    .await;
    for length in [0, 1, 1_000, 3_000_000] {
        let path = format!("/{length}");
        assert!(within(fetch(&mut requests, &path)).await.unwrap() == body(length), "{length}");
    }
}

#[tokio::test]
async fn a_body_that_is_announced_is_one_frame_and_must_come_whole() {
    let mut requests = served(|request, mut sending, _| async move {
        let all = body(300_000);
        sending.head(&ok()).await.unwrap();
        sending.announce(200_000).await.unwrap();
        sending.data(all.slice(..70_000)).await.unwrap();
        if request.uri().path() == "/short" {
            assert_eq!(sending.finish().await, Err(SendError::Short));
            return;
        }
        if request.uri().path() != "/dropped" {
            // What is more than was announced is in a frame of its own.
            sending.data(all.slice(70_000..250_000)).await.unwrap();
            sending.data(all.slice(250_000..)).await.unwrap();
            sending.announce(0).await.unwrap();
            sending.finish().await.unwrap();
        }
    })
    .await;
    assert!(within(fetch(&mut requests, "/whole")).await.unwrap() == body(300_000));
    for (path, expected) in [("/short", Code::H3_INTERNAL_ERROR), ("/dropped", Code::H3_REQUEST_CANCELLED)] {
        match within(fetch(&mut requests, path)).await.unwrap_err() {
            StreamError::RemoteTerminate { code, .. } => assert_eq!(code, expected),
            other => panic!("{other}"),
        }
    }
}

#[tokio::test]
async fn bodies_and_trailers_go_both_ways_in_pieces() {
    let mut requests = served(|request, mut sending, mut receiving| async move {
        assert_eq!(request.headers()["x-own"], "a value of its own");
        sending.head(&ok()).await.unwrap();
        while let Some(piece) = receiving.data().await.unwrap() {
            sending.data(piece).await.unwrap();
        }
        let trailers = poll_fn(|context| receiving.poll_trailers(context)).await.unwrap().unwrap();
        sending.trailers(&trailers).await.unwrap();
        sending.finish().await.unwrap();
    })
    .await;
    let mut request = post("/");
    request.headers_mut().insert("x-own", HeaderValue::from_static("a value of its own"));
    let stream = within(requests.send_request(request)).await.unwrap();
    let (mut send, mut receive) = stream.split();
    let sent = body(2_000_000);
    let upload = async {
        for piece in sent.chunks(70_000) {
            send.send_data(Bytes::copy_from_slice(piece)).await.unwrap();
        }
        let mut trailers = HeaderMap::new();
        trailers.insert("digest", HeaderValue::from_static("abc"));
        send.send_trailers(trailers).await.unwrap();
        send.finish().await.unwrap();
    };
    let download = async {
        assert_eq!(receive.recv_response().await.unwrap().status(), StatusCode::OK);
        response_body(&mut receive).await.unwrap()
    };
    let ((), echoed) = within(async { tokio::join!(upload, download) }).await;
    assert!(echoed == sent);
    assert_eq!(within(receive.recv_trailers()).await.unwrap().unwrap()["digest"], "abc");
}

#[tokio::test]
async fn a_field_section_that_is_too_large_gets_431() {
    // RFC 9114 §4.2.2. h3 holds back what it knows the server not to take, which it does not yet.
    let mut requests = served(|_, _, _| async { panic!("there is no request") }).await;
    let mut request = get("/");
    request.headers_mut().insert("x-long", HeaderValue::from_str(&"x".repeat(3_000)).unwrap());
    let outcome = within(async {
        let mut stream = requests.send_request(request).await?;
        stream.recv_response().await
    })
    .await;
    match outcome {
        Ok(response) => assert_eq!(response.status(), StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE),
        Err(error) => assert!(matches!(error, StreamError::HeaderTooBig { .. }), "{error}"),
    }
}

#[tokio::test]
async fn a_response_that_is_given_up_is_reset_and_never_looks_whole() {
    let mut requests = served(|request, mut sending, _| async move {
        if request.uri().path() == "/begun" {
            sending.head(&ok()).await.unwrap();
            sending.reset(hvq_h3::Code::H3_INTERNAL_ERROR);
        }
    })
    .await;
    for (path, expected) in [("/begun", Code::H3_INTERNAL_ERROR), ("/dropped", Code::H3_REQUEST_CANCELLED)] {
        match within(fetch(&mut requests, path)).await.unwrap_err() {
            StreamError::RemoteTerminate { code, .. } => assert_eq!(code, expected),
            other => panic!("{other}"),
        }
    }
}

#[tokio::test]
async fn who_stops_a_response_is_heard_by_its_sender() {
    let (told, hears) = tokio::sync::oneshot::channel();
    let told = std::sync::Mutex::new(Some(told));
    let mut requests = served(move |_, mut sending, _| {
        let told = told.lock().unwrap().take();
        async move {
            sending.head(&ok()).await.unwrap();
            let lost = loop {
                if let Err(error) = sending.data(body(100_000)).await {
                    break error;
                }
            };
            told.unwrap().send(lost).unwrap();
        }
    })
    .await;
    let mut stream = within(requests.send_request(get("/"))).await.unwrap();
    within(stream.recv_response()).await.unwrap();
    stream.stop_sending(Code::H3_REQUEST_CANCELLED);
    let error = within(hears).await.unwrap();
    assert_eq!(error, SendError::Lost(hvq::WriteError::Stopped(Code::H3_REQUEST_CANCELLED.value())));
}
