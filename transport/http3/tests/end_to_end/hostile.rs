//! Clients that keep a server waiting or full: attacks.md H6, H19, K2.

use crate::setup::*;
use hvq::config::MemoryQuota;
use hvq::{ReadError, ReadToEndError, StreamId};
use hvq_h3::Code;
use hvq_h3::{Datagrams, SendError, Settings, serving};
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A HEADERS frame that says that `length` bytes follow, below 2^30, and the first `sent` of them.
fn unfinished(length: u32, sent: usize) -> Vec<u8> {
    let frame = [&[0x01][..], &(length | 0x8000_0000).to_be_bytes()].concat();
    [frame, vec![0; sent]].concat()
}

/// A HEADERS frame with GET https://localhost/ in indices of the static table (RFC 9204 §B).
fn get_frame() -> Vec<u8> {
    [&[0x01, 16, 0, 0, 0xd1, 0xd7, 0xc1, 0x50, 9][..], b"localhost"].concat()
}

/// The client of a server that gives header sections this much time, and answers requests with nothing.
async fn served(patience: Duration, settings: Settings) -> Pair {
    served_within(Arc::default(), patience, settings).await
}

/// The same of a server that holds what `memory` allows.
async fn served_within(memory: Arc<MemoryQuota>, patience: Duration, settings: Settings) -> Pair {
    let pair = pair_within(Duration::from_secs(20), memory).await;
    let server = serving::Server::new(pair.server.clone(), settings).await.unwrap();
    let answer = move |incoming: serving::Incoming| async move {
        let Ok((_, mut sending, _)) = incoming.request(patience).await else { return };
        let _gone = sending.whole(&ok(), Default::default()).await;
    };
    tokio::spawn(server.run(pending(), move || patience, answer));
    pair
}

/// The code with which the server gives a request up, `None` if it answers.
async fn code(receive: &mut hvq::RecvStream) -> Option<u64> {
    match within(receive.read_to_end(1 << 16)).await {
        Ok(_) => None,
        Err(ReadToEndError::Read(ReadError::Reset(code))) => Some(code),
        Err(other) => panic!("{other}"),
    }
}

/// Returns true if a whole request is answered.
async fn is_answered(client: &hvq::Connection) -> bool {
    let (mut send, mut receive) = within(client.open_bi()).await.unwrap();
    send.write_all(&get_frame()).await.unwrap();
    send.finish().unwrap();
    code(&mut receive).await.is_none()
}

#[tokio::test]
async fn header_sections_that_drip_on_a_hundred_streams_are_given_up_in_time() {
    let patience = Duration::from_millis(600);
    let pair = served(patience, Settings::default()).await;
    let start = Instant::now();
    let mut streams = Vec::new();
    for _ in 0..90 {
        let (mut send, receive) = within(pair.client.open_bi()).await.unwrap();
        send.write_all(&unfinished(100_000, 1)).await.unwrap();
        streams.push((send, receive));
    }
    assert!(is_answered(&pair.client).await);
    while start.elapsed() < patience / 2 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        for (send, _) in &mut streams {
            send.write_all(&[0]).await.unwrap();
        }
    }
    for (send, receive) in &mut streams {
        assert_eq!(code(receive).await, Some(Code::H3_REQUEST_INCOMPLETE.value()));
        assert_eq!(within(send.stopped()).await.unwrap(), Some(Code::H3_REQUEST_INCOMPLETE.value()));
    }
    assert!(start.elapsed() < patience * 4, "{:?}", start.elapsed());
    assert!(is_answered(&pair.client).await, "the connection goes on");
}

