//! Tables of outages: verdicts by policy and by kind of outage, and the worst cells.

#[cfg(test)]
mod tests;

use crate::experiment::outages::{OutageKind, OutageOutcome, OutageVerdict};
use std::collections::BTreeMap;

/// A row of a table of verdicts.
#[derive(Clone, Copy, Default)]
struct Row {
    cells: usize,
    in_time: usize,
    slow_anyway: usize,
    late: usize,
    never: usize,
    /// The longest excess over what is allowed, in milliseconds.
    worst: f64,
}

impl Row {
    fn add(&mut self, outcome: &OutageOutcome) {
        self.cells += 1;
        match outcome.verdict {
            OutageVerdict::InTime => self.in_time += 1,
            OutageVerdict::SlowAnyway => self.slow_anyway += 1,
            OutageVerdict::Late => {
                self.late += 1;
                self.worst = self.worst.max(outcome.excess_ms().unwrap_or_default());
            }
            OutageVerdict::Never => self.never += 1,
        }
    }

    fn line(self, name: &str) -> String {
        let Self { cells, in_time, slow_anyway, late, never, worst } = self;
        let worst = if late > 0 { format!("{:.1} s", worst / 1e3) } else { String::new() };
        format!("| {name} | {cells} | {in_time} | {slow_anyway} | {late} | {never} | {worst} |\n")
    }
}

/// The verdicts by policy and by kind of outage, in Markdown, in the order of the outcomes and of the kinds.
pub fn markdown(outcomes: &[OutageOutcome]) -> String {
    let mut policies: Vec<&str> = Vec::new();
    let mut by_policy: BTreeMap<&str, Row> = BTreeMap::new();
    let mut by_kind: BTreeMap<OutageKind, Row> = BTreeMap::new();
    for outcome in outcomes {
        if !policies.contains(&outcome.policy.as_str()) {
            policies.push(&outcome.policy);
        }
        by_policy.entry(&outcome.policy).or_default().add(outcome);
        by_kind.entry(outcome.kind).or_default().add(outcome);
    }
    let mut all = Row::default();
    outcomes.iter().for_each(|outcome| all.add(outcome));
    let mut text = head("policy");
    text.extend(policies.iter().map(|policy| by_policy[policy].line(policy)));
    text.push_str(&all.line("all"));
    text.push('\n');
    text.push_str(&head("outage"));
    text.extend(by_kind.iter().map(|(kind, row)| row.line(kind.name())));
    text
}

fn head(of: &str) -> String {
    format!(
        "| {of} | cells | in time | slow anyway | late | never | latest beyond the allowed |\n\
         | --- | --- | --- | --- | --- | --- | --- |\n"
    )
}

/// The `most` worst of the cells that failed, a paragraph each; `replay` gives the command that runs one again.
pub fn worst(outcomes: &[OutageOutcome], most: usize, replay: impl Fn(&OutageOutcome) -> String) -> String {
    let mut failed: Vec<&OutageOutcome> =
        outcomes.iter().filter(|outcome| outcome.verdict.is_failure()).collect();
    failed.sort_by(|one, other| other.badness().total_cmp(&one.badness()));
    let mut cells: Vec<&str> = Vec::new();
    for outcome in &failed {
        if !cells.contains(&outcome.cell.as_str()) {
            cells.push(&outcome.cell);
        }
    }
    let of = |cell: &str| failed.iter().copied().filter(|outcome| outcome.cell == cell).collect::<Vec<_>>();
    cells.into_iter().take(most).map(|cell| paragraph(&of(cell), &replay)).collect()
}

/// A cell with the policies that failed there, the worst first.
fn paragraph(failed: &[&OutageOutcome], replay: impl Fn(&OutageOutcome) -> String) -> String {
    let Some((first, others)) = failed.split_first() else { return String::new() };
    let others: Vec<String> =
        others.iter().map(|outcome| format!("{} {}", outcome.policy, time(outcome.both_ms))).collect();
    let others = match others.len() {
        0 => String::new(),
        number => format!("\n    and {number} more: {}", others.join(", ")),
    };
    format!("{}\n    {}{others}\n", line(first), replay(first))
}

/// A time in milliseconds.
fn time(time: Option<f64>) -> String {
    time.map_or_else(|| "never".to_owned(), |ms| format!("{ms:.0} ms"))
}

/// A line on one outcome.
pub fn line(outcome: &OutageOutcome) -> String {
    let failure = outcome.failure.as_ref().map_or_else(String::new, |failure| format!(" ({failure})"));
    format!(
        "{}: cell {}, {}: both {}{failure}, eMBB alone {}, URLLC alone {}, allowed {}: {}",
        outcome.verdict,
        outcome.cell,
        outcome.policy,
        time(outcome.both_ms),
        time(outcome.embb_ms),
        time(outcome.urllc_ms),
        time(outcome.allowed_ms),
        outcome.setting,
    )
}
