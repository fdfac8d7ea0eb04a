//! Acknowledgements: due ones are placed first, others ride along where a packet leaves anyway.

use crate::PathId;
use crate::connection::send::Sender;
use crate::connection::send::frame_scheduler::Choice;
use crate::connection::send::packet_builder::Elicits;
use crate::connection::send::transmission_round::TransmissionRound;
use crate::path::path::Path;
use crate::recovery_token::RecoveryToken;
use crate::wire::frame::Frame;
use hvq_scheduler::Content;
use smallvec::SmallVec;

/// Bytes of a PATH_ACK frame with a few ranges.
const TYPICAL: usize = 24;
/// Bytes that an acknowledgement takes at most of a packet that carries other things.
const LARGEST: usize = 400;

impl Sender<'_> {
    /// Places every acknowledgement that is due.
    pub(in crate::connection) fn place_acknowledgements(&mut self, round: &mut TransmissionRound) {
        let now = round.now;
        for of in self.acknowledgeable(|received| received.ack_due(now)) {
            if let Some(own) = round.index(of).filter(|_| self.paths.are_silent_everywhere()) {
                // A packet that arrived shows that its path works one way; of the others nothing is known.
                self.write_acknowledgement(round, own, of);
                continue;
            }
            let item = self.item(Content::Acknowledgement { of }, TYPICAL, now);
            let asked = self.paths.get(of).is_some_and(|path| path.received.is_asked());
            match self.ask(&item, round) {
                Choice::On(index, _) => {
                    self.write_acknowledgement(round, index, of);
                    let own = round.index(of).filter(|own| *own != index && asked);
                    own.into_iter().for_each(|own| self.answer(round, own, of));
                }
                Choice::OnEach(set) => {
                    for index in set.iter() {
                        self.write_acknowledgement(round, index, of);
                    }
                }
                // An acknowledgement that waits would only arrive later.
                Choice::Wait => self.write_acknowledgement(round, round.way_back(of).unwrap_or(0), of),
            }
        }
    }

    /// Adds acknowledgements that are not due yet to packets that leave anyway, on the path that the policy names or a link of the same
    /// kind.
    pub(in crate::connection) fn bundle_acknowledgements(&mut self, round: &mut TransmissionRound) {
        if round.builders.iter().all(|builder| builder.open.is_none()) {
            return;
        }
        for of in self.acknowledgeable(|received| received.pending()) {
            let item = self.item(Content::Acknowledgement { of }, TYPICAL, round.now);
            let Choice::On(index, _) = self.ask(&item, round) else { continue };
            if let Some(index) = round.leaving_like(index, TYPICAL) {
                self.write_acknowledgement(round, index, of);
            }
        }
    }

    /// Paths, open or abandoned, with something to acknowledge of which `wanted` holds.
    fn acknowledgeable(
        &self,
        wanted: impl Fn(&crate::space::received::Received) -> bool,
    ) -> SmallVec<[PathId; 4]> {
        let mut ids = SmallVec::new();
        // One after the other: faster than to collect them, and nearly always there is one.
        self.paths.all().filter(|path| wanted(&path.received)).for_each(|path| ids.push(path.id));
        ids
    }

    /// Answers on path `own`, on which the peer asked whether it is there, beside the acknowledgement that another path takes:
    /// that one may be dark as well, which nobody knows until it has not answered for a probe timeout.
    ///
    /// The answer has a PING, for one packet is followed by one bare acknowledgement at most (RFC 9000 §13.2.1). It asks for
    /// nothing at once, so that two endpoints do not go on asking each other.
    fn answer(&mut self, round: &mut TransmissionRound, own: usize, of: PathId) {
        let room = self.prepare(round, own, TYPICAL).min(LARGEST);
        let form = self.is_multipath().then_some(of);
        let report = |path: &Path| path.received.report(round.now, ACK_DELAY_EXPONENT, room, form);
        let Some(frame) = self.paths.get(of).filter(|_| room >= TYPICAL).and_then(report) else { return };
        self.put(round, own, &frame, None);
        self.put(round, own, &Frame::Ping, None);
    }

    fn write_acknowledgement(&mut self, round: &mut TransmissionRound, index: usize, of: PathId) {
        let mut index = index;
        let mut room = self.prepare(round, index, TYPICAL).min(LARGEST);
        if room < TYPICAL {
            // The address of that path may be sent no more (RFC 9000 §8.1): any other path tells the peer as well.
            let mut others = (0..round.views.len()).filter(|other| *other != index);
            // If none can, it waits for the next round.
            let other = others.find(|other| self.prepare(round, *other, TYPICAL) >= TYPICAL);
            let Some(other) = other else { return };
            index = other;
            room = self.prepare(round, index, TYPICAL).min(LARGEST);
        }
        let Some((frame, token)) = self.build_acknowledgement(of, room, round.now) else { return };
        self.put(round, index, &frame, Some(token));
        self.probe_return_path(round, index, of);
        self.shorten_report(round, index, of);
    }

    /// Asks for an acknowledgement of the one that was just written to path `index` if it has many ranges: the peer that has seen
    /// them need not be told again (RFC 9000 §13.2.4). Acknowledgements that travel alone are never acknowledged, and would
    /// repeat old ranges for ever. There is one such question in a round trip at most.
    fn shorten_report(&mut self, round: &mut TransmissionRound, index: usize, of: PathId) {
        if !self.paths.any(of).is_some_and(|path| path.received.has_many_ranges()) {
            return;
        }
        let Some(builder) = round.builders.get(index) else { return };
        let asks = builder.open.as_ref().is_some_and(|open| open.elicits == Elicits::Acknowledgement);
        let is_asked =
            self.paths.get(builder.path).is_none_or(|path| path.sent.has_ack_eliciting_in_flight());
        if !asks && !is_asked {
            self.put(round, index, &Frame::Ping, None);
        }
    }

    /// Acknowledgements are never acknowledged themselves: a path that carries those of other paths and nothing else
    /// would not be missed if it died. Every few of them, and before the first where nothing is known of late, a PING asks
    /// whether they arrive, so that a silent path is found out within one probe timeout. Far fewer PINGs leave than arrive, so two endpoints never keep each other busy.
    fn probe_return_path(&mut self, round: &mut TransmissionRound, index: usize, of: PathId) {
        let other = round.views.get(index).filter(|view| view.id != of);
        //= https://www.rfc-editor.org/rfc/rfc9000#section-13.2.1
        //# In that case, an endpoint MUST NOT send an ack-eliciting frame in all packets that would otherwise
        //# be non-ack-eliciting, to avoid an infinite feedback loop of acknowledgments.
        if let Some(path) = other.and_then(|view| self.paths.get_mut(view.id))
            && path.liveness.on_steered(round.now)
            && !path.sent.has_ack_eliciting_in_flight()
        {
            self.put(round, index, &Frame::Ping, None);
        }
    }

    /// Adds an acknowledgement of the path's own packets to the probe that is being built on path `index`: one that is
    /// owed, and on a silent path, which no other acknowledgement takes, a copy of what arrived since it was asked last.
    pub(in crate::connection) fn report_in_probe(&mut self, round: &mut TransmissionRound, index: usize) {
        // A probe that holds little more than its PING reports nothing.
        let Some(builder) = round.builders.get(index).filter(|builder| builder.room() >= TYPICAL) else {
            return;
        };
        let (id, room) = (builder.path, builder.room().min(LARGEST));
        let path = self.paths.get(id).expect("a round is over open paths");
        if !path.liveness.is_silent() {
            if path.received.pending()
                && let Some((frame, token)) = self.build_acknowledgement(id, room, round.now)
            {
                self.put(round, index, &frame, Some(token));
            }
            return;
        }
        let form = self.is_multipath().then_some(id);
        if path.liveness.is_heard()
            && let Some(frame) = path.received.report(round.now, ACK_DELAY_EXPONENT, room, form)
        {
            self.put(round, index, &frame, None);
        }
    }

    /// The ACK or PATH_ACK frame for packets of `of` (RFC 10069 §4.1: either form means path 0, the new one is preferred).
    pub(in crate::connection) fn build_acknowledgement(
        &mut self,
        of: PathId,
        room: usize,
        now: crate::time::Instant,
    ) -> Option<(Frame, RecoveryToken)> {
        //= https://www.rfc-editor.org/rfc/rfc9000#section-13.2.6
        //= type=implication
        //= reason=What came in 1-RTT packets is reported by the agenda alone, which fills 1-RTT packets.
        //# For instance, packets that are protected with 1-RTT keys MUST be acknowledged in packets that are
        //# also protected with 1-RTT keys.
        //= https://www.rfc-editor.org/rfc/rfc9000#section-17.2.3
        //= type=implication
        //= reason=What came in 1-RTT packets is reported by the agenda alone, which fills 1-RTT packets.
        //# An acknowledgment for a 1-RTT packet MUST be carried in a 1-RTT packet.
        let form = self.is_multipath().then_some(of);
        let path = self.paths.any_mut(of)?;
        let frame = path.received.build(now, ACK_DELAY_EXPONENT, room, form)?;
        let largest = path.received.largest()?;
        Some((frame, RecoveryToken::Ack { of, largest }))
    }
}

/// The exponent that this endpoint scales its acknowledgement delays by: the default (RFC 9000 §18.2).
pub(in crate::connection) const ACK_DELAY_EXPONENT: u8 = 3;
