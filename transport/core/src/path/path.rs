//! A path: packet numbers, round-trip times and a route, under one path ID (RFC 10069).

use crate::path::candidates::{CandidateAddress, CandidatePurpose, Candidates, Measurements};
use crate::path::collapse::Copies;
use crate::path::dscp::Dscp;
use crate::path::hints::{ChannelHints, Told};
use crate::path::keep_alive::KeepAlive;
use crate::path::liveness::{Company, Liveness};
use crate::path::remembered::Remembered;
use crate::path::rotation::{Destination, Rotation};
use crate::path::route::Route;
use crate::path::shown::ShownRate;
use crate::path::spin::Spin;
use crate::recovery::delay::PathRtts;
use crate::recovery::interruption::Interruptions;
use crate::recovery::persistent::PersistentCongestion;
use crate::recovery::pto::Pto;
use crate::recovery::reordering::Thresholds;
use crate::recovery::rtt::Rtt;
use crate::recovery::sent_packet::SentPacket;
use crate::recovery_token::{RecoveryTokens, TransmissionState};
use crate::space::received::{AckPolicy, Received};
use crate::space::sent::Sent;
use crate::time::Instant;
use crate::wire::frame::{PathHints, Status};
use crate::{PathId, Role};
use hvq_scheduler::{Bandwidth, Hints, PathState, Sharing};
use smallvec::SmallVec;
use std::time::Duration;

/// Counters of one path, since it was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PathCounters {
    /// Datagrams sent.
    pub datagrams_sent: u64,
    /// Bytes of UDP payload sent.
    pub bytes_sent: u64,
    /// Packets received that authenticated.
    pub packets_received: u64,
    /// Bytes of packets received that authenticated.
    pub bytes_received: u64,
    /// Packets declared lost.
    pub packets_lost: u64,
    /// Bytes of packets declared lost.
    pub bytes_lost: u64,
    /// Packets acknowledged.
    pub packets_acknowledged: u64,
    /// Packets declared lost that were acknowledged later.
    pub spurious_losses: u64,
    /// Packets that the peer reports to have arrived with the mark of congestion (RFC 3168).
    pub marked: u64,
    /// Probe timeouts that fired.
    pub probe_timeouts: u64,
}

/// An acknowledgement is not overdue before this time beyond the smoothed round-trip time.
const LEAST_MARGIN: Duration = Duration::from_millis(5);
/// The shortest time between two probes that arrivals give rise to.
const LEAST_INTERVAL: Duration = Duration::from_millis(10);
/// Fewer unanswered packets than this are given half a probe timeout more.
const SEVERAL: usize = 4;
/// Probe timeouts that a path is given to answer whose round trip is not known, as a validation is (RFC 9000 §8.2.4), or on which
/// an answer may wait behind what the peer sends.
const PATIENCE: u32 = 3;
/// The number of the probe timeout that ends as many: each is twice as long as the one before (RFC 9002 §6.2.1).
const LAST_TIMEOUT: u32 = 2;

/// The competing backlog: the bytes that this endpoint's connections together queued on the channel of a path, beside
/// the path's own.
#[derive(Clone, Copy, Debug)]
struct Others {
    /// Bytes of the others, and how much of all that was sent there they are.
    queued: (usize, Account),
    /// Bytes of this path that were entered, of [`PathCounters::bytes_sent`].
    entered: u64,
}

/// The extent of an endpoint's account of the traffic over a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Account {
    /// All of it: the channel is the endpoint's own.
    Whole,
    /// The bytes that the endpoint itself sends to the peer whose channel it is.
    Part,
}

/// The use that the application makes of a path, beside its channel.
#[derive(Clone, Debug)]
pub struct PathSettings {
    /// The spin bit.
    pub spin: Spin,
    /// The silence after which a PING keeps the path warm.
    pub keep_alive: KeepAlive,
    /// The Differentiated Services codepoint of packets.
    pub dscp: Dscp,
}

/// A packet of a path that does not answer.
#[derive(Clone, Debug)]
pub struct LatePacket {
    /// The tokens of its frames.
    pub tokens: RecoveryTokens,
    /// Its size in bytes.
    pub bytes: usize,
    /// The time since it left.
    pub age: Duration,
}

