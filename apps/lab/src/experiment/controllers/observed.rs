//! A download whose round-trip times are noted.

use crate::workload::bulk::Download;
use crate::world::{Application, Net, Side};
use hvq_scheduler::PathId;
use hvq_transport::connection::{Connection, Event};
use hvq_transport::error::ConnectionError;
use hvq_transport::time::Instant;
use hvq_transport::trace::{TraceEvent, Tracer};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A round trip of data, as the sender measured it.
#[derive(Clone, Copy, Debug)]
pub(super) struct RttSample {
    /// The time of the sample, since the start.
    pub(super) at: Duration,
    /// The path of the data.
    pub(super) path: PathId,
    /// The round-trip time.
    pub(super) rtt: Duration,
}

/// The samples so far, shared with the connection that takes them.
#[derive(Clone, Debug, Default)]
pub(super) struct RttSamples(Arc<Mutex<Vec<RttSample>>>);

impl RttSamples {
    /// The samples, which are taken away.
    pub(super) fn take(&self) -> Vec<RttSample> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Tracer for RttSamples {
    fn record(&mut self, now: Instant, event: &TraceEvent) {
        if let TraceEvent::RttSampled { sent_on, rtt, .. } = *event {
            let sample = RttSample { at: now.since(Net::START), path: sent_on, rtt };
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(sample);
        }
    }
}

/// The download, with its server watched.
#[derive(Debug)]
pub(super) struct Observed {
    /// The download.
    pub(super) download: Download,
    /// The measurements of the server.
    pub(super) samples: RttSamples,
    /// The reason for which the connection ended too early, if it did.
    pub(super) failure: Option<String>,
}

impl Application for Observed {
    fn on_event(&mut self, side: Side, event: &Event, connection: &mut Connection, now: Instant) {
        if (side, event) == (Side::Server, &Event::Connected) {
            connection.set_tracer(Box::new(self.samples.clone()));
        }
        self.download.on_event(side, event, connection, now);
    }

    fn on_closed(&mut self, side: Side, error: &ConnectionError) {
        self.failure = Some(format!("{side:?} closed: {error}"));
    }

    fn wake(&self) -> Option<Instant> {
        if self.failure.is_some() { None } else { self.download.wake() }
    }

    fn on_wake(&mut self, net: &mut Net) {
        self.download.on_wake(net);
    }

    fn is_done(&self) -> bool {
        self.failure.is_some()
    }
}
