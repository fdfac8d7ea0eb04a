//! Reading packets of others: opens recorded packets of one direction, given their secrets. For tools, not for endpoints.
//!
//! Nothing in here is bound to a connection, enforces a limit of the AEAD or judges what the packets say.
#![deny(clippy::indexing_slicing)]

use crate::PathId;
use crate::Role;
use crate::crypto::initial::initial_keys;
use crate::crypto::keys::{Cipher, Secret, Suite};
use crate::crypto::protect::OpenKey;
use crate::error::Dropped;
use crate::wire::connection_id::ConnectionId;
use crate::wire::header::{KeyPhase, PacketKind, ProtectedPacket};
use crate::wire::packet_number;
use crate::wire::version::Version;
use bytes::{Bytes, BytesMut};

/// A packet without its protection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpenedPacket {
    /// Its number.
    pub number: u64,
    /// Its frames, which a [`FrameReader`](crate::wire::frame::FrameReader) takes apart.
    pub payload: Bytes,
    /// The number of key updates before it was sealed; 0 for all packets but 1-RTT.
    pub key_updates: u64,
}

/// Opens what one end sent at one encryption level, and follows its key updates.
#[derive(Debug)]
pub struct PacketReader {
    /// One for each suite that the secret may be of; as soon as one opens a packet, only that.
    candidates: Vec<Keys>,
}

impl PacketReader {
    /// For the Initial packets that `sender` sent, when the first Initial packet of the client (or the first after a
    /// Retry) went to `client_destination` (RFC 9001 §5.2).
    pub fn initial(version: Version, client_destination: &ConnectionId, sender: Role) -> Self {
        let (_, header) = initial_keys(version, client_destination, sender.peer());
        Self { candidates: vec![Keys { header, generations: None }] }
    }

    /// For packets of `version` protected with `secret`, a traffic secret of TLS 1.3. The suite follows from the first packet that
    /// opens. `None` if no suite has secrets of that length, 32 or 48 bytes.
    pub fn with_secret(version: Version, secret: &[u8]) -> Option<Self> {
        let suites = [Suite::Aes128Gcm, Suite::Aes256Gcm, Suite::ChaCha20Poly1305];
        let secret_of =
            |suite: &Suite| (suite.secret_length() == secret.len()).then(|| Secret::new(secret))?;
        let candidates: Vec<_> = suites
            .iter()
            .filter_map(|suite| Some(Keys::new(Cipher { suite: *suite, version }, secret_of(suite)?)))
            .collect();
        (!candidates.is_empty()).then_some(Self { candidates })
    }

    /// Opens `packet` of `path`, in whose packet number space `largest` is the largest number seen before.
    pub fn open(
        &mut self,
        packet: &ProtectedPacket,
        path: PathId,
        largest: Option<u64>,
    ) -> Result<OpenedPacket, Dropped> {
        let mut failure = Dropped::Undecryptable;
        for index in 0..self.candidates.len() {
            let Some(keys) = self.candidates.get_mut(index) else { break };
            match keys.open(packet, path, largest) {
                Ok(opened) => {
                    let keys = self.candidates.swap_remove(index);
                    self.candidates = vec![keys];
                    return Ok(opened);
                }
                Err(dropped) => failure = dropped,
            }
        }
        Err(failure)
    }
}

/// Keys of one suite.
#[derive(Debug)]
struct Keys {
    /// Opens packets of the first generation, and removes header protection from all (RFC 9001 §6).
    header: OpenKey,
    /// The generations that updates need; Initial keys have none.
    generations: Option<Generations>,
}

/// The generation of 1-RTT keys that was used last, and its neighbours.
#[derive(Debug)]
struct Generations {
    cipher: Cipher,
    updates: u64,
    previous: Option<OpenKey>,
    current: OpenKey,
    next: OpenKey,
    next_secret: Secret,
}

impl Keys {
    fn new(cipher: Cipher, secret: Secret) -> Self {
        let next_secret = secret.updated(cipher);
        let generations = Generations {
            cipher,
            updates: 0,
            previous: None,
            current: OpenKey::new(cipher, secret.as_slice()),
            next: OpenKey::new(cipher, next_secret.as_slice()),
            next_secret,
        };
        Self { header: OpenKey::new(cipher, secret.as_slice()), generations: Some(generations) }
    }

    fn open(
        &mut self,
        packet: &ProtectedPacket,
        path: PathId,
        largest: Option<u64>,
    ) -> Result<OpenedPacket, Dropped> {
        let mut bytes = packet.bytes.clone();
        let header = self.header.unprotect(&mut bytes, packet.number_offset)?;
        let number = packet_number::expand(header.truncated, header.number_length, largest);
        let offset = packet.number_offset + header.number_length;
        match &mut self.generations {
            Some(generations) if packet.kind == PacketKind::OneRtt => {
                let sealed = Sealed { bytes, offset, path, number };
                generations.open(&sealed, KeyPhase::of(header.first))
            }
            _ => {
                let payload = self.header.open(bytes, offset, path, number)?;
                Ok(OpenedPacket { number, payload, key_updates: 0 })
            }
        }
    }
}

