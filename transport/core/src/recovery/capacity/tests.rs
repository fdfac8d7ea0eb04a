use super::*;
use crate::recovery::sent_packet::PacketClass;
use proptest::prelude::*;

/// A path of `rate` and an empty round trip of `base`, over which bursts are sent when it is idle.
struct World {
    capacity: Capacity,
    rate: Bandwidth,
    base: Duration,
    now: Instant,
    sent: u64,
    of_handshake: bool,
}

impl World {
    fn new(mbit: u64, base: u64) -> Self {
        let (rate, base) = (Bandwidth::from_mbit(mbit), Duration::from_millis(base));
        let capacity = Capacity::default();
        let mut world = Self { capacity, rate, base, now: Instant::ZERO, sent: 0, of_handshake: false };
        world.burst(&[60], &[Duration::ZERO]);
        world
    }

    /// The path before anything but the handshake crossed it.
    fn in_handshake(mbit: u64, base: u64) -> Self {
        Self { capacity: Capacity::default(), of_handshake: true, ..Self::new(mbit, base) }
    }

    /// Sends packets of `sizes` at once; the acknowledgement of each is late by what `late` says.
    fn burst(&mut self, sizes: &[usize], late: &[Duration]) {
        let mut packets = Vec::new();
        for (number, bytes) in (0..).zip(sizes.iter().copied()) {
            let ahead: usize = sizes[..number as usize].iter().sum();
            let mut packet = SentPacket::new(number, self.now, bytes, PacketClass::AckEliciting);
            let burst = self.capacity.on_sent(self.now, self.sent, ahead);
            packet.delivery.burst = if self.of_handshake { burst.of_handshake() } else { burst };
            self.sent += bytes as u64;
            packets.push((packet, self.base + self.rate.transmission_time(ahead + bytes)));
        }
        for ((packet, rtt), late) in packets.iter().zip(late.iter().cycle()) {
            self.capacity.on_passage(&Passage::of(packet, PathId::ZERO, *rtt + *late));
        }
        self.now += Duration::from_secs(1);
    }

    fn mbit(&self) -> Option<f64> {
        self.capacity.estimate().map(|rate| rate.bits_per_second() as f64 / 1e6)
    }
}

const IN_TIME: [Duration; 1] = [Duration::ZERO];

#[test]
fn two_packets_at_once_show_a_narrow_path() {
    let mut world = World::new(2, 5);
    assert_eq!(world.mbit(), None);
    world.burst(&[1452, 1452], &IN_TIME);
    let shown = world.mbit().expect("a burst was seen");
    assert!((1.7..=2.0).contains(&shown), "{shown} Mbit/s");
}

#[test]
fn packets_of_the_handshake_show_a_rate_until_data_does() {
    let mut world = World::in_handshake(2, 5);
    world.burst(&[1200, 1200, 300], &IN_TIME);
    assert_eq!((world.mbit(), world.capacity.bursts()), (None, 0));
    let shown = world.capacity.shown_by_handshake().expect("three packets").bits_per_second();
    assert!((1_700_000..=2_000_000).contains(&shown), "{shown} bit/s");
    world.of_handshake = false;
    world.burst(&[200], &IN_TIME);
    assert!(world.capacity.shown_by_handshake().is_some(), "a single packet shows nothing else");
    world.burst(&[1452, 1452], &IN_TIME);
    assert!(world.mbit().is_some());
    assert_eq!((world.capacity.shown_by_handshake(), world.capacity.bursts()), (None, 1));
    world.of_handshake = true;
    world.burst(&[1200, 1200, 300], &IN_TIME);
    assert_eq!((world.capacity.shown_by_handshake(), world.capacity.bursts()), (None, 1));
}

#[test]
fn single_small_packets_show_nothing() {
    let mut world = World::new(2, 5);
    (0..20).for_each(|_| world.burst(&[200], &IN_TIME));
    assert_eq!(world.mbit(), None);
}

#[test]
fn a_wide_path_is_not_taken_for_a_narrow_one_because_acknowledgements_are_late_now_and_then() {
    let mut world = World::new(60, 50);
    let late = [0, 20, 3, 40, 0, 9, 15].map(Duration::from_millis);
    for late in late {
        world.burst(&[1452; 10], &[late]);
    }
    let shown = world.mbit().expect("bursts were seen");
    assert!(shown > 30.0, "{shown} Mbit/s");
}

