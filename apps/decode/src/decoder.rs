//! From datagrams to packets: finds the connection and the path of each, and opens it.

use crate::capture::Datagram;
use crate::connection::Tracked;
use crate::keylog::KeyLog;
use crate::packet::{Contents, Extension, Header, Kind, Packet, Problem};
use bytes::{Bytes, BytesMut};
use hvq_transport::PathId;
use hvq_transport::connection::Role;
use hvq_transport::crypto::keys::Level;
use hvq_transport::error::Dropped;
use hvq_transport::wire::connection_id::ConnectionId;
use hvq_transport::wire::frame::{Crypto, Frame, FrameReader};
use hvq_transport::wire::grease::QuicBit;
use hvq_transport::wire::header::{
    FIXED, Incoming, LONG, MIN_SHORT_PACKET, PacketKind, ProtectedPacket, next_packet,
};
use hvq_transport::wire::varint;
use hvq_transport::wire::version::Version;
use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;

/// Connections that are followed at most; packets of more are of unknown connections.
const MOST_CONNECTIONS: usize = 100_000;
/// Connection IDs that are known at most.
const MOST_IDS: usize = 1_000_000;
/// Packets of one datagram at most.
const MOST_COALESCED: usize = 64;

/// The connection that a connection ID leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Owner {
    connection: usize,
    /// The issuer of the ID: the receiver of packets that carry it.
    receiver: Role,
    path: PathId,
}

/// Follows all connections of a capture.
#[derive(Debug)]
pub struct Decoder {
    keys: KeyLog,
    connections: Vec<Tracked>,
    ids: HashMap<ConnectionId, Owner>,
    /// Lengths of the connection IDs in `ids`: short headers do not say theirs.
    lengths: BTreeSet<usize>,
    /// Receivers without connection IDs, by the source and destination of what they receive.
    tuples: HashMap<(SocketAddr, SocketAddr), Owner>,
    /// The number of times that something was learnt by which a datagram may find its connection.
    learnt: u64,
}

impl Decoder {
    /// A decoder that knows the secrets in `keys`; Initial packets need none.
    pub fn new(keys: KeyLog) -> Self {
        Self {
            keys,
            connections: Vec::new(),
            ids: HashMap::new(),
            lengths: BTreeSet::new(),
            tuples: HashMap::new(),
            learnt: 0,
        }
    }

    /// Returns the number of times that something was learnt by which an earlier datagram may find its connection.
    pub(crate) fn learnt(&self) -> u64 {
        self.learnt
    }

    /// The packets in `datagram`, which is the next of the capture. A datagram that is no QUIC at all gives none.
    pub fn decode(&mut self, datagram: &Datagram) -> Vec<Packet> {
        let mut packets = Vec::new();
        for segment in self.segments(datagram) {
            let mut bytes = BytesMut::from(segment);
            for _ in 0..MOST_COALESCED {
                if bytes.is_empty() {
                    break;
                }
                let before = bytes.len();
                let Some(mut packet) = self.packet(datagram, &mut bytes) else { break };
                packet.bytes = before - bytes.len();
                packets.push(packet);
            }
        }
        packets
    }

