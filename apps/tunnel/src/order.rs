//! Packets in the order in which they were sent, flow by flow: DChannel's reordering buffer at the end of a tunnel
//! (NSDI 2023, §3.6).
//!
//! Payloads of HTTP datagrams begin with a context ID (RFC 9484 §4.6). 0 means an IP packet. 2 means a flow, a number and
//! an IP packet; it is used if both ends say so in the field `hvq-order`.

use bytes::{Buf, Bytes};
use hvq::transport::wire::varint;
use hvq_emulation::steer::{Branch, Flow, ReorderingBuffer};
use hvq_emulation::tun::packet::Flows;
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

/// The context of plain packets (RFC 9484 §6).
const PLAIN: u64 = 0;
/// The context of packets with their place in the order.
const ORDERED: u64 = 2;
/// Packets that wait at one time, over all flows; more are handed on as they come.
const MOST_HELD: usize = 8192;

/// Tells whether packets are numbered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ordering {
    /// Packets are numbered.
    Numbered,
    /// Packets are not numbered: the peer would not understand it.
    Plain,
}

/// Numbers packets.
#[derive(Clone, Debug)]
pub struct Numbering {
    ordering: Ordering,
    next: HashMap<Flow, u64>,
}

impl Numbering {
    /// Nothing is numbered yet.
    pub fn new(ordering: Ordering) -> Self {
        Self { ordering, next: HashMap::new() }
    }

    /// The payload for `packet` of `flow`.
    pub fn payload(&mut self, flow: Flow, packet: &[u8]) -> Vec<u8> {
        let mut payload = Vec::with_capacity(packet.len() + 12);
        match self.ordering {
            Ordering::Plain => varint::put(&mut payload, PLAIN),
            Ordering::Numbered => {
                let next = self.next.entry(flow).or_default();
                varint::put(&mut payload, ORDERED);
                varint::put(&mut payload, flow.0);
                varint::put(&mut payload, *next);
                *next += 1;
            }
        }
        payload.extend_from_slice(packet);
        payload
    }
}

impl Numbering {
    /// Gives the latest number of `flow` back: its packet was not sent.
    pub fn take_back(&mut self, flow: Flow) {
        if let Some(next) = self.next.get_mut(&flow) {
            *next = next.saturating_sub(1);
        }
    }
}

/// Puts packets in order.
#[derive(Debug, Default)]
pub struct Order {
    flows: HashMap<u64, ReorderingBuffer<Bytes>>,
    /// Flows of which something waits.
    waiting: BTreeSet<u64>,
    held: usize,
    patience: Duration,
}

impl Order {
    /// Packets wait for at most so long for those before them: by how much the paths differ. Zero turns it off.
    pub fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
    }

    /// Takes the payload of a datagram that arrived at `now`; returns the packets that can be handed on. A payload in
    /// another context, or without sense, is dropped (RFC 9484 §4.6).
    pub fn arrive(&mut self, mut payload: Bytes, now: Duration) -> Vec<Bytes> {
        match take(&mut payload) {
            Some(PLAIN) => vec![payload],
            Some(ORDERED) => {
                let (Some(flow), Some(number)) = (take(&mut payload), take(&mut payload)) else {
                    return Vec::new();
                };
                if flow >= Flows::MOST {
                    return Vec::new();
                }
                if self.patience.is_zero() || self.held >= MOST_HELD {
                    return vec![payload];
                }
                let buffer = self.flows.entry(flow).or_default();
                buffer.set_timeout(self.patience);
                let before = buffer.held();
                // Which path it came over is not told, so that every packet waits for those before it.
                let released = buffer.arrive(number, Branch::LowLatency, payload, now);
                let after = buffer.held();
                self.note(flow, before, after);
                released
            }
            _ => Vec::new(),
        }
    }

    /// Returns the time at which packets have waited for long enough.
    pub fn deadline(&self) -> Option<Duration> {
        self.waiting.iter().filter_map(|flow| self.flows.get(flow)?.deadline()).min()
    }

    /// Packets that have waited for long enough at `now`.
    pub fn give_up(&mut self, now: Duration) -> Vec<Bytes> {
        let mut released = Vec::new();
        for flow in self.waiting.clone() {
            let Some(buffer) = self.flows.get_mut(&flow) else { continue };
            let before = buffer.held();
            released.extend(buffer.give_up(now));
            let after = buffer.held();
            self.note(flow, before, after);
        }
        released
    }

    fn note(&mut self, flow: u64, before: usize, after: usize) {
        self.held = (self.held + after).saturating_sub(before);
        if after > 0 {
            self.waiting.insert(flow);
        } else {
            self.waiting.remove(&flow);
        }
    }
}

