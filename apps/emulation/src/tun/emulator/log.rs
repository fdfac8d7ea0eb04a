//! A log of every packet: its channel, delay and size.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::{Direction, DropReason};
use serde_json::json;

use crate::tun::packet::{Header, Transport};

/// Lines that may wait for a slow disk.
const MOST_WAITING: usize = 1 << 15;

/// The format of lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// An object of JSON a line.
    Json,
    /// Comma-separated values under a header.
    Csv,
}

impl Form {
    /// CSV for a path that ends in `.csv`, else JSON.
    pub fn of(path: &Path) -> Self {
        let csv = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("csv"));
        if csv { Self::Csv } else { Self::Json }
    }
}

/// The end of a packet.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum PacketEnd {
    /// It came out.
    Left {
        /// The delay from its entry, as the channel says.
        delay: Duration,
        /// The part of the delay for which it waited for others to be put in order.
        held: Duration,
        /// The time by which it came out later than the channel says.
        lateness: Duration,
    },
    /// It was dropped on entry.
    Dropped(DropReason),
}

/// A line.
#[derive(Clone, PartialEq, Debug)]
pub struct Record<'a> {
    /// The time at which it came out or was dropped, since the start.
    pub at: Duration,
    /// The direction of the packet.
    pub direction: Direction,
    /// The channel that it took.
    pub channel: &'a str,
    /// Bytes of IP packet.
    pub size: usize,
    /// The packet's header, if it is an IP packet.
    pub header: Option<Header>,
    /// The end of the packet.
    pub end: PacketEnd,
}

/// Writes lines on a thread of its own. If the disk does not keep up or is full, lines are lost and counted; packets never
/// wait for it.
#[derive(Debug)]
pub struct PacketLog {
    lines: Option<SyncSender<String>>,
    form: Form,
    unlogged: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl PacketLog {
    /// Writes to a new file at `path`, in the form that its name asks for.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = File::create(path)?;
        Self::to(BufWriter::new(file), Form::of(path))
    }

    /// Writes to `sink`.
    ///
    /// # Errors
    /// No thread is to be had.
    pub fn to(sink: impl Write + Send + 'static, form: Form) -> io::Result<Self> {
        let (lines, waiting) = sync_channel(MOST_WAITING);
        let unlogged = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&unlogged);
        let thread = std::thread::Builder::new()
            .name("hvq-packet-log".to_owned())
            .spawn(move || write_all(&waiting, sink, form, &counter))?;
        Ok(Self { lines: Some(lines), form, unlogged, thread: Some(thread) })
    }

    /// Adds a line.
    pub fn record(&mut self, record: Record<'_>) {
        let line = match self.form {
            Form::Json => as_json(&record),
            Form::Csv => as_csv(&record),
        };
        let Some(lines) = &self.lines else { return };
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) = lines.try_send(line) {
            self.unlogged.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Lines that were lost.
    pub fn unlogged(&self) -> u64 {
        self.unlogged.load(Ordering::Relaxed)
    }
}

impl Drop for PacketLog {
    fn drop(&mut self) {
        self.lines = None;
        if let Some(thread) = self.thread.take() {
            let _reported = thread.join();
        }
    }
}

const HEADER: &str =
    "time_s,way,channel,bytes,delay_ms,held_ms,late_ms,dropped,protocol,from,to,flags,payload";

fn write_all(lines: &Receiver<String>, mut sink: impl Write, form: Form, unlogged: &AtomicU64) {
    let mut put = |line: &str| {
        if let Err(error) = sink.write_all(line.as_bytes()).and_then(|()| sink.write_all(b"\n"))
            && unlogged.fetch_add(1, Ordering::Relaxed) == 0
        {
            tracing::warn!(%error, "lines of the packet log are lost");
        }
    };
    if form == Form::Csv {
        put(HEADER);
    }
    for line in lines {
        put(&line);
    }
    if let Err(error) = sink.flush() {
        tracing::warn!(%error, "the end of the packet log is lost");
        unlogged.fetch_add(1, Ordering::Relaxed);
    }
}

const fn way(direction: Direction) -> &'static str {
    match direction {
        Direction::Up => "up",
        Direction::Down => "down",
    }
}

const fn reason(reason: DropReason) -> &'static str {
    match reason {
        DropReason::Queue => "queue",
        DropReason::Random => "random",
        DropReason::Burst => "burst",
        DropReason::Blackout => "blackout",
        DropReason::Memory => "memory",
    }
}

/// To a nanosecond; more digits would only tell how floating point works.
fn milliseconds(time: Duration) -> f64 {
    (time.as_nanos() as f64) / 1e6
}

/// Addresses with ports, where there are any.
fn ends(header: &Header) -> (String, String) {
    match header.transport.ports() {
        None => (header.source.to_string(), header.destination.to_string()),
        Some((source, destination)) => {
            let text = |address, port| std::net::SocketAddr::new(address, port).to_string();
            (text(header.source, source), text(header.destination, destination))
        }
    }
}

fn flags(header: &Header) -> String {
    match header.transport {
        Transport::Tcp { flags, .. } => flags.to_string(),
        _ => String::new(),
    }
}

fn as_json(record: &Record<'_>) -> String {
    let mut line = json!({
        "time_s": record.at.as_secs_f64(),
        "way": way(record.direction),
        "channel": record.channel,
        "bytes": record.size,
    });
    let mut put = |key: &str, value: serde_json::Value| {
        line.as_object_mut().expect("it was made as an object above").insert(key.to_owned(), value)
    };
    match record.end {
        PacketEnd::Left { delay, held, lateness } => {
            put("delay_ms", milliseconds(delay).into());
            put("held_ms", milliseconds(held).into());
            put("late_ms", milliseconds(lateness).into());
        }
        PacketEnd::Dropped(why) => {
            put("dropped", reason(why).into());
        }
    }
    if let Some(header) = &record.header {
        let (from, to) = ends(header);
        put("protocol", header.transport.name().into());
        put("from", from.into());
        put("to", to.into());
        put("flags", flags(header).into());
        put("payload", header.payload.into());
    }
    line.to_string()
}

fn as_csv(record: &Record<'_>) -> String {
    let (times, dropped) = match record.end {
        PacketEnd::Left { delay, held, lateness } => {
            let [delay, held, lateness] = [delay, held, lateness].map(milliseconds);
            (format!("{delay},{held},{lateness}"), "")
        }
        PacketEnd::Dropped(why) => (",,".to_owned(), reason(why)),
    };
    let what = record.header.as_ref().map_or_else(
        || ",,,,".to_owned(),
        |header| {
            let (from, to) = ends(header);
            format!("{},{from},{to},{},{}", header.transport.name(), flags(header), header.payload)
        },
    );
    let Record { at, direction, channel, size, .. } = record;
    format!("{},{},{channel},{size},{times},{dropped},{what}", at.as_secs_f64(), way(*direction))
}
