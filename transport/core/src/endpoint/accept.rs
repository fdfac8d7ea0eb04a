//! Datagrams that find their connection, start one, or are answered without one.

use crate::connection::{Birth, Connection, Datagram, FourTuple, InitialIds, Transmit};
use crate::endpoint::Endpoint;
use crate::endpoint::ids::RandomIds;
use crate::error::Dropped;
use crate::path::local_ids::IdSource;
use crate::path::route::MINIMUM_DATAGRAM;
use crate::recovery::ecn::Ecn;
use crate::time::Instant;
use crate::wire::header::{Incoming, PacketKind, destination_of, next_packet, put_version_negotiation};
use crate::wire::version::Version;
use rand::rngs::StdRng;
use rand::{RngCore, SeedableRng};

/// The shortest destination connection ID of a client's first Initial (RFC 9000 §7.2).
const LEAST_INITIAL_ID: usize = 8;

impl Endpoint {
    /// Hands a datagram to its connection, or starts one.
    pub(super) fn route(&mut self, datagram: Datagram, now: Instant) -> Result<(), Dropped> {
        let first = *datagram.bytes.first().ok_or(Dropped::Malformed)?;
        let known =
            destination_of(&datagram.bytes, self.config.id_length).and_then(|id| self.router.find(&id));
        if let Some(handle) = known {
            let connection = self.connections.get_mut(&handle).ok_or(Dropped::UnknownConnection)?;
            connection.receive(datagram, now);
            self.schedule.touch(handle);
            return Ok(());
        }
        if first & 0x80 == 0 {
            return self.look_for_reset(&datagram, now);
        }
        self.without_connection(datagram, now)
    }

    fn look_for_reset(&mut self, datagram: &Datagram, now: Instant) -> Result<(), Dropped> {
        for handle in self.router.at_remote(&datagram.remote) {
            let Some(connection) = self.connections.get_mut(&handle) else { continue };
            if connection.on_possible_reset(&datagram.bytes, now) {
                self.schedule.touch(handle);
                return Ok(());
            }
        }
        Err(Dropped::UnknownConnection)
    }

    fn without_connection(&mut self, datagram: Datagram, now: Instant) -> Result<(), Dropped> {
        if self.server.is_none() {
            return Err(Dropped::UnknownConnection);
        }
        let size = datagram.bytes.len();
        let mut copy = datagram.bytes.clone();
        match next_packet(&mut copy, self.config.id_length)? {
            Incoming::Protected(packet) => {
                if !matches!(packet.kind, PacketKind::Initial { .. }) {
                    return Err(Dropped::UnknownConnection);
                }
                // RFC 9000 §14.1: an Initial in a smaller datagram is not a client's.
                if size < MINIMUM_DATAGRAM {
                    return Err(Dropped::SmallInitial);
                }
                if packet.destination.len() < LEAST_INITIAL_ID {
                    return Err(Dropped::Malformed);
                }
                let ids = InitialIds { destination: packet.destination, source: packet.source };
                self.accept(datagram, ids, now)
            }
            Incoming::UnsupportedVersion { version, destination, source } => {
                if size < MINIMUM_DATAGRAM || version == Version(0) {
                    return Err(Dropped::UnsupportedVersion);
                }
                self.negotiate_version(&datagram, &destination, &source);
                Err(Dropped::UnsupportedVersion)
            }
            Incoming::Retry { .. } | Incoming::VersionNegotiation { .. } => Err(Dropped::Unexpected),
        }
    }

    fn accept(&mut self, datagram: Datagram, ids: InitialIds, now: Instant) -> Result<(), Dropped> {
        let full = self.connections.len() >= self.config.max_connections
            || self.handshaking >= self.config.max_handshaking;
        if full {
            return Err(Dropped::Limit);
        }
        let server = self.server.clone().ok_or(Dropped::UnknownConnection)?;
        let tuple = FourTuple { local: datagram.local, remote: datagram.remote };
        let birth = self.birth(tuple, now);
        let mut connection =
            Connection::server(&server.tls, server.transport, birth, ids).map_err(|_| Dropped::Unexpected)?;
        connection.receive(datagram, now);
        if !connection.has_authenticated() {
            // Nothing in the datagram could be opened: no state for it (a forged or damaged Initial).
            return Err(Dropped::Undecryptable);
        }
        let handle = self.insert(connection);
        self.router.start_handshake(handle, &mut self.handshaking);
        Ok(())
    }

    /// What a new connection gets from its endpoint.
    pub(super) fn birth(&mut self, tuple: FourTuple, now: Instant) -> Birth {
        let mut ids = RandomIds {
            rng: StdRng::from_rng(&mut self.rng),
            key: self.reset_key.clone(),
            length: self.config.id_length,
        };
        let (first_id, first_token) = ids.issue();
        Birth { tuple, now, first_id, first_token, ids: Box::new(ids), rng: StdRng::from_rng(&mut self.rng) }
    }

    fn negotiate_version(&mut self, datagram: &Datagram, destination: &[u8], source: &[u8]) {
        let random = self.rng.next_u32();
        let mut bytes = Vec::new();
        // RFC 9000 §6.3: one reserved version exercises the peer's negotiation.
        let reserved = Version(random & 0xf0f0_f0f0 | 0x0a0a_0a0a);
        let versions = [Version::V1, reserved];
        put_version_negotiation(&mut bytes, source, destination, &versions, random.to_be_bytes()[0]);
        self.stats.version_negotiations += 1;
        self.outbox.push_back(Transmit {
            local: datagram.local,
            remote: datagram.remote,
            ecn: Ecn::NotEct,
            bytes,
            segment: None,
        });
    }
}
