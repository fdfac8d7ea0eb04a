//! The cost-reward rule for heterogeneous virtual channels, with what a transport knows and a packet steerer does not.

mod acknowledgement;
mod amendment;
mod comparison;
mod cost;
mod deadline_pacing;
mod doubt;
mod duplicating;
mod first_path;
mod foreground_detector;
mod price;
mod receive_window;
mod reservations;
mod reward;
mod spare_capacity;
mod stream_bursts;
#[cfg(test)]
mod tests;
mod tuning;

use std::time::Duration;

use acknowledgement::Budget;
pub use amendment::{Amendment, Amendments, NoVariant, Variant};
use comparison::{Comparison, ComparisonUnit, Decision};
use cost::{NEVER, nanos, next_send, transmission};
use deadline_pacing::{DeadlinePacer, Share};
use doubt::Doubt;
pub use duplicating::Duplicating;
use foreground_detector::{ForegroundDetector, closed, is_background};
use price::CurrentPrice;
pub use price::{NoPrice, Price};
use reservations::Reservations;
use reward::{price_multiplier, weight};
use spare_capacity::{LentQuota, SpareCapacity};
use stream_bursts::{PlacedPart, StreamBursts};
use tuning::{
    BULK, FOREGROUND_HOLD, INSTANT, LONGEST_WAIT, LOSS_SLACK, MOST_REPEATS, NEGLIGIBLE, OPEN, REPEATS, WIDE,
};

use crate::usable::named;
use crate::{
    Content, Expectation, Flights, History, Item, Observation, PathId, PathSet, PathView, Placement,
    Scheduler, proven, usable,
};

/// The HVC rule: each frame goes where the earlier completion is worth its price.
///
/// On path p an item completes at C = max(`head_of_line_delay`, delay + (bytes + backlog) / rate), and costs α · n times
/// F = (bytes + backlog) / rate: α is 0.75, and n the share by which p is narrower than its alternative, the widest path, or
/// 1 if that one's rate is not known or the hinted price of p is higher. The smallest C + αnF wins, the widest path in a tie.
/// On two paths, with one flow, room on both and no input from the application, that is DChannel's Algorithm 1 (NSDI 2023,
/// §3.4 and A.1) with αn for α. Beyond it:
///
/// - a path without room counts with the time until it has some, and the answer is to wait if it wins even so;
/// - a message is compared as a whole; of one that exceeds the bulk path's window the tail may ride a scarce path;
/// - a stream of unknown length that would have to wait is taken to go on for as long as it already has, unless it ran empty
///   and so waits for its application;
/// - what has a deadline takes a scarce path in small pieces while more urgent data uses it;
/// - urgency and deadlines scale the reward, and background data leaves scarce channels to the foreground, to that of other
///   connections where they are shared;
/// - a path on which packets are lost counts with what it takes to repeat them; control frames and the handshake keep to the
///   paths of little loss;
/// - a path that costs n times as much has to be worth n times its transmission cost;
/// - where others share a scarce path a byte costs twice its transmission cost, thrice on one of the peer's, unless the
///   endpoint keeps an account of what they queued, which is part of the transmission cost then; bulk borrows nothing there;
/// - what was told to wait for a path stands in its queue for what is asked about later;
/// - a connection begins where its keys and its data are soonest there;
/// - acknowledgements use the low-latency path within a budget;
/// - of a path's rate bulk is lent what nothing latency-critical wants: in small pieces if it was promised, else with the
///   shorter a queue the narrower and quicker the path is;
/// - lost and late data goes where it arrives first, whatever that costs, and what is in flight on a path whose delivery has
///   collapsed is copied where the copy is sooner by more than its price;
/// - for a while after a path fell silent, small messages go on every path: the one that is left may be the dead one;
/// - no path is used whose data would close the receiver's window to a quicker one for more than the slow one carries.
///
/// Each of these is an [`Amendment`] with a name and can be switched off ([`Variant`]); the constants of all stand in one file
/// (`tuning.rs`).
///
/// The price adapts to demand through the transmission cost, which is the queue that an item finds and adds to: what was
/// sent, what others have queued where the channel is shared, and what waits for room. Two things follow for fresh data, and
/// are tested as properties (`tests/price.rs`). The queue is bounded: an item is taken only while (1 + α) of its transmission
/// cost is less than D, what the scarce path saves it, so no item leaves a queue longer than D / (1 + α). And nobody starves:
/// the queue drains whatever is asked, so after D / (1 + α) at the latest the path takes whatever alone is worth it. α itself
/// is fixed, or follows demand where that was asked for ([`Price`]).
#[derive(Clone, Copy, Debug, Default)]
pub struct Hvc {
    acknowledgements: Budget,
    stream_bursts: StreamBursts,
    spare: SpareCapacity,
    /// The time at which foreground data last went on a scarce path.
    foreground: Option<Duration>,
    /// The arrivals that the latest choice between two paths that could send expected of them.
    expected: Option<Expectation>,
    reservations: Reservations,
    price: CurrentPrice,
    amendments: Amendments,
    foreground_detector: ForegroundDetector,
    deadline_pacer: DeadlinePacer,
    doubt: Doubt,
}

