//! The frame scheduler: what goes next. The scheduler says where; frames that find no path wait for the next round.

use crate::connection::control::ControlFrame;
use crate::connection::send::Sender;
use crate::connection::send::packet_builder::PacketBuilder;
use crate::connection::send::transmission_round::{LEAST_ROOM, TransmissionRound};
use crate::recovery_token::RecoveryToken;
use crate::stream::StreamId;
use crate::time::Instant;
use crate::trace::TraceEvent;
use crate::wire::frame::Frame;
use hvq_scheduler::{Content, Expectation, History, Item, PathSet, PathState, PathView, Placement};
use smallvec::SmallVec;
use std::time::Duration;

/// Streams that may be told to wait before a round stops asking.
const PATIENCE: usize = 32;
/// The transport's reading of a placement: what the policy said, as far as it can be done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::connection) enum Choice {
    /// On the path with this index, this many bytes of the item at most.
    On(usize, usize),
    /// A copy on each.
    OnEach(PathSet),
    /// Not now.
    Wait,
}

/// Bytes of a stream that were written, and what the policy expects of them.
struct Written {
    stream: StreamId,
    bytes: usize,
    expectation: Option<Expectation>,
}

impl Sender<'_> {
    /// Offers everything that waits, in order of importance, until no path has room.
    pub(in crate::connection) fn run_frame_scheduler(&mut self, round: &mut TransmissionRound) {
        // A policy that held something back is asked again when there is a path for it.
        self.scheduler.on_round();
        if round.views.is_empty() {
            return;
        }
        self.place_acknowledgements(round);
        self.place_post_handshake(round);
        self.place_control(round);
        self.place_datagrams(round);
        self.place_streams(round);
        self.bundle_acknowledgements(round);
        self.guard_against_stalls(round);
    }

    /// Offers what may leave before the handshake is complete: streams, datagrams and what concerns them, and on a server
    /// acknowledgements (RFC 9001 §4.6, RFC 9000 §12.5).
    pub(in crate::connection) fn run_zero_rtt_scheduler(&mut self, round: &mut TransmissionRound) {
        // A policy that held something back is asked again when there is a path for it.
        self.scheduler.on_round();
        if round.views.is_empty() {
            return;
        }
        if self.keys.are_installed() {
            self.place_acknowledgements(round);
        }
        self.place_control(round);
        self.place_datagrams(round);
        self.place_streams(round);
        self.guard_against_stalls(round);
    }

    /// Asks the policy about `item`, and distrusts the answer: a path without room counts as [`Choice::Wait`], and who names
    /// no usable path is overruled. Nothing waits for a silent path while another is there, whatever the policy.
    pub(in crate::connection) fn ask(&mut self, item: &Item, round: &TransmissionRound) -> Choice {
        let exempt = matches!(item.content, Content::Acknowledgement { .. });
        let wide = round.wide(item);
        // Who takes the whole item takes a part of it, too.
        let able = round.able(item.bytes + item.header).intersection(wide);
        if self.scheduler.is_overruled() && !exempt {
            return overrule(item, able, round);
        }
        let can_take = |index: usize, bytes: usize| {
            exempt
                || able.contains(index)
                || bytes < item.bytes && wide.contains(index) && round.can_take(index, bytes + item.header)
        };
        let all_fit = exempt || able == PathSet::first(round.views.len());
        let wait = |index: usize, view: &PathView| self.wait_behind_open(item, round, index, view);
        let fitting = if all_fit { None } else { fitting(able, wide, round, wait) };
        match self.scheduler.place(item, fitting.as_deref().unwrap_or(&round.views)) {
            // The item never fits there: a policy that does not look at sizes would wait for ever.
            Placement::On { path, .. } if round.index(path).is_some_and(|index| !wide.contains(index)) => {
                overrule(item, able, round)
            }
            Placement::On { path, bytes } => {
                let bytes = bytes.clamp(1, item.bytes.max(1));
                match round.index(path).filter(|index| round.may_name(*index, item.content)) {
                    Some(index) if can_take(index, bytes) => Choice::On(index, bytes),
                    Some(_) => Choice::Wait,
                    None => overrule(item, able, round),
                }
            }
            Placement::OnEach(set) => {
                if !set.iter().any(|index| round.may_name(index, item.content)) {
                    return overrule(item, able, round);
                }
                let may_copy = |index: &usize| round.may_copy(*index, item.content);
                let named = set.iter().filter(may_copy);
                let able: PathSet = named.filter(|index| can_take(*index, item.bytes)).collect();
                if able.is_empty() { Choice::Wait } else { Choice::OnEach(able) }
            }
            Placement::Wait => Choice::Wait,
            Placement::WaitAtMost(longest) => {
                self.scheduler.wake_by(round.now + longest);
                Choice::Wait
            }
        }
    }

    fn place_post_handshake(&mut self, round: &mut TransmissionRound) {
        while self.handshake.post.has_pending() && round.has_budget() {
            let bytes = self.handshake.post.pending_bytes().min(1000);
            let item = self.item(Content::Handshake, bytes, round.now);
            let Choice::On(index, _) = self.single(&item, round) else { return };
            let room = self.prepare(round, index, LEAST_ROOM);
            let Some((frame, token)) = self.handshake.post.next_frame(room) else { return };
            self.put(round, index, &frame, Some(token));
        }
    }

    /// Asks the policy like [`Self::ask`], for content that is sent once: of several paths the first is taken.
    fn single(&mut self, item: &Item, round: &TransmissionRound) -> Choice {
        match self.ask(item, round) {
            Choice::OnEach(set) => {
                set.iter().next().map_or(Choice::Wait, |index| Choice::On(index, item.bytes))
            }
            choice => choice,
        }
    }

    fn place_control(&mut self, round: &mut TransmissionRound) {
        self.collect_control(round.now);
        if self.control.is_empty() {
            return;
        }
        let mut waiting = Vec::new();
        while let Some(control) = self.control.pop() {
            if !round.has_budget() || !self.place_one_control(round, &control) {
                waiting.push(control);
            }
        }
        self.control.put_back(waiting.into_iter());
    }

    fn place_one_control(&mut self, round: &mut TransmissionRound, control: &ControlFrame) -> bool {
        let bytes = control.frame.encoded_size();
        let item = Item { history: control.history, ..self.item(Content::Control, bytes, round.now) };
        match self.ask(&item, round) {
            Choice::On(index, _) => self.write_copy(round, index, &control.frame, control.token.clone()),
            Choice::OnEach(set) => {
                set.iter()
                    .filter(|i| self.write_copy(round, *i, &control.frame, control.token.clone()))
                    .count()
                    > 0
            }
            Choice::Wait => false,
        }
    }

    /// Writes a frame that is already built, if it fits into a packet of path `index`.
    fn write_copy(
        &mut self,
        round: &mut TransmissionRound,
        index: usize,
        frame: &Frame,
        token: Option<RecoveryToken>,
    ) -> bool {
        let bytes = frame.encoded_size();
        if self.prepare(round, index, bytes) < bytes {
            return false;
        }
        self.put(round, index, frame, token);
        true
    }

    fn place_datagrams(&mut self, round: &mut TransmissionRound) {
        while round.has_budget() {
            let Some(waiting) = self.datagrams.peek(round.now) else { return };
            let item = Item {
                header: waiting.header,
                priority: waiting.priority,
                message: waiting.message,
                ..self.item(Content::Datagram, waiting.bytes, round.now)
            };
            if !round.carries(&item) {
                // It was queued for a path that is gone or has become narrow.
                self.datagrams.discard();
                continue;
            }
            let choice = self.ask(&item, round);
            let first = match choice {
                Choice::On(index, _) => index,
                Choice::OnEach(set) => set.iter().next().unwrap_or(0),
                Choice::Wait => return,
            };
            let room = self.prepare(round, first, waiting.bytes + waiting.header);
            if room == 0 {
                return;
            }
            let Some((frame, token)) = self.datagrams.take(room) else {
                // Only what the path's connection ID has grown since the round began can be the reason.
                self.datagrams.discard();
                continue;
            };
            self.put(round, first, &frame, Some(token.clone()));
            if let Choice::OnEach(set) = choice {
                for index in set.iter().filter(|index| *index != first) {
                    self.write_copy(round, index, &frame, Some(token.clone()));
                }
            }
        }
    }

    fn place_streams(&mut self, round: &mut TransmissionRound) {
        let mut after = None;
        let mut waits = 0;
        while round.has_budget() && waits < PATIENCE {
            let Some(key) = self.streams.next_sendable(after) else { return };
            if !round.has_room(1) {
                return;
            }
            if !self.place_one_stream(round, key.id) {
                after = Some(key);
                waits += 1;
            }
        }
    }

    /// Places the next frame of stream `id`; false if it has to wait.
    fn place_one_stream(&mut self, round: &mut TransmissionRound, id: StreamId) -> bool {
        let Some(offer) = self.streams.offer(id, round.now) else { return false };
        let in_message = offer.message.map_or(usize::MAX, |message| message.remaining);
        let frame = round.largest_frame.saturating_sub(STREAM_HEADER).min(in_message);
        let item = Item {
            bytes: offer.bytes.min(frame).max(1),
            header: STREAM_HEADER,
            priority: offer.priority,
            message: offer.message,
            pending: offer.bytes.max(1),
            head_of_line_delay: offer.arrival.since(round.now),
            history: offer.history,
            credit: offer.credit,
            ..self.item(Content::Stream { id: id.0 }, 1, round.now)
        };
        match self.ask(&item, round) {
            // A policy that takes the whole item means the packet: what else fits of the message rides along.
            Choice::On(index, most) if most >= item.bytes => {
                let written = self.write_stream(round, [index], &item, in_message.max(1));
                let expectation = self.scheduler.expected();
                self.trace_placement(round, index, Written { stream: id, bytes: written, expectation });
                if written >= item.bytes {
                    self.repeat_stream(round, index, &item, in_message.saturating_sub(written));
                }
                written > 0
            }
            Choice::On(index, most) => {
                let written = self.write_stream(round, [index], &item, most);
                let expectation = self.scheduler.expected();
                self.trace_placement(round, index, Written { stream: id, bytes: written, expectation });
                written > 0
            }
            Choice::OnEach(set) => self.write_stream(round, set.iter(), &item, item.bytes) > 0,
            Choice::Wait => false,
        }
    }

    /// Writes more of the stream of `item` to path `index`, up to `left` bytes, as often as the policy lets it go unasked
    /// and as long as nothing else is due before.
    fn repeat_stream(&mut self, round: &mut TransmissionRound, index: usize, item: &Item, mut left: usize) {
        let Content::Stream { id } = item.content else { return };
        if left < item.bytes {
            return;
        }
        let Some(view) = round.views.get(index).filter(|_| item.history == History::Fresh) else { return };
        for _ in 0..self.scheduler.repeats(item, view) {
            let is_next = self.streams.next_sendable(None).is_some_and(|next| next.id.0 == id);
            if !is_next
                || left < item.bytes
                || !round.has_budget()
                || !round.can_take(index, item.bytes + item.header)
            {
                return;
            }
            let written = self.write_stream(round, [index], item, left);
            if written == 0 {
                return;
            }
            let (stream, expectation) = (StreamId(id), None);
            self.trace_placement(round, index, Written { stream, bytes: written, expectation });
            left = left.saturating_sub(written);
        }
    }

    /// Writes at most `most` bytes of the stream of `item` on the first of `paths`, and copies on the others. Returns the
    /// bytes of data and end that were written.
    fn write_stream(
        &mut self,
        round: &mut TransmissionRound,
        paths: impl IntoIterator<Item = usize>,
        item: &Item,
        most: usize,
    ) -> usize {
        let Content::Stream { id } = item.content else { return 0 };
        let id = StreamId(id);
        let mut paths = paths.into_iter();
        let Some(index) = paths.next() else { return 0 };
        let least = item.bytes.min(most).saturating_add(STREAM_HEADER).min(LEAST_ROOM);
        let room = self.prepare(round, index, least);
        let Some(by) = round.views.get(index).map(|view| view.id) else { return 0 };
        let Some(stream) = self.streams.take(id, room, most, by) else { return 0 };
        let token = RecoveryToken::from(&stream);
        let written = stream.data.len() + usize::from(stream.fin);
        let frame = Frame::Stream(stream);
        self.put(round, index, &frame, Some(token.clone()));
        if let Some(view) = round.views.get(index) {
            let queue = view.rate.map_or(Duration::ZERO, |rate| rate.transmission_time(view.backlog));
            self.streams.note_arrival(id, round.now + view.delay + queue);
        }
        let mut copies = PathSet::EMPTY;
        copies.insert(index);
        for index in paths {
            if self.write_copy(round, index, &frame, Some(token.clone())) {
                copies.insert(index);
            }
        }
        if copies.len() > 1 {
            self.note_copies(round, &token, copies);
        }
        written
    }

    /// Takes note of `copies` of the data of `token`: if one is on a path that answers, those on silent paths need not be offered to
    /// others.
    fn note_copies(&mut self, round: &TransmissionRound, token: &RecoveryToken, copies: PathSet) {
        let is_silent =
            |index: &usize| round.views.get(*index).is_some_and(|view| view.state == PathState::Silent);
        let silent: PathSet = copies.iter().filter(is_silent).collect();
        if silent == copies {
            return;
        }
        for view in silent.iter().filter_map(|index| round.views.get(index)) {
            self.streams.on_copied(token, view.id);
        }
    }

    /// Tells the tracer what was written of a stream on the path with this index.
    fn trace_placement(&mut self, round: &TransmissionRound, index: usize, written: Written) {
        let Some(tracer) = self.observer.tracer() else { return };
        let Written { stream, bytes, expectation } = written;
        if let Some(view) = round.views.get(index).filter(|_| bytes > 0) {
            let event = TraceEvent::StreamPlaced { path: view.id, stream: stream.0, bytes, expectation };
            tracer.record(round.now, &event);
        }
    }

    /// An item of `content` with default priority and no history.
    #[inline]
    pub(in crate::connection) fn item(&self, content: Content, bytes: usize, now: Instant) -> Item {
        self.scheduler.item(content, bytes, self.streams.credit(), now)
    }

    /// Returns the time until the item fits on the path at `index`, behind the packet that is open there.
    fn wait_behind_open(
        &self,
        item: &Item,
        round: &TransmissionRound,
        index: usize,
        view: &PathView,
    ) -> Duration {
        let open = round.builders.get(index).map_or(0, PacketBuilder::used);
        let next = (item.bytes + item.header + view.overhead).min(view.datagram_size);
        self.paths.get(view.id).map_or(Duration::ZERO, |path| path.wait_for_room(open + next, round.now))
    }

    /// No policy can stall the connection: if all waits and nothing is in flight where an answer is to be expected, it is
    /// asked again soon, and overruled after a few times.
    fn guard_against_stalls(&mut self, round: &TransmissionRound) {
        let wants = self.streams.has_sendable() || !self.control.is_empty() || self.datagrams.has_waiting();
        let mut answering = self.paths.open().filter(|path| !path.liveness.is_silent());
        let quiet = answering.all(|path| !path.sent.has_ack_eliciting_in_flight());
        if round.placed || !wants || !quiet || !round.has_room(1) {
            self.scheduler.on_progress();
            return;
        }
        self.scheduler.on_stall(round.now);
    }
}

