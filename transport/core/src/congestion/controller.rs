//! The interface of congestion controllers.

use super::coupled::Flow;
use super::events::{LossSample, LostPacket, MarkSample, Sample, Sending, SpuriousSample};
use crate::Bandwidth;
use std::any::Any;
use std::fmt;

/// A congestion controller of one route: it is told what became of packets and says how many bytes may be in flight.
///
/// One is made for each 4-tuple of a path by a [`ControllerFactory`](super::ControllerFactory) and dropped when the path
/// moves to another (RFC 9000 §9.4). It reads no clock and draws no random numbers: the time comes with the events.
///
/// Every controller keeps this contract, which [`contract::check`](super::contract::check) tests:
///
/// - The window is never smaller than two datagrams, and at first no larger than the
///   [initial window](super::initial_window) (RFC 9002 §7.2), whatever the size of datagrams becomes.
/// - Persistent congestion reduces it to two datagrams (RFC 9002 §7.6.2).
/// - A loss or a mark never enlarges it, and losses that go on reduce the window or the rate (RFC 8085 §3.1).
/// - An application with little to send does not enlarge it (RFC 9002 §7.8), nor does an idle time.
/// - What was reduced for losses that were none comes back.
/// - A pacing rate is never zero.
/// - Equal events give equal answers, and no event panics, however extreme its numbers are.
pub trait Controller: Any + Send + fmt::Debug {
    /// A packet that counts as in flight leaves.
    fn on_sent(&mut self, _sending: &Sending) {}

    /// Packets were acknowledged.
    fn on_acknowledged(&mut self, sample: &Sample);

    /// One packet was lost; called for each, and then [`on_lost`](Self::on_lost) for all.
    fn on_packet_lost(&mut self, _packet: &LostPacket) {}

    //= https://www.rfc-editor.org/rfc/rfc9002#section-7
    //= type=implication
    //= reason=Every controller reduces its rate for congestion and none exceeds its window.
    //# If a sender uses a different controller than that specified in this document, the chosen controller
    //# MUST conform to the congestion control guidelines specified in Section 3.1 of [RFC8085].
    /// Packets were lost; losses of one round trip reduce the window once.
    fn on_lost(&mut self, sample: &LossSample);

    /// Congestion was signalled without a loss (RFC 9002 §7.1).
    fn on_ecn_ce(&mut self, sample: &MarkSample);

    /// A packet that was declared lost arrived after all.
    fn on_spurious(&mut self, sample: &SpuriousSample);

    /// Returns the state for its siblings, the other coupled controllers of the connection; `None` if it is not coupled
    /// or has nothing to show yet.
    fn flow(&self) -> Option<Flow> {
        None
    }

    /// Takes note of the state of the siblings, before every sample, if [`flow`](Self::flow) shows something.
    fn on_siblings(&mut self, _flows: &[Flow]) {}

    /// Bytes that may be in flight; never below two datagrams (RFC 9002 §7.2).
    fn window(&self) -> usize;

    /// The rate at which to send, never zero; `None` has the pacer derive it from the window, 1.25 windows a round trip
    /// (RFC 9002 §7.7).
    fn pacing_rate(&self) -> Option<Bandwidth> {
        None
    }

    /// Returns true if the controller itself holds back data that the path could carry, so that the rate samples of the
    /// packets now in flight tell as little as those of an application with too little to send.
    fn withholds(&self) -> bool {
        false
    }

    /// The name in statistics and logs, at most 15 bytes of ASCII.
    fn name(&self) -> &'static str;

    /// Returns true if the window still grows by the bytes that are acknowledged.
    fn in_slow_start(&self) -> bool;

    /// Datagrams have `datagram_size` bytes from now on (RFC 9002 §7.2).
    fn set_datagram_size(&mut self, datagram_size: usize);
}