/// Two paths that are compared for an item, by index.
#[derive(Clone, Copy)]
struct Contenders {
    bulk: usize,
    scarce: usize,
}

/// Paths of which one is chosen for an item.
#[derive(Clone, Copy)]
struct Choices<'a> {
    set: PathSet,
    /// The alternative to all of them, if there is one.
    bulk: Option<&'a PathView>,
}

impl Hvc {
    /// The rule with another price of scarce paths.
    pub fn at(price: Price) -> Self {
        Self { price: CurrentPrice::of(price), ..Self::default() }
    }

    /// A variant of the rule.
    pub fn of(variant: Variant) -> Self {
        Self { amendments: variant.amendments, ..Self::at(variant.price) }
    }
}

impl Scheduler for Hvc {
    fn name(&self) -> &'static str {
        "hvc"
    }

    fn place(&mut self, item: &Item, paths: &[PathView]) -> Placement {
        self.expected = None;
        if self.amendments == Amendments::ALL {
            return self.place_seen(item, paths);
        }
        let (item, paths) = (self.amendments.of_item(item), self.amendments.of_paths(paths));
        self.place_seen(&item, &paths)
    }

    fn first(&mut self, flights: &Flights, paths: &[PathView]) -> usize {
        if self.amendments.has(Amendment::FirstPath) { first_path::first(flights, paths) } else { 0 }
    }

    fn repeats(&mut self, item: &Item, path: &PathView) -> usize {
        let Content::Stream { id } = item.content else { return 0 };
        // Bulk on a path where all of them take less time than any decision is precise to.
        let is_bulk = item.message.is_none_or(|message| message.remaining > BULK);
        let instantly = match path.rate {
            Some(rate) => usize::try_from(rate.bytes_in(INSTANT)).unwrap_or(usize::MAX),
            None => path.send_allowance / OPEN,
        };
        let repeats = (instantly / item.bytes.max(1)).clamp(REPEATS, MOST_REPEATS);
        let bytes = repeats * item.bytes;
        let is_soon = match path.rate {
            Some(rate) => rate.transmission_time(bytes) <= NEGLIGIBLE,
            None => path.send_allowance >= WIDE * bytes,
        };
        if !is_bulk || !is_soon || item.history != History::Fresh {
            return 0;
        }
        self.note_burst(id, item.pending.saturating_sub(item.bytes), bytes, item.now);
        repeats
    }

    fn copies(&mut self, item: &Item, paths: &[PathView], expected: Duration) -> bool {
        self.amendments.has(Amendment::Repair) && {
            let (item, paths) = (self.amendments.of_item(item), self.amendments.of_paths(paths));
            self.is_worth_a_copy(&item, &paths, nanos(expected))
        }
    }

    fn expected(&self) -> Option<Expectation> {
        self.expected
    }

    fn observe(&mut self, observation: &Observation) {
        if let Observation::PathGone { path } = *observation {
            self.acknowledgements.forget(path);
            self.spare.forget(path);
        }
    }
}

impl Hvc {
    /// Places `item` as the amendments in force see it.
    fn place_seen(&mut self, item: &Item, paths: &[PathView]) -> Placement {
        let usable = self.amendments.candidates(paths, usable(paths));
        self.foreground_detector.note(item);
        let placement = match (item.content, item.history) {
            (Content::Acknowledgement { of }, _) => self.acknowledge(item, of, paths, usable),
            (Content::Stream { .. } | Content::Datagram, History::Fresh) => self.fresh(item, paths, usable),
            (_, History::Fresh) => self.fresh(item, paths, reliable(paths, proven(paths, usable))),
            (_, history) => {
                let set = elsewhere(history, paths, proven(paths, usable));
                match self.amendments.has(Amendment::Repair) {
                    true => self.again(item, paths, set),
                    false => self.fresh(item, paths, set),
                }
            }
        };
        if !self.amendments.has(Amendment::Doubt) {
            return placement;
        }
        self.doubt.note(paths, item.now);
        self.doubt.spread(item, paths, placement)
    }

