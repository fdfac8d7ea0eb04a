//! Statistics of values that were measured: means, quantiles, confidence intervals.

/// The mean of `values`; 0 of nothing.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// The smallest of `sorted` that the share `share` of them does not exceed (nearest rank); `None` if there is none.
pub fn nearest_rank(sorted: &[f64], share: f64) -> Option<f64> {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(rank.saturating_sub(1).min(sorted.len().saturating_sub(1))).copied()
}

/// The value of `sorted` that is nearest to the place `share` between the least, at 0, and the greatest, at 1; `None` if there
/// is none.
pub fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let index = (sorted.len().max(1) - 1) as f64 * share;
    sorted.get(index.round() as usize).copied()
}

/// `values` in ascending order, for [`nearest_rank`] and [`quantile`].
pub fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// Student's t for 95 % of both sides, for 1 to 30 degrees of freedom.
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/// A mean with half the width of its 95 % confidence interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Mean {
    /// The mean.
    pub value: f64,
    /// Half the width; `None` with a single value, which says nothing about it.
    pub half_width: Option<f64>,
}

impl Mean {
    /// The mean of `values`, which are independent of each other and, roughly, normally distributed; `None` if there
    /// are none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let count = values.len() as f64;
        let value = values.iter().sum::<f64>() / count;
        let square = |sample: &f64| (sample - value).powi(2);
        match values.len() {
            0 => None,
            1 => Some(Self { value, half_width: None }),
            many => {
                let deviation = (values.iter().map(square).sum::<f64>() / (count - 1.0)).sqrt();
                let student = STUDENT.get(many - 2).copied().unwrap_or(1.96);
                Some(Self { value, half_width: Some(student * deviation / count.sqrt()) })
            }
        }
    }

    /// Written with `digits` behind the point, and the interval if it is known.
    pub fn written(self, digits: usize) -> String {
        match self.half_width {
            None => format!("{:.digits$}", self.value),
            Some(half) => format!("{:.digits$} ± {half:.digits$}", self.value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_those_of_students_distribution() {
        // Mean 2, deviation 1: 4.303 / √3.
        let mean = Mean::of(&[1.0, 2.0, 3.0]).unwrap();
        assert!(
            (mean.value - 2.0).abs() < 1e-9 && (mean.half_width.unwrap() - 2.484).abs() < 1e-3,
            "{mean:?}"
        );
        assert_eq!(Mean::of(&[5.0]), Some(Mean { value: 5.0, half_width: None }));
        assert_eq!(Mean::of(&[]), None);
        assert_eq!(mean.written(1), "2.0 ± 2.5");
        let many = [1.0; 100];
        assert_eq!(Mean::of(&many).unwrap().half_width, Some(0.0));
    }

    #[test]
    fn quantiles_are_values_that_were_measured() {
        let values = sorted(&(1..=200).rev().map(f64::from).collect::<Vec<f64>>());
        let ranks = [0.0, 0.5, 0.95, 0.99, 1.0].map(|share| nearest_rank(&values, share));
        assert_eq!(ranks, [1.0, 100.0, 190.0, 198.0, 200.0].map(Some));
        assert_eq!(nearest_rank(&[7.0], 0.95), Some(7.0));
        let few = [1.0, 2.0, 3.0, 4.0, 100.0];
        assert_eq!([0.0, 0.5, 1.0].map(|share| quantile(&few, share)), [1.0, 3.0, 100.0].map(Some));
        assert_eq!((nearest_rank(&[], 0.5), quantile(&[], 0.5), mean(&[])), (None, None, 0.0));
    }
}
