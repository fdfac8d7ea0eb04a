//! The packet-number spaces of Initial and Handshake packets.

use crate::crypto::protect::{OpenKey, SealKey};
use crate::handshake::crypto_stream::CryptoStream;
use crate::recovery::sent_packet::{PacketClass, SentPacket};
use crate::space::received::{AckPolicy, Received};
use crate::space::sent::Sent;
use crate::time::Instant;
use crate::wire::level::Level;
use crate::wire::version::Version;

/// Keys of one level, both ways.
#[derive(Debug)]
pub struct LevelKeys {
    /// Protects what is sent.
    pub seal: SealKey,
    /// Opens what arrives.
    pub open: OpenKey,
}

/// The packet-number space of Initial or Handshake packets (RFC 9000 §12.3). Both belong to path 0.
#[derive(Debug)]
pub struct HandshakeSpace {
    /// The packets that were sent.
    pub sent: Sent,
    /// The packets that arrived.
    pub received: Received,
    /// CRYPTO data.
    pub crypto: CryptoStream,
    /// Keys, once there are any.
    keys: Option<LevelKeys>,
    /// A server's key for Initial packets of the version that the client began with, once it chose another.
    former: Option<(Version, OpenKey)>,
    /// The time at which the last ack-eliciting packet left.
    last_eliciting: Option<Instant>,
    /// Probes that may leave regardless of the congestion window.
    probes_due: u8,
}

/// CRYPTO data of one packet of a probe at least.
const PROBE_SHARE: usize = 1000;
/// Packets of each space that one probe timeout sends at most, whatever the window: what an initial window lets go. With
/// fewer a flight of which several packets were lost would take a doubled timeout for each.
const MOST_PROBES: usize = 10;

impl HandshakeSpace {
    /// An empty space for `level`.
    pub fn new(level: Level) -> Self {
        Self {
            sent: Sent::default(),
            //= https://www.rfc-editor.org/rfc/rfc9000#section-13.2.1
            //# An endpoint MUST acknowledge all ack-eliciting Initial and Handshake packets immediately and
            //# all ack-eliciting 0-RTT and 1-RTT packets within its advertised max_ack_delay, with the
            //# following exception
            //= https://www.rfc-editor.org/rfc/rfc9000#section-13.2.6
            //= type=implication
            //= reason=Each packet number space has a record of its own of what it received, and only packets
            //= reason=of that space report it.
            //# ACK frames MUST only be carried in a packet that has the same packet number space as the
            //# packet being acknowledged; see Section 12.1
            received: Received::new(AckPolicy::IMMEDIATE),
            crypto: CryptoStream::new(level),
            keys: None,
            former: None,
            last_eliciting: None,
            probes_due: 0,
        }
    }

    /// Protects packets with `keys` from here on.
    pub fn install(&mut self, keys: LevelKeys) {
        self.keys = Some(keys);
    }

    /// A server chose another version than `former`, which its Initial packets had: they have `keys` from here on, and the
    /// client's are read with the former ones, too, until it follows (RFC 9369 §4.1).
    pub fn change_version(&mut self, former: Version, keys: LevelKeys) {
        self.former = self.keys.replace(keys).map(|keys| (former, keys.open));
    }

    /// Returns true if there are keys.
    pub fn has_keys(&self) -> bool {
        self.keys.is_some()
    }

    /// The key that protects what is sent, once there is one.
    pub fn sealer(&self) -> Option<&SealKey> {
        self.keys.as_ref().map(|keys| &keys.seal)
    }

    /// The key for packets of `version`, when the connection's is `current`.
    pub fn opener(&self, version: Version, current: Version) -> Option<&OpenKey> {
        if version == current {
            return self.keys.as_ref().map(|keys| &keys.open);
        }
        self.former.as_ref().filter(|(former, _)| *former == version).map(|(_, open)| open)
    }

    /// Has all that was not acknowledged sent again, whatever the congestion window: a probe timeout fired, or would have
    /// become long by now (RFC 9002 §6.2.3).
    pub fn repeat(&mut self) {
        self.crypto.repeat();
        let packets = self.crypto.pending_bytes().div_ceil(PROBE_SHARE).min(MOST_PROBES);
        self.probes_due = self.probes_due.max(packets as u8);
    }

    /// Has all that was not acknowledged sent again, as [`Self::repeat`] does, with two probes at least (RFC 9002
    /// §6.2.4): timeouts grow fast here, and all else waits for them. The next is counted from `now`.
    pub fn probe(&mut self, now: Instant) {
        self.repeat();
        self.probes_due = self.probes_due.max(2);
        self.last_eliciting = Some(now);
    }

