//! The known state of a connection in the capture: the secrets of both ends, and the largest packet numbers so far.

use crate::keylog::{KeyLog, Label};
use crate::messages::Messages;
use crate::packet::Problem;
use hvq_transport::PathId;
use hvq_transport::connection::Role;
use hvq_transport::crypto::keys::Level;
use hvq_transport::inspect::{OpenedPacket, PacketReader};
use hvq_transport::wire::connection_id::ConnectionId;
use hvq_transport::wire::frame::Crypto;
use hvq_transport::wire::header::ProtectedPacket;
use hvq_transport::wire::version::Version;
use std::collections::HashMap;

/// Bytes of a ClientHello up to the end of its random number (RFC 8446 §4.1.2): type, length, version, random.
const HELLO: usize = 1 + 3 + 2 + 32;

/// Packet numbers that one byte tells apart.
const WINDOW: u64 = 256;
/// The number of times as many that are looked at before the largest one.
const WINDOWS: u64 = 8;

/// A connection.
#[derive(Debug)]
pub(crate) struct Tracked {
    version: Version,
    /// The connection ID that Initial keys are derived from (RFC 9001 §5.2).
    initial_destination: ConnectionId,
    hello: Hello,
    /// The server's messages in Handshake packets, until its transport parameters are known.
    flight: Option<Messages>,
    client: End,
    server: End,
}

/// One end, as a sender.
#[derive(Debug, Default)]
struct End {
    readers: HashMap<Level, PacketReader>,
    /// The largest number of each packet number space.
    largest: HashMap<(Space, PathId), u64>,
}

/// A packet number space, which 0-RTT and 1-RTT packets share (RFC 9000 §12.3).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Space {
    Initial,
    Handshake,
    Application,
}

/// The start of a ClientHello, whose bytes may come in any order.
#[derive(Clone, Debug)]
struct Hello {
    bytes: [u8; HELLO],
    /// A bit for each byte that is there.
    present: u64,
}

impl Hello {
    fn add(&mut self, crypto: &Crypto) {
        let Ok(offset) = usize::try_from(crypto.offset) else { return };
        for (index, byte) in crypto.data.iter().enumerate() {
            let Some(slot) = offset.checked_add(index).and_then(|at| self.bytes.get_mut(at)) else { return };
            *slot = *byte;
            self.present |= 1 << (offset + index);
        }
    }

    fn random(&self) -> Option<[u8; 32]> {
        let is_whole = self.present == (1 << HELLO) - 1;
        is_whole.then(|| self.bytes.last_chunk::<32>().copied())?
    }
}

impl Tracked {
    /// A connection that begins with a packet of `version` to `destination`.
    pub(crate) fn new(version: Version, destination: ConnectionId) -> Self {
        Self {
            version,
            initial_destination: destination,
            hello: Hello { bytes: [0; HELLO], present: 0 },
            flight: Some(Messages::default()),
            client: End::default(),
            server: End::default(),
        }
    }

    /// The server sent a Retry with the connection ID `source`: Initial keys come from that (RFC 9001 §5.2).
    pub(crate) fn on_retry(&mut self, source: ConnectionId) {
        self.initial_destination = source;
        self.forget_initial_keys();
    }

    fn forget_initial_keys(&mut self) {
        self.client.readers.remove(&Level::Initial);
        self.server.readers.remove(&Level::Initial);
    }

    /// Takes note of what the client said in an Initial packet; whether the secrets can be looked up only now.
    pub(crate) fn on_client_hello(&mut self, crypto: &Crypto) -> bool {
        let before = self.hello.random().is_some();
        self.hello.add(crypto);
        !before && self.hello.random().is_some()
    }

    /// Takes note of what the server said in a Handshake packet; its preferred address's connection ID as soon as that is
    /// known.
    pub(crate) fn on_server_flight(&mut self, crypto: &Crypto) -> Option<ConnectionId> {
        let flight = self.flight.as_mut()?;
        flight.add(crypto);
        let parameters = flight.server_parameters()?;
        self.flight = None;
        Some(parameters.preferred_address?.connection_id)
    }

    /// Opens what `sender` sent at `level` on `path`.
    pub(crate) fn open(
        &mut self,
        packet: &ProtectedPacket,
        sender: Role,
        (level, path): (Level, PathId),
        keys: &KeyLog,
    ) -> Result<OpenedPacket, Problem> {
        if level != Level::OneRtt && packet.version != self.version {
            // RFC 9368 §2.3: the server chose another version for this connection.
            self.version = packet.version;
            self.forget_initial_keys();
        }
        let fresh = match level {
            Level::Initial => Ok(PacketReader::initial(self.version, &self.initial_destination, sender)),
            level => self.reader(level, sender, keys),
        };
        let end = match sender {
            Role::Client => &mut self.client,
            Role::Server => &mut self.server,
        };
        let reader = match end.readers.get_mut(&level) {
            Some(reader) => reader,
            None => end.readers.entry(level).or_insert(fresh?),
        };
        let space = (space(level), path);
        let largest = end.largest.get(&space).copied();
        let opened = nearby(largest).find_map(|largest| reader.open(packet, path, largest).ok());
        let opened = opened.ok_or(Problem::Undecryptable)?;
        end.largest.insert(space, largest.map_or(opened.number, |largest| largest.max(opened.number)));
        Ok(opened)
    }

    fn reader(&self, level: Level, sender: Role, keys: &KeyLog) -> Result<PacketReader, Problem> {
        let random = self.hello.random().ok_or(Problem::UnknownConnection)?;
        let label = match (level, sender) {
            (Level::ZeroRtt, _) => Label::ClientEarly,
            (Level::Initial | Level::Handshake, Role::Client) => Label::ClientHandshake,
            (Level::Initial | Level::Handshake, Role::Server) => Label::ServerHandshake,
            (Level::OneRtt, Role::Client) => Label::ClientTraffic,
            (Level::OneRtt, Role::Server) => Label::ServerTraffic,
        };
        let missing = || if keys.knows(&random) { Problem::NoSecret } else { Problem::NoSecrets };
        let secret = keys.secret(&random, label).ok_or_else(missing)?;
        PacketReader::with_secret(self.version, secret).ok_or(Problem::NoSecret)
    }
}

/// The largest packet number, and what it may have been or be where packets come out of order: a truncated number stands for the one
/// that is closest (RFC 9000 §A.3), and authentication says which guess is right.
fn nearby(largest: Option<u64>) -> impl Iterator<Item = Option<u64>> {
    let others = largest.into_iter().flat_map(|largest| {
        let before = (1..=WINDOWS).map(move |count| largest.saturating_sub(count * WINDOW));
        before.chain([largest.saturating_add(WINDOW)]).filter(move |other| *other != largest)
    });
    std::iter::once(largest).chain(others.map(Some))
}

fn space(level: Level) -> Space {
    match level {
        Level::Initial => Space::Initial,
        Level::Handshake => Space::Handshake,
        Level::ZeroRtt | Level::OneRtt => Space::Application,
    }
}
