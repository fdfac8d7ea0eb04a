//! All streams of a connection: commands and frames in, events, control frames and data out.

mod application;
mod audit;
mod backlog;
mod control;
mod counters;
mod events;
mod incoming;
mod limits;
mod output;
mod recovery;
#[cfg(test)]
mod tests;
mod writers;

pub use application::{ReadError, ReadOutcome, WriteError};
pub use audit::Accounts;
pub use events::{Interest, StreamEvent};
pub use limits::StreamLimits;
pub use output::Offer;

use super::blocks::Blocks;
use super::flow::{ReceiveWindow, SendCredit};
use super::meter::Meters;
use super::priority::{Agenda, SendOrder};
use super::receive::ReceiveHalf;
use super::send::SendHalf;
use super::send_state::SendState;
use super::table::Table;
use crate::Role;
use crate::wire::stream_id::{Direction, StreamId};
use crate::wire::transport_parameters::TransportParameters;
use control::Control;
use counters::{LocalStreams, PerDirection, RemoteStreams};
use events::StreamEvents;
use limits::PeerLimits;
use std::collections::BTreeSet;
use std::time::Duration;
use writers::Writers;

/// The round-trip time that RFC 9002 §6.2.2 assumes of a network that was not measured.
const INITIAL_RTT: Duration = Duration::from_millis(333);

/// A stream; a half is absent if the stream's direction does not have it.
#[derive(Debug)]
struct Stream {
    send: Option<SendHalf>,
    receive: Option<ReceiveHalf>,
}

impl Stream {
    fn is_done(&self) -> bool {
        //= https://www.rfc-editor.org/rfc/rfc9000#section-4.4
        //# Both endpoints MUST maintain flow control state for the stream in the unterminated direction until
        //# that direction enters a terminal state.
        self.send.as_ref().is_none_or(|send| send.state().is_terminal())
            && self.receive.as_ref().is_none_or(|receive| receive.state().is_terminal())
    }
}

/// All streams of a connection (RFC 9000 §2–4).
///
/// A stream that the peer opened takes no memory before a frame names it or the application accepts it. A stream is
/// freed when the peer has, or will not get, all that was sent on it, and the application knows how the other half
/// ended. Only then may the peer open another one, so that its pace is bound by what the application handles.
#[derive(Debug)]
pub struct Streams {
    role: Role,
    limits: StreamLimits,
    peer: PeerLimits,
    map: Table<Stream>,
    local: PerDirection<LocalStreams>,
    remote: PerDirection<RemoteStreams>,
    credit: SendCredit,
    /// The limit that DATA_BLOCKED reported last.
    blocked_at: Option<u64>,
    window: ReceiveWindow,
    /// The bytes beyond those consumed that the next renewal of `window` may grant.
    credit_left: u64,
    agenda: Agenda,
    control: BTreeSet<Control>,
    events: StreamEvents,
    rtt: Duration,
    /// The congestion windows of all paths together, in bytes.
    windows: usize,
    /// Bytes per stream that wait for transmission or acknowledgement at most.
    send_capacity: usize,
    empty_frames: u32,
    writers: Writers,
    /// Memory for copies of what is written.
    blocks: Blocks,
    meters: Meters,
}

impl Streams {
    /// No streams, for an endpoint in `role` that announces the limits in `local`.
    pub fn new(role: Role, local: StreamLimits) -> Self {
        Self {
            role,
            peer: PeerLimits::default(),
            map: Table::default(),
            local: PerDirection::default(),
            remote: PerDirection {
                bidirectional: RemoteStreams::new(local.max_streams_bidi),
                unidirectional: RemoteStreams::new(local.max_streams_uni),
            },
            credit: SendCredit::default(),
            blocked_at: None,
            window: ReceiveWindow::new(local.max_data, local.max_window),
            credit_left: u64::MAX,
            agenda: Agenda::default(),
            control: BTreeSet::new(),
            events: StreamEvents::default(),
            rtt: INITIAL_RTT,
            windows: 0,
            send_capacity: local.send_capacity(0),
            empty_frames: 0,
            writers: Writers::default(),
            limits: local,
            blocks: Blocks::default(),
            meters: Meters::default(),
        }
    }

