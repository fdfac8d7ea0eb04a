//! The datagram size of a route: fixed, or found by probing (DPLPMTUD: RFC 8899, RFC 9000 §14.3).
//!
//! A route starts at 1200 bytes, which every path must carry. Once it has sent a few full datagrams, or at once where the
//! application has larger DATAGRAM frames to send, what Ethernet carries is tried, then the largest size worth having, then
//! what the application asked for, then the middle of what is left, each up to three times. A probe is a datagram of PING and
//! PADDING; its loss says nothing about congestion (RFC 9000 §14.4). Routers' messages about sizes are not believed.

use crate::datagram::Asked;
use crate::path::route::MINIMUM_DATAGRAM;
use crate::recovery::sent_packet::SentPacket;
use crate::time::Instant;
use crate::wire::overhead::{ETHERNET_PAYLOAD as ETHERNET, LARGEST_PAYLOAD as LARGEST};
use std::time::Duration;

/// Full datagrams after which a larger size is worth a probe: short exchanges would not gain by it.
const WORTHWHILE: u32 = 8;
/// Probes of one size that may be lost before the size counts as too large (RFC 8899 §5.1.2, MAX_PROBES).
const MOST_PROBES: u32 = 3;
/// The search ends when no more than this is left to gain, in bytes.
const PRECISION: usize = 16;
/// A search that ended is repeated after this time (RFC 8899 §5.1.1, PMTU_RAISE_TIMER).
const RAISE_AFTER: Duration = Duration::from_secs(600);
/// After this many loss events in a row in which large datagrams vanished while small ones arrived, the path has changed.
const BLACK_HOLE: u32 = 2;
/// Networks carry no larger frames than this, as jumbo frames of Ethernet go; a machine's own loopback does.
pub const JUMBO: usize = 9_216;

/// The size of datagrams, in bytes of UDP payload.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DatagramSizing {
    /// All of this size, at least 1200. The network must carry it on all paths.
    Fixed(usize),
    /// Each route finds out what it carries, from 1200 up to `most`.
    Discover {
        /// The largest size that is tried.
        most: usize,
    },
}

impl Default for DatagramSizing {
    /// Up to 1452, what Ethernet carries over IPv6.
    fn default() -> Self {
        Self::Discover { most: ETHERNET }
    }
}

impl From<usize> for DatagramSizing {
    /// A fixed size.
    fn from(size: usize) -> Self {
        Self::Fixed(size)
    }
}

impl DatagramSizing {
    /// The largest size of a UDP datagram: a machine's own loopback carries it, and networks with larger frames than
    /// Ethernet's carry more than the default. The limit of the interface is found without a word on the network,
    /// and nothing larger than jumbo frames is tried where a round trip takes more than three milliseconds: no such
    /// path carries it, and a probe that is lost would fill the window for long.
    pub const WHATEVER_IS_CARRIED: Self = Self::Discover { most: LARGEST };

    /// The size before anything is known of a route.
    pub fn first(self) -> usize {
        match self {
            Self::Fixed(size) => size.max(MINIMUM_DATAGRAM),
            Self::Discover { .. } => MINIMUM_DATAGRAM,
        }
    }
}

/// A probe under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Probe {
    number: u64,
    size: usize,
    overdue_at: Instant,
}

/// The search for the datagram size of one route.
#[derive(Clone, Copy, Debug)]
pub struct Discovery {
    /// True if there is nothing to find.
    fixed: bool,
    /// The size that the route is known to carry.
    size: usize,
    /// The largest size to try.
    most: usize,
    /// The smallest size that is taken to be too large.
    too_large: usize,
    probe: Option<Probe>,
    /// Probes of the present size that were lost.
    lost_probes: u32,
    /// Full datagrams sent, until there are enough.
    full: u32,
    /// The time at which a search that ended is repeated.
    repeat_at: Option<Instant>,
    /// The number of the last large packet that arrived.
    large_arrived: Option<u64>,
    /// Loss events since then in which large packets vanished.
    vanished: u32,
    /// The smallest size that the system refused to send, until one as large arrived.
    refused: Option<usize>,
}

