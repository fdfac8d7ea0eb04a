//! The variation of links between runs: no two homes have the same line, so no rule can be tuned to one.

use super::link::Link;
use hvq_emulation::{ChannelSpec, Collapse, Delay, Detour, Interval, LinkSpec, Probability, Rate};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::time::Duration;

/// The least and the largest factor on a rate and on a delay.
const FACTORS: (f64, f64) = (0.8, 1.25);

/// The time for which Starlink leaves a link as it is (Mohan et al., WWW 2024).
const SLOT: Duration = Duration::from_secs(15);

/// Slots that are drawn, which last longer than any run.
const SLOTS: u32 = 50;

/// The delay that a slot adds at most, one way: chosen so that round trips are from 40 to 60 ms, as the quartiles of Michel
/// et al. (IMC 2022) are.
const MOST_ADDED: Duration = Duration::from_millis(8);

/// The least share of the rate that a slot has.
const LEAST_SHARE: f64 = 0.6;

/// A channel of `link` whose rates and delays differ from the typical ones by factors that `seed` draws.
pub(super) fn varied(link: Link, seed: u64) -> ChannelSpec {
    let mut dice = StdRng::seed_from_u64(seed);
    let mut channel = link.channel();
    // Equal steps on a scale of factors: as often faster as slower.
    let mut factor = || (dice.random_range(FACTORS.0.ln()..FACTORS.1.ln())).exp();
    let (rate, delay) = (factor(), factor());
    for one in [&mut channel.up, &mut channel.down] {
        scale(one, rate, delay);
    }
    if link == Link::Starlink {
        add_slots(&mut channel, &mut dice);
    }
    channel
}

fn scale(link: &mut LinkSpec, rate: f64, delay: f64) {
    if let Rate::Constant(bandwidth) = &mut link.rate {
        let bits = bandwidth.bits_per_second() as f64 * rate;
        *bandwidth = hvq_emulation::Bandwidth::from_bits_per_second(bits as u64);
    }
    match &mut link.delay {
        Delay::Constant(one_way) => *one_way = one_way.mul_f64(delay),
        Delay::Uniform { low, high } => (*low, *high) = (low.mul_f64(delay), high.mul_f64(delay)),
        Delay::Normal { .. } | Delay::Trace { .. } => unreachable!("no link compiled in has such a delay"),
    }
}

/// Changes delay and rate of `channel` with every slot; the first began before the run.
fn add_slots(channel: &mut ChannelSpec, dice: &mut StdRng) {
    let first = SLOT.mul_f64(dice.random::<f64>());
    for slot in 0..SLOTS {
        let from = if slot == 0 { Duration::ZERO } else { first + SLOT * (slot - 1) };
        let during = Interval { from, until: first + SLOT * slot };
        let by = MOST_ADDED.mul_f64(dice.random::<f64>());
        let share = dice.random_range(LEAST_SHARE..1.0);
        let left = Probability::new(share).expect("a share is a probability");
        for one in [&mut channel.up, &mut channel.down] {
            one.detours.push(Detour { during, by });
            one.collapses.push(Collapse { during, left });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hvq_emulation::Direction;

    #[test]
    fn rates_and_delays_stay_near_the_typical_ones_and_differ() {
        for link in Link::ALL {
            let typical = link.channel().typical(Direction::Down).expect("no trace");
            let rates: Vec<f64> = (0..50)
                .map(|seed| {
                    let drawn = varied(link, seed).typical(Direction::Down).expect("no trace");
                    let rate =
                        |typical: hvq_emulation::Typical| typical.rate.expect("limited").bits_per_second();
                    rate(drawn) as f64 / rate(typical) as f64
                })
                .collect();
            assert!(rates.iter().all(|factor| (0.79..1.26).contains(factor)), "{link}: {rates:?}");
            assert!(rates.iter().any(|factor| *factor < 0.9) && rates.iter().any(|factor| *factor > 1.1));
        }
    }

    #[test]
    fn starlink_changes_every_fifteen_seconds() {
        let channel = varied(Link::Starlink, 3);
        let slots = &channel.down.detours;
        assert_eq!(slots.len(), channel.down.collapses.len());
        for pair in slots.windows(2).skip(1) {
            assert_eq!(pair[0].during.until, pair[1].during.from);
            assert_eq!(pair[1].during.until - pair[1].during.from, SLOT);
            assert_ne!(pair[0].by, pair[1].by);
        }
    }
}
