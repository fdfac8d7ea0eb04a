//! Dynamic tables of QPACK over connections (RFC 9204), and clients that mean harm with them: attacks.md H9, H10, K16.

use crate::setup::*;
use hvq::config::MemoryQuota;
use hvq::{ConnectionError, ReadError, ReadToEndError};
use hvq_h3::{Settings, Tunnels, serving};
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

/// A capacity of 4096 bytes.
const CAPACITY: &[u8] = &[0x3f, 0xe1, 0x1f];
/// SETTINGS that offer a dynamic table of 4096 bytes and 16 blocked streams, at the beginning of a control stream.
const OFFER: &[u8] = &[0x00, 0x04, 5, 0x01, 0x50, 0x00, 0x07, 16];

/// The client of a server that gives header sections this much time, and answers with the value of `x-own`.
async fn served(patience: Duration, memory: Arc<MemoryQuota>) -> Pair {
    serve(pair_within(Duration::from_secs(20), memory).await, patience).await
}

async fn serve(pair: Pair, patience: Duration) -> Pair {
    let server = serving::Server::new(pair.server.clone(), Settings::default()).await.unwrap();
    let answer = move |incoming: serving::Incoming| async move {
        let Ok((request, mut sending, _)) = incoming.request(patience).await else { return };
        let value = request.headers().get("x-own").map(|value| value.as_bytes().to_vec());
        let _gone = sending.whole(&ok(), value.unwrap_or_default().into()).await;
    };
    tokio::spawn(server.run(pending(), move || patience, answer));
    pair
}

/// A client's unidirectional stream that begins with `bytes`.
async fn stream(pair: &Pair, bytes: &[u8]) -> hvq::SendStream {
    let mut stream = within(pair.client.open_uni()).await.unwrap();
    within(stream.write_all(bytes)).await.unwrap();
    stream
}

/// A GET whose last line is the newest of `required` insertions.
async fn ask(pair: &Pair, required: u8) -> hvq::RecvStream {
    let line = [required + 1, 0, 0xd1, 0xd7, 0xc1, 0x50, 9];
    let section = [&line[..], b"localhost", &[0x80]].concat();
    let (mut send, receive) = within(pair.client.open_bi()).await.unwrap();
    within(send.write_all(&[&[0x01, section.len() as u8], &section[..]].concat())).await.unwrap();
    send.finish().unwrap();
    receive
}

/// The insertion of `x-own` with this value.
fn insertion(value: &str) -> Vec<u8> {
    [&[0x45][..], b"x-own", &[value.len() as u8], value.as_bytes()].concat()
}

/// Bytes that the server writes on its unidirectional stream of `kind`, once it is `length` bytes.
async fn said(pair: &Pair, kind: u8, length: usize) -> Vec<u8> {
    loop {
        let mut stream = within(pair.client.accept_uni()).await.unwrap();
        let mut bytes = Vec::new();
        while bytes.len() < length && bytes.first().is_none_or(|first| *first == kind) {
            bytes.extend_from_slice(&within(stream.read_chunk(100)).await.unwrap().unwrap());
        }
        if bytes[0] == kind {
            std::mem::forget(stream);
            return bytes;
        }
        std::mem::forget(stream);
    }
}

