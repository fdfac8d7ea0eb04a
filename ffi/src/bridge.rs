//! A scheduler of C as a [`Scheduler`] of the transport.

use crate::config::*;
use crate::error::{Failure, HVQ_ERR_ARGUMENT, HVQ_ERR_NULL};
use crate::guard::Versioned;
use crate::scheduler::*;
use ::hvq_scheduler::{
    Bandwidth, Content, Flights, Hints, History, Item, Metering, Observation, PathId, PathSet, PathState,
    PathView, PerMille, Placement, Role, Scheduler, Sharing,
};
use std::ffi::c_void;
use std::time::Duration;
use std::{mem, ptr};

// SAFETY: the struct begins with its size and holds pointers and functions, for which zeros are NULL.
unsafe impl Versioned for hvq_scheduler {
    const FIRST_SIZE: usize = mem::offset_of!(Self, first);

    fn defaults() -> Self {
        Self {
            size: mem::size_of::<Self>(),
            user: ptr::null_mut(),
            create: None,
            destroy: None,
            place: None,
            observe: None,
            repeats: None,
            first: None,
        }
    }
}

/// A table whose functions may be called from any thread, as its documentation says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table(hvq_scheduler);

// SAFETY: what `user` points to stands calls from several threads: the documentation of the table asks for it.
unsafe impl Send for Table {}
// SAFETY: as above.
unsafe impl Sync for Table {}

impl Table {
    /// The table, if it can place.
    pub(crate) fn new(table: hvq_scheduler) -> Result<Self, Failure> {
        if table.place.is_none() {
            return Err(Failure::because(HVQ_ERR_NULL, "a scheduler without the function place"));
        }
        Ok(Self(table))
    }

    /// A scheduler for one connection.
    pub(crate) fn scheduler(self) -> Box<dyn Scheduler> {
        // SAFETY: the table's functions may be called with its `user`.
        let state = self.0.create.map_or(self.0.user, |create| unsafe { create(self.0.user) });
        Box::new(Foreign { table: self, state, views: Vec::new() })
    }
}

/// The scheduler of one connection.
#[derive(Debug)]
struct Foreign {
    table: Table,
    state: *mut c_void,
    /// C's views of the paths; kept for their memory.
    views: Vec<hvq_path_view>,
}

// SAFETY: the state is used by one thread at a time, that of the endpoint.
unsafe impl Send for Foreign {}

impl Drop for Foreign {
    fn drop(&mut self) {
        if let (Some(destroy), Some(_)) = (self.table.0.destroy, self.table.0.create) {
            // SAFETY: the state comes from `create`, and nothing uses it any more.
            unsafe { destroy(self.state) };
        }
    }
}

impl Scheduler for Foreign {
    fn name(&self) -> &'static str {
        "custom"
    }

    fn place(&mut self, item: &Item, paths: &[PathView]) -> Placement {
        let Some(place) = self.table.0.place else { return Placement::Wait };
        self.views.clear();
        self.views.extend(paths.iter().map(view_of));
        let (item, mut answer) = (item_of(item), hvq_placement::default());
        // SAFETY: all pointers are valid for the call, and the state is that of this connection.
        unsafe { place(self.state, &item, self.views.as_ptr(), self.views.len(), &mut answer) };
        placement_of(&answer, paths.len())
    }

    fn first(&mut self, flights: &Flights, paths: &[PathView]) -> usize {
        let Some(first) = self.table.0.first else { return 0 };
        self.views.clear();
        self.views.extend(paths.iter().map(view_of));
        let flights = hvq_flights { sent: flights.sent as u64, received: flights.received as u64 };
        // SAFETY: as above.
        unsafe { first(self.state, &flights, self.views.as_ptr(), self.views.len()) }
    }

    fn repeats(&mut self, item: &Item, path: &PathView) -> usize {
        let Some(repeats) = self.table.0.repeats else { return 0 };
        let (item, path) = (item_of(item), view_of(path));
        // SAFETY: as above.
        unsafe { repeats(self.state, &item, &path) }
    }

    fn observe(&mut self, observation: &Observation) {
        if let Some(observe) = self.table.0.observe {
            // SAFETY: as above.
            unsafe { observe(self.state, &observation_of(observation)) };
        }
    }
}

