//! Statistics of several measurements of the same thing.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Median, least and greatest of some measurements.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Spread {
    /// The one in the middle, or the mean of the two there.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
}

impl Spread {
    /// The spread of `values`; `None` if there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let (low, high) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
        Some(Self { median: f64::midpoint(low, high), min, max })
    }

    /// Returns the text that is displayed, but without a range if all were the same.
    pub fn short(&self, digits: usize) -> String {
        if self.min == self.max { format!("{:.digits$}", self.median) } else { format!("{self:.digits$}") }
    }
}

/// Writes `median (min–max)`, with the precision of the format, 2 digits if it has none.
impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(2);
        write!(f, "{:.digits$} ({:.digits$}–{:.digits$})", self.median, self.min, self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle_whatever_the_order() {
        let odd = Spread::of([3.0, 1.0, 8.0]).unwrap();
        assert_eq!((odd.median, odd.min, odd.max), (3.0, 1.0, 8.0));
        assert_eq!(Spread::of([4.0, 1.0, 2.0, 9.0]).unwrap().median, 3.0);
        assert_eq!(Spread::of([]), None);
        assert_eq!(format!("{odd:.1}"), "3.0 (1.0–8.0)");
        assert_eq!(odd.short(1), "3.0 (1.0–8.0)");
        assert_eq!(Spread::of([2.0, 2.0]).unwrap().short(1), "2.0");
    }
}