impl LatePacket {
    /// `packet`, as it is at `now`.
    pub fn of(packet: &SentPacket, now: Instant) -> Self {
        Self { tokens: packet.tokens.clone(), bytes: packet.bytes, age: now.since(packet.sent_at) }
    }
}

/// One open path of a connection.
#[derive(Debug)]
pub struct Path {
    /// Its ID, never used again after it (RFC 10069 §2.4: it is part of the nonce).
    pub id: PathId,
    /// The packets that arrived on it.
    pub received: Received,
    /// The packets that were sent on it.
    pub sent: Sent,
    /// Round-trip times, one estimate for each path that returned the acknowledgements.
    pub rtts: PathRtts,
    /// The probe timeout.
    pub(in crate::path) pto: Pto,
    /// The detector of persistent congestion.
    pub(in crate::path) persistent: PersistentCongestion,
    /// The detector of interruptions.
    pub(in crate::path) interruptions: Interruptions,
    /// The addresses, and what belongs to them.
    pub route: Route,
    /// Other addresses: probed, or left behind.
    pub elsewhere: Candidates,
    /// The sequence number of this endpoint's connection ID that the peer last used on the route.
    pub(in crate::path) heard_with: u64,
    /// The spin bit, by which observers of the network may measure round-trip times (RFC 9000 §17.4).
    pub(in crate::path) spin: Spin,
    /// The silence of the path after which a PING keeps it warm.
    pub(in crate::path) keep_alive: KeepAlive,
    /// The time at which a packet last arrived on it, or an ack-eliciting one left.
    pub(in crate::path) active_at: Instant,
    /// The connection ID of the peer that it is used with.
    pub(in crate::path) destination: Destination,
    /// The Differentiated Services codepoint of its packets.
    pub(in crate::path) dscp: Dscp,
    /// The liveness: tells whether it answers, and when it is asked.
    pub liveness: Liveness,
    /// The packets that were copied to other paths although the path answers.
    pub copies: Copies,
    /// The hints about the channel that hold: those of the application or the modem, and where these say nothing, the
    /// peer's.
    pub hints: Hints,
    /// The hints of both ends.
    channel: ChannelHints,
    /// The peer's latest advice about its use (RFC 10069 §3.3).
    pub(in crate::path) peer_status: Option<Status>,
    /// The advice of this endpoint, which holds for itself, too.
    pub(in crate::path) own_status: Option<Status>,
    /// True if the peer is to spare it, since it is narrow and the peer cannot be told so.
    pub(in crate::path) is_spared: bool,
    /// Padding-only full datagrams to send with the challenge that opens the path, to widen the peer's allowance.
    pub(in crate::path) opening_datagrams: u8,
    /// Counters.
    pub(in crate::path) counters: PathCounters,
    /// The bytes that other connections of this endpoint have queued on the channel.
    /// `None` while nobody keeps an account.
    others: Option<Box<Others>>,
    /// The part in the endpoint's knowledge of paths.
    pub(in crate::path) remembered: Remembered,
}

impl Path {
    /// A path that was neither heard nor used, and of whose channel nothing is known.
    pub fn new(id: PathId, route: Route, acknowledge: AckPolicy) -> Self {
        Self {
            id,
            received: Received::new(acknowledge),
            sent: Sent::default(),
            rtts: PathRtts::default(),
            pto: Pto::default(),
            persistent: PersistentCongestion::default(),
            interruptions: Interruptions::default(),
            route,
            elsewhere: Candidates::default(),
            heard_with: 0,
            spin: Spin::default(),
            keep_alive: KeepAlive::default(),
            active_at: Instant::ZERO,
            destination: Destination::default(),
            dscp: Dscp::default(),
            liveness: Liveness::default(),
            copies: Copies::default(),
            hints: Hints::NONE,
            channel: ChannelHints::default(),
            peer_status: None,
            own_status: None,
            is_spared: false,
            opening_datagrams: 0,
            counters: PathCounters::default(),
            others: None,
            remembered: Remembered::default(),
        }
    }