    /// Places an acknowledgement of path `of` where the budget allows; an acknowledgement of background data has none.
    fn acknowledge(&mut self, item: &Item, of: PathId, paths: &[PathView], usable: PathSet) -> Placement {
        let keeps = !self.amendments.has(Amendment::Acknowledgements);
        let own =
            named(paths, usable, of).filter(|_| keeps || self.foreground_detector.is_on_background(item.now));
        match own.or_else(|| self.acknowledgements.path(item, of, paths, usable)) {
            Some(path) => Placement::On { path: path.id, bytes: item.bytes },
            None => Placement::Wait,
        }
    }

    /// Places data that was never sent where completion time and price are least.
    fn fresh(&mut self, item: &Item, paths: &[PathView], candidates: PathSet) -> Placement {
        let candidates = match self.amendments.has(Amendment::Window) {
            true => receive_window::open(item, paths, candidates),
            false => candidates,
        };
        let scarce = cost::scarce(paths, candidates);
        let wide = candidates.without(scarce);
        let scarce = if wide.is_empty() { scarce } else { scarce.without(closed(item, paths, scarce)) };
        let Some(bulk) = self.soonest_that_moves(item, paths, wide) else {
            return match self.cheapest(item, paths, Choices { set: scarce, bulk: None }, ComparisonUnit::Item)
            {
                Some(index) => self.send_scarce(item, &paths[index]),
                None => Placement::Wait,
            };
        };
        let open = paths[bulk].can_send() && scarce.iter().any(|index| paths[index].can_send());
        let whole = self.comparison_unit(item);
        let unit = if open && item.message.is_none() { ComparisonUnit::Item } else { whole };
        let rival = match self.yields_to_foreground(item) {
            true => None,
            false => self.cheapest(item, paths, Choices { set: scarce, bulk: Some(&paths[bulk]) }, unit),
        };
        let decision =
            rival.map(|rival| (rival, self.compare(item, paths, Contenders { bulk, scarce: rival }, unit)));
        let bytes = match decision {
            // A bulk path that looks slow, after an outage for instance, shows what it carries only if it is used.
            // Unless all of it crosses the other before that.
            Some((rival, Decision::Scarce))
                if self.amendments.has(Amendment::Patience)
                    && !paths[rival].can_send()
                    && paths[bulk].can_send()
                    && spare_capacity::is_long(item, whole, &paths[bulk])
                    && !self.crosses(item, paths, rival, bulk) =>
            {
                item.bytes
            }
            Some((rival, Decision::Scarce)) => {
                let placement = self.send_scarce(item, &paths[rival]);
                self.note_foreground(item, &paths[bulk], placement);
                return placement;
            }
            Some((_, Decision::Bulk { bytes })) => bytes,
            None => item.bytes,
        };
        let mut again = None;
        let lenders = if self.amendments.has(Amendment::Spare) { scarce } else { PathSet::EMPTY };
        for index in lenders.iter() {
            match self.spare.lend(item, whole, &paths[bulk], &paths[index]) {
                LentQuota::Now(bytes) => return self.send(item, &paths[index], bytes),
                LentQuota::In(time) => again = Some(again.map_or(time, |sooner: Duration| sooner.min(time))),
                LentQuota::None => {}
            }
        }
        match (self.send(item, &paths[bulk], bytes), again) {
            (Placement::WaitAtMost(longest), Some(again)) => Placement::WaitAtMost(longest.min(again)),
            (placement, _) => placement,
        }
    }

    /// Chooses the path that carries the item, one of bulk and a scarce one, behind all that was told to wait for them.
    fn compare(
        &mut self,
        item: &Item,
        paths: &[PathView],
        two: Contenders,
        unit: ComparisonUnit,
    ) -> Decision {
        let Contenders { bulk, scarce: rival } = two;
        let behind = |index: usize| self.reservations.behind(&paths[index], item.now);
        let (bulk_behind, rival_behind) = (behind(bulk), behind(rival));
        let bulk_view = bulk_behind.as_ref().unwrap_or(&paths[bulk]);
        let rival_view = rival_behind.as_ref().unwrap_or(&paths[rival]);
        let alpha = self.price.alpha(item.now);
        let comparison = Comparison { bulk: (bulk, bulk_view), scarce: (rival, rival_view), unit, alpha };
        let estimates = comparison.estimates(item);
        self.expected = comparison.expected(item, estimates);
        let decision = comparison.decide(item, estimates);
        if decision != Decision::Scarce && bulk_view.can_send() {
            self.note_forgone(item, &comparison);
        }
        decision
    }

