//! The urgency of an IP packet, by its headers and flow: nobody has to mark anything.

use hvq::Priority;
use hvq_emulation::steer::Flow;
use hvq_emulation::tun::packet::{Header, Transport};
use std::collections::HashMap;
use std::time::Duration;

/// The priority of packets that somebody waits for, each of which is a whole message: opening and closing of
/// connections, acknowledgements, name lookups, echo requests.
const CONTROL: Priority = Priority { urgency: 1, incremental: false };
/// The first bytes of an exchange: handshakes, requests, short answers.
pub(crate) const SHORT: Priority = Priority { urgency: 2, incremental: false };
/// A transfer that has gone on for long.
const BULK: Priority = Priority { urgency: 4, incremental: true };

/// The bytes of a flow up to which it counts as a short exchange: about as many as are sent before a first
/// acknowledgement (RFC 6928).
const SHORT_BYTES: usize = 16_384;
/// The bytes from which on a flow counts as a bulk transfer.
const BULK_BYTES: usize = 1 << 20;
/// A flow that was silent for so long begins another exchange.
const PAUSE: Duration = Duration::from_millis(500);

/// Judges the packets of one direction.
#[derive(Clone, Debug, Default)]
pub struct Importance {
    exchanges: HashMap<Flow, Exchange>,
}

/// The bytes that were sent since the last pause of a flow.
#[derive(Clone, Copy, Debug, Default)]
struct Exchange {
    bytes: usize,
    last: Duration,
}

impl Importance {
    /// Returns the priority of a packet of `size` bytes that `flow` sends at `now`.
    pub fn of(&mut self, header: Option<&Header>, flow: Flow, size: usize, now: Duration) -> Priority {
        let Some(header) = header else { return Priority::DEFAULT };
        let exchange = self.exchanges.entry(flow).or_default();
        exchange.add(size, now);
        let small = match header.transport {
            Transport::Tcp { flags, .. } => flags.opens() || flags.ends() || header.payload == 0,
            Transport::Icmp => header.payload < 200,
            _ => header.is_name_lookup(),
        };
        if small { CONTROL } else { exchange.priority() }
    }

    /// The number of flows that are remembered.
    #[cfg(test)]
    pub(crate) fn flows(&self) -> usize {
        self.exchanges.len()
    }
}

impl Exchange {
    /// Counts `size` bytes more, of the next exchange if there was a pause before `now`.
    fn add(&mut self, size: usize, now: Duration) {
        if now.saturating_sub(self.last) > PAUSE {
            self.bytes = 0;
        }
        self.last = now;
        self.bytes = self.bytes.saturating_add(size);
    }

    /// The priority of its latest bytes.
    const fn priority(self) -> Priority {
        match self.bytes {
            0..=SHORT_BYTES => SHORT,
            BULK_BYTES.. => BULK,
            _ => Priority::DEFAULT,
        }
    }
}

/// Judges the bytes of one direction of a stream, which begins as a short exchange.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamImportance {
    exchange: Exchange,
    priority: Priority,
}

impl Default for StreamImportance {
    fn default() -> Self {
        Self { exchange: Exchange::default(), priority: SHORT }
    }
}

impl StreamImportance {
    /// Counts `size` bytes that move at `now`; returns the priority of the stream if it is another from here on.
    pub(crate) fn moved(&mut self, size: usize, now: Duration) -> Option<Priority> {
        self.exchange.add(size, now);
        let before = std::mem::replace(&mut self.priority, self.exchange.priority());
        (before != self.priority).then_some(self.priority)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    fn header(transport: Transport, payload: usize) -> Header {
        let address = IpAddr::from([10, 0, 0, 1]);
        Header { source: address, destination: address, transport, payload }
    }

    fn segment(flags: u8, payload: usize) -> Header {
        let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        packet.extend([0x04, 0xd2, 0, 80, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, flags, 0, 0, 0, 0, 0, 0]);
        packet.extend(vec![0; payload]);
        let total = (packet.len() as u16).to_be_bytes();
        packet[2..4].copy_from_slice(&total);
        Header::read(&packet).unwrap()
    }

    #[test]
    fn what_is_waited_for_is_urgent_without_being_marked() {
        let mut importance = Importance::default();
        let mut urgency =
            |header: &Header, size| importance.of(Some(header), Flow(1), size, Duration::ZERO).urgency;
        assert_eq!(urgency(&segment(2, 0), 60), 1, "SYN");
        assert_eq!(urgency(&segment(16, 0), 52), 1, "ACK");
        assert_eq!(urgency(&segment(17, 0), 52), 1, "FIN");
        assert_eq!(urgency(&header(Transport::Udp { ports: (5000, 53) }, 30), 58), 1, "a name");
        assert_eq!(urgency(&header(Transport::Icmp, 64), 84), 1, "ping");
        assert_eq!(urgency(&segment(24, 300), 340), 2, "a request");
    }

    #[test]
    fn a_stream_is_told_of_a_priority_when_it_changes() {
        let mut importance = StreamImportance::default();
        let mut moved = |size, now| importance.moved(size, Duration::from_millis(now));
        assert_eq!(
            (moved(16_000, 0), moved(1_000, 1), moved(1_000, 2)),
            (None, Some(Priority::DEFAULT), None)
        );
        assert_eq!((moved(1 << 20, 3), moved(1 << 20, 4)), (Some(BULK), None));
        assert_eq!(moved(100, 1_000), Some(SHORT), "the next exchange");
    }

    #[test]
    fn a_long_transfer_gives_way_and_a_pause_begins_anew() {
        let mut importance = Importance::default();
        let data = segment(16, 1400);
        let mut send = |now| importance.of(Some(&data), Flow(2), 1440, Duration::from_millis(now)).urgency;
        assert!((0..11).all(|_| send(0) == 2));
        assert_eq!(send(0), 3);
        assert_eq!((0..1_000).map(|_| send(1)).last(), Some(4));
        assert_eq!(send(2_000), 2, "the next exchange");
    }
}
