//! Servers that break the rules of RFC 9114, RFC 9204 and RFC 9218, case by case, against this crate's client: what h3spec does
//! to servers, the other way round.

use crate::setup::*;
use crate::verdict::Verdict::{Closed, Read, Refused, Stopped};
use crate::verdict::*;
use bytes::Bytes;
use http::Request;
use hvq::ConnectionError;
use hvq_h3::client::{Client, RequestError};
use hvq_h3::{Code, ReceiveError, Settings, Tunnels};
use std::time::Duration;

/// Something that the server does once the request is there.
#[derive(Clone, Debug)]
enum Act {
    /// Bytes on a unidirectional stream of their own, which stays open.
    Uni(Vec<u8>),
    /// Bytes on a unidirectional stream, which ends.
    UniEnded(Vec<u8>),
    /// Bytes on a unidirectional stream, which is reset once they were read.
    UniReset(Vec<u8>),
    /// Bytes of the response.
    Response(Vec<u8>),
    /// The end of the response.
    End,
    /// A bidirectional stream of the server's.
    Bidirectional,
    /// The client's next unidirectional stream is not wanted any more.
    StopUni,
}

use Act::{Bidirectional, End, Response, StopUni, Uni, UniEnded, UniReset};

/// A frame of type `kind`, which is below 64.
fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap() | 1 << 31;
    [&[kind][..], &length.to_be_bytes(), payload].concat()
}

/// HEADERS of lines that are all literal (RFC 9204 §4.5.6).
fn headers(lines: &[(&str, &str)]) -> Vec<u8> {
    let mut section = vec![0, 0];
    for (name, value) in lines {
        assert!(name.len() < 7 + 128 && value.len() < 127);
        match u8::try_from(name.len()).unwrap() {
            short @ 0..7 => section.push(0x20 | short),
            long => section.extend([0x27, long - 7]),
        }
        section.extend_from_slice(name.as_bytes());
        section.push(value.len() as u8);
        section.extend_from_slice(value.as_bytes());
    }
    frame(0x01, &section)
}

fn ok_with(lines: &[(&str, &str)]) -> Act {
    Response(headers(&[&[(":status", "200")], lines].concat()))
}

fn data(bytes: &[u8]) -> Act {
    Response(frame(0x00, bytes))
}

/// A control stream of `bytes` behind empty SETTINGS.
fn control(bytes: &[u8]) -> Act {
    Uni([&[0x00, 0x04, 0x00], bytes].concat())
}

/// A control stream with these settings.
fn settings(payload: &[u8]) -> Act {
    Uni([&[0x00], &frame(0x04, payload)[..]].concat())
}

/// An encoder stream with a table of 220 bytes and `instructions`.
fn encoder(instructions: &[u8]) -> Act {
    Uni([&[0x02, 0x3f, 0xbd, 0x01], instructions].concat())
}

/// A response whose status is a line of the static table, with the section's `prefix` and `lines`.
fn section(prefix: [u8; 2], lines: &[u8]) -> Act {
    Response(frame(0x01, &[&prefix[..], &[0xd9], lines].concat()))
}

/// An entry `x: y`, inserted with a literal name.
const ENTRY: &[u8] = &[0x41, b'x', 1, b'y'];

