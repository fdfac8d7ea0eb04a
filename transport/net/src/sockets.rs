//! The sockets of an endpoint: bound at its start, or for as long as connections use them.

use crate::LocalAddress;
use crate::error::RemoveSocketError;
use crate::path::LinkAddress;
use crate::runtime::{AsyncUdpSocket, Runtime};
use crate::socket::{Port, Socket};
use crate::steering::Shares;
use hvq_transport::endpoint::ConnectionHandle;
use std::collections::HashSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

/// Tells who chooses the source address of datagrams that leave through a socket that is bound to all addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    /// The kernel, for every datagram by its route: a client that moves to another network migrates. The protocol sees
    /// the socket's address.
    Routed,
    /// The protocol: a server answers from where it was asked. The protocol sees the address of each datagram.
    Pinned,
}

/// The holders of a socket.
#[derive(Debug)]
enum Holders {
    /// The endpoint, as long as it lives.
    Endpoint,
    /// These connections; a new socket has none yet.
    Connections(HashSet<ConnectionHandle>),
}

#[derive(Debug)]
struct Entry {
    socket: Arc<Socket>,
    holders: Holders,
}

/// All sockets of an endpoint.
#[derive(Debug)]
pub(crate) struct Sockets {
    entries: Vec<Entry>,
    source: Source,
    version: u64,
    runtime: Arc<dyn Runtime>,
    /// True once the program took one away: paths may be left without a socket since then.
    has_removed: bool,
}

impl Sockets {
    /// None yet.
    pub(crate) fn new(source: Source, runtime: Arc<dyn Runtime>) -> Self {
        Self { entries: Vec::new(), source, version: 0, runtime, has_removed: false }
    }

    /// The runtime that watches them.
    pub(crate) fn runtime(&self) -> &Arc<dyn Runtime> {
        &self.runtime
    }

    /// Returns true if what some of them send may be fragmented on the way.
    pub(crate) fn may_fragment(&self) -> bool {
        self.all().any(|socket| socket.may_fragment())
    }

