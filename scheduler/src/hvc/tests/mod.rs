//! The HVC rule on drawn channels: eMBB (100 Mbit/s, 20 ms one way) is path 0, URLLC (2 Mbit/s, 2.5 ms) is path 1.

mod acknowledgements;
mod bulk;
mod dchannel;
mod deadline_pacing;
mod expectation;
mod first_path;
mod hints;
mod messages;
mod path_states;
mod price;
mod priorities;
mod sharing;
mod spare_capacity;

use super::*;
use crate::{Bandwidth, Message, PathId, Priority, Rtt};

const EMBB: PathId = PathId(0);
const URLLC: PathId = PathId(1);
const ROOM: usize = 1 << 20;

/// Bytes of a packet to a connection ID of 8 bytes beside its frames.
const PACKET: usize = 29;
/// Bytes of the headers of IPv6 and UDP.
const LOWER: usize = 48;
/// Bytes of the header of a STREAM frame.
const FRAME: usize = 7;

fn embb() -> PathView {
    PathView {
        send_allowance: ROOM,
        window: ROOM,
        delay: Duration::from_millis(20),
        rate: Some(Bandwidth::from_mbit(100)),
        rtt: Rtt { smoothed: Duration::from_millis(40), ..Rtt::ZERO },
        overhead: PACKET,
        lower_headers: LOWER,
        ..PathView::new(EMBB)
    }
}

fn urllc() -> PathView {
    PathView {
        send_allowance: ROOM,
        window: ROOM,
        delay: Duration::from_micros(2500),
        rate: Some(Bandwidth::from_mbit(2)),
        rtt: Rtt { smoothed: Duration::from_millis(5), ..Rtt::ZERO },
        overhead: PACKET,
        lower_headers: LOWER,
        ..PathView::new(URLLC)
    }
}

fn full(path: PathView, next_send: u64) -> PathView {
    PathView { send_allowance: 0, in_flight: path.window, next_send: milliseconds(next_send), ..path }
}

fn queued(path: PathView, backlog: usize) -> PathView {
    PathView { backlog, in_flight: backlog, ..path }
}

fn milliseconds(number: u64) -> Duration {
    Duration::from_millis(number)
}

fn data(bytes: usize) -> Item {
    Item { header: FRAME, ..Item::new(Content::Stream { id: 0 }, bytes) }
}

fn part_of(remaining: usize) -> Item {
    Item { message: Some(Message { remaining, deadline: None }), ..data(remaining.min(1200)) }
}

fn on(path: PathId, bytes: usize) -> Placement {
    Placement::On { path, bytes }
}

fn place(item: &Item, paths: &[PathView]) -> Placement {
    Hvc::default().place(item, paths)
}
