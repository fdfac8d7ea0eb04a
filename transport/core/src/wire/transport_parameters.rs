//! Transport parameters (RFC 9000 §18, RFC 9221 §3, RFC 10069 §2, and of drafts).

mod decode;
#[cfg(test)]
mod tests;

use super::connection_id::{ConnectionId, ResetToken};
use super::grease::{Greasing, QuicBit};
use super::varint;
use super::version_information::VersionInformation;
use crate::PathId;
use crate::Role;
use rand::RngCore;
use std::net::{SocketAddrV4, SocketAddrV6};
use std::time::Duration;

/// Identifiers of transport parameters, named as in their registry.
mod parameter {
    pub(super) const ORIGINAL_DESTINATION_CONNECTION_ID: u64 = 0x00;
    pub(super) const MAX_IDLE_TIMEOUT: u64 = 0x01;
    pub(super) const STATELESS_RESET_TOKEN: u64 = 0x02;
    pub(super) const MAX_UDP_PAYLOAD_SIZE: u64 = 0x03;
    pub(super) const INITIAL_MAX_DATA: u64 = 0x04;
    pub(super) const INITIAL_MAX_STREAM_DATA_BIDI_LOCAL: u64 = 0x05;
    pub(super) const INITIAL_MAX_STREAM_DATA_BIDI_REMOTE: u64 = 0x06;
    pub(super) const INITIAL_MAX_STREAM_DATA_UNI: u64 = 0x07;
    pub(super) const INITIAL_MAX_STREAMS_BIDI: u64 = 0x08;
    pub(super) const INITIAL_MAX_STREAMS_UNI: u64 = 0x09;
    pub(super) const ACK_DELAY_EXPONENT: u64 = 0x0a;
    pub(super) const MAX_ACK_DELAY: u64 = 0x0b;
    pub(super) const DISABLE_ACTIVE_MIGRATION: u64 = 0x0c;
    pub(super) const PREFERRED_ADDRESS: u64 = 0x0d;
    pub(super) const ACTIVE_CONNECTION_ID_LIMIT: u64 = 0x0e;
    pub(super) const INITIAL_SOURCE_CONNECTION_ID: u64 = 0x0f;
    pub(super) const RETRY_SOURCE_CONNECTION_ID: u64 = 0x10;
    pub(super) const VERSION_INFORMATION: u64 = 0x11;
    pub(super) const RESET_STREAM_AT: u64 = 0x1d;
    pub(super) const MAX_DATAGRAM_FRAME_SIZE: u64 = 0x20;
    pub(super) const INITIAL_MAX_PATH_ID: u64 = 0x3e;
    pub(super) const MIN_ACK_DELAY: u64 = 0xff04_de1b;
    pub(super) const GREASE_QUIC_BIT: u64 = 0x2ab2;
    pub(super) const PATH_HINTS: u64 = 0x1d6b_52e4;
}

/// The smallest `max_udp_payload_size` (RFC 9000 §18.2).
pub(crate) const MIN_UDP_PAYLOAD_SIZE: u64 = 1200;
/// The largest `ack_delay_exponent` (RFC 9000 §18.2).
pub(crate) const MAX_ACK_DELAY_EXPONENT: u8 = 20;
/// The first `max_ack_delay` that is too large, in milliseconds (RFC 9000 §18.2).
pub(crate) const MAX_ACK_DELAY_LIMIT: u64 = 1 << 14;
/// The most streams of one kind: a stream ID must fit in a varint (RFC 9000 §4.6).
pub(crate) const MAX_STREAMS: u64 = 1 << 60;

