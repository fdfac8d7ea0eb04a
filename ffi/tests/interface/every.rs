//! Mistakes in every argument of every function: the list is complete, since it is compared with the header.

use crate::pair::c::filled;
use crate::talk::{Talk, route};
use hvq_ffi::address::*;
use hvq_ffi::config::*;
use hvq_ffi::connection::*;
use hvq_ffi::counters::*;
use hvq_ffi::datagram::*;
use hvq_ffi::endpoint::*;
use hvq_ffi::error::*;
use hvq_ffi::hvq_endpoint;
use hvq_ffi::log::HVQ_LOG_TRACE;
use hvq_ffi::output::*;
use hvq_ffi::path::*;
use hvq_ffi::stream::*;
use hvq_ffi::tls::*;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;
use std::ptr;

/// The arguments that functions are called with.
struct Arguments {
    endpoint: *mut hvq_endpoint,
    config: *mut hvq_client_config,
    connection: u64,
    stream: hvq_stream,
    path: hvq_path,
    now: u64,
    /// The index of the argument that is NULL, among those that are pointers.
    hole: usize,
    /// Pointers passed so far.
    passed: Cell<usize>,
}

impl Arguments {
    fn of(talk: &Talk) -> Self {
        Self {
            endpoint: talk.client,
            config: talk.config,
            connection: talk.connection,
            stream: hvq_stream { connection: talk.connection, id: 0 },
            path: hvq_path { connection: talk.connection, id: 0, reserved: 0 },
            now: talk.now,
            hole: usize::MAX,
            passed: Cell::new(0),
        }
    }

    /// The pointer, or NULL if it is its turn.
    fn at<T>(&self, pointer: *const T) -> *mut T {
        let index = self.passed.replace(self.passed.get() + 1);
        if index == self.hole { ptr::null_mut() } else { pointer.cast_mut() }
    }

    fn end(&self) -> *mut hvq_endpoint {
        self.at(self.endpoint)
    }
}

/// The object that a function is called for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Of {
    Nothing,
    Endpoint,
    Connection,
    Stream,
    Path,
}

/// A function: its name, what it is called for, its pointers that may be NULL, and a call.
struct Row {
    name: &'static str,
    of: Of,
    optional: &'static [usize],
    call: fn(&Arguments) -> hvq_result,
}

macro_rules! row {
    ($of:ident $optional:expr, $name:ident, |$a:ident| ($($argument:expr),*)) => {
        Row {
            name: stringify!($name),
            of: Of::$of,
            optional: &$optional,
            // SAFETY: what is pointed to is valid, or NULL, which is what is tried.
            call: |$a| unsafe { $name($($argument),*) },
        }
    };
}

/// Room for one value that is written.
fn out<T>() -> *mut T {
    Box::leak(Box::new(MaybeUninit::<T>::uninit())).as_mut_ptr()
}

const BYTES: [u8; 4] = *b"hvq!";

fn text() -> *mut c_char {
    out::<[c_char; 300]>().cast()
}

fn room() -> *mut hvq_buffer {
    let buffer = hvq_buffer { data: out::<[u8; 4096]>().cast(), capacity: 4096, length: 0 };
    Box::leak(Box::new(buffer))
}

fn lent<T>(value: T) -> *mut T {
    Box::leak(Box::new(value))
}

fn owned() -> *mut hvq_owned {
    let bytes = hvq_bytes { data: BYTES.as_ptr(), length: 4 };
    lent(hvq_owned { bytes, release: None, user: ptr::null_mut() })
}

fn datagram() -> *mut hvq_datagram {
    let bytes = hvq_bytes { data: BYTES.as_ptr(), length: 4 };
    lent(hvq_datagram { bytes, deadline: HVQ_NEVER, urgency: 3, reserved: 0 })
}

fn incoming() -> *mut hvq_incoming {
    let (route, bytes) = (route(0), BYTES.as_ptr());
    lent(hvq_incoming { route, bytes, length: 4, segment: 0, ecn: 0, reserved: 0 })
}

fn connect(a: &Arguments) -> *mut hvq_connect_options {
    let server_name = c"localhost".as_ptr();
    lent(hvq_connect_options { config: a.config, server_name, route: route(0) })
}

fn client() -> *mut hvq_client_options {
    let mut options: hvq_client_options = filled(hvq_client_options_init);
    (options.alpn, options.alpn_count, options.insecure) = (lent(c"test".as_ptr()), 1, 1);
    lent(options)
}