    /// Counts changes, so that the driver notices them.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// All sockets.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Socket>> {
        self.entries.iter().map(|entry| &entry.socket)
    }

    /// Their addresses.
    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        self.all().map(|socket| socket.local()).collect()
    }

    /// Binds a socket that stays as long as the endpoint. An interface gets a socket for both IP versions.
    pub(crate) fn bind_permanent(&mut self, local: &LocalAddress) -> io::Result<()> {
        self.bind_lasting(local, None, Port::Own).map(drop)
    }

    /// Binds a socket as [`Self::bind_permanent`] does that shares its address: the first of them to `local`, the others to
    /// the `port` that the first has, which is returned.
    pub(crate) fn bind_shared(&mut self, local: &LocalAddress, port: Option<u16>) -> io::Result<u16> {
        let shared = if port.is_none() { Port::First } else { Port::Another };
        Ok(self.bind_lasting(local, port, shared)?.local().port())
    }

    /// Binds a socket to `local` that shares its address and port with those of another group of workers.
    pub(crate) fn bind_beside(&mut self, local: &LocalAddress) -> io::Result<u16> {
        Ok(self.bind_lasting(local, None, Port::Another)?.local().port())
    }

    /// Has the kernel share out what comes to the addresses of these sockets, which are the first of those that share them.
    pub(crate) fn steer(&self, shares: &Shares) -> io::Result<()> {
        self.all().try_for_each(|socket| socket.steer(shares))
    }

    /// Takes a socket of the kernel that the program bound, and that stays as long as the endpoint; its address.
    pub(crate) fn adopt(&mut self, socket: std::net::UdpSocket) -> io::Result<SocketAddr> {
        let socket = Socket::adopt(&*self.runtime, socket, self.source)?;
        Ok(self.add(socket, Holders::Endpoint).local())
    }

    /// Takes a socket of the program that stays as long as the endpoint; its address, which no other may have.
    pub(crate) fn adopt_abstract(&mut self, socket: Arc<dyn AsyncUdpSocket>) -> io::Result<SocketAddr> {
        let socket = Socket::new(socket, self.source)?;
        if self.all().any(|other| other.local() == socket.local()) {
            let reason = format!("the endpoint has a socket at {} already", socket.local());
            return Err(io::Error::new(io::ErrorKind::AddrInUse, reason));
        }
        Ok(self.add(socket, Holders::Endpoint).local())
    }

    /// Takes away what is bound to `local`.
    pub(crate) fn remove(&mut self, local: SocketAddr) -> Result<(), RemoveSocketError> {
        let is_it = |entry: &Entry| entry.socket.local() == local;
        let found = self.entries.iter().find(|entry| is_it(entry));
        let found = found.ok_or(RemoveSocketError::Unknown(local))?;
        if found.socket.is_shared() {
            return Err(RemoveSocketError::Shared(local));
        }
        if self.entries.iter().all(is_it) {
            return Err(RemoveSocketError::Last(local));
        }
        self.entries.retain(|entry| !is_it(entry));
        self.version += 1;
        self.has_removed = true;
        Ok(())
    }

    /// Returns true if [`Self::remove`] took one away.
    pub(crate) fn has_removed(&self) -> bool {
        self.has_removed
    }

    /// Returns true if datagrams from `local` leave through one of them.
    pub(crate) fn send_from(&self, local: SocketAddr) -> bool {
        self.all().any(|socket| socket.sends_from(local))
    }

    fn bind_lasting(
        &mut self,
        local: &LocalAddress,
        port: Option<u16>,
        shared: Port,
    ) -> io::Result<Arc<Socket>> {
        let (mut address, device) = match local {
            LocalAddress::Ip(address) => (SocketAddr::new(*address, 0), None),
            LocalAddress::Socket(address) => (*address, None),
            LocalAddress::Link(link) => (SocketAddr::new(link.address, 0), device_of(link)),
            LocalAddress::Interface(name) => {
                (SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), 0), Some(name.as_str()))
            }
        };
        address.set_port(port.unwrap_or(address.port()));
        let named = |error: io::Error| io::Error::new(error.kind(), format!("cannot bind {local}: {error}"));
        let socket = Socket::bind(&*self.runtime, address, device, (self.source, shared)).map_err(named)?;
        Ok(self.add(socket, Holders::Endpoint))
    }

    /// The socket for a path from `local`, or from anywhere, to `remote`: one that is there, or a new one, which lives
    /// until [`Self::release_unused`] unless a connection [holds](Self::hold) it.
    pub(crate) fn obtain(
        &mut self,
        local: Option<&LocalAddress>,
        remote: SocketAddr,
    ) -> io::Result<Arc<Socket>> {
        if remote.port() == 0 || remote.ip().is_unspecified() {
            return Err(invalid(format!("{remote} is no address to connect to")));
        }
        if family(local).is_some_and(|is_ipv4| is_ipv4 != remote.is_ipv4()) {
            return Err(invalid(format!("it and the remote address {remote} are of different IP versions")));
        }
        let known = self.all().find(|socket| fits(socket, local, remote)).cloned();
        if let Some(socket) = known {
            return Ok(socket);
        }
        let (address, device) = match local {
            Some(LocalAddress::Ip(address)) => (SocketAddr::new(*address, 0), None),
            Some(LocalAddress::Socket(address)) => (*address, None),
            Some(LocalAddress::Interface(name)) => (any(remote), Some(name.as_str())),
            Some(LocalAddress::Link(link)) => (SocketAddr::new(link.address, 0), device_of(link)),
            None => (any(remote), None),
        };
        let socket = Socket::bind(&*self.runtime, address, device, (self.source, Port::Own))?;
        Ok(self.add(socket, Holders::Connections(HashSet::new())))
    }

    /// `handle` uses `socket` from here on.
    pub(crate) fn hold(&mut self, socket: &Arc<Socket>, handle: ConnectionHandle) {
        let entry = self.entries.iter_mut().find(|entry| Arc::ptr_eq(&entry.socket, socket));
        if let Some(Holders::Connections(holders)) = entry.map(|entry| &mut entry.holders) {
            holders.insert(handle);
        }
    }

    /// `handle` uses the socket that is bound to `local` no more.
    pub(crate) fn release_from(&mut self, handle: ConnectionHandle, local: SocketAddr) {
        for entry in self.entries.iter_mut().filter(|entry| entry.socket.local() == local) {
            if let Holders::Connections(holders) = &mut entry.holders {
                holders.remove(&handle);
            }
        }
        self.release_unused();
    }

    /// The interface of the socket that is bound to `local`.
    pub(crate) fn device_at(&self, local: SocketAddr) -> Option<&str> {
        self.all().find(|socket| socket.local() == local)?.device()
    }

    /// `handle` is gone: sockets that only it used are closed.
    pub(crate) fn release(&mut self, handle: ConnectionHandle) {
        for entry in &mut self.entries {
            if let Holders::Connections(holders) = &mut entry.holders {
                holders.remove(&handle);
            }
        }
        self.release_unused();
    }

    /// Closes sockets that nobody holds.
    pub(crate) fn release_unused(&mut self) {
        let before = self.entries.len();
        self.entries.retain(|entry| match &entry.holders {
            Holders::Endpoint => true,
            Holders::Connections(holders) => !holders.is_empty(),
        });
        if self.entries.len() != before {
            self.version += 1;
        }
    }

    /// Closes all sockets.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.version += 1;
    }

    fn add(&mut self, socket: Socket, holders: Holders) -> Arc<Socket> {
        let socket = Arc::new(socket);
        self.entries.push(Entry { socket: socket.clone(), holders });
        self.version += 1;
        socket
    }
}

