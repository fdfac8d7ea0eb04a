//! A link in virtual time.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::delay::{Delay, Reading};
use crate::quantity::Bandwidth;
use crate::rate::Rate;
use crate::spec::ChannelSpec;
use crate::trace::TraceSource;
use crate::{Count, QueueLimit};

fn ms(value: u64) -> Duration {
    Duration::from_millis(value)
}

fn us(value: u64) -> Duration {
    Duration::from_micros(value)
}

fn link(text: &str) -> Link<u32> {
    let spec: ChannelSpec = text.parse().unwrap();
    Link::new(&spec.down, Direction::Down, 1).unwrap()
}

/// Everything that leaves, in order: packet and time.
fn drain(link: &mut Link<u32>) -> Vec<(u32, Duration)> {
    let mut all = Vec::new();
    while let Some(at) = link.next_deadline() {
        all.extend(link.dequeue(at).map(|departure| (departure.packet, departure.at)));
    }
    all
}

/// A trace file that lives as long as the test.
struct TraceFile(std::path::PathBuf);

impl TraceFile {
    fn new(name: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("hvq-emulation-{}-{name}.csv", std::process::id()));
        std::fs::write(&path, text).unwrap();
        Self(path)
    }

    fn source(&self) -> TraceSource {
        TraceSource::File(self.0.clone())
    }
}

impl Drop for TraceFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn a_packet_takes_its_sending_time_and_its_delay() {
    // 1000 bytes at 2 Mbit/s: 4 ms; then 2.5 ms.
    let mut link = link("urllc");
    assert_eq!(link.enqueue(ms(10), 7, 1000), Admission::Accepted);
    assert_eq!(link.next_deadline(), Some(us(16_500)));
    assert_eq!(link.dequeue(us(16_499)), None);
    let departure = link.dequeue(ms(20)).unwrap();
    let expected = Departure { packet: 7, size: 1000, entered: ms(10), at: us(16_500), congested: false };
    assert_eq!(departure, expected);
    assert_eq!(link.next_deadline(), None);
}

#[test]
fn the_next_packet_is_sent_when_the_one_before_has_been() {
    let mut link = link("urllc,overhead=250");
    link.enqueue(ms(0), 1, 1000);
    link.enqueue(ms(1), 2, 750);
    link.enqueue(ms(50), 3, 0);
    assert_eq!(drain(&mut link), [(1, us(7_500)), (2, us(11_500)), (3, us(53_500))]);
}

#[test]
fn a_full_queue_drops_what_arrives_last() {
    let mut link = link("rate=12mbit,queue=3p");
    let verdicts: Vec<_> = (0..5).map(|n| link.enqueue(ms(0), n, 1500)).collect();
    assert_eq!(verdicts[..3], [Admission::Accepted; 3]);
    assert_eq!(verdicts[3..], [Admission::Dropped(DropReason::Queue); 2]);
    // 1500 bytes at 12 Mbit/s take 1 ms: then there is room for one.
    assert_eq!(link.enqueue(us(999), 5, 1500), Admission::Dropped(DropReason::Queue));
    assert_eq!(link.enqueue(ms(1), 6, 1500), Admission::Accepted);
    assert_eq!(drain(&mut link).iter().map(|(n, _)| *n).collect::<Vec<_>>(), [0, 1, 2, 6]);
    assert_eq!(link.statistics().most_queued_packets, 3);
    assert_eq!(link.statistics().most_queued_bytes, 4500);
    assert_eq!(link.statistics().dropped(DropReason::Queue), Count { packets: 3, bytes: 4500 });
}

#[test]
fn a_queue_in_bytes_takes_small_packets_where_large_ones_do_not_fit() {
    let mut link = link("rate=12mbit,queue=2kb");
    assert_eq!(link.enqueue(ms(0), 1, 1500), Admission::Accepted);
    assert_eq!(link.enqueue(ms(0), 2, 1500), Admission::Dropped(DropReason::Queue));
    assert_eq!(link.enqueue(ms(0), 3, 500), Admission::Accepted);
}

#[test]
fn packets_that_find_a_long_queue_ask_for_the_mark_of_congestion() {
    let mut link = link("rate=12mbit,queue=5p,ecn=2p");
    (0..6).for_each(|n| {
        link.enqueue(ms(0), n, 1500);
    });
    let mut marks = Vec::new();
    while let Some(at) = link.next_deadline() {
        marks.extend(link.dequeue(at).map(|departure| departure.congested));
    }
    assert_eq!(marks, [false, false, true, true, true]);
    assert_eq!(link.statistics().congested, Count { packets: 3, bytes: 4500 });
    link.enqueue(ms(50), 7, 1500);
    assert_eq!(link.dequeue(ms(60)).map(|departure| departure.congested), Some(false));
}