/// A client and the verdict on a server that does all of `acts` once a GET was asked.
async fn verdict(acts: &[Act], request: Request<()>) -> Verdict {
    let pair = pair(Duration::from_secs(20)).await;
    let settings = Settings { tunnels: Tunnels::Taken, ..Settings::default() };
    let client = Client::new(pair.client.clone(), settings).await.unwrap();
    tokio::spawn(client.watch());
    let (_sent, mut receiving) = within(client.whole(&request, Bytes::new())).await.unwrap();
    let (mut send, _receive) = within(pair.server.accept_bi()).await.unwrap();
    let (mut open, mut taken) = (Vec::new(), Vec::new());
    for act in acts {
        // The client may have closed by now.
        let _acted = perform(act, &pair.server, &mut send, &mut open, &mut taken).await;
    }
    let asked = async {
        receiving.response().await?;
        while receiving.data().await?.is_some() {}
        receiving.trailers().await?;
        // There is nothing behind them.
        receiving.data().await.map(|_| ())
    };
    let closed = |closed: ConnectionError| match closed {
        ConnectionError::PeerApplication { code, .. } => Closed(code),
        other => panic!("{acts:?}: {other}"),
    };
    let answered = tokio::select! {
        lost = pair.server.closed() => return closed(lost),
        answered = within(asked) => answered,
    };
    match answered {
        Ok(()) => {
            // What comes beside a response that is fine may not have been read yet.
            let lost = tokio::time::timeout(Duration::from_millis(150), pair.server.closed()).await;
            lost.map_or(Read, closed)
        }
        Err(ReceiveError::Violation(..) | ReceiveError::Lost(hvq::ReadError::ConnectionLost(_))) => {
            closed(within(pair.server.closed()).await)
        }
        Err(_) => {
            drop(receiving);
            assert_eq!(pair.client.close_reason(), None, "{acts:?}");
            match tokio::time::timeout(Duration::from_secs(2), send.stopped()).await {
                Ok(Ok(Some(code))) => Stopped(code),
                _ => Refused,
            }
        }
    }
}

async fn perform(
    act: &Act,
    server: &hvq::Connection,
    send: &mut hvq::SendStream,
    open: &mut Vec<hvq::SendStream>,
    taken: &mut Vec<hvq::RecvStream>,
) -> Result<(), hvq::WriteError> {
    match act {
        Uni(bytes) | UniEnded(bytes) | UniReset(bytes) => {
            let mut stream = server.open_uni().await?;
            stream.write_all(bytes).await?;
            match act {
                UniEnded(_) => stream.finish()?,
                UniReset(_) => {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    stream.reset(0x100)?;
                }
                _ => {}
            }
            open.push(stream);
        }
        Response(bytes) => send.write_all(bytes).await?,
        End => send.finish()?,
        Bidirectional => {
            let (mut stream, receive) = server.open_bi().await?;
            stream.write_all(b"?").await?;
            open.push(stream);
            taken.push(receive);
        }
        StopUni => {
            let mut stream = server.accept_uni().await?;
            stream.stop(0x100);
            taken.push(stream);
        }
    }
    Ok(())
}