    /// Returns true if a probe may leave regardless of the congestion window.
    pub fn is_probed(&self) -> bool {
        self.probes_due > 0
    }

    /// Begins a packet: takes a probe that is due, if there is one. Returns true if so; then the packet has to elicit an
    /// acknowledgement, and says once more what was said before if there is nothing else to say.
    pub fn take_probe(&mut self) -> bool {
        if self.probes_due == 0 {
            return false;
        }
        if !self.crypto.has_pending() {
            // All that is to be said fitted into the first probe: the second one says it again.
            self.crypto.repeat();
        }
        self.probes_due -= 1;
        true
    }

    /// `packet` left.
    pub fn on_sent(&mut self, packet: SentPacket) {
        // A client's first Handshake packet may be a bare acknowledgement. Its probe timeout runs all the same, or a server
        // that is not allowed to send waits for ever (RFC 9002 §6.2.2.1).
        if packet.class == PacketClass::AckEliciting || self.last_eliciting.is_none() {
            self.last_eliciting = Some(packet.sent_at);
        }
        self.sent.on_sent(packet);
    }

    /// The time at which the last ack-eliciting packet left, or the last probe timeout fired.
    pub fn last_eliciting(&self) -> Option<Instant> {
        self.last_eliciting
    }

    /// The peer acknowledged something: no probes are due.
    pub fn on_acknowledged(&mut self) {
        self.probes_due = 0;
    }

    /// Returns true if there is something to send, given keys.
    pub fn wants_to_send(&self, now: Instant) -> bool {
        self.keys.is_some()
            && (self.crypto.has_pending() || self.probes_due > 0 || self.received.ack_due(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Role;
    use crate::crypto::initial::initial_keys;
    use crate::recovery::ecn::Ecn;
    use crate::space::received::AckEliciting;
    use crate::wire::connection_id::ConnectionId;
    use std::time::Duration;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn keys(version: Version) -> LevelKeys {
        let (seal, open) = initial_keys(version, &ConnectionId::new(&[7; 8]).unwrap(), Role::Server);
        LevelKeys { seal, open }
    }

    #[test]
    fn a_server_that_changed_the_version_reads_the_former_one_and_no_third() {
        // RFC 9369 §4.1.
        let mut it = HandshakeSpace::new(Level::Initial);
        it.install(keys(Version::V1));
        it.change_version(Version::V1, keys(Version::V2));
        assert!(it.opener(Version::V2, Version::V2).is_some());
        assert!(it.opener(Version::V1, Version::V2).is_some());
        assert!(it.opener(Version(0x1a2a_3a4a), Version::V2).is_none());
    }

    #[test]
    fn there_is_something_to_send_for_data_probes_and_acknowledgements_once_there_are_keys() {
        let space = || {
            let mut it = HandshakeSpace::new(Level::Handshake);
            it.install(keys(Version::V1));
            assert!(!it.wants_to_send(at(0)));
            it
        };
        let mut with_data = space();
        with_data.crypto.write(b"data");
        let mut with_probes = space();
        with_probes.probe(at(0));
        let mut with_packet = space();
        with_packet.received.on_packet(0, AckEliciting::Yes, Ecn::NotEct, at(0)).expect("it is new");
        for it in [&with_data, &with_probes, &with_packet] {
            assert!(it.wants_to_send(at(0)));
        }
        with_probes.on_acknowledged();
        assert!(!with_probes.wants_to_send(at(0)) && !with_probes.take_probe());
        let mut without_keys = HandshakeSpace::new(Level::Handshake);
        without_keys.crypto.write(b"data");
        without_keys.probe(at(0));
        assert!(!without_keys.wants_to_send(at(0)));
    }

    #[test]
    fn probe_timeouts_count_from_the_last_packet_that_elicits_and_from_the_very_first() {
        // RFC 9002 §6.2.2.1.
        let mut it = HandshakeSpace::new(Level::Handshake);
        for (number, class, last) in
            [(0, PacketClass::AckOnly, 0), (1, PacketClass::AckEliciting, 10), (2, PacketClass::AckOnly, 10)]
        {
            it.on_sent(SentPacket::new(number, at(10 * number), 50, class));
            assert_eq!(it.last_eliciting(), Some(at(last)), "packet {number}");
        }
    }
}
