//! A capture of what crosses the wires, as a sniffer beside them would write it: pcap with raw IPv4 packets
//! (draft-ietf-opsawg-pcap; RFC 791, RFC 768), without checksums.

use crate::world::{Fate, Net};
use hvq_emulation::Direction;
use hvq_transport::connection::FourTuple;
use hvq_transport::wire::overhead::lower_headers;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// Big endian, version 2.4, packets of at most 256 KiB, LINKTYPE_RAW.
const HEADER: [u8; 24] =
    [0xa1, 0xb2, 0xc3, 0xd4, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 101];

/// A capture of the datagrams that crossed the wires of a [`Net`] so far.
#[derive(Clone, Debug)]
pub struct Capture(Arc<Mutex<Vec<u8>>>);

impl Capture {
    /// Listens at the wires of `net`, which have these addresses in the order of their numbers; it takes the tap.
    pub fn of(net: &mut Net, tuples: Vec<FourTuple>) -> Self {
        let capture = Self(Arc::new(Mutex::new(HEADER.to_vec())));
        let (bytes, mut count) = (capture.0.clone(), 0);
        net.tap = Some(Box::new(move |wire, way, payload| {
            if let Some(&FourTuple { local, remote }) = tuples.get(wire) {
                let ends = if way == Direction::Up { (local, remote) } else { (remote, local) };
                bytes.lock().unwrap_or_else(PoisonError::into_inner).extend(record(count, ends, payload));
                count += 1;
            }
            Fate::Pass
        }));
        capture
    }

    /// The file.
    pub fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A record of second `count` with a UDP datagram.
fn record(count: u32, (source, destination): (SocketAddr, SocketAddr), payload: &[u8]) -> Vec<u8> {
    let length = lower_headers(source.ip()) + payload.len();
    let length = u32::try_from(length).expect("a datagram is short");
    let total = u16::try_from(length).expect("a datagram is short");
    let mut bytes = [1, count, length, length].map(u32::to_be_bytes).concat();
    bytes.extend([&[0x45, 0][..], &total.to_be_bytes(), &[0, 0, 0, 0, 64, 17, 0, 0]].concat());
    for address in [source, destination] {
        let SocketAddr::V4(address) = address else { panic!("wires have addresses of IPv4") };
        bytes.extend(address.ip().octets());
    }
    bytes.extend([source.port(), destination.port(), total - 20, 0].map(u16::to_be_bytes).concat());
    bytes.extend(payload);
    bytes
}
