//! Typical values of a channel, as its operator or a modem could say in advance.

use std::time::Duration;

use super::{ChannelSpec, LinkSpec};
use crate::channel::Direction;
use crate::delay::{Delay, Reading};
use crate::quantity::Bandwidth;
use crate::rate::Rate;
use crate::trace::{TraceEnd, TraceError};

/// Typical values of one direction; of a trace, those of all of it and not what happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Typical {
    /// The one-way delay without queueing: the mean, or the median of a trace.
    pub delay: Duration,
    /// The rate, or the mean of a trace; `None` if nothing limits it.
    pub rate: Option<Bandwidth>,
}

impl ChannelSpec {
    /// Returns the typical values of one direction. Fails if a trace cannot be read.
    pub fn typical(&self, direction: Direction) -> Result<Typical, TraceError> {
        let link = match direction {
            Direction::Up => &self.up,
            Direction::Down => &self.down,
        };
        Ok(Typical { delay: delay(link)?, rate: rate(link, direction)? })
    }
}

fn delay(link: &LinkSpec) -> Result<Duration, TraceError> {
    Ok(match &link.delay {
        Delay::Constant(delay) | Delay::Normal { mean: delay, .. } => *delay,
        Delay::Uniform { low, high } => (*low + *high) / 2,
        Delay::Trace { source, reading } => {
            let median = source.delay()?.median();
            match reading {
                Reading::RoundTrip => median / 2,
                Reading::OneWay => median,
            }
        }
    })
}

fn rate(link: &LinkSpec, direction: Direction) -> Result<Option<Bandwidth>, TraceError> {
    let rate = match &link.rate {
        Rate::Unlimited => None,
        Rate::Constant(rate) => Some(*rate),
        Rate::Trace(source) => {
            let trace = source.rate()?;
            let seconds = trace.period().as_secs().clamp(1, 1 << 20);
            let at = |second| trace.at(direction, Duration::from_secs(second), TraceEnd::Loop);
            let sum: u64 = (0..seconds).map(|second| at(second).bits_per_second()).sum();
            Some(Bandwidth::from_bits_per_second(sum / seconds))
        }
    };
    let extra = link.extra.map_or(0, Bandwidth::bits_per_second);
    Ok(rate.map(|rate| Bandwidth::from_bits_per_second(rate.bits_per_second().saturating_add(extra))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_channel_is_typical_of_itself() {
        let typical = ChannelSpec::urllc().typical(Direction::Up).unwrap();
        assert_eq!(typical.delay, Duration::from_micros(2_500));
        assert_eq!(typical.rate, Some(Bandwidth::from_megabits_per_second(2)));
        let perfect = ChannelSpec::default().typical(Direction::Down).unwrap();
        assert_eq!(perfect, Typical { delay: Duration::ZERO, rate: None });
    }

    #[test]
    fn a_trace_counts_with_its_median_delay_and_its_mean_rate() {
        // NSDI 2023, Table 1: low-band driving has a median RTT of 54 ms and 15/57 Mbit/s up and down.
        let channel = ChannelSpec::trace("LB-D".parse().unwrap());
        let down = channel.typical(Direction::Down).unwrap();
        assert!((Duration::from_millis(20)..Duration::from_millis(35)).contains(&down.delay), "{down:?}");
        let bits = down.rate.unwrap().bits_per_second();
        assert!((45_000_000..70_000_000).contains(&bits), "{bits}");
        assert!(channel.typical(Direction::Up).unwrap().rate < down.rate);
    }
}
