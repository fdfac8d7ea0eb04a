//! The results, as a table in Markdown and as JSON.

use crate::PIPE_DATAGRAM;
use crate::aead::Protection;
use crate::contender::{Contender, Job, SMALL};
use crate::decisions::{Decision, GOAL};
use crate::figures::{Figure, Measure};
use crate::instructions::Count;
use crate::machine::Machine;
use crate::pipe::AT_ONCE;
use crate::sockets::Sample;
use crate::spread::Spread;
use anyhow::{Context, Result};
use serde::Serialize;
use std::fmt;

/// The base of all ratios.
const BASE: Contender = Contender::Hvq;
/// Between these the table is in docs/results/bench.md.
const MARKS: [&str; 2] = ["<!-- bench: begin -->\n", "<!-- bench: end -->"];

/// Everything that a run found out.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    /// The machine.
    pub machine: Machine,
    /// The reason for which the figures may be wrong.
    pub warning: Option<String>,
    /// The table, row by row.
    pub rows: Vec<Row>,
    /// A row for each policy and number of paths.
    pub decisions: Vec<Decision>,
    /// A row for each library.
    pub protection: Vec<Protection>,
    /// The counts of instructions.
    pub instructions: Vec<Count>,
    /// Every figure of every round.
    pub figures: Vec<Figure>,
    /// The pairs of processes behind them.
    pub samples: Vec<Sample>,
}

/// A measure, and what it is for each contender.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// The measure.
    pub measure: Measure,
    /// The cells of the contenders that it was taken of.
    pub cells: Vec<Cell>,
}

/// A measure of a contender.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Cell {
    /// The contender.
    pub contender: Contender,
    /// Over all rounds.
    pub value: Spread,
    /// hvq's value on one path divided by this one, round by round; `None` if hvq was not measured.
    pub hvq_ratio: Option<Spread>,
}

impl Row {
    /// A row for each measure among `figures`.
    pub fn all(figures: &[Figure]) -> Vec<Self> {
        let mut measures: Vec<Measure> = figures.iter().map(|figure| figure.measure).collect();
        measures.sort_unstable();
        measures.dedup();
        let cells = |measure| {
            let own: Vec<Figure> =
                figures.iter().copied().filter(|figure| figure.measure == measure).collect();
            Contender::ALL.into_iter().filter_map(move |contender| Cell::new(contender, &own)).collect()
        };
        measures.into_iter().map(|measure| Self { measure, cells: cells(measure) }).collect()
    }

    /// Returns the text of the table's cell for `contender`.
    fn text(&self, contender: Contender) -> String {
        let Some(cell) = self.cells.iter().find(|cell| cell.contender == contender) else {
            return "–".into();
        };
        let digits = self.measure.digits();
        let value = cell.value.short(digits);
        match cell.hvq_ratio.filter(|_| contender != BASE) {
            Some(ratio) => format!("{value} ×{}", ratio.short(2)),
            None => value,
        }
    }
}

impl Cell {
    /// The cell of `contender` among the figures of one measure, if there are some.
    fn new(contender: Contender, figures: &[Figure]) -> Option<Self> {
        let own = || figures.iter().filter(move |figure| figure.contender == contender);
        let base = |round| figures.iter().find(|figure| figure.contender == BASE && figure.round == round);
        let ratios = own().filter_map(|figure| Some(base(figure.round)?.value / figure.value));
        Some(Self {
            contender,
            value: Spread::of(own().map(|figure| figure.value))?,
            hvq_ratio: Spread::of(ratios),
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Machine { processor, cores, kernel, versions, .. } = &self.machine;
        writeln!(f, "{processor}, {cores} cores, Linux {kernel}; {}.", versions.join(", "))?;
        if let Some(warning) = &self.warning {
            writeln!(f, "Caution: {warning}.")?;
        }
        if !self.rows.is_empty() {
            write!(
                f,
                "Median (least–greatest) ×ratio (least–greatest), which is hvq ÷ it, round by round. In the pipe, "
            )?;
            write!(
                f,
                "datagrams have {PIPE_DATAGRAM} bytes. Requests and their answers have {SMALL} bytes each, "
            )?;
            writeln!(f, "{AT_ONCE} are in flight.{}\n", self.connections())?;
            self.table(f)?;
        }
        if !self.decisions.is_empty() {
            self.decision_table(f)?;
        }
        if !self.protection.is_empty() {
            self.protection_table(f)?;
        }
        Ok(())
    }
}

impl Report {
    /// Returns a sentence with the number of connections that are idle when their memory is measured.
    fn connections(&self) -> String {
        let idle = |sample: &Sample| match sample.trial.job {
            Job::Idle { connections } => Some(format!(" {connections} connections are idle.")),
            _ => None,
        };
        self.samples.iter().find_map(idle).unwrap_or_default()
    }

    fn table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_there = |contender: &Contender| {
            self.rows.iter().flat_map(|row| &row.cells).any(|cell| cell.contender == *contender)
        };
        let columns: Vec<Contender> = Contender::ALL.into_iter().filter(is_there).collect();
        let mut lines = vec![vec![String::new()]];
        lines[0].extend(columns.iter().map(|contender| contender.label().to_owned()));
        for row in &self.rows {
            let cells = columns.iter().map(|contender| row.text(*contender));
            lines.push(std::iter::once(row.measure.to_string()).chain(cells).collect());
        }
        let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..=columns.len()).map(width).collect();
        for (index, line) in lines.iter().enumerate() {
            for (cell, width) in line.iter().zip(&widths) {
                write!(f, "| {cell:<width$} ")?;
            }
            writeln!(f, "|")?;
            if index == 0 {
                widths.iter().try_for_each(|width| write!(f, "| {} ", "-".repeat(*width)))?;
                writeln!(f, "|")?;
            }
        }
        Ok(())
    }

