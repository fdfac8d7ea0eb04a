//! Measures as functions of the runs that are drawn: what the bootstrap resamples.

use super::frame::Frame;
use super::results::Results;
use super::sum::together;
use crate::experiment::campaign::Record;
use crate::experiment::definition::{Axis, Better, Cell, Measure};
use crate::experiment::pages::Scheme;
use hvq_emulation::samples::quantile;
use hvq_scheduler::Policy;

/// A number made of the runs with these indices, which may come more than once.
pub(super) type Quantity = Box<dyn Fn(&[usize]) -> Option<f64>>;

/// The values of some scheme in the runs of a frame.
type Column = Vec<Option<f64>>;

/// The scheme that variants of it are measured against.
const HVC: Scheme = Scheme::Paths(Policy::Hvc);

/// The place of a measurement: what is measured where.
#[derive(Clone, Copy)]
pub(super) struct Subject<'r, 'a> {
    pub(super) results: &'r Results<'a>,
    pub(super) frame: &'r Frame<'a>,
    pub(super) cell: Cell,
    pub(super) scheme: Scheme,
}

impl Subject<'_, '_> {
    /// `measure` as a function of runs; `None` if it is none of the means and ratios that can be resampled.
    pub(super) fn quantity(self, measure: &Measure) -> Option<Quantity> {
        let better = self.results.definition.workload.better();
        Some(match measure {
            Measure::Gain => saved(self.own(), self.baseline(Scheme::EmbbAlone), better),
            Measure::Gap => self.gap(),
            Measure::Mean => Box::new(mean_of(self.own())),
            Measure::Median => ranked(self.own(), 0.5),
            Measure::P95 => ranked(self.own(), 0.95),
            Measure::Urllc => self.urllc(),
            Measure::Noted(name) => Box::new(mean_of(self.noted(name))),
            Measure::Single => self.against(&self.singles(), better),
            Measure::Best => self.against(&self.policies(), better),
            Measure::Sum => self.sum(),
            Measure::Knowledge => self.knowledge(better)?,
            Measure::Exchange => self.exchange()?,
            Measure::Behind => self.behind(better),
            Measure::Worst | Measure::Failed => return None,
        })
    }

    /// The measurements of the scheme itself.
    fn own(self) -> Column {
        self.of(self.cell, self.scheme)
    }

    /// The measurements of another scheme or in another cell.
    fn of(self, cell: Cell, scheme: Scheme) -> Column {
        let runs = self.results.runs_of(cell, scheme);
        self.frame.column(|key| self.results.measured(runs?.get(&key)?))
    }

    /// The measurements of `scheme` in the same cell, of runs that came to their end: a baseline that fails is no
    /// gain of others.
    fn baseline(self, scheme: Scheme) -> Column {
        let runs = self.results.runs_of(self.cell, scheme);
        self.frame.column(|key| self.results.ended(runs?.get(&key)?))
    }

    fn noted(self, name: &str) -> Column {
        let runs = self.results.runs_of(self.cell, self.scheme);
        self.frame.column(|key| runs?.get(&key)?.values.get(name).copied())
    }

    fn gap(self) -> Quantity {
        let (own, alone) = (self.own(), self.baseline(Scheme::EmbbAlone));
        let ideal = self.baseline(Scheme::Ideal);
        Box::new(move |drawn| {
            let (mut own_gain, mut whole) = (0.0, 0.0);
            for index in drawn {
                let (Some(own), Some(alone), Some(ideal)) = (own[*index], alone[*index], ideal[*index])
                else {
                    continue;
                };
                own_gain += alone - own;
                whole += alone - ideal;
            }
            (whole != 0.0).then(|| 100.0 * own_gain / whole)
        })
    }

    fn urllc(self) -> Quantity {
        let (urllc, embb) = (self.noted("urllc_bytes"), self.noted("embb_bytes"));
        Box::new(move |drawn| {
            let sum = |column: &Column| drawn.iter().filter_map(|index| column[*index]).sum::<f64>();
            let (urllc, embb) = (sum(&urllc), sum(&embb));
            (urllc + embb > 0.0).then(|| 100.0 * urllc / (urllc + embb))
        })
    }

    /// The schemes of the experiment that use one link alone.
    fn singles(self) -> Vec<Scheme> {
        let schemes = &self.results.definition.schemes;
        schemes.iter().copied().filter(|scheme| scheme.is_single()).collect()
    }