    /// Datagrams that the system had not cut from its batch yet when it was captured: all of one size but the last, each
    /// with the same connection ID.
    fn segments<'a>(&self, datagram: &'a Datagram) -> Vec<&'a [u8]> {
        let payload = datagram.payload.as_slice();
        let whole = vec![payload];
        let Some((id, _)) = self.short_owner(datagram, payload).filter(|(id, _)| !id.is_empty()) else {
            return whole;
        };
        let begins = |bytes: &[u8]| {
            bytes.first().is_some_and(|first| first & LONG == 0)
                && bytes.get(1..).is_some_and(|rest| rest.starts_with(id.as_slice()))
        };
        let size = (MIN_SHORT_PACKET..payload.len()).find(|at| payload.get(*at..).is_some_and(begins));
        let Some(size) = size else { return whole };
        let segments: Vec<_> = payload.chunks(size).collect();
        if segments.iter().all(|segment| begins(segment)) { segments } else { whole }
    }

    /// The connection ID that a short header in `bytes` carries, and whom it leads to.
    fn short_owner(&self, datagram: &Datagram, bytes: &[u8]) -> Option<(ConnectionId, Owner)> {
        if bytes.first()? & LONG != 0 {
            return None;
        }
        let rest = bytes.get(1..)?;
        let known = self.lengths.iter().rev().find_map(|length| {
            let id = ConnectionId::new(rest.get(..*length)?)?;
            Some((id, *self.ids.get(&id)?))
        });
        let tuple = || self.tuples.get(&(datagram.source, datagram.destination));
        known.or_else(|| Some((ConnectionId::EMPTY, *tuple()?)))
    }

    /// The first packet of `bytes`; `None` if it is no QUIC.
    fn packet(&mut self, datagram: &Datagram, bytes: &mut BytesMut) -> Option<Packet> {
        let first = *bytes.first()?;
        let mut packet = unread(datagram);
        if first & LONG == 0 {
            packet.kind = Kind::OneRtt;
            let Some((id, owner)) = self.short_owner(datagram, bytes) else {
                // RFC 9287: a packet may lack the QUIC bit, but so does what is not QUIC.
                if first & FIXED == 0 {
                    return None;
                }
                bytes.clear();
                packet.contents.problem = Some(Problem::UnknownConnection);
                return Some(packet);
            };
            packet.header.destination = id;
            match next_packet(bytes, id.len(), QuicBit::Free) {
                Ok(Incoming::Protected(protected)) => self.open(&mut packet, &protected, owner),
                _ => packet.contents.problem = Some(Problem::Malformed),
            }
            return Some(packet);
        }
        match next_packet(bytes, 0, QuicBit::Free) {
            Ok(Incoming::Protected(protected)) => self.long(&mut packet, &protected),
            Ok(Incoming::Retry { version, destination, source, token, .. }) => {
                packet.kind = Kind::Retry;
                packet.header = Header { version: Some(version), destination, source };
                packet.token = token;
                if let Some(owner) = self.owner(&packet, &destination) {
                    assign(&mut packet, owner);
                    self.on_retry(owner, source);
                }
            }
            Ok(Incoming::VersionNegotiation { destination, source, .. }) => {
                packet.kind = Kind::VersionNegotiation;
                packet.header = Header { version: Some(Version::NEGOTIATION), destination, source };
                if let Some(owner) = self.owner(&packet, &destination) {
                    assign(&mut packet, owner);
                }
            }
            Ok(Incoming::UnsupportedVersion { version, .. }) => {
                // Any UDP payload may look like this: only versions that somebody may speak are worth a line.
                let worth = version.is_reserved() || version.0 >> 16 == 0xff00;
                worth.then(|| packet.contents.problem = Some(Problem::UnknownVersion))?;
            }
            Err(Dropped::Malformed) if first & FIXED != 0 => {
                packet.contents.problem = Some(Problem::Malformed);
            }
            Err(_) => return None,
        }
        Some(packet)
    }

    fn owner(&self, packet: &Packet, destination: &ConnectionId) -> Option<Owner> {
        let by_id = (!destination.is_empty()).then(|| self.ids.get(destination)).flatten();
        by_id.or_else(|| self.tuples.get(&(packet.source, packet.destination))).copied()
    }

    fn long(&mut self, packet: &mut Packet, protected: &ProtectedPacket) {
        packet.kind = match protected.kind {
            PacketKind::Initial { .. } => Kind::Initial,
            PacketKind::ZeroRtt => Kind::ZeroRtt,
            PacketKind::Handshake => Kind::Handshake,
            PacketKind::OneRtt => Kind::OneRtt,
        };
        packet.header = Header {
            version: Some(protected.version),
            destination: protected.destination,
            source: protected.source,
        };
        if let PacketKind::Initial { token } = &protected.kind {
            packet.token = token.clone();
        }
        let known = self.owner(packet, &protected.destination);
        let is_initial = packet.kind == Kind::Initial;
        let Some(owner) = known.or_else(|| is_initial.then(|| self.begin(protected)).flatten()) else {
            packet.contents.problem = Some(Problem::UnknownConnection);
            return;
        };
        self.open(packet, protected, owner);
        if packet.number.is_none() && known.is_none() {
            // It was no client's first packet: the connection that it began is none.
            self.connections.pop();
            (packet.connection, packet.sender, packet.path) = (None, None, None);
            packet.contents.problem = Some(Problem::UnknownConnection);
            return;
        }
        let sender = owner.receiver.peer();
        if packet.number.is_some() {
            self.learn(owner.connection, packet, protected, sender);
        }
    }

    /// A connection whose first packet is `protected`, if it is a client's.
    fn begin(&mut self, protected: &ProtectedPacket) -> Option<Owner> {
        if self.connections.len() >= MOST_CONNECTIONS {
            return None;
        }
        self.connections.push(Tracked::new(protected.version, protected.destination));
        let connection = self.connections.len() - 1;
        Some(Owner { connection, receiver: Role::Server, path: PathId::ZERO })
    }

    /// Takes note of both connection IDs of a long header that authenticated.
    fn learn(&mut self, connection: usize, packet: &Packet, protected: &ProtectedPacket, sender: Role) {
        let owner = |receiver| Owner { connection, receiver, path: PathId::ZERO };
        self.register(protected.destination, owner(sender.peer()));
        if protected.source.is_empty() {
            let reverse = (packet.destination, packet.source);
            self.learnt += u64::from(self.tuples.insert(reverse, owner(sender)).is_none());
        } else {
            self.register(protected.source, owner(sender));
        }
    }

    fn on_retry(&mut self, owner: Owner, source: ConnectionId) {
        if let Some(connection) = self.connections.get_mut(owner.connection) {
            connection.on_retry(source);
        }
        // The Retry went to the client; its source names the server.
        self.register(source, Owner { receiver: owner.receiver.peer(), ..owner });
    }

    fn register(&mut self, id: ConnectionId, owner: Owner) {
        if !id.is_empty() && self.ids.len() < MOST_IDS {
            self.learnt += u64::from(self.ids.insert(id, owner).is_none());
            self.lengths.insert(id.len());
        }
    }

    fn open(&mut self, packet: &mut Packet, protected: &ProtectedPacket, owner: Owner) {
        assign(packet, owner);
        let sender = owner.receiver.peer();
        let level = match protected.kind {
            PacketKind::Initial { .. } => Level::Initial,
            PacketKind::ZeroRtt => Level::ZeroRtt,
            PacketKind::Handshake => Level::Handshake,
            PacketKind::OneRtt => Level::OneRtt,
        };
        let Some(connection) = self.connections.get_mut(owner.connection) else { return };
        match connection.open(protected, sender, (level, owner.path), &self.keys) {
            Ok(opened) => {
                packet.number = Some(opened.number);
                packet.key_updates = opened.key_updates;
                packet.contents = self.read(opened.payload, level, owner);
            }
            Err(problem) => packet.contents.problem = Some(problem),
        }
    }

    /// The frames of a packet; what they say about connection IDs is taken note of.
    fn read(&mut self, payload: Bytes, level: Level, to: Owner) -> Contents {
        let mut contents = Contents::default();
        let sender = to.receiver.peer();
        let mut reader = FrameReader::new(payload.clone());
        loop {
            let before = reader.remaining();
            let frame = match reader.next() {
                None => break,
                Some(Ok(frame)) => frame,
                Some(Err(error)) => {
                    let rest = payload.slice(payload.len() - before..);
                    if let Some((extension, length)) = extension(error.frame_type, &rest) {
                        contents.extensions.push(extension);
                        reader = FrameReader::new(rest.slice(length..));
                        continue;
                    }
                    let reason = error.reason.into_owned();
                    contents.problem = Some(Problem::Frame { frame_type: error.frame_type, reason });
                    break;
                }
            };
            match &frame {
                Frame::NewConnectionId(new) => {
                    let path = new.path.unwrap_or(PathId::ZERO);
                    self.register(new.id, Owner { receiver: sender, path, ..to });
                }
                Frame::Crypto(crypto) => self.on_crypto(crypto, level, to),
                _ => {}
            }
            contents.frames.push(frame);
        }
        contents
    }

    fn on_crypto(&mut self, crypto: &Crypto, level: Level, to: Owner) {
        let Some(connection) = self.connections.get_mut(to.connection) else { return };
        match (level, to.receiver) {
            (Level::Initial, Role::Server) => self.learnt += u64::from(connection.on_client_hello(crypto)),
            (Level::Handshake, Role::Client) => {
                // RFC 9000 §9.6: the preferred address comes with a connection ID of its own.
                if let Some(id) = connection.on_server_flight(crypto) {
                    self.register(id, Owner { receiver: Role::Server, path: PathId::ZERO, ..to });
                }
            }
            _ => {}
        }
    }
}