impl Discovery {
    /// A route of which nothing is known.
    pub fn new(sizing: DatagramSizing) -> Self {
        let size = sizing.first();
        let most = match sizing {
            DatagramSizing::Fixed(_) => size,
            DatagramSizing::Discover { most } => most.max(MINIMUM_DATAGRAM),
        };
        Self {
            fixed: matches!(sizing, DatagramSizing::Fixed(_)),
            size,
            most,
            too_large: most.saturating_add(1),
            probe: None,
            lost_probes: 0,
            full: 0,
            repeat_at: None,
            large_arrived: None,
            vanished: 0,
            refused: None,
        }
    }

    /// The size of datagrams to send.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The peer accepts no larger ones than `limit` (RFC 9000 §18.2, max_udp_payload_size).
    pub fn limit(&mut self, limit: usize) {
        self.most = self.most.min(limit.max(MINIMUM_DATAGRAM));
        self.size = self.size.min(self.most);
        self.too_large = self.too_large.min(self.most + 1);
    }

    /// Returns the size of the probe to send at `now`, if one is due. `asked` are the sizes of packets that the
    /// application has use for: no traffic of the present size need show that larger ones are worth a probe.
    pub fn wanted(&mut self, now: Instant, asked: Option<Asked>) -> Option<usize> {
        let worthwhile = self.full >= WORTHWHILE || asked.is_some_and(|asked| asked.most > self.size);
        if self.probe.is_some() || !worthwhile {
            return None;
        }
        if self.repeat_at.is_some_and(|at| at <= now) {
            self.repeat_at = None;
            self.too_large = self.most + 1;
        }
        let next = self.next_size(asked);
        if next.is_none() && self.repeat_at.is_none() && self.size < self.most {
            self.repeat_at = Some(now + RAISE_AFTER);
        }
        next
    }

    /// Returns true if [`Self::wanted`] may want a probe at `now`, or has to take note that the search has ended.
    pub fn is_wanting(&self, now: Instant, asked: impl FnOnce() -> Option<Asked>) -> bool {
        if self.fixed || self.probe.is_some() || self.size >= self.most {
            return false;
        }
        let asked = asked();
        let worthwhile = self.full >= WORTHWHILE || asked.is_some_and(|asked| asked.most > self.size);
        worthwhile && (self.repeat_at.is_none_or(|at| at <= now) || self.next_size(asked).is_some())
    }

    /// Returns the largest size that the search may still come to, if the application has use for the sizes
    /// `asked`: the present size when it has ended.
    pub fn reach(&self, asked: Option<Asked>) -> usize {
        let open = !self.fixed && (self.probe.is_some() || self.next_size(asked).is_some());
        if open { self.too_large - 1 } else { self.size }
    }

    /// Packet `number` is the probe that was wanted, of `size` bytes. It is lost if nothing is known of it at `overdue_at`
    /// (RFC 8899 §5.1.1, PROBE_TIMER): no probe timeout watches over it, and nothing need follow it.
    pub fn on_probe_sent(&mut self, number: u64, size: usize, overdue_at: Instant) {
        self.probe = Some(Probe { number, size, overdue_at });
    }

    /// Returns the time at which the probe under way counts as lost.
    pub fn overdue_at(&self) -> Option<Instant> {
        self.probe.map(|probe| probe.overdue_at)
    }

    /// A packet that is no probe was sent.
    pub fn on_sent(&mut self, bytes: usize) {
        if self.full < WORTHWHILE && bytes >= self.size {
            self.full += 1;
        }
    }

    /// A packet arrived; true if datagrams have another size from now on.
    pub fn on_acknowledged(&mut self, packet: &SentPacket) -> bool {
        if self.refused.is_some_and(|refused| packet.bytes >= refused) {
            self.refused = None;
        }
        if let Some(probe) = self.probe.filter(|probe| probe.number == packet.number) {
            self.probe = None;
            self.lost_probes = 0;
            let grows = probe.size > self.size && probe.size <= self.most;
            if grows {
                self.size = probe.size;
            }
            self.large_arrived = self.large_arrived.max(Some(packet.number));
            self.vanished = 0;
            return grows;
        }
        if packet.bytes > MINIMUM_DATAGRAM {
            self.large_arrived = self.large_arrived.max(Some(packet.number));
            self.vanished = 0;
        }
        false
    }

