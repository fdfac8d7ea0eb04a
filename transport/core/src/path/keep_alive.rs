//! Keep-alive of a path: a PING after silence, as seldom as the NATs on its way permit.
//!
//! A NAT forgets a flow that is silent for too long: after 30 s in some networks, after minutes or never in others. What the
//! client sends next comes from another port, and the server, which sees that, validates the new address (RFC 9000 §9.3). So a
//! PATH_CHALLENGE that follows a silence tells the client that the silence was too long, and one that does not come tells that it
//! was not. Between the two the silence is learned by bisection.

use std::time::Duration;

/// Each silence that is tried is so much longer than the last that was not too long, while none was.
const GROWTH: (u32, u32) = (3, 2);
/// The search ends when the shortest silence that was too long is within so much of the longest that was not.
const PRECISION: u32 = 8;
/// The least silence that is learned, as a part of the one to begin with: no peer makes a client send PINGs all the time.
const LEAST: u32 = 2;

/// The silence of a path after which a PING is sent on it.
#[derive(Clone, Debug)]
pub enum KeepAlive {
    /// The silence that the application asked for; `None` for no PINGs.
    Fixed(Option<Duration>),
    /// A silence that is learned.
    Learned(Box<Search>),
}

impl Default for KeepAlive {
    fn default() -> Self {
        Self::Fixed(None)
    }
}

/// The knowledge of how long NATs remember a silent path.
#[derive(Clone, Debug)]
pub struct Search {
    /// The silence to begin with.
    first: Duration,
    /// The longest silence that is tried.
    limit: Duration,
    /// The longest silence that was not too long.
    kept: Option<Duration>,
    /// The shortest silence that was.
    lost: Option<Duration>,
    /// The silence that ended last, of which it is not known whether it was too long.
    ended: Option<Duration>,
}

impl KeepAlive {
    /// A PING after each `period`, if any; with `limit` after as much more as the path is seen to bear, up to that.
    pub fn new(period: Option<Duration>, limit: Option<Duration>) -> Self {
        match period.zip(limit).filter(|(period, limit)| period < limit) {
            Some((first, limit)) => Self::Learned(Box::new(Search::new(first, limit))),
            None => Self::Fixed(period),
        }
    }

    /// The silence after which a PING is due; `None` if none is ever.
    pub fn silence(&self) -> Option<Duration> {
        match self {
            Self::Learned(search) => Some(search.next()),
            Self::Fixed(period) => *period,
        }
    }

    /// A silence of the path ends with a packet of this end that the peer has to answer.
    pub fn on_sent_after(&mut self, silence: Duration) {
        if let Self::Learned(search) = self
            && silence > search.least()
        {
            search.ended = Some(silence);
        }
    }

    /// A silence of the path ends with a packet of the peer, which came through.
    pub fn on_heard_after(&mut self, silence: Duration) {
        if let Self::Learned(search) = self {
            search.bear(silence);
        }
    }

    /// The peer challenges the path: if that follows a silence, the path was forgotten meanwhile.
    pub fn on_challenge(&mut self) {
        if let Self::Learned(search) = self
            && let Some(silence) = search.ended.take()
        {
            search.lose(silence);
        }
    }

    /// Everything that was sent was answered, and silence began again: had the last one been too long, this end would know.
    pub fn on_answered(&mut self) {
        if let Self::Learned(search) = self
            && let Some(silence) = search.ended.take()
        {
            search.bear(silence);
        }
    }

    /// The peer does not answer: whatever it does next says nothing about the silence before.
    pub fn on_unanswered(&mut self) {
        if let Self::Learned(search) = self {
            search.ended = None;
        }
    }

    /// The path leads over other addresses, and perhaps over other NATs.
    pub fn on_moved(&mut self) {
        if let Self::Learned(search) = self {
            **search = Search::new(search.first, search.limit);
        }
    }
}

impl Search {
    fn new(first: Duration, limit: Duration) -> Self {
        Self { first, limit, kept: None, lost: None, ended: None }
    }

    fn least(&self) -> Duration {
        self.first / LEAST
    }

    fn next(&self) -> Duration {
        match (self.kept, self.lost) {
            (None, None) => self.first,
            (None, Some(lost)) => (lost / 2).max(self.least()),
            (Some(kept), None) => (kept / GROWTH.1 * GROWTH.0).min(self.limit),
            (Some(kept), Some(lost)) if lost.saturating_sub(kept) > kept / PRECISION => {
                kept + (lost - kept) / 2
            }
            (Some(kept), Some(_)) => kept,
        }
    }

    fn bear(&mut self, silence: Duration) {
        if silence <= self.least() || self.kept.is_some_and(|kept| kept >= silence) {
            return;
        }
        self.kept = Some(silence.min(self.limit));
        // The NAT remembers for longer than it did.
        self.lost = self.lost.filter(|lost| *lost > silence);
    }

