//! The results of an experiment, by cell and scheme.

use super::estimate::Estimate;
use super::frame::{Frame, RunKey};
use super::quantity::{Subject, saved};
use crate::experiment::campaign::Record;
use crate::experiment::definition::{Better, Cell, Definition, Measure};
use crate::experiment::pages::{LIMIT, Scheme};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

/// The results of an experiment.
#[derive(Debug)]
pub struct Results<'a> {
    /// The experiment.
    pub definition: &'a Definition,
    by: HashMap<(Cell, Scheme), Runs<'a>>,
}

/// The runs of a scheme in a cell.
pub(super) type Runs<'a> = BTreeMap<RunKey<'a>, &'a Record>;

/// A measure of a scheme in a cell, times a factor and plus a number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Term<'t> {
    pub(super) measure: &'t Measure,
    pub(super) cell: Cell,
    pub(super) scheme: Scheme,
    pub(super) times: f64,
    pub(super) plus: f64,
}

impl<'a> Results<'a> {
    /// `records` of `definition`.
    pub fn new(definition: &'a Definition, records: &'a [Record]) -> Self {
        let mut by: HashMap<(Cell, Scheme), Runs<'a>> = HashMap::new();
        for record in records {
            if let Some(cell) = record.key.cell_of(definition) {
                let key = (record.key.subject.as_str(), record.key.stretch);
                by.entry((cell, record.key.scheme)).or_default().insert(key, record);
            }
        }
        Self { definition, by }
    }

    /// Returns the number of runs of `scheme` in `cell`, and the number of those that failed.
    pub fn runs(&self, cell: Cell, scheme: Scheme) -> (usize, usize) {
        let runs = self.by.get(&(cell, scheme));
        let failed = runs.map_or(0, |runs| runs.values().filter(|run| run.failure.is_some()).count());
        (runs.map_or(0, BTreeMap::len), failed)
    }

    /// Returns the number of runs.
    pub fn len(&self) -> usize {
        self.by.values().map(BTreeMap::len).sum()
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.by.is_empty()
    }

    /// Returns the least number of repetitions that any scheme has of any subject in any cell.
    pub fn repetitions(&self) -> usize {
        let counts = self.by.values().flat_map(|runs| {
            let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
            runs.keys().for_each(|(subject, _)| *counts.entry(subject).or_default() += 1);
            counts.into_values()
        });
        counts.min().unwrap_or_default()
    }

    /// Returns the number of cells of which anything was run.
    pub fn cells(&self) -> usize {
        self.by.keys().map(|(cell, _)| *cell).collect::<BTreeSet<_>>().len()
    }

    /// Returns the number of subjects that were run.
    pub fn subjects(&self) -> usize {
        let subjects = self.by.values().flat_map(|runs| runs.keys().map(|(subject, _)| *subject));
        subjects.collect::<BTreeSet<_>>().len()
    }

    /// `measure` of `scheme` in `cell`; `None` if nothing of it was run.
    pub fn estimate(&self, measure: &Measure, cell: Cell, scheme: Scheme) -> Option<Estimate> {
        let runs = self.by.get(&(cell, scheme))?;
        let frame = Frame::of(runs);
        match measure {
            Measure::Failed => {
                let (runs, failed) = self.runs(cell, scheme);
                Some(Estimate::exactly(100.0 * failed as f64 / runs as f64))
            }
            Measure::Worst => self.worst(&frame, cell, scheme),
            _ => {
                let subject = Subject { results: self, frame: &frame, cell, scheme };
                let quantity = subject.quantity(measure)?;
                Estimate::of(frame.units(), resampled(quantity))
            }
        }
    }

    /// `of` less `bound`, with the interval of the difference over the same draws; `None` if one is not defined.
    pub(super) fn difference(&self, of: Term<'_>, bound: Term<'_>) -> Option<Estimate> {
        let frame = Frame::of(self.by.get(&(of.cell, of.scheme))?);
        let quantity = |term: Term<'_>| {
            let subject = Subject { results: self, frame: &frame, cell: term.cell, scheme: term.scheme };
            subject.quantity(term.measure)
        };
        let (Some(one), Some(other)) = (quantity(of), quantity(bound)) else {
            return self.apart(of, bound);
        };
        let value = move |drawn: &[usize]| {
            let scaled = |term: Term<'_>, value: f64| value * term.times + term.plus;
            Some(scaled(of, one(drawn)?) - scaled(bound, other(drawn)?))
        };
        Estimate::of(frame.units(), resampled(value))
    }

    /// The difference of what cannot be drawn together: its interval is as wide as both intervals allow.
    fn apart(&self, of: Term<'_>, bound: Term<'_>) -> Option<Estimate> {
        let scaled = |term: Term<'_>| {
            let estimate = self.estimate(term.measure, term.cell, term.scheme)?;
            Some(estimate.scaled(term.times, term.plus))
        };
        let (of, bound) = (scaled(of)?, scaled(bound)?);
        Some(Estimate { value: of.value - bound.value, low: of.low - bound.high, high: of.high - bound.low })
    }

    /// Returns the difference by which the subject that fares worst is worse than with eMBB alone, in per cent. The ends of
    /// the interval are the largest lower and the largest upper end of the intervals of all subjects: below a bound is the
    /// upper one if every subject is, above it the lower one if one subject is.
    fn worst(&self, frame: &Frame<'_>, cell: Cell, scheme: Scheme) -> Option<Estimate> {
        let better = self.definition.workload.better();
        let (own, alone) = (self.runs_of(cell, scheme), self.runs_of(cell, Scheme::EmbbAlone));
        let own = frame.column(|key| self.measured(own?.get(&key)?));
        let alone = frame.column(|key| self.ended(alone?.get(&key)?));
        let gain = saved(own, alone, better);
        let one = |unit: &Range<usize>| {
            let runs: Vec<usize> = unit.clone().collect();
            let loss = |drawn: &[&usize]| {
                let drawn: Vec<usize> = drawn.iter().map(|index| **index).collect();
                gain(&drawn).map(|gain| -gain)
            };
            Estimate::of(&runs, loss)
        };
        let most = |one: Estimate, other: Estimate| Estimate {
            value: one.value.max(other.value),
            low: one.low.max(other.low),
            high: one.high.max(other.high),
        };
        frame.units().iter().filter_map(one).reduce(most)
    }

    /// The runs of `scheme` in `cell`.
    pub(super) fn runs_of(&self, cell: Cell, scheme: Scheme) -> Option<&Runs<'a>> {
        self.by.get(&(cell, scheme))
    }

    /// The measurement of a run, if that came to its end.
    pub(super) fn ended(&self, record: &Record) -> Option<f64> {
        record.values.get(self.definition.workload.measured()).copied()
    }

    /// The measurement of a run. A run that came to no end counts as one that ends at the limit: leaving it out
    /// would make a scheme better that fails.
    pub(super) fn measured(&self, record: &Record) -> Option<f64> {
        let is_late = self.definition.workload.better() == Better::Less && record.failure.is_some();
        self.ended(record).or(is_late.then(|| LIMIT.as_secs_f64() * 1e3))
    }
}

/// `quantity` of units that are ranges of runs.
fn resampled(quantity: impl Fn(&[usize]) -> Option<f64>) -> impl Fn(&[&Range<usize>]) -> Option<f64> {
    move |units| {
        let drawn: Vec<usize> = units.iter().flat_map(|unit| (*unit).clone()).collect();
        quantity(&drawn)
    }
}
