//! Several paths under attack, or with frames in an order that nobody planned: attacks.md, section G, where only the
//! whole shows it.

use hvq_emulation::Direction as Way;
use hvq_scheduler::{Content, Hints, Item, PathId, PathState, PathView, Placement, Policy, Scheduler};
use hvq_tests::bulk::Download;
use hvq_tests::net::{Fate, Net, Side};
use hvq_tests::transfer::Transfer;
use hvq_transport::connection::{Event, PathEvent, TransportConfig};
use hvq_transport::wire::frame::Status;
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

const ZERO: PathId = PathId::ZERO;
const ONE: PathId = PathId(1);

fn config() -> TransportConfig {
    TransportConfig::new(Arc::new(|| Policy::MinRtt.scheduler()))
}

fn milliseconds(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// Connected over these channels, each of them a path.
fn connected(channels: &[&str]) -> Net {
    let mut net = Net::new(config(), config(), 1);
    let tuples: Vec<_> = channels.iter().map(|channel| net.wire(channel)).collect();
    net.connect(tuples[0]);
    net.run_for(milliseconds(200));
    for tuple in &tuples[1..] {
        let now = net.now;
        net.client.connection().open_path(*tuple, now).expect("the limits permit it");
    }
    net.run_for(milliseconds(500));
    for id in (1..).take(channels.len() - 1).map(PathId) {
        assert!(net.server.saw(&Event::Path(PathEvent::Validated(id))), "{}", net.describe());
    }
    net
}

fn transfer_while(net: &mut Net, most: u64, mut meddle: impl FnMut(&mut Net)) {
    let mut transfer = Transfer::new(1, 2, most, Vec::new());
    for side in Side::BOTH {
        transfer.begin(side, net);
    }
    for _ in 0..6_000 {
        let until = net.now + milliseconds(10);
        let done = net.run(&mut transfer, until);
        assert!(transfer.failure.is_none(), "{}\n{}", transfer.describe(), net.describe());
        if done {
            return;
        }
        meddle(net);
    }
    panic!("{}\n{}", transfer.describe(), net.describe());
}

/// The first datagrams of the client on each of the first `count` wires: the server gets them from a victim's address.
type Caught = Rc<RefCell<Vec<(usize, Vec<u8>)>>>;

fn forward(net: &mut Net, count: usize, fate: Fate) -> (Caught, Vec<SocketAddr>) {
    let victims: Vec<_> = (0..count).map(|n| SocketAddr::from(([192, 0, 2, 66], 600 + n as u16))).collect();
    for (wire, victim) in victims.iter().enumerate() {
        let server = net.wires[wire].server;
        net.wire("rtt=10ms,rate=20mbit");
        let added = net.wires.last_mut().expect("just added");
        (added.client, added.outside, added.server) = (*victim, *victim, server);
    }
    let caught = Caught::default();
    let (sink, mut taken) = (Rc::clone(&caught), vec![0; count]);
    net.tap = Some(Box::new(move |wire, way, bytes| {
        if way == Way::Up && wire < count && taken[wire] < 4 {
            taken[wire] += 1;
            sink.borrow_mut().push((wire, bytes.to_vec()));
            return fate.clone();
        }
        Fate::Pass
    }));
    (caught, victims)
}

#[test]
fn all_paths_seem_to_move_to_one_victim_and_return_when_it_does_not_answer() {
    // attacks.md G20, RFC 10069 §7, RFC 9000 §9.3: once the copies are all that arrives, once they are only faster.
    for fate in [Fate::Drop, Fate::Pass] {
        let mut net = connected(&["rtt=10ms,rate=20mbit", "rtt=30ms,rate=20mbit", "rtt=50ms,rate=20mbit"]);
        let homes: Vec<_> = net.wires.iter().map(|wire| wire.outside).collect();
        let (caught, victims) = forward(&mut net, 3, fate.clone());
        let (mut received, mut moved) = (0, 0);
        transfer_while(&mut net, 1_000_000, |net| {
            for (wire, bytes) in caught.borrow_mut().drain(..) {
                received += bytes.len() as u64;
                let mut datagram = net.arriving(wire, Way::Up, &bytes);
                datagram.remote = victims[wire];
                net.inject(Side::Server, datagram);
            }
            // Each path has the address it left, and the one it is at.
            let server = net.server.connection();
            let pending = server.pending_validations();
            assert!(pending <= 6, "{pending} addresses are validated at once");
            moved = moved
                .max(server.stats().paths.iter().filter(|path| victims.contains(&path.tuple.remote)).count());
        });
        net.run_for(milliseconds(8_000));
        let sent: u64 = net.wires[3..].iter().map(|wire| wire.down.sent).sum();
        assert!(sent > 0 && sent <= 3 * received, "{fate:?}: {sent} bytes for {received}");
        assert!(moved >= 1, "the attack has an effect, {fate:?}");
        let now_at: Vec<_> =
            net.server.connection().stats().paths.iter().map(|path| path.tuple.remote).collect();
        assert_eq!(now_at, homes, "{}", net.describe());
        assert_eq!(net.server.connection().pending_validations(), 0);
        assert!(!net.server.saw_any(|event| matches!(event, Event::Path(PathEvent::Migrated(_)))));
    }
}

/// Data on path 0, acknowledgements on the path of this number.
#[derive(Debug)]
struct Steered(Arc<AtomicU32>);

impl Scheduler for Steered {
    fn name(&self) -> &'static str {
        "steered"
    }

    fn place(&mut self, item: &Item, paths: &[PathView]) -> Placement {
        let wanted = match item.content {
            Content::Acknowledgement { .. } => PathId(self.0.load(Ordering::Relaxed)),
            _ => ZERO,
        };
        let path = paths.iter().find(|path| path.id == wanted).map_or(paths[0].id, |path| path.id);
        Placement::On { path, bytes: item.bytes }
    }
}