async fn code(receive: &mut hvq::RecvStream) -> u64 {
    match within(receive.read_to_end(1 << 16)).await {
        Err(ReadToEndError::Read(ReadError::Reset(code))) => code,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_request_that_arrives_before_its_insertions_waits_for_them_and_is_acknowledged() {
    // RFC 9204 §2.1.2, §2.2.1, §4.4.
    let pair = served(LIMIT, Arc::default()).await;
    let _control = stream(&pair, &[0x00, 0x04, 0x00]).await;
    let mut early = ask(&pair, 1).await;
    let waits = tokio::time::timeout(Duration::from_millis(100), early.read_to_end(100)).await;
    assert!(waits.is_err(), "{waits:?}");
    let mut encoder = stream(&pair, &[&[0x02], CAPACITY].concat()).await;
    within(encoder.write_all(&insertion("first"))).await.unwrap();
    assert!(within(early.read_to_end(100)).await.unwrap().ends_with(b"first"));
    let mut late = ask(&pair, 1).await;
    assert!(within(late.read_to_end(100)).await.unwrap().ends_with(b"first"));
    // An increment and two acknowledgements, of streams 0 and 4.
    assert_eq!(said(&pair, 0x03, 4).await, [0x03, 0x01, 0x80, 0x84]);
}

#[tokio::test]
async fn a_request_whose_insertions_never_come_is_given_up_and_cancelled() {
    // attacks.md K16, RFC 9204 §2.2.2.2.
    let pair = served(Duration::from_millis(200), Arc::default()).await;
    let _control = stream(&pair, &[0x00, 0x04, 0x00]).await;
    for _ in 0..16 {
        let mut receive = ask(&pair, 1).await;
        assert_eq!(code(&mut receive).await, 0x10d, "H3_REQUEST_INCOMPLETE");
    }
    // More in all than may be blocked at once.
    let mut receive = ask(&pair, 1).await;
    assert_eq!(code(&mut receive).await, 0x10d, "H3_REQUEST_INCOMPLETE");
    assert_eq!(said(&pair, 0x03, 2).await[..2], [0x03, 0x40]);
    assert_eq!(pair.client.close_reason(), None);
}

#[tokio::test]
async fn a_table_is_charged_to_the_memory_of_all_connections_while_its_capacity_lasts() {
    // attacks.md K16.
    let memory = Arc::new(MemoryQuota::new(64 << 20));
    let pair = served(LIMIT, memory.clone()).await;
    let _control = stream(&pair, &[0x00, 0x04, 0x00]).await;
    let until = async |is_so: &dyn Fn(usize) -> bool| {
        within(async {
            while !is_so(memory.usage().used) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    };
    let mut encoder = stream(&pair, &[&[0x02], CAPACITY].concat()).await;
    until(&|used| used >= 16 << 10).await;
    within(encoder.write_all(&[0x20])).await.unwrap();
    until(&|used| used < 16 << 10).await;
    within(encoder.write_all(CAPACITY)).await.unwrap();
    until(&|used| used >= 16 << 10).await;
    pair.client.close(0x100, b"");
    until(&|used| used == 0).await;
}

#[tokio::test]
async fn a_table_without_memory_ends_the_connection() {
    // attacks.md K16: no more than an eighth of what is free.
    let pair = served(LIMIT, Arc::new(MemoryQuota::new(64 << 10))).await;
    let _control = stream(&pair, &[0x00, 0x04, 0x00]).await;
    let _encoder = stream(&pair, &[&[0x02], CAPACITY].concat()).await;
    let closed = within(pair.client.closed()).await;
    assert!(matches!(closed, ConnectionError::PeerApplication { code: 0x107, .. }), "{closed}");
}

#[tokio::test]
async fn a_client_that_takes_no_decoder_stream_cannot_fill_it() {
    // attacks.md K16: there is room for the control stream alone.
    let pair = pair_of(Duration::from_secs(20), Arc::default(), 1).await;
    let pair = serve(pair, LIMIT).await;
    let _encoder = stream(&pair, &[&[0x02], CAPACITY, &insertion("value")].concat()).await;
    let requests = async {
        let mut answered = 0;
        loop {
            let asked = pair.client.open_bi().await;
            let Ok((mut send, mut receive)) = asked else { return answered };
            let section = [0x01, 9, 2, 0, 0xd1, 0xd7, 0xc1, 0x50, 1, b'a', 0x80];
            let _closed = send.write_all(&section).await.and_then(|()| send.finish());
            answered += usize::from(receive.read_to_end(100).await.is_ok());
        }
    };
    let answered = within(requests).await;
    let closed = within(pair.client.closed()).await;
    assert!(matches!(closed, ConnectionError::PeerApplication { code: 0x107, .. }), "{closed}");
    // An acknowledgement has up to three bytes.
    assert!((1_000..=4_200).contains(&answered), "{answered}");
}

//= https://www.rfc-editor.org/rfc/rfc9204#section-3.2.3
//= type=test
//# The encoder MUST NOT set a dynamic table capacity that exceeds this maximum,
//= https://www.rfc-editor.org/rfc/rfc9204#section-4.3.1
//= type=test
//# The new capacity MUST be lower than or equal to the limit described in Section 3.2.3.
//= https://www.rfc-editor.org/rfc/rfc9204#section-4.2
//= type=test
//# Each endpoint MUST initiate, at most, one encoder stream and, at most, one decoder stream.
#[tokio::test]
async fn a_response_that_is_like_the_one_before_takes_a_few_bytes() {
    // RFC 9204 §2.1: references only to what this client acknowledged.
    let pair = pair(Duration::from_secs(20)).await;
    let server = serving::Server::new(pair.server.clone(), Settings::default()).await.unwrap();
    let answer = |incoming: serving::Incoming| async move {
        let Ok((_, mut sending, _)) = incoming.request(LIMIT).await else { return };
        let head = http::Response::builder().header("x-own", "a value of its own").body(()).unwrap();
        sending.whole(&head, Default::default()).await.unwrap();
    };
    tokio::spawn(server.run(pending(), || LIMIT, answer));
    let _control = stream(&pair, OFFER).await;
    let encoder = said(&pair, 0x02, CAPACITY.len() + 1).await;
    assert_eq!(encoder, [&[0x02], CAPACITY].concat());
    let length = async || {
        let (mut send, mut receive) = within(pair.client.open_bi()).await.unwrap();
        send.write_all(&[&[0x01, 16, 0, 0, 0xd1, 0xd7, 0xc1, 0x50, 9][..], b"localhost"].concat())
            .await
            .unwrap();
        send.finish().unwrap();
        within(receive.read_to_end(1000)).await.unwrap().len()
    };
    let (first, second) = (length().await, length().await);
    assert_eq!(first, second, "nothing was acknowledged");
    // One insertion: an encoder that is told so refers to it.
    let mut decoder = stream(&pair, &[0x03, 0x01]).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    // Type and length, prefix, status, and a line.
    assert_eq!((first > 20, length().await), (true, 3 + 2 + 1 + 1));
    // The section was not acknowledged: it may be, once.
    within(decoder.write_all(&[0x88, 0x88])).await.unwrap();
    let closed = within(pair.client.closed()).await;
    assert!(matches!(closed, ConnectionError::PeerApplication { code: 0x202, .. }), "{closed}");
}

#[tokio::test]
async fn requests_that_are_alike_take_fewer_bytes_and_arrive_as_they_were() {
    let settings = Settings { tunnels: Tunnels::Taken, ..Settings::default() };
    let client = client_of(settings, |request, mut sending, _receiving| async move {
        assert_eq!(request.headers()["x-own"], "v".repeat(300));
        assert_eq!(request.uri(), "https://localhost/a/tunnel/");
        let mut head = ok();
        head.headers_mut().insert("x-answer", request.headers()["x-own"].clone());
        let _gone = sending.whole(&head, Default::default()).await;
    })
    .await;
    for _ in 0..200 {
        let request = http::Request::get("https://localhost/a/tunnel/");
        let request = request.header("x-own", "v".repeat(300)).body(()).unwrap();
        let (head, ..) = within(client.tunnel(&request, "connect-ip")).await.unwrap();
        assert_eq!(head.headers()["x-answer"], "v".repeat(300));
    }
}
