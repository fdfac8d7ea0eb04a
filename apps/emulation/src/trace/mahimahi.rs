//! Link traces of Mahimahi (Netravali et al. 2015, §4): a line for each packet that the link can carry.

use super::rate::Column;
use super::{RateTrace, TraceError, TraceProblem};

/// The meaning of a line: one packet that fills the MTU, in bits.
const OPPORTUNITY: u64 = 1500 * 8;
const MILLISECOND: u64 = 1_000_000;
/// Milliseconds of a trace at most: a day.
const LONGEST: u64 = 86_400_000;

/// Reads a link trace: each line is the millisecond by which 1500 bytes more have passed, never before the line above.
/// The trace repeats after its last line. The capacity of a millisecond is spread over it.
pub(super) fn parse(file: &str, text: &str) -> Result<RateTrace, TraceError> {
    let fault = |line, problem| TraceError { file: file.to_owned(), line, problem };
    // How many packets end in the millisecond that ends at the time given.
    let mut counts: Vec<(u64, u64)> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        let time: Option<u64> = line.parse().ok().filter(|time| *time <= LONGEST);
        let time = time.ok_or_else(|| fault(index + 1, TraceProblem::Number(line.to_owned())))?.max(1);
        match counts.last_mut() {
            Some((last, count)) if *last == time => *count += 1,
            Some((last, _)) if *last > time => return Err(fault(index + 1, TraceProblem::Order)),
            _ => counts.push((time, 1)),
        }
    }
    let Some((period, _)) = counts.last().copied() else { return Err(fault(0, TraceProblem::Empty)) };
    let (mut times, mut rates) = (vec![0], vec![0]);
    let mut step = |time: u64, rate: u64| match (times.last_mut(), rates.last_mut()) {
        (Some(last), Some(value)) if *last == time => *value = rate,
        _ => {
            times.push(time);
            rates.push(rate);
        }
    };
    for (end, count) in counts {
        step((end - 1) * MILLISECOND, count * OPPORTUNITY * 1_000);
        if end < period {
            step(end * MILLISECOND, 0);
        }
    }
    let period = period * MILLISECOND;
    let column = Column::new(rates, &times, period);
    Ok(RateTrace { times, down: column.clone(), up: column, period })
}

#[cfg(test)]
mod tests {
    use crate::channel::Direction::{Down, Up};
    use crate::trace::{TraceEnd, TraceProblem};
    use std::time::Duration;

    fn ms(value: u64) -> Duration {
        Duration::from_millis(value)
    }

    #[test]
    fn a_line_lets_a_full_packet_pass_by_its_millisecond() {
        let trace = super::parse("t", "1\n1\n5\n10\n").unwrap();
        assert_eq!(trace.period(), ms(10));
        for direction in [Up, Down] {
            let sent = |start, packets: usize| {
                trace.sent_at(direction, ms(start), packets * 1500, TraceEnd::Loop).unwrap()
            };
            assert_eq!([sent(0, 2), sent(0, 3), sent(1, 1), sent(5, 1)], [ms(1), ms(5), ms(5), ms(10)]);
            // Four packets in each 10 ms, for ever.
            assert_eq!(sent(0, 4_000), ms(10_000));
        }
    }

    #[test]
    fn a_constant_trace_has_a_constant_rate() {
        let text: String = (1..=100).map(|time| format!("{time}\n")).collect();
        let trace = super::parse("t", &text).unwrap();
        assert_eq!(trace.at(Up, ms(50), TraceEnd::Loop).bits_per_second(), 12_000_000);
        assert_eq!(trace.at(Down, ms(150), TraceEnd::Loop).bits_per_second(), 12_000_000);
    }

    #[test]
    fn what_is_no_link_trace_is_named_with_its_line() {
        for (text, line, problem) in [
            ("1\ntwo\n", 2, TraceProblem::Number("two".to_owned())),
            ("5\n\n3\n", 3, TraceProblem::Order),
            ("\n", 0, TraceProblem::Empty),
            ("99999999999999999999999\n", 1, TraceProblem::Number("99999999999999999999999".to_owned())),
        ] {
            let error = super::parse("t", text).unwrap_err();
            assert_eq!((error.line, error.problem), (line, problem));
        }
    }
}
