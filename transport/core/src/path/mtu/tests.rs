use super::*;
use crate::recovery::sent_packet::PacketClass;

const NOW: Instant = Instant::from_nanos(1_000_000_000);

fn packet(number: u64, bytes: usize) -> SentPacket {
    SentPacket::new(number, NOW, bytes, PacketClass::InFlight)
}

fn busy(sizing: DatagramSizing) -> Discovery {
    let mut discovery = Discovery::new(sizing);
    (0..WORTHWHILE).for_each(|_| discovery.on_sent(discovery.size()));
    discovery
}

/// Searches on a path that carries `mtu`; the numbers of probes sent and where the search ends.
fn search(discovery: &mut Discovery, mtu: usize, now: Instant) -> u64 {
    let mut number = 1000;
    while let Some(size) = discovery.wanted(now, None) {
        number += 1;
        assert!(number < 1100, "the search does not end");
        discovery.on_probe_sent(number, size, NOW + Duration::from_secs(1));
        assert_eq!(discovery.wanted(now, None), None, "one probe at a time");
        if size <= mtu {
            assert!(discovery.on_acknowledged(&packet(number, size)));
        } else {
            let mut lost = vec![packet(number, size), packet(number + 500, 1200)];
            discovery.take_lost_probe(&mut lost);
            assert_eq!(lost.len(), 1, "a lost probe is no sign of congestion");
        }
    }
    number - 1000
}

#[test]
fn an_ordinary_path_takes_one_probe() {
    let mut discovery = busy(DatagramSizing::default());
    assert_eq!(search(&mut discovery, 1500, NOW), 1);
    assert_eq!(discovery.size(), 1452);
}

#[test]
fn a_narrow_path_is_found_to_within_the_precision_and_tried_again_later() {
    // RFC 8899 §5.1.1, §5.3.2.
    for mtu in [1200, 1250, 1372, 1451, 4000] {
        let mut discovery = busy(DatagramSizing::Discover { most: 8952 });
        let probes = search(&mut discovery, mtu, NOW);
        assert!(discovery.size() <= mtu && discovery.size() + PRECISION >= mtu, "{}", discovery.size());
        assert!(probes < 40, "{probes} probes");
        assert_eq!(discovery.wanted(NOW + RAISE_AFTER / 2, None), None);
        let first = if mtu < ETHERNET { ETHERNET } else { 8952 };
        assert_eq!(discovery.wanted(NOW + RAISE_AFTER, None), Some(first));
    }
}

#[test]
fn loopback_takes_two_probes_to_its_largest_datagram() {
    let mut discovery = busy(DatagramSizing::WHATEVER_IS_CARRIED);
    assert_eq!(search(&mut discovery, 65_507, NOW), 2);
    assert_eq!(discovery.size(), 65_507);
}

#[test]
fn what_the_interface_does_not_take_is_found_without_loss() {
    let mut discovery = busy(DatagramSizing::WHATEVER_IS_CARRIED);
    let (mut number, mut refused) = (1000, 0);
    while let Some(size) = discovery.wanted(NOW, None) {
        number += 1;
        discovery.on_probe_sent(number, size, NOW + Duration::from_secs(1));
        if size <= 1472 {
            assert!(discovery.on_acknowledged(&packet(number, size)));
            continue;
        }
        assert!(!discovery.on_refused(size, NOW));
        assert_eq!(discovery.take_overdue(NOW), Some(number), "it need not be waited for");
        refused += 1;
    }
    assert!((1456..=1472).contains(&discovery.size()), "{}", discovery.size());
    assert!(refused <= 16, "{refused}");
}

#[test]
fn nothing_is_probed_for_a_short_exchange_a_fixed_size_or_beyond_what_the_peer_takes() {
    assert_eq!(Discovery::new(DatagramSizing::default()).wanted(NOW, None), None);
    assert_eq!(busy(DatagramSizing::Fixed(1452)).wanted(NOW, None), None);
    let mut limited = busy(DatagramSizing::default());
    limited.limit(1300);
    assert_eq!(limited.wanted(NOW, None), Some(1300));
    let mut fixed = Discovery::new(DatagramSizing::Fixed(1452));
    fixed.limit(100);
    assert_eq!(fixed.size(), MINIMUM_DATAGRAM, "RFC 9000 §18.2: no limit is below 1200");
}

