//! The frequency of acknowledgements: the peer's requests to this endpoint, and this endpoint's requests to the peer
//! (draft-ietf-quic-ack-frequency-14).
//!
//! A request holds for the connection: every path counts its own packets by it, so the delay that is asked for suits the
//! path with the shortest round trip. It never exceeds the peer's max_ack_delay, so that no timer here has to follow it.

use crate::connection::receive::violation;
use crate::error::TransportError;
use crate::path::path::Path;
use crate::path::paths::Paths;
use crate::recovery_token::RecoveryToken;
use crate::space::received::AckPolicy;
use crate::time::Instant;
use crate::wire::frame::{AckFrequency, Frame};
use crate::wire::transport_parameters::{MAX_ACK_DELAY_LIMIT, TransportParameters};
use std::time::Duration;

/// The least delay that this endpoint can keep: its timers are about as fine.
pub(super) const MIN_ACK_DELAY: Duration = Duration::from_millis(1);
/// Acknowledgements of a full window that congestion control is content with.
const PER_WINDOW: u64 = 16;
/// More packets than this are not left without an acknowledgement on purpose …
const MOST_UNACKNOWLEDGED: u64 = 10;
/// … unless the window has at least so many: then several batches of segmentation offload come at a time.
const LARGE_WINDOW: u64 = 2048;
/// Gaps are reported when a packet may be declared lost for them (RFC 9002 §6.1.1; draft §9).
const REORDERING: u64 = 3;

/// Tells whether the peer may say how often it wants acknowledgements, and is told the same.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum AckRequests {
    /// Requests are obeyed, and made if the peer obeys them.
    #[default]
    Exchanged,
    /// Every second packet is acknowledged, as in RFC 9000 §13.2.
    Off,
}

/// The latest requests of either end.
#[derive(Debug)]
pub(crate) struct AckFrequencies {
    /// Tells whether requests are exchanged at all.
    requests: AckRequests,
    /// The policy by which this endpoint acknowledges.
    policy: AckPolicy,
    /// The sequence number of the peer's request that is in force.
    obeyed: Option<u64>,
    /// The latest request to the peer.
    asked: Option<AckFrequency>,
    /// True if that must be sent, again or for the first time.
    due: bool,
    /// The time at which the request was last reviewed.
    reviewed_at: Instant,
}

impl AckFrequencies {
    /// Makes the state before anybody asked for anything: acknowledgements follow `policy`.
    pub fn new(requests: AckRequests, policy: AckPolicy) -> Self {
        Self { requests, policy, obeyed: None, asked: None, due: false, reviewed_at: Instant::ZERO }
    }

    /// Returns the policy by which paths are to acknowledge.
    pub fn policy(&self) -> AckPolicy {
        self.policy
    }

    /// ACK_FREQUENCY arrived. Returns the policy by which paths are to acknowledge, if it is news.
    ///
    /// # Errors
    /// PROTOCOL_VIOLATION if requests are not exchanged, and for a delay that cannot be.
    pub fn on_frame(&mut self, request: &AckFrequency) -> Result<Option<AckPolicy>, TransportError> {
        if self.requests == AckRequests::Off {
            return Err(violation("ACK_FREQUENCY without min_ack_delay"));
        }
        // Draft §4, RFC 9000 §18.2: neither below min_ack_delay nor 2^14 ms and more.
        let valid = MIN_ACK_DELAY..Duration::from_millis(MAX_ACK_DELAY_LIMIT);
        if !valid.contains(&request.max_delay) {
            return Err(violation("ACK_FREQUENCY with a delay that cannot be"));
        }
        Ok(self.obey(request))
    }

    /// IMMEDIATE_ACK arrived; the packet that carries it is not taken in yet.
    ///
    /// # Errors
    /// PROTOCOL_VIOLATION if requests are not exchanged.
    pub fn on_immediate_ack(&self) -> Result<(), TransportError> {
        match self.requests {
            AckRequests::Exchanged => Ok(()),
            AckRequests::Off => Err(violation("IMMEDIATE_ACK without min_ack_delay")),
        }
    }

    /// Returns true if `peer` obeys requests (draft §3).
    pub fn may_ask(&self, peer: &TransportParameters) -> bool {
        //= https://www.rfc-editor.org/rfc/rfc9000#section-19.21
        //# An extension to QUIC that wishes to use a new type of frame MUST first ensure that a peer is able
        //# to understand the frame
        self.requests == AckRequests::Exchanged && peer.min_ack_delay.is_some()
    }