/// Returns true if `socket` is the one that `local` names.
fn fits(socket: &Socket, local: Option<&LocalAddress>, remote: SocketAddr) -> bool {
    let bound = socket.local();
    match local {
        Some(LocalAddress::Ip(address)) => bound.ip() == *address && socket.device().is_none(),
        Some(LocalAddress::Socket(address)) => bound == *address,
        Some(LocalAddress::Interface(name)) => {
            socket.device() == Some(name) && bound.is_ipv4() == remote.is_ipv4()
        }
        // An interface that was made anew has the name and the address of one whose sockets lead nowhere.
        Some(LocalAddress::Link(_)) => false,
        None => bound.is_ipv4() == remote.is_ipv4() && reaches(bound.ip(), remote.ip()),
    }
}

/// Returns true if a datagram from `local` could arrive at `remote` at all: loopback addresses reach only each other.
fn reaches(local: IpAddr, remote: IpAddr) -> bool {
    local.is_unspecified() || local.is_loopback() == remote.is_loopback()
}

fn family(local: Option<&LocalAddress>) -> Option<bool> {
    match local? {
        LocalAddress::Ip(address) => Some(address.is_ipv4()),
        LocalAddress::Socket(address) => Some(address.is_ipv4()),
        LocalAddress::Link(link) => Some(link.address.is_ipv4()),
        LocalAddress::Interface(_) => None,
    }
}

/// The interface to bind to beside an address: only Linux binds sockets to interfaces.
fn device_of(link: &LinkAddress) -> Option<&str> {
    cfg!(target_os = "linux").then_some(link.interface.as_str())
}

/// All addresses of the IP version of `remote`, and any port.
fn any(remote: SocketAddr) -> SocketAddr {
    let address: IpAddr =
        if remote.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    SocketAddr::new(address, 0)
}

fn invalid(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remote() -> SocketAddr {
        ([127, 0, 0, 1], 9).into()
    }

    #[tokio::test]
    async fn a_socket_is_shared_by_address_and_lives_as_long_as_it_is_held() {
        let mut sockets = Sockets::new(Source::Routed, crate::runtime::current().unwrap());
        let local = LocalAddress::Ip([127, 0, 0, 1].into());
        let first = sockets.obtain(Some(&local), remote()).expect("binds");
        sockets.hold(&first, ConnectionHandle(1));
        let second = sockets.obtain(Some(&local), remote()).expect("is there");
        assert!(Arc::ptr_eq(&first, &second));
        sockets.hold(&second, ConnectionHandle(2));
        sockets.release(ConnectionHandle(1));
        assert_eq!(sockets.addresses(), [first.local()]);
        sockets.release(ConnectionHandle(2));
        assert_eq!(sockets.addresses(), []);
    }

    #[tokio::test]
    async fn port_zero_is_a_new_socket_each_time_and_a_port_is_the_one_that_has_it() {
        let mut sockets = Sockets::new(Source::Routed, crate::runtime::current().unwrap());
        sockets.bind_permanent(&"127.0.0.1:0".parse().unwrap()).expect("binds");
        let bound = sockets.addresses()[0];
        let fresh = sockets.obtain(Some(&"127.0.0.1:0".parse().unwrap()), remote()).expect("binds");
        assert_ne!(fresh.local(), bound);
        assert_eq!(sockets.obtain(Some(&bound.into()), remote()).expect("is there").local(), bound);
        assert_eq!(sockets.obtain(None, remote()).expect("is there").local(), bound);
        sockets.release_unused();
        assert_eq!(sockets.addresses(), [bound]);
    }

    #[tokio::test]
    async fn addresses_that_cannot_work_are_refused_with_a_reason() {
        let mut sockets = Sockets::new(Source::Routed, crate::runtime::current().unwrap());
        let error = sockets.obtain(Some(&"::1".parse().unwrap()), remote()).expect_err("other version");
        assert!(error.to_string().contains("different IP versions"));
        let error = sockets.obtain(None, ([127, 0, 0, 1], 0).into()).expect_err("port 0");
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        let error =
            sockets.obtain(Some(&"no-such-if0".parse().unwrap()), remote()).expect_err("no interface");
        assert!(error.to_string().contains("no-such-if0"), "{error}");
        // 192.0.2.0/24 is for documentation (RFC 5737): nobody has it.
        let error = sockets.bind_permanent(&"192.0.2.1".parse().unwrap()).expect_err("not ours");
        assert!(error.to_string().contains("192.0.2.1"));
    }
}
