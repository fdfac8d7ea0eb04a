//! One choke point for input: every frame received goes to its owner here.

use crate::PathId;
use crate::connection::receive::{Origin, violation};
use crate::connection::{Connection, Event, Role};
use crate::error::{ConnectionError, ErrorCode, TransportError};
use crate::time::Instant;
use crate::trace::TraceEvent;
use crate::wire::frame::{Ack, ConnectionClose, Frame, Stream, types};
use crate::wire::frame::{
    AckingFrame, CloseFrame, DatagramFrame, HandshakeFrame, Owned, PacketFrame, StreamFrame,
};
use crate::wire::level::Level;
use crate::wire::transport_parameters::PartialDelivery;

impl Connection {
    /// Hands `frame` to its owner.
    pub(in crate::connection) fn on_frame(
        &mut self,
        origin: &Origin,
        frame: Frame,
        now: Instant,
    ) -> Result<(), TransportError> {
        let frame_type = frame.frame_type();
        self.observer.count_received(origin.path, types::name(frame_type));
        if let Some(tracer) = self.observer.tracer() {
            tracer.record(now, &TraceEvent::FrameReceived { path: origin.path, kind: frame.kind() });
        }
        self.dispatch(origin, frame, now)
            .map_err(|error| if error.frame_type == 0 { error.in_frame(frame_type) } else { error })
    }

    fn dispatch(&mut self, origin: &Origin, frame: Frame, now: Instant) -> Result<(), TransportError> {
        let frame = match frame {
            // Most frames: to move them once more costs as much as to find their owner.
            Frame::Stream(stream) => return on_stream(self, origin, stream),
            Frame::Ack(ack) => return self.on_ack_frame(origin, &ack, now),
            frame => frame,
        };
        match frame.into_owned() {
            Owned::Packet(PacketFrame::Padding(_) | PacketFrame::Ping) => Ok(()),
            Owned::Streams(frame) => self.on_stream_frame(origin, frame),
            Owned::Datagrams(DatagramFrame::Datagram(data)) => {
                self.memory.bound_datagrams(&self.streams, &mut self.datagrams);
                self.datagrams.on_datagram(data)
            }
            Owned::Acknowledgements(frame) => self.on_acking_frame(origin, frame, now),
            Owned::Handshake(frame) => self.on_handshake_frame(origin, frame, now),
            Owned::Close(CloseFrame::ConnectionClose(close)) => {
                self.end_by_peer(peer_error(close), now);
                Ok(())
            }
            Owned::Paths(frame) => self.path_maintenance().on_path_frame(origin, frame, now),
        }
    }

    fn on_stream_frame(&mut self, origin: &Origin, frame: StreamFrame) -> Result<(), TransportError> {
        match frame {
            StreamFrame::Stream(stream) => on_stream(self, origin, stream),
            StreamFrame::ResetStream(reset) => self.streams.on_reset_stream(reset),
            StreamFrame::ResetStreamAt(reset) => {
                if self.config.partial_delivery == PartialDelivery::Off {
                    return Err(ErrorCode::FRAME_ENCODING_ERROR.because("RESET_STREAM_AT was not offered"));
                }
                self.streams.on_reset_stream_at(reset)
            }
            StreamFrame::StopSending(stop) => self.streams.on_stop_sending(stop),
            StreamFrame::MaxData(limit) => self.streams.on_max_data(limit),
            StreamFrame::MaxStreamData { id, limit } => self.streams.on_max_stream_data(id, limit),
            StreamFrame::MaxStreams { direction, limit } => self.streams.on_max_streams(direction, limit),
            StreamFrame::DataBlocked(limit) => self.streams.on_data_blocked(limit),
            StreamFrame::StreamDataBlocked { id, limit } => self.streams.on_stream_data_blocked(id, limit),
            StreamFrame::StreamsBlocked { direction, limit } => {
                self.streams.on_streams_blocked(direction, limit)
            }
        }
    }

