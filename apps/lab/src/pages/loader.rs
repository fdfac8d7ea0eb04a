//! A page load as a state machine: what to request when, and how long the load took.

use crate::pages::page::{Event, ObjectId, Page, scaled};
use crate::pages::{LoadError, SERVER_WAIT_LIMIT};
use std::collections::BTreeSet;
use std::time::Duration;

/// The usual factor on recorded delays: they hold the capturing device's network as well as its computing, and taking
/// them in full would bury the network under test.
pub const THINK_SCALE: f64 = 0.1;

/// A request to send now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// The object.
    pub object: ObjectId,
    /// Bytes of the response body, scaled.
    pub size: u64,
    /// Bytes of the request as captured, header and body.
    pub request_size: u64,
    /// The host, as a small number.
    pub domain: u32,
    /// RFC 9218 §4.1: 0 is the most urgent.
    pub urgency: u8,
    /// RFC 9218 §4.2: whether parts of the response are of use.
    pub incremental: bool,
    /// The time that the server is to wait before its first byte, not scaled, at most [`SERVER_WAIT_LIMIT`].
    pub server_wait: Duration,
}

/// The times of the events of an object, since the start of the load; the row of a waterfall.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timing {
    /// The object.
    pub object: ObjectId,
    /// The time of its request.
    pub requested: Option<Duration>,
    /// The arrival of its first byte.
    pub first_byte: Option<Duration>,
    /// The arrival of its last byte.
    pub end: Option<Duration>,
}

/// One load of one page, like a browser with a preload scanner: an object is requested as soon as the recorded event
/// of its initiator happened (request, first byte or end) and the scaled delay has passed.
///
/// All times given are since one epoch of the caller's; those returned are since the start of the load, except for
/// deadlines, which are in the caller's time.
#[derive(Clone, Debug)]
pub struct Loader {
    requests: Vec<Request>,
    /// For each object, what waits for it.
    dependents: Vec<Vec<Dependent>>,
    /// For each object, whether the load waits for it.
    essential: Vec<bool>,
    timings: Vec<Timing>,
    roots: Vec<ObjectId>,
    /// The objects that are to be requested, by time.
    due: BTreeSet<(Duration, ObjectId)>,
    started: Option<Duration>,
}

#[derive(Clone, Copy, Debug)]
struct Dependent {
    object: ObjectId,
    event: Event,
    delay: Duration,
}

impl Loader {
    /// A load of `page` that has not begun. `think_scale` multiplies the recorded delays (usually [`THINK_SCALE`]),
    /// `size_scale` the sizes; a scale that is negative or not a number counts as zero.
    pub fn new(page: &Page, think_scale: f64, size_scale: f64) -> Self {
        let mut dependents = vec![Vec::new(); page.objects.len()];
        let mut roots = Vec::new();
        for object in &page.objects {
            match object.after {
                Some(after) => dependents[after.object.index()].push(Dependent {
                    object: object.id,
                    event: after.event,
                    delay: scaled(after.delay, think_scale),
                }),
                None => roots.push(object.id),
            }
        }
        let requests = page.objects.iter().map(|object| Request {
            object: object.id,
            size: object.scaled_size(size_scale),
            request_size: object.request_size,
            domain: object.domain,
            urgency: object.priority.urgency(),
            incremental: object.incremental(),
            server_wait: object.recorded_server_wait.min(SERVER_WAIT_LIMIT),
        });
        let untouched = |object: ObjectId| Timing { object, requested: None, first_byte: None, end: None };
        Self {
            requests: requests.collect(),
            dependents,
            essential: page.objects.iter().map(|object| object.before_onload).collect(),
            timings: page.objects.iter().map(|object| untouched(object.id)).collect(),
            roots,
            due: BTreeSet::new(),
            started: None,
        }
    }

    /// The requests to send at `now`, in the order in which they became due. The first call starts the load.
    pub fn ready(&mut self, now: Duration) -> Vec<Request> {
        if self.started.is_none() {
            self.started = Some(now);
            self.due.extend(self.roots.iter().map(|root| (now, *root)));
        }
        let mut requests = Vec::new();
        while let Some((_, object)) = self.due.first().copied().filter(|(at, _)| *at <= now) {
            self.due.pop_first();
            self.timings[object.index()].requested = Some(self.elapsed(now));
            // May add what is due at once, to be found by the next turn.
            self.happened(object, Event::Request, now);
            requests.push(self.requests[object.index()]);
        }
        requests
    }

    /// The first byte of `object` arrived; telling it again changes nothing.
    ///
    /// # Errors
    /// The page has no such object, or it was not requested.
    pub fn on_first_byte(&mut self, object: ObjectId, now: Duration) -> Result<(), LoadError> {
        let elapsed = self.elapsed(now);
        let timing = self.requested(object)?;
        if timing.first_byte.is_none() {
            timing.first_byte = Some(elapsed);
            self.happened(object, Event::FirstByte, now);
        }
        Ok(())
    }

    /// The last byte of `object` arrived, and the first, if nobody said so before; telling it again changes nothing.
    ///
    /// # Errors
    /// The page has no such object, or it was not requested.
    pub fn on_end(&mut self, object: ObjectId, now: Duration) -> Result<(), LoadError> {
        self.on_first_byte(object, now)?;
        let elapsed = self.elapsed(now);
        let timing = self.requested(object)?;
        if timing.end.is_none() {
            timing.end = Some(elapsed);
            self.happened(object, Event::End, now);
        }
        Ok(())
    }

    /// Returns the time at which to call [`Loader::ready`] next, in the caller's time; `None` if only arriving bytes
    /// can lead to requests.
    pub fn next_deadline(&self) -> Option<Duration> {
        match self.started {
            Some(_) => self.due.first().map(|(at, _)| *at),
            None => Some(Duration::ZERO),
        }
    }

    /// Returns true if every object that the load event waits for is there.
    pub fn is_loaded(&self) -> bool {
        self.essential_ends().all(|end| end.is_some())
    }

    /// Returns true if every object of the page is there.
    pub fn is_complete(&self) -> bool {
        self.timings.iter().all(|timing| timing.end.is_some())
    }

    /// The page load time: from the start to the last byte of the last object that the load event waits for; `None`
    /// until then.
    pub fn page_load_time(&self) -> Option<Duration> {
        // `None` is smaller than every time: look for it first.
        if self.is_loaded() { self.essential_ends().max().flatten() } else { None }
    }

    /// Returns the times of each object so far, in the order of the page.
    pub fn timings(&self) -> &[Timing] {
        &self.timings
    }

    fn essential_ends(&self) -> impl Iterator<Item = Option<Duration>> {
        let rows = self.timings.iter().zip(&self.essential);
        rows.filter(|(_, essential)| **essential).map(|(timing, _)| timing.end)
    }

    fn elapsed(&self, now: Duration) -> Duration {
        self.started.map_or(Duration::ZERO, |started| now.saturating_sub(started))
    }

    fn requested(&mut self, object: ObjectId) -> Result<&mut Timing, LoadError> {
        let timing = self.timings.get_mut(object.index()).ok_or(LoadError::Unknown(object))?;
        timing.requested.map(|_| timing).ok_or(LoadError::NotRequested(object))
    }

    /// Gives a time to each object that waited for `event` of `object`.
    fn happened(&mut self, object: ObjectId, event: Event, now: Duration) {
        let waiting = self.dependents[object.index()].iter().filter(|dependent| dependent.event == event);
        self.due.extend(waiting.map(|dependent| (now.saturating_add(dependent.delay), dependent.object)));
    }
}

#[cfg(test)]
mod tests;