#[test]
fn delay_under_way_does_not_count_as_queue() {
    let mut link = link("rtt=2s,rate=unlimited,queue=1p");
    assert!((0..100).all(|n| link.enqueue(ms(5), n, 1500) == Admission::Accepted));
    assert_eq!(drain(&mut link), (0..100).map(|n| (n, ms(1_005))).collect::<Vec<_>>());
}

#[test]
fn a_link_never_holds_more_than_its_memory_guard() {
    let mut link = link("delay=1s,queue=unlimited");
    assert_eq!(link.enqueue(ms(0), 1, 200 << 20), Admission::Accepted);
    assert_eq!(link.enqueue(ms(0), 2, 200 << 20), Admission::Dropped(DropReason::Memory));
    assert_eq!(drain(&mut link), [(1, ms(1_000))]);
    assert_eq!(link.enqueue(ms(1_000), 3, 200 << 20), Admission::Accepted);
}

#[test]
fn a_trace_is_halved_for_each_direction_and_read_when_the_packet_was_sent() {
    let file = TraceFile::new("halved", "time_ms,rtt_ms\n0,20\n15,50\n30,26\n");
    let spec = LinkSpec {
        delay: Delay::Trace { source: file.source(), reading: Reading::RoundTrip },
        rate: Rate::Constant(Bandwidth::from_megabits_per_second(12)),
        ..LinkSpec::default()
    };
    let mut link = Link::new(&spec, Direction::Up, 0).unwrap();
    // Sent from 4 to 5 ms; RTT at 5 ms is 30 ms.
    link.enqueue(ms(4), 1, 1500);
    assert_eq!(drain(&mut link), [(1, ms(20))]);
    let mut link = Link::new(
        &LinkSpec { replay: crate::Replay { offset: us(22_500), ..Default::default() }, ..spec },
        Direction::Up,
        0,
    )
    .unwrap();
    link.enqueue(ms(0), 1, 0);
    assert_eq!(drain(&mut link), [(1, ms(19))], "22.5 ms into the trace the RTT is 38 ms");
}

#[test]
fn packets_held_by_a_sawtooth_leave_together() {
    // An interruption from 100 to 200 ms, seen one way: the delay jumps by 100 ms and falls by 1 ms each ms.
    let rows = "time_ms,rtt_ms\n0,10\n99,10\n100,110\n200,10\n300,10\n";
    let file = TraceFile::new("sawtooth", rows);
    let delay = Delay::Trace { source: file.source(), reading: Reading::OneWay };
    let mut link = Link::new(&LinkSpec { delay, ..LinkSpec::default() }, Direction::Down, 0).unwrap();
    (0..30).for_each(|n| {
        link.enqueue(ms(10 * u64::from(n)), n, 100);
    });
    let left = drain(&mut link);
    let together = left.iter().filter(|(_, at)| *at == ms(210)).map(|(n, _)| *n).collect::<Vec<_>>();
    assert_eq!(together, (10..=20).collect::<Vec<_>>());
    assert_eq!(left[9], (9, ms(100)));
    assert_eq!(left[21], (21, ms(220)));
}

#[test]
fn a_delay_that_drops_at_once_does_not_let_packets_overtake() {
    let file = TraceFile::new("step", "time_ms,rtt_ms\n0,100\n50,100\n51,10\n500,10\n");
    let delay = Delay::Trace { source: file.source(), reading: Reading::OneWay };
    let mut link = Link::new(&LinkSpec { delay, ..LinkSpec::default() }, Direction::Down, 0).unwrap();
    link.enqueue(ms(50), 1, 100);
    link.enqueue(ms(60), 2, 100);
    link.enqueue(ms(149), 3, 100);
    assert_eq!(drain(&mut link), [(1, ms(150)), (2, ms(150)), (3, ms(159))]);
}

#[test]
fn a_second_of_60_megabits_releases_7500_bytes_a_millisecond_and_a_second_of_zero_nothing() {
    let file = TraceFile::new("rate", "time_ms,down_mbps,up_mbps\n0,60,1\n1000,0,1\n2000,60,1\n");
    let queue = QueueLimit::Unlimited;
    let spec = LinkSpec { rate: Rate::Trace(file.source()), queue, ..LinkSpec::default() };
    let mut link = Link::new(&spec, Direction::Down, 0).unwrap();
    (0..10_000).for_each(|n| {
        link.enqueue(ms(0), n, 1500);
    });
    let mut per_ms = vec![0u32; 3_000];
    for (_, at) in drain(&mut link) {
        // Up to and including the end of each millisecond.
        per_ms[(at.as_micros() as usize - 1) / 1_000] += 1500;
    }
    assert!(per_ms[..1_000].iter().all(|bytes| *bytes == 7_500));
    assert!(per_ms[1_000..2_000].iter().all(|bytes| *bytes == 0));
    assert!(per_ms[2_000..].iter().all(|bytes| *bytes == 7_500));
}

