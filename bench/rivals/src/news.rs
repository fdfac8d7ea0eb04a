//! The links that lead to the server.

use hvq::links::{Link, LinkState};
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// Bytes of the buffers of a socket.
const BUFFER: usize = 4 << 20;

/// An address of a link that leads to the server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Way {
    /// The name of the interface.
    pub link: String,
    /// The address.
    pub address: IpAddr,
    /// The metric of the route.
    metric: u32,
}

/// The ways to `server` over `links` that are up, those that the system prefers first.
pub fn ways(links: &[Link], server: IpAddr) -> Vec<Way> {
    let mut ways: Vec<Way> = links
        .iter()
        .filter(|link| link.state == LinkState::Up)
        .flat_map(|link| {
            let routes = link.routes.iter().filter(|route| route.destination.contains(&server));
            let metric = routes.map(|route| route.metric).min();
            let addresses =
                link.addresses.iter().filter(move |address| address.addr().is_ipv4() == server.is_ipv4());
            addresses.filter_map(move |address| {
                Some(Way { link: link.name.clone(), address: address.addr(), metric: metric? })
            })
        })
        .collect();
    ways.sort_by_key(|way| way.metric);
    ways
}

impl Way {
    /// A UDP socket with this address, on this interface alone.
    pub fn socket(&self) -> io::Result<UdpSocket> {
        self.bound(self.address)
    }

    /// A UDP socket with any address of this interface, on it alone.
    pub fn any(&self) -> io::Result<UdpSocket> {
        self.bound(match self.address {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        })
    }

    fn bound(&self, address: IpAddr) -> io::Result<UdpSocket> {
        udp(SocketAddr::new(address, 0), Some(&self.link))
    }
}

/// A UDP socket with buffers as large as hvq's, on one interface alone if there is one.
pub fn udp(address: SocketAddr, link: Option<&str>) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    // Smaller buffers, where the system gives no more, cost packets.
    let _buffers = [socket.set_recv_buffer_size(BUFFER), socket.set_send_buffer_size(BUFFER)];
    socket.bind_device(link.map(str::as_bytes))?;
    socket.bind(&address.into())?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}