    /// Takes the probe out of `lost`, newly declared lost: it is no sign of congestion (RFC 9000 §14.4).
    pub fn take_lost_probe(&mut self, lost: &mut Vec<SentPacket>) {
        let Some(probe) = self.probe else { return };
        let Some(index) = lost.iter().position(|packet| packet.number == probe.number) else { return };
        lost.remove(index);
        self.give_up(probe);
    }

    /// Gives up the probe under way if it is overdue at `now`, and returns its number.
    pub fn take_overdue(&mut self, now: Instant) -> Option<u64> {
        let probe = self.probe.filter(|probe| probe.overdue_at <= now)?;
        self.give_up(probe);
        Some(probe.number)
    }

    fn give_up(&mut self, probe: Probe) {
        self.probe = None;
        self.lost_probes += 1;
        if self.lost_probes >= MOST_PROBES {
            self.lost_probes = 0;
            self.too_large = self.too_large.min(probe.size);
        }
    }

    /// The system refuses to send datagrams of `size` bytes (EMSGSIZE) at `now`, as they exceed what the interface takes;
    /// true if datagrams have another size from now on. A fixed size stays, as it was asked for.
    pub fn on_refused(&mut self, size: usize, now: Instant) -> bool {
        if self.fixed || size <= MINIMUM_DATAGRAM || size > self.most {
            return false;
        }
        self.refused = Some(self.refused.map_or(size, |refused| refused.min(size)));
        self.too_large = self.too_large.min(size);
        if let Some(probe) = self.probe.as_mut().filter(|probe| probe.size >= size) {
            // It need not be waited for, nor repeated.
            (probe.overdue_at, self.lost_probes) = (now, MOST_PROBES - 1);
        }
        if self.size < size {
            return false;
        }
        (self.size, self.repeat_at) = (MINIMUM_DATAGRAM, Some(now + RAISE_AFTER));
        true
    }

    /// Takes those out of `lost`, newly declared lost, that the system may have refused: no network lost them.
    pub fn take_refused(&mut self, lost: &mut Vec<SentPacket>) -> Vec<SentPacket> {
        let Some(refused) = self.refused else { return Vec::new() };
        let arrived = self.large_arrived;
        let never_left =
            |packet: &mut SentPacket| packet.bytes >= refused && arrived.is_none_or(|it| packet.number > it);
        lost.extract_if(.., never_left).collect()
    }

    /// Packets were lost at `now`; true if datagrams have another size from now on, because large ones vanish while small
    /// ones arrive (RFC 8899 §4.3, black hole detection).
    pub fn on_lost(&mut self, lost: &[SentPacket], now: Instant) -> bool {
        if self.fixed {
            return false;
        }
        // What is older than a large packet that arrived was lost for another reason.
        let vanished = |packet: &&SentPacket| {
            packet.bytes > MINIMUM_DATAGRAM
                && self.large_arrived.is_none_or(|arrived| packet.number > arrived)
        };
        let Some(smallest) = lost.iter().filter(vanished).map(|packet| packet.bytes).min() else {
            return false;
        };
        self.vanished += 1;
        if self.vanished < BLACK_HOLE || self.size == MINIMUM_DATAGRAM {
            return false;
        }
        self.vanished = 0;
        self.size = MINIMUM_DATAGRAM;
        self.too_large = self.too_large.min(smallest);
        self.lost_probes = 0;
        self.probe = None;
        self.repeat_at = Some(now + RAISE_AFTER);
        true
    }

    /// Returns what Ethernet carries first, for it is the most likely, then the largest; then what was asked for, which need
    /// not be approached; then the middle of what is left.
    fn next_size(&self, asked: Option<Asked>) -> Option<usize> {
        if self.size >= self.most {
            None
        } else if self.size < ETHERNET && self.too_large > ETHERNET {
            Some(ETHERNET.min(self.most))
        } else if self.too_large > self.most {
            Some(self.most)
        } else if let Some(asked) =
            asked.filter(|asked| (self.size + 1..self.too_large).contains(&asked.latest))
        {
            Some(asked.latest)
        } else {
            let gained = self.too_large - self.size > PRECISION;
            gained.then(|| self.size.midpoint(self.too_large))
        }
    }
}

#[cfg(test)]
mod tests;
