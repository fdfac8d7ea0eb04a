//! Paths (RFC 10069).
//!
//! A connection begins on path 0. A client opens more, each over a route of its own; all of them carry data of the same
//! connection. A path is named by its connection and its number, which is never used twice.

use crate::address::hvq_route;
use crate::bridge::{hints_of, nanos, standing_of};
use crate::config::hvq_hints;
use crate::counters::name;
use crate::error::{
    Failure, HVQ_ERR_ARGUMENT, HVQ_ERR_FORBIDDEN, HVQ_ERR_LAST_PATH, HVQ_ERR_LIMIT, HVQ_ERR_NO_CONNECTION_ID,
    HVQ_ERR_NOT_CLIENT, HVQ_ERR_NOT_CONNECTED, HVQ_ERR_NOT_NEGOTIATED, HVQ_ERR_TOO_SMALL,
    HVQ_ERR_UNKNOWN_PATH, hvq_result,
};
use crate::guard;
use crate::state::{hvq_endpoint, look, with_connection};
use crate::stream::checked;
use crate::transport::{algorithm, dscp};
use hvq_scheduler::{Bandwidth, PathId};
use hvq_transport::connection::{MigrateError, Moving, OpenPathError, PathCommandError, PathStats};
use hvq_transport::time::Instant;
use hvq_transport::wire::frame::Status;
use std::ffi::c_char;
use std::time::Duration;

/// The path may be used.
pub const HVQ_STATUS_AVAILABLE: u32 = 0;
/// The path should only be used when no available one is left.
pub const HVQ_STATUS_BACKUP: u32 = 1;

/// A path of a connection.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct hvq_path {
    /// The number of the connection.
    pub connection: u64,
    /// The number of the path.
    pub id: u32,
    /// 0.
    pub reserved: u32,
}

fn command_failure(error: PathCommandError) -> Failure {
    match error {
        PathCommandError::UnknownPath => HVQ_ERR_UNKNOWN_PATH.into(),
        PathCommandError::NotNegotiated => HVQ_ERR_NOT_NEGOTIATED.into(),
        PathCommandError::NoConnectionId => HVQ_ERR_NO_CONNECTION_ID.into(),
        PathCommandError::LastPath => HVQ_ERR_LAST_PATH.into(),
    }
}

/// Opens a path at time `now` and writes its number. Data flows on it at once; `HVQ_EVENT_PATH_VALIDATED` or
/// `HVQ_EVENT_PATH_FAILED` follows.
///
/// Errors: `HVQ_ERR_NULL`, `HVQ_ERR_ARGUMENT`, `HVQ_ERR_BUSY`, `HVQ_ERR_UNKNOWN_CONNECTION`, `HVQ_ERR_NOT_CLIENT`,
/// `HVQ_ERR_NOT_CONNECTED`, `HVQ_ERR_NOT_NEGOTIATED`, `HVQ_ERR_FORBIDDEN`; `HVQ_ERR_LIMIT` and `HVQ_ERR_NO_CONNECTION_ID`, after
/// which `HVQ_EVENT_PATH_AVAILABLE` may tell when to try again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_path_open(
    endpoint: *mut hvq_endpoint,
    connection: u64,
    route: *const hvq_route,
    now: u64,
    path: *mut hvq_path,
) -> hvq_result {
    on_connection!(endpoint, connection, |core| {
        guard::check(path)?;
        // SAFETY: the caller passes a valid struct.
        let tuple = unsafe { guard::reference(route) }?.decode()?;
        let opened = core.open_path(tuple, Instant::from_nanos(now));
        let id = opened.map_err(|error| match error {
            OpenPathError::NotClient => HVQ_ERR_NOT_CLIENT,
            OpenPathError::NotConnected => HVQ_ERR_NOT_CONNECTED,
            OpenPathError::NotNegotiated => HVQ_ERR_NOT_NEGOTIATED,
            OpenPathError::LimitReached => HVQ_ERR_LIMIT,
            OpenPathError::Disabled => HVQ_ERR_FORBIDDEN,
            OpenPathError::NoConnectionId => HVQ_ERR_NO_CONNECTION_ID,
        })?;
        // SAFETY: the caller lets it be written.
        unsafe { guard::put(path, hvq_path { connection, id: id.0, reserved: 0 }) }
    })
}

