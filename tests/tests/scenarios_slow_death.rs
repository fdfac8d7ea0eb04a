//! A link of which hardly any rate is left, though it loses nothing: what waits in its queue goes over the other one.

use hvq_emulation::Direction as Way;
use hvq_scheduler::{Hints, Hvc, Item, Observation, PathView, Placement, Policy, Priority, Scheduler};
use hvq_tests::bulk::Download;
use hvq_tests::net::cross::Cross;
use hvq_tests::net::{Application, Net, Side};
use hvq_tests::talk::{INTERVAL, Talk};
use hvq_transport::connection::{Connection, Event, FourTuple, SchedulerFactory, TransportConfig};
use hvq_transport::time::Instant;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The interval in which one hundredth of the rate is left, since the start of the network.
const COLLAPSE: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(4)];
/// The longest time without progress of which the collapse may be the reason.
const LONGEST_GAP: Duration = Duration::from_millis(500);
/// Pairs of links with the queues that such links have.
const PAIRS: [[&str; 2]; 4] = [
    ["rtt=1ms,rate=20mbit,queue=64kB", "rtt=1ms,rate=20mbit,queue=64kB"],
    ["rtt=5ms,rate=2mbit", "rtt=50ms,rate=60mbit"],
    ["rtt=10ms,rate=40mbit,queue=200kB", "rtt=60ms,rate=30mbit,queue=500kB"],
    ["rtt=30ms,rate=50mbit,queue=300kB", "rtt=40ms,rate=10mbit,queue=200kB"],
];

/// Both links, of which `dying` collapses, with a connection that begins on the first.
fn network(links: [&str; 2], dying: Option<usize>, policy: SchedulerFactory) -> (Net, FourTuple) {
    let config = TransportConfig::new(policy);
    let mut net = Net::new(config.clone(), config, 1);
    let fate = COLLAPSE.map(|time| time.as_millis());
    let tuples = [0, 1].map(|index| match dying == Some(index) {
        true => net.wire(&format!("{},collapse={}ms..{}ms/1%", links[index], fate[0], fate[1])),
        false => net.wire(links[index]),
    });
    net.connect(tuples[0]);
    (net, tuples[1])
}

fn default_policy() -> SchedulerFactory {
    Arc::new(|| Policy::Hvc.scheduler())
}

/// Each pair of links, with each of them dying.
fn deaths() -> impl Iterator<Item = ([&'static str; 2], usize)> {
    PAIRS.into_iter().flat_map(|pair| [0, 1].map(|dying| (pair, dying)))
}

/// The longest time between two of `moments`, or from the last to the end of the collapse, that ends in it.
fn longest_gap(moments: &[Duration]) -> Duration {
    let ends = moments.iter().copied().filter(|at| *at < COLLAPSE[1]).chain([COLLAPSE[1]]);
    let gaps = ends.scan(Duration::ZERO, |last, at| {
        let gap = (at, at - *last);
        *last = at;
        Some(gap)
    });
    gaps.filter(|(at, _)| *at >= COLLAPSE[0]).map(|(_, gap)| gap).max().expect("the collapse has an end")
}

/// UDP payload that the server sent.
fn sent(net: &Net) -> u64 {
    let stats = net.server.get().expect("the connection is open").stats();
    stats.paths.iter().map(|path| path.counters.bytes_sent).sum()
}

#[test]
fn a_download_goes_on_when_one_of_its_links_dies_slowly() {
    for (links, dying) in deaths() {
        let (mut net, second) = network(links, Some(dying), default_policy());
        let mut download = Download::new(Some((second, Hints::NONE)));
        net.run(&mut download, Net::START + COLLAPSE[1]);
        let since = download.connected_after();
        let moved = download.progress.iter().enumerate().filter(|(_, bytes)| **bytes > 0);
        let moments: Vec<_> = moved.map(|(at, _)| since + Duration::from_millis(at as u64)).collect();
        let read: u64 = download.progress.iter().sum();
        let (gap, twice) = (longest_gap(&moments), sent(&net) as f64 / read as f64);
        println!("{links:?}, {dying} dies: gap {gap:?}, {read} bytes read, sent {twice:.3}");
        assert!(gap <= LONGEST_GAP, "{links:?}, {dying} dies: {gap:?}\n{}", net.describe());
        // Of it 4 % are headers, and what is in flight at the end is not read yet.
        assert!(twice < 1.12, "{links:?}, {dying} dies: {twice}");
    }
}

/// The default policy, which counts the copies that it wants of packets in flight.
#[derive(Debug)]
struct Counting(Hvc, Arc<AtomicUsize>);

impl Scheduler for Counting {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn place(&mut self, item: &Item, paths: &[PathView]) -> Placement {
        self.0.place(item, paths)
    }

    fn repeats(&mut self, item: &Item, path: &PathView) -> usize {
        self.0.repeats(item, path)
    }

    fn copies(&mut self, item: &Item, paths: &[PathView], expected: Duration) -> bool {
        let answer = self.0.copies(item, paths, expected);
        self.1.fetch_add(usize::from(answer), Ordering::Relaxed);
        answer
    }

    fn observe(&mut self, observation: &Observation) {
        self.0.observe(observation);
    }
}

/// The number of packets of which a download over `links` wants copies.
fn copies_of(links: [&str; 2], dying: Option<usize>) -> usize {
    let copies = Arc::new(AtomicUsize::new(0));
    let counter = copies.clone();
    let policy = Arc::new(move || Box::new(Counting(Hvc::default(), counter.clone())) as Box<dyn Scheduler>);
    let (mut net, second) = network(links, dying, policy);
    net.run(&mut Download::new(Some((second, Hints::NONE))), Net::START + COLLAPSE[1]);
    copies.load(Ordering::Relaxed)
}

#[test]
fn links_that_are_merely_slow_carry_nothing_twice_for_it() {
    let slow = [
        ["rtt=20ms,rate=20mbit,queue=64kB", "rtt=80ms,rate=1mbit,queue=64kB"],
        ["rtt=20ms,rate=20mbit,queue=64kB", "rtt=600ms,rate=4mbit,queue=1MB"],
        ["rtt=20ms,rate=20mbit,queue=64kB", "rtt=normal:40ms:0.3,rate=8mbit,queue=64kB,loss=1%"],
    ];
    for links in PAIRS.into_iter().chain(slow) {
        assert_eq!(copies_of(links, None), 0, "{links:?}");
    }
    assert!(copies_of(PAIRS[0], Some(1)) > 10);
}

/// Round robin, which remembers the paths that it was shown last, and counts those whose backlog fell as they were sent to.
#[derive(Debug)]
struct Comparing {
    policy: Box<dyn Scheduler>,
    last: (Duration, Vec<PathView>),
    fallen: Arc<AtomicUsize>,
}

impl Scheduler for Comparing {
    fn name(&self) -> &'static str {
        self.policy.name()
    }

    fn place(&mut self, item: &Item, paths: &[PathView]) -> Placement {
        let (at, before) = std::mem::replace(&mut self.last, (item.now, paths.to_vec()));
        let pairs = paths.iter().flat_map(|path| before.iter().map(move |before| (before, path)));
        let sent_to =
            pairs.filter(|(before, path)| before.id == path.id && before.in_flight < path.in_flight);
        let fallen = sent_to.filter(|(before, path)| at == item.now && before.backlog > path.backlog).count();
        self.fallen.fetch_add(fallen, Ordering::Relaxed);
        self.policy.place(item, paths)
    }

    fn observe(&mut self, observation: &Observation) {
        if !matches!(observation, Observation::Placed { .. }) {
            self.last.1.clear();
        }
        self.policy.observe(observation);
    }
}

