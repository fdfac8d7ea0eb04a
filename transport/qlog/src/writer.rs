//! The thread that owns the files.

use crate::QlogOptions;
use crate::file::LogFile;
use crate::record::Record;
use hvq_transport::time::Instant;
use hvq_transport::trace::Subject;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, SystemTime};

/// The longest time for which written events may wait for the system.
const PERIOD: Duration = Duration::from_millis(200);

/// The state that tracers and the writer share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) options: QlogOptions,
    /// Bytes that wait.
    pub(crate) queued: AtomicUsize,
    /// Events that were not written.
    pub(crate) dropped: AtomicU64,
    /// Connections that asked for a file.
    pub(crate) started: AtomicUsize,
}

impl Shared {
    pub(crate) fn new(options: QlogOptions) -> Self {
        Self {
            options,
            queued: AtomicUsize::new(0),
            dropped: AtomicU64::new(0),
            started: AtomicUsize::new(0),
        }
    }

    /// The number of another file, `None` if there are as many as there may be.
    pub(crate) fn number(&self) -> Option<usize> {
        let index = self.started.fetch_add(1, Ordering::Relaxed);
        (index < self.options.files).then_some(index)
    }

    /// Returns true if there are as many files as there may be.
    pub(crate) fn is_full(&self) -> bool {
        self.started.load(Ordering::Relaxed) >= self.options.files
    }
}

/// A message to the writer.
pub(crate) enum Message {
    /// A connection begins.
    Open { file: usize, subject: Subject, wall: SystemTime, open: Arc<AtomicBool> },
    /// Something happened; `size` counts against the queue.
    Record { file: usize, at: Instant, record: Record, size: usize },
    /// The connection is gone; so many of its events were dropped.
    Close { file: usize, dropped: u64 },
    /// Somebody waits for what came before.
    Flush(Sender<()>),
}

/// Files by their number.
pub(crate) struct Writer {
    shared: Arc<Shared>,
    receiver: Receiver<Message>,
    files: HashMap<usize, Sink>,
}

/// A file, or what is left of one that could not be written.
struct Sink {
    file: Option<LogFile>,
    open: Arc<AtomicBool>,
}

impl Writer {
    pub(crate) fn new(shared: Arc<Shared>, receiver: Receiver<Message>) -> Self {
        Self { shared, receiver, files: HashMap::new() }
    }

    /// Writes until the last sender is gone.
    pub(crate) fn run(mut self) {
        loop {
            match self.receiver.recv_timeout(PERIOD) {
                Ok(message) => self.take(message),
                Err(RecvTimeoutError::Timeout) => self.flush(),
                Err(RecvTimeoutError::Disconnected) => return self.flush(),
            }
        }
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Open { file, subject, wall, open } => {
                let created = LogFile::create(&self.shared.options, &subject, wall);
                let sink = Sink { file: None, open };
                let sink = match created {
                    Ok(created) => Sink { file: Some(created), ..sink },
                    Err(error) => sink.broken(&error),
                };
                self.files.insert(file, sink);
            }
            Message::Record { file, at, record, size } => {
                self.shared.queued.fetch_sub(size, Ordering::Relaxed);
                self.write(file, at, &record);
            }
            Message::Close { file, dropped } => {
                if let Some(Sink { file: Some(file), .. }) = self.files.remove(&file) {
                    report(file.finish(dropped));
                }
            }
            Message::Flush(done) => {
                self.flush();
                // Whoever asked may have lost patience.
                let _impatient = done.send(());
            }
        }
    }

    fn write(&mut self, file: usize, at: Instant, record: &Record) {
        let sink = self.files.get_mut(&file);
        let Some(Sink { file: Some(file), open }) = sink else {
            self.shared.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let written = file.write(at, record);
        let full = file.bytes() >= self.shared.options.file_bytes;
        if full || written.is_err() {
            open.store(false, Ordering::Relaxed);
        }
        if written.is_err() {
            self.shared.dropped.fetch_add(1, Ordering::Relaxed);
            sink.into_iter().for_each(|sink| sink.file = None);
        }
        report(written);
    }

    fn flush(&mut self) {
        for sink in self.files.values_mut() {
            if let Some(Err(error)) = sink.file.as_mut().map(LogFile::flush) {
                sink.open.store(false, Ordering::Relaxed);
                sink.file = None;
                report(Err(error));
            }
        }
    }
}

impl Sink {
    /// Returns the same writer without a file, because of `error`.
    fn broken(self, error: &io::Error) -> Self {
        tracing::warn!(%error, "cannot create a qlog file");
        self.open.store(false, Ordering::Relaxed);
        self
    }
}

fn report(result: io::Result<()>) {
    if let Err(error) = result {
        tracing::warn!(%error, "cannot write a qlog file");
    }
}