#[test]
fn a_rate_that_stays_at_zero_holds_its_queue_for_ever() {
    let file = TraceFile::new("stop", "time_ms,down_mbps,up_mbps\n0,12,1\n10,0,1\n");
    let spec = LinkSpec {
        rate: Rate::Trace(file.source()),
        replay: crate::Replay { end: crate::TraceEnd::Hold, ..Default::default() },
        queue: QueueLimit::Packets(2),
        ..LinkSpec::default()
    };
    let mut link = Link::new(&spec, Direction::Down, 0).unwrap();
    let verdicts: Vec<_> = (0..3).map(|n| link.enqueue(ms(10), n, 1500)).collect();
    assert_eq!(verdicts, [Admission::Accepted, Admission::Accepted, Admission::Dropped(DropReason::Queue)]);
    assert_eq!((link.next_deadline(), link.dequeue(Duration::MAX), link.held_packets()), (None, None, 2));
}

#[test]
fn a_missing_trace_is_an_error_with_its_name() {
    let spec: ChannelSpec = "rtt=file:no/such.csv".parse().unwrap();
    let error = Link::<u32>::new(&spec.up, Direction::Up, 0).unwrap_err();
    assert!(error.to_string().starts_with("no/such.csv: cannot read it"), "{error}");
}

#[test]
fn a_sleeping_device_gets_its_packets_at_the_next_wake_up() {
    let mut link = link("rtt=0ms,drx=30ms/40ms");
    link.enqueue(ms(100), 0, 100);
    assert_eq!(link.next_deadline(), Some(ms(110)), "awake until 30, then at 70, 110 …");
    // Traffic at 139 keeps it awake until 169; at 189 it has slept for 20 ms and wakes up 20 ms later, at 209.
    assert_eq!(drain(&mut link), [(0, ms(110))]);
    link.enqueue(ms(139), 1, 100);
    link.enqueue(ms(189), 2, 100);
    link.enqueue(ms(200), 3, 100);
    assert_eq!(drain(&mut link), [(1, ms(139)), (2, ms(209)), (3, ms(209))]);
}

#[test]
fn a_blackout_swallows_what_enters_and_what_would_have_left() {
    let mut link = link("delay=10ms,blackout=50ms..60ms");
    link.enqueue(ms(39), 0, 100);
    link.enqueue(ms(45), 1, 100);
    assert_eq!(link.enqueue(ms(50), 2, 100), Admission::Dropped(DropReason::Blackout));
    assert_eq!(link.enqueue(ms(60), 3, 100), Admission::Accepted);
    assert_eq!(drain(&mut link), [(0, ms(49)), (3, ms(70))]);
    assert_eq!(link.statistics().dropped(DropReason::Blackout), Count { packets: 2, bytes: 200 });
}

#[test]
fn a_link_can_be_cut_and_restored() {
    let mut link = link("delay=10ms");
    link.enqueue(ms(0), 0, 100);
    link.cut(ms(5), Duration::MAX);
    assert_eq!(link.enqueue(ms(6), 1, 100), Admission::Dropped(DropReason::Blackout));
    assert_eq!(drain(&mut link), []);
    link.restore(ms(20));
    assert_eq!(link.enqueue(ms(20), 2, 100), Admission::Accepted);
    assert_eq!(drain(&mut link), [(2, ms(30))]);
    link.cut(ms(40), ms(50));
    assert_eq!(link.enqueue(ms(45), 3, 100), Admission::Dropped(DropReason::Blackout));
    assert_eq!(link.enqueue(ms(50), 4, 100), Admission::Accepted);
}

#[test]
fn reordering_holds_some_packets_back_and_lets_others_pass() {
    let mut link = link("delay=10ms,reorder=10%/5ms");
    (0..1_000).for_each(|n| {
        link.enqueue(ms(u64::from(n)), n, 100);
    });
    let left = drain(&mut link);
    let late = left.iter().filter(|(n, at)| *at != ms(u64::from(*n) + 10)).count();
    assert!((60..140).contains(&late), "{late}");
    assert!(left.iter().all(|(n, at)| *at <= ms(u64::from(*n) + 15)));
    assert!(left.windows(2).any(|pair| pair[0].0 > pair[1].0));
    assert_eq!(left.len(), 1_000);
}

#[test]
fn duplication_delivers_a_packet_twice_at_once() {
    let mut link = link("delay=10ms,duplicate=100%");
    link.enqueue(ms(0), 9, 100);
    assert_eq!(drain(&mut link), [(9, ms(10)), (9, ms(10))]);
    assert_eq!(link.statistics().duplicated, Count { packets: 1, bytes: 100 });
}