/// The transport parameters that one endpoint declares in the handshake. `Default` is what the absence of each
/// parameter means.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TransportParameters {
    /// Server only: the destination of the client's first Initial packet.
    pub original_destination_connection_id: Option<ConnectionId>,
    /// The connection ends when nothing arrives for this long; zero means never. Whole milliseconds on the wire.
    pub max_idle_timeout: Duration,
    /// Server only: the reset token of the connection ID used in the handshake.
    pub stateless_reset_token: Option<ResetToken>,
    /// The largest UDP payload that it is willing to receive, in bytes, at least 1200.
    pub max_udp_payload_size: u64,
    /// The initial limit of bytes on all streams together.
    pub initial_max_data: u64,
    /// The initial limit of bytes on a bidirectional stream opened by the endpoint that sends this.
    pub initial_max_stream_data_bidi_local: u64,
    /// The initial limit of bytes on a bidirectional stream opened by the endpoint that receives this.
    pub initial_max_stream_data_bidi_remote: u64,
    /// The initial limit of bytes on a unidirectional stream opened by the endpoint that receives this.
    pub initial_max_stream_data_uni: u64,
    /// The number of bidirectional streams that the receiver of this may open at first, at most 2^60.
    pub initial_max_streams_bidi: u64,
    /// The number of unidirectional streams that the receiver of this may open at first, at most 2^60.
    pub initial_max_streams_uni: u64,
    /// The delay in ACK frames is in units of 2 to this power microseconds; at most 20.
    pub ack_delay_exponent: u8,
    /// The longest time by which acknowledgements are delayed, below 2^14 ms. Rounded up to milliseconds on the wire.
    pub max_ack_delay: Duration,
    /// True if the receiver of this must not migrate away from the address of the handshake.
    pub disable_active_migration: bool,
    /// Server only: the address to move to after the handshake.
    pub preferred_address: Option<Box<PreferredAddress>>,
    /// The number of connection IDs that it stores, at least 2; with multipath, per path.
    pub active_connection_id_limit: u64,
    /// The source connection ID of its first Initial packet.
    pub initial_source_connection_id: Option<ConnectionId>,
    /// Server only: the source connection ID of its Retry packet.
    pub retry_source_connection_id: Option<ConnectionId>,
    /// The largest DATAGRAM frame that it accepts, type and length included; 0 means none (RFC 9221 §3).
    pub max_datagram_frame_size: u64,
    /// The highest path ID that it accepts; absent means no multipath (RFC 10069 §2.1).
    pub initial_max_path_id: Option<PathId>,
    /// The version that it uses, and those that it could (RFC 9368 §3).
    pub version_information: Option<VersionInformation>,
    /// The least delay of acknowledgements that it can keep, if it accepts ACK_FREQUENCY frames; at most
    /// `max_ack_delay`. Whole microseconds on the wire (draft-ietf-quic-ack-frequency-14 §3).
    pub min_ack_delay: Option<Duration>,
    /// The values that the QUIC bit may have in packets sent to it (grease_quic_bit, RFC 9287 §3).
    pub quic_bit: QuicBit,
    /// The use of PATH_HINTS frames: it takes and sends them if the other end does, too (docs/spec/path-hints.md §3).
    pub path_hints: HintExchange,
    /// The support for receiving RESET_STREAM_AT frames (draft-ietf-quic-reliable-stream-reset §3).
    pub partial_delivery: PartialDelivery,
}

/// The delivery of the first bytes of streams that are reset (draft-ietf-quic-reliable-stream-reset).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum PartialDelivery {
    /// RESET_STREAM_AT frames are not taken.
    #[default]
    Off,
    /// RESET_STREAM_AT frames are taken.
    On,
}

/// The exchange of hints about paths (docs/spec/path-hints.md).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum HintExchange {
    /// PATH_HINTS frames are neither sent nor taken.
    #[default]
    Off,
    /// PATH_HINTS frames are sent and taken, if the other end takes part.
    On,
}

