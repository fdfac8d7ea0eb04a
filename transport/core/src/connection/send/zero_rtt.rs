//! 0-RTT packets of a client, and what a server sends before the handshake is complete.

use crate::PathId;
use crate::connection::Role;
use crate::connection::lifecycle::Lifecycle;
use crate::connection::send::Sender;
use crate::connection::send::packet_builder::{PacketForm, PacketStart};
use crate::connection::send::transmission_round::TransmissionRound;
use crate::time::Instant;

impl Sender<'_> {
    /// Returns true if application data may leave before the handshake is complete: a client's in 0-RTT packets, a
    /// server's in answer to them in 1-RTT packets.
    fn may_send_zero_rtt(&self) -> bool {
        //= https://www.rfc-editor.org/rfc/rfc9000#section-7.4.1
        //# When sending frames in 0-RTT packets, a client MUST only use remembered transport parameters;
        //# importantly
        let client = self.zero_rtt.sealer().is_some() && !self.peer.is_known();
        let server = self.role == Role::Server
            && self.keys.are_installed()
            && self.lifecycle == Lifecycle::Handshaking
            && self.zero_rtt.is_in_use();
        client || server
    }

    /// Queues datagrams with data that does not wait for the handshake.
    pub(in crate::connection) fn send_zero_rtt(&mut self, now: Instant) {
        if !self.may_send_zero_rtt() {
            return;
        }
        let mut round = TransmissionRound::new(self.zero_rtt_views(now), now);
        self.run_zero_rtt_scheduler(&mut round);
        self.complete_round(round);
    }

    /// Returns the number, destination and form of the next 0-RTT packet.
    pub(in crate::connection) fn next_zero_rtt_packet(&mut self) -> Option<PacketStart> {
        self.zero_rtt.sealer()?;
        let version = self.handshake.negotiation.original();
        let path = self.paths.get_mut(PathId::ZERO)?;
        Some(PacketStart {
            number: path.sent.next_number(self.rng.get()),
            largest_acknowledged: path.sent.largest_acknowledged(),
            destination: self.handshake.ids.remote(),
            form: PacketForm::ZeroRtt { version, source: self.handshake.ids.local },
            marking: path.route.ecn.marking(),
        })
    }
}
