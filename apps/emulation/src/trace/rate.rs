//! A trace of rates.

use std::time::Duration;

use super::{TraceEnd, TraceError, TraceProblem, rows};
use crate::channel::Direction;
use crate::quantity::{Bandwidth, nanoseconds};

/// Rates in both directions over time; a value holds until the next row, and zero stalls the link until then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateTrace {
    /// Nanoseconds since the first row, increasing; never empty.
    pub(super) times: Vec<u64>,
    pub(super) down: Column,
    pub(super) up: Column,
    /// Nanoseconds.
    pub(super) period: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Column {
    /// Bits per second, one for each time.
    rates: Vec<u64>,
    /// The work that one period carries, in bits · nanoseconds per second.
    capacity: u128,
}

/// One bit for this trace's arithmetic: rates times nanoseconds give 10⁻⁹ bits, and nothing is rounded on the way.
const BIT: u128 = 1_000_000_000;

impl Column {
    /// `rates` from `times` on, the last until `period`.
    pub(super) fn new(rates: Vec<u64>, times: &[u64], period: u64) -> Self {
        let ends = times.iter().skip(1).chain([&period]);
        let capacity = times
            .iter()
            .zip(ends)
            .zip(&rates)
            .map(|((from, until), rate)| u128::from(*rate) * u128::from(until - from))
            .sum();
        Self { rates, capacity }
    }
}

impl RateTrace {
    /// Reads the CSV `text`, columns `time_ms,down_mbps,up_mbps`; `file` is its name in errors.
    pub fn parse(file: &str, text: &str) -> Result<Self, TraceError> {
        let rows = rows::parse::<3>(file, text, "time_ms,down_mbps,up_mbps")?;
        let (times, period) = rows::times(&rows);
        let column = |index: usize, name| {
            let rates: Vec<u64> = rows.iter().map(|row| (row[index] * 1e6).round() as u64).collect();
            let column = Column::new(rates, &times, period);
            if column.capacity == 0 {
                let problem = TraceProblem::NoCapacity(name);
                return Err(TraceError { file: file.to_owned(), line: 0, problem });
            }
            Ok(column)
        };
        let (down, up) = (column(1, "down_mbps")?, column(2, "up_mbps")?);
        Ok(Self { times, down, up, period })
    }

    /// Returns the time after which the trace repeats if it loops: one step after its last row.
    pub fn period(&self) -> Duration {
        Duration::from_nanos(self.period)
    }

    /// The rate at `time` since the first row.
    pub fn at(&self, direction: Direction, time: Duration, end: TraceEnd) -> Bandwidth {
        Bandwidth::from_bits_per_second(self.stretch(direction, nanoseconds(time), end).0)
    }

    /// Returns the time at which the last of `bytes` has been sent if the first begins at `start` since the first row;
    /// `None` if never.
    pub fn sent_at(
        &self,
        direction: Direction,
        start: Duration,
        bytes: usize,
        end: TraceEnd,
    ) -> Option<Duration> {
        let mut work = (bytes as u128) * 8 * BIT;
        let mut time = nanoseconds(start);
        if end == TraceEnd::Loop && work > 0 {
            // Whole periods at once, so that a tiny rate does not make this loop long.
            let periods = (work - 1) / self.column(direction).capacity;
            work -= periods * self.column(direction).capacity;
            time = u64::try_from(u128::from(time) + periods * u128::from(self.period)).ok()?;
        }
        loop {
            let (rate, until) = self.stretch(direction, time, end);
            match (rate, until) {
                _ if work == 0 => return Some(Duration::from_nanos(time)),
                (0, None) => return None,
                // Only at the end of time, 584 years on.
                (_, Some(until)) if until <= time => return None,
                (0, Some(until)) => time = until,
                (rate, until) => {
                    let finish = u128::from(time) + work.div_ceil(u128::from(rate));
                    match until {
                        Some(until) if u128::from(until) < finish => {
                            work -= u128::from(rate) * u128::from(until - time);
                            time = until;
                        }
                        _ => return u64::try_from(finish).ok().map(Duration::from_nanos),
                    }
                }
            }
        }
    }

