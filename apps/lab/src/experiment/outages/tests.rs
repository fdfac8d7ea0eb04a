use super::*;
use crate::experiment::pages::Reach;
use hvq_emulation::{Channel, ChannelSpec, Direction, Interval};
use std::collections::BTreeSet;
use std::time::Duration;

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

#[test]
fn a_cell_follows_from_its_seed_and_number() {
    let describe = |seed, number| drawn(seed, number).describe();
    assert_eq!(describe(1, 7), describe(1, 7));
    let different: BTreeSet<String> = (0..200).map(|number| describe(1, number)).collect();
    assert_eq!(different.len(), 200);
    assert_ne!(describe(1, 7), describe(2, 7));
    let kinds: BTreeSet<OutageKind> = (0..200).map(|number| drawn(1, number).kind).collect();
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), OutageKind::ALL);
}

#[test]
fn every_named_cell_is_found_by_its_name() {
    for name in names() {
        assert_eq!(named(name, 1).map(|cell| cell.name), Some(name.to_owned()));
    }
    assert!(named("moon", 1).is_none());
    assert_eq!(names().collect::<BTreeSet<_>>().len(), names().count());
}

/// The milliseconds, of the first hundred, in which a packet gets through `spec`, sent `way`.
fn open(spec: &ChannelSpec, way: Direction) -> Vec<u64> {
    let mut channel = Channel::new(spec, 1).expect("there are no traces");
    let mut passes = |at: u64| {
        channel.enqueue(way, ms(at), (), 100);
        channel.dequeue(ms(at)).is_some()
    };
    (0..100).filter(|at| passes(*at)).collect()
}

#[test]
fn an_outage_darkens_the_channel_and_the_direction_that_it_names_at_its_times() {
    let during = Interval { from: ms(20), until: ms(60) };
    let flapping = Pattern::Flapping { during, period: ms(20), dark: ms(5) };
    let outage = Outage { channels: Reach::Urllc, way: Some(Direction::Up), pattern: flapping };
    let (mut embb, mut urllc) = (ChannelSpec::default(), ChannelSpec::default());
    outage.apply(&mut embb, &mut urllc);
    assert_eq!(open(&embb, Direction::Up).len(), 100);
    assert_eq!(open(&urllc, Direction::Down).len(), 100);
    let dark: Vec<u64> = (20..25).chain(40..45).collect();
    assert_eq!(open(&urllc, Direction::Up), (0..100).filter(|at| !dark.contains(at)).collect::<Vec<_>>());
    Outage::once(Reach::Both, ms(10), ms(90)).apply(&mut embb, &mut urllc);
    for spec in [embb, urllc] {
        assert_eq!(open(&spec, Direction::Down), (0..10).chain(90..100).collect::<Vec<_>>());
    }
}

#[test]
fn a_cell_takes_as_long_again_and_one_channel_alone_is_measured_without_the_other() {
    let cell = named("gateway-urllc-7s", 1).expect("a named cell");
    let policies = [Policy::Hvc, Policy::MinRtt];
    let outcomes = cell.outcomes(&policies).expect("there are no traces");
    assert_eq!(outcomes, cell.outcomes(&policies).expect("there are no traces"));
    for outcome in outcomes {
        // One round trip of 50 ms and more; URLLC is dark for longer than a handshake may take.
        assert!(outcome.embb_ms.is_some_and(|time| (500.0..1_000.0).contains(&time)), "{outcome:?}");
        assert!(outcome.urllc_ms.is_none_or(|time| time > 7_000.0), "{outcome:?}");
        let allowed = outcome.embb_ms.map(|time| time * SHARE + GRACE.as_secs_f64() * 1e3);
        assert!((outcome.allowed_ms.unwrap() - allowed.unwrap()).abs() < 0.01, "{outcome:?}");
    }
}

#[test]
fn a_policy_may_take_its_own_time_without_outages_and_what_they_cost_the_better_channel() {
    let cell = named("gateway-urllc-3s", 1).expect("a named cell");
    let late = |seconds| {
        let alone = outcome::Times { embb: Some(ms(1_000)), urllc: None };
        let both = crate::experiment::pages::Ending::Loaded(Duration::from_secs(seconds));
        OutageOutcome::new(&cell, Policy::RoundRobin, alone, both)
    };
    let excused = |seconds, price| {
        let mut outcome = late(seconds);
        outcome.excuse(price);
        outcome.verdict
    };
    assert_eq!(late(1).verdict, OutageVerdict::InTime);
    assert_eq!(late(3).verdict, OutageVerdict::Late);
    assert_eq!(excused(3, None), OutageVerdict::Late);
    assert_eq!(excused(3, Some(ms(2_400))), OutageVerdict::Late);
    assert_eq!(excused(3, Some(ms(2_500))), OutageVerdict::SlowAnyway);
}