#[test]
fn a_standing_queue_of_others_is_not_taken_for_a_narrow_path() {
    let mut world = World::new(20, 16);
    let queue = [Duration::from_millis(100)];
    let mut shown = Vec::new();
    for packets in [2, 4, 8, 16, 16] {
        world.burst(&vec![1452; packets], &queue);
        assert_eq!(world.capacity.undecided().is_some(), packets < 16 || shown.len() < 5);
        shown.push(world.mbit().expect("bursts were seen"));
    }
    // 2904 bytes in 101 ms are 0.2 Mbit/s, 23 kB in 109 ms 1.7.
    assert!(shown[0] < 0.3 && shown[1] > 0.6 && shown[4] > 3.0, "{shown:?}");
}

#[test]
fn bursts_of_unlike_length_that_show_the_same_decide() {
    let mut world = World::new(2, 5);
    world.burst(&[1452], &IN_TIME);
    world.burst(&[1452], &IN_TIME);
    assert!(world.capacity.undecided().is_some(), "all were of one length");
    world.burst(&[1452; 2], &IN_TIME);
    assert_eq!(world.capacity.undecided(), None);
}

#[test]
fn a_burst_that_shows_the_same_from_its_beginning_on_decides() {
    let mut world = World::new(2, 5);
    world.burst(&[1452; 2], &IN_TIME);
    assert_eq!(world.capacity.undecided(), None);
    let mut world = World::new(2, 5);
    world.burst(&[1452; 2], &[Duration::from_millis(100)]);
    assert!(world.capacity.undecided().is_some(), "others may have delayed it");
}

#[test]
fn a_path_that_became_slower_is_seen_after_some_bursts() {
    let mut world = World::new(2, 5);
    (0..BURSTS).for_each(|_| world.burst(&[1452; 4], &IN_TIME));
    world.rate = Bandwidth::from_mbit(1);
    (0..BURSTS).for_each(|_| world.burst(&[1452; 4], &IN_TIME));
    let shown = world.mbit().expect("bursts were seen");
    assert!((0.8..=1.0).contains(&shown), "{shown} Mbit/s");
}

#[test]
fn packets_that_the_sender_spread_show_nothing() {
    let mut capacity = Capacity::default();
    for number in 0..100 {
        let now = Instant::ZERO + Duration::from_micros(900) * number;
        let burst = capacity.on_sent(now, u64::from(number) * 1000, 5000 * usize::from(number > 0));
        let passage =
            Passage { burst, sent_at: now, bytes: 1000, over: PathId::ZERO, rtt: Duration::from_millis(5) };
        capacity.on_passage(&passage);
    }
    assert!(capacity.estimate().is_none());
}

#[test]
fn a_promise_is_refuted_by_one_burst_that_shows_less_than_half_and_by_three_that_show_a_fifth_less() {
    let refuted = |promised, bursts| {
        let mut world = World::new(2, 5);
        (0..bursts).for_each(|_| world.burst(&[1452; 4], &IN_TIME));
        world.capacity.refutation(Bandwidth::from_bits_per_second(promised)).is_some()
    };
    assert!(!refuted(10_000_000, 0) && refuted(10_000_000, 1));
    assert!(!refuted(2_700_000, 2) && refuted(2_700_000, 3));
    assert!(!refuted(2_000_000, 8) && !refuted(1_000_000, 8));
}

#[test]
fn a_burst_ends_with_a_pause_and_whenever_nothing_is_in_flight() {
    let mut capacity = Capacity::default();
    let at = |micros| Instant::ZERO + Duration::from_micros(micros);
    let shown = |burst: Burst| (burst.number, burst.idle_since, burst.ahead);
    assert_eq!(shown(capacity.on_sent(at(0), 0, 0)), (1, Some(at(0)), 0));
    assert_eq!(shown(capacity.on_sent(at(1000), 1200, 1200)), (1, Some(at(0)), 1200), "a short pause");
    assert_eq!(shown(capacity.on_sent(at(2001), 2400, 2400)), (2, None, 0), "a long pause");
    assert_eq!(shown(capacity.on_sent(at(2001), 3600, 0)), (3, Some(at(2001)), 0), "all had arrived");
}

