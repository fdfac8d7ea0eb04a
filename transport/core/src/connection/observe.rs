//! Observation of a connection: its counters, and the tracer that is told what happens.

use crate::PathId;
use crate::connection::stats::{Counters, FrameCounter};
use crate::connection::{Event, PathEvent, TransportConfig};
use crate::path::paths::Paths;
use crate::time::Instant;
use crate::trace::{Growth, HandshakeProgress, PathChange, PathMetrics, Side, Subject, TraceEvent, Tracer};
use crate::wire::connection_id::ConnectionId;

/// The counters of a connection, and its tracer, if it has one.
#[derive(Default)]
pub(in crate::connection) struct Observer {
    tracer: Option<Box<dyn Tracer>>,
    counters: Counters,
}

impl Observer {
    /// Asks the configured factory for a tracer of `subject`, and tells it how the connection begins, at `now` and under
    /// the connection ID `local`.
    pub fn begin(config: &TransportConfig, subject: &Subject, local: ConnectionId, now: Instant) -> Self {
        let mut observer = Self::default();
        let Some(mut tracer) = config.tracer.as_ref().and_then(|factory| factory(subject)) else {
            return observer;
        };
        let mut parameters = config.parameters();
        parameters.initial_source_connection_id = Some(local);
        tracer.record(now, &TraceEvent::Started(subject));
        tracer.record(now, &TraceEvent::ParametersSet { side: Side::Local, parameters: &parameters });
        observer.tracer = Some(tracer);
        observer
    }

    /// Has `tracer` told of everything from here on.
    pub fn set_tracer(&mut self, tracer: Box<dyn Tracer>) {
        self.tracer = Some(tracer);
    }

    /// The tracer, for events that cost something to describe.
    #[inline]
    pub fn tracer(&mut self) -> Option<&mut Box<dyn Tracer>> {
        self.tracer.as_mut()
    }

    /// Tells the tracer of `event`.
    pub fn trace(&mut self, event: &TraceEvent<'_>, now: Instant) {
        if let Some(tracer) = &mut self.tracer {
            tracer.record(now, event);
        }
    }

    /// Tells the tracer what the application is told.
    pub fn on_event(&mut self, event: &Event, paths: &Paths, now: Instant) {
        let Some(tracer) = &mut self.tracer else { return };
        let traced = match event {
            Event::Connected => TraceEvent::Handshake(HandshakeProgress::Complete),
            Event::Confirmed => TraceEvent::Handshake(HandshakeProgress::Confirmed),
            Event::Closed(error) => TraceEvent::Closed(error),
            Event::Path(event) => {
                let Some((path, change)) = change_of(event) else { return };
                let tuple = paths.any(path).map(|path| path.route.tuple);
                let addresses = tuple.map(|tuple| (tuple.local, tuple.remote));
                TraceEvent::PathChanged { path, change, addresses }
            }
            _ => return,
        };
        tracer.record(now, &traced);
    }

    /// Tells the tracer what is known of path `of`.
    pub fn on_metrics(&mut self, of: PathId, paths: &Paths, now: Instant) {
        // Most connections have no tracer; and path 0 may be abandoned before the handshake is confirmed.
        let (Some(tracer), Some(path)) = (&mut self.tracer, paths.get(of)) else { return };
        let (rtt, controller) = (path.rtt(), &path.route.controller);
        let metrics = PathMetrics {
            min_rtt: rtt.min(),
            smoothed_rtt: rtt.smoothed(),
            latest_rtt: rtt.latest(),
            rtt_variance: rtt.variance(),
            pto_count: path.pto().count(),
            window: controller.window(),
            in_flight: path.sent.in_flight(),
            pacing_rate: path.route.pacer.rate(),
            growth: if controller.in_slow_start() { Growth::SlowStart } else { Growth::CongestionAvoidance },
        };
        tracer.record(now, &TraceEvent::MetricsUpdated { path: of, metrics });
    }

    /// Counts a frame of `bytes` bytes that was written for `path`.
    #[inline]
    pub fn count_sent(&mut self, path: PathId, kind: &'static str, bytes: usize) {
        self.counters.count_sent(path, kind, bytes);
    }

    /// Counts a frame that arrived.
    pub fn count_received(&mut self, path: PathId, kind: &'static str) {
        self.counters.count_received(path, kind);
    }

    /// Counts a packet that is ignored.
    pub fn count_dropped(&mut self) {
        self.counters.dropped += 1;
    }

    /// Path `id` is over: its counters are kept for a while.
    pub fn close_path(&mut self, id: PathId) {
        self.counters.close_path(id);
    }

    /// The counters of frames, by path and kind.
    pub fn frames(&self) -> &[FrameCounter] {
        self.counters.frames()
    }

    /// The number of packets that were ignored.
    pub fn dropped(&self) -> u64 {
        self.counters.dropped
    }
}

fn change_of(event: &PathEvent) -> Option<(PathId, PathChange)> {
    Some(match event {
        PathEvent::Opened(path) => (*path, PathChange::Opened),
        PathEvent::Validated(path) => (*path, PathChange::Validated),
        PathEvent::ValidationFailed(path) => (*path, PathChange::ValidationFailed),
        PathEvent::Migrated(path) => (*path, PathChange::Migrated),
        PathEvent::MigrationFailed(path) => (*path, PathChange::MigrationFailed),
        PathEvent::Silent(path) => (*path, PathChange::Silent),
        PathEvent::Answering(path) => (*path, PathChange::Answering),
        PathEvent::PeerStatus(path, status) => (*path, PathChange::Advised(*status)),
        PathEvent::Abandoned { path, code } => (*path, PathChange::Abandoned(*code)),
        _ => return None,
    })
}
