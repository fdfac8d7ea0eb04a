//! What an emulator did, and whether to believe it.

use std::fmt;
use std::time::Duration;

use hvq_channel::{Count, Direction, LinkStatistics, Summary, Times};

use super::Crossing;

/// 99 % of packets are not later than this in a run that is to be trusted. The shortest delay of interest, one way on
/// URLLC, is 2.5 ms.
const LATE: Duration = Duration::from_millis(1);
/// No packet is later than this: one such packet looks like a pause of the channel.
const MUCH_TOO_LATE: Duration = Duration::from_millis(20);

/// Whether the figures of a run are those of the channel, or of a machine that was busy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// They are the channel's.
    Trusted,
    /// They are not, for these reasons.
    NotTrusted(Vec<String>),
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Trusted => write!(formatter, "to be trusted"),
            Self::NotTrusted(reasons) => write!(formatter, "NOT to be trusted: {}", reasons.join("; ")),
        }
    }
}

/// What one channel did.
#[derive(Clone, Debug)]
pub struct ChannelReport {
    /// Its name.
    pub name: String,
    /// From the near namespace to the far one.
    pub up: LinkStatistics,
    /// Back.
    pub down: LinkStatistics,
}

/// What an emulator did.
#[derive(Clone, Debug)]
pub struct Report {
    /// For how long it ran.
    pub elapsed: Duration,
    /// What each channel did.
    pub channels: Vec<ChannelReport>,
    /// How much later than the channels said packets were written.
    pub lateness: Summary,
    /// What the kernel did not take.
    pub unsent: Count,
    /// Packets that the log misses.
    pub unlogged: u64,
    /// Packets that the kernel dropped because they were not read in time; `None` if nobody asked
    /// ([`crate::program::dropped_by`]).
    pub unread: Option<u64>,
}

/// The emulator's own part of the counters.
#[derive(Debug)]
pub(super) struct Counters {
    pub(super) lateness: Times,
    pub(super) unsent: Count,
    pub(super) unlogged: u64,
}

impl Report {
    pub(super) fn new(elapsed: Duration, crossings: &[Crossing], counters: &Counters) -> Self {
        let channels = crossings.iter().flat_map(|crossing| {
            let up = crossing.network.statistics(Direction::Up);
            let down = crossing.network.statistics(Direction::Down);
            up.into_iter().zip(down).map(|((name, up), (_, down))| ChannelReport { name, up, down })
        });
        Self {
            elapsed,
            channels: channels.collect(),
            lateness: counters.lateness.summary(),
            unsent: counters.unsent,
            unlogged: counters.unlogged,
            unread: None,
        }
    }

    /// Whether to believe its figures.
    pub fn verdict(&self) -> Verdict {
        let late = |what: &str, time: Duration, most: Duration| {
            (time > most).then(|| {
                format!(
                    "{what} left {:.1} ms late (at most {} ms)",
                    time.as_secs_f64() * 1e3,
                    most.as_millis()
                )
            })
        };
        let lost = |count: u64, what: &str| (count > 0).then(|| format!("{count} packets {what}"));
        let reasons = [
            late("1 % of packets", self.lateness.p99, LATE),
            late("a packet", self.lateness.max, MUCH_TOO_LATE),
            lost(self.unread.unwrap_or(0), "were not read in time"),
            lost(self.unsent.packets, "were not taken by the kernel"),
        ];
        let reasons: Vec<String> = reasons.into_iter().flatten().collect();
        if reasons.is_empty() { Verdict::Trusted } else { Verdict::NotTrusted(reasons) }
    }
}
