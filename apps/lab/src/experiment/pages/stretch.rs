//! The part of its trace in which a run takes place.

use crate::experiment::definition::Half;
use crate::workload::page_load::LEAD;
use hvq_emulation::{Bandwidth, ChannelSpec, Direction, Rate, TraceEnd, TraceError};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::time::Duration;

/// The length of the traces in seconds.
const PERIOD: u64 = 600;
/// The rate below which a channel counts as cut.
const LEAST: Bandwidth = Bandwidth::from_megabits_per_second(1);
/// The maximum number of beginnings that are tried.
const MOST_TRIES: u32 = 100;

/// `embb` from a random place in a half of its trace on, as NSDI 2023 (§5.2) takes a random sub-sequence for each load: `seed`
/// decides, and everything that is to be compared takes the same. Connections to a gateway, say, must be there before a
/// load and need a channel that is not cut then, so places where it is are passed over; the load itself may meet
/// anything. Fails if the trace cannot be read.
pub fn stretch(embb: &ChannelSpec, seed: u64, half: Half) -> Result<ChannelSpec, TraceError> {
    let mut dice = StdRng::seed_from_u64(seed);
    let mut offset = Duration::ZERO;
    for _ in 0..MOST_TRIES {
        offset = Duration::from_secs(dice.random_range(half.beginnings(PERIOD)));
        if is_open(embb, offset)? {
            break;
        }
    }
    Ok(embb.clone().starting_at(offset))
}

/// Part `turn` of a half of the trace of `embb`, cut into parts of `length` one after another, so that as many of them as fit
/// show all that there is, good seconds and bad ones; those beyond begin at the front again. A beginning where the channel is
/// cut is moved on, as by [`stretch`]. Fails if the trace cannot be read.
pub fn part(
    embb: &ChannelSpec,
    half: Half,
    (turn, length): (u32, Duration),
) -> Result<ChannelSpec, TraceError> {
    let half = half.beginnings(PERIOD);
    let parts = (PERIOD / 2 / length.as_secs().max(1)).max(1);
    let first = half.start + u64::from(turn) % parts * length.as_secs();
    let mut offset = Duration::from_secs(first);
    for second in first..half.end.max(first + 1) {
        offset = Duration::from_secs(second);
        if is_open(embb, offset)? {
            break;
        }
    }
    Ok(embb.clone().starting_at(offset))
}

/// `embb` with what is before the load in its trace, so that loads after any `lead` meet the same.
pub(super) fn led(embb: &ChannelSpec, lead: Duration) -> ChannelSpec {
    let period = Duration::from_secs(PERIOD);
    let offset = embb.down.replay.offset + period + LEAD - lead.min(period);
    embb.clone().starting_at(Duration::from_nanos((offset.as_nanos() % period.as_nanos()) as u64))
}

/// Returns true if the channel carries something in each second before the load.
fn is_open(embb: &ChannelSpec, offset: Duration) -> Result<bool, TraceError> {
    for (direction, link) in [(Direction::Up, &embb.up), (Direction::Down, &embb.down)] {
        if let Rate::Trace(source) = &link.rate {
            let trace = source.rate()?;
            let seconds = (0..=LEAD.as_secs()).map(|second| offset + Duration::from_secs(second));
            if seconds.map(|at| trace.at(direction, at, TraceEnd::Loop)).any(|rate| rate < LEAST) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// A seed for repetition `repetition` of the page `page`, from that of everything.
pub fn seed_of(seed: u64, page: &str, repetition: u32) -> u64 {
    let mix = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    let start = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(repetition.into());
    page.bytes().chain(repetition.to_le_bytes()).fold(start ^ 0xcbf2_9ce4_8422_2325, mix)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hvq_emulation::TraceName;
    use std::collections::BTreeSet;

    #[test]
    fn a_load_meets_the_same_of_its_trace_after_any_lead() {
        let embb = ChannelSpec::trace(TraceName::LowBandWalking).starting_at(Duration::from_secs(4));
        assert_eq!(led(&embb, LEAD), embb);
        let longer = led(&embb, LEAD + Duration::from_secs(10));
        assert_eq!(longer.up.replay.offset, Duration::from_secs(594));
    }

    #[test]
    fn the_parts_of_a_half_follow_one_another_and_stay_in_it() {
        let embb = ChannelSpec::trace(TraceName::MmwaveDriving);
        for (half, start) in [(Half::Training, 0), (Half::HeldOut, 300)] {
            let begins: Vec<u64> = (0..6)
                .map(|turn| {
                    part(&embb, half, (turn, Duration::from_secs(60))).expect("a trace that is compiled in")
                })
                .map(|spec| spec.down.replay.offset.as_secs())
                .collect();
            for (begin, wanted) in begins.iter().zip((start..).step_by(60).take(5)) {
                assert!((wanted..wanted + 15).contains(begin), "{half}: {begins:?}");
            }
            assert_eq!(begins[5], begins[0]);
        }
    }

    #[test]
    fn loads_begin_at_many_places_but_at_none_where_the_channel_is_cut() {
        // This trace has seconds without any capacity.
        let embb = ChannelSpec::trace(TraceName::LowBandWalking);
        let mut places = BTreeSet::new();
        for repetition in 0..200 {
            let seed = seed_of(1, "p01", repetition);
            let half = if repetition % 2 == 0 { Half::Training } else { Half::HeldOut };
            let begun = stretch(&embb, seed, half).expect("the trace is compiled in");
            assert_eq!(begun, stretch(&embb, seed, half).expect("the trace is compiled in"));
            let second = begun.down.replay.offset.as_secs();
            assert!(half.beginnings(PERIOD).contains(&second), "{half}: {second}");
            assert!(is_open(&embb, begun.down.replay.offset).expect("the trace is compiled in"));
            places.insert(begun.down.replay.offset);
        }
        assert!(places.len() > 100, "{}", places.len());
        assert_ne!(seed_of(1, "p01", 0), seed_of(1, "p02", 0));
    }
}
