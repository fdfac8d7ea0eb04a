//! Goals held against results.

use super::estimate::Estimate;
use super::results::Results;
use crate::experiment::definition::{Bound, Cell, Goal, Measure, Operand, Selection, Wanted};
use crate::experiment::pages::Scheme;
use toml::Spanned;

/// The verdict on a goal.
#[derive(Clone, PartialEq, Debug)]
pub struct Verdict {
    /// Its number.
    pub number: u32,
    /// The goal, in words.
    pub says: String,
    /// The reason for which it is missed where it is, in words; empty if nobody said.
    pub why: String,
    /// The experiment that shows it.
    pub experiment: String,
    /// One for each cell.
    pub checks: Vec<Check>,
}

/// A goal in a cell.
#[derive(Clone, PartialEq, Debug)]
pub struct Check {
    /// The cell in words.
    pub place: String,
    /// The measured value.
    pub measured: String,
    /// The value that was wanted.
    pub wanted: String,
    /// True if it is met.
    pub met: bool,
}

impl Verdict {
    /// Returns true if it is met in every cell; `None` if nothing was measured.
    pub fn is_met(&self) -> Option<bool> {
        (!self.checks.is_empty()).then(|| self.checks.iter().all(|check| check.met))
    }

    /// Returns the number of cells in which it is met.
    pub fn met(&self) -> usize {
        self.checks.iter().filter(|check| check.met).count()
    }
}

/// Returns the verdicts on the goals of an experiment.
pub fn verdicts(results: &Results<'_>) -> Vec<Verdict> {
    results.definition.goals.iter().map(|goal| verdict(results, goal)).collect()
}

fn verdict(results: &Results<'_>, goal: &Goal) -> Verdict {
    let checks = match &goal.wanted {
        Wanted::AtLeast(of, bound) => each(results, of, bound, |measured, bound| measured >= bound, "≥"),
        Wanted::AtMost(of, bound) => each(results, of, bound, |measured, bound| measured <= bound, "≤"),
        Wanted::Order(measure, schemes, at) => order(results, measure, schemes, at),
        Wanted::NearPublished(of, distance) => near(results, of, *distance),
    };
    let Goal { number, says, why, .. } = goal.clone();
    Verdict { number, says, why, experiment: results.definition.name.clone(), checks }
}

/// The cells that have what `selection` says.
fn cells<'r>(results: &'r Results<'_>, selection: &'r Selection) -> impl Iterator<Item = Cell> + 'r {
    let matrix = &results.definition.matrix;
    matrix.cells().into_iter().filter(move |cell| {
        selection.iter().all(|(axis, label)| matrix.label(*cell, *axis) == label.get_ref())
    })
}

/// `operand` in `cell`, or in the one that differs from it in what the operand says.
fn value(results: &Results<'_>, operand: &Operand, cell: Cell) -> Option<Estimate> {
    let matrix = &results.definition.matrix;
    let mut cell = cell;
    for (axis, label) in &operand.at {
        let index = matrix.labels(*axis).iter().position(|known| known == label.get_ref())?;
        cell = cell.with(*axis, index);
    }
    let estimate = results.estimate(&operand.measure, cell, *operand.scheme.get_ref())?;
    let scaled = |value: f64| value * operand.times + operand.plus;
    Some(Estimate { value: scaled(estimate.value), low: scaled(estimate.low), high: scaled(estimate.high) })
}

fn each(
    results: &Results<'_>,
    of: &Operand,
    bound: &Bound,
    met: impl Fn(f64, f64) -> bool,
    sign: &str,
) -> Vec<Check> {
    let check = |cell| {
        let measured = value(results, of, cell)?;
        let limit = match bound {
            Bound::Number(number) => Estimate::exactly(*number),
            Bound::Of(operand) => value(results, operand, cell)?,
        };
        Some(Check {
            place: results.definition.matrix.describe(cell, &[]),
            measured: number(&of.measure, measured.value),
            wanted: format!("{sign} {}", number(&of.measure, limit.value)),
            met: met(measured.value, limit.value),
        })
    };
    cells(results, &of.at).filter_map(check).collect()
}

fn order(
    results: &Results<'_>,
    measure: &Measure,
    schemes: &[Spanned<Scheme>],
    at: &Selection,
) -> Vec<Check> {
    let check = |cell| {
        let values: Option<Vec<f64>> = schemes
            .iter()
            .map(|scheme| Some(results.estimate(measure, cell, *scheme.get_ref())?.value))
            .collect();
        let values = values?;
        let named = |(scheme, value): (&Spanned<Scheme>, &f64)| {
            format!("{} {}", scheme.get_ref(), number(measure, *value))
        };
        Some(Check {
            place: results.definition.matrix.describe(cell, &[]),
            measured: schemes.iter().zip(&values).map(named).collect::<Vec<_>>().join(", "),
            wanted: "from the largest to the smallest".to_owned(),
            met: values.is_sorted_by(|one, next| one >= next),
        })
    };
    cells(results, at).filter_map(check).collect()
}

fn near(results: &Results<'_>, of: &Operand, distance: f64) -> Vec<Check> {
    let definition = results.definition;
    let told = definition.published.iter().filter(|published| {
        published.scheme.get_ref() == of.scheme.get_ref() && published.measure == of.measure
    });
    let mut checks = Vec::new();
    for published in told {
        for cell in cells(results, &published.at) {
            let label = definition.matrix.label(cell, published.along);
            let known = published.values.iter().find(|(known, _)| known.get_ref() == label);
            let chosen = cells(results, &of.at).any(|other| other == cell);
            let measured = value(results, of, cell);
            let (Some((_, theirs)), Some(measured), true) = (known, measured, chosen) else { continue };
            checks.push(Check {
                place: definition.matrix.describe(cell, &[]),
                measured: number(&of.measure, measured.value),
                wanted: format!("{} ± {distance}", number(&of.measure, *theirs)),
                met: (measured.value - theirs).abs() <= distance,
            });
        }
    }
    checks
}

/// `value` as `measure` is written: with its unit, and as many digits as say something.
pub fn number(measure: &Measure, value: f64) -> String {
    match (measure.is_percent(), value.abs()) {
        (true, _) => format!("{value:.1} %"),
        (false, size) if size >= 100.0 => format!("{value:.0}"),
        (false, size) if size >= 10.0 => format!("{value:.1}"),
        (false, _) => format!("{value:.2}"),
    }
}
