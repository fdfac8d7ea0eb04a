//! Reading transport parameters, which arrive from a peer that may not be authenticated yet.

use super::{
    HintExchange, MAX_ACK_DELAY_EXPONENT, MAX_ACK_DELAY_LIMIT, MAX_STREAMS, MIN_UDP_PAYLOAD_SIZE,
    PartialDelivery, PreferredAddress, TransportParameters, parameter,
};
use crate::PathId;
use crate::Role;
use crate::error::{ErrorCode, TransportError};
use crate::wire::connection_id::{ConnectionId, ResetToken};
use crate::wire::cursor::{SliceReader, Truncated};
use crate::wire::grease::QuicBit;
use crate::wire::version_information::VersionInformation;
use std::collections::BTreeSet;
use std::net::{SocketAddrV4, SocketAddrV6};
use std::time::Duration;

/// The error of a parameter.
struct DecodeError(&'static str);

impl From<Truncated> for DecodeError {
    fn from(_: Truncated) -> Self {
        Self("is truncated")
    }
}

impl TransportParameters {
    /// Reads the extension that `sender` sent. Unknown parameters are ignored (RFC 9000 §7.4.2).
    ///
    /// TRANSPORT_PARAMETER_ERROR if the bytes end early, a parameter comes twice (known or not), a client sends one
    /// that is the server's, or a value is not permitted (RFC 9000 §7.4, §18.2, RFC 10069 §2.1).
    pub fn decode(sender: Role, bytes: &[u8]) -> Result<Self, TransportError> {
        let mut parameters = Self::default();
        let mut reader = SliceReader::new(bytes);
        let mut seen = BTreeSet::new();
        while !reader.is_empty() {
            let (id, value) = next_parameter(&mut reader).map_err(|_| {
                ErrorCode::TRANSPORT_PARAMETER_ERROR.because("transport parameters are truncated")
            })?;
            let error = if !seen.insert(id) {
                Some(DecodeError("is duplicated"))
            //= https://www.rfc-editor.org/rfc/rfc9000#section-18.2
            //# A server MUST treat receipt of any of these transport parameters as a connection error of type
            //# TRANSPORT_PARAMETER_ERROR.
            } else if sender == Role::Client && is_server_only(id) {
                Some(DecodeError("must not come from a client"))
            } else {
                parameters.set(id, value).and_then(|()| parameters.check_versions(sender)).err()
            };
            //= https://www.rfc-editor.org/rfc/rfc9000#section-7.4
            //# An endpoint MUST treat receipt of a transport parameter with an invalid value as a connection
            //# error of type TRANSPORT_PARAMETER_ERROR.
            if let Some(DecodeError(what)) = error {
                let reason = format!("transport parameter {id:#x} {what}");
                return Err(ErrorCode::TRANSPORT_PARAMETER_ERROR.because(reason));
            }
        }
        // Draft-ietf-quic-ack-frequency-14 §3.
        if parameters.min_ack_delay.is_some_and(|least| least > parameters.max_ack_delay) {
            return Err(ErrorCode::TRANSPORT_PARAMETER_ERROR.because("min_ack_delay exceeds max_ack_delay"));
        }
        Ok(parameters)
    }

    /// RFC 9368 §4: a client could speak the version that it chose.
    fn check_versions(&self, sender: Role) -> Result<(), DecodeError> {
        match &self.version_information {
            Some(information)
                if sender == Role::Client && !information.available.contains(&information.chosen) =>
            {
                Err(DecodeError("does not list the chosen version"))
            }
            _ => Ok(()),
        }
    }

    fn set(&mut self, id: u64, value: &[u8]) -> Result<(), DecodeError> {
        match id {
            parameter::ORIGINAL_DESTINATION_CONNECTION_ID => {
                self.original_destination_connection_id = Some(connection_id(value)?);
            }
            parameter::MAX_IDLE_TIMEOUT => self.max_idle_timeout = Duration::from_millis(integer(value)?),
            parameter::STATELESS_RESET_TOKEN => self.stateless_reset_token = Some(reset_token(value)?),
            parameter::MAX_UDP_PAYLOAD_SIZE => {
                self.max_udp_payload_size = at_least(MIN_UDP_PAYLOAD_SIZE, integer(value)?)?;
            }
            parameter::INITIAL_MAX_DATA => self.initial_max_data = integer(value)?,
            parameter::INITIAL_MAX_STREAM_DATA_BIDI_LOCAL => {
                self.initial_max_stream_data_bidi_local = integer(value)?;
            }
            parameter::INITIAL_MAX_STREAM_DATA_BIDI_REMOTE => {
                self.initial_max_stream_data_bidi_remote = integer(value)?;
            }
            parameter::INITIAL_MAX_STREAM_DATA_UNI => self.initial_max_stream_data_uni = integer(value)?,
            parameter::INITIAL_MAX_STREAMS_BIDI => {
                //= https://www.rfc-editor.org/rfc/rfc9000#section-4.6
                //# If either is received, the connection MUST be closed immediately with a connection error
                //# of type TRANSPORT_PARAMETER_ERROR
                self.initial_max_streams_bidi = at_most(MAX_STREAMS, integer(value)?)?;
            }
            parameter::INITIAL_MAX_STREAMS_UNI => {
                self.initial_max_streams_uni = at_most(MAX_STREAMS, integer(value)?)?;
            }
            parameter::ACK_DELAY_EXPONENT => {
                self.ack_delay_exponent = at_most(MAX_ACK_DELAY_EXPONENT.into(), integer(value)?)? as u8;
            }
            parameter::MAX_ACK_DELAY => {
                self.max_ack_delay =
                    Duration::from_millis(at_most(MAX_ACK_DELAY_LIMIT - 1, integer(value)?)?);
            }
            parameter::DISABLE_ACTIVE_MIGRATION => self.disable_active_migration = empty(value)?,
            parameter::PREFERRED_ADDRESS => {
                self.preferred_address = Some(Box::new(preferred_address(value)?))
            }
            parameter::ACTIVE_CONNECTION_ID_LIMIT => {
                //= https://www.rfc-editor.org/rfc/rfc9000#section-18.2
                //# An endpoint that receives a value less than 2 MUST close the connection with an error of
                //# type TRANSPORT_PARAMETER_ERROR
                self.active_connection_id_limit = at_least(2, integer(value)?)?;
            }
            parameter::INITIAL_SOURCE_CONNECTION_ID => {
                self.initial_source_connection_id = Some(connection_id(value)?);
            }
            parameter::RETRY_SOURCE_CONNECTION_ID => {
                self.retry_source_connection_id = Some(connection_id(value)?)
            }
            _ => self.set_extension(id, value)?,
        }
        Ok(())
    }

    /// Takes a parameter that is none of RFC 9000.
    fn set_extension(&mut self, id: u64, value: &[u8]) -> Result<(), DecodeError> {
        match id {
            parameter::MAX_DATAGRAM_FRAME_SIZE => self.max_datagram_frame_size = integer(value)?,
            parameter::VERSION_INFORMATION => {
                self.version_information = Some(VersionInformation::read(value).map_err(DecodeError)?);
            }
            parameter::MIN_ACK_DELAY => self.min_ack_delay = Some(Duration::from_micros(integer(value)?)),
            parameter::GREASE_QUIC_BIT => {
                empty(value)?;
                self.quic_bit = QuicBit::Free;
            }
            parameter::PATH_HINTS => {
                empty(value)?;
                self.path_hints = HintExchange::On;
            }
            parameter::RESET_STREAM_AT => {
                empty(value)?;
                self.partial_delivery = PartialDelivery::On;
            }
            parameter::INITIAL_MAX_PATH_ID => self.initial_max_path_id = Some(path_id(value)?),
            //= https://www.rfc-editor.org/rfc/rfc9000#section-7.4.2
            //# An endpoint MUST ignore transport parameters that it does not support
            _ => {}
        }
        Ok(())
    }
}

fn next_parameter<'a>(reader: &mut SliceReader<'a>) -> Result<(u64, &'a [u8]), Truncated> {
    Ok((reader.varint()?, reader.prefixed()?))
}

