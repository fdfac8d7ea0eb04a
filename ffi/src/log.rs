//! Logging.

use crate::error::{Failure, HVQ_ERR_ARGUMENT};
use hvq_transport::time::Instant;
use hvq_transport::trace::{Subject, TraceEvent, Tracer, TracerFactory};
use std::ffi::{c_char, c_void};
use std::fmt::Write;
use std::sync::Arc;

/// Beginnings, ends, handshakes and paths.
pub const HVQ_LOG_INFO: u32 = 1;
/// Also losses, packets that were ignored and key updates.
pub const HVQ_LOG_DEBUG: u32 = 2;
/// Also every packet and every frame.
pub const HVQ_LOG_TRACE: u32 = 3;

/// Called with a line about a connection: its time in nanoseconds, HVQ_LOG_..., and text without a line break that ends
/// with a zero byte and is valid during the call. No payload and no key is ever in it. It is called within calls on the
/// endpoint, on their thread, and must not call the library for the same endpoint. `user` must stand calls from several
/// threads if several endpoints share it.
pub type hvq_log_callback =
    Option<unsafe extern "C" fn(user: *mut c_void, now: u64, level: u32, line: *const c_char)>;

/// A callback with its first argument.
#[derive(Clone, Copy)]
struct Sink {
    call: unsafe extern "C" fn(*mut c_void, u64, u32, *const c_char),
    user: *mut c_void,
    level: u32,
}

// SAFETY: what `user` points to stands calls from several threads: the documentation of the callback asks for it.
unsafe impl Send for Sink {}
// SAFETY: as above.
unsafe impl Sync for Sink {}

/// Writes lines about one connection.
struct Lines {
    sink: Sink,
    /// The name that lines begin with.
    name: String,
    /// Kept for its memory.
    line: String,
}

impl Tracer for Lines {
    fn record(&mut self, now: Instant, event: &TraceEvent<'_>) {
        let level = level_of(event);
        if level > self.sink.level {
            return;
        }
        self.line.clear();
        // Writing into memory does not fail. A zero byte would end the text for C.
        let _written = write!(self.line, "{} {}\0", self.name, Shown(event));
        // SAFETY: the text ends with a zero byte, and the callback may be called with its `user`.
        unsafe { (self.sink.call)(self.sink.user, now.as_nanos(), level, self.line.as_ptr().cast()) };
    }
}

/// An event as text.
struct Shown<'a>(&'a TraceEvent<'a>);

impl std::fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            TraceEvent::Started(subject) => write!(f, "started: {} to {}", subject.local, subject.remote),
            TraceEvent::Closed(error) => {
                write!(f, "closed: {}", error.to_string().replace(['\0', '\n'], " "))
            }
            TraceEvent::PathChanged { path, change, addresses: Some((local, remote)) } => {
                write!(f, "path {path}: {change:?}, {local} to {remote}")
            }
            TraceEvent::PathChanged { path, change, .. } => write!(f, "path {path}: {change:?}"),
            TraceEvent::PacketSent(packet) => {
                write!(
                    f,
                    "sent {:?} {} on path {}, {} bytes",
                    packet.level, packet.number, packet.path, packet.bytes
                )
            }
            TraceEvent::PacketReceived(packet) => {
                let (level, number, path) = (packet.level, packet.number, packet.path);
                write!(f, "received {level:?} {number} on path {path}, {} bytes", packet.bytes)
            }
            other => write!(f, "{other:?}"),
        }
    }
}

fn level_of(event: &TraceEvent<'_>) -> u32 {
    match event {
        TraceEvent::Started(_)
        | TraceEvent::Handshake(_)
        | TraceEvent::PathChanged { .. }
        | TraceEvent::Closed(_) => HVQ_LOG_INFO,
        TraceEvent::ParametersSet { .. }
        | TraceEvent::KeysInstalled(_)
        | TraceEvent::KeysUpdated { .. }
        | TraceEvent::PacketDropped { .. }
        | TraceEvent::PacketLost { .. } => HVQ_LOG_DEBUG,
        _ => HVQ_LOG_TRACE,
    }
}

/// Returns a factory of tracers that write lines for `callback`; none without it.
pub(crate) fn factory(
    callback: hvq_log_callback,
    user: *mut c_void,
    level: u32,
) -> Result<Option<TracerFactory>, Failure> {
    let Some(call) = callback else { return Ok(None) };
    if !(HVQ_LOG_INFO..=HVQ_LOG_TRACE).contains(&level) {
        return Err(Failure::because(HVQ_ERR_ARGUMENT, "the level is none of HVQ_LOG_"));
    }
    let sink = Sink { call, user, level };
    Ok(Some(Arc::new(move |subject: &Subject| Some(lines(sink, subject)))))
}

fn lines(sink: Sink, subject: &Subject) -> Box<dyn Tracer> {
    let mut name = format!("{:?} ", subject.role).to_lowercase();
    for byte in subject.original_destination.as_slice() {
        let _written = write!(name, "{byte:02x}");
    }
    Box::new(Lines { sink, name, line: String::new() })
}

/// Tells two tracers.
struct Two(Box<dyn Tracer>, Box<dyn Tracer>);

impl Tracer for Two {
    fn record(&mut self, now: Instant, event: &TraceEvent<'_>) {
        self.0.record(now, event);
        self.1.record(now, event);
    }
}

/// Tracers of both kinds, as far as there are any.
pub(crate) fn both(one: Option<TracerFactory>, other: Option<TracerFactory>) -> Option<TracerFactory> {
    let (one, other) = match (one, other) {
        (Some(one), Some(other)) => (one, other),
        (one, other) => return one.or(other),
    };
    Some(Arc::new(move |subject: &Subject| match (one(subject), other(subject)) {
        (Some(one), Some(other)) => Some(Box::new(Two(one, other)) as Box<dyn Tracer>),
        (one, other) => one.or(other),
    }))
}
