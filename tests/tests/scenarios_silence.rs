//! Channels that go dark: how soon their data takes another way, and what they cost until they are back.
//!
//! ```text
//!  server ══ wire 0: URLLC, 2 Mbit/s, 5 ms ══ client      the handshake and most acknowledgements
//!         ══ wire 1: eMBB, 60 Mbit/s, 50 ms ═             the bulk, and what goes dark
//! ```

use hvq_emulation::Direction as Way;
use hvq_scheduler::{Bandwidth, Hints, PathId, PathState, Policy};
use hvq_tests::bulk::Download;
use hvq_tests::net::{Application, Fate, Net, Side};
use hvq_transport::connection::{ChannelHint, Connection, Event, FourTuple, PathEvent, TransportConfig};
use hvq_transport::stream::{Direction, ReadOutcome, StreamEvent, StreamId};
use hvq_transport::time::Instant;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

const EMBB: &str = "rtt=50ms,rate=60mbit";
const URLLC: &str = "rtt=5ms,rate=2mbit";
/// A probe timeout of the eMBB path: its round trip with little variation, and the longest acknowledgement delay.
const EMBB_PTO: Duration = Duration::from_millis(80);

fn milliseconds(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn hints(megabits: u64, microseconds: u64) -> Hints {
    let delay = Some(Duration::from_micros(microseconds));
    Hints { rate: Some(Bandwidth::from_mbit(megabits)), delay, ..Hints::NONE }
}

fn embb() -> Hints {
    hints(60, 25_000)
}

/// Both channels, the connection begun on URLLC; returns the addresses of eMBB too.
fn network() -> (Net, FourTuple) {
    let mut config = TransportConfig::new(Arc::new(|| Policy::Hvc.scheduler()));
    let mut plan = Net::new(config.clone(), config.clone(), 0);
    for (tuple, hints) in [(plan.wire(URLLC), hints(2, 2_500)), (plan.wire(EMBB), embb())] {
        config.add_channels([tuple.local, tuple.remote].map(|local| ChannelHint {
            local,
            hints,
            congestion: None,
            link: None,
        }));
    }
    let mut net = Net::new(config.clone(), config, 1);
    let first = net.wire(URLLC);
    let second = net.wire(EMBB);
    net.connect(first);
    (net, second)
}

/// A message of `size` bytes every 200 ms.
struct Messages {
    size: usize,
    second: Option<FourTuple>,
    stream: Option<StreamId>,
    written: Vec<Instant>,
    read: usize,
    delays: Vec<Duration>,
    next: Instant,
}

impl Messages {
    fn new(size: usize, second: FourTuple) -> Self {
        let next = Net::START + milliseconds(20);
        Self {
            size,
            second: Some(second),
            stream: None,
            written: Vec::new(),
            read: 0,
            delays: Vec::new(),
            next,
        }
    }
}

impl Application for Messages {
    fn on_event(&mut self, side: Side, event: &Event, connection: &mut Connection, now: Instant) {
        match (side, event) {
            (Side::Server, Event::Connected) => self.stream = connection.open(Direction::Unidirectional),
            (Side::Client, Event::Stream(StreamEvent::Opened { .. } | StreamEvent::Readable(_))) => {
                while connection.accept(Direction::Unidirectional).is_some() {}
                // The first stream that the server opens (RFC 9000 §2.1).
                while let Ok(ReadOutcome::Data(data)) = connection.read(StreamId(3), usize::MAX) {
                    self.read += data.len();
                }
                while self.read >= (self.delays.len() + 1) * self.size {
                    self.delays.push(now.since(self.written[self.delays.len()]));
                }
            }
            _ => {}
        }
    }

    fn wake(&self) -> Option<Instant> {
        Some(self.next)
    }

    fn on_wake(&mut self, net: &mut Net) {
        let now = net.now;
        if let Some(second) = self.second {
            if net.client.connection().open_path(second, now).is_ok() {
                self.second = None;
            }
            self.next = now + milliseconds(20);
            return;
        }
        self.next = now + milliseconds(200);
        let Some(stream) = self.stream else { return };
        assert_eq!(net.server.connection().write(stream, &vec![7; self.size]), Ok(self.size));
        net.server.connection().end_message(stream, None).expect("the stream is open");
        self.written.push(now);
    }
}

#[test]
fn a_message_whose_channel_goes_dark_completes_on_the_other_within_a_probe_timeout() {
    // attacks.md G26. 16 kB are 2 ms of eMBB and 64 ms of URLLC.
    let (mut net, second) = network();
    let mut messages = Messages::new(16_000, second);
    net.run(&mut messages, Net::START + milliseconds(2_000));
    while messages.written.len() == messages.delays.len() {
        let until = net.now + milliseconds(1);
        net.run(&mut messages, until);
    }
    let usual = messages.delays[messages.delays.len() - 2];
    let at = net.elapsed();
    net.wires[1].channel.cut(at, Duration::MAX);
    let until = net.now + milliseconds(190);
    net.run(&mut messages, until);
    let count = messages.written.len();
    let rescued = messages.delays.get(count - 1).copied();
    println!("usual {usual:?}, rescued {rescued:?}");
    let transmission = milliseconds(70);
    assert!(rescued.is_some_and(|delay| delay < EMBB_PTO + transmission), "{rescued:?}\n{}", net.describe());
    let silent = Event::Path(PathEvent::Silent(PathId(1)));
    let noticed = net.server.events.iter().find(|(_, event)| *event == silent).map(|(when, _)| *when);
    let written = messages.written[count - 1];
    assert!(
        noticed.is_some_and(|when| when.since(written) < EMBB_PTO + milliseconds(20)),
        "{}",
        net.describe()
    );
}

#[test]
fn a_download_goes_on_over_what_is_left_within_a_probe_timeout() {
    let (mut net, second) = network();
    let mut download = Download::new(Some((second, embb())));
    net.run(&mut download, Net::START + milliseconds(3_000));
    let at = net.elapsed();
    net.wires[1].channel.cut(at, Duration::MAX);
    let until = net.now + milliseconds(1_000);
    net.run(&mut download, until);
    let connected = download.connected.expect("it is").since(Net::START);
    let from = (at - connected).as_millis() as usize;
    let resumed = download.progress.iter().skip(from + 2).position(|bytes| *bytes > 0);
    println!("resumed after {resumed:?} ms");
    assert!(
        resumed.is_some_and(|gap| milliseconds(gap as u64) < EMBB_PTO + milliseconds(20)),
        "{}",
        net.describe()
    );
}

#[test]
fn a_dark_path_is_probed_twice_per_timeout_and_serves_again_when_it_answers() {
    // attacks.md G26: probes <= 2 per PTO. The timeout doubles (RFC 9002 §6.2.1); liveness probes keep their pace.
    let (mut net, second) = network();
    let mut messages = Messages::new(16_000, second);
    net.run(&mut messages, Net::START + milliseconds(2_000));
    let sent = Rc::new(Cell::new(0_u128));
    let count = Rc::clone(&sent);
    net.tap = Some(Box::new(move |wire, way, _| {
        if wire == 1 && way == Way::Down {
            count.set(count.get() + 1);
        }
        if wire == 1 { Fate::Drop } else { Fate::Pass }
    }));
    net.run(&mut messages, Net::START + milliseconds(2_500));
    assert_eq!(net.server.connection().path_stats(PathId(1)).map(|path| path.state), Some(PathState::Silent));
    sent.set(0);
    let counters =
        |net: &mut Net| net.server.connection().path_stats(PathId(1)).expect("it is open").counters;
    let before = counters(&mut net);
    net.run(&mut messages, Net::START + milliseconds(7_500));
    let timeouts = 5_000 / EMBB_PTO.as_millis();
    assert!((10..=timeouts * 2).contains(&sent.get()), "{} probes in 5 s", sent.get());
    let after = counters(&mut net);
    assert!(after.probe_timeouts > before.probe_timeouts);
    assert_eq!(after.packets_lost, before.packets_lost, "a timeout says nothing about losses");
    assert!(messages.delays.len() + 1 >= messages.written.len(), "{}", net.describe());
    net.tap = None;
    net.run(&mut messages, Net::START + milliseconds(16_000));
    assert_eq!(
        net.server.connection().path_stats(PathId(1)).map(|path| path.state),
        Some(PathState::Available)
    );
    assert!(net.server.saw(&Event::Path(PathEvent::Answering(PathId(1)))));
}

#[test]
fn acknowledgements_leave_a_path_that_swallows_them_within_its_probe_timeout() {
    // attacks.md G27: one direction of the path that carries all acknowledgements is dark.
    let (mut net, second) = network();
    let mut download = Download::new(Some((second, embb())));
    net.run(&mut download, Net::START + milliseconds(3_000));
    net.tap =
        Some(Box::new(|wire, way, _| if (wire, way) == (0, Way::Up) { Fate::Drop } else { Fate::Pass }));
    let at = net.elapsed();
    let until = net.now + milliseconds(4_000);
    net.run(&mut download, until);
    let connected = download.connected.expect("it is").since(Net::START);
    let from = (at - connected).as_millis() as usize;
    let (mut longest, mut gap) = (0, 0);
    for bytes in download.progress.iter().skip(from) {
        gap = if *bytes > 0 { 0 } else { gap + 1 };
        longest = longest.max(gap);
    }
    let after: u64 = download.progress.iter().skip(from + 1_000).sum();
    println!("longest gap {longest} ms, then {:.1} Mbit/s", after as f64 * 8.0 / 3e6);
    assert!(longest < 150, "{longest} ms without data\n{}", net.describe());
    assert!(after as f64 * 8.0 / 3e6 > 40.0, "{}", net.describe());
}
