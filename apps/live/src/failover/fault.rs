//! Faults of links.

use crate::chaos::event::{Change, Line, Step};
use hvq_lab::names::by_name;
use serde::Serialize;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The time until a link is mended.
const LASTS: Duration = Duration::from_millis(2_000);
/// Between the faults of both links.
const APART: Duration = Duration::from_millis(500);

/// A fault that befalls a link, and how it ends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkFault {
    /// The link goes down for two seconds.
    Down,
    /// Nothing arrives in either direction for two seconds, and nobody is told.
    Silent,
    /// Nothing of the near end arrives for two seconds.
    Upwards,
    /// Nothing of the far end arrives for two seconds.
    Downwards,
    /// A hundredth of the rate is left for two seconds.
    Slow,
    /// The near end gets another address in place of its own.
    Renumbered,
    /// The link goes down, the other half a second later, and the first comes up after another half.
    Both,
}

impl LinkFault {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Down, Self::Silent, Self::Upwards, Self::Downwards, Self::Slow, Self::Renumbered, Self::Both];

    /// The name that [`FromStr`] takes.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Down => "down",
            Self::Silent => "silent",
            Self::Upwards => "upwards",
            Self::Downwards => "downwards",
            Self::Slow => "slow",
            Self::Renumbered => "renumbered",
            Self::Both => "both",
        }
    }

    /// The head of its column.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Down => "link down",
            Self::Silent => "silent hole",
            Self::Upwards => "hole upwards",
            Self::Downwards => "hole downwards",
            Self::Slow => "slow death",
            Self::Renumbered => "address change",
            Self::Both => "both within a second",
        }
    }

    /// The longest gap that meets the goal: 200 ms, which is more than three round trips of the link that is left; 500 ms for
    /// a link that gets slow. The time in which no link works comes on top.
    pub const fn goal(self) -> Duration {
        match self {
            Self::Slow => Duration::from_millis(500),
            Self::Both => Duration::from_millis(700),
            Self::Down | Self::Silent | Self::Upwards | Self::Downwards | Self::Renumbered => {
                Duration::from_millis(200)
            }
        }
    }

    /// The steps, in order, if `line` is hit first.
    pub(super) fn steps(self, line: Line) -> Vec<Step> {
        let other = if line == Line::Wifi { Line::Cell } else { Line::Wifi };
        let step = |at, line, change| Step { at, line, change };
        let begin = Duration::ZERO;
        match self {
            Self::Down => vec![step(begin, line, Change::Down), step(LASTS, line, Change::Up)],
            Self::Silent => vec![
                step(begin, line, Change::DropUpwards),
                step(begin, line, Change::DropDownwards),
                step(LASTS, line, Change::Pass),
            ],
            Self::Upwards => vec![step(begin, line, Change::DropUpwards), step(LASTS, line, Change::Pass)],
            Self::Downwards => {
                vec![step(begin, line, Change::DropDownwards), step(LASTS, line, Change::Pass)]
            }
            Self::Slow => vec![step(begin, line, Change::Slow), step(LASTS, line, Change::Fast)],
            Self::Renumbered => vec![step(begin, line, Change::Renumber)],
            Self::Both => vec![
                step(begin, line, Change::Down),
                step(APART, other, Change::Down),
                step(APART * 2, line, Change::Up),
            ],
        }
    }

    /// Returns true if the link that was hit first is mended, which can be seen.
    pub const fn is_mended(self) -> bool {
        self.mended_by().is_some()
    }

    /// The index of the step that mends the link that was hit first; `None` where that cannot be seen.
    pub(super) const fn mended_by(self) -> Option<usize> {
        match self {
            Self::Down | Self::Upwards | Self::Downwards => Some(1),
            Self::Silent | Self::Both => Some(2),
            Self::Slow | Self::Renumbered => None,
        }
    }
}

impl fmt::Display for LinkFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for LinkFault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        by_name(text, "fault", &Self::ALL, Self::name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_asked_for_by_name_and_the_step_that_mends_is_the_last_of_the_link_that_was_hit() {
        for fault in LinkFault::ALL {
            assert_eq!(fault.name().parse(), Ok(fault));
            let steps = fault.steps(Line::Cell);
            assert!(steps.is_sorted_by_key(|step| step.at) && steps[0].line == Line::Cell);
            if let Some(index) = fault.mended_by() {
                assert_eq!(index, steps.len() - 1);
                assert!(matches!(steps[index].change, Change::Up | Change::Pass), "{fault}");
            }
        }
        assert!("moon".parse::<LinkFault>().unwrap_err().contains("silent"));
    }
}
