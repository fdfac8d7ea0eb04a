//! Goals held against results.

use super::estimate::Estimate;
use super::evidence::evidence;
use super::results::{Results, Term};
use crate::experiment::definition::{Bound, Cell, Goal, Measure, Operand, Selection, Wanted};
use crate::experiment::pages::Scheme;
use toml::Spanned;

/// The verdict on a goal.
#[derive(Clone, PartialEq, Debug)]
pub struct GoalVerdict {
    /// Its number.
    pub number: u32,
    /// The goal, in words.
    pub says: String,
    /// The experiment that shows it.
    pub experiment: String,
    /// One for each cell.
    pub checks: Vec<Check>,
    /// The number of cells in which it is to be met, if not all.
    pub cells: Option<usize>,
}

/// A goal in a cell.
#[derive(Clone, PartialEq, Debug)]
pub struct Check {
    /// The cell in words.
    pub place: String,
    /// The measured value, with its interval.
    pub measured: String,
    /// The value that was wanted.
    pub wanted: String,
    /// The decision.
    pub decision: Decision,
    /// The measurements beside it, where it is not met.
    pub evidence: String,
}

/// The decision about a goal in a cell: by the 95 % interval of the difference between what is measured and what is wanted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Decision {
    /// The whole interval is on the side that is wanted.
    Met,
    /// Both sides are within the interval: more runs would tell.
    Undecided,
    /// The whole interval is on the other side.
    Missed,
}

impl Decision {
    /// The decision about `excess`, the difference that is wanted to be 0 or more.
    fn on(excess: Estimate) -> Self {
        if excess.low >= -NOTHING {
            Self::Met
        } else if excess.high < -NOTHING {
            Self::Missed
        } else {
            Self::Undecided
        }
    }

    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Undecided => "undecided",
            Self::Missed => "missed",
        }
    }
}

/// Differences below this are rounding.
const NOTHING: f64 = 1e-9;

impl GoalVerdict {
    /// Returns the decision about all cells: met if as many are met as are to be, missed if they cannot be whatever becomes of
    /// the undecided ones; `None` if nothing was measured.
    pub fn decision(&self) -> Option<Decision> {
        if self.checks.is_empty() {
            return None;
        }
        let wanted = self.cells.unwrap_or(self.checks.len());
        let (met, undecided) = (self.count(Decision::Met), self.count(Decision::Undecided));
        Some(match wanted {
            wanted if met >= wanted => Decision::Met,
            wanted if met + undecided >= wanted => Decision::Undecided,
            _ => Decision::Missed,
        })
    }

    /// Returns the number of cells with this decision.
    pub fn count(&self, decision: Decision) -> usize {
        self.checks.iter().filter(|check| check.decision == decision).count()
    }
}

/// Returns the verdicts on the goals of an experiment.
pub fn verdicts(results: &Results<'_>) -> Vec<GoalVerdict> {
    results.definition.goals.iter().map(|goal| verdict(results, goal)).collect()
}

fn verdict(results: &Results<'_>, goal: &Goal) -> GoalVerdict {
    let checks = match &goal.wanted {
        Wanted::AtLeast(of, bound) => each(results, of, bound, Side::Least),
        Wanted::AtMost(of, bound) => each(results, of, bound, Side::Most),
        Wanted::Order(measure, schemes, at) => order(results, measure, schemes, at),
        Wanted::NearPublished(of, distance) => near(results, of, *distance),
    };
    let Goal { number, says, cells, .. } = goal.clone();
    GoalVerdict { number, says, experiment: results.definition.name.clone(), checks, cells }
}

/// The cells that have what `selection` says.
fn cells<'r>(results: &'r Results<'_>, selection: &'r Selection) -> impl Iterator<Item = Cell> + 'r {
    let matrix = &results.definition.matrix;
    matrix.cells().into_iter().filter(move |cell| {
        selection.iter().all(|(axis, label)| matrix.label(*cell, *axis) == label.get_ref())
    })
}

/// The side of its bound on which a measure is wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Least,
    Most,
}

