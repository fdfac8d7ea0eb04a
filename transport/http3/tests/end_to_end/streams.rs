//! Tests of the errors by which one end learns of the other's treatment of a stream.

use crate::setup::*;
use bytes::Bytes;
use h3::error::{Code, StreamError};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, mpsc};

/// The code with which the peer ended its half, if that is why.
fn code_of<T>(result: Result<T, StreamError>) -> Option<Code> {
    match result {
        Err(StreamError::RemoteTerminate { code }) => Some(code),
        Err(_) | Ok(_) => None,
    }
}

/// Sends until the peer objects.
async fn send_on(stream: &mut ClientStream) -> StreamError {
    loop {
        if let Err(error) = stream.send_data(body(100_000)).await {
            return error;
        }
    }
}

/// RFC 9114 §4.1: "clients MUST NOT discard responses as a result of having their request terminated abruptly".
#[tokio::test]
async fn a_server_that_reads_no_body_answers_and_stops_it_with_no_error() {
    let mut requests = served(|_, mut stream| async move {
        stream.send_response(ok()).await?;
        stream.send_data(Bytes::from_static(b"enough")).await?;
        stream.finish().await
    })
    .await;
    let mut stream = requests.send_request(post("/")).await.unwrap();
    let error = within(send_on(&mut stream)).await;
    assert_eq!(code_of(Err::<(), _>(error)), Some(Code::H3_NO_ERROR));
    within(stream.recv_response()).await.unwrap();
    assert_eq!(response_body(&mut stream).await.unwrap(), b"enough");
    assert_eq!(within(fetch(&mut requests, "/")).await.unwrap(), b"enough");
}

//= https://www.rfc-editor.org/rfc/rfc9114#section-4.1
//= type=test
//# Clients MUST NOT discard complete responses as a result of having their request terminated abruptly,
//# though clients can always discard responses at their discretion for other reasons.
#[tokio::test]
async fn a_client_may_finish_a_request_that_the_server_stopped() {
    let (dropped, mut is_dropped) = mpsc::unbounded_channel();
    let mut requests = served(move |_, mut stream| {
        let dropped = dropped.clone();
        async move {
            stream.send_response(ok()).await?;
            stream.finish().await?;
            drop(stream);
            dropped.send(()).unwrap();
            Ok(())
        }
    })
    .await;
    // The end of the first request of a client is preceded by a frame of a reserved type, which cannot be sent any more.
    within(fetch(&mut requests, "/")).await.unwrap();
    is_dropped.recv().await.unwrap();
    let mut stream = requests.send_request(post("/")).await.unwrap();
    stream.send_data(Bytes::from_static(b"unread")).await.unwrap();
    is_dropped.recv().await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    stream.finish().await.unwrap();
    assert!(within(stream.recv_response()).await.is_ok());
}

/// Returns the code that the server saw of requests that their client gave up.
async fn give_up(how: impl FnOnce(ClientStream)) -> Option<Code> {
    let (seen, mut sees) = mpsc::unbounded_channel();
    let mut requests = served(move |_, mut stream| {
        let seen = seen.clone();
        async move {
            seen.send(None).unwrap();
            let result = request_body(&mut stream).await;
            seen.send(code_of(result)).unwrap();
            Ok(())
        }
    })
    .await;
    let stream = requests.send_request(post("/")).await.unwrap();
    assert_eq!(within(sees.recv()).await, Some(None));
    how(stream);
    within(sees.recv()).await.unwrap()
}

#[tokio::test]
async fn a_request_that_the_client_resets_fails_at_the_server_with_its_code() {
    let code = give_up(|mut stream| stream.stop_stream(Code::H3_REQUEST_CANCELLED)).await;
    assert_eq!(code, Some(Code::H3_REQUEST_CANCELLED));
    let code = give_up(|mut stream| stream.stop_stream(Code::from(u64::MAX))).await;
    assert_eq!(code, Some(Code::from((1 << 62) - 1)), "a code of more than 62 bits becomes the largest");
}

/// RFC 9114 §4.1.1.
#[tokio::test]
async fn a_response_that_the_client_drops_is_stopped_as_cancelled() {
    let (seen, mut sees) = mpsc::unbounded_channel();
    let mut requests = served(move |_, mut stream| {
        let seen = seen.clone();
        async move {
            stream.send_response(ok()).await?;
            let error = loop {
                if let Err(error) = stream.send_data(body(100_000)).await {
                    break error;
                }
            };
            seen.send(code_of(Err::<(), _>(error))).unwrap();
            Ok(())
        }
    })
    .await;
    let mut stream = requests.send_request(get("/")).await.unwrap();
    stream.finish().await.unwrap();
    within(stream.recv_response()).await.unwrap();
    drop(stream);
    assert_eq!(within(sees.recv()).await, Some(Some(Code::H3_REQUEST_CANCELLED)));
}

