//! The gate between encoder and transport: the best layer waits until the layers below it are not held up by it any
//! more.
//!
//! A channel that got slow has everything in one queue, and what is in it cannot be taken back. The sender therefore
//! must not fill it: the layers of the frames to come matter more than the best layer of this one.

use crate::layers::LAYERS;
use crate::message::Reference;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// Layers from this one on wait; those below go when the picture is taken.
const HIGHEST: usize = LAYERS - 1;
/// The time for which a layer may be under way before the channel counts as slower than the video: a receiver that
/// waits for 60 ms (HotNets 2023, §3.3) hardly has a use for what comes behind it.
const SLOW: Duration = Duration::from_millis(70);
/// The longest time that the bytes under way take to cross the channel: twice the time between two frames.
const BACKLOG: Duration = Duration::from_millis(60);
/// The rate is the highest of so many deliveries of late: most were held up by something else.
const DELIVERIES: usize = 6;
/// A layer of fewer bytes says nothing about a rate.
const TELLING: usize = 3000;
/// Two layers that came closer together than this were acknowledged by one packet.
const TOGETHER: Duration = Duration::from_micros(500);
/// Frames that are remembered: those that others may still refer to, and those under way.
const REMEMBERED: u32 = 64;

/// The decision about a layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// It is handed to the transport.
    Send,
    /// It waits until something was delivered or taken back.
    Wait,
    /// It refers to a layer that was given up: no receiver could show it ([`crate::layers::Chain`]).
    Useless,
}

/// A layer to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layer {
    /// Its frame.
    pub frame: u32,
    /// Its number, less than [`LAYERS`].
    pub layer: usize,
    /// The frame that it refers to.
    pub reference: Reference,
    /// Its size.
    pub bytes: usize,
}

impl Layer {
    fn key(&self) -> (u32, usize) {
        (self.frame, self.layer)
    }
}

/// Decides which layers are sent, from when those before were delivered.
#[derive(Clone, Debug, Default)]
pub struct Gate {
    /// Layers above the base layer that are under way, and since when.
    under_way: BTreeMap<(u32, usize), (Layer, Duration)>,
    /// The references of the layers of the latest frames, as far as they were sent.
    sent: BTreeMap<(u32, usize), Reference>,
    given_up: BTreeSet<(u32, usize)>,
    /// The time at which the latest layer was delivered.
    delivered: Duration,
    /// Bytes per second with which the latest ones were.
    rates: VecDeque<f64>,
}

impl Gate {
    /// Decides whether `layer` is sent at `now`. A caller that asks and does not send it says so with
    /// [`Self::on_given_up`] in the end.
    pub fn admits(&self, layer: &Layer, now: Duration) -> Decision {
        if layer.layer == 0 {
            return Decision::Send;
        }
        if self.is_useless(layer) {
            return Decision::Useless;
        }
        let is_slow = |since: Duration| now.saturating_sub(since) > SLOW;
        let crowded =
            self.under_way.values().any(|(_, since)| is_slow(*since)) || self.backlog(layer) > BACKLOG;
        match layer.layer >= HIGHEST && crowded {
            true => Decision::Wait,
            false => Decision::Send,
        }
    }

    /// `layer` is handed to the transport at `now`.
    pub fn on_sent(&mut self, layer: Layer, now: Duration) {
        if layer.layer == 0 {
            return;
        }
        self.sent.insert(layer.key(), layer.reference);
        self.under_way.insert(layer.key(), (layer, now));
        let oldest = (layer.frame.saturating_sub(REMEMBERED), 0);
        self.sent = self.sent.split_off(&oldest);
        self.under_way = self.under_way.split_off(&oldest);
        self.given_up = self.given_up.split_off(&oldest);
    }

    /// The receiver has all of a layer, as is known at `now`.
    pub fn on_delivered(&mut self, frame: u32, layer: usize, now: Duration) {
        let Some((layer, since)) = self.under_way.remove(&(frame, layer)) else { return };
        // Behind another one it took the time since that.
        if self.delivered > since && layer.bytes >= TELLING {
            let time = now.saturating_sub(self.delivered).max(TOGETHER);
            if self.rates.len() == DELIVERIES {
                self.rates.pop_front();
            }
            self.rates.push_back(layer.bytes as f64 / time.as_secs_f64());
        }
        self.delivered = now;
    }

    /// A layer was taken back, or is not sent at all. Layers that refer to it are useless from now on.
    pub fn on_given_up(&mut self, frame: u32, layer: usize) {
        self.under_way.remove(&(frame, layer));
        let mut next = frame;
        loop {
            self.given_up.insert((next, layer));
            let Some(after) = next.checked_add(1) else { return };
            // Those after it that were sent before this was known are as useless, and so what refers to them.
            if self.sent.get(&(after, layer)) != Some(&Reference::Earlier) {
                return;
            }
            next = after;
        }
    }