    /// The schemes of the experiment that a transport without help from the network can choose: each link alone, and every
    /// policy of paths.
    fn policies(self) -> Vec<Scheme> {
        let is_policy =
            |scheme: &Scheme| scheme.is_single() || matches!(scheme, Scheme::Paths(_) | Scheme::Bound(_));
        self.results.definition.schemes.iter().copied().filter(is_policy).collect()
    }

    /// The speed in percent of that of the best of `others`, which is chosen anew for every draw.
    fn against(self, others: &[Scheme], better: Better) -> Quantity {
        let own = mean_of(self.own());
        let others: Vec<_> = others.iter().map(|scheme| mean_of(self.of(self.cell, *scheme))).collect();
        Box::new(move |drawn| {
            let own = own(drawn)?;
            let values = others.iter().filter_map(|other| other(drawn));
            let share = match better {
                Better::Less => values.min_by(f64::total_cmp)? / own,
                Better::More => own / values.max_by(f64::total_cmp)?,
            };
            Some(100.0 * share)
        })
    }

    /// The speed in percent of that of all links at once, each as quick as alone.
    fn sum(self) -> Quantity {
        let singles: Vec<_> =
            self.singles().into_iter().filter_map(|scheme| self.results.runs_of(self.cell, scheme)).collect();
        let bound = self.frame.column(|key| {
            let runs: Option<Vec<&Record>> = singles.iter().map(|runs| runs.get(&key).copied()).collect();
            together(&runs?)
        });
        let (bound, own) = (mean_of(bound), mean_of(self.own()));
        Box::new(move |drawn| Some(100.0 * bound(drawn)? / own(drawn)?))
    }

    /// The share of the gain that both ends' true knowledge gives, in percent.
    fn knowledge(self, better: Better) -> Option<Quantity> {
        let matrix = &self.results.definition.matrix;
        let full = matrix.belief.iter().position(|belief| belief.is == Default::default())?;
        let told = self.of(self.cell.with(Axis::Belief, full), self.scheme);
        let alone = self.baseline(Scheme::EmbbAlone);
        let (own, told) = (saved(self.own(), alone.clone(), better), saved(told, alone, better));
        Some(Box::new(move |drawn| {
            let (own, told) = (own(drawn)?, told(drawn)?);
            (told > 0.0).then(|| 100.0 * own / told)
        }))
    }

    /// The difference by which it is slower than `hvc`, in percent.
    fn behind(self, better: Better) -> Quantity {
        let gain = saved(self.own(), self.of(self.cell, HVC), better);
        Box::new(move |drawn| gain(drawn).map(|gain| -gain))
    }

    /// The difference from the same with the other order of channels, in percent.
    fn exchange(self) -> Option<Quantity> {
        let orders = self.results.definition.matrix.order.len();
        let other = (0..orders).find(|index| *index != self.cell.at(Axis::Order))?;
        let other = mean_of(self.of(self.cell.with(Axis::Order, other), self.scheme));
        let own = mean_of(self.own());
        Some(Box::new(move |drawn| Some(100.0 * (own(drawn)? / other(drawn)? - 1.0))))
    }
}

/// The mean of a column.
fn mean_of(column: Column) -> impl Fn(&[usize]) -> Option<f64> {
    move |drawn| {
        let (sum, count) = drawn
            .iter()
            .filter_map(|index| column[*index])
            .fold((0.0, 0), |(sum, count), value| (sum + value, count + 1));
        (count > 0).then(|| sum / f64::from(count))
    }
}

fn ranked(column: Column, share: f64) -> Quantity {
    Box::new(move |drawn| {
        let mut values: Vec<f64> = drawn.iter().filter_map(|index| column[*index]).collect();
        values.sort_by(f64::total_cmp);
        quantile(&values, share)
    })
}

/// The difference by which `own` is better than `alone`, in percent of `alone`, over the runs that both have.
pub(super) fn saved(own: Column, alone: Column, better: Better) -> Quantity {
    Box::new(move |drawn| {
        let (mut sum, mut whole) = (0.0, 0.0);
        for index in drawn {
            if let (Some(own), Some(alone)) = (own[*index], alone[*index]) {
                sum += own;
                whole += alone;
            }
        }
        let saved = match better {
            Better::Less => whole - sum,
            Better::More => sum - whole,
        };
        (whole > 0.0).then(|| 100.0 * saved / whole)
    })
}