fn take(payload: &mut Bytes) -> Option<u64> {
    let (value, size) = varint::get(payload)?;
    payload.advance(size);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::importance::Importance;
    use hvq_emulation::tun::packet::{Header, Transport};
    use proptest::prelude::*;

    fn ms(value: u64) -> Duration {
        Duration::from_millis(value)
    }

    fn patient() -> Order {
        let mut order = Order::default();
        order.set_patience(ms(20));
        order
    }

    #[test]
    fn packets_of_a_flow_come_out_in_the_order_in_which_they_went_in() {
        let mut numbering = Numbering::new(Ordering::Numbered);
        let payloads: Vec<Bytes> =
            (0..4_u8).map(|index| numbering.payload(Flow(7), &[index]).into()).collect();
        let other: Bytes = numbering.payload(Flow(8), b"other").into();
        let mut order = patient();
        assert!(order.arrive(payloads[2].clone(), ms(1)).is_empty());
        assert_eq!(order.arrive(other, ms(1)), [&b"other"[..]]);
        assert_eq!(order.arrive(payloads[0].clone(), ms(2)), [&[0][..]]);
        assert_eq!(order.arrive(payloads[1].clone(), ms(3)), [&[1][..], &[2]]);
        assert_eq!(
            (order.arrive(payloads[3].clone(), ms(4)), order.deadline()),
            (vec![Bytes::from_static(&[3])], None)
        );
    }

    #[test]
    fn a_lost_packet_holds_others_for_as_long_as_paths_differ() {
        let mut numbering = Numbering::new(Ordering::Numbered);
        let payloads: Vec<Bytes> =
            (0..3_u8).map(|index| numbering.payload(Flow(7), &[index]).into()).collect();
        let mut order = patient();
        assert!(order.arrive(payloads[1].clone(), ms(5)).is_empty());
        assert_eq!(order.deadline(), Some(ms(25)));
        assert!(order.give_up(ms(24)).is_empty());
        assert_eq!(order.give_up(ms(25)), [&[1][..]]);
        assert_eq!(order.arrive(payloads[2].clone(), ms(26)), [&[2][..]]);
        assert_eq!(order.held, 0);
    }

    #[test]
    fn plain_packets_pass_and_other_contexts_are_dropped() {
        let mut order = patient();
        let mut plain = Numbering::new(Ordering::Plain);
        let payload = plain.payload(Flow(3), b"packet");
        assert_eq!(payload[0], 0);
        assert_eq!(order.arrive(payload.into(), ms(0)), [&b"packet"[..]]);
        for bad in [&b""[..], &[4, 1, 2], &[2], &[2, 1], &[2, 0x80, 0, 0x40, 0, 1, 9]] {
            assert!(order.arrive(Bytes::copy_from_slice(bad), ms(0)).is_empty(), "{bad:?}");
        }
    }

    /// The first and the last of three fragments of a datagram of a sender; the one between never comes.
    fn fragments(sender: u32) -> [Vec<u8>; 2] {
        let [a, b, c, d] = sender.to_be_bytes();
        [0x2000, 0x0002].map(|place: u16| {
            let [high, low] = place.to_be_bytes();
            vec![
                0x45, 0, 0, 28, c, d, high, low, 64, 17, 0, 0, a, b, c, d, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0,
                0,
            ]
        })
    }

    #[test]
    fn a_flood_of_fragments_fills_neither_end() {
        // K27: nobody puts fragments together; they are flows of few numbers, and no more of them wait than of other packets.
        let (flows, mut importance) = (Flows::default(), Importance::default());
        let (mut numbering, mut order) = (Numbering::new(Ordering::Numbered), patient());
        let mut handed = 0;
        for sender in 0..60_000 {
            for packet in fragments(sender) {
                let header = Header::read(&packet);
                assert!(matches!(header.unwrap().transport, Transport::Fragment(17)));
                let flow = flows.of(header.as_ref());
                importance.of(header.as_ref(), flow, packet.len(), ms(0));
                let lost = numbering.payload(flow, &packet);
                let payload = numbering.payload(flow, &packet);
                drop(lost);
                handed += order.arrive(payload.into(), ms(0)).len();
            }
        }
        let most = usize::try_from(Flows::MOST).unwrap();
        assert!(numbering.next.len() <= most && order.flows.len() <= most);
        assert!(importance.flows() <= most);
        assert_eq!(order.held, MOST_HELD);
        assert_eq!(handed + order.give_up(ms(1_000)).len(), 120_000, "nothing is kept for good");
        assert_eq!((order.held, order.waiting.len()), (0, 0));
    }

    proptest! {
        #[test]
        fn hostile_numbers_neither_upset_it_nor_fill_the_memory(
            payloads in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..24), 0..200),
        ) {
            let mut order = patient();
            for (at, payload) in (0..).zip(payloads) {
                let _packets = order.arrive(payload.into(), ms(at));
                let _late = order.give_up(ms(at));
            }
            prop_assert!(order.held <= MOST_HELD);
        }
    }
}
