//! The rows of a CSV file of numbers.

use super::{TraceError, TraceProblem};

/// No number in a trace is larger than this: times up to 115 days, in ms.
const LARGEST: f64 = 1e10;

/// Reads `N` columns of numbers under `header`. The first column, the time in milliseconds, increases strictly; blank
/// lines and lines that start with `#` are passed over.
pub(super) fn parse<const N: usize>(
    file: &str,
    text: &str,
    header: &'static str,
) -> Result<Vec<[f64; N]>, TraceError> {
    let fault = |line, problem| TraceError { file: file.to_owned(), line, problem };
    let mut lines = text
        .lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line.trim()))
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    match lines.next() {
        None => return Err(fault(0, TraceProblem::Empty)),
        Some((_, line)) if line == header => {}
        Some((number, _)) => return Err(fault(number, TraceProblem::Header(header))),
    }
    let mut rows: Vec<[f64; N]> = Vec::new();
    for (number, line) in lines {
        let row = parse_row(line).map_err(|problem| fault(number, problem))?;
        if rows.last().is_some_and(|last| row[0] <= last[0]) {
            return Err(fault(number, TraceProblem::Order));
        }
        rows.push(row);
    }
    if rows.is_empty() { Err(fault(0, TraceProblem::Empty)) } else { Ok(rows) }
}

fn parse_row<const N: usize>(line: &str) -> Result<[f64; N], TraceProblem> {
    let found = line.split(',').count();
    if found != N {
        return Err(TraceProblem::Columns { expected: N, found });
    }
    let mut row = [0.0; N];
    for (value, text) in row.iter_mut().zip(line.split(',')) {
        *value = text
            .trim()
            .parse()
            .ok()
            .filter(|value| (0.0..=LARGEST).contains(value))
            .ok_or_else(|| TraceProblem::Number(text.trim().to_owned()))?;
    }
    Ok(row)
}

/// The times of the rows in nanoseconds since the first, and after how long the trace repeats: one sampling step (that
/// between the last two rows; a second if there is but one row) after the last.
pub(super) fn times<const N: usize>(rows: &[[f64; N]]) -> (Vec<u64>, u64) {
    let first = rows.first().map_or(0.0, |row| row[0]);
    let times: Vec<u64> = rows.iter().map(|row| nanoseconds(row[0] - first)).collect();
    let period = match times.as_slice() {
        [.., before, last] => last + (last - before).max(1),
        _ => 1_000_000_000,
    };
    (times, period)
}

/// Milliseconds as nanoseconds.
pub(super) fn nanoseconds(milliseconds: f64) -> u64 {
    (milliseconds * 1e6).round() as u64
}