#[test]
fn a_path_that_swallows_large_packets_is_used_with_small_ones() {
    // attacks.md D16; RFC 8899 §4.3.
    let mut discovery = busy(DatagramSizing::default());
    search(&mut discovery, 1500, NOW);
    // The usual losses are older than what arrived.
    for number in 2000..2100 {
        assert!(!discovery.on_acknowledged(&packet(number + 10, 1452)));
        assert!(!discovery.on_lost(&[packet(number, 1452)], NOW));
    }
    assert!(!discovery.on_lost(&[packet(3000, 1452), packet(3001, 1452)], NOW));
    assert!(!discovery.on_acknowledged(&packet(3002, 60)), "a small packet proves nothing");
    assert!(discovery.on_lost(&[packet(3003, 1452)], NOW));
    assert_eq!(discovery.size(), MINIMUM_DATAGRAM);
    assert!(!discovery.on_lost(&[packet(3004, 1452)], NOW), "it gets no smaller");
    search(&mut discovery, 1400, NOW);
    assert!((1384..=1400).contains(&discovery.size()), "{}", discovery.size());
}

#[test]
fn what_the_system_refuses_to_send_is_not_lost_and_not_tried_again_soon() {
    // RFC 8899 §3: a local limit is known at once. The interface takes 1400 bytes.
    let mut discovery = busy(DatagramSizing::default());
    discovery.on_probe_sent(1001, 1452, NOW + Duration::from_secs(1));
    assert!(!discovery.on_refused(1452, NOW), "datagrams are smaller still");
    assert_eq!((discovery.take_overdue(NOW), discovery.lost_probes), (Some(1001), 0));
    let mut lost = vec![packet(1000, 1200), packet(1002, 1452)];
    assert_eq!(discovery.take_refused(&mut lost).len(), 1);
    assert_eq!(lost.len(), 1);
    search(&mut discovery, 1400, NOW);
    assert!((1384..=1400).contains(&discovery.size()), "{}", discovery.size());
    // The interface changes: 1300 bytes. What is smaller, or older than what arrived, was lost on the way.
    let size = discovery.size();
    assert!(!discovery.on_acknowledged(&packet(2000, size)));
    assert!(discovery.on_refused(size, NOW));
    assert_eq!(discovery.size(), MINIMUM_DATAGRAM);
    let mut lost = vec![packet(1999, size), packet(2001, 900), packet(2002, size)];
    let refused: Vec<_> = discovery.take_refused(&mut lost).iter().map(|packet| packet.number).collect();
    assert_eq!((refused, lost.len()), (vec![2002], 2));
    assert_eq!(discovery.wanted(NOW, None).map(|wanted| wanted < size), Some(true));
}

#[test]
fn no_refusal_of_a_small_size_makes_datagrams_smaller_than_every_path_must_carry() {
    // attacks.md D15, RFC 9000 §14.2.1: somebody may have had the system believe that it refuses what it does not.
    let mut discovery = busy(DatagramSizing::default());
    search(&mut discovery, 1500, NOW);
    for size in 0..=MINIMUM_DATAGRAM {
        assert!(!discovery.on_refused(size, NOW));
        assert_eq!(discovery.size(), 1452);
    }
    assert!(discovery.on_refused(1452, NOW));
    for size in 0..=MINIMUM_DATAGRAM {
        discovery.on_refused(size, NOW);
        assert_eq!(discovery.size(), MINIMUM_DATAGRAM);
    }
}

#[test]
fn a_refusal_changes_neither_a_fixed_size_nor_the_smallest() {
    let mut fixed = Discovery::new(DatagramSizing::Fixed(1452));
    assert!(!fixed.on_refused(1452, NOW));
    assert_eq!(fixed.size(), 1452);
    let mut discovery = busy(DatagramSizing::default());
    assert!(!discovery.on_refused(MINIMUM_DATAGRAM, NOW) && !discovery.on_refused(65_000, NOW));
    assert_eq!(discovery.wanted(NOW, None), Some(1452));
}

#[test]
fn losses_of_small_packets_never_shrink_anything() {
    let mut discovery = busy(DatagramSizing::default());
    search(&mut discovery, 1500, NOW);
    for number in 2000..2100 {
        assert!(!discovery.on_lost(&[packet(number, 1200)], NOW));
    }
    assert_eq!(discovery.size(), 1452);
}

#[test]
fn a_probe_of_which_nothing_is_heard_is_overdue() {
    // RFC 8899 §5.1.1: nothing that follows it need be acknowledged.
    let mut discovery = Discovery::new(DatagramSizing::default());
    discovery.on_probe_sent(7, 1452, NOW + Duration::from_secs(1));
    assert_eq!(discovery.take_overdue(NOW), None);
    let at = discovery.overdue_at().unwrap();
    assert_eq!((at, discovery.take_overdue(at)), (NOW + Duration::from_secs(1), Some(7)));
    assert_eq!((discovery.overdue_at(), discovery.take_overdue(at)), (None, None));
}

