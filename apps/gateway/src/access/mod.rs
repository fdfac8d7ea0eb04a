//! The access log: a line for each request, written by a thread of its own so that a slow disk holds nobody up.

mod line;
mod moment;
#[cfg(test)]
mod tests;

pub(crate) use line::{Asked, Record};

use crate::configuration::{Format, LogConfig};
use crate::metrics::Metrics;
use http::header::{REFERER, USER_AGENT};
use http::{HeaderMap, HeaderName, Request, StatusCode};
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::oneshot;

/// Lines that may wait for the disk; more are dropped and counted.
const WAITING: usize = 8192;
/// Bytes of a line's longest part, such as the user agent.
const LONGEST: usize = 2048;
/// The time that the disk may take for the last lines.
const PATIENCE: Duration = Duration::from_secs(2);
/// The time for which a line may wait for others before it is written.
const BATCH: Duration = Duration::from_millis(200);

/// An order to the writing thread.
enum Order {
    Write(String),
    Reopen,
    Finish(oneshot::Sender<()>),
}

/// The access log. Clones write to the same.
#[derive(Clone)]
pub(crate) struct AccessLog {
    orders: Option<SyncSender<Order>>,
    format: Format,
    dropped: Arc<AtomicU64>,
}

impl AccessLog {
    /// The log that `config` asks for.
    pub(crate) fn open(config: &LogConfig) -> io::Result<Self> {
        let dropped = Arc::new(AtomicU64::new(0));
        let Some(path) = config.file.clone() else {
            return Ok(Self { orders: None, format: config.format, dropped });
        };
        let output = Output::open(&path)?;
        let (orders, receiver) = sync_channel(WAITING);
        std::thread::Builder::new().name("access-log".to_owned()).spawn({
            let dropped = dropped.clone();
            move || Writer { path, output, dropped, failing: false }.run(&receiver)
        })?;
        Ok(Self { orders: Some(orders), format: config.format, dropped })
    }

    /// Checks that the log that `config` asks for has a place. Nothing is made or written.
    pub(crate) fn check(config: &LogConfig) -> io::Result<()> {
        let Some(path) = config.file.as_deref().filter(|path| *path != Path::new("-")) else { return Ok(()) };
        if path.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        match path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            Some(folder) => folder.metadata().map(drop),
            None => Ok(()),
        }
    }

    /// Opens the file anew, as after it was renamed.
    pub(crate) fn reopen(&self) {
        if let Some(orders) = &self.orders {
            // A log that is full of lines is opened anew the next time.
            let _full = orders.try_send(Order::Reopen);
        }
    }

    /// Waits until all lines are written, if the disk takes them.
    pub(crate) async fn finish(&self) {
        let Some(orders) = &self.orders else { return };
        let (done, finished) = oneshot::channel();
        if orders.try_send(Order::Finish(done)).is_ok() {
            let _late = tokio::time::timeout(PATIENCE, finished).await;
        }
    }

    /// Lines that were dropped because the disk was too slow or full.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Returns true if lines are written at all.
    fn is_open(&self) -> bool {
        self.orders.is_some()
    }

    fn log(&self, record: &Record) {
        let Some(orders) = &self.orders else { return };
        if orders.try_send(Order::Write(record.line(self.format))).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The output that lines go to.
enum Output {
    File(BufWriter<File>),
    Standard,
}

impl Output {
    fn open(path: &Path) -> io::Result<Self> {
        if path == Path::new("-") {
            return Ok(Self::Standard);
        }
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self::File(BufWriter::new(file)))
    }

    fn line(&mut self, line: &str) -> io::Result<()> {
        match self {
            Self::File(file) => writeln!(file, "{line}"),
            Self::Standard => writeln!(io::stdout().lock(), "{line}"),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::File(file) => file.flush(),
            Self::Standard => io::stdout().lock().flush(),
        }
    }
}

/// The writing thread.
struct Writer {
    path: PathBuf,
    output: Output,
    dropped: Arc<AtomicU64>,
    /// True if the last attempt failed, which is said once and not for each line.
    failing: bool,
}