    /// Moves the path to the addresses of `to`. With `fresh` nothing that was measured before holds there; without, the
    /// route keeps its measurements, for only a port changed (RFC 9000 §9.4). The former addresses become
    /// [`CandidatePurpose::Previous`] if they were validated, and else [`CandidatePurpose::Failed`] if they have a connection ID of their
    /// own. Returns what is not needed any more.
    pub fn migrate_to(
        &mut self,
        to: CandidateAddress,
        fresh: Option<Box<Measurements>>,
        now: Instant,
    ) -> SmallVec<[CandidateAddress; 2]> {
        let mut left = CandidateAddress::new(self.route.tuple, CandidatePurpose::Previous, to.until);
        left.amplification = self.route.amplification;
        left.validation = std::mem::replace(&mut self.route.validation, to.validation);
        left.destination = to.destination;
        // A peer that is moved from here without another connection ID was moved by a NAT, whichever it used elsewhere.
        left.heard_with = std::mem::replace(&mut self.heard_with, to.heard_with);
        self.route.tuple = to.tuple;
        if let Some(mut other) = to.measurements.or(fresh) {
            other.route.tuple = to.tuple;
            std::mem::swap(&mut other.route.validation, &mut self.route.validation);
            std::mem::swap(&mut other.route, &mut self.route);
            std::mem::swap(&mut other.rtts, &mut self.rtts);
            std::mem::swap(&mut other.persistent, &mut self.persistent);
            // What is known of the channel holds for other addresses too.
            self.follow_hints();
            left.measurements = Some(other);
        }
        self.route.amplification = to.amplification;
        if left.validation.is_validated() {
            return self.elsewhere.add(left);
        }
        // Nothing returns to an address that was never proven: the one before it stays the last that was.
        if let Some(before) = self.elsewhere.previous_mut() {
            before.measurements = before.measurements.take().or(left.measurements.take());
            if before.destination.is_none() {
                std::mem::swap(&mut before.destination, &mut left.destination);
            }
        }
        if left.destination.is_none() {
            return SmallVec::from_iter([left]);
        }
        left.fail(now);
        self.elsewhere.add(left)
    }

    /// Takes what the application of this end knows about the channel.
    pub fn set_hints(&mut self, own: Hints) {
        self.channel.set_own(own);
        self.follow_hints();
    }

    /// Takes what the peer told an end of `role` about the channel. Returns true if that is news.
    pub(crate) fn hear_hints(&mut self, told: Told, role: Role) -> bool {
        let is_news = self.channel.hear(told, role);
        if is_news {
            self.follow_hints();
        }
        is_news
    }

    /// Takes the rate at which the channel brings packets, if that refutes what the application says. Returns true if that is news.
    pub(crate) fn hear_received_rate(&mut self, rate: Option<Bandwidth>) -> bool {
        let is_news = self.channel.set_received(rate);
        if is_news {
            self.follow_hints();
        }
        is_news
    }

    /// Returns the hints of both ends.
    pub(crate) fn channel(&self) -> &ChannelHints {
        &self.channel
    }

    /// Returns true if there may be hints for the peer.
    #[inline]
    pub(crate) fn may_have_hints(&self) -> bool {
        self.channel.may_have_frame()
    }

    /// Returns the next hints for the peer, if there are any.
    pub(crate) fn next_hints(&mut self) -> Option<PathHints> {
        self.channel.next_frame(self.id)
    }

    /// Takes note of what became of the hints number `sequence`.
    pub(crate) fn settle_hints(&mut self, sequence: u64, progress: TransmissionState) {
        self.channel.settle(sequence, progress);
    }

    /// Goes by the hints that hold now, on the route that is used now. A rate that is not shared with others is kept to
    /// (see [`Route::guard_rate`]).
    pub fn follow_hints(&mut self) {
        let hints = self.channel.known();
        self.hints = hints;
        if self.rate_of_endpoint().is_none() {
            // Should it be shared again, what was sent meanwhile is nobody's queue.
            self.others = None;
        }
        self.review_rate();
        self.route.keep_flight_within(self.rtts.longest_base());
    }

    /// Returns the state of the path for the scheduler.
    #[inline]
    pub fn scheduling_state(&self) -> PathState {
        if self.liveness.is_silent() { PathState::Silent } else { self.scheduling_state_if_heard() }
    }