#[test]
fn a_packet_never_shortens_the_queue_that_a_policy_is_shown_of_a_dying_link() {
    for (links, dying) in deaths() {
        let fallen = Arc::new(AtomicUsize::new(0));
        let counter = fallen.clone();
        let policy = Arc::new(move || {
            let policy = Policy::RoundRobin.scheduler();
            Box::new(Comparing { policy, last: (Duration::ZERO, Vec::new()), fallen: counter.clone() })
                as Box<dyn Scheduler>
        });
        let (mut net, second) = network(links, Some(dying), policy);
        net.run(&mut Download::new(Some((second, Hints::NONE))), Net::START + COLLAPSE[1]);
        assert_eq!(fallen.load(Ordering::Relaxed), 0, "{links:?}, {dying} dies");
    }
}

#[test]
fn messages_go_on_when_the_link_that_they_use_dies_slowly_below_the_traffic_of_others() {
    for (links, dying) in deaths() {
        let (mut net, second) = network(links, Some(dying), default_policy());
        for way in [Way::Up, Way::Down] {
            net.crosses.push(Cross::new(dying, way, 1_000_000, 7));
        }
        let mut talk = Talk::new(vec![second]);
        net.run(&mut talk, Net::START + COLLAPSE[1]);
        for side in Side::BOTH {
            let gap = longest_gap(&talk.progress[side as usize]);
            println!("{links:?}, {dying} dies, {side:?}: gap {gap:?}");
            assert!(gap <= LONGEST_GAP, "{links:?}, {dying} dies, {side:?}: {gap:?}\n{}", net.describe());
        }
    }
}

/// A datagram from the server every 20 ms.
struct Datagrams {
    second: Option<FourTuple>,
    next: Instant,
    arrived: Vec<Duration>,
}

impl Application for Datagrams {
    fn on_event(&mut self, side: Side, _: &Event, connection: &mut Connection, now: Instant) {
        if side == Side::Client {
            let arrived = std::iter::from_fn(|| connection.receive_datagram());
            self.arrived.extend(arrived.map(|_| now.since(Net::START)));
        }
    }

    fn wake(&self) -> Option<Instant> {
        Some(self.next)
    }

    fn on_wake(&mut self, net: &mut Net) {
        let now = net.now;
        self.next = now + INTERVAL;
        self.second = self.second.filter(|second| net.client.connection().open_path(*second, now).is_err());
        if net.server.get().is_some() {
            let data = vec![7; 200].into();
            let _before_the_handshake =
                net.server.connection().send_datagram(data, Priority::default(), None);
        }
    }
}

#[test]
fn datagrams_go_on_when_the_link_that_they_use_dies_slowly_below_the_traffic_of_others() {
    for (links, dying) in deaths() {
        let (mut net, second) = network(links, Some(dying), default_policy());
        net.crosses.push(Cross::new(dying, Way::Down, 1_000_000, 7));
        let mut datagrams = Datagrams { second: Some(second), next: Net::START, arrived: Vec::new() };
        net.run(&mut datagrams, Net::START + COLLAPSE[1]);
        let gap = longest_gap(&datagrams.arrived);
        println!("{links:?}, {dying} dies: gap {gap:?}");
        assert!(gap <= LONGEST_GAP, "{links:?}, {dying} dies: {gap:?}\n{}", net.describe());
    }
}