fn is_server_only(id: u64) -> bool {
    matches!(
        id,
        parameter::ORIGINAL_DESTINATION_CONNECTION_ID
            | parameter::STATELESS_RESET_TOKEN
            | parameter::PREFERRED_ADDRESS
            | parameter::RETRY_SOURCE_CONNECTION_ID
    )
}

/// Reads a value that must end where `read` ends.
fn exactly<'a, T>(
    value: &'a [u8],
    read: impl FnOnce(&mut SliceReader<'a>) -> Result<T, Truncated>,
) -> Result<T, DecodeError> {
    let mut reader = SliceReader::new(value);
    let read = read(&mut reader)?;
    if reader.is_empty() { Ok(read) } else { Err(DecodeError("is too long")) }
}

fn integer(value: &[u8]) -> Result<u64, DecodeError> {
    exactly(value, SliceReader::varint)
}

fn at_least(least: u64, value: u64) -> Result<u64, DecodeError> {
    if value >= least { Ok(value) } else { Err(DecodeError("is too small")) }
}

fn at_most(most: u64, value: u64) -> Result<u64, DecodeError> {
    if value <= most { Ok(value) } else { Err(DecodeError("is too large")) }
}

/// A parameter that says what it says by being there.
fn empty(value: &[u8]) -> Result<bool, DecodeError> {
    if value.is_empty() { Ok(true) } else { Err(DecodeError("is not empty")) }
}