    fn on_acking_frame(
        &mut self,
        origin: &Origin,
        frame: AckingFrame,
        now: Instant,
    ) -> Result<(), TransportError> {
        match frame {
            AckingFrame::Ack(ack) => self.on_ack_frame(origin, &ack, now),
            AckingFrame::AckFrequency(request) => {
                if let Some(policy) = self.control.ack_frequencies.on_frame(&request)? {
                    self.paths.open_mut().for_each(|path| path.received.set_policy(policy));
                }
                Ok(())
            }
            AckingFrame::ImmediateAck => self.control.ack_frequencies.on_immediate_ack(),
        }
    }

    fn on_handshake_frame(
        &mut self,
        origin: &Origin,
        frame: HandshakeFrame,
        now: Instant,
    ) -> Result<(), TransportError> {
        match frame {
            HandshakeFrame::Crypto(crypto) => self.handshake.on_crypto(self.role, origin.level, crypto, now),
            HandshakeFrame::NewToken(_) if self.role == Role::Server => {
                //= https://www.rfc-editor.org/rfc/rfc9000#section-19.7
                //# A server MUST treat receipt of a NEW_TOKEN frame as a connection error of type
                //# PROTOCOL_VIOLATION.
                Err(violation("a client sent NEW_TOKEN"))
            }
            HandshakeFrame::NewToken(token) => {
                if self.control.tokens.on_frame(&token)? {
                    self.events.push(Event::NewToken(token));
                }
                Ok(())
            }
            HandshakeFrame::HandshakeDone if self.role == Role::Server => {
                //= https://www.rfc-editor.org/rfc/rfc9000#section-19.20
                //# A server MUST treat receipt of a HANDSHAKE_DONE frame as a connection error of type
                //# PROTOCOL_VIOLATION.
                Err(violation("a client sent HANDSHAKE_DONE"))
            }
            HandshakeFrame::HandshakeDone => {
                self.handshake_driver().confirm();
                Ok(())
            }
        }
    }

    fn on_ack_frame(&mut self, origin: &Origin, ack: &Ack, now: Instant) -> Result<(), TransportError> {
        if origin.level != Level::OneRtt {
            return self.loss_recovery().on_long_ack(origin.level, ack, now);
        }
        if let Some(of) = ack.path {
            self.paths.limits.validate(of)?;
        }
        //= https://www.rfc-editor.org/rfc/rfc10069#section-2.3
        //# Endpoints MUST still process ACK frames that acknowledge 0-RTT packets or 1-RTT packets
        let of = ack.path.unwrap_or(PathId::ZERO);
        let one_rtt = of != PathId::ZERO || self.zero_rtt.is_one_rtt(ack.largest);
        if self.role == Role::Client && !self.lifecycle.is_confirmed() && one_rtt {
            // RFC 9001 §4.1.2: an acknowledged 1-RTT packet confirms the handshake too; a 0-RTT packet does not.
            self.handshake_driver().confirm();
        }
        self.loss_recovery().on_path_ack(of, origin.path, ack, now)
    }
}

fn on_stream(connection: &mut Connection, origin: &Origin, stream: Stream) -> Result<(), TransportError> {
    let id = stream.id;
    connection.streams.on_stream(stream)?;
    if origin.level == Level::ZeroRtt {
        connection.zero_rtt.note_stream(id);
    }
    Ok(())
}

/// The error that the application is told of when the peer says `close`.
fn peer_error(close: ConnectionClose) -> ConnectionError {
    match close {
        ConnectionClose::Transport { code, frame_type, reason } => {
            ConnectionError::PeerTransport(TransportError {
                code,
                frame_type,
                reason: String::from_utf8_lossy(&reason).into_owned().into(),
            })
        }
        ConnectionClose::Application { code, reason } => {
            ConnectionError::PeerApplication { code, reason: String::from_utf8_lossy(&reason).into_owned() }
        }
    }
}
