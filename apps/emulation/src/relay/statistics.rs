//! Counters of a relay.

use crate::channel::{Channel, Direction};
use crate::series::Series;
use crate::statistics::{Count, LinkStatistics, Summary, Times};

/// The counters of a relay.
#[derive(Clone, Debug)]
pub struct RelayStatistics {
    /// The link from clients to the server.
    pub up: LinkStatistics,
    /// The link from the server to clients.
    pub down: LinkStatistics,
    /// Bytes over time, up, if asked for.
    pub up_series: Option<Series>,
    /// Bytes over time, down, if asked for.
    pub down_series: Option<Series>,
    /// The delay of departures behind the times that the channel said.
    pub lateness: Summary,
    /// The number of clients.
    pub clients: usize,
    /// Datagrams of clients beyond the limit of clients, which were dropped.
    pub refused: Count,
    /// Datagrams that left the channel and were not sent: the socket was full or its client forgotten.
    pub unsent: Count,
}

impl RelayStatistics {
    pub(super) fn new<T: Clone>(channel: &Channel<T>, counters: &RelayCounters) -> Self {
        let (up, down) = (channel.link(Direction::Up), channel.link(Direction::Down));
        Self {
            up: up.statistics().clone(),
            down: down.statistics().clone(),
            up_series: up.series().cloned(),
            down_series: down.series().cloned(),
            lateness: counters.lateness.summary(),
            clients: counters.clients,
            refused: counters.refused,
            unsent: counters.unsent,
        }
    }
}

/// The relay's own part of the counters.
#[derive(Debug)]
pub(super) struct RelayCounters {
    pub(super) lateness: Times,
    pub(super) clients: usize,
    pub(super) refused: Count,
    pub(super) unsent: Count,
}

impl RelayCounters {
    pub(super) fn new() -> Self {
        Self { lateness: Times::new(), clients: 0, refused: Count::default(), unsent: Count::default() }
    }
}
