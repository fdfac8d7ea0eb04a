//! BALIA, balanced linked adaptation (Peng et al., IEEE/ACM ToN 24(1), 2016; draft-walid-mptcp-congestion-control): friendly
//! like LIA, responsive like OLIA.

use super::coupled::{Coupled, Family, Flow, Rule};

/// The rule of the draft.
#[derive(Clone, Copy, Debug)]
pub struct Balia;

/// The controller of the draft.
pub type BaliaController = Coupled<Balia>;

/// The rate of the fastest path over that of this one: α of the draft.
fn alpha(family: &Family<'_>) -> f64 {
    let fastest = family.all().map(Flow::rate).fold(0.0, f64::max);
    (fastest / family.own.rate().max(1e-6)).max(1.0)
}

impl Rule for Balia {
    const NAME: &'static str = "balia";

    /// rate/rtt over (Σ rate)², times (1 + α)/2 and (4 + α)/5 (draft §3).
    fn increase(family: &Family<'_>) -> f64 {
        let alpha = alpha(family);
        family.own.pull() / family.total_rate().powi(2) * ((1.0 + alpha) / 2.0) * ((4.0 + alpha) / 5.0)
    }

    /// A loss takes half the window times α, at most three quarters (draft §3).
    fn remaining(family: &Family<'_>) -> f64 {
        1.0 - alpha(family).min(1.5) / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::super::coupled::tests::{flow, gain};
    use super::*;

    #[test]
    fn equal_paths_are_a_quarter_as_fast_and_halve_like_reno() {
        let (own, other) = (flow(0, 100, 50), flow(1, 100, 50));
        assert!((gain::<Balia>(&own, &[other]) - 0.25).abs() < 1e-9);
        assert_eq!(Balia::remaining(&Family { own: &own, others: &[other] }), 0.5);
    }

    #[test]
    fn a_slow_path_gains_more_and_loses_more() {
        // α = 4: (20/100)² of a datagram, times 5/2 and 8/5.
        let (slow, fast) = (flow(0, 20, 50), flow(1, 80, 50));
        let gained = gain::<Balia>(&slow, &[fast]);
        assert!((gained - 0.04 * 2.5 * 1.6).abs() < 1e-9, "{gained}");
        assert_eq!(Balia::remaining(&Family { own: &slow, others: &[fast] }), 0.25);
        assert_eq!(Balia::remaining(&Family { own: &fast, others: &[slow] }), 0.5);
    }
}
