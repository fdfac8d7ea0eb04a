//! Blocking estimation (Ferlin, Alay, Mehani and Boreli, IFIP Networking 2016).

use std::time::Duration;

use crate::min_rtt::fastest_unless;
use crate::{Item, PathView, Placement, Scheduler};

/// λ in hundredths: where it starts, and how far it may go.
const LEAST: u32 = 100;
const MOST: u32 = 130;
/// The steps by which a round with, or without, a blocked window moves λ.
const RAISE: u32 = 4;
const RELAX: u32 = 1;

/// BLEST: the fastest path if it has room; otherwise the fastest with room, unless its packet is expected to block the
/// send window for the fast path while it is under way.
///
/// The send window is the connection's flow control (RFC 9000 §4.1): what is in flight and what it still admits. The
/// correction λ grows with rounds in which it was exhausted. Acknowledgements return on the path they acknowledge.
#[derive(Clone, Copy, Debug)]
pub struct Blest {
    lambda: u32,
    round: Round,
}

/// A round trip of the slow path.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    ends: Duration,
    window: Window,
}

/// The state of flow control during a round.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Window {
    #[default]
    Open,
    Blocked,
}

impl Default for Blest {
    fn default() -> Self {
        Self { lambda: LEAST, round: Round::default() }
    }
}

impl Blest {
    /// Moves λ on at the end of a round.
    fn adapt(&mut self, item: &Item, slow: &PathView) {
        if item.now >= self.round.ends {
            self.lambda = match self.round.window {
                Window::Blocked => (self.lambda + RAISE).min(MOST),
                Window::Open => self.lambda.saturating_sub(RELAX).max(LEAST),
            };
            let ends = item.now.saturating_add(slow.rtt.smoothed);
            self.round = Round { ends, window: Window::Open };
        }
        if item.credit < slow.datagram_size as u64 {
            self.round.window = Window::Blocked;
        }
    }

    /// Returns true if a packet on `slow` would block what `fast` can send until that packet is acknowledged.
    fn blocks(&self, item: &Item, fast: &PathView, slow: &PathView, in_flight: u128) -> bool {
        let fast_rtt = fast.rtt.smoothed.as_nanos().max(1);
        // Round trips of the fast path in one of the slow path, in hundredths.
        let rounds = (slow.rtt.smoothed.as_nanos().saturating_mul(100) / fast_rtt).max(100);
        let growth = (fast.datagram_size as u128).saturating_mul(rounds - 100) / 200;
        let sent = (fast.window as u128).saturating_add(growth).saturating_mul(rounds) / 100;
        let window = in_flight.saturating_add(item.credit.into());
        let on_slow = (slow.in_flight as u128).saturating_add(slow.datagram_size as u128);
        sent.saturating_mul(self.lambda.into()) / 100 > window.saturating_sub(on_slow)
    }
}

impl Scheduler for Blest {
    fn name(&self) -> &'static str {
        "blest"
    }

    fn place(&mut self, item: &Item, paths: &[PathView]) -> Placement {
        fastest_unless(item, paths, |fast, slow, usable| {
            self.adapt(item, slow);
            let each = usable.iter().map(|index| paths[index].in_flight as u128);
            self.blocks(item, fast, slow, each.fold(0, u128::saturating_add))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Content, PathId, Rtt};

    fn path(id: u32, rtt: u64, send_allowance: usize) -> PathView {
        let rtt = Rtt { smoothed: Duration::from_millis(rtt), ..Rtt::ZERO };
        PathView { send_allowance, rtt, window: 12_000, ..PathView::new(PathId(id)) }
    }

    fn item(credit: u64, now: u64) -> Item {
        let now = Duration::from_millis(now);
        Item { credit, now, ..Item::new(Content::Stream { id: 0 }, 1000) }
    }

    #[test]
    fn the_slow_path_waits_only_where_it_would_block_the_fast_one() {
        let paths = [path(0, 40, 9000), PathView { in_flight: 12_000, ..path(1, 5, 0) }];
        // In 40 ms the fast path sends (12000 + 1200 · 3.5) · 8 = 129,600 bytes.
        let sent = Placement::On { path: PathId(0), bytes: 1000 };
        assert_eq!(Blest::default().place(&item(118_800, 0), &paths), sent);
        assert_eq!(Blest::default().place(&item(118_700, 0), &paths), Placement::Wait);
        assert_eq!(Blest::default().place(&item(1 << 40, 0), &[path(0, 40, 9000), path(1, 5, 9000)]), {
            Placement::On { path: PathId(1), bytes: 1000 }
        });
    }

    #[test]
    fn rounds_with_a_blocked_window_raise_the_correction() {
        let paths = [path(0, 40, 9000), PathView { in_flight: 12_000, ..path(1, 5, 0) }];
        let mut policy = Blest::default();
        for round in 0..20 {
            policy.place(&item(100, round * 41), &paths);
        }
        assert_eq!(policy.lambda, MOST);
        for round in 20..60 {
            policy.place(&item(1 << 30, round * 41), &paths);
        }
        assert_eq!(policy.lambda, LEAST);
    }
}