/// The functions of the header that return a result, but those of [`OTHERS`].
const ROWS: &[Row] = &[
    row!(Nothing [], hvq_address_parse, |a| (a.at(c"192.0.2.1:1".as_ptr()), a.at(out()))),
    row!(Nothing [], hvq_address_format, |a| (a.at(&route(0).local), a.at(text()), 300)),
    row!(Nothing [], hvq_address_from_sockaddr, |a| (a.at(BYTES.as_ptr()).cast(), 4, a.at(out()))),
    row!(Nothing [], hvq_address_to_sockaddr, |a| (a.at(&route(0).local), a.at(text()).cast(), 128, a.at(out()))),
    row!(Nothing [], hvq_transport_config_init, |a| (a.at(out()), size_of::<hvq_transport_config>())),
    row!(Nothing [], hvq_client_options_init, |a| (a.at(out()), size_of::<hvq_client_options>())),
    row!(Nothing [], hvq_server_options_init, |a| (a.at(out()), size_of::<hvq_server_options>())),
    row!(Nothing [], hvq_endpoint_options_init, |a| (a.at(out()), size_of::<hvq_endpoint_options>())),
    row!(Nothing [], hvq_client_config_new, |a| (a.at(client()), a.at(out()))),
    row!(Nothing [], hvq_server_config_new, |a| (a.at(lent(filled(hvq_server_options_init))), a.at(out()))),
    row!(Nothing[0], hvq_endpoint_new, |a| (a.at(lent(filled(hvq_endpoint_options_init))), a.at(out()))),
    row!(Endpoint[1], hvq_endpoint_set_server, |a| (a.end(), a.at(ptr::null()))),
    row!(Endpoint [], hvq_endpoint_handle, |a| (a.end(), a.at(incoming()), a.now)),
    row!(Endpoint [], hvq_endpoint_refused, |a| (a.end(), a.at(lent(route(0))), 1400, a.now)),
    row!(Endpoint [], hvq_endpoint_connect, |a| (a.end(), a.at(connect(a)), a.now, a.at(out()))),
    row!(Endpoint [], hvq_endpoint_first_network_path, |a| (
        a.end(), a.at(a.config), a.at(lent(hvq_network_path { route: route(0), hints: hvq_hints::default() })), 1, a.now,
        a.at(out())
    )),
    row!(Endpoint [], hvq_endpoint_poll, |a| (a.end(), a.now, a.at(out()))),
    row!(Endpoint [], hvq_endpoint_connections, |a| (a.end(), a.at(out()), 1, a.at(out()))),
    row!(Endpoint [], hvq_endpoint_get_statistics, |a| (a.end(), a.at(out()))),
    row!(Endpoint [], hvq_endpoint_list_dropped, |a| (a.end(), a.at(out()), 1, a.at(out()))),
    row!(Connection [], hvq_connection_get_info, |a| (a.end(), a.connection, a.at(out()))),
    row!(Connection [], hvq_connection_get_peer, |a| (a.end(), a.connection, a.at(out()))),
    row!(Connection[1], hvq_connection_close, |a| (
        a.end(),
        a.connection,
        0,
        a.at(c"enough".as_ptr()),
        a.now
    )),
    row!(Connection [], hvq_connection_verify_again, |a| (a.end(), a.connection, a.now)),
    row!(Connection [], hvq_connection_update_keys, |a| (a.end(), a.connection, a.now)),
    row!(Connection [], hvq_connection_alpn, |a| (a.end(), a.connection, a.at(text()), 300)),
    row!(Connection [], hvq_connection_server_name, |a| (a.end(), a.connection, a.at(text()), 300)),
    row!(Connection [], hvq_connection_certificate, |a| (a.end(), a.connection, 0, a.at(room()))),
    row!(Connection [], hvq_connection_list_frames, |a| (a.end(), a.connection, a.at(out()), 1, a.at(out()))),
    row!(Connection [], hvq_stream_open, |a| (a.end(), a.connection, HVQ_BIDIRECTIONAL, a.at(out()))),
    row!(Connection [], hvq_stream_accept, |a| (a.end(), a.connection, HVQ_BIDIRECTIONAL, a.at(out()))),
    row!(Stream [], hvq_stream_write, |a| (a.end(), a.stream, a.at(BYTES.as_ptr()).cast(), 4, a.at(out()))),
    row!(Stream [], hvq_stream_write_owned, |a| (a.end(), a.stream, a.at(owned()), a.at(out()))),
    row!(Stream [], hvq_stream_end_message, |a| (a.end(), a.stream, HVQ_NEVER)),
    row!(Stream [], hvq_stream_finish, |a| (a.end(), a.stream)),
    row!(Stream [], hvq_stream_reset, |a| (a.end(), a.stream, 1)),
    row!(Stream [], hvq_stream_stop, |a| (a.end(), a.stream, 1)),
    row!(Stream [], hvq_stream_set_priority, |a| (a.end(), a.stream, 1, 1)),
    row!(Stream [], hvq_stream_read, |a| (a.end(), a.stream, a.at(text()).cast(), 300, a.at(out()))),
    row!(Stream [], hvq_stream_read_chunk, |a| (a.end(), a.stream, 300, a.at(out()))),
    row!(Stream [], hvq_stream_is_early, |a| (a.end(), a.stream, a.at(out()))),
    row!(Connection [], hvq_datagram_send, |a| (a.end(), a.connection, a.at(datagram()))),
    row!(Connection [], hvq_datagram_receive, |a| (a.end(), a.connection, a.at(room()))),
    row!(Connection [], hvq_path_open, |a| (a.end(), a.connection, a.at(lent(route(1))), a.now, a.at(out()))),
    row!(Connection [], hvq_path_list, |a| (a.end(), a.connection, a.at(out()), 1, a.at(out()))),
    row!(Path [], hvq_path_abandon, |a| (a.end(), a.path, 0, a.now)),
    row!(Path [], hvq_path_migrate, |a| (a.end(), a.path, a.at(lent(route(2))), HVQ_MOVE_VALIDATED, a.now)),
    row!(Path [], hvq_path_set_status, |a| (a.end(), a.path, HVQ_STATUS_BACKUP)),
    row!(Path [], hvq_path_set_hints, |a| (a.end(), a.path, a.at(lent(hvq_hints::default())))),
    row!(Path [], hvq_path_get_peer_hints, |a| (a.end(), a.path, a.at(out()))),
    row!(Path [], hvq_path_set_congestion, |a| (a.end(), a.path, a.at(c"cubic".as_ptr()))),
    row!(Path [], hvq_path_set_keep_alive, |a| (a.end(), a.path, 1_000_000_000)),
    row!(Path [], hvq_path_set_dscp, |a| (a.end(), a.path, 1)),
    row!(Path [], hvq_path_rotate_connection_id, |a| (a.end(), a.path, a.now)),
    row!(Path [], hvq_path_retire_connection_ids, |a| (a.end(), a.path)),
    row!(Path [], hvq_path_get_statistics, |a| (a.end(), a.path, a.at(out()))),
];