impl Default for TransportParameters {
    fn default() -> Self {
        Self {
            original_destination_connection_id: None,
            max_idle_timeout: Duration::ZERO,
            stateless_reset_token: None,
            max_udp_payload_size: 65527,
            initial_max_data: 0,
            initial_max_stream_data_bidi_local: 0,
            initial_max_stream_data_bidi_remote: 0,
            initial_max_stream_data_uni: 0,
            initial_max_streams_bidi: 0,
            initial_max_streams_uni: 0,
            ack_delay_exponent: 3,
            max_ack_delay: Duration::from_millis(25),
            disable_active_migration: false,
            preferred_address: None,
            active_connection_id_limit: 2,
            initial_source_connection_id: None,
            retry_source_connection_id: None,
            max_datagram_frame_size: 0,
            initial_max_path_id: None,
            version_information: None,
            min_ack_delay: None,
            quic_bit: QuicBit::Fixed,
            path_hints: HintExchange::Off,
            partial_delivery: PartialDelivery::Off,
        }
    }
}

/// The preferred address of a server (RFC 9000 §9.6, §18.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PreferredAddress {
    /// Its IPv4 address, if it has one.
    pub ipv4: Option<SocketAddrV4>,
    /// Its IPv6 address, if it has one.
    pub ipv6: Option<SocketAddrV6>,
    /// The connection ID with sequence number 1, never empty.
    pub connection_id: ConnectionId,
    /// The reset token of that connection ID.
    pub stateless_reset_token: ResetToken,
}

impl PreferredAddress {
    fn put(&self, buf: &mut Vec<u8>) {
        let (ip, port) = self.ipv4.map_or(([0; 4], 0), |address| (address.ip().octets(), address.port()));
        buf.extend_from_slice(&ip);
        buf.extend_from_slice(&port.to_be_bytes());
        let (ip, port) = self.ipv6.map_or(([0; 16], 0), |address| (address.ip().octets(), address.port()));
        buf.extend_from_slice(&ip);
        buf.extend_from_slice(&port.to_be_bytes());
        buf.push(self.connection_id.len() as u8);
        buf.extend_from_slice(self.connection_id.as_slice());
        buf.extend_from_slice(&self.stateless_reset_token.0);
    }
}

impl TransportParameters {
    /// The extension that `sender` puts in its TLS message. Parameters with their default value are left out, as are
    /// those that only a server may send if `sender` is the client. With greasing, one reserved parameter (RFC 9000 §18.1)
    /// with random content keeps the peer used to unknown ones.
    pub fn encode(&self, sender: Role, greasing: Greasing, rng: &mut impl RngCore) -> Vec<u8> {
        //= https://www.rfc-editor.org/rfc/rfc9000#section-7.4
        //= type=implication
        //= reason=Each parameter is written in one place, and the reserved one has a number of its own.
        //# An endpoint MUST NOT send a parameter more than once in a given transport parameters extension
        let mut buf = Vec::with_capacity(192);
        self.put_integers(&mut buf);
        if self.disable_active_migration {
            put_bytes(&mut buf, parameter::DISABLE_ACTIVE_MIGRATION, &[]);
        }
        if let Some(id) = &self.initial_source_connection_id {
            put_bytes(&mut buf, parameter::INITIAL_SOURCE_CONNECTION_ID, id.as_slice());
        }
        if let Some(information) = &self.version_information {
            let mut value = Vec::with_capacity(16);
            information.put(&mut value);
            put_bytes(&mut buf, parameter::VERSION_INFORMATION, &value);
        }
        if self.quic_bit == QuicBit::Free {
            put_bytes(&mut buf, parameter::GREASE_QUIC_BIT, &[]);
        }
        if self.path_hints == HintExchange::On {
            put_bytes(&mut buf, parameter::PATH_HINTS, &[]);
        }
        self.put_partial_delivery(&mut buf);
        //= https://www.rfc-editor.org/rfc/rfc9000#section-18.2
        //# This transport parameter MUST NOT be sent by a client but MAY be sent by a server
        //= https://www.rfc-editor.org/rfc/rfc9000#section-18.2
        //# A client MUST NOT include any server-only transport parameter: original_destination_connection_id,
        //# preferred_address, retry_source_connection_id, or stateless_reset_token
        if sender == Role::Server {
            self.put_server_only(&mut buf);
        }
        if greasing == Greasing::On {
            put_reserved(&mut buf, rng);
        }
        buf
    }

