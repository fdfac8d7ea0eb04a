//! RTP that came over QUIC goes on over UDP, to a player or a server that is not ours (`--rtp-out`).

use crate::{roq, rtp};
use hvq::{Connection, ConnectionError, RecvStream};
use hvq_program::failure::{Exit, Failure, OrFail, exit_of};
use hvq_program::output::{self, Console, ResultFormat};
use serde_json::json;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::net::UdpSocket;

/// Sends packets on.
#[derive(Debug)]
pub struct Forwarder {
    socket: UdpSocket,
    to: SocketAddr,
    flow: u64,
}

/// Counters of the packets that were sent on.
#[derive(Debug, Default)]
struct Counters {
    packets: AtomicU64,
    bytes: AtomicU64,
    refused: AtomicU64,
}

impl Forwarder {
    /// Sends the packets of the flow `flow` to `to`.
    ///
    /// # Errors
    /// There is no socket for it ([`Exit::Runtime`]).
    pub async fn new(to: SocketAddr, flow: u64) -> Result<Self, Failure> {
        let any: IpAddr =
            if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let socket = UdpSocket::bind((any, 0)).await;
        let socket = socket.or_fail(Exit::Runtime, || format!("cannot send to {to}"))?;
        Ok(Self { socket, to, flow })
    }

    /// A description of the flow for the player, as SDP (RFC 8866).
    pub fn description(&self) -> String {
        rtp::description(self.to.ip(), self.to.port())
    }

    /// Sends on what comes over `connection`, until the sender ends it.
    pub(super) async fn run(
        self: &Arc<Self>,
        connection: &Connection,
        format: ResultFormat,
        console: Console,
    ) -> Result<(), Failure> {
        let counters = Arc::new(Counters::default());
        let datagrams = tokio::spawn(self.clone().datagrams(connection.clone(), counters.clone()));
        let end = loop {
            match connection.accept_uni().await {
                Ok(stream) => {
                    tokio::spawn(self.clone().stream(stream, connection.clone(), counters.clone()));
                }
                Err(end) => break end,
            }
        };
        let _ended = datagrams.await;
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (packets, bytes, refused) = (of(&counters.packets), of(&counters.bytes), of(&counters.refused));
        match format {
            ResultFormat::Json => output::print(
                &json!({ "rtp": { "packets": packets, "bytes": bytes, "refused": refused } }).to_string(),
            )?,
            ResultFormat::Text => console.say(format!(
                "{packets} RTP packets ({bytes} bytes) went on to {}, {refused} were refused",
                self.to
            )),
        }
        match end {
            ConnectionError::PeerApplication { code: 0, .. } => Ok(()),
            end => Err(Failure::new(exit_of(&end), format!("the sender is gone: {end}"))),
        }
    }

    /// Packets in datagrams (draft, "QUIC DATAGRAMs").
    async fn datagrams(self: Arc<Self>, connection: Connection, counters: Arc<Counters>) {
        while let Ok(datagram) = connection.read_datagram().await {
            match roq::packet_of(self.flow, &datagram) {
                Ok(packet) => self.send(packet, &counters).await,
                Err(error) => return refuse(&connection, error),
            }
        }
    }

    /// Packets in a stream (draft, "QUIC Streams"). One that the sender takes back is cut off.
    async fn stream(
        self: Arc<Self>,
        mut stream: RecvStream,
        connection: Connection,
        counters: Arc<Counters>,
    ) {
        let mut unpacker = roq::Unpacker::new(self.flow);
        loop {
            let unpacked = match stream.read_chunk(roq::LARGEST).await {
                Ok(Some(bytes)) => unpacker.push(&bytes),
                Ok(None) => return unpacker.finish().unwrap_or_else(|error| refuse(&connection, error)),
                Err(_) => return,
            };
            match unpacked {
                Ok(packets) => {
                    for packet in &packets {
                        self.send(packet, &counters).await;
                    }
                }
                Err(error) => return refuse(&connection, error),
            }
        }
    }

    async fn send(&self, packet: &[u8], counters: &Counters) {
        // A player that is not there yet answers with an ICMP error, which is no reason to stop.
        if rtp::is_packet(packet) && self.socket.send_to(packet, self.to).await.is_ok() {
            counters.packets.fetch_add(1, Ordering::Relaxed);
            counters.bytes.fetch_add(packet.len() as u64, Ordering::Relaxed);
        } else {
            counters.refused.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Ends the connection with the error code of the draft.
fn refuse(connection: &Connection, error: roq::MalformedFlow) {
    tracing::warn!(%error, "the sender does not speak RTP over QUIC");
    connection.close(error.code(), error.to_string().as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_what_went_on_counts_as_gone_on() {
        let player = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let to = player.local_addr().unwrap();
        let forwarder = Forwarder::new(to, 0).await.unwrap();
        let counters = Counters::default();
        // RFC 3550, section 5.1: version 2 and a header of twelve bytes.
        let packet = [&[0x80, 96][..], &[0; 30]].concat();
        forwarder.send(&packet, &counters).await;
        forwarder.send(b"this is no RTP packet, but long", &counters).await;
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        assert_eq!([&counters.packets, &counters.bytes, &counters.refused].map(of), [1, 32, 1]);
    }
}