/// The usable path with the most room of those in `able`, when the policy is of no help.
fn overrule(item: &Item, able: PathSet, round: &TransmissionRound) -> Choice {
    if let Content::Acknowledgement { of } = item.content {
        return round.way_back(of).map_or(Choice::Wait, |index| Choice::On(index, item.bytes));
    }
    let room = |index: &usize| round.views.get(*index).map_or(0, |view| view.send_allowance);
    able.intersection(round.usable)
        .iter()
        .max_by_key(room)
        .map_or(Choice::Wait, |index| Choice::On(index, item.bytes))
}

/// The views with those that have room, but not for all of an item that only the paths in `able` take, shown as full, and
/// those that are not `wide` enough for it as silent; `None` if there are none. A policy that sent it there would wait without
/// knowing, for room or for ever, while another path may have some. `wait` tells how long a full one is waited for.
fn fitting(
    able: PathSet,
    wide: PathSet,
    round: &TransmissionRound,
    wait: impl Fn(usize, &PathView) -> Duration,
) -> Option<SmallVec<[PathView; 2]>> {
    let is_short = |index: usize, view: &PathView| view.can_send() && !able.contains(index);
    if wide.len() == round.views.len()
        && !round.views.iter().enumerate().any(|(index, view)| is_short(index, view))
    {
        return None;
    }
    let shown = |(index, view): (usize, &PathView)| {
        let state = if wide.contains(index) { view.state } else { PathState::Silent };
        match is_short(index, view) {
            true => PathView { send_allowance: 0, next_send: wait(index, view), state, ..*view },
            false => PathView { state, ..*view },
        }
    };
    Some(round.views.iter().enumerate().map(shown).collect())
}

/// Bytes of a STREAM frame's header at most that are usual: type, id, offset, length.
const STREAM_HEADER: usize = 12;
