//! Packets on their way into the tunnel.

use crate::capsule::Capsule;
use crate::importance::Importance;
use crate::order::{Numbering, Ordering};
use bytes::{Bytes, BytesMut};
use h3::quic::StreamId;
use hvq::SendDatagramError;
use hvq::transport::wire::varint;
use hvq_tun::packet::{Flows, Header};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use tokio::sync::mpsc;

/// Sends packets to the other end.
#[derive(Debug)]
pub(crate) struct Outbound {
    connection: hvq::Connection,
    /// The quarter stream ID that datagrams begin with (RFC 9297 §2.1).
    quarter: u64,
    capsules: mpsc::Sender<Bytes>,
    start: Instant,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    flows: Flows,
    importance: Importance,
    numbering: Numbering,
}

impl Outbound {
    /// Packets for the other end of the request on stream `id` of `connection`.
    pub(crate) fn new(
        connection: hvq::Connection,
        id: StreamId,
        capsules: mpsc::Sender<Bytes>,
        ordering: Ordering,
    ) -> Self {
        let state = State {
            flows: Flows::default(),
            importance: Importance::default(),
            numbering: Numbering::new(ordering),
        };
        let quarter = id.into_inner() / 4;
        Self { connection, quarter, capsules, start: Instant::now(), state: Mutex::new(state) }
    }

    /// Sends one packet as a datagram, or in a capsule if it is too large for one; a tunnel of IPv6 must carry 1280 bytes
    /// whatever its paths do (RFC 9484 §10.1). If neither has room, the packet is dropped, as a router would do.
    pub(crate) fn send(&self, packet: &[u8], header: Option<&Header>) {
        let (payload, priority) = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let flow = state.flows.of(header);
            let priority = state.importance.of(header, flow, packet.len(), self.start.elapsed());
            (state.numbering.payload(flow, packet), priority)
        };
        let mut datagram = BytesMut::with_capacity(varint::size(self.quarter) + payload.len());
        varint::encode(self.quarter, |quarter| datagram.extend_from_slice(quarter));
        datagram.extend_from_slice(&payload);
        match self.connection.send_datagram_with(datagram.freeze(), priority, None) {
            Ok(()) => {}
            Err(SendDatagramError::Refused(_)) => {
                if self.capsules.try_send(Capsule::Datagram(payload.into()).bytes()).is_err() {
                    tracing::debug!(bytes = packet.len(), "a large packet is dropped");
                }
            }
            Err(SendDatagramError::ConnectionLost(error)) => tracing::trace!(%error, "a packet is dropped"),
        }
    }
}
