//! qlog files (draft-ietf-quic-qlog-main-schema, draft-ietf-quic-qlog-quic-events): one for each connection, with the
//! path of every packet and all frames of the multipath extension.
//!
//! A client's connection has a file from its first packet on, a server's from the end of its handshake on, with what happened
//! before: whoever sends Initial packets to a server makes no files.
//!
//! Connections hand copies of their events to a thread of their own through a bounded queue. A disk that is slow, full
//! or gone costs events, which are counted, and never time. No payload, no key and no token is ever written.

mod dialect;
mod event;
mod file;
mod frame;
mod parameters;
mod record;
#[cfg(test)]
mod tests;
mod writer;

pub use dialect::Dialect;
pub use frame::value as frame;

use crate::record::LogTracer;
use crate::writer::{Message, Shared};
use hvq_transport::trace::{Subject, Tracer, TracerFactory};
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Sender};
use std::time::Duration;

/// The place of the logs, and their limits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QlogOptions {
    /// The folder for the files `ID_client.sqlog` and `ID_server.sqlog`; it is made if it is missing. ID is the
    /// destination connection ID of the client's first packet.
    pub directory: PathBuf,
    /// The dialect: the names of events. Default: that of qvis.
    pub dialect: Dialect,
    /// The maximum size of one file, in bytes; later events are counted as dropped. Default: 1 GiB.
    pub file_bytes: u64,
    /// The maximum number of files over the life of the log; later connections are not logged. Default: 10,000.
    pub files: usize,
    /// The maximum number of bytes that wait for the disk; events beyond are dropped. Default: 32 MiB.
    pub queue_bytes: usize,
}

impl QlogOptions {
    /// Logs in `directory`, readable by qvis: at most 10,000 files of 1 GiB, with a queue of 32 MiB.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            dialect: Dialect::default(),
            file_bytes: 1 << 30,
            files: 10_000,
            queue_bytes: 32 << 20,
        }
    }
}

/// A folder of logs. Clones write to the same one; the thread ends with the last of them and of its tracers.
#[derive(Clone)]
pub struct Qlog {
    sender: Sender<Message>,
    shared: Arc<Shared>,
}

impl fmt::Debug for Qlog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Qlog").field("options", &self.shared.options).finish_non_exhaustive()
    }
}

impl Qlog {
    /// Logs as `options` say.
    ///
    /// # Errors
    /// The folder cannot be made, or the thread cannot be started.
    pub fn open(options: QlogOptions) -> io::Result<Self> {
        std::fs::create_dir_all(&options.directory)?;
        let shared = Arc::new(Shared::new(options));
        let (sender, receiver) = mpsc::channel();
        let writer = writer::Writer::new(shared.clone(), receiver);
        std::thread::Builder::new().name("hvq-qlog".to_owned()).spawn(move || writer.run())?;
        Ok(Self { sender, shared })
    }

    /// Returns a factory that makes a tracer for each connection: the `tracer` of a
    /// [`TransportConfig`](hvq_transport::connection::TransportConfig).
    pub fn factory(&self) -> TracerFactory {
        let log = self.clone();
        Arc::new(move |subject| log.tracer(subject))
    }

    fn tracer(&self, subject: &Subject) -> Option<Box<dyn Tracer>> {
        if self.shared.is_full() {
            self.shared.dropped.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        Some(Box::new(LogTracer::new(*subject, self.sender.clone(), self.shared.clone())))
    }

    /// Events that were not written because the disk was slow, full or gone, or a limit was reached.
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }

    /// Waits until what was recorded so far is handed to the system, at most for `patience`; whether it is.
    pub fn flush(&self, patience: Duration) -> bool {
        let (done, wait) = mpsc::channel();
        self.sender.send(Message::Flush(done)).is_ok() && wait.recv_timeout(patience).is_ok()
    }
}