/// A packet of a burst that began while others were in flight: `ahead` bytes of it left before, all at once.
fn passage(ahead: u64, over: u32, rtt: u64) -> Passage {
    let burst = Burst { number: 1, ahead, ..Burst::default() };
    let (over, rtt) = (PathId(over), Duration::from_millis(rtt));
    Passage { burst, sent_at: Instant::ZERO, bytes: 1000, over, rtt }
}

#[test]
fn two_packets_of_a_burst_show_a_rate_if_both_were_acknowledged_over_the_same_path() {
    let shown = |passages: &[Passage]| {
        let mut capacity = Capacity::default();
        passages.iter().for_each(|passage| capacity.on_passage(passage));
        capacity.estimate()
    };
    let queued = [passage(0, 0, 150), passage(10_000, 0, 190)];
    assert_eq!(shown(&queued), Some(rate(10_000, Duration::from_millis(40))));
    assert_eq!(shown(&[passage(0, 0, 150), passage(10_000, 1, 190)]), None, "the way back is longer");
    let other = Passage { burst: Burst { number: 2, ..queued[1].burst }, ..queued[1] };
    assert_eq!(shown(&[queued[0], other]), None, "another burst");
}

#[test]
fn few_return_paths_are_told_apart() {
    let mut capacity = Capacity::default();
    (0..10).for_each(|over| capacity.on_passage(&passage(0, over, 50)));
    assert_eq!(capacity.shown.map(|shown| shown.bases.len()), Some(RETURN_PATHS));
}

fn stretch(bytes: u32, kbit: u64, is_steady: bool) -> Stretch {
    Stretch { burst: bytes, bytes, is_steady, rate: Bandwidth::from_bits_per_second(1000 * kbit) }
}

#[test]
fn stretches_of_half_the_length_of_the_longest_count() {
    let stretches = [stretch(10_000, 10, true), stretch(5_000, 20, true), stretch(4_999, 40, true)];
    assert_eq!(Findings::of(&stretches).rate, Some(Bandwidth::from_bits_per_second(20_000)));
}

#[test]
fn a_longer_stretch_shows_the_same_below_a_quarter_more() {
    for (bytes, kbit, is_same) in [(1500, 124, true), (1500, 125, false), (1499, 100, false)] {
        let long = stretch(bytes, kbit, false);
        assert_eq!(long.shows_the_same_as(&stretch(1000, 100, false)), is_same, "{long:?}");
    }
}

#[test]
fn an_undecided_rate_is_that_of_the_growth() {
    // 4000 bytes in 70 ms, and 8000 in 100.
    let findings = Findings::of(&[stretch(4000, 457, false), stretch(8000, 640, false)]);
    let shown = findings.rate.map_or(0, Bandwidth::bits_per_second);
    assert!((1_050_000..1_075_000).contains(&shown), "{shown} bit/s in the last 30 ms");
    assert_eq!(findings.undecided, Some(8000));
}

#[test]
fn a_promise_that_is_just_kept_is_not_refuted() {
    let refuted = |bursts, promised| {
        let mut shown =
            Shown { stretches: smallvec::smallvec![stretch(1000, 1000, true); bursts], ..Shown::default() };
        shown.findings = Findings::of(&shown.stretches);
        let capacity = Capacity { shown: Some(Box::new(shown)), ..Capacity::default() };
        capacity.refutation(Bandwidth::from_bits_per_second(promised)).is_some()
    };
    assert!(!refuted(1, 2_000_000) && refuted(1, 2_000_001), "one shows half");
    assert!(!refuted(SEVERAL, 1_250_000) && refuted(SEVERAL, 1_250_001), "several show a fifth less");
}

proptest! {
    #[test]
    fn where_nothing_is_early_no_more_is_shown_than_the_path_carries_or_twice_that_while_undecided(
        mbit in 1u64..1000,
        base in 1u64..300,
        bursts in proptest::collection::vec((2usize..20, 0u64..50), 1..20),
    ) {
        let mut world = World::new(mbit, base);
        for (packets, late) in bursts {
            // All that belongs to a burst is late by the same.
            world.burst(&vec![1452; packets], &[Duration::from_millis(late)]);
            let shown = world.capacity.shown.as_ref().expect("packets arrived");
            prop_assert_eq!(shown.findings, Findings::of(&shown.stretches), "they are those of the bursts as they are");
        }
        let most = if world.capacity.undecided().is_some() { 2 * mbit } else { mbit } as f64 * 1.001;
        prop_assert!(world.mbit().is_none_or(|shown| shown <= most));
    }
}