#[test]
fn a_size_stands_for_datagrams_of_it_and_no_search() {
    assert_eq!(DatagramSizing::from(1_400), DatagramSizing::Fixed(1_400));
    assert_eq!(DatagramSizing::from(1_400).first(), 1_400);
    assert_eq!(DatagramSizing::from(100).first(), MINIMUM_DATAGRAM);
}

#[test]
fn eight_full_datagrams_or_a_use_for_larger_ones_are_worth_a_probe() {
    let mut discovery = Discovery::new(DatagramSizing::default());
    for _ in 0..7 {
        discovery.on_sent(1_200);
        discovery.on_sent(1_199);
    }
    assert_eq!(discovery.wanted(NOW, None), None);
    for (most, wanted) in [(1_199, None), (1_200, None), (1_201, Some(1_452))] {
        let asked = Some(Asked { most, latest: most });
        assert_eq!(discovery.wanted(NOW, asked), wanted, "{most} bytes are asked for");
    }
    discovery.on_sent(1_200);
    assert_eq!(discovery.wanted(NOW, None), Some(1_452));
}

#[test]
fn a_size_that_was_asked_for_is_tried_within_what_may_still_be_carried() {
    let asked = |latest| Some(Asked { most: 2_000, latest });
    let narrow = || {
        let mut discovery = Discovery::new(DatagramSizing::default());
        (0..MOST_PROBES).for_each(|number| {
            discovery.on_probe_sent(u64::from(number), 1_452, NOW);
            assert_eq!(discovery.take_overdue(NOW), Some(u64::from(number)));
        });
        discovery
    };
    // What is carried lies from 1200 up to 1451.
    for (latest, wanted) in [(1_200, 1_326), (1_201, 1_201), (1_451, 1_451), (1_452, 1_326)] {
        assert_eq!(narrow().wanted(NOW, asked(latest)), Some(wanted), "{latest} bytes are asked for");
    }
}

#[test]
fn the_reach_of_a_search_is_the_largest_size_that_is_not_known_to_be_too_large() {
    let mut discovery = Discovery::new(DatagramSizing::Discover { most: 2_000 });
    assert_eq!(discovery.reach(None), 2_000);
    discovery.on_probe_sent(1, 1_452, NOW);
    assert_eq!(discovery.reach(None), 2_000, "a probe is under way");
    assert!(!discovery.on_refused(1_452, NOW));
    assert_eq!(discovery.reach(None), 1_451);
    assert_eq!(discovery.take_overdue(NOW), Some(1));
    let mut done = busy(DatagramSizing::Discover { most: 2_000 });
    search(&mut done, 1_700, NOW);
    let size = done.size();
    assert_eq!(done.reach(None), size, "the search has ended");
    done.on_probe_sent(9, size + 1, NOW);
    assert!(done.reach(None) > size, "a probe is under way");
    let mut fixed = Discovery::new(DatagramSizing::Fixed(1_300));
    assert_eq!(fixed.reach(Some(Asked { most: 1_400, latest: 1_400 })), 1_300);
    fixed.on_probe_sent(1, 1_400, NOW);
    assert_eq!(fixed.reach(None), 1_300);
}

#[test]
fn a_probe_that_is_late_or_beyond_a_new_limit_changes_nothing() {
    for (limit, size, grows) in [(1_452, 1_452, true), (1_451, 1_452, false), (1_452, 1_200, false)] {
        let mut discovery = busy(DatagramSizing::default());
        discovery.on_probe_sent(1, size, NOW);
        discovery.limit(limit);
        assert_eq!(discovery.on_acknowledged(&packet(1, size)), grows);
        assert_eq!(discovery.size(), if grows { size } else { 1_200 });
    }
}

#[test]
fn losses_of_others_leave_the_probe_under_way() {
    let mut discovery = busy(DatagramSizing::default());
    discovery.on_probe_sent(5, 1_452, NOW + Duration::from_secs(1));
    let mut lost = vec![packet(4, 1_200)];
    discovery.take_lost_probe(&mut lost);
    assert_eq!((lost.len(), discovery.overdue_at().is_some()), (1, true));
    assert_eq!(discovery.wanted(NOW, None), None, "one probe at a time");
}

#[test]
fn a_size_that_arrived_after_all_is_not_taken_for_refused() {
    for (arrived, refused) in [(1_399, 1), (1_400, 0)] {
        let mut discovery = busy(DatagramSizing::default());
        search(&mut discovery, 1_500, NOW);
        assert!(discovery.on_refused(1_400, NOW));
        assert!(!discovery.on_acknowledged(&packet(3_000, arrived)));
        assert_eq!(discovery.take_refused(&mut vec![packet(3_001, 1_400)]).len(), refused);
    }
}

