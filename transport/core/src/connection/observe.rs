//! Tracing of beginnings, events and metrics, which no single step of the protocol knows.

use crate::PathId;
use crate::connection::send::transmission_round::TransmissionRound;
use crate::connection::{Connection, Event, PathEvent};
use crate::stream::StreamId;
use crate::time::Instant;
use crate::trace::{Growth, PathChange, PathMetrics, Progress, Side, Subject, TraceEvent};
use crate::wire::connection_id::ConnectionId;
use hvq_scheduler::{Expectation, Scheduler};

impl Connection {
    /// Asks the configured factory for a tracer, and tells it how the connection begins.
    pub(super) fn begin_trace(&mut self, original_destination: ConnectionId) {
        let Some(factory) = &self.config.tracer else { return };
        let Some(path) = self.paths.get(PathId::ZERO) else { return };
        let (local, remote) = (path.route.tuple.local, path.route.tuple.remote);
        let subject = Subject { role: self.role, original_destination, local, remote };
        let Some(mut tracer) = factory(&subject) else { return };
        let mut parameters = self.config.parameters();
        parameters.initial_source_connection_id = Some(self.handshake_ids.local);
        tracer.record(self.born, &TraceEvent::Started(&subject));
        let event = TraceEvent::ParametersSet { side: Side::Local, parameters: &parameters };
        tracer.record(self.born, &event);
        self.tracer = Some(tracer);
    }

    /// Tells the tracer what the application is told.
    pub(super) fn trace_event(&mut self, event: &Event, now: Instant) {
        let Some(tracer) = &mut self.tracer else { return };
        let traced = match event {
            Event::Connected => TraceEvent::Handshake(Progress::Complete),
            Event::Confirmed => TraceEvent::Handshake(Progress::Confirmed),
            Event::Closed(error) => TraceEvent::Closed(error),
            Event::Path(event) => {
                let Some((path, change)) = change_of(event) else { return };
                let tuple = self.paths.any(path).map(|path| path.route.tuple);
                let addresses = tuple.map(|tuple| (tuple.local, tuple.remote));
                TraceEvent::PathChanged { path, change, addresses }
            }
            _ => return,
        };
        tracer.record(now, &traced);
    }

    /// Tells the tracer that a path was opened from here, of which the application needs no event.
    pub(super) fn trace_opened(&mut self, path: PathId, now: Instant) {
        self.trace_event(&Event::Path(PathEvent::Opened(path)), now);
    }

    /// Tells the tracer that the keys of 1-RTT packets were updated.
    pub(super) fn trace_key_update(&mut self, by: Side, now: Instant) {
        if let Some(tracer) = &mut self.tracer {
            tracer.record(now, &TraceEvent::KeysUpdated { by });
        }
    }

    /// Tells the tracer that `bytes` of `stream` are on the path with this index, and what was expected of that choice.
    pub(super) fn trace_placement(
        &mut self,
        round: &TransmissionRound,
        index: usize,
        (stream, bytes): (StreamId, usize),
        expected: fn(&dyn Scheduler) -> Option<Expectation>,
    ) {
        let Some(tracer) = &mut self.tracer else { return };
        if let Some(view) = round.views.get(index).filter(|_| bytes > 0) {
            let expectation = expected(&*self.scheduler.policy);
            let event = TraceEvent::StreamPlaced { path: view.id, stream: stream.0, bytes, expectation };
            tracer.record(round.now, &event);
        }
    }

    /// Tells the tracer what is known of path `of`.
    pub(super) fn trace_metrics(&mut self, of: PathId, now: Instant) {
        let Some(tracer) = &mut self.tracer else { return };
        let Some(path) = self.paths.get(of) else { return };
        let (rtt, controller) = (path.rtt(), &path.route.controller);
        let metrics = PathMetrics {
            min_rtt: rtt.min(),
            smoothed_rtt: rtt.smoothed(),
            latest_rtt: rtt.latest(),
            rtt_variance: rtt.variance(),
            pto_count: path.pto.count(),
            window: controller.window(),
            in_flight: path.sent.in_flight(),
            pacing_rate: path.route.pacer.rate(),
            growth: if controller.in_slow_start() { Growth::SlowStart } else { Growth::CongestionAvoidance },
        };
        tracer.record(now, &TraceEvent::MetricsUpdated { path: of, metrics });
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
