//! One direction of the link: a queue, a rate, a delay, and what goes wrong at its end.

use super::condition::{Condition, Luck, Trouble};
use super::record::Sender;
use bytes::{Bytes, BytesMut};
use rand::Rng;
use rand::rngs::StdRng;
use std::collections::VecDeque;
use std::time::Duration;

/// Bytes of IP, UDP and link headers.
const HEADERS: usize = 30;
/// The largest UDP payload that fits an Ethernet packet.
const LARGEST: usize = 1472;
/// The number of first bytes in which the simulator makes its changes, to hit headers often.
const CORRUPTED: usize = 50;

/// A packet on its way, with whatever the owner of the wire wants to know of it.
#[derive(Debug)]
struct Flying<T> {
    /// The time at which its last bit is on the wire.
    leaves: Duration,
    /// The time at which it is at the other end.
    arrives: Duration,
    about: T,
    payload: Bytes,
}

/// One direction.
#[derive(Debug)]
pub(crate) struct Wire<T> {
    sender: Sender,
    condition: Condition,
    rng: StdRng,
    luck: Luck,
    /// Packets that arrived, those that disappear included.
    arrived: u64,
    flying: VecDeque<Flying<T>>,
}

impl<T> Wire<T> {
    /// The direction of what `sender` sends.
    pub(crate) fn new(sender: Sender, condition: Condition, rng: StdRng) -> Self {
        Self { sender, condition, rng, luck: Luck::default(), arrived: 0, flying: VecDeque::new() }
    }

    /// Puts a packet into the queue, if there is room for it.
    pub(crate) fn enter(&mut self, now: Duration, about: T, payload: Bytes) {
        let waiting = self.flying.iter().filter(|packet| packet.leaves > now).count();
        if waiting > self.condition.queue || payload.len() > LARGEST {
            return;
        }
        let bits = (payload.len() + HEADERS) as u64 * 8;
        let time = Duration::from_nanos(bits * 1_000_000_000 / self.condition.rate);
        let leaves = self.flying.back().map_or(now, |last| last.leaves.max(now)) + time;
        self.flying.push_back(Flying { leaves, arrives: leaves + self.condition.delay, about, payload });
    }

    /// Returns the time at which the next packet arrives.
    pub(crate) fn next_arrival(&self) -> Option<Duration> {
        self.flying.front().map(|packet| packet.arrives)
    }

    /// The next packet that has arrived, as it arrives: changed, or `None` in place of its payload if it disappears.
    pub(crate) fn leave(&mut self, now: Duration) -> Option<(T, Option<Bytes>)> {
        self.flying.front().filter(|packet| packet.arrives <= now)?;
        let packet = self.flying.pop_front()?;
        self.arrived += 1;
        let at = packet.arrives;
        let payload = match &self.condition.trouble {
            Trouble::None | Trouble::Rebinding { .. } => Some(packet.payload),
            Trouble::Loss(chance) => {
                let roll = self.rng.random_range(0..100);
                (!self.luck.is_bad(*chance, roll)).then_some(packet.payload)
            }
            Trouble::Corruption(chance) => {
                let roll = self.rng.random_range(0..100);
                let bad = self.luck.is_bad(*chance, roll);
                Some(if bad { corrupt(&packet.payload, &mut self.rng) } else { packet.payload })
            }
            Trouble::Drops(numbers) => {
                let dropped = self.sender == Sender::Client && numbers.contains(&self.arrived);
                (!dropped).then_some(packet.payload)
            }
            Trouble::Blackout { begins, lasts } => {
                (at < *begins || at >= *begins + *lasts).then_some(packet.payload)
            }
        };
        Some((packet.about, payload))
    }
}

/// Returns the payload with one byte changed.
fn corrupt(payload: &Bytes, rng: &mut StdRng) -> Bytes {
    let mut changed = BytesMut::from(&payload[..]);
    let most = CORRUPTED.min(changed.len().saturating_sub(1));
    if let Some(byte) = changed.get_mut(rng.random_range(0..=most)) {
        *byte ^= rng.random_range(1..=255_u8);
    }
    changed.freeze()
}

#[cfg(test)]
mod tests {
    use super::super::condition::Chance;
    use super::*;
    use rand::SeedableRng;

    fn wire(sender: Sender, trouble: Trouble) -> Wire<u32> {
        Wire::new(sender, Condition::usual(trouble), StdRng::seed_from_u64(7))
    }

    fn packet(length: usize) -> Bytes {
        Bytes::from(vec![5; length])
    }

    #[test]
    fn packets_take_their_turn_and_their_time() {
        let mut wire = wire(Sender::Server, Trouble::None);
        for number in 0..40 {
            wire.enter(Duration::ZERO, number, packet(1220));
        }
        // 1250 bytes take a millisecond at 10 Mbit/s.
        assert_eq!(wire.next_arrival(), Some(Duration::from_millis(16)));
        assert!(wire.leave(Duration::from_millis(15)).is_none());
        assert_eq!(wire.leave(Duration::from_millis(16)).unwrap().0, 0);
        let rest = std::iter::from_fn(|| wire.leave(Duration::from_secs(1))).count();
        assert_eq!(rest, 25);
        wire.enter(Duration::from_secs(1), 41, packet(LARGEST + 1));
        assert_eq!(wire.next_arrival(), None);
    }

    #[test]
    fn only_packets_to_the_server_are_on_the_list() {
        for (sender, expected) in [(Sender::Client, [true, false, true]), (Sender::Server, [true; 3])] {
            let mut wire = wire(sender, Trouble::Drops(&[2]));
            (0..3).for_each(|number| wire.enter(Duration::ZERO, number, packet(100)));
            let arrived = [(); 3].map(|()| wire.leave(Duration::from_secs(1)).unwrap().1.is_some());
            assert_eq!(arrived, expected);
        }
    }

    #[test]
    fn a_corrupted_packet_differs_in_one_early_byte() {
        let mut wire = wire(Sender::Client, Trouble::Corruption(Chance { percent: 100, burst: 9 }));
        wire.enter(Duration::ZERO, 0, packet(1200));
        let changed = wire.leave(Duration::from_secs(1)).unwrap().1.unwrap();
        let places: Vec<_> = (0..1200).filter(|at| changed[*at] != 5).collect();
        assert!(places.len() == 1 && places[0] <= CORRUPTED, "{places:?}");
    }

    #[test]
    fn a_blackout_takes_everything_while_it_lasts() {
        let (begins, lasts) = (Duration::from_secs(5), Duration::from_secs(2));
        let mut wire = wire(Sender::Client, Trouble::Blackout { begins, lasts });
        let mut arrives = |second: u64| {
            wire.enter(Duration::from_secs(second), 0, packet(100));
            wire.leave(Duration::from_secs(second + 1)).unwrap().1.is_some()
        };
        assert!(arrives(4) && !arrives(5) && !arrives(6) && arrives(7));
    }
}
