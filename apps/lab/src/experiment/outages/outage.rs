//! Outages of a channel: when it is dark, and which way.

use crate::experiment::pages::Reach;
use hvq_emulation::{ChannelSpec, Direction, Interval};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// The family that a cell's outages belong to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OutageKind {
    /// One channel is dark from the start of the world on, so that no handshake crosses it.
    Start,
    /// One channel goes dark during the load.
    Middle,
    /// One direction of one channel is dark.
    OneWay,
    /// Both channels go dark at the same time, and come back one after the other.
    Both,
    /// One channel goes dark, and the other about when it comes back.
    Turns,
    /// One or both channels come and go.
    Flapping,
}

impl OutageKind {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Start, Self::Middle, Self::OneWay, Self::Both, Self::Turns, Self::Flapping];

    /// The name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Start => "at the start",
            Self::Middle => "during the load",
            Self::OneWay => "one direction",
            Self::Both => "both at once",
            Self::Turns => "one after the other",
            Self::Flapping => "flapping",
        }
    }
}

/// The times at which a channel is dark, since the start of the world.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pattern {
    /// Dark once.
    Once(Interval),
    /// Dark again and again.
    Flapping {
        /// The first and the last time.
        during: Interval,
        /// From one outage to the next.
        period: Duration,
        /// The length of each outage.
        dark: Duration,
    },
}

/// An outage of one channel, or of both.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outage {
    /// The channels that are dark.
    pub channels: Reach,
    /// The direction that is dark; `None` for both.
    pub way: Option<Direction>,
    /// The times of the outage.
    pub pattern: Pattern,
}

impl Outage {
    /// `channels` dark both ways, once: `from` and `until` are since the start of the world.
    pub const fn once(channels: Reach, from: Duration, until: Duration) -> Self {
        Self { channels, way: None, pattern: Pattern::Once(Interval { from, until }) }
    }

    /// Adds this outage to the specifications of both channels.
    pub(super) fn apply(&self, embb: &mut ChannelSpec, urllc: &mut ChannelSpec) {
        for (channel, spec) in [(Reach::Embb, embb), (Reach::Urllc, urllc)] {
            if self.channels != channel && self.channels != Reach::Both {
                continue;
            }
            for (way, link) in [(Direction::Up, &mut spec.up), (Direction::Down, &mut spec.down)] {
                if self.way.is_none_or(|dark| dark == way) {
                    link.blackouts.extend(self.pattern.intervals());
                }
            }
        }
    }

    /// A line for people, with times since the beginning of the load, `lead` after the start of the world.
    pub fn describe(&self, lead: Duration) -> String {
        let channels = match self.channels {
            Reach::Both => "both",
            Reach::Embb => "eMBB",
            Reach::Urllc => "URLLC",
        };
        let way = match self.way {
            None => "",
            Some(Direction::Up) => " upwards",
            Some(Direction::Down) => " downwards",
        };
        let since = |at: Duration| format!("{:.3}", at.as_secs_f64() - lead.as_secs_f64());
        let range = |during: Interval| format!("{} to {} s", since(during.from), since(during.until));
        match self.pattern {
            Pattern::Once(during) => format!("{channels} dark{way} from {}", range(during)),
            Pattern::Flapping { during, period, dark } => format!(
                "{channels} dark{way} for {} of every {} ms from {}",
                dark.as_millis(),
                period.as_millis(),
                range(during)
            ),
        }
    }
}

impl Pattern {
    /// Each time that it is dark.
    fn intervals(self) -> Vec<Interval> {
        match self {
            Self::Once(during) => vec![during],
            Self::Flapping { during, period, dark } => {
                let begins = std::iter::successors(Some(during.from), |from| Some(*from + period));
                let begins = begins.take_while(|from| *from < during.until);
                begins.map(|from| Interval { from, until: from + dark }).collect()
            }
        }
    }
}

impl fmt::Display for OutageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
