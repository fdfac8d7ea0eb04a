//! The report of an emulator, and a confidence on its figures.

use std::fmt;
use std::time::Duration;

use crate::{Count, Direction, LinkStatistics, Summary, Times};

use super::Crossing;

/// 99 % of packets are not later than this in a run that is to be trusted. The shortest delay of interest, one way on
/// URLLC, is 2.5 ms.
const LATE: Duration = Duration::from_millis(1);
/// No packet is later than this: one such packet looks like a pause of the channel.
const MUCH_TOO_LATE: Duration = Duration::from_millis(20);

/// The confidence on the figures of a run: they are those of the channel, or of a machine that was busy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Confidence {
    /// The figures are the channel's.
    Trusted,
    /// The figures are not the channel's, for these reasons.
    NotTrusted(Vec<String>),
}

impl fmt::Display for Confidence {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Trusted => write!(formatter, "to be trusted"),
            Self::NotTrusted(reasons) => write!(formatter, "NOT to be trusted: {}", reasons.join("; ")),
        }
    }
}

/// The statistics of one channel.
#[derive(Clone, Debug)]
pub struct ChannelReport {
    /// Its name.
    pub name: String,
    /// From the near namespace to the far one.
    pub up: LinkStatistics,
    /// Back.
    pub down: LinkStatistics,
}

/// The report of an emulator.
#[derive(Clone, Debug)]
pub struct Report {
    /// The time for which it ran.
    pub elapsed: Duration,
    /// The statistics of each channel.
    pub channels: Vec<ChannelReport>,
    /// The delay of writing packets behind the times that the channels said.
    pub lateness: Summary,
    /// The packets that the kernel did not take.
    pub unsent: Count,
    /// Packets that the log misses.
    pub unlogged: u64,
    /// Packets that the kernel dropped because they were not read in time; `None` if nobody asked
    /// ([`crate::tun::program::dropped_by`]).
    pub unread: Option<u64>,
}

/// The emulator's own part of the counters.
#[derive(Debug, Default)]
pub(super) struct EmulatorCounters {
    pub(super) lateness: Times,
    pub(super) unsent: Count,
    pub(super) unlogged: u64,
}

impl Report {
    pub(super) fn new(elapsed: Duration, crossings: &[Crossing], counters: &EmulatorCounters) -> Self {
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

    /// Returns the confidence on its figures: to be trusted, or not.
    pub fn confidence(&self) -> Confidence {
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
        if reasons.is_empty() { Confidence::Trusted } else { Confidence::NotTrusted(reasons) }
    }
}
