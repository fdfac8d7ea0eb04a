//! Clients that write bytes of their own to a server: attacks.md, section H. Servers are those of `h3` and of
//! `serving`. Deviations of `h3` are its own, and listed, so that a version that does better is noticed.

use crate::setup::*;
use crate::verdict::Verdict::{Closed, Reset, Served};
use crate::verdict::*;
use h3::server;
use hvq::ConnectionError;
use hvq_h3::adapter::Connection;
use hvq_h3::serving;
use std::future::poll_fn;
use std::time::Duration;

/// The bytes that are written to one stream.
#[derive(Clone, Debug)]
enum Written {
    Unidirectional(Vec<u8>),
    /// A unidirectional stream that ends.
    Ended(Vec<u8>),
    /// A request, which ends.
    Request(Vec<u8>),
}

use Written::{Ended, Request, Unidirectional};

/// A HEADERS frame with GET https://localhost/ in indices of the static table (RFC 9204 §B).
fn get_frame() -> Vec<u8> {
    [&[0x01, 16, 0, 0, 0xd1, 0xd7, 0xc1, 0x50, 9][..], b"localhost"].concat()
}

/// A HEADERS frame with this field section.
fn headers(section: &[u8]) -> Vec<u8> {
    [&[0x01, section.len() as u8], section].concat()
}

/// A control stream that begins with SETTINGS and goes on with `more`.
fn control(more: &[u8]) -> Written {
    Unidirectional([&[0x00, 0x04, 0x00], more].concat())
}

/// The server under test: that of `h3` or this crate's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Host {
    H3,
    Serving,
}

/// Answers every request on `connection`.
async fn answer(connection: hvq::Connection, host: Host) {
    if host == Host::H3 {
        let server = server::Connection::new(Connection::new(connection)).await.unwrap();
        tokio::spawn(serve(server, |_, mut stream| async move {
            stream.send_response(ok()).await?;
            stream.finish().await
        }));
        return;
    }
    let mut server = serving::Server::new(connection, Default::default()).await.unwrap();
    tokio::spawn(server.watch());
    tokio::spawn(async move {
        while let Ok(incoming) = server.accept().await {
            tokio::spawn(async move {
                let (_, mut sending, mut receiving) = incoming.request(LIMIT).await.ok()?;
                while poll_fn(|context| receiving.poll_data(context)).await.ok()?.is_some() {}
                sending.whole(&ok(), Default::default()).await.ok()
            });
        }
    });
}

/// Returns the treatment of a client that writes all this, and a request after it.
async fn verdict(writes: &[Written], host: Host) -> Verdict {
    let pair = pair(Duration::from_secs(20)).await;
    answer(pair.server.clone(), host).await;
    // Streams that are dropped end.
    let (mut open, mut answers) = (Vec::new(), Vec::new());
    for write in writes.iter().chain(&[Request(get_frame())]) {
        let (opened, bytes) = match write {
            Unidirectional(bytes) | Ended(bytes) => (pair.client.open_uni().await, bytes),
            Request(bytes) => {
                let opened = pair.client.open_bi().await;
                (opened.map(|(send, receive)| (answers.push(receive), send).1), bytes)
            }
        };
        // The server may have closed by now.
        let Ok(mut send) = opened else { break };
        let _written = send.write_all(bytes).await;
        if !matches!(write, Unidirectional(_)) {
            let _finished = send.finish();
        }
        open.push(send);
    }
    let mut first = answers.into_iter().next();
    let answered = async {
        match &mut first {
            Some(answer) => answer.read_to_end(1 << 16).await.is_ok(),
            None => false,
        }
    };
    let answered = within(answered).await;
    // An answer may be quicker than an error on another stream.
    let closed = tokio::time::timeout(Duration::from_millis(200), pair.client.closed()).await;
    match closed {
        Ok(ConnectionError::PeerApplication { code, .. }) => Closed(code),
        Ok(other) => panic!("{other}"),
        Err(_) if answered => Served,
        Err(_) => Reset,
    }
}