#[test]
fn a_refused_size_is_not_tried_twice_more() {
    // RFC 8899 §3: a local limit is known at once.
    let mut discovery = busy(DatagramSizing::default());
    discovery.on_probe_sent(1, 1_452, NOW + Duration::from_secs(9));
    assert!(!discovery.on_refused(1_452, NOW));
    assert_eq!((discovery.overdue_at(), discovery.take_overdue(NOW)), (Some(NOW), Some(1)));
    assert_eq!(discovery.wanted(NOW, None), Some(1_326), "the middle of what is left");
    discovery.on_probe_sent(2, 1_326, NOW);
    assert_eq!(discovery.take_overdue(NOW), Some(2));
    assert_eq!(discovery.wanted(NOW, None), Some(1_326), "the next size has all its probes");
}

#[test]
fn a_path_that_lost_its_large_datagrams_is_tried_again_after_ten_minutes() {
    // RFC 8899 §5.1.1, PMTU_RAISE_TIMER.
    let mut discovery = busy(DatagramSizing::default());
    search(&mut discovery, 1_500, NOW);
    (3_000..3_002).for_each(|number| {
        discovery.on_lost(&[packet(number, 1_210)], NOW);
    });
    assert_eq!((discovery.size(), discovery.wanted(NOW, None)), (1_200, None), "nothing is left to gain");
    assert_eq!(discovery.wanted(NOW + RAISE_AFTER - Duration::from_secs(1), None), None);
    assert_eq!(discovery.wanted(NOW + RAISE_AFTER, None), Some(1_452));
}

#[test]
fn a_datagram_that_every_path_must_carry_proves_nothing_about_larger_ones() {
    let mut discovery = busy(DatagramSizing::default());
    search(&mut discovery, 1_500, NOW);
    assert!(!discovery.on_lost(&[packet(3_000, 1_452)], NOW));
    assert!(!discovery.on_acknowledged(&packet(3_001, 1_200)));
    assert!(discovery.on_lost(&[packet(3_002, 1_452)], NOW), "the second loss in a row");
}

#[test]
fn the_search_ends_where_no_more_than_sixteen_bytes_are_left_to_gain() {
    for (smallest, wanted) in [(1_216, None), (1_217, Some(1_208))] {
        let mut discovery = busy(DatagramSizing::default());
        search(&mut discovery, 1_500, NOW);
        (3_000..3_002).for_each(|number| {
            discovery.on_lost(&[packet(number, smallest)], NOW);
        });
        assert_eq!(discovery.wanted(NOW, None), wanted);
    }
}

#[test]
fn a_probe_may_be_wanted_where_one_is_worthwhile_and_none_is_under_way() {
    let asked = |most| move || Some(Asked { most, latest: most });
    let mut discovery = Discovery::new(DatagramSizing::default());
    assert!(!discovery.is_wanting(NOW, || None), "nothing large was sent");
    for (most, is_wanting) in [(1_199, false), (1_200, false), (1_201, true)] {
        assert_eq!(discovery.is_wanting(NOW, asked(most)), is_wanting, "{most} bytes are asked for");
    }
    (0..WORTHWHILE).for_each(|_| discovery.on_sent(1_200));
    assert!(discovery.is_wanting(NOW, || None));
    discovery.on_probe_sent(1, 1_452, NOW);
    assert!(!discovery.is_wanting(NOW, || None), "one probe at a time");
    assert!(discovery.on_acknowledged(&packet(1, 1_452)));
    assert!(!discovery.is_wanting(NOW, asked(1_500)), "no larger size is tried");
}

#[test]
fn a_search_that_has_ended_wants_nothing_until_it_is_repeated() {
    let mut discovery = busy(DatagramSizing::default());
    while let Some(size) = discovery.next_size(None) {
        assert!(discovery.is_wanting(NOW, || None));
        discovery.on_probe_sent(1, size, NOW);
        discovery.take_overdue(NOW);
    }
    assert!(discovery.is_wanting(NOW, || None), "the end of the search is to be noted");
    assert_eq!(discovery.wanted(NOW, None), None);
    let again = NOW + RAISE_AFTER;
    for (at, is_wanting) in [(NOW, false), (again - Duration::from_nanos(1), false), (again, true)] {
        assert_eq!(discovery.is_wanting(at, || None), is_wanting);
    }
    let asked = Asked { most: 1_210, latest: 1_210 };
    assert!(discovery.is_wanting(NOW, || Some(asked)), "the size that is asked for was not tried");
}
