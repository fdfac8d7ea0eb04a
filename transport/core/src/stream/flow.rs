//! Flow control (RFC 9000 §4): the credit to send, and the window that is granted to the peer.

use crate::time::Instant;
use std::time::Duration;

/// One over the share of a window that may wait behind a gap before the window grows. With a quarter the quick one of two unequal links
/// had used up the rest before a larger limit arrived.
const GAP_SHARE: u64 = 8;

/// The credit that the peer gives this endpoint to send, on a stream or in sum.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SendCredit {
    limit: u64,
    used: u64,
}

impl SendCredit {
    /// Credit up to `limit` bytes.
    pub fn new(limit: u64) -> Self {
        Self { limit, used: 0 }
    }

    /// The limit, in bytes from the start.
    pub fn limit(self) -> u64 {
        self.limit
    }

    /// Bytes sent so far, repetitions not counted.
    pub fn used(self) -> u64 {
        self.used
    }

    /// Bytes that may be sent now.
    pub fn available(self) -> u64 {
        self.limit - self.used
    }

    /// `bytes` were sent for the first time.
    pub fn consume(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.available(), "the caller sends within the credit");
        self.used = self.limit.min(self.used + bytes);
    }

    /// The peer permits `limit`; whether that is more than before. Less is ignored (RFC 9000 §4.1).
    pub fn raise(&mut self, limit: u64) -> bool {
        //= https://www.rfc-editor.org/rfc/rfc9000#section-4.1
        //# A sender MUST ignore any MAX_STREAM_DATA or MAX_DATA frames that do not increase flow control
        //# limits.
        //= https://www.rfc-editor.org/rfc/rfc9000#section-13.3
        //# A receiver MUST accept packets containing an outdated frame, such as a MAX_DATA frame carrying a
        //# smaller maximum data value than one found in an older packet.
        let raised = limit > self.limit;
        self.limit = self.limit.max(limit);
        raised
    }
}

/// The window that this endpoint gives the peer to send, on a stream or in sum.
///
/// The window doubles, up to a maximum, whenever half of it is consumed within two round trips, or the peer says that it
/// had to wait: then it, and not the network, is what limits the peer. Round trips alone do not tell: a receiver that
/// sends little, and that over another path, knows nothing of the queue in which the data waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReceiveWindow {
    limit: u64,
    received: u64,
    consumed: u64,
    window: u64,
    max_window: u64,
    /// The most that the last grant might have been.
    ceiling: u64,
    renewed_at: Option<Instant>,
    held_up: HeldUp,
}

/// Tells whether the peer said that the window held it up, since the window was last renewed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum HeldUp {
    /// It did not.
    #[default]
    No,
    /// It did, although the application had read all that it could.
    Yes,
}

impl ReceiveWindow {
    /// A window of `window` bytes that grows to at most `max_window`.
    pub fn new(window: u64, max_window: u64) -> Self {
        Self {
            limit: window,
            received: 0,
            consumed: 0,
            window,
            max_window: max_window.max(window),
            ceiling: u64::MAX,
            renewed_at: None,
            held_up: HeldUp::No,
        }
    }

    /// The peer is granted no more than `limit` bytes at first. To be called before it is told.
    pub fn begin_with(&mut self, limit: u64) {
        if limit < self.limit {
            self.limit = limit;
            self.ceiling = limit;
        }
    }

    /// The peer waits for more than `limit` (RFC 9000 §19.13), although the application has read all that it could.
    pub fn on_blocked(&mut self, limit: u64) {
        // One that was overtaken by a whole window says nothing of this one.
        if limit <= self.limit && self.limit - limit <= self.window {
            self.held_up = HeldUp::Yes;
        }
    }