    /// The path of `set` on which the item completes first. It is not waited for while another has room, unless all that
    /// stands or falls with the item would cross it before the item is there on the other.
    fn soonest_that_moves(&self, item: &Item, paths: &[PathView], set: PathSet) -> Option<usize> {
        let first = soonest(item, paths, set)?;
        if set.len() == 1 || paths[first].can_send() || !self.amendments.has(Amendment::Patience) {
            return Some(first);
        }
        let with_room: PathSet = set.iter().filter(|&index| paths[index].can_send()).collect();
        let Some(open) = soonest(item, paths, with_room) else { return Some(first) };
        let crosses = self.crosses(item, paths, first, open);
        Some(if crosses { first } else { open })
    }

    /// Returns true if all that stands or falls with the item crosses path `one` before the item is there on the `other`.
    fn crosses(&self, item: &Item, paths: &[PathView], one: usize, other: usize) -> bool {
        let ComparisonUnit::Whole(whole) = self.comparison_unit(item) else { return true };
        let arrival =
            |index: usize, bytes| ComparisonUnit::Item.estimate(index, &paths[index], bytes).arrival;
        arrival(one, whole.max(item.bytes)) <= arrival(other, item.bytes)
    }

    /// Places lost or late data where it arrives first: the data after it already waits for it. If more is to follow
    /// than crosses that path until the item is there on another with room, it is not waited for: everything would wait
    /// with it.
    fn again(&mut self, item: &Item, paths: &[PathView], candidates: PathSet) -> Placement {
        let scarce = cost::scarce(paths, candidates);
        let bulk = candidates.without(scarce);
        let usable = match (bulk.is_empty(), self.yields_to_foreground(item)) {
            (true, _) => candidates,
            (false, true) => bulk,
            (false, false) => candidates.without(closed(item, paths, scarce)),
        };
        let first = Item { head_of_line_delay: Duration::ZERO, ..*item };
        match self.soonest_that_moves(&first, paths, usable) {
            Some(index) if scarce.contains(index) && !bulk.is_empty() => {
                self.send_scarce(item, &paths[index])
            }
            Some(index) => self.send(item, &paths[index], item.bytes),
            None => Placement::Wait,
        }
    }

    /// Returns true if a copy of the item is there before the original, which is expected after `expected` nanoseconds, by more
    /// than its price on a path that has room: the path of the original is what it is compared with.
    fn is_worth_a_copy(&self, item: &Item, paths: &[PathView], expected: u64) -> bool {
        let History::Unacknowledged { on, .. } = item.history else { return false };
        let Some(original) = paths.iter().find(|path| path.id == on) else { return false };
        let weight = weight(item.priority.urgency, self.price.alpha(item.now));
        proven(paths, usable(paths)).iter().map(|index| (index, &paths[index])).any(|(index, path)| {
            let weight = weight * price_multiplier(path, original) / cost::WHOLE;
            let copy = ComparisonUnit::Item.estimate(index, path, item.bytes);
            path.id != on && path.can_send() && copy.sum(0, weight) < expected
        })
    }

    /// The item, or a piece of it, on a scarce path.
    fn send_scarce(&mut self, item: &Item, path: &PathView) -> Placement {
        match self.deadline_pacer.share(item, path) {
            Share::In(time) if path.can_send() => Placement::WaitAtMost(time),
            Share::Now(bytes) if path.can_send() => {
                self.deadline_pacer.note(item);
                self.send(item, path, bytes)
            }
            _ => self.send(item, path, item.bytes),
        }
    }

    /// The first `bytes` on `path`, or the wait for it.
    fn send(&mut self, item: &Item, path: &PathView, bytes: usize) -> Placement {
        if !path.can_send() {
            if self.amendments.has(Amendment::Reservations) {
                self.reservations.add(path.id, bytes, item.now);
            }
            return Placement::WaitAtMost(Duration::from_nanos(next_send(path).min(LONGEST_WAIT)));
        }
        // What is repeated tells of a long stream, too: else all that an outage lost would go over the scarce path.
        if let (Content::Stream { id }, History::Fresh | History::Lost { .. }) = (item.content, item.history)
        {
            let pending = if item.history == History::Fresh { item.pending } else { usize::MAX };
            self.note_burst(id, pending, bytes, item.now);
        }
        Placement::On { path: path.id, bytes }
    }

    /// Takes note of `bytes` of stream `id` that were placed, of as many as were `pending`.
    fn note_burst(&mut self, id: u64, pending: usize, bytes: usize, now: Duration) {
        if self.amendments.has(Amendment::Bursts) {
            let left = pending.saturating_sub(bytes);
            self.stream_bursts.add(PlacedPart { stream: id, bytes, left }, now);
        }
    }