/// Gives up a path with a code (RFC 10069 §4.2) at time `now`. Data in flight on it goes over others.
///
/// Errors: `HVQ_ERR_NULL`, `HVQ_ERR_BUSY`, `HVQ_ERR_UNKNOWN_CONNECTION`, `HVQ_ERR_UNKNOWN_PATH`, `HVQ_ERR_NOT_NEGOTIATED`,
/// `HVQ_ERR_LAST_PATH`, `HVQ_ERR_ARGUMENT` for a code above 2^62 - 1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_path_abandon(
    endpoint: *mut hvq_endpoint,
    path: hvq_path,
    code: u64,
    now: u64,
) -> hvq_result {
    on_connection!(endpoint, path.connection, |core| {
        let abandoned = core.abandon_path(PathId(path.id), checked(code)?, Instant::from_nanos(now));
        abandoned.map_err(command_failure)
    })
}

/// The new addresses are used once the server has answered there, and the old ones until then.
pub const HVQ_MOVE_VALIDATED: u32 = 0;
/// The new addresses are used now, because the old ones are gone.
pub const HVQ_MOVE_AT_ONCE: u32 = 1;

/// Moves a path to another route at time `now`: `moving` is HVQ_MOVE_VALIDATED or HVQ_MOVE_AT_ONCE.
/// `HVQ_EVENT_PATH_MIGRATED` or `HVQ_EVENT_PATH_MIGRATION_FAILED` follows.
///
/// Errors: `HVQ_ERR_NULL`, `HVQ_ERR_ARGUMENT`, also if it is there already, `HVQ_ERR_BUSY`, `HVQ_ERR_UNKNOWN_CONNECTION`,
/// `HVQ_ERR_UNKNOWN_PATH`, `HVQ_ERR_NOT_CLIENT`, `HVQ_ERR_NOT_CONNECTED`, `HVQ_ERR_FORBIDDEN`, `HVQ_ERR_NO_CONNECTION_ID`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_path_migrate(
    endpoint: *mut hvq_endpoint,
    path: hvq_path,
    route: *const hvq_route,
    moving: u32,
    now: u64,
) -> hvq_result {
    on_connection!(endpoint, path.connection, |core| {
        let moving = match moving {
            HVQ_MOVE_VALIDATED => Moving::Validated,
            HVQ_MOVE_AT_ONCE => Moving::AtOnce,
            _ => return Err(Failure::because(HVQ_ERR_ARGUMENT, "neither HVQ_MOVE_VALIDATED nor _AT_ONCE")),
        };
        // SAFETY: the caller passes a valid struct.
        let tuple = unsafe { guard::reference(route) }?.decode()?;
        let moved = core.migrate(PathId(path.id), tuple, moving, Instant::from_nanos(now));
        moved.map(|_| ()).map_err(|error| match error {
            MigrateError::NotClient => HVQ_ERR_NOT_CLIENT.into(),
            MigrateError::NotConfirmed => HVQ_ERR_NOT_CONNECTED.into(),
            MigrateError::UnknownPath => HVQ_ERR_UNKNOWN_PATH.into(),
            MigrateError::SameAddresses => Failure::because(HVQ_ERR_ARGUMENT, error),
            MigrateError::Disabled => HVQ_ERR_FORBIDDEN.into(),
            MigrateError::NoConnectionId => HVQ_ERR_NO_CONNECTION_ID.into(),
        })
    })
}

/// Tells the peer whether it should use a path: `HVQ_STATUS_AVAILABLE` or `HVQ_STATUS_BACKUP`.
///
/// Errors: `HVQ_ERR_NULL`, `HVQ_ERR_ARGUMENT`, `HVQ_ERR_BUSY`, `HVQ_ERR_UNKNOWN_CONNECTION`, `HVQ_ERR_UNKNOWN_PATH`,
/// `HVQ_ERR_NOT_NEGOTIATED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_path_set_status(
    endpoint: *mut hvq_endpoint,
    path: hvq_path,
    status: u32,
) -> hvq_result {
    on_connection!(endpoint, path.connection, |core| {
        let status = match status {
            HVQ_STATUS_AVAILABLE => Status::Available,
            HVQ_STATUS_BACKUP => Status::Backup,
            _ => return Err(Failure::because(HVQ_ERR_ARGUMENT, "neither HVQ_STATUS_AVAILABLE nor _BACKUP")),
        };
        core.set_path_status(PathId(path.id), status).map_err(command_failure)
    })
}

/// Says what is known about the channel of a path. This replaces what was said before. The peer is told, if both ends
/// exchange hints (`path_hints` of hvq_transport_config).
///
/// Errors: `HVQ_ERR_NULL`, `HVQ_ERR_ARGUMENT`, `HVQ_ERR_BUSY`, `HVQ_ERR_UNKNOWN_CONNECTION`, `HVQ_ERR_UNKNOWN_PATH`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_path_set_hints(
    endpoint: *mut hvq_endpoint,
    path: hvq_path,
    hints: *const hvq_hints,
) -> hvq_result {
    on_connection!(endpoint, path.connection, |core| {
        // SAFETY: the caller passes a valid struct.
        let hints = unsafe { guard::reference(hints) }?.decode()?;
        core.set_hints(PathId(path.id), hints).map_err(command_failure)
    })
}