/// Were it finished, `h3` would take the missing headers for an error of the connection.
#[tokio::test]
async fn a_server_that_drops_a_request_unanswered_cancels_only_that() {
    let mut requests = served(|request, mut stream| async move {
        if request.uri().path() == "/drop" {
            return Ok(());
        }
        stream.send_response(ok()).await?;
        stream.finish().await
    })
    .await;
    assert_eq!(code_of(within(fetch(&mut requests, "/drop")).await), Some(Code::H3_REQUEST_CANCELLED));
    assert_eq!(within(fetch(&mut requests, "/")).await.unwrap(), b"");
}

#[tokio::test]
async fn a_response_that_is_dropped_between_frames_is_finished() {
    let mut requests = served(|_, mut stream| async move {
        stream.send_response(ok()).await?;
        stream.send_data(Bytes::from_static(b"all")).await
    })
    .await;
    assert_eq!(within(fetch(&mut requests, "/")).await.unwrap(), b"all");
}

#[tokio::test]
async fn half_a_response_of_a_handler_that_panics_does_not_look_whole() {
    let mut requests = served(|request, mut stream| async move {
        stream.send_response(ok()).await?;
        stream.send_data(Bytes::from_static(b"half")).await?;
        assert!(request.uri().path().is_empty(), "a bug");
        stream.finish().await
    })
    .await;
    assert_eq!(code_of(within(fetch(&mut requests, "/")).await), Some(Code::H3_INTERNAL_ERROR));
}

/// RFC 9114 §7.1: were it finished, the incomplete frame would be an error of the connection.
#[tokio::test]
async fn a_stream_that_is_dropped_within_a_frame_is_cancelled_and_the_connection_goes_on() {
    let results = Arc::new(Mutex::new(Vec::new()));
    let (seen, mut sees) = mpsc::unbounded_channel();
    let (go, going) = mpsc::unbounded_channel::<()>();
    let going = Arc::new(Mutex::new(going));
    let into = results.clone();
    let mut requests = served(move |_, mut stream| {
        let (seen, going, into) = (seen.clone(), going.clone(), into.clone());
        async move {
            // Nothing is read before the client has given up, so that flow control holds it within its frame.
            going.lock().await.recv().await;
            into.lock().await.push(code_of(request_body(&mut stream).await));
            seen.send(()).unwrap();
            stream.send_response(ok()).await?;
            stream.finish().await
        }
    })
    .await;
    let mut stream = requests.send_request(post("/")).await.unwrap();
    let sending = stream.send_data(body(40_000_000));
    assert!(tokio::time::timeout(Duration::from_millis(300), sending).await.is_err(), "40 MB went at once");
    drop(stream);
    go.send(()).unwrap();
    within(sees.recv()).await.unwrap();
    assert_eq!(*results.lock().await, [Some(Code::H3_REQUEST_CANCELLED)]);
    go.send(()).unwrap();
    assert_eq!(within(fetch(&mut requests, "/")).await.unwrap(), b"");
}

#[tokio::test]
async fn a_stream_remembers_only_so_many_interrupted_sends() {
    let (_open, closed) = mpsc::unbounded_channel::<()>();
    let closed = Arc::new(Mutex::new(closed));
    let mut requests = served(move |_, stream| {
        let closed = closed.clone();
        async move {
            let _unread = stream;
            closed.lock().await.recv().await;
            Ok(())
        }
    })
    .await;
    let mut stream = requests.send_request(post("/")).await.unwrap();
    let mut interrupted = 0;
    let error = loop {
        match tokio::time::timeout(Duration::from_millis(50), stream.send_data(body(8_000_000))).await {
            Ok(result) => break result.unwrap_err(),
            Err(_) => interrupted += 1,
        }
    };
    assert!(matches!(error, StreamError::Undefined(cause) if cause.is::<hvq_h3::adapter::Unsent>()));
    assert!((2..20).contains(&interrupted), "after {interrupted}");
}

#[tokio::test]
async fn a_send_that_was_interrupted_is_completed_by_finish() {
    let mut requests = served(|_, mut stream| async move {
        tokio::time::sleep(Duration::from_millis(400)).await;
        let received = request_body(&mut stream).await?;
        stream.send_response(ok()).await?;
        stream.send_data(Bytes::from((received == body(20_000_000)).to_string())).await?;
        stream.finish().await
    })
    .await;
    let mut stream = requests.send_request(post("/")).await.unwrap();
    let sending = stream.send_data(body(20_000_000));
    assert!(tokio::time::timeout(Duration::from_millis(200), sending).await.is_err(), "20 MB went at once");
    within(stream.finish()).await.unwrap();
    within(stream.recv_response()).await.unwrap();
    assert_eq!(response_body(&mut stream).await.unwrap(), b"true");
}
