//! Clients that break the rules of HTTP/3 (RFC 9114), frame by frame.

use crate::setup::{Origin, Place, get, within};
use hvq::{Connection, ConnectionError, SendStream};

/// Stream types (RFC 9114 §6.2) and frame types (§7.2).
const CONTROL: u8 = 0;
const QPACK_ENCODER: u8 = 2;
const DATA: u8 = 0;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const MAX_PUSH_ID: u8 = 13;
/// Reserved types (§7.2.8), as variable-length integers of one byte.
const GREASE: u8 = 0x21;

/// A gateway, and a connection to it on which nothing was said.
async fn silent() -> (Place, Origin, Connection, hvq::Endpoint) {
    let origin = Origin::plain().await;
    let place = Place::before(origin.address).await;
    let (connection, endpoint) = place.raw().await;
    (place, origin, connection, endpoint)
}

async fn unidirectional(connection: &Connection, bytes: &[u8]) -> SendStream {
    let mut stream = within(connection.open_uni()).await.unwrap();
    within(stream.write_all(bytes)).await.unwrap();
    stream
}

/// The code that the gateway closes with when a client sends each of these on a stream of its own.
async fn closes(unidirectional_streams: &[&[u8]], requests: &[&[u8]]) -> u64 {
    let (place, _origin, connection, _endpoint) = silent().await;
    let mut kept = Vec::new();
    for bytes in unidirectional_streams {
        kept.push(unidirectional(&connection, bytes).await);
    }
    for bytes in requests {
        let (mut send, receive) = within(connection.open_bi()).await.unwrap();
        within(send.write_all(bytes)).await.unwrap();
        kept.push(send);
        drop(receive);
    }
    let code = match within(connection.closed()).await {
        ConnectionError::PeerApplication { code, .. } => code,
        other => panic!("{other:?}"),
    };
    // Whoever comes after is served.
    assert_eq!(place.client().await.status(get("/")).await, 200);
    code
}

#[tokio::test]
async fn frames_where_they_do_not_belong_end_the_connection() {
    let control = [CONTROL, SETTINGS, 0];
    // H1: DATA before HEADERS (RFC 9114 §4.1).
    assert_eq!(closes(&[&control], &[&[DATA, 1, b'x']]).await, 0x105);
    // H3: what is first on the control stream, and SETTINGS again (§6.2.1, §7.2.4).
    assert_eq!(closes(&[&[CONTROL, GOAWAY, 1, 0]], &[]).await, 0x10a);
    assert_eq!(closes(&[&[CONTROL, SETTINGS, 0, SETTINGS, 0]], &[]).await, 0x105);
    // H4: DATA on the control stream (§7.2.1), SETTINGS on a request's (§7.2.4).
    assert_eq!(closes(&[&[CONTROL, SETTINGS, 0, DATA, 0]], &[]).await, 0x105);
    assert_eq!(closes(&[&control], &[&[SETTINGS, 0]]).await, 0x105);
    // H5: a second control stream (§6.2.1).
    assert_eq!(closes(&[&control, &control], &[]).await, 0x103);
}

#[tokio::test]
async fn a_control_stream_that_ends_ends_the_connection() {
    // H5: RFC 9114 §6.2.1.
    let (_place, _origin, connection, _endpoint) = silent().await;
    let mut control = unidirectional(&connection, &[CONTROL, SETTINGS, 0]).await;
    control.finish().unwrap();
    let closed = within(connection.closed()).await.to_string();
    assert!(closed.contains("0x104"), "{closed}");
}

#[tokio::test]
async fn what_is_reserved_is_passed_over_however_much_it_is() {
    // H17: RFC 9114 §6.2.3, §7.2.8; H16: MAX_PUSH_ID of a client that nothing is pushed to.
    let origin = Origin::plain().await;
    let place = Place::before(origin.address).await;
    let client = place.client().await;
    for _ in 0..50 {
        let mut stream = unidirectional(&client.connection, &[GREASE, 1, 2, 3]).await;
        // The gateway may have stopped it.
        let _ended = stream.finish();
    }
    assert_eq!(client.status(get("/one")).await, 200);
    let (_place, _origin, connection, _endpoint) = silent().await;
    let flood = [&[CONTROL, SETTINGS, 0][..], &[GREASE, 0].repeat(5_000), &[MAX_PUSH_ID, 1, 9]].concat();
    let _control = unidirectional(&connection, &flood).await;
    let _encoder = unidirectional(&connection, &[QPACK_ENCODER]).await;
    let (mut send, mut receive) = within(connection.open_bi()).await.unwrap();
    // GET https://localhost/grease with QPACK's static table (RFC 9204 appendix A) and literals, behind reserved frames.
    let fields = [&[0, 0, 0xc0 | 17, 0xc0 | 23, 0x50, 9][..], b"localhost", &[0x51, 7], b"/grease"].concat();
    let head = [&[GREASE, 3, 7, 7, 7, 1, fields.len() as u8][..], &fields].concat();
    within(send.write_all(&head)).await.unwrap();
    send.finish().unwrap();
    let answer = within(receive.read_to_end(4_096)).await.unwrap();
    assert!(answer.ends_with(b"/grease"), "{answer:02x?}");
}