/// Holds the verdicts on `cases` against what is expected; returns the names of those that deviate, with what they got.
async fn deviations(
    cases: &[(&'static str, Vec<Written>, Verdict)],
    host: Host,
) -> Vec<(&'static str, Verdict)> {
    let mut deviations = Vec::new();
    for (name, writes, expected) in cases {
        let verdict = verdict(writes, host).await;
        if verdict != *expected {
            deviations.push((*name, verdict));
        }
    }
    deviations
}

/// A frame of `kind` with the integer `id`.
fn about(kind: u8, id: u8) -> [u8; 3] {
    [kind, 1, id]
}

//= https://www.rfc-editor.org/rfc/rfc9114#section-7.2.5
//= type=test
//# A server MUST treat the receipt of a PUSH_PROMISE frame as a connection error of type
//# H3_FRAME_UNEXPECTED.
#[tokio::test]
async fn frames_out_of_place_close_the_connection_with_their_codes() {
    // attacks.md H1, H3, H4, RFC 9114 §4.1, §7.2.
    let cases = vec![
        ("nothing wrong", vec![control(&[])], Served),
        ("DATA before HEADERS", vec![control(&[]), Request(vec![0x00, 1, b'a'])], FRAME_UNEXPECTED),
        ("no SETTINGS", vec![Unidirectional(vec![0x00, 0x07, 1, 0])], MISSING_SETTINGS),
        ("SETTINGS twice", vec![control(&[0x04, 0])], FRAME_UNEXPECTED),
        ("a setting twice", vec![Unidirectional(vec![0x00, 0x04, 4, 0x06, 1, 0x06, 1])], SETTINGS),
        ("a setting of HTTP/2", vec![Unidirectional(vec![0x00, 0x04, 2, 0x02, 0])], SETTINGS),
        ("half a setting", vec![Unidirectional(vec![0x00, 0x04, 1, 0x06])], FRAME),
        ("SETTINGS of a request", vec![control(&[]), Request(vec![0x04, 0])], FRAME_UNEXPECTED),
        ("DATA for control", vec![control(&[0x00, 1, b'a'])], FRAME_UNEXPECTED),
        ("HEADERS for control", vec![control(&headers(&[0, 0, 0xd1]))], FRAME_UNEXPECTED),
        ("PUSH_PROMISE of a client", vec![control(&[]), Request(vec![0x05, 1, 0])], FRAME_UNEXPECTED),
        ("CANCEL_PUSH of a request", vec![control(&[]), Request(about(0x03, 0).into())], FRAME_UNEXPECTED),
        ("a frame of HTTP/2", vec![control(&[0x06, 0])], FRAME_UNEXPECTED),
    ];
    let known = [("half a setting", SETTINGS)];
    assert_eq!(deviations(&cases, Host::H3).await, known);
    assert_eq!(deviations(&cases, Host::Serving).await, []);
}

#[tokio::test]
async fn streams_that_may_be_there_once_and_must_stay_are_held_to_that() {
    // attacks.md H5, CVE-2026-42530, RFC 9114 §6.2.1, RFC 9204 §4.2.
    let qpack = |kind: u8| Unidirectional(vec![kind]);
    let cases = vec![
        ("two control streams", vec![control(&[]), control(&[])], STREAM_CREATION),
        ("two encoders", vec![control(&[]), qpack(0x02), qpack(0x02)], STREAM_CREATION),
        ("two decoders", vec![control(&[]), qpack(0x03), qpack(0x03)], STREAM_CREATION),
        ("a push of a client", vec![control(&[]), Unidirectional(vec![0x01, 0])], STREAM_CREATION),
        ("control ends", vec![Ended(vec![0x00, 0x04, 0x00])], CLOSED_CRITICAL),
        ("the encoder ends", vec![control(&[]), Ended(vec![0x02])], CLOSED_CRITICAL),
        ("the decoder ends", vec![control(&[]), Ended(vec![0x03])], CLOSED_CRITICAL),
        (
            "the encoder ends and comes again",
            vec![control(&[]), Ended(vec![0x02]), qpack(0x02)],
            CLOSED_CRITICAL,
        ),
    ];
    let known = [
        ("a push of a client", Served),
        ("the encoder ends", Served),
        ("the decoder ends", Served),
        ("the encoder ends and comes again", STREAM_CREATION),
    ];
    assert_eq!(deviations(&cases, Host::H3).await, known);
    assert_eq!(deviations(&cases, Host::Serving).await, []);
}

#[tokio::test]
async fn field_sections_that_cannot_be_decoded_close_the_connection() {
    // attacks.md H8 to H13, RFC 9204 §2.1.2, §2.2.3, §4.1.2, §4.5; `h3` has no dynamic table.
    let section = |bytes: &[u8]| vec![control(&[]), Request(headers(bytes))];
    let waits = || Request(headers(&[2, 0, 0x80]));
    let cases = vec![
        ("an index beyond the static table", section(&[0, 0, 0xff, 100]), DECOMPRESSION),
        ("an index into the dynamic table", section(&[0, 0, 0x80]), DECOMPRESSION),
        ("a section that waits for more than fits", section(&[0xff, 2, 0, 0x80]), DECOMPRESSION),
        (
            "more sections that wait than may",
            std::iter::once(control(&[])).chain((0..17).map(|_| waits())).collect(),
            DECOMPRESSION,
        ),
        ("a string beyond the section", section(&[0, 0, 0x50, 100, b'a']), DECOMPRESSION),
        ("a code that ends with zeros", section(&[0, 0, 0x50, 0x81, 0x18]), DECOMPRESSION),
        (
            "a code with the end of strings",
            section(&[0, 0, 0x50, 0x84, 0xff, 0xff, 0xff, 0xff]),
            DECOMPRESSION,
        ),
        ("nothing", section(&[]), DECOMPRESSION),
        (
            "a capacity above the limit",
            vec![control(&[]), Unidirectional(vec![0x02, 0x3f, 0xff, 0xff, 0x03])],
            ENCODER_STREAM,
        ),
        (
            "an insertion without room",
            vec![control(&[]), Unidirectional(vec![0x02, 0xc0, 1, b'a'])],
            ENCODER_STREAM,
        ),
        ("an increment of nothing", vec![control(&[]), Unidirectional(vec![0x03, 0x00])], DECODER_STREAM),
        ("an increment too many", vec![control(&[]), Unidirectional(vec![0x03, 0x05])], DECODER_STREAM),
        (
            "a section that nobody waits for",
            vec![control(&[]), Unidirectional(vec![0x03, 0x80])],
            DECODER_STREAM,
        ),
        (
            "cancellations",
            vec![control(&[]), Unidirectional([vec![0x03], [0x7f, 0x80, 1].repeat(2_000)].concat())],
            Served,
        ),
        (
            "capacities of nothing",
            vec![control(&[]), Unidirectional([vec![0x02], vec![0x20; 5_000]].concat())],
            Served,
        ),
    ];
    let known = [
        // The request that is read from it is malformed.
        ("a code with the end of strings", Reset),
        ("a capacity above the limit", Served),
        ("an insertion without room", Served),
        ("an increment of nothing", Served),
        ("an increment too many", Served),
        ("a section that nobody waits for", Served),
    ];
    assert_eq!(deviations(&cases, Host::H3).await, known);
    assert_eq!(deviations(&cases, Host::Serving).await, []);
}

#[tokio::test]
async fn numbers_of_requests_and_pushes_move_one_way() {
    // attacks.md H15, H16, RFC 9114 §5.2, §7.2.7.
    let both = |kind: u8, first: u8, then: u8| control(&[about(kind, first), about(kind, then)].concat());
    let cases = vec![
        ("GOAWAY twice", vec![both(0x07, 8, 8)], DONE),
        ("GOAWAY that falls", vec![both(0x07, 8, 4)], DONE),
        ("GOAWAY that rises", vec![both(0x07, 4, 8)], ID),
        ("MAX_PUSH_ID that rises", vec![both(0x0d, 4, 8)], Served),
        ("MAX_PUSH_ID that falls", vec![both(0x0d, 8, 4)], ID),
        ("CANCEL_PUSH of what was not promised", vec![control(&about(0x03, 9))], ID),
    ];
    let known = [("MAX_PUSH_ID that falls", Served), ("CANCEL_PUSH of what was not promised", Served)];
    assert_eq!(deviations(&cases, Host::H3).await, known);
    // The other way is to let the client end the connection, as it says that it will.
    let known = [("GOAWAY twice", Served), ("GOAWAY that falls", Served)];
    assert_eq!(deviations(&cases, Host::Serving).await, known);
}

//= https://www.rfc-editor.org/rfc/rfc9114#section-9
//= type=test
//# Implementations MUST ignore unknown or unsupported values in all extensible protocol elements.
#[tokio::test]
async fn what_is_reserved_for_the_future_is_ignored_however_much_comes() {
    // attacks.md H17, RFC 9114 §7.2.8, §6.2.3: types of the form 0x1f * N + 0x21.
    let frames: Vec<u8> = std::iter::repeat_n([0x21, 2, 7, 7], 5_000).flatten().collect();
    let settings: Vec<u8> = std::iter::repeat_n([0x40, 0x5f], 1).flatten().chain([1]).collect();
    let with_setting = [&[0x00, 0x04, settings.len() as u8][..], &settings].concat();
    let request = [&frames[..400], &get_frame(), &frames[..400]].concat();
    let streams = (0..90).map(|_| Ended(vec![0x21, 1, 2, 3]));
    let cases = vec![
        ("frames on control", vec![control(&frames)], Served),
        ("a setting", vec![Unidirectional(with_setting)], Served),
        ("frames of a request", vec![control(&[]), Request(request)], Served),
        ("streams", streams.chain([control(&[])]).collect(), Served),
    ];
    assert_eq!(deviations(&cases, Host::H3).await, []);
    assert_eq!(deviations(&cases, Host::Serving).await, []);
}

#[tokio::test]
async fn frames_that_claim_to_be_endless_are_refused_or_waited_for() {
    // attacks.md H6: nothing is allocated for a claim, or the test would not end.
    let endless = |kind: u8| [&[kind][..], &[0xff; 8]].concat();
    let cases = vec![
        ("DATA", vec![control(&[]), Request([get_frame(), endless(0x00)].concat())], Served),
        ("a reserved frame on control", vec![control(&endless(0x21))], Served),
        ("HEADERS", vec![control(&[]), Request(endless(0x01))], FRAME),
        ("SETTINGS", vec![Unidirectional([vec![0x00], endless(0x04)].concat())], Served),
    ];
    assert_eq!(deviations(&cases, Host::H3).await, []);
    // What is too large for any field section or control frame need not be waited for.
    let known = [("DATA", FRAME), ("HEADERS", Served), ("SETTINGS", Closed(0x107))];
    assert_eq!(deviations(&cases, Host::Serving).await, known);
}

#[tokio::test]
async fn streams_of_webtransport_sessions_that_cannot_be_leave_nothing_behind() {
    // attacks.md H24, RFC 9114 §6.2, §9: types of streams and frames that were not agreed on are not known.
    let pair = pair(Duration::from_secs(20)).await;
    answer(pair.server.clone(), Host::Serving).await;
    // More than may be open at a time: each is gone before others come.
    for session in 0..300u16 {
        let mut send = within(pair.client.open_uni()).await.unwrap();
        let header = [0x40, 0x54, 0x40 | (session >> 8) as u8, session as u8];
        send.write_all(&[&header[..], &[7; 100]].concat()).await.unwrap();
        assert_eq!(within(send.stopped()).await.unwrap(), Some(0x103), "H3_STREAM_CREATION_ERROR");
    }
    // WT_STREAM on a stream of its own is a frame that is passed over, and no request comes behind it.
    for _ in 0..300 {
        let (mut send, mut receive) = within(pair.client.open_bi()).await.unwrap();
        send.write_all(&[0x40, 0x41, 0x00]).await.unwrap();
        send.finish().unwrap();
        let ended = within(receive.read_to_end(100)).await;
        assert!(matches!(ended, Err(hvq::ReadToEndError::Read(hvq::ReadError::Reset(0x10d)))), "{ended:?}");
    }
    let (mut send, mut receive) = within(pair.client.open_bi()).await.unwrap();
    send.write_all(&get_frame()).await.unwrap();
    send.finish().unwrap();
    assert!(!within(receive.read_to_end(100)).await.unwrap().is_empty(), "the connection serves on");
}