/// A packet without its header protection.
struct Sealed {
    bytes: BytesMut,
    offset: usize,
    path: PathId,
    number: u64,
}

impl Sealed {
    fn open(&self, key: &OpenKey, key_updates: u64) -> Result<OpenedPacket, Dropped> {
        let payload = key.open(self.bytes.clone(), self.offset, self.path, self.number)?;
        Ok(OpenedPacket { number: self.number, payload, key_updates })
    }
}

impl Generations {
    fn phase(&self) -> KeyPhase {
        if self.updates.is_multiple_of(2) { KeyPhase::Zero } else { KeyPhase::One }
    }

    fn open(&mut self, packet: &Sealed, phase: KeyPhase) -> Result<OpenedPacket, Dropped> {
        if phase == self.phase() {
            return packet.open(&self.current, self.updates);
        }
        if let Some(previous) = &self.previous
            && let Ok(opened) = packet.open(previous, self.updates.saturating_sub(1))
        {
            return Ok(opened);
        }
        let opened = packet.open(&self.next, self.updates + 1)?;
        self.advance();
        Ok(opened)
    }

    fn advance(&mut self) {
        self.next_secret = self.next_secret.updated(self.cipher);
        let next = OpenKey::new(self.cipher, self.next_secret.as_slice());
        let current = std::mem::replace(&mut self.next, next);
        self.previous = Some(std::mem::replace(&mut self.current, current));
        self.updates += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crypto::one_rtt::OneRttKeys;
    use crate::wire::grease::QuicBit;
    use crate::wire::header::{Incoming, ShortHeader, next_packet};

    const ID: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];

    /// Seals a PING with number `number` on path 3 with `keys`.
    fn sealed(keys: &mut OneRttKeys, number: u64) -> ProtectedPacket {
        let destination = ConnectionId::new(&ID).unwrap();
        let header = ShortHeader { destination, key_phase: keys.phase(), spin: false };
        let mut bytes = Vec::new();
        let layout = header.put(&mut bytes, number, 2);
        bytes.extend_from_slice(&[1, 0, 0, 0]);
        keys.seal(&mut bytes, 0, &layout, PathId(3), number);
        match next_packet(&mut BytesMut::from(&bytes[..]), ID.len(), QuicBit::Fixed).unwrap() {
            Incoming::Protected(packet) => packet,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn packets_of_every_suite_open_and_key_updates_are_followed() {
        for (suite, version) in [
            (Suite::Aes128Gcm, Version::V1),
            (Suite::Aes256Gcm, Version::V2),
            (Suite::ChaCha20Poly1305, Version::V1),
        ] {
            let secret = vec![9; suite.secret_length()];
            let mut keys = OneRttKeys::new(Cipher { suite, version }, &secret, &secret);
            let mut reader = PacketReader::with_secret(version, &secret).unwrap();
            let late = sealed(&mut keys, 1);
            for update in 0..4 {
                let packet = sealed(&mut keys, 10 + update);
                let opened = reader.open(&packet, PathId(3), Some(9 + update)).unwrap();
                assert_eq!((opened.number, opened.key_updates), (10 + update, update), "{suite}");
                assert_eq!(opened.payload[..], [1, 0, 0, 0]);
                if update == 1 {
                    // RFC 9001 §6.5: a late packet of the generation before.
                    assert_eq!(reader.open(&late, PathId(3), Some(11)).unwrap().key_updates, 0);
                }
                // RFC 10069 §2.4: the path is part of the nonce.
                assert_eq!(reader.open(&packet, PathId(2), Some(9)), Err(Dropped::Undecryptable));
                keys.on_acknowledged(PathId(3), 10 + update);
                // What it seals it can open too, as if the peer had followed.
                let mut bytes = packet.bytes.clone();
                let header = keys.unprotect(&mut bytes, packet.number_offset).unwrap();
                let offset = packet.number_offset + header.number_length;
                keys.open(bytes, offset, KeyPhase::of(header.first), PathId(3), 10 + update).unwrap();
                keys.discard_previous();
                keys.initiate_update().unwrap();
            }
        }
    }

    #[test]
    fn secrets_of_other_lengths_are_refused() {
        assert!(PacketReader::with_secret(Version::V1, &[1; 31]).is_none());
        assert!(PacketReader::with_secret(Version::V1, &[]).is_none());
    }
}