impl Writer {
    /// Writes until everybody who could give orders is gone.
    fn run(mut self, orders: &Receiver<Order>) {
        loop {
            match orders.recv_timeout(BATCH) {
                Err(RecvTimeoutError::Timeout) => self.flush(),
                Err(RecvTimeoutError::Disconnected) => return self.flush(),
                Ok(Order::Write(line)) => {
                    let written = self.output.line(&line);
                    if written.is_err() {
                        self.dropped.fetch_add(1, Ordering::Relaxed);
                    }
                    self.note(written);
                }
                Ok(Order::Reopen) => {
                    self.flush();
                    match Output::open(&self.path) {
                        Ok(opened) => self.output = opened,
                        Err(error) => tracing::warn!(%error, "the access log stays in the old file"),
                    }
                }
                Ok(Order::Finish(done)) => {
                    self.flush();
                    let _gone = done.send(());
                }
            }
        }
    }

    fn flush(&mut self) {
        let flushed = self.output.flush();
        self.note(flushed);
    }

    fn note(&mut self, written: io::Result<()>) {
        match written {
            Err(error) if !self.failing => {
                let file = self.path.display();
                tracing::warn!(%file, %error, "cannot write the access log, and lines are lost until it can be");
                self.failing = true;
            }
            Ok(()) if self.failing => {
                tracing::warn!(file = %self.path.display(), "the access log is written again");
                self.failing = false;
            }
            _ => {}
        }
    }
}

/// A request on its way into log and metrics, where it gets when this is dropped.
pub(crate) struct Entry {
    log: AccessLog,
    metrics: Arc<Metrics>,
    start: Instant,
    record: Record,
}

impl Entry {
    /// Begins the entry of a request that comes now from `address`.
    pub(crate) fn new(log: AccessLog, metrics: Arc<Metrics>, address: IpAddr, request: &Request<()>) -> Self {
        metrics.begun();
        // Texts are for the log alone.
        let asked = if log.is_open() { asked(request) } else { Asked::default() };
        let record = Record {
            time: SystemTime::now(),
            address,
            user: None,
            method: request.method().clone(),
            version: request.version(),
            asked,
            status: None,
            sent: 0,
            received: 0,
            first_byte: None,
            total: Duration::ZERO,
        };
        Self { log, metrics, start: Instant::now(), record }
    }

    /// The client showed the token of this name.
    pub(crate) fn user(&mut self, name: Option<String>) {
        self.record.user = name;
    }

    /// An origin is asked.
    pub(crate) fn origin(&mut self) {
        self.start = Instant::now();
    }

    /// The origin answered.
    pub(crate) fn answered(&mut self) {
        self.record.first_byte = Some(self.start.elapsed());
    }

    /// Notes the number of bytes of the request's body that went on.
    pub(crate) fn uploaded(&mut self, bytes: u64) {
        self.record.received = bytes;
    }

    /// The response is over: its status, if one was sent, and the bytes of its body.
    pub(crate) fn done(&mut self, status: Option<StatusCode>, bytes: u64) {
        self.record.status = status;
        self.record.sent = bytes;
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.record.total = self.start.elapsed();
        self.metrics.ended(&self.record);
        self.log.log(&self.record);
    }
}

/// Returns the log's description of `request`.
fn asked(request: &Request<()>) -> Asked {
    let uri = request.uri();
    let path = uri
        .path_and_query()
        .map_or_else(|| uri.authority().map(|host| host.as_str()), |path| Some(path.as_str()));
    Asked {
        host: uri.authority().map(|host| cut(host.as_str())).unwrap_or_default(),
        path: path.map(cut).unwrap_or_default(),
        referrer: field(request.headers(), &REFERER),
        agent: field(request.headers(), &USER_AGENT),
        priority: field(request.headers(), &hvq_h3::priority::PRIORITY),
    }
}

fn field(fields: &HeaderMap, name: &HeaderName) -> Option<String> {
    fields.get(name).map(|value| cut(&String::from_utf8_lossy(value.as_bytes())))
}

fn cut(text: &str) -> String {
    let end = (0..=LONGEST.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    text[..end.unwrap_or(0)].to_owned()
}
