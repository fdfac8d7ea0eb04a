//! The observations of a client, and the bytes that its server sent.

use super::arrivals::Arrivals;
use crate::chaos::event::Line;

/// The times that were observed.
#[derive(Clone, Debug, Default)]
pub(super) struct Observed {
    pub(super) requests: Arrivals,
    pub(super) download: Arrivals,
    pub(super) datagrams: Arrivals,
    /// Acknowledgements of what went over each link, of the connection that asks.
    acknowledged: [Arrivals; 2],
    /// Bytes of the download.
    pub(super) delivered: u64,
    /// Requests that ended without an answer.
    pub(super) failures: u64,
}

impl Observed {
    /// The times at which the peer acknowledged what went over `line`.
    pub(super) const fn acknowledged_over(&self, line: Line) -> &Arrivals {
        &self.acknowledged[Self::index(line)]
    }

    /// The same, to add to them.
    pub(super) const fn acknowledged_over_mut(&mut self, line: Line) -> &mut Arrivals {
        &mut self.acknowledged[Self::index(line)]
    }

    const fn index(line: Line) -> usize {
        match line {
            Line::Wifi => 0,
            Line::Cell => 1,
        }
    }

    /// Returns true if each load had an answer.
    pub(super) fn has_begun(&self) -> bool {
        let loads = [&self.requests, &self.download, &self.datagrams];
        loads.iter().all(|arrivals| !arrivals.is_empty())
    }
}

/// The account of both ends of a trial.
#[derive(Clone, Debug)]
pub(super) struct Account {
    /// The observations of the client.
    pub(super) observed: Observed,
    /// Bytes that the server sent for the download.
    pub(super) sent: u64,
}