    fn is_useless(&self, layer: &Layer) -> bool {
        let (frame, number) = layer.key();
        let before = frame.checked_sub(1).map(|before| (before, number));
        let missing = |key: &(u32, usize)| self.given_up.contains(key);
        let follows = layer.reference == Reference::Earlier && before.as_ref().is_some_and(missing);
        follows || missing(&(frame, number - 1))
    }

    /// Returns the time that the bytes under way and `layer` take to cross the channel.
    fn backlog(&self, layer: &Layer) -> Duration {
        let bytes = self.under_way.values().map(|(layer, _)| layer.bytes).sum::<usize>() + layer.bytes;
        let rate = self.rates.iter().copied().reduce(f64::max);
        rate.map_or(Duration::ZERO, |rate| Duration::from_secs_f64(bytes as f64 / rate))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(value: u64) -> Duration {
        Duration::from_millis(value)
    }

    fn layer(frame: u32, layer: usize, bytes: usize) -> Layer {
        let reference = if frame.is_multiple_of(8) { Reference::Fresh } else { Reference::Earlier };
        Layer { frame, layer, reference, bytes }
    }

    /// Hands over layers as (frame, layer), all of 10 KB, at `at`.
    fn send(gate: &mut Gate, at: u64, keys: &[(u32, usize)]) {
        for (frame, number) in keys {
            gate.on_sent(layer(*frame, *number, 10_000), ms(at));
        }
    }

    #[test]
    fn while_layers_arrive_in_time_every_layer_goes_at_once() {
        let mut gate = Gate::default();
        for frame in 0..100 {
            let at = u64::from(frame) * 33;
            for number in 0..LAYERS {
                assert_eq!(gate.admits(&layer(frame, number, 10_000), ms(at)), Decision::Send, "{frame}");
                send(&mut gate, at, &[(frame, number)]);
            }
            // 5 MB/s: two layers take 4 ms.
            gate.on_delivered(frame, 1, ms(at + 22));
            gate.on_delivered(frame, 2, ms(at + 24));
        }
    }

    #[test]
    fn the_best_layer_waits_while_something_is_under_way_for_long_and_no_other_does() {
        let mut gate = Gate::default();
        send(&mut gate, 0, &[(0, 0), (0, 1)]);
        assert_eq!(gate.admits(&layer(2, 2, 10_000), ms(70)), Decision::Send);
        assert_eq!(gate.admits(&layer(2, 2, 10_000), ms(71)), Decision::Wait);
        assert_eq!([0, 1].map(|number| gate.admits(&layer(2, number, 10_000), ms(71))), [Decision::Send; 2]);
        gate.on_delivered(0, 1, ms(80));
        assert_eq!(gate.admits(&layer(2, 2, 10_000), ms(81)), Decision::Send);
    }

    #[test]
    fn the_best_layer_waits_while_what_is_under_way_fills_a_slow_channel() {
        let mut gate = Gate::default();
        send(&mut gate, 0, &[(0, 1), (0, 2)]);
        gate.on_delivered(0, 1, ms(40));
        // 10 KB in 20 ms: 500 KB/s.
        gate.on_delivered(0, 2, ms(60));
        send(&mut gate, 66, &[(1, 1)]);
        assert_eq!(gate.admits(&layer(1, 2, 19_000), ms(66)), Decision::Send);
        assert_eq!(gate.admits(&layer(1, 2, 21_000), ms(66)), Decision::Wait);
    }

    #[test]
    fn layers_that_one_packet_acknowledged_do_not_look_infinitely_fast() {
        let mut gate = Gate::default();
        send(&mut gate, 0, &[(0, 1), (0, 2)]);
        gate.on_delivered(0, 1, ms(40));
        gate.on_delivered(0, 2, ms(40));
        assert!(gate.rates.iter().all(|rate| rate.is_finite()));
    }

    #[test]
    fn what_refers_to_a_layer_that_was_given_up_is_useless_until_it_begins_anew() {
        let mut gate = Gate::default();
        send(&mut gate, 0, &[(1, 1), (1, 2)]);
        send(&mut gate, 33, &[(2, 1), (2, 2)]);
        gate.on_given_up(1, 1);
        let decision = |gate: &Gate, frame, number| gate.admits(&layer(frame, number, 10), ms(50));
        assert_eq!(
            [0, 1, 2].map(|number| decision(&gate, 3, number)),
            [Decision::Send, Decision::Useless, Decision::Send]
        );
        // Who does not send it says so, and then what stands on it falls, too.
        gate.on_given_up(3, 1);
        assert_eq!(decision(&gate, 3, 2), Decision::Useless);
        assert_eq!([1, 2].map(|number| decision(&gate, 8, number)), [Decision::Send; 2]);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut gate = Gate::default();
        for frame in 0..10_000 {
            send(&mut gate, u64::from(frame), &[(frame, 0), (frame, 1), (frame, 2)]);
            gate.on_given_up(frame, 2);
        }
        let most = REMEMBERED as usize * LAYERS;
        assert!(gate.sent.len() <= most && gate.under_way.len() <= most && gate.given_up.len() <= most);
        gate.on_given_up(u32::MAX, 1);
        gate.on_delivered(u32::MAX, 1, ms(0));
    }
}