fn connection_id(value: &[u8]) -> Result<ConnectionId, DecodeError> {
    ConnectionId::new(value).ok_or(DecodeError("is too long"))
}

fn reset_token(value: &[u8]) -> Result<ResetToken, DecodeError> {
    exactly(value, SliceReader::array).map(ResetToken)
}

fn path_id(value: &[u8]) -> Result<PathId, DecodeError> {
    //= https://www.rfc-editor.org/rfc/rfc10069#section-2.1
    //# If an initial_max_path_id transport parameter value higher than 2^32-1 is received, the receiver MUST
    //# close the connection with an error of type TRANSPORT_PARAMETER_ERROR.
    u32::try_from(integer(value)?).map(PathId).map_err(|_| DecodeError("is too large"))
}

fn preferred_address(value: &[u8]) -> Result<PreferredAddress, DecodeError> {
    let (ipv4, ipv6, id, token) = exactly(value, |reader| {
        let ipv4 = SocketAddrV4::new(reader.array::<4>()?.into(), reader.u16()?);
        let ipv6 = SocketAddrV6::new(reader.array::<16>()?.into(), reader.u16()?, 0, 0);
        let length = usize::from(reader.u8()?);
        Ok((ipv4, ipv6, reader.bytes(length)?, reader.array()?))
    })?;
    //= https://www.rfc-editor.org/rfc/rfc9000#section-18.2
    //# A client MUST treat a violation of these requirements as a connection error of type
    //# TRANSPORT_PARAMETER_ERROR.
    if id.is_empty() {
        return Err(DecodeError("has an empty connection ID"));
    }
    Ok(PreferredAddress {
        // All zeros stand for "none" (RFC 9000 §18.2).
        ipv4: Some(ipv4).filter(|ipv4| !ipv4.ip().is_unspecified() || ipv4.port() != 0),
        ipv6: Some(ipv6).filter(|ipv6| !ipv6.ip().is_unspecified() || ipv6.port() != 0),
        connection_id: connection_id(id)?,
        stateless_reset_token: ResetToken(token),
    })
}