/// Nanoseconds, as many as fit.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn content_of(content: Content) -> (u32, u32, u64) {
    match content {
        Content::Acknowledgement { of } => (HVQ_CONTENT_ACKNOWLEDGEMENT, of.0, 0),
        Content::Handshake => (HVQ_CONTENT_HANDSHAKE, 0, 0),
        Content::Control => (HVQ_CONTENT_CONTROL, 0, 0),
        Content::Stream { id } => (HVQ_CONTENT_STREAM, 0, id),
        Content::Datagram => (HVQ_CONTENT_DATAGRAM, 0, 0),
    }
}

fn item_of(item: &Item) -> hvq_item {
    let (content, acknowledged_path, stream) = content_of(item.content);
    let (history, earlier_path, age) = match item.history {
        History::Fresh => (HVQ_HISTORY_FRESH, 0, 0),
        History::Lost { on } => (HVQ_HISTORY_LOST, on.0, 0),
        History::Unacknowledged { on, age } => (HVQ_HISTORY_UNACKNOWLEDGED, on.0, nanos(age)),
    };
    hvq_item {
        content,
        acknowledged_path,
        stream,
        bytes: item.bytes as u64,
        urgency: item.priority.urgency,
        incremental: item.priority.incremental.into(),
        is_server: (item.role == Role::Server).into(),
        has_message: item.message.is_some().into(),
        history,
        message_remaining: item.message.map_or(0, |message| message.remaining as u64),
        message_deadline: item.message.and_then(|message| message.deadline).map_or(u64::MAX, nanos),
        pending: item.pending as u64,
        credit: item.credit,
        waits_for: nanos(item.head_of_line_delay),
        age,
        now: nanos(item.now),
        earlier_path,
        reserved: 0,
    }
}

/// The number of a state.
pub(crate) fn standing_of(state: PathState) -> u32 {
    match state {
        PathState::Available => HVQ_STANDING_AVAILABLE,
        PathState::Backup => HVQ_STANDING_BACKUP,
        PathState::Unvalidated => HVQ_STANDING_UNVALIDATED,
        PathState::Silent => HVQ_STANDING_SILENT,
    }
}

fn view_of(path: &PathView) -> hvq_path_view {
    hvq_path_view {
        id: path.id.0,
        standing: standing_of(path.state),
        room: path.send_allowance as u64,
        resumes: nanos(path.next_send),
        window: path.window as u64,
        in_flight: path.in_flight as u64,
        delay: nanos(path.delay),
        rate: path.rate.map_or(0, Bandwidth::bits_per_second),
        backlog: path.backlog as u64,
        rtt_latest: nanos(path.rtt.latest),
        rtt_smoothed: nanos(path.rtt.smoothed),
        rtt_variance: nanos(path.rtt.variance),
        rtt_minimum: nanos(path.rtt.minimum),
        loss: path.loss.get().into(),
        datagram_size: u32::try_from(path.datagram_size).unwrap_or(u32::MAX),
        hints: hints_of(&path.hints),
    }
}

/// The hints for C.
pub(crate) fn hints_of(hints: &Hints) -> hvq_hints {
    let known = [
        (hints.rate.is_some(), HVQ_HINT_RATE),
        (hints.delay.is_some(), HVQ_HINT_DELAY),
        (hints.loss.is_some(), HVQ_HINT_LOSS),
        (hints.price_per_byte.is_some(), HVQ_HINT_PRICE),
        (hints.rate_back.is_some(), HVQ_HINT_RATE_BACK),
    ];
    hvq_hints {
        known: known.iter().filter(|(is_known, _)| *is_known).map(|(_, bit)| bit).sum(),
        sharing: match hints.shared {
            Sharing::Unknown => HVQ_SHARING_UNKNOWN,
            Sharing::Shared => HVQ_SHARING_SHARED,
            Sharing::Dedicated => HVQ_SHARING_DEDICATED,
            Sharing::Endpoint => HVQ_SHARING_ENDPOINT,
        },
        rate: hints.rate.map_or(0, Bandwidth::bits_per_second),
        delay: hints.delay.map_or(0, nanos),
        price: hints.price_per_byte.unwrap_or(0),
        loss: hints.loss.map_or(0, |loss| loss.get().into()),
        metering: match hints.metering {
            Metering::Unknown => HVQ_METERING_UNKNOWN,
            Metering::Unmetered => HVQ_METERING_UNMETERED,
            Metering::Metered => HVQ_METERING_METERED,
        },
        rate_back: hints.rate_back.map_or(0, Bandwidth::bits_per_second),
    }
}