    /// The limits that the peer's transport parameters announce. A limit that is already higher stays.
    pub fn set_peer_limits(&mut self, parameters: &TransportParameters) {
        self.peer = PeerLimits::new(parameters);
        self.writers.on_limits();
        self.raise_connection_limit(parameters.initial_max_data);
        self.raise_stream_count(Direction::Bidirectional, parameters.initial_max_streams_bidi);
        self.raise_stream_count(Direction::Unidirectional, parameters.initial_max_streams_uni);
        let ids: Vec<StreamId> = self.map.ids().collect();
        let supports_all = self.peer.reliable_size(u64::MAX) > 0;
        for id in ids {
            let limit = self.peer.stream_data(self.role, id);
            self.change(id, |send| send.raise_limit(limit));
            if !supports_all && self.change(id, SendHalf::promise_nothing) == Some(true) {
                self.control.insert(Control::ResetStream(id));
            }
            self.relist(id);
            self.notify_idle_writer(id);
        }
    }

    /// Nothing that was sent arrived, nor ever will: the peer rejected 0-RTT (RFC 9001 §4.6.2). All of it is sent anew, within
    /// limits that the peer has yet to announce.
    pub fn restart(&mut self) {
        self.peer = PeerLimits::default();
        self.writers.forget_limits();
        self.credit = SendCredit::default();
        self.blocked_at = None;
        self.local.bidirectional.forget_limit();
        self.local.unidirectional.forget_limit();
        let ids: Vec<StreamId> = self.map.ids().collect();
        for id in ids {
            self.change(id, SendHalf::restart);
            self.relist(id);
        }
    }

    /// Returns true if the peer opened a stream or sent anything on one.
    pub fn has_arrivals(&self) -> bool {
        let opened = [&self.remote.bidirectional, &self.remote.unidirectional];
        self.window.received() > 0 || opened.iter().any(|remote| remote.opened() > 0)
    }

    /// Returns true if anything was sent on a stream.
    pub fn has_departures(&self) -> bool {
        let has_sent = |half: &SendHalf| half.state() != SendState::Ready;
        let mut halves = self.map.ids().filter_map(|id| self.map.get(id)?.send.as_ref());
        self.credit.used() > 0 || halves.any(has_sent)
    }

    /// Returns true if more streams were opened than the peer permits, after a [`Self::restart`].
    pub fn exceeds_stream_limits(&self) -> bool {
        [&self.local.bidirectional, &self.local.unidirectional]
            .iter()
            .any(|local| local.opened() > local.limit())
    }

    /// The congestion windows of all paths together, in bytes, which [`StreamLimits::send_buffer`] follows.
    pub fn set_windows(&mut self, windows: usize) {
        self.windows = windows;
        self.send_capacity = self.limits.send_capacity(windows);
    }

    /// The peer is granted no more than `limit` bytes on all streams at first. To be called before it is told.
    pub fn begin_with_credit(&mut self, limit: u64) {
        self.window.begin_with(limit);
    }

    /// The next renewal may permit the peer `bytes` beyond those that were read.
    pub fn set_credit(&mut self, bytes: u64) {
        self.credit_left = bytes;
    }

    /// The bytes that the peer may still send, over all streams.
    #[inline]
    pub fn credit_granted(&self) -> u64 {
        self.window.room()
    }

    /// The limit that the peer knows or is about to be told, over all streams.
    pub fn credit_limit(&self) -> u64 {
        self.window.limit()
    }

    /// The smoothed round-trip time, which the growth of flow control windows is measured by.
    pub fn set_rtt(&mut self, rtt: Duration) {
        self.rtt = rtt;
    }

    /// The next event for the application.
    #[inline]
    pub fn poll_event(&mut self) -> Option<StreamEvent> {
        self.events.pop()
    }

    /// Memory for copies of what is written, which an endpoint lends.
    pub fn blocks(&mut self) -> &mut Blocks {
        &mut self.blocks
    }

    /// Nothing happens for a while: gives back memory that no stream needs.
    pub fn hibernate(&mut self) {
        self.map.hibernate();
    }

    /// Streams that take memory.
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Returns true if no stream takes memory.
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    #[inline]
    fn send_half(&mut self, id: StreamId) -> Option<&mut SendHalf> {
        self.map.get_mut(id)?.send.as_mut()
    }

    #[inline]
    fn receive_half(&mut self, id: StreamId) -> Option<&mut ReceiveHalf> {
        self.map.get_mut(id)?.receive.as_mut()
    }

    fn is_local(&self, id: StreamId) -> bool {
        id.initiator() == self.role
    }

    /// Returns true if the application was told the ID of a stream.
    fn is_known(&self, id: StreamId) -> bool {
        self.is_local(id) || id.index() < self.remote.of(id.direction()).accepted()
    }

