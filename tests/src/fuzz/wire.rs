//! Packets, frames and transport parameters.

use bytes::{Bytes, BytesMut};
use hvq_transport::connection::Role;
use hvq_transport::crypto::keys::Level;
use hvq_transport::wire::grease::QuicBit;
use hvq_transport::wire::header::{destination_of, next_packet};
use hvq_transport::wire::version_information::VersionInformation;
use hvq_transport::wire::{Frame, FrameReader, TransportParameters, client_hello};

/// The first byte says how long connection IDs are, the rest is a datagram.
pub(crate) fn packets(bytes: &[u8]) {
    let Some((&first, datagram)) = bytes.split_first() else { return };
    let id_length = usize::from(first % 21);
    let quic_bit = if first & 0x80 == 0 { QuicBit::Fixed } else { QuicBit::Free };
    let mut left = BytesMut::from(datagram);
    while !left.is_empty() {
        let before = left.len();
        let _ = destination_of(&left, id_length);
        if next_packet(&mut left, id_length, quic_bit).is_ok() {
            assert!(left.len() < before, "a packet of no bytes");
        } else {
            assert!(left.is_empty(), "a malformed packet left {} bytes", left.len());
        }
    }
}

/// The first byte says in what kind of packet, the rest is its payload.
pub(crate) fn frames(bytes: &[u8]) {
    const LEVELS: [Level; 4] = [Level::Initial, Level::ZeroRtt, Level::Handshake, Level::OneRtt];
    let Some((&first, payload)) = bytes.split_first() else { return };
    let level = LEVELS[usize::from(first) % LEVELS.len()];
    let mut reader = FrameReader::new(Bytes::copy_from_slice(payload));
    let mut before = reader.remaining();
    while let Some(read) = reader.next() {
        let Ok(frame) = read else {
            assert!(reader.next().is_none(), "frames after an error");
            return;
        };
        assert!(reader.remaining() < before, "a frame of no bytes");
        before = reader.remaining();
        let _ = (frame.permitted_in(level), frame.is_ack_eliciting(), frame.is_probing(), frame.kind());
        again(&frame);
    }
}

/// Checks that a frame that was read is written in as many bytes as it says, and read as the same.
fn again(frame: &Frame) {
    let mut written = Vec::new();
    frame.put(&mut written);
    assert_eq!(written.len(), frame.encoded_size(), "{frame:?}");
    let mut reader = FrameReader::new(written.into());
    let read = reader.next().expect("a frame was written").expect("what was written can be read");
    assert_eq!(&read, frame);
    assert!(reader.next().is_none(), "one frame became several");
}

/// The first byte says whose parameters they are, or what else it is.
pub(crate) fn parameters(bytes: &[u8]) {
    let Some((&first, rest)) = bytes.split_first() else { return };
    let sender = match first % 4 {
        0 => Role::Client,
        1 => Role::Server,
        2 => {
            if let Ok(information) = VersionInformation::read(rest) {
                let mut written = Vec::new();
                information.put(&mut written);
                assert_eq!(VersionInformation::read(&written).as_ref(), Ok(&information));
            }
            return;
        }
        _ => {
            let _ = client_hello::extent(rest);
            if let Some(inside) = client_hello::transport_parameters(rest) {
                let _ = TransportParameters::decode(Role::Client, inside);
            }
            return;
        }
    };
    if let Ok(parameters) = TransportParameters::decode(sender, rest) {
        let remembered = parameters.remembered();
        let stored = remembered.encode_remembered();
        let read = TransportParameters::decode(Role::Server, &stored).expect("what was stored can be read");
        assert!(!read.lowers(&remembered), "{remembered:?} was stored as {read:?}");
    }
}
