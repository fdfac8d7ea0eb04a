//! The relay's thread: wait, receive, hand in; hand out, send.

use std::collections::VecDeque;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use quinn_udp::EcnCodepoint;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::clients::{ClientId, Clients};
use super::socket::{Buffers, Datagram, RelaySocket};
use super::{RelayOptions, Shared, State, Tap, TapEvent, TapMoment};
use crate::channel::Direction;

/// The thread looks around at least this often.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// System calls to receive from one socket before the others get their turn and due packets are sent.
const MOST_BATCHES: usize = 4;

/// A datagram inside the channel.
#[derive(Clone, Debug)]
pub(super) struct QueuedDatagram {
    client: ClientId,
    ecn: Option<EcnCodepoint>,
    payload: Bytes,
}

pub(super) struct RelayEngine {
    listener: RelaySocket,
    wakened: UnixStream,
    shared: Arc<Shared>,
    clients: Clients,
    tap: Option<Tap>,
    buffers: Buffers,
    /// Received and not yet handed in.
    inbox: VecDeque<Datagram>,
}

/// A socket that has something.
enum Ready {
    Listener,
    Client(ClientId),
    Waker,
}

impl RelayEngine {
    pub(super) fn new(
        options: RelayOptions,
        listener: RelaySocket,
        wakened: UnixStream,
        shared: Arc<Shared>,
    ) -> Self {
        Self {
            listener,
            wakened,
            shared,
            clients: Clients::new(options.upstream, options.most_clients, options.idle_expiry),
            tap: options.tap,
            buffers: Buffers::new(),
            inbox: VecDeque::new(),
        }
    }

    pub(super) fn run(mut self) {
        sharpen_timers();
        while !self.shared.stopping.load(Ordering::Acquire) {
            let deadline = self.hand_out();
            for ready in self.wait(deadline) {
                match ready {
                    Ready::Listener => self.receive_from_clients(),
                    Ready::Client(id) => self.receive_from_upstream(id),
                    Ready::Waker => {
                        // Only there to end the wait; the flag says why.
                        let _ = self.wakened.read(&mut [0; 16]);
                    }
                }
            }
            self.clients.expire(self.now());
        }
    }

    fn now(&self) -> Duration {
        self.shared.start.elapsed()
    }

    /// Sends everything that has left the channel; returns when the next packet leaves.
    fn hand_out(&mut self) -> Option<Duration> {
        let shared = Arc::clone(&self.shared);
        let mut state = shared.state();
        let State { channel, counters } = &mut *state;
        counters.clients = self.clients.len();
        let now = self.now();
        while let Some((direction, departure)) = channel.dequeue(now) {
            let mut datagram = departure.packet;
            if departure.congested && datagram.ecn.is_some() {
                datagram.ecn = Some(EcnCodepoint::Ce);
            }
            let sent = self.send(direction, &datagram);
            let at = self.now();
            if sent.is_none() {
                counters.unsent.add(departure.size);
            }
            let lateness = at.saturating_sub(departure.at);
            counters.lateness.record(lateness);
            let moment = TapMoment::Left { delay: departure.at - departure.entered, lateness };
            self.tap(TapEvent { at, direction, size: departure.size, moment });
        }
        channel.next_deadline()
    }

    /// Sends one datagram; `None` if it could not be.
    fn send(&self, direction: Direction, datagram: &QueuedDatagram) -> Option<()> {
        let client = self.clients.get(datagram.client)?;
        let sent = match direction {
            Direction::Up => {
                client.socket.send(self.clients.upstream(), None, datagram.ecn, &datagram.payload)
            }
            Direction::Down => {
                self.listener.send(client.address, client.reply_from, datagram.ecn, &datagram.payload)
            }
        };
        sent.inspect_err(|error| tracing::debug!(%error, ?direction, "a datagram could not be sent")).ok()
    }

    /// Waits until `deadline` or until some socket has something.
    fn wait(&self, deadline: Option<Duration>) -> Vec<Ready> {
        let left = deadline.map_or(LONGEST_WAIT, |at| at.saturating_sub(self.now()).min(LONGEST_WAIT));
        let timeout = Timespec {
            tv_sec: left.as_secs().try_into().expect("at most a second"),
            tv_nsec: left.subsec_nanos().into(),
        };
        let mut sockets =
            vec![PollFd::new(&self.wakened, PollFlags::IN), PollFd::new(&self.listener, PollFlags::IN)];
        sockets.extend(self.clients.iter().map(|(_, client)| PollFd::new(&client.socket, PollFlags::IN)));
        if let Err(error) = poll(&mut sockets, Some(&timeout)) {
            // An interrupted wait is one that ended early.
            tracing::trace!(%error, "the wait ended early");
            return Vec::new();
        }
        let names = [Ready::Waker, Ready::Listener].into_iter();
        let names = names.chain(self.clients.iter().map(|(id, _)| Ready::Client(id)));
        let ready = names.zip(&sockets).filter(|(_, socket)| !socket.revents().is_empty());
        ready.map(|(name, _)| name).collect()
    }

    fn receive_from_clients(&mut self) {
        let inbox = &mut self.inbox;
        receive(&self.listener, &mut self.buffers, |datagram| inbox.push_back(datagram));
        let now = self.now();
        while let Some(datagram) = self.inbox.pop_front() {
            match self.clients.find(datagram.source, datagram.destination, now) {
                Ok(client) => self.hand_in(Direction::Up, client, datagram, now),
                Err(error) => {
                    tracing::debug!(%error, client = %datagram.source, "a client is refused");
                    self.shared.state().counters.refused.add(datagram.payload.len());
                }
            }
        }
    }

    fn receive_from_upstream(&mut self, id: ClientId) {
        let Some(client) = self.clients.get(id) else { return };
        let (inbox, upstream) = (&mut self.inbox, self.clients.upstream());
        receive(&client.socket, &mut self.buffers, |datagram| {
            // The socket is open to all; the channel is the server's.
            if datagram.source == upstream {
                inbox.push_back(datagram);
            }
        });
        let now = self.now();
        self.clients.touch(id, now);
        while let Some(datagram) = self.inbox.pop_front() {
            self.hand_in(Direction::Down, id, datagram, now);
        }
    }

    fn hand_in(&mut self, direction: Direction, client: ClientId, datagram: Datagram, now: Duration) {
        let size = datagram.payload.len();
        let datagram = QueuedDatagram { client, ecn: datagram.ecn, payload: datagram.payload };
        let verdict = self.shared.state().channel.enqueue(direction, now, datagram, size);
        self.tap(TapEvent { at: now, direction, size, moment: TapMoment::Entered(verdict) });
    }

    fn tap(&mut self, event: TapEvent) {
        if let Some(tap) = &mut self.tap {
            tap(event);
        }
    }
}

/// Receives a bounded amount from `socket`.
fn receive(socket: &RelaySocket, buffers: &mut Buffers, mut take: impl FnMut(Datagram)) {
    for _ in 0..MOST_BATCHES {
        match socket.receive(buffers, &mut take) {
            Ok(()) => {}
            Err(error) => {
                if error.kind() != std::io::ErrorKind::WouldBlock {
                    tracing::debug!(%error, "nothing received");
                }
                return;
            }
        }
    }
}

/// Asks the kernel not to lump this thread's timers together; it would by 50 µs.
fn sharpen_timers() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1)) {
        tracing::debug!(%error, "timers stay as coarse as they are");
    }
}
