//! Persistent congestion (RFC 9002 §7.6).

use crate::recovery::sent_packet::Lost;
use crate::time::Instant;
use std::time::Duration;

/// Tells whether losses cover a period so long that the window must collapse.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Persistence {
    /// They do not.
    #[default]
    Passing,
    /// They do (RFC 9002 §7.6.2).
    Persistent,
}

/// Follows runs of lost packets between which nothing was acknowledged, also when they are declared lost piecemeal.
#[derive(Clone, Copy, Debug, Default)]
pub struct PersistentCongestion {
    first_sample_at: Option<Instant>,
    /// The time at which the first ack-eliciting packet of the run left.
    run_started: Option<Instant>,
    /// The number of the last packet of the run.
    last_number: Option<u64>,
}

impl PersistentCongestion {
    /// There is a round-trip time sample: only packets sent after the first count (RFC 9002 §7.6.2).
    pub fn on_rtt_sample(&mut self, now: Instant) {
        self.first_sample_at.get_or_insert(now);
    }

    /// Judges newly lost packets against `duration`, see
    /// [`Rtt::persistent_congestion_duration`](crate::recovery::rtt::Rtt::persistent_congestion_duration).
    pub fn on_lost(&mut self, lost: &Lost, duration: Duration) -> Persistence {
        let mut verdict = Persistence::Passing;
        let Some(first_sample_at) = self.first_sample_at else { return verdict };
        for packet in &lost.packets {
            if !self.last_number.is_some_and(|last| lost.follows(last, packet.number)) {
                self.run_started = None;
            }
            self.last_number = Some(packet.number);
            //= https://www.rfc-editor.org/rfc/rfc9002#section-7.6.2
            //# These two packets MUST be ack-eliciting, since a receiver is required to acknowledge only
            //# ack-eliciting packets within its maximum acknowledgment delay; see Section 13.2 of
            //# [QUIC-TRANSPORT].
            if !packet.class.is_ack_eliciting() || packet.sent_at <= first_sample_at {
                continue;
            }
            let started = *self.run_started.get_or_insert(packet.sent_at);
            if packet.sent_at.since(started) >= duration {
                verdict = Persistence::Persistent;
                // The next verdict needs a period of its own.
                self.run_started = None;
            }
        }
        verdict
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::sent_packet::{PacketClass, SentPacket};

    fn lost(packets: &[(u64, u64)]) -> Lost {
        let packet = |&(number, seconds): &(u64, u64)| {
            let at = Instant::from_nanos(seconds * 1_000_000_000);
            SentPacket::new(number, at, 1200, PacketClass::AckEliciting)
        };
        Lost { packets: packets.iter().map(packet).collect(), ..Lost::default() }
    }

    fn sampled_at_zero() -> PersistentCongestion {
        let mut state = PersistentCongestion::default();
        state.on_rtt_sample(Instant::ZERO);
        state
    }

    const SIX_SECONDS: Duration = Duration::from_secs(6);

    #[test]
    fn the_example_of_the_rfc_is_persistent() {
        // RFC 9002 §7.6.3: packets 2 to 8 are lost, sent from 1 s to 8 s; 3 PTO are 6 s.
        let packets = [(2, 1), (3, 2), (4, 3), (5, 4), (6, 5), (7, 6), (8, 8)];
        assert_eq!(sampled_at_zero().on_lost(&lost(&packets), SIX_SECONDS), Persistence::Persistent);
    }

    #[test]
    fn a_run_may_be_declared_lost_piecemeal() {
        let mut state = sampled_at_zero();
        assert_eq!(state.on_lost(&lost(&[(2, 1), (3, 2)]), SIX_SECONDS), Persistence::Passing);
        assert_eq!(state.on_lost(&lost(&[(4, 7)]), SIX_SECONDS), Persistence::Persistent);
        assert_eq!(state.on_lost(&lost(&[(5, 8)]), SIX_SECONDS), Persistence::Passing);
    }

    #[test]
    fn an_acknowledged_packet_between_breaks_the_run() {
        // Packet 5 is missing among the lost, so it was acknowledged.
        let packets = [(2, 1), (3, 2), (4, 3), (6, 5), (7, 6), (8, 8)];
        assert_eq!(sampled_at_zero().on_lost(&lost(&packets), SIX_SECONDS), Persistence::Passing);
    }

    #[test]
    fn a_skipped_number_does_not_break_the_run() {
        let mut packets = lost(&[(2, 1), (4, 3), (5, 8)]);
        packets.skipped.push(3);
        assert_eq!(sampled_at_zero().on_lost(&packets, SIX_SECONDS), Persistence::Persistent);
    }

    #[test]
    fn packets_sent_before_the_first_sample_do_not_count() {
        let packets = lost(&[(2, 1), (3, 8)]);
        assert_eq!(PersistentCongestion::default().on_lost(&packets, SIX_SECONDS), Persistence::Passing);
        let mut late = PersistentCongestion::default();
        late.on_rtt_sample(Instant::from_nanos(1_500_000_000));
        assert_eq!(late.on_lost(&packets, SIX_SECONDS), Persistence::Passing);
    }

    //= https://www.rfc-editor.org/rfc/rfc9002#section-7.6.2
    //= type=test
    //# These two packets MUST be ack-eliciting, since a receiver is required to acknowledge only
    //# ack-eliciting packets within its maximum acknowledgment delay; see Section 13.2 of [QUIC-TRANSPORT].
    #[test]
    fn packets_that_elicit_no_acknowledgement_bound_no_period() {
        let mut packets = lost(&[(2, 1), (3, 5), (4, 8)]);
        packets.packets[2].class = PacketClass::AckOnly;
        assert_eq!(sampled_at_zero().on_lost(&packets, SIX_SECONDS), Persistence::Passing);
    }
}
