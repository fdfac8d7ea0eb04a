//! Initial packets of a client that does what it likes: anybody can seal them (RFC 9001 §5.2).

use super::network::Network;
use crate::PathId;
use crate::connection::Role;
use crate::crypto::initial::initial_keys;
use crate::error::ErrorCode;
use crate::wire::connection_id::ConnectionId;
use crate::wire::frame::{ConnectionClose, Frame, FrameReader};
use crate::wire::grease::QuicBit;
use crate::wire::header::{Incoming, LongHeader, LongKind, next_packet, patch_length};
use crate::wire::packet_number;
use crate::wire::version::Version;
use bytes::BytesMut;
use std::time::Duration;

const TAG: usize = 16;
/// The connection ID that forged packets come from.
pub(super) const SOURCE: [u8; 8] = [0x5; 8];

/// An Initial packet to be.
#[derive(Clone, Debug)]
pub(super) struct Forged {
    pub destination: Vec<u8>,
    pub source: Vec<u8>,
    pub payload: Vec<u8>,
    pub token: Vec<u8>,
    /// Its packet number.
    pub number: u32,
    /// Bytes of the packet at least, with PADDING frames.
    pub size: usize,
}

/// A packet to `destination` with this payload, padded to what a datagram must have (RFC 9000 §14.1).
pub(super) fn initial(destination: &[u8], payload: &[u8]) -> Forged {
    Forged {
        destination: destination.to_vec(),
        source: SOURCE.to_vec(),
        payload: payload.to_vec(),
        token: Vec::new(),
        number: 0,
        size: 1200,
    }
}

/// The packet on the wire; `change` gets the first byte before it is sealed.
pub(super) fn sealed(forged: &Forged, change: impl Fn(u8) -> u8) -> Vec<u8> {
    let destination = ConnectionId::new(&forged.destination).unwrap();
    let header = LongHeader {
        kind: LongKind::Initial,
        version: Version::V1,
        destination,
        source: ConnectionId::new(&forged.source).unwrap(),
        token: &forged.token,
    };
    let mut bytes = Vec::new();
    let layout = header.put(&mut bytes, forged.number.into(), 4);
    bytes.extend(&forged.payload);
    bytes.resize(bytes.len().max(forged.size.saturating_sub(TAG)), 0);
    patch_length(&mut bytes, &layout, 0, TAG);
    bytes[0] = change(bytes[0]);
    let (seal, _) = initial_keys(Version::V1, &destination, Role::Client);
    seal.seal(&mut bytes, 0, &layout, PathId::ZERO, forged.number.into());
    bytes
}

/// The frames of the Initial packet in `datagram`, which the server sent in answer to one to `destination` from a
/// connection ID of `source` bytes.
fn opened(destination: &[u8], source: usize, datagram: &[u8]) -> Vec<Frame> {
    let (_, open) = initial_keys(Version::V1, &ConnectionId::new(destination).unwrap(), Role::Client);
    let next = next_packet(&mut BytesMut::from(datagram), source, QuicBit::Free);
    let Ok(Incoming::Protected(mut packet)) = next else { return Vec::new() };
    let offset = packet.number_offset;
    let Ok(header) = open.unprotect(&mut packet.bytes, offset) else { return Vec::new() };
    let number = packet_number::expand(header.truncated, header.number_length, None);
    let payload = open.open(packet.bytes, offset + header.number_length, PathId::ZERO, number);
    payload.map(|payload| FrameReader::new(payload).map_while(Result::ok).collect()).unwrap_or_default()
}

/// Has the server get `bytes` from a fresh client at link 0, and returns the code that it closes with.
pub(super) fn answer(network: &mut Network, destination: &[u8], bytes: &[u8]) -> Option<ErrorCode> {
    let sent = network.record(0);
    let from = network.links[0].client;
    network.forge(from, bytes);
    network.run_for(Duration::from_millis(1));
    // RFC 9000 §17.2: the length of the source connection ID follows the destination connection ID.
    let source = usize::from(bytes[6 + destination.len()]);
    let sent = sent.borrow();
    let frames: Vec<_> = sent.iter().flat_map(|datagram| opened(destination, source, datagram)).collect();
    frames.into_iter().find_map(|frame| match frame {
        Frame::ConnectionClose(ConnectionClose::Transport { code, .. }) => Some(code),
        _ => None,
    })
}
