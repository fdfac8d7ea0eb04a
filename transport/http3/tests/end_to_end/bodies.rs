//! Requests and responses arrive whole.

use crate::setup::*;
use bytes::{Buf, Bytes};
use http::{HeaderMap, HeaderValue, Method, StatusCode};

const SIZES: [usize; 3] = [0, 1, 10_000_000];

#[tokio::test]
async fn responses_of_any_size_arrive_whole() {
    let mut requests = served(|request, mut stream| async move {
        let length: usize = request.uri().path().trim_start_matches('/').parse().unwrap();
        stream.send_response(ok()).await?;
        if length > 0 {
            stream.send_data(body(length)).await?;
        }
        stream.finish().await
    })
    .await;
    for size in SIZES {
        let received = within(fetch(&mut requests, &format!("/{size}"))).await.unwrap();
        assert!(received == body(size), "{} of {size} bytes, or other ones", received.len());
    }
}

#[tokio::test]
async fn request_bodies_of_any_size_arrive_whole() {
    let mut requests = served(|request, mut stream| async move {
        assert_eq!(request.method(), Method::POST);
        let length: usize = request.uri().path().trim_start_matches('/').parse().unwrap();
        let received = request_body(&mut stream).await?;
        let mut response = ok();
        if received != body(length) {
            *response.status_mut() = StatusCode::BAD_REQUEST;
        }
        stream.send_response(response).await?;
        stream.finish().await
    })
    .await;
    for size in SIZES {
        let mut stream = requests.send_request(post(&format!("/{size}"))).await.unwrap();
        stream.send_data(body(size)).await.unwrap();
        stream.finish().await.unwrap();
        let response = within(stream.recv_response()).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK, "{size} bytes");
        assert_eq!(response_body(&mut stream).await.unwrap(), b"");
    }
}

#[tokio::test]
async fn both_directions_of_a_split_stream_go_at_once() {
    let mut requests = served(|_, stream| async move {
        let (mut send, mut recv) = stream.split();
        send.send_response(ok()).await?;
        while let Some(mut part) = recv.recv_data().await? {
            send.send_data(part.copy_to_bytes(part.remaining())).await?;
        }
        send.finish().await
    })
    .await;
    let (mut send, mut recv) = requests.send_request(post("/echo")).await.unwrap().split();
    let sent = body(3_000_000);
    let writer = async {
        for part in sent.chunks(100_000) {
            send.send_data(Bytes::copy_from_slice(part)).await.unwrap();
        }
        send.finish().await.unwrap();
    };
    let reader = async {
        recv.recv_response().await.unwrap();
        response_body(&mut recv).await.unwrap()
    };
    let ((), received) = within(async { tokio::join!(writer, reader) }).await;
    assert!(received == sent, "{} bytes came back, or other ones", received.len());
}

#[tokio::test]
async fn trailers_go_both_ways() {
    let mut requests = served(|_, mut stream| async move {
        let content = request_body(&mut stream).await?;
        let trailers = stream.recv_trailers().await?.unwrap_or_default();
        stream.send_response(ok()).await?;
        stream.send_data(content.into()).await?;
        stream.send_trailers(trailers).await?;
        stream.finish().await
    })
    .await;
    let mut trailers = HeaderMap::new();
    trailers.insert("x-checksum", HeaderValue::from_static("abc"));
    let mut stream = requests.send_request(post("/")).await.unwrap();
    stream.send_data(Bytes::from_static(b"content")).await.unwrap();
    stream.send_trailers(trailers.clone()).await.unwrap();
    stream.finish().await.unwrap();
    within(stream.recv_response()).await.unwrap();
    assert_eq!(response_body(&mut stream).await.unwrap(), b"content");
    assert_eq!(stream.recv_trailers().await.unwrap(), Some(trailers));
}

#[tokio::test]
async fn a_hundred_requests_are_answered_at_once() {
    let mut requests = served(|request, mut stream| async move {
        stream.send_response(ok()).await?;
        stream.send_data(Bytes::from(request.uri().path().repeat(1000))).await?;
        stream.finish().await
    })
    .await;
    let mut open = Vec::new();
    for index in 0..100 {
        let mut stream = within(requests.send_request(get(&format!("/{index}")))).await.unwrap();
        stream.finish().await.unwrap();
        open.push(stream);
    }
    let answers = open.into_iter().enumerate().map(|(index, mut stream)| async move {
        stream.recv_response().await.unwrap();
        let received = response_body(&mut stream).await.unwrap();
        assert_eq!(received, format!("/{index}").repeat(1000).into_bytes());
    });
    within(futures::future::join_all(answers)).await;
}

/// RFC 9000 §4.6: the limit is on streams that are open, not on streams of a connection's life.
#[tokio::test]
async fn requests_beyond_the_stream_limit_follow_when_others_are_done() {
    let mut requests = served(|_, mut stream| async move {
        stream.send_response(ok()).await?;
        stream.finish().await
    })
    .await;
    let all = (0..400).map(|_| {
        let mut requests = requests.clone();
        async move { fetch(&mut requests, "/").await.unwrap() }
    });
    let answers = within(futures::future::join_all(all)).await;
    assert_eq!(answers.len(), 400);
    assert_eq!(within(fetch(&mut requests, "/")).await.unwrap(), b"");
}