    /// Returns the parameters that a client remembers for 0-RTT on a later connection, the rest being the default (RFC
    /// 9000 §7.4.1, RFC 9221 §3). The parameters of multipath are not remembered (RFC 10069 §2.1).
    pub fn remembered(&self) -> Self {
        Self {
            max_idle_timeout: self.max_idle_timeout,
            max_udp_payload_size: self.max_udp_payload_size,
            initial_max_data: self.initial_max_data,
            initial_max_stream_data_bidi_local: self.initial_max_stream_data_bidi_local,
            initial_max_stream_data_bidi_remote: self.initial_max_stream_data_bidi_remote,
            initial_max_stream_data_uni: self.initial_max_stream_data_uni,
            initial_max_streams_bidi: self.initial_max_streams_bidi,
            initial_max_streams_uni: self.initial_max_streams_uni,
            disable_active_migration: self.disable_active_migration,
            active_connection_id_limit: self.active_connection_id_limit,
            //= https://www.rfc-editor.org/rfc/rfc10069#section-2.1
            //# The initial_max_path_id parameter MUST NOT be remembered for use in a subsequent connection
            //# (Section 7.4.1 of [QUIC-TRANSPORT]).
            //= https://www.rfc-editor.org/rfc/rfc9000#section-7.4.1
            //# A client MUST NOT use remembered values for the following parameters: ack_delay_exponent,
            //# max_ack_delay, initial_source_connection_id, original_destination_connection_id
            max_datagram_frame_size: self.max_datagram_frame_size,
            // Draft-ietf-quic-reliable-stream-reset §3: both ends remember it.
            partial_delivery: self.partial_delivery,
            ..Self::default()
        }
    }

    /// [`Self::remembered`] as it is kept with a ticket: the same bytes for the same values.
    pub fn encode_remembered(&self) -> Vec<u8> {
        let (remembered, mut buf) = (self.remembered(), Vec::with_capacity(64));
        remembered.put_integers(&mut buf);
        if remembered.disable_active_migration {
            put_bytes(&mut buf, parameter::DISABLE_ACTIVE_MIGRATION, &[]);
        }
        remembered.put_partial_delivery(&mut buf);
        buf
    }

    /// Returns true if a limit is lower than in `remembered`, so that 0-RTT data may have exceeded it (RFC 9000
    /// §7.4.1).
    pub fn lowers(&self, remembered: &Self) -> bool {
        let limits = |parameters: &Self| {
            [
                parameters.initial_max_data,
                parameters.initial_max_stream_data_bidi_local,
                parameters.initial_max_stream_data_bidi_remote,
                parameters.initial_max_stream_data_uni,
                parameters.initial_max_streams_bidi,
                parameters.initial_max_streams_uni,
                parameters.active_connection_id_limit,
                parameters.max_datagram_frame_size,
                // Draft-ietf-quic-reliable-stream-reset §3: who accepts 0-RTT does not disable it.
                u64::from(parameters.partial_delivery == PartialDelivery::On),
            ]
        };
        limits(self).iter().zip(limits(remembered)).any(|(now, before)| *now < before)
    }

    fn put_partial_delivery(&self, buf: &mut Vec<u8>) {
        if self.partial_delivery == PartialDelivery::On {
            put_bytes(buf, parameter::RESET_STREAM_AT, &[]);
        }
    }