/// Functions that cannot fail, or for which NULL is fine; and one whose arguments BoringSSL makes (see `resumption`).
const OTHERS: [&str; 9] = [
    "hvq_client_config_free",
    "hvq_endpoint_free",
    "hvq_error_name",
    "hvq_error_text",
    "hvq_last_error",
    "hvq_last_error_code",
    "hvq_server_config_free",
    "hvq_session_keep",
    "hvq_version",
];

/// The functions that the header declares.
fn declared() -> BTreeSet<&'static str> {
    let header = include_str!("../../include/hvq.h");
    let is_declaration =
        |line: &&str| !line.starts_with([' ', '/', '*', '#', '}']) && !line.starts_with("typedef");
    let name = |line: &'static str| {
        let before = line.split('(').next()?;
        let name = before.rsplit([' ', '*']).next()?;
        (line.contains('(') && name.starts_with("hvq_")).then_some(name)
    };
    header.lines().filter(is_declaration).filter_map(name).collect()
}

#[test]
fn the_list_has_every_function_of_the_header() {
    let declared = declared();
    let listed: BTreeSet<&str> = ROWS.iter().map(|row| row.name).chain(OTHERS).collect();
    let missing: Vec<_> = declared.difference(&listed).collect();
    let unknown: Vec<_> = listed.difference(&declared).collect();
    assert!(missing.is_empty() && unknown.is_empty(), "not listed: {missing:?}; not declared: {unknown:?}");
}

#[test]
fn null_is_an_error_in_every_place_where_it_has_no_meaning() {
    for row in ROWS {
        let talk = Talk::connected();
        let mut arguments = Arguments::of(&talk);
        // SAFETY: the endpoint is ours.
        let opened = unsafe {
            hvq_stream_open(talk.client, talk.connection, HVQ_BIDIRECTIONAL, &mut arguments.stream)
        };
        assert_eq!(opened, HVQ_OK);
        let mut hole = 0;
        loop {
            arguments.hole = hole;
            arguments.passed.set(0);
            let result = (row.call)(&arguments);
            if hole >= arguments.passed.get() {
                break;
            }
            let is_null = result == HVQ_ERR_NULL;
            assert_eq!(is_null, !row.optional.contains(&hole), "{}, pointer {hole}: {result}", row.name);
            hole += 1;
        }
        assert!(row.of == Of::Nothing || hole > 0, "{}", row.name);
    }
}