/// Writes what the peer told of the channel of a path, as this end sees it: `rate` is that of what this end sends. All
/// zeros if it told nothing.
///
/// Errors: `HVQ_ERR_NULL`, `HVQ_ERR_BUSY`, `HVQ_ERR_UNKNOWN_CONNECTION`, `HVQ_ERR_UNKNOWN_PATH`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_path_get_peer_hints(
    endpoint: *mut hvq_endpoint,
    path: hvq_path,
    hints: *mut hvq_hints,
) -> hvq_result {
    on_connection!(endpoint, path.connection, |core| {
        guard::check(hints)?;
        let id = PathId(path.id);
        if !core.path_ids().contains(&id) {
            return Err(HVQ_ERR_UNKNOWN_PATH.into());
        }
        let told = core.peer_hints(id).map_or_else(hvq_hints::default, |told| hints_of(&told));
        // SAFETY: the caller lets it be written.
        unsafe { guard::put(hints, told) }
    })
}

/// Puts a path under another congestion controller, by name, which begins in its initial state.
///
/// Errors: `HVQ_ERR_NULL`, `HVQ_ERR_BUSY`, `HVQ_ERR_UNKNOWN_CONNECTION`, `HVQ_ERR_UNKNOWN_PATH`, `HVQ_ERR_UNKNOWN_NAME`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_path_set_congestion(
    endpoint: *mut hvq_endpoint,
    path: hvq_path,
    name: *const c_char,
) -> hvq_result {
    on_connection!(endpoint, path.connection, |core| {
        // SAFETY: the caller passes text.
        let chosen = unsafe { algorithm(name) }?.ok_or(crate::error::HVQ_ERR_NULL)?;
        core.set_congestion(PathId(path.id), chosen).map_err(command_failure)
    })
}

/// Has a PING sent on a path after `period` nanoseconds of silence; 0 lets it fall silent.
///
/// Errors: `HVQ_ERR_NULL`, `HVQ_ERR_BUSY`, `HVQ_ERR_UNKNOWN_CONNECTION`, `HVQ_ERR_UNKNOWN_PATH`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_path_set_keep_alive(
    endpoint: *mut hvq_endpoint,
    path: hvq_path,
    period: u64,
) -> hvq_result {
    on_connection!(endpoint, path.connection, |core| {
        let period = (period > 0).then(|| Duration::from_nanos(period));
        core.set_path_keep_alive(PathId(path.id), period).map_err(command_failure)
    })
}

/// Marks the packets of a path with a Differentiated Services codepoint, 0 to 63, from here on.
///
/// Errors: `HVQ_ERR_NULL`, `HVQ_ERR_ARGUMENT`, `HVQ_ERR_BUSY`, `HVQ_ERR_UNKNOWN_CONNECTION`, `HVQ_ERR_UNKNOWN_PATH`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_path_set_dscp(
    endpoint: *mut hvq_endpoint,
    path: hvq_path,
    codepoint: u32,
) -> hvq_result {
    on_connection!(endpoint, path.connection, |core| {
        core.set_dscp(PathId(path.id), dscp(codepoint)?).map_err(command_failure)
    })
}

/// Uses another connection ID of the peer on a path from here on, and retires the one before (RFC 9000 §5.1.2), at time `now`.
///
/// Errors: `HVQ_ERR_NULL`, `HVQ_ERR_BUSY`, `HVQ_ERR_UNKNOWN_CONNECTION`, `HVQ_ERR_UNKNOWN_PATH`, `HVQ_ERR_NO_CONNECTION_ID`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_path_rotate_connection_id(
    endpoint: *mut hvq_endpoint,
    path: hvq_path,
    now: u64,
) -> hvq_result {
    on_connection!(endpoint, path.connection, |core| {
        core.rotate_connection_id(PathId(path.id), Instant::from_nanos(now)).map_err(command_failure)
    })
}

/// Asks the peer to retire the connection IDs of this end on a path, for new ones: from then on what arrives shows others.
/// Asking again before it has done so changes nothing.
///
/// Errors: `HVQ_ERR_NULL`, `HVQ_ERR_BUSY`, `HVQ_ERR_UNKNOWN_CONNECTION`, `HVQ_ERR_UNKNOWN_PATH`; `HVQ_ERR_NO_CONNECTION_ID` if
/// there are none to ask for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_path_retire_connection_ids(
    endpoint: *mut hvq_endpoint,
    path: hvq_path,
) -> hvq_result {
    on_connection!(endpoint, path.connection, |core| {
        core.retire_connection_ids(PathId(path.id)).map_err(command_failure)
    })
}