    fn put_integers(&self, buf: &mut Vec<u8>) {
        let absent = Self::default();
        for (id, value, default) in
            self.integers().into_iter().zip(absent.integers()).map(|(a, b)| (a.0, a.1, b.1))
        {
            if value != default {
                put_integer(buf, id, value);
            }
        }
        //= https://www.rfc-editor.org/rfc/rfc10069#section-2.1
        //# This value MUST NOT exceed 2^32-1, the maximum allowed value for the path ID due to restrictions
        //# on the nonce calculation (see Section 2.4).
        if let Some(path) = self.initial_max_path_id {
            put_integer(buf, parameter::INITIAL_MAX_PATH_ID, u64::from(path.0));
        }
        if let Some(delay) = self.min_ack_delay {
            let micros = delay.as_micros().min(varint::MAX.into()) as u64;
            put_integer(buf, parameter::MIN_ACK_DELAY, micros);
        }
    }

    /// Identifier and value of the parameters that are an integer with a default.
    fn integers(&self) -> [(u64, u64); 12] {
        // A timeout of less than a millisecond must not become "none"; a promised delay must not shrink.
        let milliseconds =
            |duration: Duration| duration.as_nanos().div_ceil(1_000_000).min(varint::MAX.into()) as u64;
        [
            (parameter::MAX_IDLE_TIMEOUT, milliseconds(self.max_idle_timeout)),
            (parameter::MAX_UDP_PAYLOAD_SIZE, self.max_udp_payload_size),
            (parameter::INITIAL_MAX_DATA, self.initial_max_data),
            (parameter::INITIAL_MAX_STREAM_DATA_BIDI_LOCAL, self.initial_max_stream_data_bidi_local),
            (parameter::INITIAL_MAX_STREAM_DATA_BIDI_REMOTE, self.initial_max_stream_data_bidi_remote),
            (parameter::INITIAL_MAX_STREAM_DATA_UNI, self.initial_max_stream_data_uni),
            (parameter::INITIAL_MAX_STREAMS_BIDI, self.initial_max_streams_bidi),
            (parameter::INITIAL_MAX_STREAMS_UNI, self.initial_max_streams_uni),
            (parameter::ACK_DELAY_EXPONENT, u64::from(self.ack_delay_exponent)),
            (parameter::MAX_ACK_DELAY, milliseconds(self.max_ack_delay)),
            (parameter::ACTIVE_CONNECTION_ID_LIMIT, self.active_connection_id_limit),
            (parameter::MAX_DATAGRAM_FRAME_SIZE, self.max_datagram_frame_size),
        ]
    }

    fn put_server_only(&self, buf: &mut Vec<u8>) {
        if let Some(id) = &self.original_destination_connection_id {
            put_bytes(buf, parameter::ORIGINAL_DESTINATION_CONNECTION_ID, id.as_slice());
        }
        if let Some(token) = &self.stateless_reset_token {
            put_bytes(buf, parameter::STATELESS_RESET_TOKEN, &token.0);
        }
        if let Some(address) = &self.preferred_address {
            let mut value = Vec::with_capacity(61);
            address.put(&mut value);
            put_bytes(buf, parameter::PREFERRED_ADDRESS, &value);
        }
        if let Some(id) = &self.retry_source_connection_id {
            put_bytes(buf, parameter::RETRY_SOURCE_CONNECTION_ID, id.as_slice());
        }
    }
}

fn put_bytes(buf: &mut Vec<u8>, id: u64, value: &[u8]) {
    varint::put(buf, id);
    varint::put(buf, value.len() as u64);
    buf.extend_from_slice(value);
}

fn put_integer(buf: &mut Vec<u8>, id: u64, value: u64) {
    varint::put(buf, id);
    varint::put(buf, varint::size(value) as u64);
    varint::put(buf, value);
}

/// A parameter of the form 31 * N + 27, which has no meaning (RFC 9000 §18.1), with 0 to 7 random bytes.
fn put_reserved(buf: &mut Vec<u8>, rng: &mut impl RngCore) {
    let n = rng.next_u64() % ((varint::MAX - 27) / 31);
    let value = rng.next_u64().to_be_bytes();
    let length = value.first().map_or(0, |&byte| usize::from(byte & 7));
    put_bytes(buf, 31 * n + 27, value.get(..length).unwrap_or_default());
}