    fn decision_table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n| one scheduling decision | paths | ns (goal with two paths: under {GOAL}) |")?;
        writeln!(f, "| --- | --- | --- |")?;
        for decision in &self.decisions {
            let verdict = match (decision.paths, decision.nanoseconds.median < GOAL) {
                (2, true) => ", met",
                (2, false) => ", MISSED",
                _ => "",
            };
            let nanoseconds = format!("{:.1}", decision.nanoseconds);
            writeln!(f, "| {} | {} | {nanoseconds}{verdict} |", decision.policy, decision.paths)?;
        }
        Ok(())
    }

    fn protection_table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nMedian (least–greatest) ×ratio, which is the default ÷ it, round by round.\n")?;
        writeln!(f, "| AES-128-GCM, packets of {PIPE_DATAGRAM} bytes | seals, GB/s | opens, GB/s |")?;
        writeln!(f, "| --- | --- | --- |")?;
        for Protection { library, seal, open } in &self.protection {
            writeln!(f, "| {library} | {seal} | {open} |")?;
        }
        Ok(())
    }

    /// The report with its marks, and around them what [`around_marks`] gave.
    pub fn between(&self, (before, after): (&str, &str)) -> String {
        let [begin, end] = MARKS;
        format!("{before}{begin}{self}{end}{after}")
    }
}

/// Returns the parts of `text` before the marks and after them.
///
/// # Errors
/// The marks are not there.
pub fn around_marks(text: &str) -> Result<(&str, &str)> {
    let [begin, end] = MARKS;
    let (before, rest) = text.split_once(begin).context("there is no mark where the table begins")?;
    let (_, after) = rest.split_once(end).context("there is no mark where the table ends")?;
    Ok((before, after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aead::Speed;

    fn figure(contender: Contender, round: usize, value: f64) -> Figure {
        Figure { measure: Measure::Handshakes, contender, round, value }
    }

    fn report(figures: Vec<Figure>) -> Report {
        Report {
            machine: Machine::now(),
            warning: None,
            rows: Row::all(&figures),
            decisions: Vec::new(),
            protection: Vec::new(),
            instructions: Vec::new(),
            figures,
            samples: Vec::new(),
        }
    }

    #[test]
    fn ratios_compare_figures_of_the_same_round() {
        let report = report(vec![
            figure(Contender::Hvq, 0, 2000.0),
            figure(Contender::Quinn, 0, 1000.0),
            figure(Contender::Hvq, 1, 1000.0),
            figure(Contender::Quinn, 1, 2000.0),
        ]);
        let quinn = report.rows[0].cells[1];
        let ratio = quinn.hvq_ratio.unwrap();
        assert_eq!((quinn.contender, ratio.min, ratio.max), (Contender::Quinn, 0.5, 2.0));
        let text = report.to_string();
        assert!(text.contains("| 1500 (1000–2000) ×1.25 (0.50–2.00) |"), "{text}");
        assert!(text.contains("datagrams have 1350 bytes") && !text.contains(" idle"), "{text}");
        assert!(text.contains("| handshakes/s | 1500 (1000–2000) "), "{text}");
    }

    #[test]
    fn without_hvq_there_are_no_ratios() {
        let report = report(vec![figure(Contender::Quiche, 0, 7.0)]);
        assert_eq!(report.rows[0].cells[0].hvq_ratio, None);
        assert!(report.to_string().contains("| handshakes/s | 7      |"), "{report}");
    }

    #[test]
    fn packet_protection_is_compared_with_the_default() {
        let both = [1.0, 3.0];
        let default = Speed { gigabytes: Spread::of(both).unwrap(), default_ratio: None };
        let other = Speed { default_ratio: Spread::of([0.5, 0.7]), ..default };
        let protection = [("a", default), ("b", other)];
        let protection =
            protection.map(|(library, speed)| Protection { library, seal: speed, open: speed }).to_vec();
        let text = Report { protection, ..report(Vec::new()) }.to_string();
        assert!(text.contains("| a | 2.00 (1.00–3.00) | 2.00 (1.00–3.00) |"), "{text}");
        assert!(text.contains("| 2.00 (1.00–3.00) ×0.60 (0.50–0.70) |"), "{text}");
    }

    #[test]
    fn the_table_replaces_what_is_between_the_marks() {
        let report = report(vec![figure(Contender::Quiche, 0, 7.0)]);
        let text = "a\n<!-- bench: begin -->\nold\n<!-- bench: end -->\nb";
        let inserted = report.between(around_marks(text).unwrap());
        assert!(
            inserted.starts_with("a\n<!-- bench: begin -->\n")
                && inserted.ends_with("\n<!-- bench: end -->\nb")
        );
        assert!(!inserted.contains("old") && inserted.contains("handshakes/s"));
        assert!(around_marks("nothing").is_err());
    }
}
