//! Events of interfaces: changes of channels, at fixed times.

use hvq_lab::names::by_name;
use serde::Serialize;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// One of the two channels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Line {
    Wifi,
    Cell,
}

/// A change of a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Change {
    /// The near interface goes down.
    Down,
    /// It comes up again.
    Up,
    /// The near interface, and with it the far one, is removed.
    Remove,
    /// Both are made again with their addresses.
    Make,
    /// The near interface gets another address in place of its own.
    Renumber,
    /// Nothing of the near end arrives.
    DropUpwards,
    /// Nothing of the far end arrives.
    DropDownwards,
    /// Both directions pass again.
    Pass,
    /// A hundredth of the rate is left.
    Slow,
    /// The rate is limited as it is without a fault.
    Fast,
}

/// A change at a time since the beginning of the event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Step {
    pub(crate) at: Duration,
    pub(crate) line: Line,
    pub(crate) change: Change,
}

/// An event that befalls a connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// One link goes down for two seconds and comes up again, and later the other.
    DownUp,
    /// One interface is removed and made again two seconds later, and later the other.
    Removed,
    /// One interface gets another address.
    Renumbered,
    /// Packets of the near end are dropped on one channel for two seconds, and later on the other.
    Upwards,
    /// Packets of the far end are dropped on one channel for two seconds, and later on the other.
    Downwards,
    /// Both links go down; one comes up after 1.5 s, the other two seconds later.
    Both,
    /// One interface gets another address; two seconds later the other link goes down for two seconds.
    RenumberedThenDown,
}

impl Event {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::DownUp,
        Self::Removed,
        Self::Renumbered,
        Self::Upwards,
        Self::Downwards,
        Self::Both,
        Self::RenumberedThenDown,
    ];

    /// The name that [`FromStr`] takes.
    pub const fn name(self) -> &'static str {
        match self {
            Self::DownUp => "down-up",
            Self::Removed => "removed",
            Self::Renumbered => "renumbered",
            Self::Upwards => "upwards",
            Self::Downwards => "downwards",
            Self::Both => "both",
            Self::RenumberedThenDown => "renumbered-then-down",
        }
    }

    /// The head of its column.
    pub const fn title(self) -> &'static str {
        match self {
            Self::DownUp => "link down",
            Self::Removed => "interface removed",
            Self::Renumbered => "renumbered",
            Self::Upwards => "drop upwards",
            Self::Downwards => "drop downwards",
            Self::Both => "both down",
            Self::RenumberedThenDown => "renumbered, then the other down",
        }
    }

    /// The time during which no path can work.
    pub(crate) const fn dark(self) -> Duration {
        match self {
            Self::Both => Duration::from_millis(1_500),
            _ => Duration::ZERO,
        }
    }

    /// Returns the steps of the event, in order. The channel that is hit first is the first path.
    pub(crate) fn steps(self) -> Vec<Step> {
        let step = |at, line, change| Step { at: Duration::from_millis(at), line, change };
        use {Change::*, Line::*};
        // Whichever channel a policy prefers is hit.
        let each = |change, back| {
            vec![
                step(0, Wifi, change),
                step(2_000, Wifi, back),
                step(4_000, Cell, change),
                step(6_000, Cell, back),
            ]
        };
        match self {
            Self::DownUp => each(Down, Up),
            Self::Removed => each(Remove, Make),
            Self::Renumbered => vec![step(0, Wifi, Renumber)],
            Self::Upwards => each(DropUpwards, Pass),
            Self::Downwards => each(DropDownwards, Pass),
            Self::Both => {
                vec![step(0, Wifi, Down), step(0, Cell, Down), step(1_500, Wifi, Up), step(3_500, Cell, Up)]
            }
            Self::RenumberedThenDown => {
                vec![step(0, Wifi, Renumber), step(2_000, Cell, Down), step(4_000, Cell, Up)]
            }
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Event {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        by_name(text, "event", &Self::ALL, Self::name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_asked_for_by_their_names_and_their_steps_are_in_order() {
        for event in Event::ALL {
            assert_eq!(event.name().parse(), Ok(event));
            assert!(event.steps().is_sorted_by_key(|step| step.at) && !event.steps().is_empty());
        }
        assert!("moon".parse::<Event>().unwrap_err().contains("down-up"));
    }
}
