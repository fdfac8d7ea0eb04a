//! Tables and a drawing of failover: gaps by client and fault, recovery, and bytes that were sent again.

use super::table::Table;
use crate::failover::{FailoverTrial, LinkFault};
use hvq_lab::report::svg::{Anchor, Svg};

/// The goal for a link that was mended, in milliseconds.
const RECOVERY: f64 = 300.0;
/// The quantile that is held against the goals.
const HIGH: f64 = 0.99;

/// The axis of the drawing, in milliseconds.
const LEAST: f64 = 10.0;
const MOST: f64 = 10_000.0;
const LEFT: f64 = 230.0;
const WIDTH: f64 = 640.0;
const TOP: f64 = 30.0;
const ROW: f64 = 15.0;
const BETWEEN: f64 = 10.0;
const STYLE: &str = ":root { --panel: #ffffff; --ink: #1c2430; --faint: #d5dae1; --line: #2468b0; --goal: #c2410c }\n\
    @media (prefers-color-scheme: dark) { :root { --panel: #14181d; --ink: #e4e8ee; --faint: #3a424d; --line: #6aa9ee; --goal: #fb923c } }\n\
    text { font: 11px sans-serif; fill: var(--ink) } .name { font-weight: 600 }\n\
    .grid { stroke: var(--faint) } .span { stroke: var(--line); stroke-width: 3 } .goal { stroke: var(--goal); stroke-width: 2 }\n\
    .median { fill: var(--panel); stroke: var(--line); stroke-width: 2 } .high { fill: var(--line) }\n";

/// A gap of each trial.
type Gap = fn(&FailoverTrial) -> Option<f64>;

/// The loads, and where a trial keeps their gaps.
const LOADS: [(&str, Gap); 3] = [
    ("requests", |trial| trial.requests_ms),
    ("download", |trial| trial.download_ms),
    ("datagrams", |trial| trial.datagrams_ms),
];

/// The trials of each client with each fault, in the order in which they were made.
struct Groups<'a> {
    clients: Vec<&'a str>,
    faults: Vec<LinkFault>,
    trials: Vec<&'a FailoverTrial>,
}

impl<'a> Groups<'a> {
    fn new(trials: &'a [FailoverTrial]) -> Self {
        let trials: Vec<_> = trials.iter().filter(|trial| trial.problem.is_none()).collect();
        let (mut clients, mut faults) = (Vec::new(), Vec::new());
        for trial in &trials {
            if !clients.contains(&trial.contender.as_str()) {
                clients.push(trial.contender.as_str());
            }
            faults.push(trial.fault);
        }
        faults.sort_unstable();
        faults.dedup();
        Self { clients, faults, trials }
    }

    fn of(&self, client: &str, fault: LinkFault) -> impl Iterator<Item = &'a FailoverTrial> {
        let is_it = move |trial: &&&FailoverTrial| trial.contender == client && trial.fault == fault;
        self.trials.iter().filter(is_it).copied()
    }

    /// A table with a row for each client and a column for each of `faults`.
    fn table(&self, caption: &str, faults: &[LinkFault], cell: impl Fn(&str, LinkFault) -> String) -> Table {
        let heads: Vec<&str> = std::iter::once("client").chain(faults.iter().map(|it| it.title())).collect();
        let mut table = Table::new(caption, &heads);
        for client in &self.clients {
            let cells = faults.iter().map(|fault| cell(client, *fault));
            table.rows.push(std::iter::once((*client).to_owned()).chain(cells).collect());
        }
        table
    }
}

/// Sorted values, of which those that are infinite never came.
struct Sample(Vec<f64>);

impl Sample {
    fn of(values: impl Iterator<Item = Option<f64>>) -> Self {
        let mut values: Vec<f64> = values.map(|value| value.unwrap_or(f64::INFINITY)).collect();
        values.sort_by(f64::total_cmp);
        Self(values)
    }

    /// The smallest value that `share` of all do not exceed.
    fn quantile(&self, share: f64) -> Option<f64> {
        let rank = (share * self.0.len() as f64).ceil().max(1.0) as usize;
        self.0.get(rank - 1).copied()
    }

    /// Median and 99th percentile, the latter marked if it is above `goal`.
    fn cell(&self, goal: f64) -> String {
        let (Some(median), Some(high)) = (self.quantile(0.5), self.quantile(HIGH)) else {
            return String::new();
        };
        let said = |value: f64| if value.is_finite() { format!("{value:.0}") } else { "never".to_owned() };
        let missed = if high > goal { " ✗" } else { "" };
        format!("{} / {}{missed}", said(median), said(high))
    }
}

