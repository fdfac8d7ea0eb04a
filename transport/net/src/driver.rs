//! The task that moves an endpoint: datagrams in, events and datagrams out, deadlines met.

use crate::runtime::{Arrivals, AsyncTimer};
use crate::shared::{IoStats, Progress, Shared};
use crate::socket::{OversizedDatagram, Socket};
use crate::workers::Neighbours;
use hvq_transport::connection::{Datagram, Transmit};
use hvq_transport::time::Deadline;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Rounds before other tasks get their turn.
const ROUNDS: usize = 16;
/// Outputs of the protocol taken in one round; the lock is released between rounds.
const OUTPUTS: usize = 128;
/// Bytes of datagrams after which a round takes no more: they are sent, or heard, while they are in the processor's cache. A round
/// takes no less from a socket that has more. Handshakes begin a few a round, so that a flood of them does not wait in the
/// kernel, where everybody's datagrams would wait behind it.
const BYTES: usize = 256 << 10;
/// Bytes that a batch counts as at least.
const LEAST: usize = 16 << 10;
/// Batches that wait for a socket that takes none. Beyond it they are dropped, so that a channel that is stuck neither
/// stops the others nor delivers what is old.
const BACKLOG: usize = 128;

/// The future that the driver task runs. It ends when no handle on the endpoint and no connection is left; when it is
/// dropped before, everybody who waits for the endpoint is told.
pub(crate) struct Driver {
    shared: Arc<Shared>,
    ports: Vec<Port>,
    version: Option<u64>,
    /// The other workers, which share the addresses.
    neighbours: Option<Neighbours>,
    timer: Box<dyn AsyncTimer>,
    arrivals: Arrivals,
    /// Datagrams for which other workers knew no connection.
    strays: Vec<Datagram>,
    outgoing: Vec<Transmit>,
    stats: IoStats,
    /// The number of errors of sending that were looked into.
    errors: u64,
}

/// Tells whether every socket was read until it had nothing more. Only then is the task woken for what comes next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reading {
    /// Every one was.
    Read,
    /// One may have more, which the next round reads.
    Left,
}

/// A socket, and what waits until it takes more.
struct Port {
    socket: Arc<Socket>,
    /// Batches, the first of them sent up to an offset.
    backlog: VecDeque<Transmit>,
    offset: usize,
    /// Memory of batches that were sent.
    spent: Vec<Vec<u8>>,
}

impl Driver {
    /// The driver of a new endpoint.
    pub(crate) fn new(shared: Arc<Shared>, neighbours: Option<Neighbours>) -> Self {
        let timer = shared.runtime().new_timer();
        Self {
            shared,
            ports: Vec::new(),
            version: None,
            neighbours,
            timer,
            arrivals: Arrivals::default(),
            strays: Vec::new(),
            outgoing: Vec::new(),
            stats: IoStats::default(),
            errors: 0,
        }
    }

    /// One round: what arrived goes in, what is due comes out.
    fn round(&mut self, context: &mut Context<'_>) -> Progress {
        for port in &mut self.ports {
            port.flush(context, &mut self.stats);
        }
        let reading = self.receive(context);
        let refused = self.take_refused();
        let now = self.shared.now();
        let progress = {
            let mut state = self.shared.lock();
            state.register_driver(context.waker());
            for bytes in self.ports.iter_mut().flat_map(|port| port.spent.drain(..)) {
                state.core.recycle(bytes);
            }
            for datagram in self.arrivals.datagrams.drain(..) {
                state.core.handle(datagram, now);
            }
            for stray in self.strays.drain(..) {
                state.core.on_stray(&stray);
            }
            if let Some(neighbours) = &self.neighbours {
                state.core.take_strays().iter().for_each(|stray| neighbours.show(stray));
            }
            for OversizedDatagram { tuple, size } in refused {
                state.core.on_refused(tuple, size, now);
            }
            let progress = state.drive(now, (OUTPUTS, BYTES), &mut self.outgoing);
            if self.version != Some(state.sockets.version()) {
                self.version = Some(state.sockets.version());
                follow(&mut self.ports, state.sockets.all());
                // New sockets have to be asked for what arrived.
                context.waker().wake_by_ref();
            }
            state.io = self.stats;
            self.arrivals.buffers.set_senders(state.slots.len());
            state.end_round();
            progress
        };
        self.send(context);
        match progress {
            // The next round reads it, or tells the protocol what was not sent.
            Progress::Idle(_) if reading == Reading::Left || self.errors != self.stats.send_errors => {
                Progress::More
            }
            progress => progress,
        }
    }

    /// Takes what each socket has, until a batch brings it to [`BYTES`], and what other workers hand over.
    fn receive(&mut self, context: &mut Context<'_>) -> Reading {
        let mut reading = Reading::Read;
        for port in &self.ports {
            let mut bytes = 0;
            loop {
                if bytes >= BYTES {
                    reading = Reading::Left;
                    break;
                }
                let before = self.arrivals.datagrams.len();
                if port.socket.poll_receive(context, &mut self.arrivals).is_pending() {
                    break;
                }
                self.stats.receive_calls += 1;
                let batch = self.arrivals.datagrams.get(before..).unwrap_or_default();
                self.stats.datagrams_received += batch.len() as u64;
                let taken: usize = batch.iter().map(|datagram| datagram.bytes.len()).sum();
                self.stats.bytes_received += taken as u64;
                // One without content, or an error, counts as well: no peer has this go on for ever.
                bytes += taken.max(LEAST);
            }
        }
        if let Some(neighbours) = &self.neighbours {
            self.stats.handed_over +=
                neighbours.share_out(&mut self.arrivals.datagrams, &mut self.strays, context.waker());
        }
        reading
    }

