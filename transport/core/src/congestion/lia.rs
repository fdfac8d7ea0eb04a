//! LIA, linked increases (RFC 6356): what all paths gain together is what the best of them would gain alone.

use super::coupled::{Coupled, Family, Flow, Rule};

/// The rule of RFC 6356.
#[derive(Clone, Copy, Debug)]
pub struct Lia;

/// The controller of RFC 6356.
pub type LiaController = Coupled<Lia>;

impl Rule for Lia {
    const NAME: &'static str = "lia";

    /// The smaller of alpha over the total window and 1 over the path's own (RFC 6356 §3), where alpha = total window ×
    /// max(window/rtt²) / (Σ window/rtt)² (Eq. 2).
    fn increase(family: &Family<'_>) -> f64 {
        let best = family.all().map(Flow::pull).fold(0.0, f64::max);
        let linked = best / family.total_rate().powi(2);
        linked.min(1.0 / family.own.window.max(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::super::coupled::tests::{flow, gain};
    use super::*;

    #[test]
    fn two_equal_paths_gain_a_quarter_of_what_each_would_alone() {
        // RFC 6356 §3: alpha = 2w × (w/r²) / (2w/r)² = 1/2, and the total window is 2w.
        let (own, other) = (flow(0, 100, 50), flow(1, 100, 50));
        assert!((gain::<Lia>(&own, &[other]) - 0.25).abs() < 1e-9);
    }

    #[test]
    fn no_path_gains_more_than_it_would_alone() {
        // A sibling with a much shorter round trip makes alpha large.
        let (own, other) = (flow(0, 10, 100), flow(1, 10, 1));
        let gained = gain::<Lia>(&own, &[other]);
        assert!(gained <= 1.0, "{gained}");
        assert!((gain::<Lia>(&own, &[]) - 1.0).abs() < 1e-9);
    }
}
