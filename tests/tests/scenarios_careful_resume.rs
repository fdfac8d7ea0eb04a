//! Careful Resume (RFC 9959): a connection begins where an earlier one on the same path left off, and does no harm where the
//! path has changed.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use hvq_emulation::{Channel, ChannelSpec, Direction as Way};
use hvq_scheduler::Policy;
use hvq_tests::net::medium::Medium;
use hvq_tests::net::{Application, ConnectionEvent, Net, Side};
use hvq_transport::congestion::Algorithm;
use hvq_transport::connection::{Connection, Event, PathMemory, TransportConfig};
use hvq_transport::endpoint::ConnectionHandle;
use hvq_transport::stream::{Direction, ReadOutcome, StreamEvent, StreamId};
use hvq_transport::time::Instant;
use hvq_transport::trace::{ResumePhase, Subject, TraceEvent, Tracer};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// 500 kB are in flight when it is full.
const WIRE: &str = "rtt=100ms,rate=40mbit";
/// A tenth of it, with a queue for twice what is in flight then.
const TENTH: &str = "rtt=100ms,rate=4mbit,queue=84p";
/// Bytes that show what the wire carries, and those that are timed.
const FIRST: usize = 8_000_000;
const SECOND: usize = 1_000_000;
const LIMIT: Duration = Duration::from_secs(60);
/// Bytes in flight when the wire is full, and nothing queues.
const WHOLE: usize = 500_000;
/// Controllers that a queue does not slow down.
const LOSS_BASED: [Algorithm; 6] =
    [Algorithm::NewReno, Algorithm::Cubic, Algorithm::Bbr, Algorithm::Lia, Algorithm::Olia, Algorithm::Balia];

/// A download over each connection.
struct Fetches {
    bytes: usize,
    sent: BTreeMap<ConnectionHandle, (StreamId, usize)>,
    received: BTreeMap<ConnectionHandle, usize>,
    expected: usize,
    finished: usize,
}

impl Fetches {
    fn new(bytes: usize, connections: usize) -> Self {
        let (sent, received) = (BTreeMap::new(), BTreeMap::new());
        Self { bytes, sent, received, expected: connections, finished: 0 }
    }

    fn pump(&mut self, handle: ConnectionHandle, connection: &mut Connection) {
        let Some((id, left)) = self.sent.get_mut(&handle) else { return };
        let piece = [7; 10_000];
        while *left > 0 {
            let Ok(taken) = connection.write(*id, &piece[..piece.len().min(*left)]) else { return };
            *left -= taken;
        }
        let _finished_before = connection.finish(*id);
    }
}

impl Application for Fetches {
    fn on_connection_event(&mut self, occurred: ConnectionEvent<'_>) {
        let ConnectionEvent { side, handle, event, connection, .. } = occurred;
        match (side, event) {
            (Side::Server, Event::Connected) => {
                let id = connection.open(Direction::Unidirectional).unwrap();
                self.sent.insert(handle, (id, self.bytes));
                self.pump(handle, connection);
            }
            (Side::Server, Event::Stream(StreamEvent::Writable(_))) => self.pump(handle, connection),
            (Side::Client, Event::Stream(_)) => {
                while connection.accept(Direction::Unidirectional).is_some() {}
                // The first stream of a server (RFC 9000 §2.1).
                while let Ok(outcome) = connection.read(StreamId(3), usize::MAX) {
                    match outcome {
                        ReadOutcome::Data(data) => *self.received.entry(handle).or_default() += data.len(),
                        ReadOutcome::Finished => {
                            self.finished += 1;
                            return;
                        }
                        _ => return,
                    }
                }
            }
            _ => {}
        }
    }

    fn is_done(&self) -> bool {
        self.finished >= self.expected
    }
}

/// Phases of Careful Resume, and the greatest window that any of them had.
#[derive(Clone, Default)]
struct Phases(Arc<Mutex<(Vec<ResumePhase>, usize)>>);

impl Tracer for Phases {
    fn record(&mut self, _: Instant, event: &TraceEvent<'_>) {
        if let TraceEvent::ResumeChanged { phase, window, .. } = *event {
            let mut seen = self.0.lock().unwrap();
            seen.0.push(phase);
            seen.1 = seen.1.max(window);
        }
    }
}