    /// `bytes` arrived behind a gap. Returns true if the window doubles, because they are more than an eighth of it.
    ///
    /// Nothing is read before the gap is filled, and until then the peer sends within what is left. On one path a gap lasts for a
    /// round trip. On several it lasts for as long as the slowest of them takes: the buffer that keeps all of them busy is twice
    /// the sum of their rates times the longest round trip (RFC 6182 §5.3).
    pub fn on_gap(&mut self, bytes: u64) -> bool {
        let before = self.window;
        if bytes > before / GAP_SHARE {
            self.window = before.saturating_mul(2).min(self.max_window);
        }
        self.window > before
    }

    /// A window of at least `window` bytes from the next renewal on, as far as the maximum permits.
    pub fn ensure(&mut self, window: u64) {
        self.window = self.window.max(window.min(self.max_window));
    }

    /// Makes `window` the size of the window and its maximum, from the next renewal on.
    pub fn set_max(&mut self, window: u64) {
        (self.window, self.max_window) = (window, window);
    }

    /// The limit that the peer knows or is about to be told.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// The highest offset that arrived, or the sum of those.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Bytes that left the buffer, or never entered it.
    pub fn consumed(&self) -> u64 {
        self.consumed
    }

    /// Bytes that the peer may still send.
    pub fn room(&self) -> u64 {
        self.limit - self.received
    }

    /// The size of the window.
    pub fn window(&self) -> u64 {
        self.window
    }

