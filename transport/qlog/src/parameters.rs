//! Transport parameters (quic-events §4.9).

use crate::dialect::Dialect;
use hvq_transport::trace::Side;
use hvq_transport::wire::transport_parameters::{HintExchange, PartialDelivery, TransportParameters};
use serde_json::{Value, json};

/// Returns the log's form of the parameters that `side` declared. Reset tokens are not written.
pub(crate) fn value(dialect: Dialect, side: Side, parameters: &TransportParameters) -> Value {
    let side = match side {
        Side::Local => "local",
        Side::Remote => "remote",
    };
    let mut value = json!({
        "disable_active_migration": parameters.disable_active_migration,
        "max_idle_timeout": milliseconds(parameters.max_idle_timeout),
        "max_udp_payload_size": parameters.max_udp_payload_size,
        "ack_delay_exponent": parameters.ack_delay_exponent,
        "max_ack_delay": milliseconds(parameters.max_ack_delay),
        "active_connection_id_limit": parameters.active_connection_id_limit,
        "initial_max_data": parameters.initial_max_data,
        "initial_max_stream_data_bidi_local": parameters.initial_max_stream_data_bidi_local,
        "initial_max_stream_data_bidi_remote": parameters.initial_max_stream_data_bidi_remote,
        "initial_max_stream_data_uni": parameters.initial_max_stream_data_uni,
        "initial_max_streams_bidi": parameters.initial_max_streams_bidi,
        "initial_max_streams_uni": parameters.initial_max_streams_uni,
        "max_datagram_frame_size": parameters.max_datagram_frame_size,
    });
    let Value::Object(fields) = &mut value else { return value };
    let initiator = match dialect {
        Dialect::Qvis => "owner",
        Dialect::Draft => "initiator",
    };
    fields.insert(initiator.to_owned(), side.into());
    let ids = [
        ("original_destination_connection_id", parameters.original_destination_connection_id),
        ("initial_source_connection_id", parameters.initial_source_connection_id),
        ("retry_source_connection_id", parameters.retry_source_connection_id),
    ];
    for (name, id) in ids {
        if let Some(id) = id {
            fields.insert(name.to_owned(), id.to_string().into());
        }
    }
    if let Some(limit) = parameters.initial_max_path_id {
        fields.insert("initial_max_path_id".to_owned(), limit.0.into());
    }
    if parameters.path_hints == HintExchange::On {
        fields.insert("path_hints".to_owned(), true.into());
    }
    if parameters.partial_delivery == PartialDelivery::On {
        fields.insert("reset_stream_at".to_owned(), true.into());
    }
    if let Some(preferred) = &parameters.preferred_address {
        let address = json!({
            "ip_v4": preferred.ipv4.map(|address| address.ip().to_string()),
            "port_v4": preferred.ipv4.map(|address| address.port()),
            "ip_v6": preferred.ipv6.map(|address| address.ip().to_string()),
            "port_v6": preferred.ipv6.map(|address| address.port()),
            "connection_id": preferred.connection_id.to_string(),
        });
        fields.insert("preferred_address".to_owned(), address);
    }
    value
}

fn milliseconds(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