    /// Asks `peer` for fewer acknowledgements while the windows of `paths` are large, once a round trip.
    pub fn review(&mut self, paths: &Paths, peer: &TransportParameters, now: Instant) {
        let Some(least) = peer.min_ack_delay.filter(|_| self.may_ask(peer)) else { return };
        let answering = || paths.open().filter(|path| !path.liveness.is_silent() && path.rtts.is_sampled());
        let Some(rtt) = answering().map(|path| path.rtt().smoothed()).min() else { return };
        if now.since(self.reviewed_at) < rtt {
            return;
        }
        self.reviewed_at = now;
        let datagrams = |path: &Path| path.route.controller.window() / path.route.datagram_size.max(1);
        let window = answering().map(datagrams).max().unwrap_or(0) as u64;
        let most = if window < LARGE_WINDOW { MOST_UNACKNOWLEDGED } else { LARGE_WINDOW / PER_WINDOW };
        let packets = (window / PER_WINDOW).clamp(2, most);
        // A quarter of a round trip, as the draft's §9 weighs it; below min_ack_delay would be a violation.
        let delay = (rtt / 4).min(peer.max_ack_delay).max(least);
        self.wish(packets, Duration::from_micros(delay.as_micros() as u64).max(least));
    }

    /// Takes the peer's request; the policy that follows, if it is news (draft §4: older requests are ignored).
    fn obey(&mut self, request: &AckFrequency) -> Option<AckPolicy> {
        if self.obeyed.is_some_and(|obeyed| request.sequence <= obeyed) {
            return None;
        }
        self.obeyed = Some(request.sequence);
        self.policy = AckPolicy {
            threshold: request.threshold.saturating_add(1),
            max_delay: request.max_delay,
            reordering: request.reordering,
        };
        Some(self.policy)
    }

    /// Asks for an acknowledgement after `packets` and after `delay`, if that is much else than what was asked before.
    fn wish(&mut self, packets: u64, delay: Duration) {
        let threshold = packets.saturating_sub(1);
        let close = |old: u128, new: u128| old <= new.saturating_mul(2) && new <= old.saturating_mul(2);
        let content = match &self.asked {
            // Every second packet at once is what the peer does unasked (RFC 9000 §13.2.2).
            None => threshold <= 1,
            Some(asked) => {
                close((asked.threshold + 1).into(), packets.into())
                    && close(asked.max_delay.as_micros(), delay.as_micros())
            }
        };
        if content {
            return;
        }
        let sequence = self.asked.map_or(0, |asked| asked.sequence + 1);
        self.asked = Some(AckFrequency { sequence, threshold, max_delay: delay, reordering: REORDERING });
        self.due = true;
    }

    /// Returns true if a request is due.
    #[inline]
    pub fn is_due(&self) -> bool {
        self.due
    }

    /// The request to send, if one is due.
    pub fn next_frame(&mut self) -> Option<(Frame, RecoveryToken)> {
        if !std::mem::take(&mut self.due) {
            return None;
        }
        let asked = self.asked?;
        Some((Frame::AckFrequency(asked), RecoveryToken::AckFrequency(asked.sequence)))
    }

    /// Request number `sequence` was lost: it is due again unless a later one was made.
    pub fn on_lost(&mut self, sequence: u64) {
        self.due |= self.asked.is_some_and(|asked| asked.sequence == sequence);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    fn request(sequence: u64, threshold: u64) -> AckFrequency {
        AckFrequency { sequence, threshold, max_delay: ms(5), reordering: 3 }
    }

    #[test]
    fn only_a_newer_request_is_obeyed() {
        // Draft §4.
        let mut frequencies = AckFrequencies::new(AckRequests::Exchanged, AckPolicy::default());
        let policy = frequencies.obey(&request(4, 9)).unwrap();
        assert_eq!(policy, AckPolicy { threshold: 10, max_delay: ms(5), reordering: 3 });
        assert_eq!(frequencies.obey(&request(4, 1)), None);
        assert_eq!(frequencies.obey(&request(3, 1)), None);
        assert_eq!(frequencies.policy(), policy);
        assert_eq!(frequencies.obey(&request(5, u64::MAX)).map(|policy| policy.threshold), Some(u64::MAX));
    }

    #[test]
    fn the_peer_is_asked_when_the_wish_changes_much_and_again_when_that_is_lost() {
        let mut frequencies = AckFrequencies::new(AckRequests::Exchanged, AckPolicy::default());
        frequencies.wish(2, ms(5));
        assert_eq!(frequencies.next_frame(), None, "that is what it does anyway");
        frequencies.wish(10, ms(5));
        let (frame, token) = frequencies.next_frame().unwrap();
        assert_eq!(frame, Frame::AckFrequency(request(0, 9)));
        frequencies.wish(9, ms(6));
        assert_eq!(frequencies.next_frame(), None);
        frequencies.on_lost(0);
        assert_eq!(frequencies.next_frame(), Some((frame, token)));
        frequencies.wish(2, ms(5));
        assert_eq!(frequencies.next_frame().map(|(_, token)| token), Some(RecoveryToken::AckFrequency(1)));
        frequencies.on_lost(0);
        assert_eq!(frequencies.next_frame(), None, "a later one replaced it");
    }
}