/// `operand` in `cell`, or in the one that differs from it in what the operand says.
fn term<'t>(results: &Results<'_>, operand: &'t Operand, cell: Cell) -> Option<Term<'t>> {
    let matrix = &results.definition.matrix;
    let mut cell = cell;
    for (axis, label) in &operand.at {
        let index = matrix.labels(*axis).iter().position(|known| known == label.get_ref())?;
        cell = cell.with(*axis, index);
    }
    let Operand { measure, scheme, times, plus, .. } = operand;
    Some(Term { measure, cell, scheme: *scheme.get_ref(), times: *times, plus: *plus })
}

/// The value of `operand` in `cell`.
fn value(results: &Results<'_>, operand: &Operand, cell: Cell) -> Option<Estimate> {
    let term = term(results, operand, cell)?;
    Some(results.estimate(term.measure, term.cell, term.scheme)?.scaled(term.times, term.plus))
}

fn each(results: &Results<'_>, of: &Operand, bound: &Bound, side: Side) -> Vec<Check> {
    let check = |cell| {
        let measured = value(results, of, cell)?;
        let (limit, above) = match bound {
            Bound::Number(number) => (*number, measured.scaled(1.0, -number)),
            Bound::Of(operand) => {
                let difference = results.difference(term(results, of, cell)?, term(results, operand, cell)?);
                (value(results, operand, cell)?.value, difference?)
            }
        };
        let (sign, excess) = match side {
            Side::Least => ("≥", above),
            Side::Most => ("≤", above.scaled(-1.0, 0.0)),
        };
        let decision = Decision::on(excess);
        let evidence = match decision {
            Decision::Met => String::new(),
            _ => evidence(results, term(results, of, cell)?),
        };
        Some(Check {
            place: results.definition.matrix.describe(cell, &[]),
            measured: with_interval(&of.measure, measured),
            wanted: format!("{sign} {}", number(&of.measure, limit)),
            decision,
            evidence,
        })
    };
    cells(results, &of.at).filter_map(check).collect()
}

/// Schemes in an order: every one is held against the next.
fn order(
    results: &Results<'_>,
    measure: &Measure,
    schemes: &[Spanned<Scheme>],
    at: &Selection,
) -> Vec<Check> {
    let check = |cell| {
        let terms: Vec<Term<'_>> = schemes
            .iter()
            .map(|scheme| Term { measure, cell, scheme: *scheme.get_ref(), times: 1.0, plus: 0.0 })
            .collect();
        let values: Option<Vec<String>> = terms
            .iter()
            .map(|term| {
                let estimate = results.estimate(measure, cell, term.scheme)?;
                Some(format!("{} {}", term.scheme, number(measure, estimate.value)))
            })
            .collect();
        let decisions: Option<Vec<Decision>> =
            terms.windows(2).map(|pair| results.difference(pair[0], pair[1]).map(Decision::on)).collect();
        Some(Check {
            place: results.definition.matrix.describe(cell, &[]),
            measured: values?.join(", "),
            wanted: "from the largest to the smallest".to_owned(),
            decision: decisions?.into_iter().max().unwrap_or(Decision::Met),
            evidence: String::new(),
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
            // Within the distance on both sides.
            let above = measured.scaled(1.0, distance - theirs);
            let below = measured.scaled(-1.0, distance + theirs);
            checks.push(Check {
                place: definition.matrix.describe(cell, &[]),
                measured: with_interval(&of.measure, measured),
                wanted: format!("{} ± {distance}", number(&of.measure, *theirs)),
                decision: Decision::on(above).max(Decision::on(below)),
                evidence: String::new(),
            });
        }
    }
    checks
}

/// `estimate` as `measure` is written, with its interval if it has one.
pub fn with_interval(measure: &Measure, estimate: Estimate) -> String {
    let value = number(measure, estimate.value);
    if estimate.low == estimate.high {
        return value;
    }
    let bare = |value: f64| number(measure, value).trim_end_matches(" %").to_owned();
    format!("{value} [{}, {}]", bare(estimate.low), bare(estimate.high))
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
