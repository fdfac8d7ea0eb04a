//! OLIA, opportunistic linked increases (Khalili et al., CoNEXT 2012; draft-khalili-mptcp-congestion-control): windows are
//! moved from the paths that have the largest to the paths that are the best.

use super::coupled::{Coupled, Family, Flow, Rule};
use crate::PathId;
use smallvec::SmallVec;

/// Windows and qualities this close count as equal.
const EQUAL: f64 = 1e-9;

/// The rule of the draft.
#[derive(Clone, Copy, Debug)]
pub struct Olia;

/// The controller of the draft.
pub type OliaController = Coupled<Olia>;

impl Rule for Olia {
    const NAME: &'static str = "olia";

    /// window/rtt² over (Σ window/rtt)², plus α over the window (draft §3).
    fn increase(family: &Family<'_>) -> f64 {
        let own = family.own;
        own.pull() / family.total_rate().powi(2) + alpha(family) / own.window.max(1.0)
    }
}

/// The paths for which `measure` is largest.
fn largest(family: &Family<'_>, measure: impl Fn(&Flow) -> f64) -> SmallVec<[PathId; 4]> {
    let most = family.all().map(&measure).fold(0.0, f64::max);
    family.all().filter(|flow| measure(flow) >= most * (1.0 - EQUAL)).map(|flow| flow.path).collect()
}

/// α of the draft, §3: positive for the best paths whose windows are not the largest, negative for those whose windows
/// are, if there are any of the former.
fn alpha(family: &Family<'_>) -> f64 {
    let widest = largest(family, |flow| flow.window);
    let mut collected = largest(family, Flow::quality);
    collected.retain(|path| !widest.contains(path));
    let paths = family.all().count() as f64;
    if collected.is_empty() {
        0.0
    } else if collected.contains(&family.own.path) {
        1.0 / paths / collected.len() as f64
    } else if widest.contains(&family.own.path) {
        -1.0 / paths / widest.len() as f64
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::super::coupled::tests::{flow, gain};
    use super::*;

    #[test]
    fn equal_paths_share_one_increase() {
        let (own, other) = (flow(0, 100, 50), flow(1, 100, 50));
        assert!((gain::<Olia>(&own, &[other]) - 0.25).abs() < 1e-9);
        assert!((gain::<Olia>(&own, &[]) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn window_moves_to_the_best_path() {
        let wide = flow(0, 100, 50);
        let best = Flow { between_losses: 10_000_000, ..flow(1, 10, 50) };
        let (of_wide, of_best) = (gain::<Olia>(&wide, &[best]), gain::<Olia>(&best, &[wide]));
        // window/rtt² over the square of the sum of the rates is (100/110)² and (10/110)² datagrams; α is ∓ 1/2.
        assert!((of_wide - (0.8264 - 0.5)).abs() < 1e-3, "{of_wide}");
        assert!((of_best - (0.0083 + 0.5)).abs() < 1e-3, "{of_best}");
    }

    #[test]
    fn a_path_that_is_best_and_widest_leaves_the_others_alone() {
        let best = Flow { between_losses: 10_000_000, ..flow(0, 100, 50) };
        let other = flow(1, 10, 50);
        assert_eq!(alpha(&Family { own: &best, others: &[other] }), 0.0);
        assert_eq!(alpha(&Family { own: &other, others: &[best] }), 0.0);
    }
}
