//! A UDP relay that puts a channel between clients and a server, without privileges.
//!
//! Clients send to the relay as if it were the server; what they send goes up through the [`Channel`] and on to the
//! server from a socket of the relay's own, one for each client; answers come back down. All clients share the one
//! channel, as the devices behind one radio link do. A thread of its own waits with the precision of the kernel's
//! high-resolution timers (an async runtime's are a millisecond apart). ECN marks are kept.

mod channel;
mod clients;
mod engine;
mod socket;
mod statistics;
#[cfg(test)]
mod tests;

use std::io;
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub use channel::EmulatedChannel;
use engine::QueuedDatagram;
use engine::RelayEngine;
pub use quinn_udp::EcnCodepoint;
pub use socket::{Buffers, Datagram, RelaySocket};
use statistics::RelayCounters;
pub use statistics::RelayStatistics;

use crate::channel::{Channel, Direction};
use crate::link::Admission;
use crate::spec::ChannelSpec;
use crate::trace::TraceError;

/// The reason for which a relay could not start.
#[derive(Debug, thiserror::Error)]
pub enum RelayError {
    /// A trace cannot be used.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A socket or the thread could not be had.
    #[error("cannot start the relay: {0}")]
    Io(#[from] io::Error),
}

/// The moment of a packet that a tap reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TapMoment {
    /// It was handed to the channel, which took it or not.
    Entered(Admission),
    /// It came out of the channel and was sent.
    Left {
        /// The delay from its entry, as the channel says.
        delay: Duration,
        /// The time by which it came out later than the channel says.
        lateness: Duration,
    },
}

/// A packet passing the tap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TapEvent {
    /// The time of the event, since the start of the relay.
    pub at: Duration,
    /// The direction of the packet.
    pub direction: Direction,
    /// UDP payload, in bytes.
    pub size: usize,
    /// The packet's entry or departure.
    pub moment: TapMoment,
}

/// An observer of every packet, called in the relay's thread: it must be quick, and it must not call the handle, which
/// would wait for that same thread.
pub type Tap = Box<dyn FnMut(TapEvent) + Send>;

/// Everything a relay can be told. A command line needs `listen`, `upstream`, `spec` and `seed`; the rest has defaults.
pub struct RelayOptions {
    /// The address that clients send to; port 0 picks one.
    pub listen: SocketAddr,
    /// The server.
    pub upstream: SocketAddr,
    /// The channel; up is from clients to the server.
    pub spec: ChannelSpec,
    /// The seed of the channel's dice.
    pub seed: u64,
    /// The silence, either way, after which a client is forgotten. Default: one minute.
    pub idle_expiry: Duration,
    /// The maximum number of clients at once; datagrams of further ones are dropped. Default: 256.
    pub most_clients: usize,
    /// The width of the buckets in which bytes over time are recorded. Default: none are.
    pub series: Option<Duration>,
    /// An observer of every packet. Default: none.
    pub tap: Option<Tap>,
}

impl RelayOptions {
    /// Options with defaults for all but the essential four.
    pub fn new(listen: SocketAddr, upstream: SocketAddr, spec: ChannelSpec, seed: u64) -> Self {
        Self {
            listen,
            upstream,
            spec,
            seed,
            idle_expiry: Duration::from_secs(60),
            most_clients: 256,
            series: None,
            tap: None,
        }
    }
}

/// Starts relays.
#[derive(Debug)]
pub struct Relay;

impl Relay {
    /// Starts a relay from `listen` to `upstream` through the channel `spec`. Fails if a trace cannot be used, an
    /// address cannot be bound, or no thread is to be had.
    pub fn start(
        listen: SocketAddr,
        upstream: SocketAddr,
        spec: ChannelSpec,
        seed: u64,
    ) -> Result<RelayHandle, RelayError> {
        Self::start_with(RelayOptions::new(listen, upstream, spec, seed))
    }

    /// Starts a relay with all options. Fails like [`Relay::start`].
    pub fn start_with(options: RelayOptions) -> Result<RelayHandle, RelayError> {
        let mut channel = Channel::new(&options.spec, options.seed)?;
        if let Some(width) = options.series {
            channel.link_mut(Direction::Up).record_series(width);
            channel.link_mut(Direction::Down).record_series(width);
        }
        let listener = RelaySocket::bind(options.listen)?;
        let local_addr = listener.local_addr()?;
        let (waker, wakened) = UnixStream::pair()?;
        wakened.set_nonblocking(true)?;
        let shared = Arc::new(Shared {
            start: Instant::now(),
            stopping: AtomicBool::new(false),
            state: Mutex::new(State { channel, counters: RelayCounters::new() }),
        });
        let engine = RelayEngine::new(options, listener, wakened, Arc::clone(&shared));
        let thread = std::thread::Builder::new().name("hvq-relay".to_owned()).spawn(move || engine.run())?;
        Ok(RelayHandle { local_addr, shared, waker, thread: Some(thread) })
    }
}

/// A running relay; dropping it stops it.
#[derive(Debug)]
pub struct RelayHandle {
    local_addr: SocketAddr,
    shared: Arc<Shared>,
    waker: UnixStream,
    thread: Option<JoinHandle<()>>,
}

impl RelayHandle {
    /// Returns the address that clients send to.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Returns the time for which the relay has been running: the channel's time.
    pub fn elapsed(&self) -> Duration {
        self.shared.start.elapsed()
    }

    /// The counters as they stand.
    pub fn stats(&self) -> RelayStatistics {
        let state = self.shared.state();
        RelayStatistics::new(&state.channel, &state.counters)
    }

    /// Lets nothing through, either way, until [`RelayHandle::restore`].
    pub fn cut(&self) {
        self.shared.state().channel.cut(self.elapsed(), Duration::MAX);
    }

    /// Lets nothing through, either way, for `duration` from now.
    pub fn cut_for(&self, duration: Duration) {
        let now = self.elapsed();
        self.shared.state().channel.cut(now, now.saturating_add(duration));
    }

    /// Ends what [`RelayHandle::cut`] or [`RelayHandle::cut_for`] began; planned blackouts stay.
    pub fn restore(&self) {
        self.shared.state().channel.restore(self.elapsed());
    }

    /// Stops the relay, closes its sockets, and returns the last counters. Datagrams under way are lost.
    pub fn stop(mut self) -> RelayStatistics {
        self.halt();
        self.stats()
    }

    fn halt(&mut self) {
        self.shared.stopping.store(true, Ordering::Release);
        // One byte always fits into an empty pipe; the thread looks at the flag once a second in any case.
        let _ = (&self.waker).write(&[0]);
        if let Some(thread) = self.thread.take() {
            // A panic there (the tap's) has been reported already.
            let _ = thread.join();
        }
    }
}

impl Drop for RelayHandle {
    fn drop(&mut self) {
        self.halt();
    }
}

/// The state that the handle and the thread share.
#[derive(Debug)]
struct Shared {
    start: Instant,
    stopping: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    channel: Channel<QueuedDatagram>,
    counters: RelayCounters,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // The state is whole between any two calls, whoever panicked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