#[test]
fn acknowledgements_that_take_a_slow_path_for_a_while_leave_no_trace() {
    // attacks.md G25: data 20 ms, acknowledgements 20 ms, then 70 ms for two seconds, then 20 ms again.
    let return_path = Arc::new(AtomicU32::new(0));
    let choice = Arc::clone(&return_path);
    let steered = TransportConfig::new(Arc::new(move || Box::new(Steered(Arc::clone(&choice)))));
    let mut net = Net::new(steered.clone(), steered, 1);
    let first = net.wire("rtt=20ms,rate=20mbit");
    let second = net.wire("rtt=120ms,rate=20mbit");
    net.connect(first);
    let mut download = Download::new(Some((second, Hints::NONE)));
    let mut smallest = Vec::new();
    for (path, until) in [(0, 3_000), (1, 5_000), (0, 8_000)] {
        return_path.store(path, Ordering::Relaxed);
        // The queue that slow start left is gone by then.
        net.run(&mut download, Net::START + milliseconds(until));
        smallest.push(net.server.connection().path_stats(ZERO).expect("it is open").min_rtt);
    }
    // Over the slow path the queue on the data path counts too.
    let direct = |rtt: Duration| milliseconds(20) <= rtt && rtt < milliseconds(25);
    assert!(direct(smallest[0]) && smallest[1] >= milliseconds(70) && direct(smallest[2]), "{smallest:?}");
    let started = download.connected.expect("it is").since(Net::START).as_millis() as usize;
    let rate = |from: usize, length: usize| {
        let bytes: u64 = download.progress.iter().skip(from - started).take(length).sum();
        bytes as f64 * 8.0 / length as f64 / 1e3
    };
    let (before, after) = (rate(2_000, 1_000), rate(5_040, 200));
    assert!(
        before > 17.0 && after > before * 0.9,
        "{before:.1} Mbit/s before, {after:.1} two round trips after"
    );
}

#[test]
fn paths_that_are_all_backups_carry_data() {
    // attacks.md G29, RFC 10069 §3.3: then there is no guidance.
    let mut net = connected(&["rtt=10ms,rate=20mbit", "rtt=50ms,rate=60mbit"]);
    for side in Side::BOTH {
        for path in [ZERO, ONE] {
            net.end(side).connection().set_path_status(path, Status::Backup).expect("it is open");
        }
    }
    net.run_for(milliseconds(200));
    for side in Side::BOTH {
        let paths = net.end(side).connection().stats().paths;
        assert!(paths.iter().all(|path| path.state == PathState::Backup), "{paths:?}");
    }
    transfer_while(&mut net, 1_000_000, |_| {});
}

#[test]
fn a_path_whose_connection_ids_come_after_its_first_packet_is_validated_when_they_are_there() {
    // attacks.md G38, RFC 10069 §3.1: the server can send nothing there before.
    let mut net = Net::new(config(), config(), 1);
    let first = net.wire("rtt=40ms,rate=20mbit");
    let second = net.wire("rtt=20ms,rate=20mbit");
    // All that the client says after its handshake is lost on its first path.
    net.tap = Some(Box::new(|wire, way, bytes| {
        if (wire, way) == (0, Way::Up) && bytes[0] & 0x80 == 0 { Fate::Drop } else { Fate::Pass }
    }));
    net.connect(first);
    while net.client.get().is_none_or(|client| !client.lifecycle().is_connected()) {
        net.run_for(milliseconds(1));
    }
    for _ in 0..100 {
        let now = net.now;
        if net.client.connection().open_path(second, now).is_ok() {
            break;
        }
        net.run_for(milliseconds(1));
    }
    net.run_for(milliseconds(11));
    let opened = net.server.connection().path_stats(ONE).expect("the first packet opens it");
    assert!(opened.counters.packets_received > 0, "{}", net.describe());
    assert_eq!(opened.counters.datagrams_sent, 0, "{}", net.describe());
    net.run_for(milliseconds(1_000));
    net.tap = None;
    net.run_for(milliseconds(1_000));
    for side in Side::BOTH {
        assert!(net.end(side).saw(&Event::Path(PathEvent::Validated(ONE))), "{}", net.describe());
    }
    transfer_while(&mut net, 100_000, |_| {});
}