impl hvq_hints {
    /// The hints for Rust.
    pub(crate) fn decode(&self) -> Result<Hints, Failure> {
        const KNOWN: u32 =
            HVQ_HINT_RATE | HVQ_HINT_DELAY | HVQ_HINT_LOSS | HVQ_HINT_PRICE | HVQ_HINT_RATE_BACK;
        if self.known & !KNOWN != 0 {
            return Err(Failure::because(HVQ_ERR_ARGUMENT, "hints that this library does not know"));
        }
        let shared = match self.sharing {
            HVQ_SHARING_UNKNOWN => Sharing::Unknown,
            HVQ_SHARING_SHARED => Sharing::Shared,
            HVQ_SHARING_DEDICATED => Sharing::Dedicated,
            HVQ_SHARING_ENDPOINT => Sharing::Endpoint,
            _ => return Err(Failure::because(HVQ_ERR_ARGUMENT, "sharing is none of HVQ_SHARING_")),
        };
        let metering = match self.metering {
            HVQ_METERING_UNKNOWN => Metering::Unknown,
            HVQ_METERING_UNMETERED => Metering::Unmetered,
            HVQ_METERING_METERED => Metering::Metered,
            _ => return Err(Failure::because(HVQ_ERR_ARGUMENT, "metering is none of HVQ_METERING_")),
        };
        let is_known = |bit| self.known & bit != 0;
        let loss = PerMille::new(u16::try_from(self.loss).unwrap_or(u16::MAX));
        Ok(Hints {
            rate: is_known(HVQ_HINT_RATE).then(|| Bandwidth::from_bits_per_second(self.rate)),
            rate_back: is_known(HVQ_HINT_RATE_BACK).then(|| Bandwidth::from_bits_per_second(self.rate_back)),
            delay: is_known(HVQ_HINT_DELAY).then(|| Duration::from_nanos(self.delay)),
            loss: is_known(HVQ_HINT_LOSS).then_some(loss),
            price_per_byte: is_known(HVQ_HINT_PRICE).then_some(self.price),
            shared,
            metering,
        })
    }
}

/// Converts the answer of C, with `count` paths listed, into a placement. The transport distrusts the rest of it as it
/// does any policy's.
fn placement_of(answer: &hvq_placement, count: usize) -> Placement {
    match answer.kind {
        HVQ_PLACE_ON => {
            let bytes = usize::try_from(answer.bytes).unwrap_or(usize::MAX);
            Placement::On { path: PathId(answer.path), bytes }
        }
        HVQ_PLACE_ON_EACH => {
            let listed = (0..count.min(PathSet::CAPACITY)).filter(|index| answer.set & (1 << index) != 0);
            let set: PathSet = listed.collect();
            if set.is_empty() { Placement::Wait } else { Placement::OnEach(set) }
        }
        _ if answer.wait > 0 => Placement::WaitAtMost(Duration::from_nanos(answer.wait)),
        _ => Placement::Wait,
    }
}

fn observation_of(observation: &Observation) -> hvq_observation {
    let (kind, path, what) = match *observation {
        Observation::Placed { path, content, bytes } => {
            (HVQ_OBSERVED_PLACED, path, Some((content, bytes, Duration::ZERO)))
        }
        Observation::Acknowledged { path, content, bytes, delay } => {
            (HVQ_OBSERVED_ACKNOWLEDGED, path, Some((content, bytes, delay)))
        }
        Observation::Lost { path, content, bytes, delay } => {
            (HVQ_OBSERVED_LOST, path, Some((content, bytes, delay)))
        }
        Observation::PathGone { path } => (HVQ_OBSERVED_PATH_GONE, path, None),
    };
    let (content, bytes, delay) = what.unwrap_or((Content::Control, 0, Duration::ZERO));
    let (content, acknowledged_path, stream) = content_of(content);
    hvq_observation {
        kind,
        path: path.0,
        content,
        acknowledged_path,
        stream,
        bytes: bytes as u64,
        delay: nanos(delay),
    }
}
