//! Copies of what is critical: a loss on one path then costs nothing but the copy.

use std::time::Duration;

use super::Hvc;
use super::tuning::CRITICAL;
use crate::{
    Content, Expectation, Flights, History, Item, Observation, PathSet, PathView, Placement, Scheduler,
    proven, usable,
};

/// [`Hvc`], with a copy of each critical frame on a second path: control frames, and datagrams and messages of urgency 0 that
/// fit into one frame.
///
/// The copy goes where it arrives first among the other paths that are known to reach the peer and have room. It is worth
/// its bytes where losses or delays of single packets hurt, as for commands to a machine; bulk is never copied.
#[derive(Clone, Copy, Debug, Default)]
pub struct Duplicating {
    rule: Hvc,
}

impl Scheduler for Duplicating {
    fn name(&self) -> &'static str {
        "hvc-duplicate"
    }

    fn place(&mut self, item: &Item, paths: &[PathView]) -> Placement {
        let placement = self.rule.place(item, paths);
        let Placement::On { path, bytes } = placement else { return placement };
        if bytes < item.bytes || !is_critical(item) {
            return placement;
        }
        let others = proven(paths, usable(paths)).iter().filter(|&index| paths[index].id != path);
        let open = others.filter(|&index| paths[index].send_allowance >= item.bytes);
        let Some(copy) = open.min_by_key(|&index| paths[index].delay) else { return placement };
        let own = (0..paths.len()).filter(|&index| paths[index].id == path);
        Placement::OnEach(own.chain([copy]).collect::<PathSet>())
    }

    fn first(&mut self, flights: &Flights, paths: &[PathView]) -> usize {
        self.rule.first(flights, paths)
    }

    fn repeats(&mut self, item: &Item, path: &PathView) -> usize {
        self.rule.repeats(item, path)
    }

    fn copies(&mut self, item: &Item, paths: &[PathView], expected: Duration) -> bool {
        self.rule.copies(item, paths, expected)
    }

    fn expected(&self) -> Option<Expectation> {
        self.rule.expected()
    }

    fn observe(&mut self, observation: &Observation) {
        self.rule.observe(observation);
    }
}

fn is_critical(item: &Item) -> bool {
    let whole = item.message.is_some_and(|message| message.remaining <= item.bytes);
    item.history == History::Fresh
        && match item.content {
            Content::Control | Content::Handshake => true,
            Content::Datagram => item.priority.urgency == CRITICAL,
            Content::Stream { .. } => item.priority.urgency == CRITICAL && whole,
            Content::Acknowledgement { .. } => false,
        }
}