    fn lose(&mut self, silence: Duration) {
        if self.lost.is_none_or(|lost| silence < lost) {
            self.lost = Some(silence);
        }
        // The NAT forgets sooner than it did.
        self.kept = self.kept.filter(|kept| *kept < silence);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    fn adaptive() -> KeepAlive {
        KeepAlive::new(Some(seconds(25)), Some(seconds(1_800)))
    }

    /// The silences after which PINGs are sent over a NAT that forgets after `timeout`.
    fn silences(keep_alive: &mut KeepAlive, timeout: Duration, count: usize) -> Vec<u64> {
        let each = |_| {
            let silence = keep_alive.silence().unwrap();
            keep_alive.on_sent_after(silence);
            if silence > timeout {
                keep_alive.on_challenge()
            } else {
                keep_alive.on_answered()
            }
            silence.as_secs()
        };
        (0..count).map(each).collect()
    }

    #[test]
    fn without_a_limit_the_silence_stays_as_it_was_asked_for() {
        assert_eq!(KeepAlive::default().silence(), None);
        let mut fixed = KeepAlive::new(Some(seconds(25)), None);
        assert_eq!(silences(&mut fixed, seconds(10_000), 5), [25; 5]);
        let mut narrow = KeepAlive::new(Some(seconds(25)), Some(seconds(20)));
        assert_eq!(silences(&mut narrow, seconds(10_000), 5), [25; 5]);
    }

    #[test]
    fn silences_grow_up_to_the_limit_where_no_nat_forgets() {
        let silences = silences(&mut adaptive(), Duration::MAX, 14);
        assert_eq!(silences[..4], [25, 37, 56, 84]);
        assert_eq!(silences[12..], [1_800, 1_800]);
    }

    #[test]
    fn bisection_ends_within_an_eighth_below_what_each_nat_remembers() {
        for timeout in [30, 45, 60, 120, 300, 600].map(seconds) {
            let mut keep_alive = adaptive();
            let all = silences(&mut keep_alive, timeout, 40);
            let lost = all.iter().filter(|silence| **silence >= timeout.as_secs()).count();
            assert!(lost <= 5, "{timeout:?}: {all:?}");
            let last = keep_alive.silence().unwrap();
            assert!(last <= timeout && last > timeout / 8 * 7 - seconds(2), "{timeout:?}: {all:?}");
        }
    }

    #[test]
    fn a_nat_that_forgets_sooner_than_the_first_silence_is_met_at_half_of_it() {
        let all = silences(&mut adaptive(), seconds(15), 20);
        assert_eq!(all[..2], [25, 12]);
        assert!(all[2..].iter().all(|silence| *silence < 20), "{all:?}");
        // No peer has PINGs sent more often than that.
        let mut hostile = adaptive();
        silences(&mut hostile, Duration::ZERO, 100);
        assert_eq!(hostile.silence(), Some(seconds(25) / 2));
    }

    /// The silence after some that the path bore, and then some that were too long, in seconds.
    fn after(borne: &[u64], lost: &[u64]) -> Option<Duration> {
        let mut keep_alive = adaptive();
        borne.iter().for_each(|silence| keep_alive.on_heard_after(seconds(*silence)));
        for silence in lost {
            keep_alive.on_sent_after(seconds(*silence));
            keep_alive.on_challenge();
        }
        keep_alive.silence()
    }

    #[test]
    fn what_was_borne_and_what_was_not_bound_the_next_silence() {
        assert_eq!(after(&[1], &[]), Some(seconds(25)), "that is shorter than any that is tried");
        assert_eq!(after(&[100, 50], &[]), Some(seconds(150)), "the longest counts");
        assert_eq!(after(&[100], &[200]), Some(seconds(150)), "the middle");
        assert_eq!(after(&[100], &[200, 100]), Some(seconds(50)), "it was borne before, and is not now");
        assert_eq!(after(&[80], &[90]), Some(seconds(80)), "an eighth is near enough");
        assert_eq!(after(&[80], &[91]), Some(Duration::from_millis(85_500)));
        let mut least = KeepAlive::new(Some(seconds(24)), Some(seconds(100)));
        least.on_sent_after(seconds(12));
        least.on_challenge();
        assert_eq!(least.silence(), Some(seconds(24)), "half of the first is not tried");
        least.on_sent_after(seconds(40));
        least.on_challenge();
        least.on_heard_after(seconds(40));
        assert_eq!(least.silence(), Some(seconds(60)), "it was not borne before, and is now");
    }

    #[test]
    fn what_is_known_holds_until_the_path_moves_or_shows_otherwise() {
        let mut keep_alive = adaptive();
        silences(&mut keep_alive, seconds(120), 20);
        let known = keep_alive.silence().unwrap();
        // Challenges that follow no silence say nothing of NATs.
        keep_alive.on_challenge();
        keep_alive.on_sent_after(seconds(1));
        keep_alive.on_challenge();
        assert_eq!(keep_alive.silence(), Some(known));
        keep_alive.on_sent_after(seconds(100));
        keep_alive.on_unanswered();
        keep_alive.on_challenge();
        assert_eq!(keep_alive.silence(), Some(known));
        // A packet of the peer after a longer silence came through.
        keep_alive.on_heard_after(seconds(400));
        assert!(keep_alive.silence().unwrap() > seconds(400));
        // The NAT of today forgets sooner.
        silences(&mut keep_alive, seconds(60), 20);
        assert!(keep_alive.silence().unwrap() <= seconds(60));
        keep_alive.on_moved();
        assert_eq!(keep_alive.silence(), Some(seconds(25)));
    }
}
