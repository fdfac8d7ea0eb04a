//! Situations as a policy meets them: items in the proportions of a page load, on paths in all states.

use hvq_scheduler::{
    Bandwidth, Content, Hints, History, Item, Message, PathId, PathState, PathView, PerMille, Priority, Rtt,
};
use std::time::Duration;

/// Different situations of a workload; a power of two.
const SITUATIONS: usize = 1 << 10;
/// Bytes of a full frame.
const FRAME: usize = 1160;

/// Situations with one number of paths, always the same ones.
pub struct Workload {
    /// Paths in each situation.
    pub paths: usize,
    /// The items that are to be placed, each with its paths.
    pub situations: Vec<(Item, Vec<PathView>)>,
}

impl Workload {
    /// The workload for this number of paths.
    pub fn new(paths: usize) -> Self {
        let mut numbers = Numbers(0x6876_7100 + paths as u64);
        let situations = (0..SITUATIONS)
            .map(|_| {
                let views = (0..paths).map(|index| path(index, &mut numbers)).collect();
                (item(&mut numbers), views)
            })
            .collect();
        Self { paths, situations }
    }
}

/// A seeded sequence of numbers (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`, which is not zero.
    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// A time below `limit` microseconds.
    fn micros(&mut self, limit: u64) -> Duration {
        Duration::from_micros(self.below(limit))
    }

    fn is_one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }
}

/// Draws an item; of 100 items 70 are fresh pieces of streams, 10 pieces lost before, 10 acknowledgements, 5 datagrams,
/// 5 others.
fn item(numbers: &mut Numbers) -> Item {
    let stream = Content::Stream { id: 4 * numbers.below(6) };
    let mut item = match numbers.below(100) {
        0..70 => Item::new(stream, FRAME),
        70..80 => {
            let on = PathId(numbers.below(2) as u32);
            Item { history: History::Lost { on }, ..Item::new(stream, FRAME) }
        }
        80..90 => Item::new(Content::Acknowledgement { of: PathId(numbers.below(2) as u32) }, 40),
        90..95 => Item::new(Content::Datagram, 200),
        95..99 => Item::new(Content::Control, 12),
        _ => Item::new(Content::Handshake, 600),
    };
    if item.content.is_divisible() {
        item.priority = Priority { urgency: 1 + numbers.below(5) as u8, incremental: numbers.is_one_in(4) };
        if numbers.is_one_in(2) {
            let deadline = numbers.is_one_in(4).then(|| numbers.micros(80_000));
            item.message = Some(Message { remaining: FRAME + numbers.below(200_000) as usize, deadline });
        }
        if numbers.is_one_in(2) {
            item.head_of_line_delay = numbers.micros(40_000);
        }
    }
    item
}

/// Paths of even index are like eMBB (60 Mbit/s, 25 ms), the others like URLLC (2 Mbit/s, 2.5 ms), each somewhat
/// different and at another point of its congestion window.
fn path(index: usize, numbers: &mut Numbers) -> PathView {
    let is_wide = index.is_multiple_of(2);
    let (rate, delay, window) = if is_wide { (60, 25_000, 375_000) } else { (2, 2_500, 6_000) };
    let rate = Bandwidth::from_bits_per_second(rate * (900_000 + numbers.below(200_000)));
    let delay = Duration::from_micros(delay) + numbers.micros(delay / 5);
    let in_flight = if numbers.is_one_in(4) { window } else { numbers.below(window) };
    let room = window.saturating_sub(in_flight) as usize;
    let state = match numbers.below(40) {
        0 => PathState::Silent,
        1 => PathState::Backup,
        _ => PathState::Available,
    };
    let hints = match numbers.is_one_in(2) {
        true => Hints { rate: Some(rate), delay: Some(delay), ..Hints::NONE },
        false => Hints::NONE,
    };
    PathView {
        state,
        send_allowance: room,
        next_send: if room == 0 { numbers.micros(5_000) } else { Duration::ZERO },
        window: window as usize,
        in_flight: in_flight as usize,
        delay,
        rate: Some(rate),
        backlog: numbers.below(in_flight / 2 + 1) as usize,
        rtt: Rtt { latest: 2 * delay, smoothed: 2 * delay, variance: delay / 8, minimum: 2 * delay },
        loss: PerMille::new(numbers.below(10) as u16),
        hints,
        ..PathView::new(PathId(index as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mix_has_every_kind_of_item_and_is_the_same_every_time() {
        let (workload, again) = (Workload::new(8), Workload::new(8));
        assert!(workload.situations == again.situations);
        let has = |test: fn(&Item) -> bool| workload.situations.iter().any(|(item, _)| test(item));
        assert!(has(|item| matches!(item.content, Content::Acknowledgement { .. })));
        assert!(has(|item| matches!(item.content, Content::Datagram)));
        assert!(has(|item| matches!(item.history, History::Lost { .. })));
        assert!(has(|item| item.message.is_some_and(|message| message.deadline.is_some())));
        assert!(workload.situations.iter().all(|(_, paths)| paths.len() == 8));
        assert!(workload.situations.iter().any(|(_, paths)| paths.iter().all(PathView::can_send)));
        assert!(workload.situations.iter().any(|(_, paths)| paths.iter().any(|path| !path.can_send())));
    }
}
