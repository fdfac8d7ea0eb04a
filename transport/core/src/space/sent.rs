//! The packets that were sent in a packet number space: each resolves exactly once, as acknowledged or as lost (RFC
//! 9002 §6 and §A).

use crate::error::{ErrorCode, TransportError};
use crate::recovery::ecn::{Counted, Ecn, EcnAccount, EcnReport};
use crate::recovery::reordering::Thresholds;
use crate::recovery::sent_packet::{Lost, MOST_SKIPPED, PacketClass, SentPacket};
use crate::space::lost::{LostPackets, SpuriousLoss};
use crate::time::Instant;
use crate::wire::frame::Ack;
use rand::Rng;
use rand::rngs::StdRng;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::time::Duration;

/// At least this many packets in the interval from which the next number to skip is drawn.
const LEAST_SKIP_INTERVAL: u64 = 64;

/// The number of packets that may wait to be resolved however long it takes; one more may for each [`BYTES_FOR_EACH`]
/// of the window.
const LEAST_ROOM: usize = 2048;
/// Bytes of the congestion window that hold a packet: few are smaller, unless the window does not limit them.
const BYTES_FOR_EACH: usize = 128;
/// Beyond that, packets of this age are given up.
const STALE: Duration = Duration::from_secs(3);

#[derive(Clone, Debug)]
enum Slot {
    /// Acknowledged, lost, or never used.
    Resolved,
    Packet(SentPacket),
}

/// Memory for the records of packets in flight, with nothing in it.
#[derive(Debug)]
pub struct Records(VecDeque<Slot>);

impl Records {
    /// Returns the number of packets that it has room for.
    pub fn capacity(&self) -> usize {
        self.0.capacity()
    }

    /// Memory for at least so many packets.
    #[cfg(test)]
    pub fn for_packets(count: usize) -> Self {
        Self(VecDeque::with_capacity(count))
    }
}

/// The result of processing an acknowledgement.
#[derive(Clone, Debug, Default)]
pub struct Acknowledged {
    /// Newly acknowledged packets, by ascending number.
    pub packets: Vec<SentPacket>,
    /// The round-trip time, acknowledgement delay included, if the largest number is newly acknowledged and some
    /// newly acknowledged packet was ack-eliciting (RFC 9002 §5.1).
    pub rtt_sample: Option<Duration>,
    /// Packets that had been declared lost.
    pub spurious: Vec<SpuriousLoss>,
    /// The frame's report about ECN.
    pub ecn: EcnReport,
}

impl Acknowledged {
    /// Bytes newly acknowledged that were in flight.
    pub fn bytes(&self) -> usize {
        self.packets.iter().map(SentPacket::bytes_in_flight).sum()
    }

    /// Returns the time at which the newest of the newly acknowledged packets left.
    pub fn largest_sent_at(&self) -> Option<Instant> {
        self.packets.last().map(|packet| packet.sent_at)
    }
}

/// The largest first packet number that is drawn. One byte encodes twice as many, so that the first packets of a space
/// are no longer for it (RFC 9000 §17.1).
const LARGEST_FIRST: u64 = 63;

/// The sent packets of one packet number space.
#[derive(Clone, Debug, Default)]
pub struct Sent {
    /// The first number that may be used.
    first: u64,
    /// The next number to use.
    next: u64,
    skip_at: Option<u64>,
    skipped: SmallVec<[u64; MOST_SKIPPED]>,
    /// The number of the first slot. The first slot, if any, is an unresolved packet.
    base: u64,
    slots: VecDeque<Slot>,
    unresolved: usize,
    in_flight: usize,
    ack_eliciting: usize,
    largest_acknowledged: Option<u64>,
    last_eliciting_at: Option<Instant>,
    loss_time: Option<Instant>,
    lost: LostPackets,
    marks: EcnAccount,
}

