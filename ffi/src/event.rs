//! Events as C sees them.

use crate::address::hvq_bytes;
use crate::output::*;
use crate::path::{HVQ_STATUS_AVAILABLE, HVQ_STATUS_BACKUP};
use crate::stream::{HVQ_BIDIRECTIONAL, HVQ_UNIDIRECTIONAL};
use hvq_transport::connection::{Event, PathEvent};
use hvq_transport::error::ConnectionError;
use hvq_transport::stream::{Direction, StreamEvent};
use hvq_transport::wire::frame::Status;
use std::ptr;

/// No event.
pub(crate) fn no_event() -> hvq_event {
    hvq_event {
        kind: 0,
        path: 0,
        connection: 0,
        stream: 0,
        code: 0,
        direction: 0,
        status: 0,
        closed: 0,
        reserved: 0,
        bytes: hvq_bytes { data: ptr::null(), length: 0 },
    }
}

/// An event; its bytes are kept in `bytes`.
pub(crate) fn event_of(connection: u64, event: &Event, bytes: &mut Vec<u8>) -> hvq_event {
    let blank = hvq_event { connection, ..no_event() };
    let kind = |kind| hvq_event { kind, ..blank };
    match event {
        Event::Connected => kind(HVQ_EVENT_CONNECTED),
        Event::EarlyData => kind(HVQ_EVENT_EARLY_DATA),
        Event::Confirmed => kind(HVQ_EVENT_CONFIRMED),
        Event::Stream(event) => stream_event(blank, event),
        Event::DatagramReceived => kind(HVQ_EVENT_DATAGRAM),
        Event::NewToken(token) => {
            *bytes = token.to_vec();
            hvq_event { bytes: lent(bytes), ..kind(HVQ_EVENT_TOKEN) }
        }
        Event::Path(event) => path_event(blank, event),
        Event::Closed(error) => {
            let (closed, code) = closed_of(error);
            *bytes = error.to_string().into_bytes();
            hvq_event { closed, code, bytes: lent(bytes), ..kind(HVQ_EVENT_CLOSED) }
        }
        Event::Forgotten => kind(HVQ_EVENT_FORGOTTEN),
    }
}

fn lent(bytes: &[u8]) -> hvq_bytes {
    hvq_bytes { data: bytes.as_ptr(), length: bytes.len() }
}

/// The number of a direction.
pub(crate) fn direction_of(direction: Direction) -> u32 {
    match direction {
        Direction::Bidirectional => HVQ_BIDIRECTIONAL,
        Direction::Unidirectional => HVQ_UNIDIRECTIONAL,
    }
}

fn stream_event(blank: hvq_event, event: &StreamEvent) -> hvq_event {
    let on = |kind, stream: u64| hvq_event { kind, stream, ..blank };
    match *event {
        StreamEvent::Opened { direction } => {
            hvq_event { direction: direction_of(direction), ..on(HVQ_EVENT_STREAM_OPENED, 0) }
        }
        StreamEvent::Readable(id) => on(HVQ_EVENT_STREAM_READABLE, id.0),
        StreamEvent::Writable(id) => on(HVQ_EVENT_STREAM_WRITABLE, id.0),
        StreamEvent::Finished(id) => on(HVQ_EVENT_STREAM_FINISHED, id.0),
        StreamEvent::Stopped { id, code } => hvq_event { code, ..on(HVQ_EVENT_STREAM_STOPPED, id.0) },
        StreamEvent::Available { direction } => {
            hvq_event { direction: direction_of(direction), ..on(HVQ_EVENT_STREAMS_AVAILABLE, 0) }
        }
    }
}

fn path_event(blank: hvq_event, event: &PathEvent) -> hvq_event {
    let (kind, path) = match event {
        PathEvent::Opened(path) => (HVQ_EVENT_PATH_OPENED, path.0),
        PathEvent::Validated(path) => (HVQ_EVENT_PATH_VALIDATED, path.0),
        PathEvent::ValidationFailed(path) => (HVQ_EVENT_PATH_FAILED, path.0),
        PathEvent::Migrated(path) => (HVQ_EVENT_PATH_MIGRATED, path.0),
        PathEvent::MigrationFailed(path) => (HVQ_EVENT_PATH_MIGRATION_FAILED, path.0),
        PathEvent::Silent(path) => (HVQ_EVENT_PATH_SILENT, path.0),
        PathEvent::Answering(path) => (HVQ_EVENT_PATH_ANSWERING, path.0),
        PathEvent::PeerStatus(path, _) => (HVQ_EVENT_PATH_STATUS, path.0),
        PathEvent::PeerHints(path) => (HVQ_EVENT_PATH_HINTS, path.0),
        PathEvent::Abandoned { path, .. } => (HVQ_EVENT_PATH_ABANDONED, path.0),
        PathEvent::Available => (HVQ_EVENT_PATH_AVAILABLE, 0),
    };
    let mut shown = hvq_event { kind, path, ..blank };
    match event {
        PathEvent::PeerStatus(_, Status::Available) => shown.status = HVQ_STATUS_AVAILABLE,
        PathEvent::PeerStatus(_, Status::Backup) => shown.status = HVQ_STATUS_BACKUP,
        PathEvent::Abandoned { code, .. } => shown.code = *code,
        _ => {}
    }
    shown
}

fn closed_of(error: &ConnectionError) -> (u32, u64) {
    match error {
        ConnectionError::LocallyClosed { code } => (HVQ_CLOSED_LOCALLY, *code),
        ConnectionError::Transport(error) => (HVQ_CLOSED_BY_ERROR, error.code.0),
        ConnectionError::PeerTransport(error) => (HVQ_CLOSED_BY_PEER_ERROR, error.code.0),
        ConnectionError::PeerApplication { code, .. } => (HVQ_CLOSED_BY_PEER, *code),
        ConnectionError::IdleTimeout => (HVQ_CLOSED_IDLE, 0),
        ConnectionError::HandshakeTimeout => (HVQ_CLOSED_HANDSHAKE_TIMEOUT, 0),
        ConnectionError::StatelessReset => (HVQ_CLOSED_RESET, 0),
        ConnectionError::VersionMismatch => (HVQ_CLOSED_VERSION, 0),
    }
}
