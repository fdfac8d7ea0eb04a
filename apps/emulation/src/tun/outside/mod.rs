//! The world outside, for commands that are let out: connections and datagrams to some ports of any address end in the far
//! namespace, and go on from this process with sockets of its own.
//!
//! Nothing of the system is changed for it, no rule, no forwarding, and it takes no privilege in the system's own
//! namespace. In the far namespace all addresses count as its own, so that its kernel ends the TCP connections that cross
//! the channels; beyond, they are other connections. Only the ports that were named can be reached, over TCP and UDP, and
//! name servers through the far end's port 53. This machine's own addresses cannot be reached so.

mod datagrams;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};

use crate::relay::RelaySocket;
use socket2::{Domain, Socket, Type};
use tokio::io::copy_bidirectional;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::tun::namespace::Namespace;
use crate::tun::wiring::{self, End};

/// The port of name servers (RFC 1035 §4.2).
const NAMES: u16 = 53;
/// Connections at one time over each port.
const MOST_CONNECTIONS: usize = 512;
/// Connections that wait to be accepted.
const BACKLOG: i32 = 128;

/// Sockets in the far namespace that take what is meant for the world outside.
#[derive(Debug)]
pub struct PortForwards {
    streams: Vec<TcpListener>,
    datagrams: Vec<RelaySocket>,
}

/// The destinations of name lookups that come to the far end, and the addresses that are this machine's.
#[derive(Clone, Debug)]
struct Directory {
    resolver: Option<SocketAddr>,
    gateway: End,
}

impl Directory {
    /// Returns the destination of a packet that was sent to `wanted`; `None` if it must not be reached.
    fn target(&self, wanted: SocketAddr) -> Option<SocketAddr> {
        let gateway = [IpAddr::from(self.gateway.v4), IpAddr::from(self.gateway.v6)];
        if gateway.contains(&wanted.ip()) {
            return self.resolver.filter(|_| wanted.port() == NAMES);
        }
        is_outside(wanted.ip()).then_some(wanted)
    }
}

/// Returns true if `address` can be somebody else's: not this machine, not this link, not many (attack I11).
fn is_outside(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let refused = v4.is_loopback() || v4.is_link_local() || v4.is_multicast() || v4.is_unspecified();
            !refused && !v4.is_broadcast()
        }
        IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
            Some(mapped) => is_outside(mapped.into()),
            None => {
                let refused = v6.is_loopback() || v6.is_multicast() || v6.is_unspecified();
                !refused && !v6.is_unicast_link_local()
            }
        },
    }
}

impl PortForwards {
    /// Opens `ports` of all addresses, and that of name servers, in `far`, which is wired up.
    ///
    /// # Errors
    /// The system does not permit it.
    pub fn open(far: &Namespace, ports: &[u16]) -> io::Result<Self> {
        // Routes of the main table come after those of neighbours, so that answers find their way.
        let lines =
            ["route add local default dev lo table main", "-6 route add local default dev lo table main"];
        wiring::apply(far, &lines.map(str::to_owned))?;
        let mut ports: Vec<u16> = ports.iter().copied().chain([NAMES]).collect();
        ports.sort_unstable();
        ports.dedup();
        far.within(|| {
            let mut forwards = Self { streams: Vec::new(), datagrams: Vec::new() };
            let any = [IpAddr::from(Ipv4Addr::UNSPECIFIED), Ipv6Addr::UNSPECIFIED.into()];
            for port in ports {
                for address in any.map(|address| SocketAddr::new(address, port)) {
                    forwards.streams.push(listen(address)?);
                }
                // One socket for both versions would see addresses of version 4 in the clothes of version 6.
                forwards.datagrams.push(RelaySocket::bind(SocketAddr::new(any[0], port))?);
            }
            Ok(forwards)
        })?
    }

    /// Lets everything through until the runtime ends. `resolver` answers name lookups; `None` refuses them.
    ///
    /// # Errors
    /// The runtime cannot watch the sockets.
    pub async fn serve(self, resolver: Option<SocketAddr>) -> io::Result<()> {
        let directory = Directory { resolver, gateway: End::far(0) };
        let mut tasks = JoinSet::new();
        for listener in self.streams {
            listener.set_nonblocking(true)?;
            let listener = tokio::net::TcpListener::from_std(listener)?;
            tasks.spawn(accept(listener, directory.clone()));
        }
        for socket in self.datagrams {
            tasks.spawn(datagrams::exchange(socket, directory.clone()));
        }
        while tasks.join_next().await.is_some() {}
        Ok(())
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

async fn accept(listener: tokio::net::TcpListener, directory: Directory) {
    let mut connections = JoinSet::new();
    loop {
        if connections.len() >= MOST_CONNECTIONS {
            let _ended = connections.join_next().await;
        }
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((inside, _)) => {
                    connections.spawn(pass(inside, directory.clone()));
                }
                // Too many files: those that end give some back.
                Err(error) => {
                    tracing::debug!(%error, "a connection is not accepted");
                    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Passes on what a connection carries; `inside` is bound to the address that the command wanted.
async fn pass(mut inside: TcpStream, directory: Directory) {
    let target = inside.local_addr().ok().and_then(|wanted| directory.target(wanted));
    let Some(target) = target else { return };
    let outside = TcpStream::connect(target).await;
    let result = match outside {
        Ok(mut outside) => {
            let _delays = (inside.set_nodelay(true), outside.set_nodelay(true));
            copy_bidirectional(&mut inside, &mut outside).await.map(|_| ())
        }
        Err(error) => Err(error),
    };
    if let Err(error) = result {
        tracing::debug!(%error, %target, "a connection to the outside ended");
        // The command sees a reset, and not the end of what it asked for.
        let _reset = socket2::SockRef::from(&inside).set_linger(Some(std::time::Duration::ZERO));
    }
}

/// The first name server of this machine, from the text of its `resolv.conf`.
pub fn resolver_in(text: &str) -> Option<SocketAddr> {
    let named = text.lines().filter_map(|line| line.trim().strip_prefix("nameserver"));
    let address = named.filter_map(|address| address.trim().parse::<IpAddr>().ok()).next()?;
    Some(SocketAddr::new(address, NAMES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_and_its_link_are_not_outside() {
        // Attack I11.
        let directory = Directory { resolver: None, gateway: End::far(0) };
        let target = |text: &str| directory.target(text.parse().unwrap());
        for text in [
            "127.0.0.1:80",
            "169.254.169.254:80",
            "0.0.0.0:80",
            "255.255.255.255:80",
            "224.0.0.1:80",
            "[::1]:80",
            "[fe80::1]:80",
            "[::ffff:127.0.0.1]:80",
            "[ff02::1]:80",
            "100.64.0.1:80",
            "[fd68:7671::1]:80",
            "100.64.0.1:53",
        ] {
            assert_eq!(target(text), None, "{text}");
        }
        assert_eq!(target("192.0.2.7:443"), Some("192.0.2.7:443".parse().unwrap()));
    }

    #[test]
    fn name_lookups_go_to_the_name_server_of_this_machine() {
        let resolver =
            resolver_in("# a comment\nsearch example\nnameserver 127.0.0.53\nnameserver 192.0.2.1\n");
        assert_eq!(resolver, Some("127.0.0.53:53".parse().unwrap()));
        let directory = Directory { resolver, gateway: End::far(0) };
        assert_eq!(directory.target("100.64.0.1:53".parse().unwrap()), resolver);
        assert_eq!(directory.target("100.64.0.1:443".parse().unwrap()), None);
        assert_eq!(resolver_in("nameserver nonsense\n"), None);
    }
}