impl Phases {
    fn take(&self) -> (Vec<ResumePhase>, usize) {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

struct World {
    net: Net,
    phases: Phases,
}

impl World {
    fn new(algorithm: Algorithm, memory: PathMemory) -> Self {
        let phases = Phases::default();
        let watching = phases.clone();
        let config = move || {
            let mut config = TransportConfig::new(Arc::new(|| Policy::MinRtt.scheduler()));
            config.set_congestion(algorithm.into()).set_path_memory(memory);
            config
        };
        let mut server = config();
        server.set_tracer(Some(Arc::new(move |_: &Subject| {
            Some(Box::new(watching.clone()) as Box<dyn Tracer>)
        })));
        let mut net = Net::new(config(), server, 1);
        net.wire(WIRE);
        Self { net, phases }
    }

    /// A world in which a connection has fetched enough to know the path.
    fn visited(algorithm: Algorithm, memory: PathMemory) -> Self {
        let mut world = Self::new(algorithm, memory);
        world.fetch(FIRST, 1);
        world
    }

    /// Fetches `bytes` over each of `connections` new connections, and closes them: the time that all took.
    fn fetch(&mut self, bytes: usize, connections: usize) -> Duration {
        let begin = self.net.now;
        let tuple = self.net.wires[0].tuple();
        let handles: Vec<_> = (0..connections).map(|_| self.net.connect(tuple)).collect();
        let mut fetches = Fetches::new(bytes, connections);
        let is_done = self.net.run(&mut fetches, begin + LIMIT);
        assert!(is_done, "{}", self.net.describe());
        assert!(fetches.received.values().all(|received| *received == bytes));
        let took = self.net.now.since(begin);
        for handle in handles {
            let now = self.net.now;
            self.net.client.endpoint.connection(handle).unwrap().close(0, b"", now);
        }
        self.net.run_for(Duration::from_secs(2));
        took
    }

    /// The wire carries what `spec` says from now on.
    fn replace(&mut self, spec: &str) {
        let spec: ChannelSpec = spec.parse().unwrap();
        self.net.wires[0].channel = Medium::Plain(Box::new(Channel::new(&spec, 1).unwrap()));
    }

    /// Packets that the wire dropped on their way to the client.
    fn dropped(&self) -> u64 {
        let statistics = self.net.wires[0].channel.link(Way::Down).statistics();
        statistics.dropped(hvq_emulation::DropReason::Queue).packets
    }
}

const MEMORY: PathMemory = PathMemory::For(Duration::from_secs(600));

#[test]
fn on_the_same_path_a_download_takes_up_where_the_last_one_left_off() {
    for algorithm in Algorithm::ALL {
        let [without, with] = [PathMemory::Off, MEMORY].map(|memory| {
            let mut world = World::visited(algorithm, memory);
            let took = world.fetch(SECOND, 1);
            assert_eq!(world.phases.take().0.contains(&ResumePhase::Unvalidated), memory == MEMORY);
            (took, world.dropped())
        });
        println!("{algorithm}: {without:?}, remembered {with:?}");
        assert_eq!(without.1, with.1, "{algorithm}: nothing more is lost");
        assert!(with.0 < without.0.mul_f64(0.9), "{algorithm}: {:?} instead of {:?}", with.0, without.0);
        if LOSS_BASED.contains(&algorithm) {
            assert!(with.0 < without.0.mul_f64(0.65), "{algorithm}: {:?} instead of {:?}", with.0, without.0);
        }
    }
}

#[test]
fn where_a_tenth_is_left_no_more_is_lost_than_was_tried_and_what_is_remembered_is_forgotten() {
    for algorithm in Algorithm::ALL {
        let [without, with] = [PathMemory::Off, MEMORY].map(|memory| {
            let mut world = World::visited(algorithm, memory);
            world.replace(TENTH);
            let took = world.fetch(SECOND, 1);
            let (dropped, phases) = (world.dropped(), world.phases.take());
            world.fetch(SECOND / 10, 1);
            let (_, again) = world.phases.take();
            assert!(again <= WHOLE / 10, "{algorithm}: {again} bytes, though that turned out not to hold");
            (took, dropped, phases)
        });
        println!("{algorithm}: {without:?}, remembered {with:?}");
        let (took, dropped, (phases, window)) = with;
        assert!(phases.contains(&ResumePhase::SafeRetreat), "{algorithm}: {phases:?}");
        assert!(window <= WHOLE * 11 / 20, "{algorithm}: {window} bytes, more than half of what was saved");
        assert!(dropped as usize * 1200 < window / 2, "{algorithm}: {dropped} packets");
        // Controllers that go by delay begin anew after the retreat.
        let most = if LOSS_BASED.contains(&algorithm) { 1.0 } else { 1.1 };
        assert!(took <= without.0.mul_f64(most), "{algorithm}: {took:?} instead of {:?}", without.0);
    }
}

#[test]
fn connections_at_once_share_what_is_remembered() {
    for connections in [1, 4] {
        let [without, with] = [PathMemory::Off, MEMORY].map(|memory| {
            let mut world = World::visited(Algorithm::Cubic, memory);
            let took = world.fetch(SECOND / connections, connections);
            (took, world.dropped(), world.phases.take())
        });
        println!("{connections}: {without:?}, remembered {with:?}");
        let (took, dropped, (phases, _)) = with;
        let jumps = phases.iter().filter(|phase| **phase == ResumePhase::Unvalidated).count();
        assert_eq!((jumps, dropped), (1, without.1), "{connections} connections: {phases:?}");
        assert!(took < without.0, "{connections} connections: {took:?} instead of {:?}", without.0);
    }
}

#[test]
fn what_is_too_old_is_not_resumed() {
    let mut world = World::visited(Algorithm::Cubic, PathMemory::For(Duration::from_secs(30)));
    world.net.run_for(Duration::from_secs(31));
    world.fetch(SECOND, 1);
    assert_eq!(world.phases.take().0, []);
}