#[tokio::test]
async fn header_sections_that_never_end_take_no_more_than_a_connection_may_have() {
    const EACH: usize = 20_000;
    let settings = Settings { max_unread_fields: 100_000, ..Settings::default() };
    let pair = served(Duration::from_secs(2), settings).await;
    let mut streams = Vec::new();
    for _ in 0..40 {
        let (mut send, receive) = within(pair.client.open_bi()).await.unwrap();
        // A stream that was refused takes no more.
        let _refused = within(send.write_all(&unfinished(100_000, EACH))).await;
        streams.push((send, receive));
    }
    let mut late = 0;
    for (_, receive) in &mut streams {
        match code(receive).await {
            Some(0x10b) => {}
            Some(0x10d) => late += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(late, settings.max_unread_fields as usize / EACH, "as many as there is room for");
    // What was given up is given back.
    for _ in 0..3 {
        let (mut send, mut receive) = within(pair.client.open_bi()).await.unwrap();
        within(send.write_all(&unfinished(100_000, EACH))).await.unwrap();
        assert_eq!(code(&mut receive).await, Some(Code::H3_REQUEST_INCOMPLETE.value()));
    }
    assert!(is_answered(&pair.client).await, "the connection goes on");
}

/// Waits until `is_so`.
async fn until(is_so: impl Fn() -> bool) {
    within(async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn header_sections_under_way_are_charged_to_the_memory_of_all_connections() {
    const EACH: usize = 20_000;
    let memory = Arc::new(MemoryQuota::new(64 << 20));
    let pair = served_within(memory.clone(), Duration::from_secs(1), Settings::default()).await;
    let mut streams = Vec::new();
    for _ in 0..20 {
        let (mut send, receive) = within(pair.client.open_bi()).await.unwrap();
        within(send.write_all(&unfinished(100_000, EACH))).await.unwrap();
        streams.push((send, receive));
    }
    until(|| memory.usage().used > 19 * EACH).await;
    for (_, receive) in &mut streams {
        assert_eq!(code(receive).await, Some(Code::H3_REQUEST_INCOMPLETE.value()));
    }
    until(|| memory.usage().used == 0).await;
}

#[tokio::test]
async fn header_sections_under_way_have_no_more_room_than_there_is_memory() {
    // An eighth of what is free, where the connection itself might have 512 KiB.
    const EACH: usize = 20_000;
    let memory = Arc::new(MemoryQuota::new(1 << 20));
    let pair = served_within(memory, Duration::from_secs(2), Settings::default()).await;
    let mut streams = Vec::new();
    for _ in 0..20 {
        let (mut send, receive) = within(pair.client.open_bi()).await.unwrap();
        let _refused = within(send.write_all(&unfinished(100_000, EACH))).await;
        streams.push((send, receive));
    }
    let mut late = 0;
    for (_, receive) in &mut streams {
        late += usize::from(code(receive).await == Some(Code::H3_REQUEST_INCOMPLETE.value()));
    }
    assert!((1..=(128 << 10) / EACH).contains(&late), "{late} had room");
    assert!(is_answered(&pair.client).await, "the connection goes on");
}

#[tokio::test]
async fn datagrams_that_nobody_takes_are_charged_and_counted_as_they_come() {
    let memory = Arc::new(MemoryQuota::new(64 << 20));
    let pair = pair_within(Duration::from_secs(20), memory.clone()).await;
    let unread = Arc::new(AtomicU64::new(0));
    let datagrams = Datagrams::counting(pair.server.clone(), unread.clone());
    let mut flow = datagrams.flow(StreamId(0)).unwrap();
    let run = datagrams.clone();
    tokio::spawn(async move { run.run().await });
    let send = async |count: usize| {
        for _ in 0..count {
            // The first byte is the quarter stream ID.
            pair.client.send_datagram(vec![0; 1_001].into()).unwrap();
            tokio::time::sleep(Duration::from_micros(200)).await;
        }
    };
    within(async {
        while unread.load(Ordering::Relaxed) == 0 {
            send(50).await;
        }
    })
    .await;
    // 256 wait, of which all but the last few kilobytes were told.
    until(|| memory.usage().used > 230_000).await;
    assert_eq!((datagrams.unread() > 0, pair.server.close_reason()), (true, None));
    for _ in 0..256 {
        assert_eq!(within(flow.receive()).await.len(), 1_000);
    }
    until(|| memory.usage().used < 40_000).await;
    send(100).await;
    until(|| memory.usage().used > 60_000).await;
    drop(flow);
    until(|| memory.usage().used == 0).await;
}

#[tokio::test]
async fn trailers_that_wait_for_their_body_count_like_header_sections() {
    let settings = Settings { max_unread_fields: 100_000, ..Settings::default() };
    let pair = pair(Duration::from_secs(20)).await;
    let server = serving::Server::new(pair.server.clone(), settings).await.unwrap();
    let answer = |incoming: serving::Incoming| async move {
        let Ok((_, sending, receiving)) = incoming.request(LIMIT).await else { return };
        // Nobody reads.
        pending::<()>().await;
        drop((sending, receiving));
    };
    tokio::spawn(server.run(pending(), || LIMIT, answer));
    let mut refused = 0;
    let mut streams = Vec::new();
    for _ in 0..10 {
        let (mut send, mut receive) = within(pair.client.open_bi()).await.unwrap();
        let _refused = send.write_all(&[get_frame(), unfinished(30_000, 30_000)].concat()).await;
        let ended = tokio::time::timeout(Duration::from_millis(500), code(&mut receive)).await;
        refused += usize::from(ended == Ok(Some(Code::H3_REQUEST_REJECTED.value())));
        streams.push((send, receive));
    }
    assert_eq!(refused, 10 - 3, "three times 30,000 bytes have room");
}

#[tokio::test]
async fn a_response_that_nobody_takes_is_given_up() {
    let pair = pair(Duration::from_secs(20)).await;
    let server = serving::Server::new(pair.server.clone(), Settings::default()).await.unwrap();
    let (told, mut hears) = tokio::sync::mpsc::unbounded_channel();
    let answer = move |incoming: serving::Incoming| {
        let told = told.clone();
        async move {
            let Ok((_, mut sending, _)) = incoming.request(LIMIT).await else { return };
            sending.may_pause(Duration::from_millis(300));
            sending.head(&ok()).await.unwrap();
            let error = loop {
                if let Err(error) = sending.data(body(100_000)).await {
                    break error;
                }
            };
            told.send(error).unwrap();
        }
    };
    tokio::spawn(server.run(pending(), || LIMIT, answer));
    let (mut send, _unread) = within(pair.client.open_bi()).await.unwrap();
    send.write_all(&get_frame()).await.unwrap();
    send.finish().unwrap();
    assert_eq!(within(hears.recv()).await, Some(SendError::Stalled));
}

//= https://www.rfc-editor.org/rfc/rfc9114#section-4.1.1
//= type=test
//# Servers MUST NOT use the H3_REQUEST_REJECTED error code for requests that were partially or fully
//# processed.
//= https://www.rfc-editor.org/rfc/rfc9114#section-5.2
//= type=test
//# An endpoint MAY send multiple GOAWAY frames indicating different identifiers, but the identifier in
//# each frame MUST NOT be greater than the identifier in any previous frame, since clients might
//# already have retried unprocessed requests on another HTTP connection.
#[tokio::test]
async fn a_server_that_stops_says_so_and_refuses_what_comes_later() {
    let pair = pair(Duration::from_secs(20)).await;
    let server = serving::Server::new(pair.server.clone(), Settings::default()).await.unwrap();
    let (stop, stopping) = tokio::sync::oneshot::channel::<()>();
    let (go_on, waiting) = tokio::sync::watch::channel(false);
    let answer = move |incoming: serving::Incoming| {
        let mut waiting = waiting.clone();
        async move {
            let Ok((_, mut sending, _)) = incoming.request(LIMIT).await else { return };
            waiting.wait_for(|go_on| *go_on).await.map(drop).unwrap();
            sending.whole(&ok(), Default::default()).await.unwrap();
        }
    };
    let running = server.run(async { drop(stopping.await) }, || LIMIT, answer);
    let running = tokio::spawn(running);
    let (mut send, mut under_way) = within(pair.client.open_bi()).await.unwrap();
    send.write_all(&get_frame()).await.unwrap();
    send.finish().unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    stop.send(()).unwrap();
    // RFC 9114 §5.2: GOAWAY with the ID behind the last request that is served, on the control stream.
    let mut control = within(pair.client.accept_uni()).await.unwrap();
    let mut said = Vec::new();
    while !said.ends_with(&[0x07, 1, 4]) {
        said.extend_from_slice(&within(control.read_chunk(100)).await.unwrap().unwrap());
    }
    let (mut send, mut later) = within(pair.client.open_bi()).await.unwrap();
    send.write_all(&get_frame()).await.unwrap();
    assert_eq!(code(&mut later).await, Some(Code::H3_REQUEST_REJECTED.value()));
    go_on.send(true).unwrap();
    assert_eq!(code(&mut under_way).await, None);
    within(running).await.unwrap();
    assert!(matches!(
        within(pair.client.closed()).await,
        hvq::ConnectionError::PeerApplication { code: 0x100, .. }
    ));
}
