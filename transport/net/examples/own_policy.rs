//! A policy of one's own: everything on the path of smallest one-way delay that has room.
//!
//! `cargo run -p hvq --example own_policy`

use hvq::scheduler::{Content, Item, PathView, Placement, Scheduler, contract, usable};
use hvq::{PathId, TransportConfig};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

/// The policy. It has no state, no clock and no randomness.
#[derive(Clone, Copy, Debug)]
struct Quickest;

impl Scheduler for Quickest {
    fn name(&self) -> &'static str {
        "quickest"
    }

    fn place(&mut self, item: &Item, paths: &[PathView]) -> Placement {
        let usable = usable(paths);
        // Acknowledgements are not congestion controlled (RFC 9002 §7).
        let exempt = matches!(item.content, Content::Acknowledgement { .. });
        let free = usable.iter().map(|index| &paths[index]).filter(|path| exempt || path.can_send());
        match free.min_by_key(|path| path.delay) {
            Some(path) => Placement::On { path: path.id, bytes: item.bytes },
            None => Placement::Wait,
        }
    }
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    // The contract of all policies, on random situations: it panics with the clause that an answer breaks.
    for seed in 0..100 {
        contract::check(&|| Box::new(Quickest), seed);
    }

    let path = |id, delay| PathView {
        send_allowance: 10_000,
        delay: Duration::from_millis(delay),
        ..PathView::new(PathId(id))
    };
    let placement = Quickest.place(&Item::new(Content::Stream { id: 0 }, 1000), &[path(0, 20), path(1, 3)]);
    println!("with 20 ms and 3 ms: {placement:?}");

    // What connections are made with: a factory, called once for each connection.
    let _transport = TransportConfig::new(Arc::new(|| Box::new(Quickest)));
    let quick = Placement::On { path: PathId(1), bytes: 1000 };
    if placement == quick { Ok(()) } else { Err("the slow path was chosen".into()) }
}