/// The frame of an extension, of type `frame_type`, that `bytes` begins with, and its length.
fn extension(frame_type: u64, bytes: &[u8]) -> Option<(Extension, usize)> {
    if frame_type != Extension::TIME_STAMP {
        return None;
    }
    let (_, first) = varint::get(bytes)?;
    let (time, second) = varint::get(bytes.get(first..)?)?;
    Some((Extension::TimeStamp(time), first + second))
}

/// A packet of `datagram` of which nothing is known yet.
fn unread(datagram: &Datagram) -> Packet {
    Packet {
        at: datagram.at,
        source: datagram.source,
        destination: datagram.destination,
        connection: None,
        sender: None,
        path: None,
        kind: Kind::Unknown,
        header: Header::EMPTY,
        token: Bytes::new(),
        key_updates: 0,
        number: None,
        bytes: 0,
        contents: Contents::default(),
    }
}

fn assign(packet: &mut Packet, owner: Owner) {
    packet.connection = Some(owner.connection);
    packet.sender = Some(owner.receiver.peer());
    packet.path = Some(owner.path);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Duration;

    fn datagram(payload: Vec<u8>) -> Datagram {
        let address = |port| SocketAddr::from(([10, 0, 0, 1], port));
        Datagram { at: Duration::ZERO, source: address(1), destination: address(2), payload }
    }

    #[test]
    fn what_is_no_quic_gives_no_packet() {
        let mut decoder = Decoder::new(KeyLog::default());
        assert!(decoder.decode(&datagram(vec![])).is_empty());
        assert!(decoder.decode(&datagram(b"\x12\x34\x01\x00\x00\x01DNS".to_vec())).is_empty());
    }

    #[test]
    fn a_packet_of_an_unknown_connection_is_said_to_be_one() {
        let mut decoder = Decoder::new(KeyLog::default());
        let packets = decoder.decode(&datagram([&[0x41][..], &[7; 60]].concat()));
        assert_eq!(packets.len(), 1);
        assert_eq!(packets[0].contents.problem, Some(Problem::UnknownConnection));
        assert_eq!((packets[0].kind, packets[0].bytes), (Kind::OneRtt, 61));
    }

    #[test]
    fn an_initial_that_does_not_authenticate_begins_no_connection() {
        let mut decoder = Decoder::new(KeyLog::default());
        let mut forged = vec![0xc3, 0, 0, 0, 1, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0x44, 0x00];
        forged.resize(18 + 0x400, 0x55);
        let packets = decoder.decode(&datagram(forged));
        assert_eq!((packets[0].kind, packets[0].connection), (Kind::Initial, None));
        assert!(decoder.connections.is_empty() && decoder.ids.is_empty());
    }

    #[test]
    fn time_stamps_are_named_and_what_follows_is_read() {
        let mut decoder = Decoder::new(KeyLog::default());
        let payload = [&[0x01, 0x42, 0xf5, 0x44, 0xd2][..], &[0x01]].concat();
        let to = Owner { connection: 0, receiver: Role::Server, path: PathId::ZERO };
        let contents = decoder.read(payload.into(), Level::OneRtt, to);
        assert_eq!(contents.extensions, [Extension::TimeStamp(1234)]);
        assert_eq!((contents.frames.len(), contents.problem), (2, None));
        let cut = decoder.read(Bytes::from_static(&[0x42, 0xf5, 0x44]), Level::OneRtt, to);
        assert!(matches!(cut.problem, Some(Problem::Frame { frame_type: 0x2f5, .. })), "{cut:?}");
    }

    proptest! {
        #[test]
        fn random_datagrams_never_panic(first: u8, mut payload in proptest::collection::vec(any::<u8>(), 0..1500)) {
            if let Some(byte) = payload.first_mut() {
                *byte = first | 0x40;
            }
            let mut decoder = Decoder::new(KeyLog::default());
            for packet in decoder.decode(&datagram(payload)) {
                prop_assert!(packet.contents.problem.is_some() || packet.kind == Kind::Retry || packet.kind == Kind::VersionNegotiation);
            }
        }
    }
}
