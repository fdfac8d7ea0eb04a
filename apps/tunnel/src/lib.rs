//! A tunnel for IP packets over all channels of a multipath QUIC connection: CONNECT-IP (RFC 9484) with HTTP datagrams.
//!
//! It does as a product what DChannel does below the transport (NSDI 2023): programs need not know. Each packet is a
//! datagram, and the connection's scheduler gives it to a channel; [`importance`] recognises what is small and waited
//! for, SYN, ACK, name lookups and short exchanges, and makes it urgent; [`order`] numbers packets by flow and puts
//! them in order again.
//!
//! TCP flows end at both ends and ride a stream each, if the two agree by a field `hvq-tcp` ([`TcpLane`]): a flow is then not
//! slowed by packets that overtake each other, and has the rates of all paths together.
//!
//! Closed by default: a [`server::Server`] has no token and no route unless it is given some.
//!
//! Requests ask for `connect-ip` (RFC 9484 §4.3). Clients of before asked for `connect-udp` with the same path, which servers
//! still take; servers of before take nothing else, which [`ClientError::NoConnectIp`] says. Both ends may agree, by a field
//! `hvq-order`, to number packets; without it the tunnel is that of the RFC.
//!
//! Linux only.
#![cfg(target_os = "linux")]

pub mod capsule;
pub mod client;
pub mod connect;
pub mod device;
pub mod emulated;
pub mod importance;
mod lane;
pub mod order;
mod outbound;
pub mod prefix;
pub mod server;
mod session;
mod too_big;
pub mod up;

pub use client::{Client, ClientError};
pub use device::AsyncDevice;
pub use lane::TcpLane;
pub use prefix::Prefix;
pub use server::{Server, ServerOptions};

/// The largest packet of the devices at both ends. In a datagram, with the longest connection ID and number, it fits into what Ethernet carries.
pub const MTU: u16 = 1_360;

const _: () = {
    use hvq::transport::wire::overhead::{ETHERNET_PAYLOAD, short};
    // A connection ID of 20 bytes; type and length of the frame; the quarter stream ID; context ID, flow and number.
    assert!(MTU as usize + short(20) + 3 + 4 + (1 + 2 + 8) <= ETHERNET_PAYLOAD);
};