/// Holds each case to its verdict.
async fn all_of(cases: &[(&str, Vec<Act>, Verdict)]) {
    let mut wrong = Vec::new();
    for (name, acts, expected) in cases {
        let got = within(verdict(acts, get("/"))).await;
        if got != *expected {
            wrong.push(format!("{name}: {got:?}, not {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

//= https://www.rfc-editor.org/rfc/rfc9114#section-4.1
//= type=test
//# Receipt of an invalid sequence of frames MUST be treated as a connection error of type
//# H3_FRAME_UNEXPECTED.
//= https://www.rfc-editor.org/rfc/rfc9114#section-4.4
//= type=test
//# Receipt of any other known frame type MUST be treated as a connection error of type
//# H3_FRAME_UNEXPECTED.
//= https://www.rfc-editor.org/rfc/rfc9114#section-7.1
//= type=test
//# When a stream terminates cleanly, if the last frame on the stream was truncated, this MUST be
//# treated as a connection error of type H3_FRAME_ERROR.
//= https://www.rfc-editor.org/rfc/rfc9114#section-7.2.3
//= type=test
//# Receiving a CANCEL_PUSH frame on a stream other than the control stream MUST be treated as a
//# connection error of type H3_FRAME_UNEXPECTED.
//= https://www.rfc-editor.org/rfc/rfc9114#section-7.2.4
//= type=test
//# If an endpoint receives a SETTINGS frame on a different stream, the endpoint MUST respond with a
//# connection error of type H3_FRAME_UNEXPECTED.
//= https://www.rfc-editor.org/rfc/rfc9114#section-7.2.5
//= type=test
//# A client MUST treat receipt of a PUSH_PROMISE frame that contains a larger push ID than the client
//# has advertised as a connection error of H3_ID_ERROR.
//= https://www.rfc-editor.org/rfc/rfc9114#section-7.2.6
//= type=test
//# A client MUST treat a GOAWAY frame on a stream other than the control stream as a connection error
//# of type H3_FRAME_UNEXPECTED.
//= https://www.rfc-editor.org/rfc/rfc9114#section-7.2.7
//= type=test
//# Receipt of a MAX_PUSH_ID frame on any other stream MUST be treated as a connection error of type
//# H3_FRAME_UNEXPECTED.
//= https://www.rfc-editor.org/rfc/rfc9114#section-7.2.8
//= type=test
//# Endpoints MUST NOT consider these frames to have any meaning upon receipt.
//= https://www.rfc-editor.org/rfc/rfc9114#section-7.2.8
//= type=test
//# These frame types MUST NOT be sent, and their receipt MUST be treated as a connection error of type
//# H3_FRAME_UNEXPECTED.
//= https://www.rfc-editor.org/rfc/rfc9218#section-7.2
//= type=test
//# Receiving a PRIORITY_UPDATE frame on a stream other than the client control stream MUST be treated
//# as a connection error of type H3_FRAME_UNEXPECTED.
//= https://www.rfc-editor.org/rfc/rfc8336#section-2.2
//= type=test
//# The ORIGIN frame MUST be sent on stream 0; an ORIGIN frame on any other stream is invalid and MUST be
//# ignored.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_of_a_response_come_in_order() {
    // RFC 9114 §4.1, §7.1, §7.2, §7.2.5, §7.2.8; RFC 9218 §7.1. attacks.md H1, H4.
    let ok = || ok_with(&[]);
    let interim = || Response(headers(&[(":status", "103")]));
    let beside = |kind: u8| Response(frame(kind, &[0]));
    let update = || Response(vec![0x80, 0x0f, 0x07, 0x00, 1, 0]);
    all_of(&[
        ("a response", vec![ok(), data(b"a"), End], Read),
        ("one with trailers", vec![interim(), ok(), data(b"a"), Response(headers(&[("a", "b")])), End], Read),
        ("DATA before HEADERS", vec![data(b"a"), End], FRAME_UNEXPECTED),
        ("DATA behind an interim response", vec![interim(), data(b"a"), End], FRAME_UNEXPECTED),
        ("DATA behind trailers", vec![ok(), Response(headers(&[])), data(b"a"), End], FRAME_UNEXPECTED),
        (
            "HEADERS behind trailers",
            vec![ok(), Response(headers(&[])), Response(headers(&[])), End],
            FRAME_UNEXPECTED,
        ),
        ("CANCEL_PUSH", vec![ok(), beside(0x03), End], FRAME_UNEXPECTED),
        ("SETTINGS", vec![ok(), beside(0x04), End], FRAME_UNEXPECTED),
        ("GOAWAY", vec![ok(), beside(0x07), End], FRAME_UNEXPECTED),
        ("MAX_PUSH_ID", vec![ok(), beside(0x0d), End], FRAME_UNEXPECTED),
        ("PRIORITY_UPDATE", vec![ok(), update(), End], FRAME_UNEXPECTED),
        ("PRIORITY of HTTP/2", vec![ok(), beside(0x02), End], FRAME_UNEXPECTED),
        ("PING of HTTP/2", vec![ok(), beside(0x06), End], FRAME_UNEXPECTED),
        ("WINDOW_UPDATE of HTTP/2", vec![ok(), beside(0x08), End], FRAME_UNEXPECTED),
        ("CONTINUATION of HTTP/2", vec![ok(), beside(0x09), End], FRAME_UNEXPECTED),
        ("PUSH_PROMISE without permission", vec![Response(frame(0x05, &[0, 0, 0])), ok(), End], ID),
        // RFC 8336 §2.2: on any other stream than that for control it is ignored.
        ("ORIGIN", vec![beside(0x0c), ok(), beside(0x0c), data(b"a"), beside(0x0c), End], Read),
        ("reserved frames", vec![beside(0x21), ok(), beside(0x21), data(b"a"), beside(0x21), End], Read),
        ("an end within HEADERS", vec![Response(vec![0x01, 9, 0, 0]), End], FRAME),
        ("an end within DATA", vec![ok(), Response(vec![0x00, 9, 0]), End], FRAME),
        ("an end within a type", vec![ok(), Response(vec![0x80]), End], FRAME),
        ("an end before HEADERS", vec![End], Refused),
        (
            "interim responses without end",
            vec![Response(headers(&[(":status", "103")]).repeat(18))],
            EXCESSIVE_LOAD,
        ),
    ])
    .await;
}

//= https://www.rfc-editor.org/rfc/rfc9114#section-10.3
//= type=test
//# Requests or responses containing invalid field names MUST be treated as malformed.
//= https://www.rfc-editor.org/rfc/rfc9114#section-10.3
//= type=test
//# Any request or response that contains a character not permitted in a field value MUST be treated as
//# malformed.
//= https://www.rfc-editor.org/rfc/rfc9114#section-4.1.2
//= type=test
//# Malformed requests or responses that are detected MUST be treated as a stream error of type
//# H3_MESSAGE_ERROR.
//= https://www.rfc-editor.org/rfc/rfc9114#section-4.1.2
//= type=test
//# Clients MUST NOT accept a malformed response.
//= https://www.rfc-editor.org/rfc/rfc9114#section-4.2
//= type=test
//# A request or response containing uppercase characters in field names MUST be treated as malformed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn malformed_responses_are_stopped_and_end_no_other() {
    // RFC 9114 §4.1.2, §4.2, §4.3, §4.3.2, §4.5. attacks.md H2.
    let bad = |lines: &[(&str, &str)]| vec![Response(headers(lines))];
    let with = |name, value| vec![ok_with(&[(name, value)])];
    let trailers = |line| vec![ok_with(&[]), data(b"a"), Response(headers(&[line]))];
    let long = |length, body: &[u8]| vec![ok_with(&[("content-length", length)]), data(body), End];
    all_of(&[
        ("no :status", bad(&[("server", "a")]), MESSAGE),
        ("no fields", bad(&[]), MESSAGE),
        (":status twice", bad(&[(":status", "200"), (":status", "200")]), MESSAGE),
        (":status of two digits", bad(&[(":status", "20")]), MESSAGE),
        (":status 101", bad(&[(":status", "101")]), MESSAGE),
        ("a pseudo-field of requests", bad(&[(":status", "200"), (":path", "/")]), MESSAGE),
        ("an unknown pseudo-field", bad(&[(":status", "200"), (":own", "/")]), MESSAGE),
        ("a pseudo-field behind others", bad(&[("server", "a"), (":status", "200")]), MESSAGE),
        ("an uppercase name", with("Server", "a"), MESSAGE),
        ("an empty name", with("", "a"), MESSAGE),
        ("a name with a space", with("a b", "a"), MESSAGE),
        ("a value with a line break", with("a", "a\r\nb: c"), MESSAGE),
        ("a value with NUL", with("a", "a\0"), MESSAGE),
        ("connection", with("connection", "close"), MESSAGE),
        ("keep-alive", with("keep-alive", "1"), MESSAGE),
        ("proxy-connection", with("proxy-connection", "close"), MESSAGE),
        ("transfer-encoding", with("transfer-encoding", "chunked"), MESSAGE),
        ("upgrade", with("upgrade", "a"), MESSAGE),
        ("a content length that is none", with("content-length", "+1"), MESSAGE),
        ("two content lengths", vec![ok_with(&[("content-length", "1"), ("content-length", "2")])], MESSAGE),
        ("a pseudo-field among trailers", trailers((":status", "200")), MESSAGE),
        ("connection among trailers", trailers(("connection", "close")), MESSAGE),
        ("a body of the right length", long("3", b"abc"), Read),
        ("a body that is too long", vec![ok_with(&[("content-length", "2")]), data(b"abc")], MESSAGE),
        ("a body that is too short", long("4", b"abc"), Refused),
        (
            "trailers behind a body that is too short",
            vec![ok_with(&[("content-length", "4")]), data(b"abc"), Response(headers(&[("a", "b")]))],
            MESSAGE,
        ),
        ("fields that are too large", vec![ok_with(&[("a", "b".repeat(100).as_str()); 300])], CANCELLED),
        ("HEADERS that claim a megabyte", vec![Response(vec![0x01, 0x80, 0x10, 0, 0])], CANCELLED),
    ])
    .await;
}

//= https://www.rfc-editor.org/rfc/rfc9114#section-5.2
//= type=test
//# Receiving a GOAWAY containing a larger identifier than previously received MUST be treated as a
//# connection error of type H3_ID_ERROR.
//= https://www.rfc-editor.org/rfc/rfc9114#section-6.2.1
//= type=test
//# If the first frame of the control stream is any other frame type, this MUST be treated as a
//# connection error of type H3_MISSING_SETTINGS.
//= https://www.rfc-editor.org/rfc/rfc9114#section-7.1
//= type=test
//# A frame payload that contains additional bytes after the identified fields or a frame payload that
//# terminates before the end of the identified fields MUST be treated as a connection error of type
//# H3_FRAME_ERROR.
//= https://www.rfc-editor.org/rfc/rfc9114#section-7.1
//= type=test
//# In particular, redundant length encodings MUST be verified to be self-consistent; see Section 10.8.
//= https://www.rfc-editor.org/rfc/rfc9114#section-7.2.1
//= type=test
//# If a DATA frame is received on a control stream, the recipient MUST respond with a connection error
//# of type H3_FRAME_UNEXPECTED.
//= https://www.rfc-editor.org/rfc/rfc9114#section-7.2.2
//= type=test
//# If a HEADERS frame is received on a control stream, the recipient MUST respond with a connection
//# error of type H3_FRAME_UNEXPECTED.
//= https://www.rfc-editor.org/rfc/rfc9114#section-7.2.3
//= type=test
//# If a CANCEL_PUSH frame is received that references a push ID greater than currently allowed on the
//# connection, this MUST be treated as a connection error of type H3_ID_ERROR.
//= https://www.rfc-editor.org/rfc/rfc9114#section-7.2.4.1
//= type=test
//# Endpoints MUST NOT consider such settings to have any meaning upon receipt.
//= https://www.rfc-editor.org/rfc/rfc9114#section-7.2.4
//= type=test
//# If an endpoint receives a second SETTINGS frame on the control stream, the endpoint MUST respond
//# with a connection error of type H3_FRAME_UNEXPECTED.
//= https://www.rfc-editor.org/rfc/rfc9114#section-7.2.4
//= type=test
//# An implementation MUST ignore any parameter with an identifier it does not understand.
//= https://www.rfc-editor.org/rfc/rfc9114#section-7.2.5
//= type=test
//# If a PUSH_PROMISE frame is received on the control stream, the client MUST respond with a connection
//# error of type H3_FRAME_UNEXPECTED.
//= https://www.rfc-editor.org/rfc/rfc9114#section-7.2.6
//= type=test
//# A client MUST treat receipt of a GOAWAY frame containing a stream ID of any other type as a
//# connection error of type H3_ID_ERROR.
//= https://www.rfc-editor.org/rfc/rfc9114#section-7.2.7
//= type=test
//# A client MUST treat the receipt of a MAX_PUSH_ID frame as a connection error of type
//# H3_FRAME_UNEXPECTED.
//= https://www.rfc-editor.org/rfc/rfc9218#section-7.2
//= type=test
//# If a client receives a PRIORITY_UPDATE frame, this MUST be treated as a connection error of type
//# H3_FRAME_UNEXPECTED.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn control_streams_say_what_servers_may_say() {
    // RFC 9114 §5.2, §6.2.1, §7.2.3 to §7.2.8; RFC 9218 §7; RFC 9220 §3; RFC 9297 §2.1.1. attacks.md H3, H15, H16.
    all_of(&[
        ("DATA", vec![control(&[0x00, 0])], FRAME_UNEXPECTED),
        ("HEADERS", vec![control(&[0x01, 0])], FRAME_UNEXPECTED),
        ("PUSH_PROMISE", vec![control(&[0x05, 0])], FRAME_UNEXPECTED),
        ("a frame of HTTP/2", vec![control(&[0x02, 0])], FRAME_UNEXPECTED),
        ("MAX_PUSH_ID", vec![control(&[0x0d, 1, 4])], FRAME_UNEXPECTED),
        ("PRIORITY_UPDATE", vec![control(&[0x80, 0x0f, 0x07, 0x00, 1, 0])], FRAME_UNEXPECTED),
        ("SETTINGS twice", vec![control(&[0x04, 0])], FRAME_UNEXPECTED),
        ("no SETTINGS", vec![Uni(vec![0x00, 0x07, 1, 0])], MISSING_SETTINGS),
        ("ORIGIN that ends within an entry", vec![control(&[0x0c, 3, 0, 9, b'h'])], FRAME),
        ("ORIGIN that ends within a length", vec![control(&[0x0c, 1, 0])], FRAME),
        ("a reserved frame before SETTINGS", vec![Uni(vec![0x00, 0x21, 0])], MISSING_SETTINGS),
        ("CANCEL_PUSH", vec![control(&[0x03, 1, 0])], ID),
        ("GOAWAY of a push", vec![control(&[0x07, 1, 5])], ID),
        ("GOAWAY of a server's stream", vec![control(&[0x07, 1, 1])], ID),
        ("GOAWAY that rises", vec![control(&[0x07, 1, 4, 0x07, 1, 8])], ID),
        ("GOAWAY of two integers", vec![control(&[0x07, 2, 4, 4])], FRAME),
        ("GOAWAY of half an integer", vec![control(&[0x07, 1, 0x40])], FRAME),
        ("a setting of HTTP/2", vec![settings(&[0x02, 0])], SETTINGS),
        ("another", vec![settings(&[0x05, 1])], SETTINGS),
        ("a setting twice", vec![settings(&[0x06, 1, 0x06, 1])], SETTINGS),
        ("extended CONNECT by two", vec![settings(&[0x08, 2])], SETTINGS),
        ("datagrams by two", vec![settings(&[0x33, 2])], SETTINGS),
        ("half a setting", vec![settings(&[0x06])], FRAME),
        ("settings that nobody knows", vec![settings(&[0x21, 1]), ok_with(&[]), End], Read),
        ("a frame that nobody knows", vec![control(&[0x21, 2, 0, 0]), ok_with(&[]), End], Read),
        ("ORIGIN of strange origins", vec![control(&[0x0c, 4, 0, 2, 0xff, b'*']), ok_with(&[]), End], Read),
        ("GOAWAY that falls", vec![control(&[0x07, 1, 8, 0x07, 1, 4]), ok_with(&[]), End], Read),
        ("an endless frame that is understood", vec![control(&[0x07, 0x80, 1, 0, 0])], Closed(0x107)),
    ])
    .await;
}

//= https://www.rfc-editor.org/rfc/rfc9114#section-4.6
//= type=test
//# A client MUST treat receipt of a push stream as a connection error of type H3_ID_ERROR when no
//# MAX_PUSH_ID frame has been sent or when the stream references a push ID that is greater than the
//# maximum push ID.
//= https://www.rfc-editor.org/rfc/rfc9114#section-6.1
//= type=test
//# Clients MUST treat receipt of a server-initiated bidirectional stream as a connection error of type
//# H3_STREAM_CREATION_ERROR unless such an extension has been negotiated.
//= https://www.rfc-editor.org/rfc/rfc9114#section-6.2.1
//= type=test
//# Only one control stream per peer is permitted; receipt of a second stream claiming to be a control
//# stream MUST be treated as a connection error of type H3_STREAM_CREATION_ERROR.
//= https://www.rfc-editor.org/rfc/rfc9114#section-6.2.1
//= type=test
//# If either control stream is closed at any point, this MUST be treated as a connection error of type
//# H3_CLOSED_CRITICAL_STREAM.
//= https://www.rfc-editor.org/rfc/rfc9114#section-6.2
//= type=test
//# Recipients of unknown stream types MUST either abort reading of the stream or discard incoming data
//# without further processing.
//= https://www.rfc-editor.org/rfc/rfc9114#section-6.2
//= type=test
//# The recipient MUST NOT consider unknown stream types to be a connection error of any kind.
//= https://www.rfc-editor.org/rfc/rfc9114#section-6.2
//= type=test
//# A receiver MUST tolerate unidirectional streams being closed or reset prior to the reception of the
//# unidirectional stream header.
//= https://www.rfc-editor.org/rfc/rfc9114#section-9
//= type=test
//# Implementations MUST discard data or abort reading on unidirectional streams that have unknown or
//# unsupported types.
//= https://www.rfc-editor.org/rfc/rfc9204#section-4.2
//= type=test
//# Closure of either unidirectional stream type MUST be treated as a connection error of type
//# H3_CLOSED_CRITICAL_STREAM.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_of_a_server_are_those_that_may_be_and_last() {
    // RFC 9114 §6.1, §6.2, §4.6; RFC 9204 §4.2. attacks.md H5.
    let answered = |act: Act| vec![act, ok_with(&[]), End];
    all_of(&[
        ("a bidirectional stream", vec![Bidirectional], STREAM_CREATION),
        ("two control streams", vec![control(&[]), control(&[])], STREAM_CREATION),
        ("two encoder streams", vec![Uni(vec![0x02]), Uni(vec![0x02])], STREAM_CREATION),
        ("two decoder streams", vec![Uni(vec![0x03]), Uni(vec![0x03])], STREAM_CREATION),
        ("a push that nobody permitted", vec![Uni(vec![0x01, 0])], ID),
        ("a control stream that ends", vec![UniEnded(vec![0x00, 0x04, 0x00])], CLOSED_CRITICAL),
        ("a control stream that is reset", vec![UniReset(vec![0x00, 0x04, 0x00])], CLOSED_CRITICAL),
        ("an encoder stream that ends", vec![UniEnded(vec![0x02])], CLOSED_CRITICAL),
        ("a decoder stream that ends", vec![UniEnded(vec![0x03])], CLOSED_CRITICAL),
        ("a decoder stream that is reset", vec![UniReset(vec![0x03])], CLOSED_CRITICAL),
        ("the client's control stream is not wanted", vec![StopUni], CLOSED_CRITICAL),
        ("a stream that nobody knows", answered(Uni(vec![0x21, 1, 2, 3])), Read),
        ("one that ends", answered(UniEnded(vec![0x21])), Read),
        ("one that ends before its type", answered(UniEnded(vec![0x40])), Read),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn field_sections_and_instructions_of_servers_are_held_to_the_rules_of_qpack() {
    // RFC 9204 §2.1.2, §2.2.3, §3.2, §4.3, §4.4, §4.5.1, §6. attacks.md H8, H9, H11, H12.
    let table = |section: Act| vec![encoder(ENTRY), section, End];
    all_of(&[
        ("a line of the dynamic table", table(section([2, 0], &[0x80])), Read),
        ("a table that is not there", vec![section([0, 0], &[0x80]), End], DECOMPRESSION),
        ("an index before the table", table(section([2, 0], &[0x81])), DECOMPRESSION),
        ("an index behind the required count", table(section([2, 0], &[0x10])), DECOMPRESSION),
        ("an index beyond the static table", vec![section([0, 0], &[0xff, 36]), End], DECOMPRESSION),
        ("a name beyond the static table", vec![section([0, 0], &[0x5f, 84, 0]), End], DECOMPRESSION),
        ("a negative base", table(section([2, 0x81], &[])), DECOMPRESSION),
        ("a required count that cannot be", table(section([0xff, 0], &[])), DECOMPRESSION),
        ("a string beyond the end", vec![section([0, 0], &[0x21, b'x', 9, b'y']), End], DECOMPRESSION),
        (
            "a Huffman code with a wrong end",
            vec![section([0, 0], &[0x21, b'x', 0x81, 0x00]), End],
            DECOMPRESSION,
        ),
        ("a section that ends within its prefix", vec![Response(frame(0x01, &[0])), End], DECOMPRESSION),
        ("a capacity above the limit", vec![Uni(vec![0x02, 0x3f, 0xe2, 0x1f])], ENCODER_STREAM),
        ("an entry without a table", vec![Uni([&[0x02], ENTRY].concat())], ENCODER_STREAM),
        (
            "an entry that is too large",
            vec![encoder(&[&[0x41, b'x', 0x7f, 100][..], &[b'y'; 227]].concat())],
            ENCODER_STREAM,
        ),
        ("a name that is not there", vec![encoder(&[0x80, 1, b'y'])], ENCODER_STREAM),
        ("a name beyond the static table", vec![encoder(&[0xff, 36, 1, b'y'])], ENCODER_STREAM),
        ("a duplicate of nothing", vec![encoder(&[0x00])], ENCODER_STREAM),
        ("a number of ten bytes", vec![encoder(&[&[0x1f][..], &[0xff; 10]].concat())], ENCODER_STREAM),
        ("an increment of nothing", vec![Uni(vec![0x03, 0x00])], DECODER_STREAM),
        ("an increment beyond what was inserted", vec![Uni(vec![0x03, 0x01])], DECODER_STREAM),
        ("an acknowledgement of nothing", vec![Uni(vec![0x03, 0x80])], DECODER_STREAM),
        (
            "a number of ten bytes in the decoder stream",
            vec![Uni([&[0x03, 0x3f][..], &[0xff; 10]].concat())],
            DECODER_STREAM,
        ),
        ("a cancellation of nothing", vec![Uni(vec![0x03, 0x40]), ok_with(&[]), End], Read),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_is_not_blocked_on_more_streams_than_it_said() {
    // RFC 9204 §2.1.2.
    let pair = pair(Duration::from_secs(20)).await;
    let client = Client::new(pair.client.clone(), Settings::default()).await.unwrap();
    tokio::spawn(client.watch());
    let mut stream = pair.server.open_uni().await.unwrap();
    stream.write_all(&[0x02, 0x3f, 0xbd, 0x01]).await.unwrap();
    let mut waiting = Vec::new();
    for number in 0..17 {
        assert_eq!(pair.client.close_reason(), None, "{number}");
        let (sent, mut receiving) = within(client.whole(&get("/"), Bytes::new())).await.unwrap();
        let (mut send, receive) = within(pair.server.accept_bi()).await.unwrap();
        send.write_all(&frame(0x01, &[2, 0, 0xd9, 0x80])).await.unwrap();
        waiting.push((tokio::spawn(async move { (receiving.response().await, sent) }), send, receive));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let closed = within(pair.server.closed()).await;
    assert!(matches!(closed, ConnectionError::PeerApplication { code: 0x200, .. }), "{closed}");
}

//= https://www.rfc-editor.org/rfc/rfc9114#section-4.1.1
//= type=test
//# Clients MUST NOT use the H3_REQUEST_REJECTED error code, except when a server has requested
//# closure of the request stream with this error code.
#[tokio::test]
async fn a_client_without_room_for_fields_cancels_its_request() {
    let pair = pair(Duration::from_secs(20)).await;
    let settings = Settings { max_unread_fields: 1000, ..Settings::default() };
    let client = Client::new(pair.client.clone(), settings).await.unwrap();
    tokio::spawn(client.watch());
    let (_sent, mut receiving) = within(client.whole(&get("/"), Bytes::new())).await.unwrap();
    let (mut send, _receive) = within(pair.server.accept_bi()).await.unwrap();
    // HEADERS of 5000 bytes, of which 2000 come.
    let begun = [&[0x01][..], &(5000_u32 | 1 << 31).to_be_bytes(), &[0; 2000]].concat();
    send.write_all(&begun).await.unwrap();
    let error = within(receiving.response()).await.unwrap_err();
    assert!(matches!(error, ReceiveError::Malformed(Code::H3_REQUEST_CANCELLED, _)), "{error}");
    drop(receiving);
    assert_eq!(within(send.stopped()).await, Ok(Some(Code::H3_REQUEST_CANCELLED.value())));
}

#[tokio::test]
async fn a_server_that_breaks_the_rules_is_told_to_the_one_who_asked() {
    let pair = pair(Duration::from_secs(20)).await;
    let client = Client::new(pair.client.clone(), Settings::default()).await.unwrap();
    tokio::spawn(client.watch());
    let (_sent, mut receiving) = within(client.whole(&get("/"), Bytes::new())).await.unwrap();
    let (mut send, _receive) = within(pair.server.accept_bi()).await.unwrap();
    send.write_all(&frame(0x00, b"a")).await.unwrap();
    let error = within(receiving.response()).await.unwrap_err();
    assert_eq!(error.to_string(), "DATA before HEADERS");
    let closed = within(pair.client.closed()).await;
    assert_eq!(closed, ConnectionError::LocallyClosed { code: 0x105 });
    let next = within(client.whole(&get("/"), Bytes::new())).await.unwrap_err();
    assert!(
        matches!(next, RequestError::Connection(ConnectionError::LocallyClosed { code: 0x105 })),
        "{next}"
    );
}
