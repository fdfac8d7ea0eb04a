//! Two halves of pages, stretches and seeds: parameters are chosen on one and reported on the other.

use crate::pages::{Page, builtin};
use serde::Deserialize;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

/// A half of the pages compiled in, of the stretches of traces and of the seeds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Deserialize)]
#[serde(try_from = "String")]
pub enum Half {
    /// The half on which parameters are chosen.
    Training,
    /// The half on which nothing was tried before.
    #[default]
    HeldOut,
}

/// Runs of the halves have no seed in common, unless there are more repetitions than this.
const SEEDS: u64 = 1_000_000;

impl Half {
    /// Its pages.
    pub fn pages(self) -> Vec<Page> {
        match self {
            Self::Training => builtin::pages(),
            Self::HeldOut => builtin::held_out(),
        }
    }

    /// The factor on the times that its servers take. The captures of the held-out pages were made over slower networks, and
    /// what their servers seem to take holds some of that: without a network its pages would load in 1.2 s on average, the
    /// others in 0.4 s, which is about what is left of the papers' load times without round trips (NSDI 2023, Table 6:
    /// 0.5 s). One factor makes them alike.
    pub const fn wait_scale(self) -> f64 {
        match self {
            Self::Training => 1.0,
            Self::HeldOut => 0.3,
        }
    }

    /// Returns the times in a trace of `period` seconds at which runs of this half begin. They end within it too: the
    /// last seconds of each half are left out.
    pub const fn beginnings(self, period: u64) -> Range<u64> {
        match self {
            Self::Training => 0..period * 7 / 15,
            Self::HeldOut => period / 2..period * 29 / 30,
        }
    }

    /// The seed of this half for seed number `seed`.
    pub const fn seed(self, seed: u64) -> u64 {
        match self {
            Self::Training => seed,
            Self::HeldOut => seed.wrapping_add(SEEDS),
        }
    }
}

impl fmt::Display for Half {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Training => "training",
            Self::HeldOut => "held-out",
        })
    }
}

impl FromStr for Half {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "training" => Ok(Self::Training),
            "held-out" => Ok(Self::HeldOut),
            _ => Err(format!("{text:?} is no half: choose training or held-out")),
        }
    }
}

impl TryFrom<String> for Half {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_halves_have_nothing_in_common() {
        let ids = |half: Half| half.pages().into_iter().map(|page| page.id).collect::<BTreeSet<_>>();
        let (training, held_out) = (ids(Half::Training), ids(Half::HeldOut));
        assert!(training.is_disjoint(&held_out) && training.len() == held_out.len());
        let (first, second) = (Half::Training.beginnings(600), Half::HeldOut.beginnings(600));
        assert_eq!((first, second), (0..280, 300..580));
        assert_ne!(Half::Training.seed(1), Half::HeldOut.seed(1));
    }

    #[test]
    fn a_half_is_written_as_it_is_read() {
        for half in [Half::Training, Half::HeldOut] {
            assert_eq!(half.to_string().parse(), Ok(half));
        }
        assert!("both".parse::<Half>().is_err());
    }
}