    /// Takes the datagrams that sockets refused to send since the last call because they were too large.
    fn take_refused(&mut self) -> Vec<OversizedDatagram> {
        if std::mem::replace(&mut self.errors, self.stats.send_errors) == self.stats.send_errors {
            return Vec::new();
        }
        self.ports.iter().flat_map(|port| port.socket.take_refused()).collect()
    }

    fn send(&mut self, context: &mut Context<'_>) {
        for transmit in self.outgoing.drain(..) {
            match self.ports.iter_mut().find(|port| port.socket.sends_from(transmit.local)) {
                Some(port) => port.send(transmit, &mut self.stats),
                None => self.stats.send_drops += 1,
            }
        }
        for port in &mut self.ports {
            port.flush(context, &mut self.stats);
        }
    }

    /// Polls the deadline: ready once it passed; pending for ever if there is none.
    fn poll_deadline(&mut self, deadline: Option<Deadline>, context: &mut Context<'_>) -> Poll<()> {
        let Some(deadline) = deadline else { return Poll::Pending };
        self.timer.poll(self.shared.clock_at(deadline.at), context)
    }
}

impl Future for Driver {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        for _ in 0..ROUNDS {
            match self.round(context) {
                Progress::More => {}
                Progress::Finished => return Poll::Ready(()),
                Progress::Idle(deadline) => {
                    if self.poll_deadline(deadline, context).is_pending() {
                        return Poll::Pending;
                    }
                }
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.shared.lock().die();
    }
}

impl Port {
    fn send(&mut self, transmit: Transmit, stats: &mut IoStats) {
        if self.backlog.len() >= BACKLOG {
            stats.send_drops += 1;
            return;
        }
        self.backlog.push_back(transmit);
        if self.backlog.len() == 1 {
            self.push(stats);
        }
    }

    /// Sends what waits, and has the task woken when the socket takes more.
    fn flush(&mut self, context: &mut Context<'_>, stats: &mut IoStats) {
        while !self.backlog.is_empty() && self.socket.poll_send_ready(context).is_ready() {
            self.push(stats);
        }
    }

    fn push(&mut self, stats: &mut IoStats) {
        while let Some(first) = self.backlog.front() {
            if let Err(reached) = self.socket.send(first, self.offset, stats) {
                self.offset = reached;
                return;
            }
            self.offset = 0;
            self.spent.extend(self.backlog.pop_front().map(|sent| sent.bytes));
        }
    }
}

/// Makes `ports` those of `sockets`, each keeping what waits for it.
fn follow<'a>(ports: &mut Vec<Port>, sockets: impl Iterator<Item = &'a Arc<Socket>>) {
    let mut old = std::mem::take(ports);
    for socket in sockets {
        let known = old.iter().position(|port| Arc::ptr_eq(&port.socket, socket));
        let port = known.map(|index| old.swap_remove(index));
        let fresh =
            || Port { socket: socket.clone(), backlog: VecDeque::new(), offset: 0, spent: Vec::new() };
        ports.push(port.unwrap_or_else(fresh));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LocalAddress;
    use crate::sockets::{Sockets, Source};
    use hvq_transport::endpoint::{Endpoint, EndpointConfig};
    use std::net::UdpSocket;
    use std::task::Waker;
    use std::time::Duration;

    /// A driver that knows its one socket, the address of that, and the socket of a peer.
    fn driver() -> (Driver, std::net::SocketAddr, UdpSocket) {
        let mut sockets = Sockets::new(Source::Routed, crate::runtime::current().unwrap());
        sockets.bind_permanent(&LocalAddress::Ip([127, 0, 0, 1].into())).unwrap();
        let address = sockets.addresses()[0];
        let core = Endpoint::new(EndpointConfig::default(), None, [0; 32]);
        let mut driver = Driver::new(Arc::new(Shared::new(core, sockets)), None);
        // The first round learns which sockets there are.
        driver.round(&mut Context::from_waker(Waker::noop()));
        (driver, address, UdpSocket::bind("127.0.0.1:0").unwrap())
    }

    /// A waker that remembers that it was called.
    #[derive(Default)]
    struct Bell(std::sync::atomic::AtomicBool);

    impl std::task::Wake for Bell {
        fn wake(self: Arc<Self>) {
            self.0.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    }

    #[tokio::test]
    async fn a_round_that_read_everything_is_the_last_until_more_arrives() {
        let (mut driver, address, peer) = driver();
        let bell = Arc::new(Bell::default());
        let waker = Waker::from(bell.clone());
        let mut context = Context::from_waker(&waker);
        for count in 1..=3 {
            bell.0.store(false, std::sync::atomic::Ordering::Relaxed);
            peer.send_to(&[0; 1_200], address).unwrap();
            let progress = loop {
                let progress = driver.round(&mut context);
                if driver.stats.datagrams_received == count {
                    break progress;
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            };
            assert_eq!(progress, Progress::Idle(None));
            assert!(
                count == 1 || bell.0.load(std::sync::atomic::Ordering::Relaxed),
                "woken for datagram {count}"
            );
        }
    }

    #[tokio::test]
    async fn a_round_hears_all_that_waits_in_a_socket_and_not_a_batch_alone() {
        let (mut driver, address, peer) = driver();
        let mut context = Context::from_waker(Waker::noop());
        // As many as fit into the smallest buffer that systems give.
        for _ in 0..80 {
            peer.send_to(&[0; 1_200], address).unwrap();
        }
        while driver.stats.datagrams_received == 0 {
            driver.round(&mut context);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(driver.stats.datagrams_received, 80);
    }
}