    /// Returns the unit of comparison where somebody has to wait: the message; without one, as much again as the stream
    /// already placed. An item that waits for a scarce path holds up all that is behind it, even while the bulk path
    /// has room.
    fn comparison_unit(&self, item: &Item) -> ComparisonUnit {
        match (item.message, item.content) {
            (Some(message), _) => ComparisonUnit::Whole(message.remaining),
            (None, Content::Stream { id }) => ComparisonUnit::Whole(self.stream_bursts.bytes(id, item.now)),
            _ => ComparisonUnit::Item,
        }
    }

    /// Returns true if the item is background data and the foreground used a scarce path of late.
    fn yields_to_foreground(&self, item: &Item) -> bool {
        let recent = self.foreground.is_some_and(|last| item.now.saturating_sub(last) <= FOREGROUND_HOLD);
        recent && is_background(item)
    }

    /// The one of `choices` with the least completion and price; of equals one with room.
    fn cheapest(
        &self,
        item: &Item,
        paths: &[PathView],
        choices: Choices<'_>,
        unit: ComparisonUnit,
    ) -> Option<usize> {
        let Choices { set, bulk } = choices;
        if set.len() <= 1 {
            return set.iter().next();
        }
        let head_of_line_delay = nanos(item.head_of_line_delay);
        let weight = weight(item.priority.urgency, self.price.alpha(item.now));
        set.iter().min_by_key(|&index| {
            let path = &paths[index];
            let weight = match bulk {
                Some(bulk) => weight * price_multiplier(path, bulk) / cost::WHOLE,
                None => weight,
            };
            (unit.estimate(index, path, item.bytes).sum(head_of_line_delay, weight), !path.can_send())
        })
    }

    /// Takes note of an item that goes over the bulk path, if the scarce one were worth it at its least price and empty.
    fn note_forgone(&mut self, item: &Item, comparison: &Comparison<'_>) {
        let Some(alpha) = self.price.least() else { return };
        let (index, scarce) = comparison.scarce;
        let empty = PathView { backlog: 0, send_allowance: scarce.send_allowance.max(item.bytes), ..*scarce };
        let comparison = Comparison { scarce: (index, &empty), alpha, ..*comparison };
        if comparison.decide(item, comparison.estimates(item)) == Decision::Scarce {
            self.price.note_forgone(transmission(item.bytes, scarce.rate), item.now);
        }
    }

    /// Takes note of foreground data on a scarce path, to which the `bulk` path was the alternative.
    fn note_foreground(&mut self, item: &Item, bulk: &PathView, placement: Placement) {
        if is_data(item) && !is_background(item) && matches!(placement, Placement::On { .. }) {
            self.foreground = Some(item.now);
            if !spare_capacity::is_long(item, self.comparison_unit(item), bulk) {
                self.spare.on_wanted(item.now);
            }
        }
    }
}

/// Returns the paths of `set` with room that lose no more than a packet in a hundred beyond the best of them; `set` if
/// none has room.
///
/// A control frame is small, and much waits for it: limits, connection IDs, what became of a path.
fn reliable(paths: &[PathView], set: PathSet) -> PathSet {
    let open = || set.iter().filter(|&index| paths[index].can_send());
    let Some(least) = open().map(|index| paths[index].loss.get()).min() else { return set };
    open().filter(|&index| paths[index].loss.get() <= least.saturating_add(LOSS_SLACK)).collect()
}

fn is_data(item: &Item) -> bool {
    matches!(item.content, Content::Stream { .. } | Content::Datagram)
}

/// The path of `set` on which the item alone completes first; of equals one with room, then the earliest arrival.
fn soonest(item: &Item, paths: &[PathView], set: PathSet) -> Option<usize> {
    if set.len() <= 1 {
        return set.iter().next();
    }
    let head_of_line_delay = nanos(item.head_of_line_delay);
    set.iter().min_by_key(|&index| {
        let path = &paths[index];
        let estimate = ComparisonUnit::Item.estimate(index, path, item.bytes);
        let completion = estimate.completion(head_of_line_delay);
        // Where nothing would ever complete, a path with room at least does not block.
        (completion, !path.can_send(), estimate.arrival.min(NEVER), path.loss)
    })
}

/// `set` without the path on which a copy is still under way, unless it is the only one.
fn elsewhere(history: History, paths: &[PathView], set: PathSet) -> PathSet {
    let History::Unacknowledged { on, .. } = history else { return set };
    let others: PathSet = set.iter().filter(|&index| paths[index].id != on).collect();
    if others.is_empty() { set } else { others }
}
