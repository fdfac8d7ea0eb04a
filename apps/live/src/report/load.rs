//! Many requests.

use super::Part;
use super::bars::{self, Bar};
use super::table::Table;
use crate::load::endurance::Turn;
use crate::load::{Round, SIZES, Size, Subject};
use hvq_emulation::samples::Mean;

/// The part about `rounds`, if there are any.
pub(super) fn part(rounds: &[Round]) -> Option<Part> {
    if rounds.is_empty() {
        return None;
    }
    let tables = SIZES.iter().map(|size| table(rounds, size)).collect();
    let drawings: String = SIZES.iter().map(|size| drawing(rounds, size)).collect();
    let notes = vec![
        "h2load over loopback, servers in turn, the servers on one processor and h2load on another where there are two. \
         Ratios are means over rounds, ± the half width of 95 % intervals. Per processor second: by the time that the \
         server's process took; what Nginx takes behind the gateway is not in it."
            .to_owned(),
    ];
    Some(Part { title: "Requests by h2load over HTTP/3", tables, drawings, notes })
}

/// The part about millions of requests to one gateway, if there were any.
pub(super) fn endurance(turns: &[Turn]) -> Option<Part> {
    let (first, last) = (turns.first()?, turns.last()?);
    let succeeded: u64 = turns.iter().map(|turn| turn.succeeded).sum();
    let failed: u64 = turns.iter().map(|turn| turn.failed).sum();
    let seconds: f64 = turns.iter().map(|turn| turn.seconds).sum();
    let slowest = turns.iter().map(|turn| turn.p99_ms).fold(0.0, f64::max);
    let heads = [
        "requests",
        "failed",
        "seconds",
        "requests/s",
        "largest p99 (ms)",
        "memory at first (KiB)",
        "at last",
    ];
    let mut table = Table::new(format!("1KiB from files, {} turns", turns.len()), &heads);
    table.rows.push(vec![
        (succeeded + failed).to_string(),
        failed.to_string(),
        format!("{seconds:.0}"),
        format!("{:.0}", succeeded as f64 / seconds.max(1e-9)),
        format!("{slowest:.1}"),
        first.memory_kib.to_string(),
        last.memory_kib.to_string(),
    ]);
    let notes = vec![
        "One hvq gateway for all turns, asked by h2load over loopback; each turn has new connections."
            .to_owned(),
    ];
    Some(Part { title: "Endurance of the gateway", tables: vec![table], drawings: String::new(), notes })
}

fn of<'a>(rounds: &'a [Round], size: &'a Size, subject: Subject) -> impl Iterator<Item = &'a Round> {
    rounds.iter().filter(move |round| round.size == size.name && round.subject == subject)
}

fn means(rounds: &[Round], size: &Size, subject: Subject, value: impl Fn(&Round) -> f64) -> Option<Mean> {
    Mean::of(&of(rounds, size, subject).map(value).collect::<Vec<f64>>())
}

/// Returns the ratio of `value` for `subject` to that for Nginx in the same round.
fn ratio(rounds: &[Round], size: &Size, subject: Subject, value: fn(&Round) -> f64) -> String {
    let ratio = |round: &Round| {
        let base = of(rounds, size, Subject::Nginx).find(|base| base.round == round.round)?;
        Some(value(round) / value(base))
    };
    let ratios: Vec<f64> = of(rounds, size, subject).filter_map(ratio).collect();
    Mean::of(&ratios).map_or_else(String::new, |mean| mean.written(2))
}

fn table(rounds: &[Round], size: &Size) -> Table {
    let heads = [
        "server",
        "requests/s",
        "MB/s",
        "of nginx",
        "requests/processor s",
        "of nginx",
        "p50 (ms)",
        "p99 (ms)",
        "requests",
        "failed",
    ];
    let caption =
        format!("{}, {} connections, {} requests at a time each", size.name, size.connections, size.streams);
    let mut table = Table::new(caption, &heads);
    for subject in Subject::ALL {
        let number = |value: fn(&Round) -> f64, digits: usize| {
            means(rounds, size, subject, value)
                .map_or_else(String::new, |mean| format!("{:.digits$}", mean.value))
        };
        let sum = |value: fn(&Round) -> u64| of(rounds, size, subject).map(value).sum::<u64>();
        let megabytes = means(rounds, size, subject, |round| round.rate() * size.bytes as f64 * 1e-6);
        table.rows.push(vec![
            subject.name().to_owned(),
            number(Round::rate, if size.bytes > 1 << 20 { 1 } else { 0 }),
            megabytes.map_or_else(String::new, |mean| format!("{:.1}", mean.value)),
            ratio(rounds, size, subject, Round::rate),
            number(Round::rate_per_processor, if size.bytes > 1 << 20 { 1 } else { 0 }),
            ratio(rounds, size, subject, Round::rate_per_processor),
            number(|round| round.latency_ms[0], 1),
            number(|round| round.latency_ms[1], 1),
            (sum(|round| round.succeeded) + sum(|round| round.failed)).to_string(),
            sum(|round| round.failed).to_string(),
        ]);
    }
    table
}

fn drawing(rounds: &[Round], size: &Size) -> String {
    let bar = |subject: Subject| Bar {
        name: subject.name().to_owned(),
        class: if subject == Subject::Nginx { "base" } else { "ours" },
        values: of(rounds, size, subject).map(Round::rate).collect(),
    };
    let bars: Vec<Bar> = Subject::ALL.into_iter().map(bar).collect();
    format!(
        "<h3>{}: requests a second</h3>\n<div class=\"wide\">{}</div>\n",
        size.name,
        bars::draw(size.name, "/s", &bars)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(subject: Subject, round: u32, seconds: f64) -> Round {
        Round {
            subject,
            size: "1KiB",
            round,
            succeeded: 1000,
            failed: u64::from(round),
            seconds,
            processor_seconds: seconds / 2.0,
            latency_ms: [1.0, 9.0],
        }
    }

    #[test]
    fn failures_of_all_turns_are_counted_together() {
        let turn = |failed, memory_kib| Turn {
            succeeded: 1000 - failed,
            failed,
            seconds: 0.5,
            p99_ms: 4.0,
            memory_kib,
        };
        let text = endurance(&[turn(0, 70), turn(2, 80)]).unwrap().tables[0].markdown();
        assert!(text.contains("| 2000 | 2 | 1 | 1998 | 4.0 | 70 | 80 |"), "{text}");
        assert!(endurance(&[]).is_none());
    }

    #[test]
    fn ratios_are_those_of_the_same_round() {
        let rounds = [
            round(Subject::Nginx, 0, 1.0),
            round(Subject::Files, 0, 2.0),
            round(Subject::Nginx, 1, 10.0),
            round(Subject::Files, 1, 20.0),
        ];
        let text = part(&rounds).unwrap().tables[0].markdown();
        let row =
            "| hvq gateway, files | 275 | 0.3 | 0.50 ± 0.00 | 550 | 0.50 ± 0.00 | 1.0 | 9.0 | 2001 | 1 |";
        assert!(text.contains(row), "{text}");
        assert!(part(&[]).is_none());
    }
}