    fn column(&self, direction: Direction) -> &Column {
        match direction {
            Direction::Up => &self.up,
            Direction::Down => &self.down,
        }
    }

    /// The rate at `time`, and until when it holds; `None` means for ever.
    pub(crate) fn stretch(&self, direction: Direction, time: u64, end: TraceEnd) -> (u64, Option<u64>) {
        let lap = match end {
            TraceEnd::Loop => time - time % self.period,
            TraceEnd::Hold => 0,
        };
        // The first time is 0, so that some row is at or before any time.
        let index = self.times.partition_point(|at| *at <= time - lap) - 1;
        let until = match (self.times.get(index + 1), end) {
            (Some(until), _) => Some(lap.saturating_add(*until)),
            (None, TraceEnd::Loop) => Some(lap.saturating_add(self.period)),
            (None, TraceEnd::Hold) => None,
        };
        (self.column(direction).rates[index], until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "time_ms,down_mbps,up_mbps\n0,60,1\n1000,0,0\n2000,0,2\n3000,12,3\n";

    fn ms(value: u64) -> Duration {
        Duration::from_millis(value)
    }

    fn trace() -> RateTrace {
        RateTrace::parse("t", TRACE).unwrap()
    }

    #[test]
    fn a_second_of_60_megabits_releases_7500_bytes_a_millisecond() {
        for end in [TraceEnd::Loop, TraceEnd::Hold] {
            assert_eq!(trace().sent_at(Direction::Down, ms(0), 7_500, end), Some(ms(1)));
            assert_eq!(
                trace().sent_at(Direction::Down, ms(10), 1_500, end),
                Some(Duration::from_micros(10_200))
            );
        }
    }

    #[test]
    fn seconds_of_zero_stall_until_the_rate_returns() {
        let trace = trace();
        // Half of 7500 bytes go in the last half millisecond; the rest at 12 Mbit/s from 3000 ms takes 2.5 ms.
        let start = Duration::from_micros(999_500);
        assert_eq!(
            trace.sent_at(Direction::Down, start, 7_500, TraceEnd::Loop),
            Some(Duration::from_micros(3_002_500))
        );
        assert_eq!(
            trace.sent_at(Direction::Down, ms(1_200), 1_500, TraceEnd::Loop),
            Some(Duration::from_micros(3_001_000))
        );
        assert_eq!(trace.at(Direction::Down, ms(1_500), TraceEnd::Loop).bits_per_second(), 0);
        assert_eq!(trace.at(Direction::Up, ms(2_500), TraceEnd::Loop).bits_per_second(), 2_000_000);
    }

    #[test]
    fn a_loop_starts_again_and_a_held_zero_never_ends() {
        let trace = trace();
        assert_eq!(trace.sent_at(Direction::Down, ms(4_000), 7_500, TraceEnd::Loop), Some(ms(4_001)));
        // One period carries 9 MB; ten of them and one byte end in the eleventh.
        let long = trace.sent_at(Direction::Down, ms(0), 90_000_000 + 7_500, TraceEnd::Loop);
        assert_eq!(long, Some(ms(40_001)));
        let stops = RateTrace::parse("t", "time_ms,down_mbps,up_mbps\n0,1,1\n1000,0,1\n").unwrap();
        assert_eq!(stops.sent_at(Direction::Down, ms(1_000), 1, TraceEnd::Hold), None);
        assert!(stops.sent_at(Direction::Down, ms(1_000), 1, TraceEnd::Loop).is_some());
    }

    #[test]
    fn a_column_without_capacity_is_refused() {
        let error = RateTrace::parse("z.csv", "time_ms,down_mbps,up_mbps\n0,1,0\n").unwrap_err();
        assert_eq!(error.to_string(), "z.csv: the column `up_mbps` is zero throughout");
    }
}
