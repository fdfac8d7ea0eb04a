//! Checks of a file against itself: every reference has something that it refers to.

use super::axis::Axis;
use super::expected::{Bound, Goal, Operand, Plot, Published, Selection, Wanted};
use super::matrix::Matrix;
use super::measure::Measure;
use super::workload::Workload;
use crate::experiment::pages::{Belief, Scheme};
use hvq_emulation::{ChannelSpec, Delay, Rate, TraceSource};
use hvq_scheduler::Policy;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::ops::Range;
use toml::Spanned;

/// The place of a problem.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// These bytes of the text.
    Span(Range<usize>),
    /// In the field of this name, with its table.
    Field(&'static str),
}

/// A problem: its place, and its description.
#[derive(Clone, Debug)]
pub(super) struct Problem(pub(super) Place, pub(super) String);

impl Problem {
    /// `problem` with what stands at `spanned`.
    pub(super) fn at<T>(spanned: &Spanned<T>, problem: impl Into<String>) -> Self {
        Self(Place::Span(spanned.span()), problem.into())
    }
}

/// A wish as it is written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GoalText {
    number: u32,
    says: String,
    cells: Option<usize>,
    of: Option<Operand>,
    at_least: Option<Bound>,
    at_most: Option<Bound>,
    near_published: Option<f64>,
    order: Option<Vec<Spanned<Scheme>>>,
    #[serde(default)]
    measure: Measure,
    #[serde(default)]
    at: Selection,
}

/// The context in which references in a file are checked.
pub(super) struct CheckContext<'a> {
    pub(super) schemes: &'a Spanned<Vec<Scheme>>,
    pub(super) matrix: &'a Matrix,
}