    /// The highest offset grew by `bytes`, at most [`Self::room`].
    pub fn receive(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.room(), "the caller checked the limit");
        self.received = self.limit.min(self.received + bytes);
    }

    /// `bytes` of what was received left the buffer.
    pub fn consume(&mut self, bytes: u64) {
        debug_assert!(self.consumed + bytes <= self.received, "only what arrived is consumed");
        self.consumed = self.received.min(self.consumed + bytes);
    }

    /// Returns true if the peer has at most half of the window left, or of what it was granted of it, counted from the bytes
    /// consumed.
    pub fn renewal_is_due(&self) -> bool {
        self.limit - self.consumed <= self.window.min(self.ceiling) / 2
    }

    /// Renews the window if that is due, and grants `most` bytes of it; the limit to announce. What was granted before stays.
    pub fn renew(&mut self, most: u64, now: Instant, rtt: Duration) -> u64 {
        if self.renewal_is_due() {
            let quick = self.renewed_at.is_some_and(|before| now.since(before) < rtt * 2);
            if quick || std::mem::take(&mut self.held_up) == HeldUp::Yes {
                self.window = self.window.saturating_mul(2).min(self.max_window);
            }
            self.renewed_at = Some(now);
            self.ceiling = most;
            let grant = self.window.min(most);
            self.limit = self.limit.max(self.consumed.saturating_add(grant).min(crate::wire::varint::MAX));
        }
        self.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(50);

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn pass(window: &mut ReceiveWindow, bytes: u64) {
        window.receive(bytes);
        window.consume(bytes);
    }

    //= https://www.rfc-editor.org/rfc/rfc9000#section-4.1
    //= type=test
    //# A sender MUST ignore any MAX_STREAM_DATA or MAX_DATA frames that do not increase flow control limits.
    #[test]
    fn a_smaller_limit_changes_nothing() {
        let mut credit = SendCredit::new(100);
        credit.consume(60);
        assert!(!credit.raise(80) && !credit.raise(100));
        assert_eq!(credit.available(), 40);
        assert!(credit.raise(101));
        assert_eq!((credit.available(), credit.used()), (41, 60));
    }

    //= https://www.rfc-editor.org/rfc/rfc9000#section-4.2
    //= type=test
    //# Therefore, a receiver MUST NOT wait for a STREAM_DATA_BLOCKED or DATA_BLOCKED frame before sending a
    //# MAX_STREAM_DATA or MAX_DATA frame
    #[test]
    fn a_window_is_renewed_when_half_of_it_is_consumed() {
        let mut window = ReceiveWindow::new(1000, 1000);
        window.receive(800);
        window.consume(499);
        assert!(!window.renewal_is_due());
        assert_eq!(window.renew(u64::MAX, at(0), RTT), 1000);
        window.consume(1);
        assert!(window.renewal_is_due());
        assert_eq!(window.renew(u64::MAX, at(0), RTT), 1500);
        assert_eq!(window.room(), 700);
    }

    #[test]
    fn a_window_that_empties_within_two_round_trips_doubles_up_to_the_maximum() {
        let mut window = ReceiveWindow::new(1000, 3000);
        pass(&mut window, 500);
        window.renew(u64::MAX, at(0), RTT);
        assert_eq!(window.window(), 1000);
        pass(&mut window, 500);
        window.renew(u64::MAX, at(99), RTT);
        assert_eq!((window.window(), window.limit()), (2000, 3000));
        pass(&mut window, 1000);
        window.renew(u64::MAX, at(300), RTT);
        assert_eq!(window.window(), 2000, "slow consumption needs no larger window");
        pass(&mut window, 1000);
        window.renew(u64::MAX, at(310), RTT);
        assert_eq!(window.window(), 3000);
    }

    #[test]
    fn a_window_that_lasts_for_two_round_trips_is_large_enough() {
        let mut window = ReceiveWindow::new(1000, 3000);
        pass(&mut window, 500);
        window.renew(u64::MAX, at(0), RTT);
        pass(&mut window, 500);
        window.renew(u64::MAX, at(100), RTT);
        assert_eq!(window.window(), 1000);
    }

    #[test]
    fn the_whole_window_at_first_is_no_restraint() {
        let mut window = ReceiveWindow::new(1000, 3000);
        window.begin_with(1000);
        assert!(!window.renewal_is_due());
        window.ensure(2500);
        assert!(window.renewal_is_due(), "what was granted is less than half of what the window is now");
    }

    #[test]
    fn a_window_that_holds_the_peer_up_doubles_however_long_it_lasts() {
        let mut window = ReceiveWindow::new(1000, 3000);
        pass(&mut window, 600);
        window.renew(u64::MAX, at(0), RTT);
        window.on_blocked(1600);
        pass(&mut window, 900);
        assert_eq!((window.renew(u64::MAX, at(500), RTT), window.window()), (3500, 2000));
        pass(&mut window, 1100);
        assert_eq!(
            (window.renew(u64::MAX, at(1500), RTT), window.window()),
            (4600, 2000),
            "once for each report"
        );
        // RFC 9000 §4.1: reports are no commands; those that are overtaken or make no sense change nothing.
        for limit in [2599, 4601, u64::MAX] {
            window.on_blocked(limit);
        }
        pass(&mut window, 1100);
        window.renew(u64::MAX, at(2500), RTT);
        assert_eq!(window.window(), 2000);
    }

    #[test]
    fn a_grant_may_be_less_than_the_window_and_takes_nothing_back() {
        let mut window = ReceiveWindow::new(1000, 1000);
        window.begin_with(600);
        assert_eq!(window.room(), 600);
        window.receive(600);
        window.consume(299);
        assert!(!window.renewal_is_due());
        window.consume(1);
        assert_eq!(window.renew(u64::MAX, at(0), RTT), 1300, "half of what was granted is consumed");
        window.receive(700);
        window.consume(500);
        assert_eq!(window.renew(200, at(500), RTT), 1300, "the limit does not fall");
        assert!(!window.renewal_is_due(), "nor is it announced with every byte");
        window.consume(400);
        assert!(window.renewal_is_due());
        assert_eq!(window.renew(200, at(1000), RTT), 1400);
        window.receive(100);
        window.consume(199);
        assert_eq!(window.renew(u64::MAX, at(1500), RTT), 2399, "the window is what it was");
    }

    #[test]
    fn a_window_is_widened_as_far_as_its_maximum_permits() {
        let mut window = ReceiveWindow::new(1000, 3000);
        window.ensure(2500);
        assert_eq!((window.window(), window.limit()), (2500, 1000));
        window.ensure(500);
        window.ensure(9000);
        assert_eq!(window.window(), 3000);
    }
}