#[test]
fn numbers_that_nothing_has_are_errors_of_every_function_that_takes_them() {
    let talk = Talk::connected();
    for number in [7, u64::MAX] {
        let nobody = Arguments {
            connection: number,
            stream: hvq_stream { connection: number, id: 0 },
            path: hvq_path { connection: number, id: 0, reserved: 0 },
            ..Arguments::of(&talk)
        };
        let nothing = Arguments {
            stream: hvq_stream { connection: talk.connection, id: number & !3 },
            path: hvq_path { connection: talk.connection, id: number as u32, reserved: 0 },
            ..Arguments::of(&talk)
        };
        for row in ROWS.iter().filter(|row| !matches!(row.of, Of::Nothing | Of::Endpoint)) {
            assert_eq!((row.call)(&nobody), HVQ_ERR_UNKNOWN_CONNECTION, "{}", row.name);
            let expected = match row.of {
                // Priorities of streams that are over are ignored, and nothing of them was early.
                Of::Stream if ["hvq_stream_set_priority", "hvq_stream_is_early"].contains(&row.name) => {
                    HVQ_OK
                }
                Of::Stream => HVQ_ERR_UNKNOWN_STREAM,
                Of::Path => HVQ_ERR_UNKNOWN_PATH,
                _ => continue,
            };
            assert_eq!((row.call)(&nothing), expected, "{} {number}", row.name);
        }
    }
}

/// The function that a callback calls, and its results.
struct Intruder {
    arguments: Option<Arguments>,
    results: Vec<(&'static str, hvq_result)>,
}

unsafe extern "C" fn intrude(user: *mut c_void, _now: u64, _level: u32, _line: *const c_char) {
    // SAFETY: the test passes an intruder.
    let intruder = unsafe { &mut *user.cast::<Intruder>() };
    let Some(arguments) = intruder.arguments.take() else { return };
    let rows = ROWS.iter().filter(|row| row.of != Of::Nothing);
    intruder.results = rows.map(|row| (row.name, (row.call)(&arguments))).collect();
    // SAFETY: the endpoint is in use, and so it is not freed.
    intruder.results.push(("hvq_endpoint_free", unsafe { hvq_endpoint_free(arguments.endpoint) }));
}

#[test]
fn every_function_refuses_an_endpoint_that_is_in_use() {
    let mut intruder = Intruder { arguments: None, results: Vec::new() };
    let user = ptr::from_mut(&mut intruder);
    let mut talk = Talk::new(|transport, _, _| {
        transport.log = Some(intrude);
        (transport.log_user, transport.log_level) = (user.cast(), HVQ_LOG_TRACE);
    });
    talk.exchange(30);
    // SAFETY: no call is under way.
    unsafe {
        (*user).arguments = Some(Arguments::of(&talk));
        assert_eq!(hvq_connection_close(talk.client, talk.connection, 0, ptr::null(), talk.now), HVQ_OK);
        talk.exchange(1);
        assert!((*user).results.len() > 40);
        for (name, result) in &(*user).results {
            assert_eq!(*result, HVQ_ERR_BUSY, "{name}");
        }
    }
}

#[test]
fn commands_on_a_connection_that_is_closing_do_no_harm() {
    for row in ROWS.iter().filter(|row| !matches!(row.of, Of::Nothing | Of::Endpoint)) {
        let mut talk = Talk::connected();
        let mut arguments = Arguments::of(&talk);
        // SAFETY: the endpoint is ours.
        unsafe {
            assert_eq!(
                hvq_stream_open(talk.client, talk.connection, HVQ_BIDIRECTIONAL, &mut arguments.stream),
                HVQ_OK
            );
            assert_eq!(hvq_connection_close(talk.client, talk.connection, 0, ptr::null(), talk.now), HVQ_OK);
        }
        let result = (row.call)(&arguments);
        assert!(result <= 0 && result != HVQ_ERR_PANIC, "{}: {result}", row.name);
        talk.exchange(5);
        assert!(talk.client_said(HVQ_EVENT_CLOSED));
        let result = (row.call)(&arguments);
        assert!(result <= 0 && result != HVQ_ERR_PANIC, "{}: {result}", row.name);
    }
}