    /// Returns the state of the path for the scheduler if it does not count as silent.
    pub fn scheduling_state_if_heard(&self) -> PathState {
        if !self.route.validation.is_validated() {
            PathState::Unvalidated
        } else if [self.peer_status, self.own_status].contains(&Some(Status::Backup)) {
            PathState::Backup
        } else {
            PathState::Available
        }
    }

    /// Returns true if the path is known to reach the peer and answers.
    pub fn is_answering(&self) -> bool {
        !self.liveness.is_silent() && self.route.validation.is_validated()
    }

    /// The round-trip time over the return path that answers fastest; the initial estimate before any sample.
    #[inline]
    pub fn rtt(&self) -> Rtt {
        self.rtts.fastest().copied().unwrap_or_default()
    }

    /// The bottleneck rate: the channel's hint, as far as deliveries do not refute it; else what bursts and deliveries
    /// show.
    ///
    /// In slow start deliveries show the window and not the bottleneck: they count only once a burst was seen, if they are
    /// faster. A path that was only probed would look slow, get nothing to send for it, and never show that it is fast.
    #[inline]
    pub fn rate(&self) -> Option<Bandwidth> {
        let (burst, delivered) = (self.route.rate.capacity(), self.route.rate.estimate());
        let counts = burst.is_some() || !self.route.controller.in_slow_start();
        self.believed_rate().or_else(|| burst.max(delivered.filter(|_| counts)))
    }

    /// The rate that the path was seen to carry: its bottleneck's if a burst showed that, else what the handshake showed or was
    /// delivered, which is less.
    pub fn shown_rate(&self) -> Option<ShownRate> {
        let seen = &self.route.rate;
        let at_least = || seen.estimate().max(seen.shown_by_handshake());
        let rate = seen.capacity().and_then(|_| self.rate()).or_else(at_least)?;
        Some(ShownRate { rate, undecided: seen.undecided() })
    }

    /// The hinted rate, or what bursts show instead if they refute it; `None` without a hint.
    #[inline]
    pub fn believed_rate(&self) -> Option<Bandwidth> {
        self.hints.rate.map(|promised| self.refuted(promised))
    }

    /// `promised`, or what bursts show instead.
    fn refuted(&self, promised: Bandwidth) -> Bandwidth {
        self.route.rate.refutation(promised).unwrap_or(promised)
    }

    /// The hints with the rate as it is believed.
    pub fn believed_hints(&self) -> Hints {
        Hints { rate: self.believed_rate(), ..self.hints }
    }

    /// Follows what is believed of the channel's rate.
    pub fn review_rate(&mut self) {
        let own = self.believed_rate().filter(|_| self.hints.shared != Sharing::Shared);
        if own != self.route.guarded_rate() {
            self.route.guard_rate(own);
        }
    }

    /// Bytes believed queued at the bottleneck: those of this path and, where others share the channel, theirs.
    #[inline]
    pub fn backlog(&self, now: Instant) -> usize {
        let own = self.own_backlog(now);
        let others = match (self.hints.shared, self.others.as_ref().map(|others| others.queued)) {
            (Sharing::Endpoint, Some((known, Account::Whole))) => known,
            (Sharing::Endpoint, Some((known, Account::Part))) => known.max(self.competing(now)),
            (Sharing::Shared | Sharing::Endpoint, _) => self.competing(now),
            (Sharing::Unknown | Sharing::Dedicated, _) => 0,
        };
        own.saturating_add(others)
    }

    /// The rate of the channel, if that was promised to an endpoint whose connections share it.
    pub fn rate_of_endpoint(&self) -> Option<Bandwidth> {
        self.channel.rate_of_endpoint().map(|promised| self.refuted(promised))
    }

    /// All connections together have `queued` bytes on the channel, of which this path's are those that were entered.
    pub fn learn_queue(&mut self, queued: usize, account: Account, now: Instant) {
        let own = self.own_backlog(now);
        if let Some(others) = &mut self.others {
            others.queued = (queued.saturating_sub(own), account);
        } else {
            // What is still queued of it counts from now on.
            let entered = self.counters.bytes_sent.saturating_sub(own as u64);
            self.others = Some(Box::new(Others { queued: (queued, account), entered }));
        }
    }

