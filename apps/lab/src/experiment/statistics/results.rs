//! The results of an experiment, by cell and scheme.

use super::estimate::{Estimate, quantile};
use crate::experiment::campaign::Record;
use crate::experiment::definition::{Better, Cell, Definition, Measure};
use crate::experiment::pages::Scheme;
use std::collections::{BTreeMap, HashMap};

/// The results of an experiment.
#[derive(Debug)]
pub struct Results<'a> {
    /// The experiment.
    pub definition: &'a Definition,
    by: HashMap<(Cell, Scheme), Runs<'a>>,
}

/// The runs of a scheme in a cell, by subject and stretch.
type Runs<'a> = BTreeMap<(&'a str, u32), &'a Record>;

/// The result of one run, beside those of eMBB alone and of the ideal channel on the same stretch.
#[derive(Clone, Copy, Debug)]
struct Sample {
    own: f64,
    alone: Option<f64>,
    ideal: Option<f64>,
    urllc: f64,
    bytes: f64,
}

/// Samples that depend on each other: of one page, or of one stretch where there is a single subject.
type Unit = Vec<Sample>;

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

    /// `measure` of `scheme` in `cell`; `None` if nothing of it was run.
    pub fn estimate(&self, measure: &Measure, cell: Cell, scheme: Scheme) -> Option<Estimate> {
        let better = self.definition.workload.better();
        match measure {
            Measure::Failed => {
                let (runs, failed) = self.runs(cell, scheme);
                (runs > 0).then(|| Estimate::exactly(100.0 * failed as f64 / runs as f64))
            }
            Measure::Worst => self.worst(cell, scheme).map(Estimate::exactly),
            Measure::Noted(name) => Estimate::of(&self.units(name, cell, scheme), mean),
            _ => {
                let units = self.units(self.definition.workload.measured(), cell, scheme);
                match measure {
                    Measure::Gain => Estimate::of(&units, |units| gain(units, better)),
                    Measure::Gap => Estimate::of(&units, gap),
                    Measure::Median => Estimate::of(&units, |units| ranked(units, 0.5)),
                    Measure::P95 => Estimate::of(&units, |units| ranked(units, 0.95)),
                    Measure::Urllc => Estimate::of(&units, urllc),
                    _ => Estimate::of(&units, mean),
                }
            }
        }
    }

    /// Returns the difference by which the subject that fares worst is worse than with eMBB alone, in per cent.
    fn worst(&self, cell: Cell, scheme: Scheme) -> Option<f64> {
        let better = self.definition.workload.better();
        let units = self.units(self.definition.workload.measured(), cell, scheme);
        units.iter().filter_map(|unit| gain(&[unit], better)).map(|gain| -gain).max_by(f64::total_cmp)
    }

    fn units(&self, name: &str, cell: Cell, scheme: Scheme) -> Vec<Unit> {
        let runs = |scheme| self.by.get(&(cell, scheme));
        let Some(own) = runs(scheme) else { return Vec::new() };
        let (alone, ideal) = (runs(Scheme::EmbbAlone), runs(Scheme::Ideal));
        let single =
            own.keys().all(|(subject, _)| own.keys().next().is_some_and(|first| first.0 == *subject));
        let mut units: BTreeMap<(&str, u32), Unit> = BTreeMap::new();
        for (key, record) in own {
            let Some(value) = record.values.get(name) else { continue };
            let of = |runs: Option<&Runs<'_>>| runs?.get(key)?.values.get(name).copied();
            let bytes = |name: &str| record.values.get(name).copied().unwrap_or_default();
            let urllc = bytes("urllc_bytes");
            let sample = Sample {
                own: *value,
                alone: of(alone),
                ideal: of(ideal),
                urllc,
                bytes: urllc + bytes("embb_bytes"),
            };
            let unit = if single { *key } else { (key.0, 0) };
            units.entry(unit).or_default().push(sample);
        }
        units.into_values().collect()
    }
}

fn samples<'u>(units: &'u [&'u Unit]) -> impl Iterator<Item = Sample> + 'u {
    units.iter().flat_map(|unit| unit.iter().copied())
}

fn mean(units: &[&Unit]) -> Option<f64> {
    let (sum, count) = samples(units).fold((0.0, 0), |(sum, count), sample| (sum + sample.own, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

fn ranked(units: &[&Unit], share: f64) -> Option<f64> {
    let mut values: Vec<f64> = samples(units).map(|sample| sample.own).collect();
    values.sort_by(f64::total_cmp);
    quantile(&values, share)
}

/// In percent of the mean with eMBB alone.
fn gain(units: &[&Unit], better: Better) -> Option<f64> {
    let (own, alone) = samples(units)
        .filter_map(|sample| Some((sample.own, sample.alone?)))
        .fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
    let saved = match better {
        Better::Less => alone - own,
        Better::More => own - alone,
    };
    (alone > 0.0).then(|| 100.0 * saved / alone)
}

/// In percent of the gain of the ideal channel.
fn gap(units: &[&Unit]) -> Option<f64> {
    let (own, whole) = samples(units)
        .filter_map(|sample| Some((sample.alone? - sample.own, sample.alone? - sample.ideal?)))
        .fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
    (whole != 0.0).then(|| 100.0 * own / whole)
}

fn urllc(units: &[&Unit]) -> Option<f64> {
    let (urllc, bytes) =
        samples(units).fold((0.0, 0.0), |sum, sample| (sum.0 + sample.urllc, sum.1 + sample.bytes));
    (bytes > 0.0).then(|| 100.0 * urllc / bytes)
}