impl Sent {
    /// Has the space begin at a number from 1 to 63 that the peer cannot know, so that an acknowledgement of packets that
    /// did not arrive yet is found out from the first one on (RFC 9000 §21.4). Nothing was sent yet.
    pub fn begin_at_random(&mut self, rng: &mut StdRng) {
        debug_assert!(self.next == 0 && self.slots.is_empty(), "a space begins once");
        self.first = rng.random_range(1..=LARGEST_FIRST);
        (self.next, self.base) = (self.first, self.first);
    }

    /// The number of the next packet. Now and then one is skipped: who acknowledges it did not receive what it
    /// acknowledges (RFC 9000 §21.4). The interval grows with what is in flight.
    pub fn next_number(&mut self, rng: &mut StdRng) -> u64 {
        let skip_at = match self.skip_at {
            Some(skip_at) => skip_at,
            None => self.draw_skip(rng),
        };
        if self.next >= skip_at {
            self.skip(self.next);
            self.next += 1;
            self.draw_skip(rng);
        }
        let number = self.next;
        //= https://www.rfc-editor.org/rfc/rfc9000#section-12.3
        //# Subsequent packets sent in the same packet number space MUST increase the packet number by at
        //# least one.
        //= https://www.rfc-editor.org/rfc/rfc9000#section-12.3
        //# A QUIC endpoint MUST NOT reuse a packet number within the same packet number space in one
        //# connection
        //= https://www.rfc-editor.org/rfc/rfc9000#section-17.2.3
        //# New packet numbers MUST be used for any new packets that are sent; as described in Section
        //# 17.2.5.3, reusing packet numbers could compromise packet protection.
        self.next += 1;
        number
    }

    /// The number that the next call of [`next_number`](Self::next_number) returns at least.
    pub fn next_unused(&self) -> u64 {
        self.next
    }

    /// Returns true if the next packet needs memory.
    pub fn lacks_memory(&self) -> bool {
        self.slots.capacity() == 0
    }

    /// Has the next packets recorded in `records`, for want of other memory.
    pub fn lend(&mut self, records: Records) {
        if self.lacks_memory() {
            self.slots = records.0;
        }
    }

    /// The memory of the records, if no packet is in flight: an idle path keeps none of its busy times.
    pub fn take_records(&mut self) -> Option<Records> {
        let is_unused = self.slots.is_empty() && !self.lacks_memory();
        is_unused.then(|| Records(std::mem::take(&mut self.slots)))
    }

    /// Gives up memory that only busy times have use for.
    pub fn hibernate(&mut self) {
        self.slots.shrink_to_fit();
    }

    /// Records a packet; numbers must come from [`next_number`](Self::next_number), in its order.
    pub fn on_sent(&mut self, packet: SentPacket) {
        let end = self.end();
        debug_assert!(packet.number >= end, "packet numbers ascend");
        if self.slots.is_empty() {
            self.base = packet.number;
        }
        // Numbers drawn but not used are unsent as well.
        for unused in end..packet.number {
            if !self.skipped.contains(&unused) {
                self.skip(unused);
            }
            if !self.slots.is_empty() {
                self.slots.push_back(Slot::Resolved);
            }
        }
        self.next = self.next.max(packet.number + 1);
        self.marks.on_sent(packet.ecn);
        self.unresolved += 1;
        //= https://www.rfc-editor.org/rfc/rfc9002#section-7.5
        //# A sender MUST however count these packets as being additionally in flight, since these packets add
        //# network load without establishing packet loss
        self.in_flight = self.in_flight.saturating_add(packet.bytes_in_flight());
        if packet.class.arms_timeout() {
            self.ack_eliciting += 1;
            self.last_eliciting_at = Some(packet.sent_at);
        }
        self.slots.push_back(Slot::Packet(packet));
    }

    /// Bytes in flight (RFC 9002 §B.2).
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// The largest number acknowledged.
    pub fn largest_acknowledged(&self) -> Option<u64> {
        self.largest_acknowledged
    }