    /// Bytes that were sent and not entered yet into the account that [`Self::learn_queue`] told of; they count as entered.
    pub fn take_unentered(&mut self) -> Option<usize> {
        let others = self.others.as_mut()?;
        let bytes = self.counters.bytes_sent.saturating_sub(others.entered);
        others.entered = self.counters.bytes_sent;
        usize::try_from(bytes).ok().filter(|bytes| *bytes > 0)
    }

    /// Bytes that this endpoint's other connections have queued, if the account of the channel is whole.
    pub fn queued_by_others(&self) -> Option<usize> {
        let known = self.others.as_ref().map(|others| others.queued);
        let known = known.filter(|_| self.hints.shared == Sharing::Endpoint);
        known.filter(|(_, account)| *account == Account::Whole).map(|(bytes, _)| bytes)
    }

    /// Bytes of this path that are believed to be queued.
    #[inline]
    pub fn own_backlog(&self, now: Instant) -> usize {
        self.route.backlog.bytes(now, self.sent.in_flight(), || self.rate())
    }

    /// Bytes that others are believed to have queued on a channel of promised rate.
    fn competing(&self, now: Instant) -> usize {
        let left = self.route.competing.left(now);
        let bytes = self.believed_rate().map_or(0, |rate| rate.bytes_in(left));
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    /// Returns the time that the queue of others takes, on a path of which no rate was promised.
    pub fn delay_of_others(&self, now: Instant) -> Duration {
        if self.hints.rate.is_some() { Duration::ZERO } else { self.route.competing.left(now) }
    }

    /// `packet`, which was sent here, was acknowledged over `over` after `rtt`: what that took beyond the packets of this
    /// path shows the queue of others.
    pub fn on_round_trip(&mut self, packet: &SentPacket, over: PathId, rtt: Duration, now: Instant) {
        let rate = self.believed_rate().or_else(|| self.route.rate.capacity());
        let (Some(rate), Some(base)) = (rate, self.rtts.min_for(over)) else { return };
        let before = usize::try_from(packet.delivery.in_flight).unwrap_or(usize::MAX);
        self.route.competing.on_sample([rtt, base], before.saturating_add(packet.bytes), rate, now);
    }

    /// Returns the thresholds of loss detection (RFC 9002 §6.1), with the patience that the route has taught.
    pub fn thresholds(&self) -> Thresholds {
        self.route.reordering.thresholds(self.rtts.loss_delay())
    }

    /// The probe timeout period without backoff (RFC 9002 §6.2.1).
    #[inline]
    pub fn probe_period(&self, max_ack_delay: Duration) -> Duration {
        self.rtts.for_timers().probe_timeout(max_ack_delay)
    }

    /// Returns the time from which on the path is overdue: its oldest unanswered packet should have been acknowledged
    /// by then. `None` if nothing waits for an answer, or if nothing is known about how long that takes.
    fn overdue_at(&self, max_ack_delay: Duration) -> Option<Instant> {
        let asked = self.asked_at()?;
        let rtt = self.rtts.for_timers();
        // A single packet may be acknowledged late on purpose, two may not (RFC 9000 §13.2.2).
        let threshold = if self.sent.ack_eliciting_in_flight() > 1 { Duration::ZERO } else { max_ack_delay };
        let margin = (rtt.variance() * 4).max(rtt.smoothed() / 4).max(LEAST_MARGIN);
        let expected = asked + rtt.smoothed() + margin + threshold;
        Some(expected.max(self.liveness.acknowledged_at() + margin + threshold))
    }

    /// Returns the time beyond an empty round trip for which an overdue packet has been on its way; zero if none is. A queue shows
    /// there before its packets arrive.
    pub fn lateness(&self, max_ack_delay: Duration, now: Instant) -> Duration {
        let overdue = self.overdue_at(max_ack_delay).filter(|overdue| *overdue <= now);
        let asked = overdue.and_then(|_| self.asked_at());
        asked.map_or(Duration::ZERO, |asked| {
            now.since(asked).saturating_sub(self.rtt().min().unwrap_or_default())
        })
    }

    /// Returns the time at which the path counts as silent though packets that follow put its probe timeout off: a
    /// probe timeout after the oldest of several unanswered packets, half of one later if they are few, if no
    /// acknowledgement came meanwhile. A queue that grows delays answers, but those to earlier packets keep coming. Where
    /// the peer fills the queue before its answers, it is three probe timeouts.
    ///
    /// Nobody knows how long that takes on a path without samples. Its channel's hint is believed, else it is expected
    /// to take as long as `beside`, the round trip of another path, and given three probe timeouts.
    pub fn silent_at(&self, max_ack_delay: Duration, beside: Duration) -> Option<Instant> {
        if !self.rtts.is_sampled() {
            let first = self.sent.unacknowledged().find(|packet| packet.class.is_ack_eliciting())?;
            let expected = Rtt::new(self.hints.delay.map_or(beside, |delay| delay * 2));
            return Some(first.sent_at + expected.probe_timeout(max_ack_delay) * PATIENCE);
        }
        let overdue = self.overdue_at(max_ack_delay)?;
        let period = self.probe_period(max_ack_delay);
        let patience = match self.sent.ack_eliciting_in_flight() {
            _ if self.is_filled_meanwhile() => period * PATIENCE,
            // A few may be acknowledged late for many reasons.
            few if few < SEVERAL => period + period / 2,
            _ => period,
        };
        let smoothed = self.rtts.for_timers().smoothed();
        let quiet = period.saturating_sub(smoothed).max(smoothed / 2);
        Some(overdue.max(self.asked_at()? + patience).max(self.liveness.acknowledged_at() + quiet))
    }

    /// Returns the time at which the oldest packet left that waits for an answer with no later one answered either.
    /// Packets older than an acknowledged one are a matter of loss detection.
    pub(in crate::path) fn asked_at(&self) -> Option<Instant> {
        if !self.rtts.is_sampled() || !self.sent.has_ack_eliciting_in_flight() {
            return None;
        }
        let after = self.sent.largest_acknowledged().map_or(0, |largest| largest + 1);
        let mut packets = self.sent.unacknowledged_from(after);
        packets.find(|packet| packet.class.is_ack_eliciting()).map(|packet| packet.sent_at)
    }

    /// Returns true if packets arrived on the path after the answer to the oldest unanswered one was due, and as many since it is awaited
    /// as make a queue: most likely the answer waits behind them. A few arrive, too, where only the way to the peer is dead.
    fn is_filled_meanwhile(&self) -> bool {
        let due = self.asked_at().map(|asked| asked + self.rtts.for_timers().smoothed());
        due.is_some_and(|due| self.liveness.was_filled_since(due))
    }

    /// The oldest packet that waits for an answer and was not offered to other paths yet. It counts as offered from here on.
    pub fn next_late(&mut self, now: Instant) -> Option<LatePacket> {
        let mut packets = self.sent.unacknowledged_from(self.liveness.offered_below());
        let packet = packets.find(|packet| packet.class.is_ack_eliciting())?;
        let (late, number) = (LatePacket::of(packet, now), packet.number);
        self.liveness.on_offered(number + 1);
        Some(late)
    }

    /// Returns the time at which the path has been silent for so long that a PING keeps it warm: after `most` at the latest.
    /// While something is in flight the probe timeout watches over it.
    pub fn keep_alive_at(&self, most: Duration) -> Option<Instant> {
        let silence = self.keep_alive.silence().filter(|_| !self.sent.has_ack_eliciting_in_flight())?;
        Some(self.active_at + silence.min(most))
    }

    /// Takes the use that the application makes of the path, beside its channel, into account from `now` on.
    pub fn configure(&mut self, settings: PathSettings, now: Instant) {
        self.spin = settings.spin;
        self.keep_alive = settings.keep_alive;
        self.dscp = settings.dscp;
        self.destination.at = now;
        self.active_at = now;
    }

    /// Sets the silence after which a PING keeps the path warm.
    pub fn set_keep_alive(&mut self, keep_alive: KeepAlive) {
        self.keep_alive = keep_alive;
    }

    /// Sets the Differentiated Services codepoint of packets.
    pub fn set_dscp(&mut self, dscp: Dscp) {
        self.dscp = dscp;
    }

    /// The Differentiated Services codepoint of packets.
    pub fn dscp(&self) -> Dscp {
        self.dscp
    }

    /// Padding-only datagrams go with the challenge that opens the path, to widen the peer's allowance.
    pub fn open_with(&mut self, datagrams: u8) {
        self.opening_datagrams = datagrams;
    }

    /// Takes one of those datagrams; false if none is left.
    pub fn take_opening_datagram(&mut self) -> bool {
        let left = self.opening_datagrams.checked_sub(1);
        self.opening_datagrams = left.unwrap_or(0);
        left.is_some()
    }

    /// The peer answered a challenge on the route: nothing limits what is sent there. Returns true if the path was silent.
    pub fn on_validated(&mut self, now: Instant) -> bool {
        self.route.amplification.validate();
        self.opening_datagrams = 0;
        self.liveness.on_answered(now)
    }

    /// The path uses other addresses from `now` on.
    pub fn on_migrated(&mut self, now: Instant) {
        // What is known about the channel holds for another address too: the application would say otherwise.
        self.follow_hints();
        self.on_other_addresses();
        self.channel.doubt();
        self.on_destination(now);
        self.spin.reset();
        self.pto.reset();
        self.liveness.on_moved(now);
        self.keep_alive.on_moved();
    }

    /// An ack-eliciting packet left.
    pub fn on_activity(&mut self, now: Instant) {
        self.keep_alive.on_sent_after(now.since(self.active_at));
        self.active_at = now;
    }

    /// The peer challenges the address that is in use.
    pub fn on_challenge(&mut self, data: [u8; 8]) {
        self.keep_alive.on_challenge();
        self.route.validation.on_challenge(data);
    }

    /// The time at which a packet last arrived, or an ack-eliciting one left.
    pub fn active_at(&self) -> Instant {
        self.active_at
    }

    /// The number of the first packet with the connection ID of the peer that is in use.
    pub fn destination_since(&self) -> u64 {
        self.destination.since
    }

    /// The sequence number of this endpoint's connection ID that the peer last used on the route.
    pub fn heard_with(&self) -> u64 {
        self.heard_with
    }

    /// A packet arrived over the route, under the connection ID with this sequence number.
    pub fn on_heard_with(&mut self, id_sequence: u64, now: Instant) {
        self.heard_with = self.heard_with.max(id_sequence);
        self.on_heard(now);
    }

    /// The packet with the largest number arrived, with this spin bit (RFC 9000 §17.4).
    pub fn on_newest(&mut self, spin: bool, role: Role) {
        self.spin.on_newest(spin, role);
    }

    /// The spin bit of the next packet (RFC 9000 §17.4).
    pub fn spin(&self) -> bool {
        self.spin.value()
    }

    /// Counts a packet of `bytes` bytes that authenticated.
    pub fn count_received(&mut self, bytes: usize) {
        self.counters.packets_received += 1;
        self.counters.bytes_received += bytes as u64;
    }

    /// Counts a datagram of `bytes` bytes that leaves.
    pub fn count_sent(&mut self, bytes: usize) {
        self.counters.datagrams_sent += 1;
        self.counters.bytes_sent += bytes as u64;
    }

    /// The counters since the path was opened.
    pub fn counters(&self) -> &PathCounters {
        &self.counters
    }

    /// Sets the counters, for tests of what reads them.
    #[cfg(test)]
    pub fn set_counters(&mut self, counters: PathCounters) {
        self.counters = counters;
    }

    /// The detector of interruptions, for tests of what reads it.
    #[cfg(test)]
    pub fn interruptions_mut(&mut self) -> &mut Interruptions {
        &mut self.interruptions
    }

    /// The peer answered, or keys were discarded: the backoff of the probe timeout ends (RFC 9002 §6.2.1, §6.2.2).
    pub fn on_answer(&mut self) {
        self.pto.reset();
    }

    /// The probe timeout with its backoff.
    pub fn pto(&self) -> &Pto {
        &self.pto
    }

    /// The probe timeout of the handshake fired, whose packets count on the path.
    pub fn on_handshake_timeout(&mut self) {
        self.pto.on_timeout();
        self.route.ecn.on_probe_timeout();
        self.counters.probe_timeouts += 1;
        self.keep_alive.on_unanswered();
    }

    /// Packets show another connection ID of the peer from `now` on.
    pub fn on_destination(&mut self, now: Instant) {
        self.destination = Destination { since: self.sent.next_unused(), at: now, carried: false };
    }

    /// The path carries data of the application, one way or the other.
    pub fn on_carried(&mut self) {
        self.destination.carried = true;
    }

    /// Returns true if `rotation` asks for another connection ID, and the peer was heard under the present one.
    pub fn is_rotation_due(&self, rotation: &Rotation, now: Instant) -> bool {
        self.liveness.was_heard_since(self.destination.at)
            && self.destination.is_due(rotation, self.sent.next_unused(), self.active_at, now)
    }

    /// Gives up the probe of the datagram size if it was not heard of in time.
    pub fn expire_size_probe(&mut self, now: Instant) {
        if let Some(number) = self.route.mtu.take_overdue(now) {
            // What was probed is a size: its loss is no sign of congestion (RFC 9000 §14.4). It is not there any more if
            // the path was elsewhere meanwhile.
            let _nothing_to_tell = self.sent.drain(number..number + 1);
        }
    }

    /// Asks the path whether it still answers, if it was silent for as long as it may be, `most` at the longest.
    pub fn keep_alive(&mut self, most: Duration, now: Instant) {
        let is_due = |path: &Self| path.keep_alive_at(most).is_some_and(|at| at <= now);
        if !is_due(self) {
            return;
        }
        // What is known now may permit a longer silence.
        self.keep_alive.on_answered();
        if is_due(self) {
            self.on_activity(now);
            self.liveness.ask(now);
        }
    }

    /// The probe timeout fired. Returns whether the path counts as silent from now on; one that the peer fills does so the
    /// second time.
    pub fn on_probe_timeout(&mut self, now: Instant) -> bool {
        //= https://www.rfc-editor.org/rfc/rfc9002#section-6.2
        //# A PTO timer expiration event does not indicate packet loss and MUST NOT cause prior unacknowledged
        //# packets to be marked as lost
        self.pto.on_timeout();
        self.route.ecn.on_probe_timeout();
        self.counters.probe_timeouts += 1;
        if self.pto.count() < LAST_TIMEOUT && self.is_filled_meanwhile() {
            self.liveness.on_late(now);
            return false;
        }
        self.liveness.on_probe_timeout(now)
    }

    /// The peer acknowledged something new that was sent on the path. Returns whether the path was silent before.
    pub fn on_acknowledged(&mut self, now: Instant) -> bool {
        self.pto.reset();
        self.liveness.on_acknowledged(now)
    }

    /// An authentic packet arrived on the path. If it is silent it is asked at once, but once a round trip at most.
    pub fn on_heard(&mut self, now: Instant) {
        self.keep_alive.on_heard_after(now.since(self.active_at));
        self.active_at = now;
        self.route.validation.on_heard(now);
        self.liveness.on_heard(self.rtt().smoothed().max(LEAST_INTERVAL), now);
    }

    /// Returns the time at which a path that is silent in this `company` is to be asked whether it is back.
    pub fn ask_at(&self, max_ack_delay: Duration, company: Company) -> Option<Instant> {
        let pace = self.liveness.pace(self.probe_period(max_ack_delay), company);
        self.liveness.ask_at(self.sent.last_ack_eliciting_at(), pace)
    }

    /// Returns the time at which the probe timeout fires, if anything ack-eliciting is in flight.
    pub fn probe_at(&self, max_ack_delay: Duration) -> Option<Instant> {
        //= https://www.rfc-editor.org/rfc/rfc9002#section-6.2.1
        //# The PTO timer MUST NOT be set if a timer is set for time threshold loss detection; see Section 6.1.2
        if !self.sent.has_ack_eliciting_in_flight() || self.sent.loss_time().is_some() {
            return None;
        }
        let base = self.sent.last_ack_eliciting_at()?;
        Some(base + self.pto.period(self.probe_period(max_ack_delay)))
    }
}

#[cfg(test)]
mod tests;
