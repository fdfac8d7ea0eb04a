//! The connections of TCP in this namespace, subflows of Multipath TCP among them, with their counters (sock_diag(7)).

use anyhow::{Context, Result, bail};
use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_REQUEST, NetlinkBuffer, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_sock_diag::SockDiagMessage;
use netlink_packet_sock_diag::constants::{AF_INET, IPPROTO_TCP};
use netlink_packet_sock_diag::inet::nlas::Nla;
use netlink_packet_sock_diag::inet::{ExtensionFlags, InetRequest, InetResponse, SocketId, StateFlags};
use netlink_sys::protocols::NETLINK_SOCK_DIAG;
use netlink_sys::{Socket, SocketAddr as NetlinkAddress};
use std::net::SocketAddr;

/// Bytes of the largest datagram that the kernel sends for a dump.
const LARGEST: usize = 1 << 16;

/// A connection of TCP, which may be a subflow.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Subflow {
    /// The address of this end.
    pub local: SocketAddr,
    /// The address of the other.
    pub remote: SocketAddr,
    /// Bytes that the other end acknowledged.
    pub acknowledged: u64,
    /// Bytes of payload that were sent, those sent again included.
    pub sent: u64,
}

/// A connection to the kernel.
#[derive(Debug)]
pub struct Subflows {
    socket: Socket,
    sequence: u32,
}

impl Subflows {
    /// Connects to the kernel.
    pub fn open() -> Result<Self> {
        let socket = Socket::new(NETLINK_SOCK_DIAG).context("the kernel tells nothing of sockets")?;
        socket.connect(&NetlinkAddress::new(0, 0))?;
        Ok(Self { socket, sequence: 0 })
    }

    /// Those over IPv4 whose addresses, this end's and the other's, are `wanted`.
    pub fn of(&mut self, wanted: impl Fn(SocketAddr, SocketAddr) -> bool) -> Result<Vec<Subflow>> {
        self.sequence = self.sequence.wrapping_add(1);
        let request = InetRequest {
            family: AF_INET,
            protocol: IPPROTO_TCP,
            extensions: ExtensionFlags::INFO,
            states: StateFlags::all(),
            socket_id: SocketId::new_v4(),
        };
        let mut message = NetlinkMessage::new(
            NetlinkHeader::default(),
            NetlinkPayload::from(SockDiagMessage::InetRequest(request)),
        );
        message.header.flags = NLM_F_REQUEST | NLM_F_DUMP;
        message.header.sequence_number = self.sequence;
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        let mut subflows = Vec::new();
        let mut buffer = Vec::with_capacity(LARGEST);
        loop {
            buffer.clear();
            self.socket.recv(&mut buffer, 0)?;
            if self.take(&buffer, |response| {
                subflows.extend(subflow(response).filter(|it| wanted(it.local, it.remote)))
            })? {
                return Ok(subflows);
            }
        }
    }

    /// Takes in the messages of a datagram. Returns true if the last was among them.
    fn take(&self, datagram: &[u8], mut take: impl FnMut(&InetResponse)) -> Result<bool> {
        let mut rest = datagram;
        while !rest.is_empty() {
            let length = NetlinkBuffer::new_checked(rest)?.length() as usize;
            let message = NetlinkMessage::<SockDiagMessage>::deserialize(rest)?;
            // Messages are padded to four bytes.
            rest = rest.get(length.next_multiple_of(4).max(1)..).unwrap_or_default();
            if message.header.sequence_number != self.sequence {
                continue;
            }
            match message.payload {
                NetlinkPayload::Done(_) => return Ok(true),
                NetlinkPayload::Error(error) => {
                    bail!("the kernel tells nothing of sockets: {}", error.to_io())
                }
                NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(response)) => take(&response),
                _ => {}
            }
        }
        Ok(false)
    }
}

/// The counters of a connection; `None` if it has none, as one that listens.
fn subflow(response: &InetResponse) -> Option<Subflow> {
    let id = &response.header.socket_id;
    let info = response.nlas.iter().find_map(|attribute| match attribute {
        Nla::TcpInfo(info) => Some(info),
        _ => None,
    })?;
    Some(Subflow {
        local: SocketAddr::new(id.source_address, id.source_port),
        remote: SocketAddr::new(id.destination_address, id.destination_port),
        acknowledged: info.bytes_acked,
        sent: info.bytes_sent,
    })
}
