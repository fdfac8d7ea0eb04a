//! Checks on the peer's transport parameters that need the history of the handshake (RFC 9000 §7.3, RFC 10069 §2).

use crate::Role;
use crate::error::{ErrorCode, TransportError};
use crate::wire::connection_id::ConnectionId;
use crate::wire::transport_parameters::TransportParameters;

/// The connection IDs that the handshake's packets carried, as this endpoint saw them.
#[derive(Clone, Copy, Debug)]
pub struct SeenIds {
    /// The destination of the client's first Initial.
    original_destination: ConnectionId,
    /// The source of the peer's first Initial after any Retry.
    peer_source: ConnectionId,
    /// The source of the Retry packet, on a client that received one.
    retry_source: Option<ConnectionId>,
}

impl SeenIds {
    /// The client's first Initial goes to `original_destination`.
    pub fn new(original_destination: ConnectionId) -> Self {
        Self { original_destination, peer_source: ConnectionId::EMPTY, retry_source: None }
    }

    /// The destination of the client's first Initial.
    pub fn original_destination(&self) -> ConnectionId {
        self.original_destination
    }

    /// The peer's first packet after any Retry came from `source`.
    pub fn on_first_packet(&mut self, source: ConnectionId) {
        self.peer_source = source;
    }

    /// A Retry came from `source`.
    pub fn on_retry(&mut self, source: ConnectionId) {
        self.retry_source = Some(source);
    }

    /// Returns true if a Retry came.
    pub fn has_retry(&self) -> bool {
        self.retry_source.is_some()
    }

    /// The destination that Initial keys follow from: the client's first, or that of the Retry it followed (RFC 9001 §5.2).
    pub fn client_destination(&self) -> ConnectionId {
        self.retry_source.unwrap_or(self.original_destination)
    }
}

/// Checks that the parameters that the peer of `role` authenticated name the connection IDs that were seen.
pub fn authenticate(
    parameters: &TransportParameters,
    role: Role,
    seen: &SeenIds,
    local_id_is_empty: bool,
) -> Result<(), TransportError> {
    let wrong = |text: &'static str| Err(ErrorCode::TRANSPORT_PARAMETER_ERROR.because(text));
    //= https://www.rfc-editor.org/rfc/rfc9000#section-7.3
    //# The values provided by a peer for these transport parameters MUST match the values that an endpoint
    //# used in the Destination and Source Connection ID fields of Initial packets that it sent
    //= https://www.rfc-editor.org/rfc/rfc9000#section-7.3
    //# An endpoint MUST treat the absence of the initial_source_connection_id transport parameter from either
    //# endpoint or the absence of the original_destination_connection_id transport parameter from the
    if parameters.initial_source_connection_id != Some(seen.peer_source) {
        return wrong("initial_source_connection_id does not match the packets");
    }
    if role == Role::Client {
        if parameters.original_destination_connection_id != Some(seen.original_destination) {
            return wrong("original_destination_connection_id does not match the packets");
        }
        //= https://www.rfc-editor.org/rfc/rfc9000#section-7.3
        //# An endpoint MUST treat the following as a connection error of type TRANSPORT_PARAMETER_ERROR or
        //# PROTOCOL_VIOLATION:
        if parameters.retry_source_connection_id != seen.retry_source {
            return wrong("retry_source_connection_id does not match the packets");
        }
    }
    //= https://www.rfc-editor.org/rfc/rfc10069#section-2.1
    //# the receiver MUST treat this as a connection error of type PROTOCOL_VIOLATION and close the
    //# connection.
    // RFC 10069 §2: an endpoint that announces multipath uses connection IDs of at least one byte, both ways.
    if parameters.initial_max_path_id.is_some() && (seen.peer_source.is_empty() || local_id_is_empty) {
        return Err(
            ErrorCode::PROTOCOL_VIOLATION.because("multipath announced with a zero-length connection ID")
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(byte: u8) -> ConnectionId {
        ConnectionId::new(&[byte; 8]).unwrap()
    }

    fn server_parameters() -> TransportParameters {
        TransportParameters {
            initial_source_connection_id: Some(id(2)),
            original_destination_connection_id: Some(id(1)),
            ..TransportParameters::default()
        }
    }

    fn seen() -> SeenIds {
        SeenIds { original_destination: id(1), peer_source: id(2), retry_source: None }
    }

    //= https://www.rfc-editor.org/rfc/rfc9000#section-7.3
    //= type=test
    //# The values provided by a peer for these transport parameters MUST match the values that an endpoint
    //# used in the Destination and Source Connection ID fields of Initial packets that it sent
    #[test]
    fn matching_ids_pass() {
        assert!(authenticate(&server_parameters(), Role::Client, &seen(), false).is_ok());
    }

    //= https://www.rfc-editor.org/rfc/rfc9000#section-7.3
    //= type=test
    //# The values provided by a peer for these transport parameters MUST match the values that an endpoint
    //# used in the Destination and Source Connection ID fields of Initial packets that it sent
    //= https://www.rfc-editor.org/rfc/rfc9000#section-7.3
    //= type=test
    //# Endpoints MUST validate that received transport parameters match received connection ID values
    //= https://www.rfc-editor.org/rfc/rfc9000#section-7.3
    //= type=test
    //# An endpoint MUST treat the absence of the initial_source_connection_id transport parameter from either
    //# endpoint or the absence of the original_destination_connection_id transport parameter from the
    //= https://www.rfc-editor.org/rfc/rfc9000#section-7.3
    //= type=test
    //# An endpoint MUST treat the following as a connection error of type TRANSPORT_PARAMETER_ERROR or
    //# PROTOCOL_VIOLATION:
    #[test]
    fn each_missing_or_wrong_id_is_a_transport_parameter_error() {
        let mut cases = vec![];
        let mut p = server_parameters();
        p.initial_source_connection_id = None;
        cases.push(p);
        let mut p = server_parameters();
        p.initial_source_connection_id = Some(id(9));
        cases.push(p);
        let mut p = server_parameters();
        p.original_destination_connection_id = None;
        cases.push(p);
        let mut p = server_parameters();
        p.retry_source_connection_id = Some(id(4));
        cases.push(p);
        for parameters in cases {
            let error = authenticate(&parameters, Role::Client, &seen(), false).unwrap_err();
            assert_eq!(error.code, ErrorCode::TRANSPORT_PARAMETER_ERROR);
        }
    }

    //= https://www.rfc-editor.org/rfc/rfc10069#section-2.1
    //= type=test
    //# the receiver MUST treat this as a connection error of type PROTOCOL_VIOLATION and close the
    //# connection.
    #[test]
    fn multipath_with_a_zero_length_id_is_a_protocol_violation() {
        let mut parameters = server_parameters();
        parameters.initial_max_path_id = Some(crate::PathId(1));
        let error = authenticate(&parameters, Role::Client, &seen(), true).unwrap_err();
        assert_eq!(error.code, ErrorCode::PROTOCOL_VIOLATION);
        let mut seen = seen();
        seen.peer_source = ConnectionId::EMPTY;
        parameters.initial_source_connection_id = Some(ConnectionId::EMPTY);
        let error = authenticate(&parameters, Role::Client, &seen, false).unwrap_err();
        assert_eq!(error.code, ErrorCode::PROTOCOL_VIOLATION);
    }
}