/// A snapshot of a path. Times are in nanoseconds, sizes in bytes.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct hvq_path_statistics {
    /// The number of the path.
    pub id: u32,
    /// HVQ_STANDING_...
    pub standing: u32,
    /// Its addresses.
    pub route: hvq_route,
    /// The smoothed round-trip time.
    pub rtt: u64,
    /// The smallest round-trip time.
    pub min_rtt: u64,
    /// The estimated one-way delay to the peer.
    pub delay: u64,
    /// The congestion window.
    pub window: u64,
    /// Bytes in flight.
    pub in_flight: u64,
    /// The rate of the bottleneck in bits per second, hinted or estimated; 0 if not known.
    pub rate: u64,
    /// The size of datagrams sent.
    pub datagram_size: u64,
    /// Datagrams sent since the path was opened.
    pub datagrams_sent: u64,
    /// Bytes of UDP payload sent.
    pub bytes_sent: u64,
    /// Packets received.
    pub packets_received: u64,
    /// Bytes of packets received.
    pub bytes_received: u64,
    /// Packets acknowledged.
    pub packets_acknowledged: u64,
    /// Packets declared lost.
    pub packets_lost: u64,
    /// Packets of these that were acknowledged later.
    pub spurious_losses: u64,
    /// Packets that arrived at the peer with the mark of congestion.
    pub packets_marked: u64,
    /// Probe timeouts.
    pub probe_timeouts: u64,
    /// The name of the congestion controller.
    pub congestion: [c_char; 16],
}

impl From<PathStats> for hvq_path_statistics {
    fn from(path: PathStats) -> Self {
        let counters = path.counters;
        Self {
            id: path.id.0,
            standing: standing_of(path.state),
            route: path.tuple.into(),
            rtt: nanos(path.rtt),
            min_rtt: nanos(path.min_rtt),
            delay: nanos(path.delay),
            window: path.window as u64,
            in_flight: path.in_flight as u64,
            rate: path.rate.map_or(0, Bandwidth::bits_per_second),
            datagram_size: path.datagram_size as u64,
            datagrams_sent: counters.datagrams_sent,
            bytes_sent: counters.bytes_sent,
            packets_received: counters.packets_received,
            bytes_received: counters.bytes_received,
            packets_acknowledged: counters.packets_acknowledged,
            packets_lost: counters.packets_lost,
            spurious_losses: counters.spurious_losses,
            packets_marked: counters.marked,
            probe_timeouts: counters.probe_timeouts,
            congestion: name(path.controller),
        }
    }
}

/// Writes a snapshot of each open path: at most `capacity` of them to `statistics`, and how many there are to `count`.
///
/// Errors: `HVQ_ERR_NULL`, `HVQ_ERR_BUSY`, `HVQ_ERR_UNKNOWN_CONNECTION`, `HVQ_ERR_TOO_SMALL` if `capacity` is less than `count`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_path_list(
    endpoint: *mut hvq_endpoint,
    connection: u64,
    statistics: *mut hvq_path_statistics,
    capacity: usize,
    count: *mut usize,
) -> hvq_result {
    look_at!(endpoint, connection, |core| {
        // SAFETY: the caller gives room for that many structs.
        let room = unsafe { guard::room(statistics, capacity) }?;
        let ids = core.path_ids();
        for (place, stats) in room.iter_mut().zip(ids.iter().filter_map(|id| core.path_stats(*id))) {
            place.write(stats.into());
        }
        // SAFETY: the caller lets it be written.
        unsafe { guard::put(count, ids.len()) }?;
        if ids.len() > capacity { Err(HVQ_ERR_TOO_SMALL.into()) } else { Ok(()) }
    })
}

/// Writes a snapshot of one path.
///
/// Errors: `HVQ_ERR_NULL`, `HVQ_ERR_BUSY`, `HVQ_ERR_UNKNOWN_CONNECTION`, `HVQ_ERR_UNKNOWN_PATH`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_path_get_statistics(
    endpoint: *mut hvq_endpoint,
    path: hvq_path,
    statistics: *mut hvq_path_statistics,
) -> hvq_result {
    look_at!(endpoint, path.connection, |core| {
        let stats = core.path_stats(PathId(path.id)).ok_or(HVQ_ERR_UNKNOWN_PATH)?;
        // SAFETY: the caller lets it be written.
        unsafe { guard::put(statistics, stats.into()) }
    })
}
