//! A server, and somebody unknown who sends it datagrams.

use bytes::BytesMut;
use hvq_lab::world::{Net, identity};
use hvq_scheduler::{PathId, Policy};
use hvq_transport::connection::{Datagram, Ecn, Role, TransportConfig};
use hvq_transport::crypto::initial::initial_keys;
use hvq_transport::crypto::keys::Suite;
use hvq_transport::endpoint::{Endpoint, EndpointConfig, Output, ServerConfig};
use hvq_transport::wire::header::patch_length;
use hvq_transport::wire::{ConnectionId, LongHeader, LongKind, Version};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// The smallest datagram with an Initial packet (RFC 9000 §14.1).
const INITIAL: usize = 1200;
/// More rounds than this without time passing are a loop without end.
const ROUNDS: usize = 10_000;

/// An Initial packet of a client with `payload`, which is padded.
fn initial(number: u64, payload: &[u8]) -> Vec<u8> {
    let destination = ConnectionId::new(b"off_path_attacker").expect("eight bytes are an ID");
    let source = ConnectionId::new(b"somebody").expect("eight bytes are an ID");
    let (key, _) = initial_keys(Version::V1, &destination, Role::Client);
    let header =
        LongHeader { kind: LongKind::Initial, version: Version::V1, destination, source, token: &[] };
    let mut packet = Vec::new();
    let layout = header.put(&mut packet, number, 4);
    packet.extend_from_slice(payload);
    packet.resize(packet.len().max(INITIAL - Suite::TAG_LENGTH), 0);
    patch_length(&mut packet, &layout, 0, Suite::TAG_LENGTH);
    key.seal(&mut packet, 0, &layout, PathId::ZERO, number);
    packet
}

/// Pieces: the first byte of each says whether it is a datagram, or what is in an Initial packet.
pub(crate) fn run(bytes: &[u8]) {
    let transport = TransportConfig::new(Arc::new(|| Policy::Hvc.scheduler()));
    let server = ServerConfig::new(identity::server(), Arc::new(transport));
    let mut endpoint = Endpoint::new(EndpointConfig::default(), Some(server), [7; 32]);
    let local = SocketAddr::from(([192, 0, 2, 1], 443));
    let remote = SocketAddr::from(([198, 51, 100, 1], 5000));
    let mut now = Net::START;
    let (mut received, mut sent) = (0, 0);
    for (number, piece) in (0..).zip(super::pieces(bytes).take(64)) {
        let Some((&kind, rest)) = piece.split_first() else { continue };
        let datagram = match kind % 2 {
            0 => rest.to_vec(),
            _ => initial(number, &rest[..rest.len().min(8000)]),
        };
        received += datagram.len();
        let bytes = BytesMut::from(&datagram[..]);
        endpoint.handle(Datagram { local, remote, ecn: Ecn::NotEct, bytes }, now);
        sent += drained(&mut endpoint, now);
        assert!(sent <= 3 * received, "{sent} bytes for {received} (RFC 9000 §8.1)");
        now += Duration::from_millis(u64::from(kind >> 1));
    }
    for _ in 0..100 {
        now += Duration::from_secs(1);
        sent += drained(&mut endpoint, now);
    }
    assert!(sent <= 3 * received, "{sent} bytes for {received} (RFC 9000 §8.1)");
    assert_eq!(endpoint.handles().count(), 0, "a connection that nobody uses is kept");
}

/// Returns the number of bytes that the endpoint has to send at `now`.
fn drained(endpoint: &mut Endpoint, now: hvq_transport::time::Instant) -> usize {
    let mut sent = 0;
    for _ in 0..ROUNDS {
        match endpoint.poll(now) {
            Output::Idle { .. } => return sent,
            Output::Transmit(transmit) => sent += transmit.bytes.len(),
            Output::Event { .. } => {}
        }
    }
    panic!("the server is never idle");
}
