//! A bottleneck: a rate, a delay, and a queue that overflows.

use super::DATAGRAM;
use crate::Bandwidth;
use crate::time::Instant;
use rand::Rng;
use rand::rngs::StdRng;
use std::fmt;
use std::time::Duration;

/// The delay that a channel adds to a datagram that leaves the queue at a time.
type Jitter = Box<dyn FnMut(Instant) -> Duration>;

/// A link whose queue drops what it has no room for.
pub struct Bottleneck {
    rate: Bandwidth,
    delay: Duration,
    queue: usize,
    loss: f64,
    early_drop: f64,
    jitter: Option<Jitter>,
    free_at: Instant,
    last_arrival: Instant,
    dropped: u64,
    waits: Waits,
}

/// The waiting times of the datagrams that entered.
#[derive(Clone, Copy, Debug, Default)]
struct Waits {
    sum: Duration,
    count: u32,
    longest: Duration,
}

impl Bottleneck {
    /// A link of `mbit` Mbit/s with round trips of `delay` and a queue of `queue` datagrams.
    pub fn new(mbit: u64, delay: Duration, queue: usize) -> Self {
        Self {
            rate: Bandwidth::from_mbit(mbit),
            delay,
            queue,
            loss: 0.0,
            early_drop: 0.0,
            jitter: None,
            free_at: Instant::ZERO,
            last_arrival: Instant::ZERO,
            dropped: 0,
            waits: Waits::default(),
        }
    }

    /// Returns the same link with a share of datagrams, from 0 to 1, lost at random.
    #[must_use]
    pub fn with_loss(mut self, share: f64) -> Self {
        self.loss = share;
        self
    }

    /// Returns the same link with a queue that drops at random before it is full (RED, RFC 7567): `most` is the share
    /// that a nearly full queue drops, less in proportion to the square of what it holds. Every datagram then runs the
    /// same risk, as analyses of fairness assume.
    #[must_use]
    pub fn with_early_drop(mut self, most: f64) -> Self {
        self.early_drop = most;
        self
    }

    /// Returns the same link with a delay that varies: `jitter` gives what is added to a datagram that leaves the queue
    /// at a time. Datagrams stay in order.
    #[must_use]
    pub fn with_jitter(mut self, jitter: impl FnMut(Instant) -> Duration + 'static) -> Self {
        self.jitter = Some(Box::new(jitter));
        self
    }

    /// Loses this share of datagrams at random from now on, from 0 to 1.
    pub fn set_loss(&mut self, share: f64) {
        self.loss = share;
    }

    /// Lets `rate` through from now on.
    pub fn set_rate(&mut self, rate: Bandwidth) {
        self.rate = rate;
    }

    /// Lets nothing through before `at`; what is in the queue waits.
    pub fn block_until(&mut self, at: Instant) {
        self.free_at = self.free_at.max(at);
    }

    /// The rate.
    pub fn rate(&self) -> Bandwidth {
        self.rate
    }

    /// The round-trip time without a queue.
    pub fn delay(&self) -> Duration {
        self.delay
    }

    /// The time that a datagram which enters at `now` waits.
    pub fn queueing(&self, now: Instant) -> Duration {
        self.free_at.since(now)
    }

    /// The number of datagrams that the full queue dropped.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Returns the mean wait of the datagrams that entered since the last call of this or of
    /// [`longest_wait`](Self::longest_wait).
    pub fn mean_wait(&mut self) -> Duration {
        let Waits { sum, count, .. } = std::mem::take(&mut self.waits);
        sum / count.max(1)
    }

    /// Returns the longest wait since the last call of this or of [`mean_wait`](Self::mean_wait).
    pub fn longest_wait(&mut self) -> Duration {
        std::mem::take(&mut self.waits).longest
    }

    /// The time at which a datagram that enters at `now` arrives, if it does.
    pub(super) fn enter(&mut self, now: Instant, rng: &mut StdRng) -> Option<Instant> {
        let one = self.rate.transmission_time(DATAGRAM);
        let (wait, full) = (self.queueing(now), one * self.queue as u32);
        if wait > full {
            self.dropped += 1;
            return None;
        }
        let filled = wait.as_secs_f64() / full.as_secs_f64().max(1e-9);
        if self.early_drop > 0.0 && rng.random_bool((self.early_drop * filled * filled).clamp(0.0, 1.0)) {
            return None;
        }
        let is_lost = self.loss > 0.0 && rng.random_bool(self.loss.min(1.0));
        self.waits.sum += wait;
        self.waits.count += 1;
        self.waits.longest = self.waits.longest.max(wait);
        self.free_at = self.free_at.max(now) + one;
        let added = self.jitter.as_mut().map_or(Duration::ZERO, |jitter| jitter(self.free_at));
        self.last_arrival = self.last_arrival.max(self.free_at + self.delay / 2 + added);
        (!is_lost).then_some(self.last_arrival)
    }
}

impl fmt::Debug for Bottleneck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bottleneck")
            .field("rate", &self.rate)
            .field("delay", &self.delay)
            .field("queue", &self.queue)
            .field("loss", &self.loss)
            .finish_non_exhaustive()
    }
}
