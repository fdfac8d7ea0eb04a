//! A trace of delays.

use std::time::Duration;

use super::{TraceEnd, TraceError, rows};
use crate::quantity::nanoseconds;

/// Round-trip (or one-way) times over time, interpolated linearly between samples (DChannel, NSDI 2023, §4.2.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DelayTrace {
    /// Nanoseconds since the first sample, increasing; never empty.
    times: Vec<u64>,
    /// Nanoseconds, one for each time.
    values: Vec<u64>,
    /// Nanoseconds.
    period: u64,
    median: Duration,
}

/// The step in which the median is taken: that of the traces that are compiled in.
const STEP: Duration = Duration::from_millis(15);

impl DelayTrace {
    /// Reads the CSV `text`, columns `time_ms,rtt_ms`; `file` is its name in errors.
    pub fn parse(file: &str, text: &str) -> Result<Self, TraceError> {
        Ok(Self::of(&rows::parse::<2>(file, text, "time_ms,rtt_ms")?))
    }

    /// Reads what the build script packed: tenths of a millisecond, one for each [`STEP`], the lower bytes of all before the upper ones.
    pub(super) fn unpack(packed: &[u8]) -> Self {
        let (lower, upper) = packed.split_at(packed.len() / 2);
        let tenths = lower.iter().zip(upper).map(|(lower, upper)| u16::from_le_bytes([*lower, *upper]));
        let rows: Vec<[f64; 2]> = tenths
            .enumerate()
            .map(|(index, tenths)| [index as f64 * STEP.as_millis() as f64, f64::from(tenths) / 10.0])
            .collect();
        Self::of(&rows)
    }

    fn of(rows: &[[f64; 2]]) -> Self {
        let (times, period) = rows::times(rows);
        let values = rows.iter().map(|row| rows::nanoseconds(row[1])).collect();
        let mut trace = Self { times, values, period, median: Duration::ZERO };
        trace.median = trace.middle();
        trace
    }

    /// The value that half of the time is not exceeded.
    pub fn median(&self) -> Duration {
        self.median
    }

    fn middle(&self) -> Duration {
        let steps = (self.period().as_nanos() / STEP.as_nanos()).clamp(1, 1 << 20) as u32;
        let mut samples: Vec<Duration> =
            (0..steps).map(|step| self.at(STEP * step, TraceEnd::Loop)).collect();
        samples.sort_unstable();
        samples[samples.len() / 2]
    }

    /// Returns the time after which the trace repeats if it loops: one sampling step after its last row.
    pub fn period(&self) -> Duration {
        Duration::from_nanos(self.period)
    }

    /// The value at `time` since the first row.
    pub fn at(&self, time: Duration, end: TraceEnd) -> Duration {
        let time = match end {
            TraceEnd::Loop => nanoseconds(time) % self.period,
            TraceEnd::Hold => nanoseconds(time),
        };
        // The first time is 0, so that some row is at or before any time.
        let index = self.times.partition_point(|at| *at <= time) - 1;
        let (from, value) = (self.times[index], self.values[index]);
        let next = match (self.times.get(index + 1), end) {
            (Some(until), _) => Some((*until, self.values[index + 1])),
            (None, TraceEnd::Loop) => Some((self.period, self.values[0])),
            (None, TraceEnd::Hold) => None,
        };
        let Some((until, next)) = next else { return Duration::from_nanos(value) };
        let rise = i128::from(next) - i128::from(value);
        let value = i128::from(value) + rise * i128::from(time - from) / i128::from(until - from);
        Duration::from_nanos(u64::try_from(value).expect("a value between two that are not negative"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::TraceProblem;

    fn us(value: u64) -> Duration {
        Duration::from_micros(value)
    }

    #[test]
    fn values_between_samples_are_interpolated_linearly() {
        let trace = DelayTrace::parse("t", "time_ms,rtt_ms\n0,20\n15,50\n30,26.0\n").unwrap();
        // By hand: 20 + 30 · 5/15 = 30; 50 − 24 · 7.5/15 = 38.
        for (at, value) in
            [(0, 20_000), (5_000, 30_000), (15_000, 50_000), (22_500, 38_000), (30_000, 26_000)]
        {
            assert_eq!(trace.at(us(at), TraceEnd::Loop), us(value), "at {at} µs");
        }
    }

    #[test]
    fn a_loop_goes_back_to_the_first_sample_within_one_step() {
        let trace = DelayTrace::parse("t", "time_ms,rtt_ms\n0,20\n15,50\n30,26\n").unwrap();
        assert_eq!(trace.period(), us(45_000));
        assert_eq!(trace.at(us(37_500), TraceEnd::Loop), us(23_000));
        assert_eq!(trace.at(us(45_000), TraceEnd::Loop), us(20_000));
        assert_eq!(trace.at(us(45_000 * 7 + 5_000), TraceEnd::Loop), us(30_000));
        assert_eq!(trace.at(us(37_500), TraceEnd::Hold), us(26_000));
        assert_eq!(trace.at(us(999_000_000), TraceEnd::Hold), us(26_000));
    }

    #[test]
    fn a_bad_file_is_refused_with_its_line() {
        let refusal = |text: &str| DelayTrace::parse("bad.csv", text).unwrap_err();
        let order = refusal("time_ms,rtt_ms\n0,20\n\n15,20\n15,21\n");
        assert_eq!((order.line, &order.problem), (5, &TraceProblem::Order));
        assert_eq!(order.to_string(), "bad.csv:5: times must increase from row to row");
        assert_eq!(refusal("time,rtt\n0,1\n").problem, TraceProblem::Header("time_ms,rtt_ms"));
        assert_eq!(
            refusal("time_ms,rtt_ms\n0,1\n5\n").problem,
            TraceProblem::Columns { expected: 2, found: 1 }
        );
        for value in ["x", "-1", "nan", "inf", "1e11"] {
            let error = refusal(&format!("time_ms,rtt_ms\n0,{value}\n"));
            assert_eq!((error.line, error.problem), (2, TraceProblem::Number(value.to_owned())));
        }
        assert_eq!(refusal("time_ms,rtt_ms\n").problem, TraceProblem::Empty);
        assert_eq!(refusal("").problem, TraceProblem::Empty);
    }
}
