//! Hosts: addresses, and the runtime of the endpoints there.

use crate::clock::VirtualTimer;
use crate::network::Packet;
use crate::world::World;
use async_executor::Executor;
use bytes::Bytes;
use hvq::runtime::{Arrivals, AsyncTimer, AsyncUdpSocket, Outgoing, Runtime};
use hvq::{Endpoint, EndpointOptions};
use hvq_emulation::{SpecError, TraceError};
use std::fmt;
use std::future::Future;
use std::io;
use std::net::{AddrParseError, IpAddr, SocketAddr, UdpSocket};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// The system's time at which simulations begin, since 1970: the same in each run.
const EPOCH: Duration = Duration::from_secs(1_800_000_000);

/// A host of a simulation. Clones are the same one.
#[derive(Clone)]
pub struct Host {
    world: Arc<World>,
    executor: Weak<Executor<'static>>,
    addresses: Arc<[IpAddr]>,
}

/// A host that cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The text is no address.
    #[error("{0:?} is no IP address: {1}")]
    Address(String, AddrParseError),
    /// A host has the address already.
    #[error("a host has the address {0} already")]
    Taken(IpAddr),
    /// The text is no channel.
    #[error("the channel of {0}: {1}")]
    Channel(IpAddr, SpecError),
    /// A trace of the channel cannot be used.
    #[error("the channel of {0}: {1}")]
    Trace(IpAddr, TraceError),
}

impl Host {
    pub(crate) fn new(
        world: Arc<World>,
        executor: Weak<Executor<'static>>,
        addresses: &[(&str, &str)],
    ) -> Result<Self, HostError> {
        let mut known = Vec::new();
        for (text, spec) in addresses {
            let address: IpAddr =
                text.parse().map_err(|error| HostError::Address((*text).to_owned(), error))?;
            let spec = spec.parse().map_err(|error| HostError::Channel(address, error))?;
            let added = world.lock().network.add(address, &spec);
            if !added.map_err(|error| HostError::Trace(address, error))? {
                return Err(HostError::Taken(address));
            }
            known.push(address);
        }
        Ok(Self { world, executor, addresses: known.into() })
    }

    /// The addresses, in their order.
    pub fn addresses(&self) -> &[IpAddr] {
        &self.addresses
    }

    /// An endpoint on this host. Local addresses are those of the host; an unspecified one is the first of its IP version.
    ///
    /// # Errors
    /// Those of [`Endpoint::new`].
    pub fn endpoint(&self, mut options: EndpointOptions) -> io::Result<Endpoint> {
        if options.config.epoch().is_zero() {
            options.config.set_epoch(EPOCH);
        }
        Endpoint::new(EndpointOptions { runtime: Some(Arc::new(self.clone())), ..options })
    }

    /// Lets nothing through the channel of an address of this network from now on.
    pub fn cut(&self, address: IpAddr) {
        let mut state = self.world.lock();
        let now = state.now;
        if let Some(channel) = state.network.channel(address) {
            channel.cut(now, Duration::MAX);
        }
    }

    /// Ends what [`cut`](Self::cut) began.
    pub fn restore(&self, address: IpAddr) {
        let mut state = self.world.lock();
        let now = state.now;
        if let Some(channel) = state.network.channel(address) {
            channel.restore(now);
        }
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("addresses", &self.addresses).finish_non_exhaustive()
    }
}

impl Runtime for Host {
    fn spawn(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>) {
        // A simulation that is gone runs nothing.
        if let Some(executor) = self.executor.upgrade() {
            executor.spawn(task).detach();
        }
    }

    fn new_timer(&self) -> Box<dyn AsyncTimer> {
        Box::new(VirtualTimer::new(self.world.clone()))
    }

    fn now(&self) -> Instant {
        self.world.instant()
    }

    fn wrap_udp_socket(&self, _socket: UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "a simulation has no sockets of the kernel"))
    }

    fn bind_udp_socket(&self, local: SocketAddr) -> io::Result<Option<Arc<dyn AsyncUdpSocket>>> {
        let asked = local.ip();
        let fits = |own: &&IpAddr| match asked.is_unspecified() {
            // An unspecified IPv6 address is one of both versions.
            true => asked.is_ipv6() || own.is_ipv4(),
            false => **own == asked,
        };
        let own = self.addresses.iter().find(fits).ok_or(io::ErrorKind::AddrNotAvailable)?;
        let bound = self.world.lock().network.bind(SocketAddr::new(*own, local.port()));
        let local = bound.ok_or(io::ErrorKind::AddrInUse)?;
        Ok(Some(Arc::new(SimulatedSocket { world: self.world.clone(), local })))
    }

    fn fill_random(&self, bytes: &mut [u8]) -> io::Result<()> {
        self.world.lock().fill_random(bytes);
        Ok(())
    }
}

/// A socket in the network. It takes whatever is sent: queues are in the channels.
#[derive(Debug)]
struct SimulatedSocket {
    world: Arc<World>,
    local: SocketAddr,
}

impl AsyncUdpSocket for SimulatedSocket {
    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.local)
    }

    fn try_send(&self, batch: &Outgoing<'_>) -> io::Result<usize> {
        let mut state = self.world.lock();
        let now = state.now;
        for payload in batch.datagrams() {
            let bytes = Bytes::copy_from_slice(payload);
            let packet = Packet { from: self.local, to: batch.remote, ecn: batch.ecn, bytes };
            state.network.send(now, packet);
        }
        Ok(batch.contents.len())
    }

    fn poll_send_ready(&self, _context: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }

    fn poll_receive(&self, context: &mut Context<'_>, arrivals: &mut Arrivals) -> Poll<io::Result<()>> {
        let mut state = self.world.lock();
        match state.network.receive(self.local, context.waker(), arrivals.datagrams()) {
            true => Poll::Ready(Ok(())),
            false => Poll::Pending,
        }
    }
}

impl Drop for SimulatedSocket {
    fn drop(&mut self) {
        self.world.lock().network.unbind(self.local);
    }
}
