//! Packets on their way into the tunnel.

use crate::capsule::Capsule;
use crate::importance::Importance;
use crate::order::{Numbering, Ordering};
use crate::too_big::{self, Answers, Remedy, Room};
use bytes::{Bytes, BytesMut};
use hvq::StreamId;
use hvq::transport::datagram::DatagramError;
use hvq::transport::wire::varint;
use hvq::{Priority, SendDatagramError};
use hvq_emulation::tun::packet::{Flows, Header};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use tokio::sync::mpsc;

/// The number of bytes by which the number of a packet may become longer while a flow lasts: a sender that was told a
/// size is told it for good.
const NUMBER_GROWTH: usize = 4;

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
    answers: Answers,
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
            answers: Answers::default(),
        };
        let quarter = id.0 / 4;
        Self { connection, quarter, capsules, start: Instant::now(), state: Mutex::new(state) }
    }

    /// Sends one packet as a datagram. One that fits in none is treated as a router does it, with what is to be said to its
    /// sender as the result; a tunnel of IPv6 must carry 1280 bytes whatever its paths do (RFC 9484 §10.1), and does so on the
    /// stream if need be.
    #[must_use = "the sender wants to know"]
    pub(crate) fn send(&self, packet: &[u8], header: Option<&Header>) -> Option<Vec<u8>> {
        let now = self.start.elapsed();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let flow = state.flows.of(header);
        let priority = state.importance.of(header, flow, packet.len(), now);
        let payload = state.numbering.payload(flow, packet);
        let room = self.offer(&payload, payload.len() - packet.len(), priority)?;
        match too_big::judge(packet, header, room) {
            Remedy::Capsule => {
                if self.capsules.try_send(Capsule::Datagram(payload.into()).bytes()).is_err() {
                    tracing::debug!(bytes = packet.len(), "a large packet is dropped");
                }
                return None;
            }
            remedy => {
                // The number goes to the next one, or the other end would wait for this.
                state.numbering.take_back(flow);
                match remedy {
                    Remedy::Answer(answer) => return state.answers.permit(now).then_some(answer),
                    Remedy::Fragments(pieces) => {
                        for piece in pieces {
                            let payload = state.numbering.payload(flow, &piece);
                            let _narrower = self.offer(&payload, payload.len() - piece.len(), priority);
                        }
                    }
                    _ => tracing::debug!(bytes = packet.len(), "a large packet is dropped"),
                }
            }
        }
        None
    }

    /// Sends `payload`, of which `before` bytes are no packet, unless it fits in no datagram: then the result is how large a
    /// packet may be.
    fn offer(&self, payload: &[u8], before: usize, priority: Priority) -> Option<Room> {
        let around = varint::size(self.quarter);
        let mut datagram = BytesMut::with_capacity(around + payload.len());
        varint::encode(self.quarter, |quarter| datagram.extend_from_slice(quarter));
        datagram.extend_from_slice(payload);
        let fit = |size: usize| size.saturating_sub(around + before + NUMBER_GROWTH);
        match self.connection.send_datagram_with(datagram.freeze(), priority, None) {
            Ok(()) => None,
            Err(SendDatagramError::Refused(DatagramError::TooLarge { max, later })) => {
                Some(Room { now: fit(max), later: fit(later) })
            }
            // Everything goes on the stream.
            Err(SendDatagramError::Refused(DatagramError::Unsupported)) => {
                Some(Room { now: usize::MAX, later: usize::MAX })
            }
            Err(SendDatagramError::ConnectionLost(error)) => {
                tracing::trace!(%error, "a packet is dropped");
                None
            }
        }
    }
}