#[test]
fn the_statistics_tell_delays_and_bytes_over_time() {
    let mut link = link("delay=10ms,rate=12mbit,queue=2p");
    link.record_series(ms(100));
    (0..3).for_each(|n| {
        link.enqueue(ms(95), n, 1500);
    });
    drain(&mut link);
    let delays = link.statistics().delays();
    assert_eq!((delays.count, delays.min, delays.max), (2, ms(11), us(12_000)));
    assert!(delays.mean >= us(11_490) && delays.mean <= us(11_510), "{delays:?}");
    let series = link.series().unwrap();
    let expected = [
        crate::Bucket { entered: 4500, left: 0, dropped: 1500 },
        crate::Bucket { entered: 0, left: 3000, dropped: 0 },
    ];
    assert_eq!((series.width(), series.buckets()), (ms(100), &expected[..]));
}

/// Some link that does everything except what breaks order.
fn specification() -> impl Strategy<Value = String> {
    (
        prop_oneof![
            Just("delay=7ms"),
            Just("rtt=normal:10ms:1.5"),
            Just("delay=uniform:0ms:20ms"),
            Just("rtt=trace:MM-D")
        ],
        prop_oneof![Just("rate=unlimited"), Just("rate=1mbit"), Just("rate=trace:LB-D")],
        prop_oneof![Just("queue=5p"), Just("queue=9kb"), Just("queue=800p")],
        prop_oneof![Just("loss=0"), Just("loss=20%"), Just("burst=5%/30%/90%")],
        prop_oneof![Just("drx=off"), Just("drx=30ms/40ms"), Just("blackout=200ms..400ms")],
    )
        .prop_map(|(delay, rate, queue, loss, more)| [delay, rate, queue, loss, more].join(","))
}

/// Packets: time since the one before in µs, and size.
fn traffic() -> impl Strategy<Value = Vec<(u64, usize)>> {
    proptest::collection::vec((0u64..30_000, 0usize..1500), 0..200)
}

/// Runs the traffic through a link, handing out on the way what has left; returns what left.
fn run(link: &mut Link<u32>, traffic: &[(u64, usize)]) -> Vec<(u32, Duration)> {
    let (mut now, mut left) = (Duration::ZERO, Vec::new());
    for (number, (gap, size)) in (0u32..).zip(traffic) {
        now += us(*gap);
        while let Some(departure) = link.dequeue(now) {
            left.push((departure.packet, departure.at));
        }
        link.enqueue(now, number, *size);
    }
    left
}

fn conserves(link: &Link<u32>) -> bool {
    let statistics = link.statistics();
    let (into, out) = (
        (statistics.entered, statistics.duplicated),
        (statistics.left, statistics.dropped_in_all(), link.held_packets() as u64, link.held_bytes()),
    );
    into.0.packets + into.1.packets == out.0.packets + out.1.packets + out.2
        && into.0.bytes + into.1.bytes == out.0.bytes + out.1.bytes + out.3
}

proptest! {
    #[test]
    fn packets_leave_in_the_order_they_came_and_none_appears_or_vanishes(
        text in specification(), traffic in traffic()
    ) {
        let mut link = link(&text);
        let mut left = run(&mut link, &traffic);
        prop_assert!(conserves(&link));
        left.extend(drain(&mut link));
        prop_assert!(conserves(&link));
        prop_assert_eq!(link.held_packets(), 0);
        prop_assert!(left.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1));
    }

    #[test]
    fn nothing_vanishes_when_packets_are_copied_and_reordered(text in specification(), traffic in traffic()) {
        let mut link = link(&format!("{text},duplicate=20%,reorder=20%/30ms"));
        run(&mut link, &traffic);
        prop_assert!(conserves(&link));
        drain(&mut link);
        prop_assert!(conserves(&link));
    }

    #[test]
    fn the_same_seed_gives_the_same_run(text in specification(), traffic in traffic(), seed: u64) {
        let spec: ChannelSpec = format!("{text},duplicate=5%,reorder=5%").parse().unwrap();
        let outcome = || {
            let mut link = Link::new(&spec.down, Direction::Down, seed).unwrap();
            let mut left = run(&mut link, &traffic);
            left.extend(drain(&mut link));
            left
        };
        prop_assert_eq!(outcome(), outcome());
    }
}

#[test]
fn different_seeds_lose_different_packets() {
    let spec: ChannelSpec = "loss=50%".parse().unwrap();
    let lost = |seed, direction| {
        let mut link = Link::new(&spec.down, direction, seed).unwrap();
        (0..64).map(|n| link.enqueue(ms(n), 0u32, 1) == Admission::Accepted).collect::<Vec<_>>()
    };
    assert_ne!(lost(1, Direction::Down), lost(2, Direction::Down));
    assert_ne!(lost(1, Direction::Down), lost(1, Direction::Up));
}