/// The tables, in Markdown, with the sentences on those who are `absent`.
pub fn markdown(trials: &[FailoverTrial], absent: &[String]) -> String {
    let groups = Groups::new(trials);
    let mut tables: Vec<Table> = Vec::new();
    for (load, gap) in LOADS {
        let caption = format!("**{load}**: longest gap in ms, median / 99th percentile; ✗ misses the goal");
        tables.push(groups.table(&caption, &groups.faults, |client, fault| {
            Sample::of(groups.of(client, fault).map(gap)).cell(fault.goal().as_secs_f64() * 1e3)
        }));
    }
    let mended: Vec<LinkFault> = groups.faults.iter().copied().filter(|fault| fault.is_mended()).collect();
    let caption = "**recovery**: from the command that mends the link to the first packet acknowledged over it, in ms, median / 99th \
                   percentile; ✗ is above 300 ms";
    tables.push(groups.table(caption, &mended, |client, fault| {
        Sample::of(groups.of(client, fault).map(|trial| trial.recovery_ms)).cell(RECOVERY)
    }));
    let caption = "**sent twice**: UDP payload (TCP payload for MPTCP) that the server sent for each byte of the download, median";
    tables.push(groups.table(caption, &groups.faults, |client, fault| {
        let sent = Sample::of(groups.of(client, fault).map(|trial| trial.sent_per_byte));
        sent.quantile(0.5).map_or_else(String::new, |share| format!("{share:.2}"))
    }));
    let mut text: String = tables.iter().map(|table| table.markdown() + "\n").collect();
    text.push_str(&conditions(&groups));
    for says in absent {
        text.push_str(&format!("Not measured: {says}\n\n"));
    }
    for trial in trials {
        if let Some(problem) = &trial.problem {
            text.push_str(&format!(
                "Not measured: {}, {}, {}: {problem}\n\n",
                trial.contender, trial.fault, trial.number
            ));
        }
    }
    text
}

/// The number of trials, and how busy the machine was.
fn conditions(groups: &Groups<'_>) -> String {
    let count = groups.trials.len();
    let cells = (groups.clients.len() * groups.faults.len()).max(1);
    let load = groups.trials.iter().map(|trial| trial.load).sum::<f64>() / count.max(1) as f64;
    let failures: u64 = groups.trials.iter().map(|trial| trial.failures).sum();
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    format!(
        "{count} trials, {} of each; {failures} requests without an answer. Load of the machine: {load:.1} on {processors} \
         processors.\n\n",
        count / cells
    )
}

/// The gaps of requests as a drawing: a ring for the median, a dot for the 99th percentile, a line for the goal.
pub fn figure(trials: &[FailoverTrial]) -> String {
    let groups = Groups::new(trials);
    let group = ROW * groups.clients.len() as f64 + BETWEEN;
    let bottom = TOP + group * groups.faults.len() as f64;
    let mut svg =
        Svg::new(LEFT + WIDTH + 30.0, bottom + 24.0, "longest gap between answers by fault and client");
    for tick in [10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1_000.0, 2_000.0, 5_000.0, 10_000.0] {
        svg.line("grid", (place(tick), TOP - 6.0), (place(tick), bottom));
        svg.text("tick", (place(tick), TOP - 12.0), Anchor::Middle, &format!("{tick:.0}"));
    }
    svg.text(
        "tick",
        (LEFT, bottom + 16.0),
        Anchor::Start,
        "longest gap between answers in ms: ring median, dot 99th percentile, line goal",
    );
    for (index, fault) in groups.faults.iter().enumerate() {
        let top = TOP + group * index as f64;
        svg.text("name", (8.0, top + ROW * 0.8), Anchor::Start, fault.title());
        let goal = place(fault.goal().as_secs_f64() * 1e3);
        svg.line("goal", (goal, top), (goal, top + group - BETWEEN));
        for (row, client) in groups.clients.iter().enumerate() {
            let y = top + ROW * (row as f64 + 0.5);
            svg.text("tick", (LEFT - 8.0, y + 4.0), Anchor::End, client);
            let sample = Sample::of(groups.of(client, *fault).map(|trial| trial.requests_ms));
            let (Some(median), Some(high)) = (sample.quantile(0.5), sample.quantile(HIGH)) else { continue };
            svg.line("span", (place(median), y), (place(high), y));
            svg.dot("high", (place(high), y), &format!("{client}, {}: {high:.0} ms", fault.title()));
            svg.dot("median", (place(median), y), &format!("{client}, {}: {median:.0} ms", fault.title()));
        }
    }
    svg.file(STYLE)
}

/// The place of `value` on the axis, which is logarithmic.
fn place(value: f64) -> f64 {
    LEFT + WIDTH * (value.clamp(LEAST, MOST) / LEAST).ln() / (MOST / LEAST).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(contender: &str, fault: LinkFault, requests_ms: Option<f64>) -> FailoverTrial {
        FailoverTrial {
            contender: contender.to_owned(),
            fault,
            number: 0,
            requests_ms,
            download_ms: Some(30.0),
            datagrams_ms: Some(21.0),
            recovery_ms: None,
            sent_per_byte: Some(1.05),
            failures: 1,
            load: 2.0,
            problem: None,
        }
    }

    #[test]
    fn a_gap_above_the_goal_is_marked_and_one_without_an_end_is_the_longest() {
        let mut trials: Vec<_> =
            (1..=100).map(|gap| trial("hvc", LinkFault::Down, Some(f64::from(gap)))).collect();
        trials.push(trial("min-rtt", LinkFault::Down, Some(40.0)));
        trials.push(trial("min-rtt", LinkFault::Down, None));
        trials
            .push(FailoverTrial { problem: Some("no ip".to_owned()), ..trial("hvc", LinkFault::Down, None) });
        let text = markdown(&trials, &["mptcp-bbr: this kernel has none".to_owned()]);
        for line in [
            "| client | link down |",
            "| hvc | 50 / 99 |",
            "| min-rtt | 40 / never ✗ |",
            "| hvc | 1.05 |",
            "Not measured: hvc, down, 0: no ip",
            "Not measured: mptcp-bbr: this kernel has none",
        ] {
            assert!(text.lines().any(|known| known == line), "{line}\n{text}");
        }
        assert!(text.contains("102 requests without an answer"), "{text}");
        let drawing = figure(&trials);
        assert!(drawing.contains("hvc, link down: 99 ms") && drawing.contains("class=\"goal\""), "{drawing}");
    }
}