impl CheckContext<'_> {
    pub(super) fn lists(&self) -> Result<(), Problem> {
        let schemes = self.schemes.get_ref();
        if schemes.is_empty() {
            return Err(Problem::at(self.schemes, "at least one scheme is needed"));
        }
        let names: Vec<String> = schemes.iter().map(Scheme::to_string).collect();
        if let Some(name) = twice(&names) {
            return Err(Problem::at(self.schemes, format!("{name} stands there twice")));
        }
        for axis in Axis::ALL {
            let labels = self.matrix.labels(axis);
            let field = Place::Field(axis.field());
            if labels.is_empty() {
                return Err(Problem(field, "at least one value is needed".to_owned()));
            }
            if let Some(label) = twice(&labels) {
                return Err(Problem(field, format!("the label {label:?} stands there twice")));
            }
        }
        Ok(())
    }

    /// Checks that the variations, and the schemes, mean something to `workload`.
    pub(super) fn workload(&self, workload: &Workload) -> Result<(), Problem> {
        let means_nothing =
            |axis: &Axis| self.matrix.labels(*axis).len() > 1 && !workload.axes().contains(axis);
        if let Some(axis) = Axis::ALL.into_iter().find(means_nothing) {
            let problem = format!("varying this changes nothing where {} is measured", workload.measured());
            return Err(Problem(Place::Field(axis.field()), problem));
        }
        match self.schemes.get_ref().iter().find(|scheme| !workload.takes(**scheme)) {
            Some(scheme) => {
                let problem = format!("{scheme} cannot be used here: choose embb, below:dchannel or hvc");
                Err(Problem::at(self.schemes, problem))
            }
            None => Ok(()),
        }
    }

    /// Reads the files of traces that channels name; returns hashes of their content.
    pub(super) fn traces(&self) -> Result<Vec<u64>, Problem> {
        let mut hashes = Vec::new();
        for (axis, values) in [(Axis::Embb, &self.matrix.embb), (Axis::Urllc, &self.matrix.urllc)] {
            for labelled in values {
                let read = content(&labelled.is);
                hashes.extend(read.map_err(|problem| Problem(Place::Field(axis.field()), problem))?);
            }
        }
        Ok(hashes)
    }

    fn scheme(&self, scheme: &Spanned<Scheme>) -> Result<(), Problem> {
        if self.schemes.get_ref().contains(scheme.get_ref()) {
            return Ok(());
        }
        Err(Problem::at(scheme, format!("{} is not among the schemes", scheme.get_ref())))
    }

    fn label(&self, axis: Axis, label: &Spanned<String>) -> Result<(), Problem> {
        let labels = self.matrix.labels(axis);
        if labels.contains(&label.get_ref().as_str()) {
            return Ok(());
        }
        let problem =
            format!("{:?} is no value of {}: there are {}", label.get_ref(), axis.name(), labels.join(", "));
        Err(Problem::at(label, problem))
    }

    pub(super) fn selection(&self, selection: &Selection) -> Result<(), Problem> {
        selection.iter().try_for_each(|(axis, label)| self.label(*axis, label))
    }

    fn operand(&self, operand: &Operand) -> Result<(), Problem> {
        self.scheme(&operand.scheme)?;
        let has = |scheme| self.schemes.get_ref().contains(&scheme);
        let needed = match operand.measure {
            Measure::Gap if !has(Scheme::Ideal) => Some(Scheme::Ideal),
            Measure::Gain | Measure::Gap | Measure::Worst | Measure::Knowledge if !has(Scheme::EmbbAlone) => {
                Some(Scheme::EmbbAlone)
            }
            _ => None,
        };
        if let Some(needed) = needed {
            let problem =
                format!("{} is measured against {needed}, which is not among the schemes", operand.measure);
            return Err(Problem::at(&operand.scheme, problem));
        }
        if let Some(problem) = self.lacks(&operand.measure) {
            return Err(Problem::at(&operand.scheme, format!("{}: {problem}", operand.measure)));
        }
        self.selection(&operand.at)
    }

    /// The part that `measure` needs and the file does not have, if there is such.
    fn lacks(&self, measure: &Measure) -> Option<&'static str> {
        let singles = self.schemes.get_ref().iter().filter(|scheme| scheme.is_single()).count();
        match measure {
            Measure::Single | Measure::Best | Measure::Sum if singles < 2 => {
                Some("embb and urllc, each link alone, are not among the schemes")
            }
            Measure::Knowledge if !self.matrix.belief.iter().any(|belief| belief.is == Belief::default()) => {
                Some("both is no value of belief")
            }
            Measure::Behind if !self.schemes.get_ref().contains(&Scheme::Paths(Policy::Hvc)) => {
                Some("hvc is not among the schemes")
            }
            Measure::Exchange if self.matrix.order.len() != 2 => Some("order has not two values"),
            _ => None,
        }
    }

    fn bound(&self, bound: &Bound) -> Result<(), Problem> {
        match bound {
            Bound::Number(_) => Ok(()),
            Bound::Of(operand) => self.operand(operand),
        }
    }

    pub(super) fn plot(&self, plot: &Plot) -> Result<(), Problem> {
        plot.schemes.iter().try_for_each(|scheme| self.scheme(scheme))
    }

    pub(super) fn published(&self, published: &Published) -> Result<(), Problem> {
        self.scheme(&published.scheme)?;
        self.selection(&published.at)?;
        published.values.keys().try_for_each(|label| self.label(published.along, label))
    }

    pub(super) fn goal(&self, goal: &Spanned<GoalText>) -> Result<Goal, Problem> {
        let GoalText { number, says, cells, of, at_least, at_most, near_published, order, measure, at } =
            goal.get_ref().clone();
        if let Some(operand) = &of {
            self.operand(operand)?;
        }
        let wanted = match (of, at_least, at_most, near_published, order) {
            (Some(of), Some(bound), None, None, None) => {
                self.bound(&bound)?;
                Wanted::AtLeast(of, bound)
            }
            (Some(of), None, Some(bound), None, None) => {
                self.bound(&bound)?;
                Wanted::AtMost(of, bound)
            }
            (Some(of), None, None, Some(distance), None) => Wanted::NearPublished(of, distance),
            (None, None, None, None, Some(order)) => {
                order.iter().try_for_each(|scheme| self.scheme(scheme))?;
                self.selection(&at)?;
                Wanted::Order(measure, order, at)
            }
            _ => {
                let problem =
                    "a goal has `order`, or `of` with one of `at_least`, `at_most`, `near_published`";
                return Err(Problem::at(goal, problem));
            }
        };
        Ok(Goal { number, says, cells, wanted })
    }
}

/// Returns a name that stands in `names` more than once, if there is one.
fn twice<T: Ord>(names: &[T]) -> Option<&T> {
    let mut known = BTreeSet::new();
    names.iter().find(|name| !known.insert(*name))
}

const fn is_file(source: &TraceSource) -> bool {
    match source {
        TraceSource::File(_) | TraceSource::Mahimahi(_) => true,
        TraceSource::Named(_) => false,
    }
}

/// Hashes of the files that `channel` names; fails if one is no trace, with the file and the line.
fn content(channel: &ChannelSpec) -> Result<Vec<u64>, String> {
    let mut hashes = Vec::new();
    for link in [&channel.up, &channel.down] {
        if let Delay::Trace { source, .. } = &link.delay
            && is_file(source)
        {
            let trace = source.delay().map_err(|error| error.to_string())?;
            hashes.push(super::read::digest(&format!("{trace:?}")));
        }
        if let Rate::Trace(source) = &link.rate
            && is_file(source)
        {
            let trace = source.rate().map_err(|error| error.to_string())?;
            hashes.push(super::read::digest(&format!("{trace:?}")));
        }
    }
    Ok(hashes)
}
