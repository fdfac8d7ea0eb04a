//! The bound that all links together set: each carries what it carries alone, and nobody waits for anybody.

use crate::experiment::campaign::{Record, progress_name};
use crate::workload::page_load::PARTS;

/// Steps by which the time is halved: to less than a microsecond of a minute.
const STEPS: u32 = 40;

/// The times in milliseconds at which the first byte and each part of a download had arrived in one run.
struct Curve(Vec<f64>);

impl Curve {
    fn of(record: &Record) -> Option<Self> {
        let parts = 0..=u32::try_from(PARTS).ok()?;
        let times: Option<Vec<f64>> =
            parts.map(|part| record.values.get(&progress_name(part)).copied()).collect();
        times.map(Self)
    }

    /// The share of the content that has arrived at `time`: a straight line between two marks.
    fn at(&self, time: f64) -> f64 {
        let after = self.0.partition_point(|mark| *mark <= time);
        match (after.checked_sub(1).map(|before| self.0[before]), self.0.get(after)) {
            (None, _) => 0.0,
            (Some(_), None) => 1.0,
            (Some(from), Some(to)) => {
                let within = (time - from) / (to - from).max(f64::MIN_POSITIVE);
                ((after - 1) as f64 + within) / PARTS as f64
            }
        }
    }
}

/// The time in milliseconds after which the downloads of `alone`, each over its own link, have together got as much as one
/// of them gets in the end; `None` if one of them did not come to its end.
pub(super) fn together(alone: &[&Record]) -> Option<f64> {
    let curves: Vec<Curve> = alone.iter().map(|record| Curve::of(record)).collect::<Option<_>>()?;
    let (mut low, mut high) =
        (0.0, curves.iter().filter_map(|curve| curve.0.last().copied()).reduce(f64::min)?);
    for _ in 0..STEPS {
        let middle = (low + high) / 2.0;
        if curves.iter().map(|curve| curve.at(middle)).sum::<f64>() < 1.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::campaign::Key;
    use crate::experiment::pages::Scheme;

    /// A download that begins at `first` and goes on at one rate until `end`.
    fn steady(first: f64, end: f64) -> Record {
        let at = |part: u32| first + (end - first) * f64::from(part) / 20.0;
        Record {
            basis: String::new(),
            key: Key {
                cell: [].into(),
                subject: "download".to_owned(),
                stretch: 0,
                scheme: Scheme::EmbbAlone,
            },
            values: (0..=20).map(|part| (progress_name(part), at(part))).collect(),
            failure: None,
        }
    }

    #[test]
    fn two_equal_links_take_half_the_time_and_a_late_one_helps_less() {
        let near = |bound: Option<f64>, wanted: f64| bound.is_some_and(|bound| (bound - wanted).abs() < 0.01);
        let (one, late) = (steady(0.0, 1000.0), steady(600.0, 1600.0));
        assert!(near(together(&[&one]), 1000.0));
        assert!(near(together(&[&one, &one]), 500.0));
        assert!(near(together(&[&one, &late]), 800.0));
        let mut cut = steady(0.0, 1000.0);
        cut.values.remove("progress_20_ms");
        assert_eq!(together(&[&one, &cut]), None);
    }
}