    /// Creates the state of a stream that is opened or accepted, or named by a frame of the peer.
    fn create(&mut self, id: StreamId) {
        let unidirectional = id.direction() == Direction::Unidirectional;
        let sends = !unidirectional || self.is_local(id);
        let receives = !unidirectional || !self.is_local(id);
        let limit = self.peer.stream_data(self.role, id);
        let window = ReceiveWindow::new(self.limits.stream_data(self.role, id), self.limits.max_window);
        // Halves are made in their place: they are large.
        let stream = self.map.insert(id, Stream { send: None, receive: None });
        if sends {
            stream.send = Some(SendHalf::new(limit, self.agenda.next_turn()));
        }
        if receives {
            stream.receive = Some(ReceiveHalf::new(window));
        }
    }

    /// Enters a stream into the agenda, or takes it off, after anything about its sending half changed.
    fn relist(&mut self, id: StreamId) {
        let Some(send) = self.map.get_mut(id).and_then(|stream| stream.send.as_mut()) else { return };
        let need = send.need();
        let turn = if send.priority.incremental { send.turn } else { 0 };
        let key = SendOrder { urgency: send.priority.urgency, rank: !send.order, turn, id };
        self.agenda.relist(&mut send.listed, need.map(|need| (key, need)));
        if send.report_block().is_some() {
            self.control.insert(Control::StreamDataBlocked(id));
        }
        if self.is_blocked() && self.blocked_at != Some(self.credit.limit()) {
            self.blocked_at = Some(self.credit.limit());
            self.control.insert(Control::DataBlocked);
        }
    }

    /// Calls [`Self::relist`] if need be, after a change of nothing but what the stream has to send.
    #[inline]
    fn relist_if_due(&mut self, id: StreamId) {
        let Some(send) = self.send_half(id) else { return };
        let need = send.need();
        let is_listed = need.is_some() && send.listed.map(|(_, listed)| listed) == need;
        if !is_listed || send.priority.incremental || self.credit.available() == 0 {
            self.relist(id);
        }
    }

    /// Returns true if the limit of the connection holds data back.
    fn is_blocked(&self) -> bool {
        self.credit.available() == 0 && self.agenda.needs_credit()
    }

    /// Frees a stream if both halves are done, and lets the peer open another one in its place.
    fn free_if_done(&mut self, id: StreamId) {
        if !self.is_known(id) || !self.map.get(id).is_some_and(Stream::is_done) {
            return;
        }
        self.change(id, SendHalf::forget);
        self.map.remove(id);
        self.meters.detach(id);
        if !self.is_local(id) && self.remote.of_mut(id.direction()).on_freed() {
            self.control.insert(Control::MaxStreams(id.direction()));
        }
    }

    /// `bytes` of what was received on a stream left its buffer.
    fn on_consumed(&mut self, id: StreamId, bytes: u64) {
        if bytes == 0 {
            return;
        }
        self.window.consume(bytes);
        self.meters.on_consumed(id, bytes);
        let due = self
            .receive_half(id)
            .and_then(ReceiveHalf::renewable)
            .is_some_and(|window| window.renewal_is_due());
        self.renew(id, due);
    }

    /// Has larger limits announced: the connection's if it is time, and that of stream `id` if its window `is_due`.
    fn renew(&mut self, id: StreamId, is_due: bool) {
        //= https://www.rfc-editor.org/rfc/rfc9000#section-4.2
        //# Therefore, a receiver MUST NOT wait for a STREAM_DATA_BLOCKED or DATA_BLOCKED frame before sending
        //# a MAX_STREAM_DATA or MAX_DATA frame
        if self.window.renewal_is_due() {
            self.control.insert(Control::MaxData);
        }
        if is_due {
            self.control.insert(Control::MaxStreamData(id));
        }
    }

    /// Tells the application, once, that a stream is readable.
    fn notify_reader(&mut self, id: StreamId) {
        if !self.is_known(id) {
            return;
        }
        if let Some(receive) = self.receive_half(id)
            && receive.interest == Interest::Waiting
            && receive.is_readable()
        {
            receive.interest = Interest::Told;
            self.events.push(StreamEvent::Readable(id));
        }
    }

    fn raise_connection_limit(&mut self, limit: u64) {
        if self.credit.raise(limit) {
            self.control.remove(&Control::DataBlocked);
            if self.has_starved() {
                self.wake_starved();
            }
        }
    }

    fn raise_stream_count(&mut self, direction: Direction, limit: u64) {
        let local = self.local.of_mut(direction);
        if local.raise(limit) {
            self.control.remove(&Control::StreamsBlocked(direction));
            if local.stops_waiting() {
                self.events.push(StreamEvent::Available { direction });
            }
        }
    }
}
