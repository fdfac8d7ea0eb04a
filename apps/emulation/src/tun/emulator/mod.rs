//! The channel model in real time between TUN devices: what one namespace sends comes out in the other, later or not at
//! all.
//!
//! It is the model that virtual time runs, so that its errors are those of the clock: a packet enters when it is read, and
//! leaves when the thread gets to write it. The lateness of each packet is recorded, and every [`Report`] says whether
//! the run is to be trusted. Packets that the kernel dropped before they could be read are counted too. The time that a
//! packet waited to be read is not known.

mod crossing;
mod engine;
pub mod log;
mod report;
#[cfg(test)]
mod tests;

use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

pub use crossing::{Crossing, Network, QueuedPacket};
use engine::EmulatorEngine;
use log::PacketLog;
pub use report::{ChannelReport, Confidence, Report};

/// A running emulator; dropping it stops it.
#[derive(Debug)]
pub struct Emulator {
    shared: Arc<Shared>,
    waker: UnixStream,
    thread: Option<JoinHandle<Report>>,
}

/// The state that the handle and the thread share.
#[derive(Debug)]
struct Shared {
    start: Instant,
    stopping: AtomicBool,
}

impl Emulator {
    /// Starts to carry packets over `crossings`, and to log them to `log`. A thread of its own waits with the precision of
    /// the kernel's high-resolution timers.
    ///
    /// # Errors
    /// No thread or socket is to be had.
    pub fn start(crossings: Vec<Crossing>, log: Option<PacketLog>) -> io::Result<Self> {
        let (waker, wakened) = UnixStream::pair()?;
        wakened.set_nonblocking(true)?;
        let shared = Arc::new(Shared { start: Instant::now(), stopping: AtomicBool::new(false) });
        let engine = EmulatorEngine::new(Arc::clone(&shared), wakened, crossings, log);
        let thread =
            std::thread::Builder::new().name("hvq-emulator".to_owned()).spawn(move || engine.run())?;
        Ok(Self { shared, waker, thread: Some(thread) })
    }

    /// Stops it and returns what it did. Packets under way are lost; the devices are gone, and the log is complete.
    ///
    /// # Errors
    /// Its thread panicked.
    pub fn stop(mut self) -> io::Result<Report> {
        self.halt().ok_or_else(|| io::Error::other("the emulator panicked"))
    }

    fn halt(&mut self) -> Option<Report> {
        self.shared.stopping.store(true, Ordering::Release);
        // One byte always fits into an empty pipe; the thread looks at the flag once a second in any case.
        let _woken = (&self.waker).write(&[0]);
        self.thread.take()?.join().ok()
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        let _report = self.halt();
    }
}
