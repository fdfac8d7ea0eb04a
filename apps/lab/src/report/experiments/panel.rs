//! The layout of the cells of an experiment: a panel for each combination of the values that are not along the axis.

use crate::experiment::definition::{Axis, Cell, Definition, Measure, Published};
use crate::experiment::pages::{Below, Scheme};
use crate::experiment::statistics::{Estimate, Results};

/// Cells that differ along the axis of the drawing only.
#[derive(Debug)]
pub(super) struct Panel {
    /// The values that its cells have in common, in words.
    pub(super) title: String,
    /// The cells in the order of the axis.
    pub(super) cells: Vec<Cell>,
}

/// The panels of `definition` along its plot's axis.
pub(super) fn panels(definition: &Definition) -> Vec<Panel> {
    let (matrix, along) = (&definition.matrix, definition.plot.along);
    let mut panels: Vec<(Cell, Panel)> = Vec::new();
    for cell in matrix.cells() {
        let place = cell.with(along, 0);
        match panels.iter_mut().find(|(known, _)| *known == place) {
            Some((_, panel)) => panel.cells.push(cell),
            None => {
                let title = matrix.describe(cell, &[along]);
                panels.push((place, Panel { title, cells: vec![cell] }));
            }
        }
    }
    panels.into_iter().map(|(_, panel)| panel).collect()
}

/// The schemes that are drawn.
pub(super) fn drawn(definition: &Definition) -> Vec<Scheme> {
    let chosen: Vec<Scheme> = definition.plot.schemes.iter().map(|scheme| *scheme.get_ref()).collect();
    if !chosen.is_empty() {
        return chosen;
    }
    // eMBB alone gains nothing over itself.
    let says_nothing = |scheme: &Scheme| {
        *scheme == Scheme::EmbbAlone
            && matches!(definition.plot.measure, Measure::Gain | Measure::Gap | Measure::Worst)
    };
    definition.schemes.iter().copied().filter(|scheme| !says_nothing(scheme)).collect()
}

/// Returns the published value of `measure` of `scheme` in `cell`, if there is one.
pub(super) fn published(
    definition: &Definition,
    measure: &Measure,
    cell: Cell,
    scheme: Scheme,
) -> Option<f64> {
    let label = |axis: Axis| definition.matrix.label(cell, axis);
    let fits = |published: &&Published| {
        *published.scheme.get_ref() == scheme
            && published.measure == *measure
            && published.at.iter().all(|(axis, wanted)| label(*axis) == wanted.get_ref())
    };
    let in_cell = |published: &Published| {
        let mut values = published.values.iter();
        values.find(|(known, _)| known.get_ref() == label(published.along)).map(|(_, value)| *value)
    };
    definition.published.iter().filter(fits).find_map(in_cell)
}

/// The class of a scheme's colour: what it is among the others.
pub(super) const fn class(scheme: Scheme) -> &'static str {
    match scheme {
        Scheme::EmbbAlone | Scheme::EmbbWith(_) => "s0",
        Scheme::UrllcAlone => "s5",
        Scheme::Ideal => "s4",
        Scheme::Below(Below::DChannel(_)) => "s1",
        Scheme::Below(_) => "s6",
        Scheme::Paths(hvq_scheduler::Policy::Hvc) => "s2",
        Scheme::Paths(_) | Scheme::Bound(_) | Scheme::Told(_) | Scheme::Foreign(_) => "s3",
    }
}

/// The classes and what they stand for, of those that `schemes` have.
pub(super) fn legend(schemes: &[Scheme]) -> impl Iterator<Item = (String, String)> {
    let entries = [
        ("s0", "eMBB alone"),
        ("s5", "URLLC alone"),
        ("s4", "ideal: one channel with URLLC's delay and both rates"),
        ("s1", "DChannel, below the transport"),
        ("s6", "other steerers of packets below the transport"),
        ("s3", "other schedulers over two paths of hvq"),
        ("s2", "hvc, over two paths of hvq"),
    ];
    let used: Vec<&str> = schemes.iter().map(|scheme| class(*scheme)).collect();
    let entries = entries.into_iter().filter(move |(class, _)| used.contains(class));
    entries.map(|(class, label)| (class.to_owned(), label.to_owned()))
}

/// The least and the largest of what is drawn of `measure`, published values too, and 0.
pub(super) fn range(results: &Results<'_>, measure: &Measure, schemes: &[Scheme]) -> (f64, f64) {
    let definition = results.definition;
    let mut range = (0.0_f64, 0.0_f64);
    for cell in definition.matrix.cells() {
        for scheme in schemes {
            let estimate = results.estimate(measure, cell, *scheme);
            let ends = estimate.map(|Estimate { low, high, .. }| [low, high]);
            let told = published(definition, measure, cell, *scheme);
            for value in ends.into_iter().flatten().chain(told) {
                range = (range.0.min(value), range.1.max(value));
            }
        }
    }
    range
}
