//! Datagrams (RFC 9221): short messages that arrive once, late, or never.

use crate::address::{hvq_buffer, hvq_bytes};
use crate::error::{Failure, HVQ_ERR_NONE, HVQ_ERR_NOT_NEGOTIATED, HVQ_ERR_TOO_LARGE, hvq_result};
use crate::guard;
use crate::state::{hvq_endpoint, with_connection};
use crate::stream::priority;
use bytes::Bytes;
use hvq_transport::datagram::DatagramError;
use hvq_transport::time::Instant;

/// A datagram to send.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hvq_datagram {
    /// Its bytes, which are copied.
    pub bytes: hvq_bytes,
    /// It is dropped if it is not sent by then; HVQ_NEVER for no such time.
    pub deadline: u64,
    /// 0 (most urgent) to 7; 3 is the default.
    pub urgency: u32,
    /// 0.
    pub reserved: u32,
}

/// Queues a datagram.
///
/// Errors: `HVQ_ERR_NULL`, `HVQ_ERR_ARGUMENT`, `HVQ_ERR_BUSY`, `HVQ_ERR_UNKNOWN_CONNECTION`, `HVQ_ERR_NOT_NEGOTIATED` if the
/// peer accepts none, `HVQ_ERR_TOO_LARGE` if it is larger than `max_datagram_size` of hvq_connection_info.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_datagram_send(
    endpoint: *mut hvq_endpoint,
    connection: u64,
    datagram: *const hvq_datagram,
) -> hvq_result {
    on_connection!(endpoint, connection, |core| {
        // SAFETY: the caller passes a valid struct.
        let given = unsafe { guard::reference(datagram) }?;
        // SAFETY: it points to that many bytes.
        let data = Bytes::copy_from_slice(unsafe { given.bytes.get() }?);
        let deadline = (given.deadline != u64::MAX).then(|| Instant::from_nanos(given.deadline));
        let sent = core.send_datagram(data, priority(given.urgency, 0)?, deadline);
        sent.map(|_| ()).map_err(|error| match error {
            DatagramError::Unsupported => Failure::because(HVQ_ERR_NOT_NEGOTIATED, error),
            DatagramError::TooLarge { .. } => Failure::because(HVQ_ERR_TOO_LARGE, error),
        })
    })
}

/// Copies the next datagram that arrived into the room of `buffer`. 65535 bytes are always enough; a datagram that does
/// not fit is lost.
///
/// Errors: `HVQ_ERR_NULL`, `HVQ_ERR_BUSY`, `HVQ_ERR_UNKNOWN_CONNECTION`, `HVQ_ERR_TOO_SMALL`, `HVQ_ERR_NONE` if there is none;
/// `HVQ_EVENT_DATAGRAM` follows.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_datagram_receive(
    endpoint: *mut hvq_endpoint,
    connection: u64,
    buffer: *mut hvq_buffer,
) -> hvq_result {
    on_connection!(endpoint, connection, |core| {
        guard::check(buffer)?;
        let data = core.receive_datagram().ok_or(HVQ_ERR_NONE)?;
        // SAFETY: the caller passes a struct that points to its room.
        unsafe { hvq_buffer::fill(buffer, &data) }
    })
}