    /// Returns true if every packet was acknowledged or declared lost.
    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.unresolved == 0
    }

    /// Packets not resolved yet.
    #[cfg(test)]
    pub fn unresolved(&self) -> usize {
        self.unresolved
    }

    /// The oldest packet not resolved yet.
    pub fn oldest_unacked(&self) -> Option<&SentPacket> {
        self.unacknowledged().next()
    }

    /// Packets not resolved yet, by ascending number.
    pub fn unacknowledged(&self) -> impl Iterator<Item = &SentPacket> {
        self.unacknowledged_from(self.base)
    }

    /// Packets from `number` on that are not resolved yet, by ascending number.
    pub fn unacknowledged_from(&self, number: u64) -> impl Iterator<Item = &SentPacket> {
        let skipped = usize::try_from(number.saturating_sub(self.base)).unwrap_or(usize::MAX);
        self.slots.range(skipped.min(self.slots.len())..).filter_map(|slot| match slot {
            Slot::Packet(packet) => Some(packet),
            Slot::Resolved => None,
        })
    }

    /// Ack-eliciting packets not resolved yet, liveness probes aside.
    pub fn ack_eliciting_in_flight(&self) -> usize {
        self.ack_eliciting
    }

    /// Returns true if a packet awaits an acknowledgement that the peer must send, and is no liveness probe.
    pub fn has_ack_eliciting_in_flight(&self) -> bool {
        self.ack_eliciting > 0
    }

    /// Returns the time at which the last ack-eliciting packet left that was no liveness probe: the start of the probe
    /// timeout (RFC 9002 §6.2.1).
    pub fn last_ack_eliciting_at(&self) -> Option<Instant> {
        self.last_eliciting_at
    }

    /// Returns the time at which the next packet counts as lost by time, as of the last
    /// [`detect_lost`](Self::detect_lost).
    pub fn loss_time(&self) -> Option<Instant> {
        self.loss_time
    }

    /// Takes an acknowledgement; call [`detect_lost`](Self::detect_lost) after it.
    ///
    /// PROTOCOL_VIOLATION if it covers a number that was never sent (RFC 9000 §13.1).
    pub fn on_ack(&mut self, ack: &Ack, now: Instant) -> Result<Acknowledged, TransportError> {
        self.on_ack_into(ack, now, Vec::new())
    }

    /// The same; newly acknowledged packets go to `packets`, which is empty.
    pub fn on_ack_into(
        &mut self,
        ack: &Ack,
        now: Instant,
        packets: Vec<SentPacket>,
    ) -> Result<Acknowledged, TransportError> {
        self.validate(ack)?;
        self.lost.forget(now);
        let mut outcome = Acknowledged { packets, ..Acknowledged::default() };
        let oldest = self.lost.smallest().map_or(self.base, |lost| lost.min(self.base));
        // Ranges come from the largest to the smallest.
        let mut recent = ack.ranges.iter().take_while(|range| *range.end() >= oldest);
        let newest = recent.next();
        let mut older: SmallVec<[RangeInclusive<u64>; 8]> = SmallVec::new();
        recent.for_each(|range| older.push(range));
        for range in older.iter().rev().chain(&newest) {
            self.lost.take(range, &mut outcome.spurious);
            self.resolve(range, &mut outcome.packets);
        }
        let newest = outcome.packets.last().filter(|newest| newest.number == ack.largest);
        if let Some(newest) = newest
            //= https://www.rfc-editor.org/rfc/rfc9002#section-5.1
            //# An RTT sample MUST NOT be generated on receiving an ACK frame that does not newly acknowledge
            //# at least one ack-eliciting packet
            && outcome.packets.iter().any(|packet| packet.class.is_ack_eliciting())
        {
            outcome.rtt_sample = Some(now.since(newest.sent_at));
        }
        let advances = self.largest_acknowledged.is_none_or(|largest| ack.largest > largest);
        outcome.ecn = EcnReport {
            //= https://www.rfc-editor.org/rfc/rfc9000#section-13.4.2.1
            //# An endpoint MUST NOT fail ECN validation as a result of processing an ACK frame that does not
            //# increase the largest acknowledged packet number.
            counted: if advances { self.marks.on_counts(ack.ecn) } else { Counted::Unjudged },
            newly_ect0: count(&outcome.packets, Ecn::Ect0),
            newly_ect1: count(&outcome.packets, Ecn::Ect1),
        };
        self.largest_acknowledged = self.largest_acknowledged.max(Some(ack.largest));
        self.trim();
        Ok(outcome)
    }

    /// Declares packets lost that are as many numbers behind the largest acknowledged one, or left so long before `now`
    /// and before it, as `thresholds` say (RFC 9002 §6.1), and notes when the next will be.
    pub fn detect_lost(&mut self, now: Instant, thresholds: Thresholds) -> Lost {
        let mut lost = Lost::default();
        self.loss_time = None;
        let Some(largest) = self.largest_acknowledged else { return lost };
        // Both thresholds are monotonic in the number, so the first packet that is not lost ends the search.
        while let Some(Slot::Packet(packet)) = self.slots.front() {
            if packet.number > largest {
                break;
            }
            let (distance, lost_at) = (largest - packet.number, packet.sent_at + thresholds.delay);
            if distance < thresholds.packets && lost_at > now {
                self.loss_time = Some(lost_at);
                break;
            }
            self.lost.remember(packet, now, distance, thresholds.delay);
            lost.packets.extend(self.take(0));
            self.trim();
        }
        if !lost.packets.is_empty() {
            lost.skipped = self.skipped.clone();
        }
        lost
    }

    /// Takes all unresolved packets, neither acknowledged nor lost: the keys are gone, or the path is
    /// (RFC 9002 §6.4). Acknowledgements of them have no effect any more.
    pub fn drain_all(&mut self) -> Vec<SentPacket> {
        let drained = (0..self.slots.len()).filter_map(|index| self.take(index)).collect();
        self.trim();
        self.take_records();
        self.lost.clear();
        self.loss_time = None;
        self.last_eliciting_at = None;
        drained
    }

    /// Takes the packets with numbers in `range` that are not resolved: they count as neither acknowledged nor lost, for
    /// they went to an address that the path has left (RFC 9000 §9.4).
    pub fn drain(&mut self, range: std::ops::Range<u64>) -> Vec<SentPacket> {
        let index = |number: u64| usize::try_from(number.saturating_sub(self.base)).unwrap_or(usize::MAX);
        let (from, to) = (index(range.start), index(range.end).min(self.slots.len()));
        let drained = (from..to).filter_map(|index| self.take(index)).collect();
        self.trim();
        self.take_records();
        if self.ack_eliciting == 0 {
            self.last_eliciting_at = None;
        }
        drained
    }

    /// Takes the liveness probes that are not resolved, for the path has answered: no timer runs for them, and without
    /// further packets they would stay in flight for good.
    pub fn drain_probes(&mut self) -> Vec<SentPacket> {
        let is_probe =
            |slot: &Slot| matches!(slot, Slot::Packet(packet) if packet.class == PacketClass::Asking);
        let probes: Vec<usize> =
            (0..self.slots.len()).filter(|index| is_probe(&self.slots[*index])).collect();
        let drained = probes.into_iter().filter_map(|index| self.take(index)).collect();
        self.trim();
        self.take_records();
        drained
    }

    /// Returns true if there are packets that [`Self::shed`] takes, of a path with a congestion window of `window`
    /// bytes, which is asked for only if it matters.
    #[inline]
    pub fn is_overgrown(&self, window: impl FnOnce() -> usize, now: Instant) -> bool {
        self.slots.len() > LEAST_ROOM
            && self.slots.len() > LEAST_ROOM + window() / BYTES_FOR_EACH
            && self.oldest_unacked().is_some_and(|oldest| now.since(oldest.sent_at) > STALE)
    }

    /// Takes the oldest packets, neither acknowledged nor lost, if there are so many that the peer must have ceased to
    /// acknowledge anything. It may go on to send, and each answer would take memory for as long as it does.
    pub fn shed(&mut self, now: Instant) -> Vec<SentPacket> {
        let mut shed = Vec::new();
        while self.slots.len() > LEAST_ROOM / 2
            && self.oldest_unacked().is_some_and(|oldest| now.since(oldest.sent_at) > STALE)
        {
            shed.extend(self.take(0));
            self.trim();
        }
        if self.ack_eliciting == 0 {
            self.last_eliciting_at = None;
        }
        shed
    }

    /// Recounts the running totals; `Err` names one that is wrong.
    pub(crate) fn audit(&self) -> Result<(), String> {
        let (mut packets, mut bytes, mut eliciting) = (0, 0, 0);
        for packet in self.unacknowledged() {
            packets += 1;
            bytes += packet.bytes_in_flight();
            eliciting += usize::from(packet.class.arms_timeout());
        }
        if (packets, bytes, eliciting) == (self.unresolved, self.in_flight, self.ack_eliciting) {
            return Ok(());
        }
        Err(format!(
            "{packets} packets, {bytes} bytes in flight and {eliciting} ack-eliciting packets, but {} {} {} in the books",
            self.unresolved, self.in_flight, self.ack_eliciting
        ))
    }

    /// One after the last number recorded.
    fn end(&self) -> u64 {
        self.base + self.slots.len() as u64
    }

    fn draw_skip(&mut self, rng: &mut StdRng) -> u64 {
        let window = (self.unresolved as u64).max(LEAST_SKIP_INTERVAL);
        let skip_at = self.next.saturating_add(rng.random_range(window / 2..=window * 2));
        self.skip_at = Some(skip_at);
        skip_at
    }

    fn skip(&mut self, number: u64) {
        if self.skipped.len() >= MOST_SKIPPED {
            self.skipped.remove(0);
        }
        self.skipped.push(number);
    }

    fn validate(&self, ack: &Ack) -> Result<(), TransportError> {
        if ack.largest >= self.end() {
            return Err(
                ErrorCode::PROTOCOL_VIOLATION.because("acknowledgement of a packet that was not sent")
            );
        }
        let (mut reaches_below, mut covers_skipped) = (false, false);
        for range in ack.ranges.iter() {
            let (start, length) = (*range.start(), range.end() - range.start());
            reaches_below |= start < self.first;
            covers_skipped |= self.skipped.iter().any(|skipped| skipped.wrapping_sub(start) <= length);
        }
        if reaches_below {
            return Err(ErrorCode::PROTOCOL_VIOLATION
                .because("acknowledgement of a packet number below the first that was used"));
        }
        if covers_skipped {
            return Err(
                ErrorCode::PROTOCOL_VIOLATION.because("acknowledgement of a packet number that was skipped")
            );
        }
        Ok(())
    }

    /// Takes the packets of `range`, from the smallest number to the largest.
    fn resolve(&mut self, range: &RangeInclusive<u64>, packets: &mut Vec<SentPacket>) {
        let first = range.start().saturating_sub(self.base) as usize;
        let Some(last) = range.end().checked_sub(self.base) else { return };
        let last = (last as usize).min(self.slots.len().saturating_sub(1));
        for index in first..=last {
            packets.extend(self.take(index));
        }
    }

    /// Takes the packet in slot `index` out of the accounts.
    fn take(&mut self, index: usize) -> Option<SentPacket> {
        let slot = std::mem::replace(self.slots.get_mut(index)?, Slot::Resolved);
        let Slot::Packet(packet) = slot else { return None };
        self.unresolved -= 1;
        self.in_flight = self.in_flight.saturating_sub(packet.bytes_in_flight());
        if packet.class.arms_timeout() {
            self.ack_eliciting -= 1;
        }
        Some(packet)
    }

    /// Drops resolved slots from the front.
    fn trim(&mut self) {
        while let Some(Slot::Resolved) = self.slots.front() {
            self.slots.pop_front();
            self.base += 1;
        }
    }
}

fn count(packets: &[SentPacket], ecn: Ecn) -> u64 {
    packets.iter().filter(|packet| packet.ecn == ecn).count() as u64
}

#[cfg(test)]
mod tests;
