//! Sessions.

use crate::{Error, RecvStream, SendStream};
use bytes::Bytes;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A session over a connection of its own. Clones are handles on the same one; it is closed with code 0 when the last handle and stream are
/// dropped.
#[derive(Clone)]
pub struct Session {
    connection: hvq::Connection,
    protocol: Option<Arc<str>>,
}

impl Session {
    /// A session of raw QUIC, with the protocol that ALPN agreed on. The handshake of `connection` is complete.
    pub fn raw(connection: hvq::Connection) -> Self {
        let protocol = connection.alpn().and_then(|name| String::from_utf8(name).ok());
        Self { connection, protocol: protocol.map(Arc::from) }
    }

    /// The connection as hvq has it: paths are opened and watched there.
    pub fn hvq(&self) -> &hvq::Connection {
        &self.connection
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("protocol", &self.protocol).finish_non_exhaustive()
    }
}

impl web_transport_trait::Session for Session {
    type SendStream = SendStream;
    type RecvStream = RecvStream;
    type Error = Error;

    async fn accept_uni(&self) -> Result<RecvStream, Error> {
        Ok(RecvStream::new(self.connection.accept_uni().await?))
    }

    async fn accept_bi(&self) -> Result<(SendStream, RecvStream), Error> {
        let (send, receive) = self.connection.accept_bi().await?;
        Ok((SendStream::new(send), RecvStream::new(receive)))
    }

    async fn open_bi(&self) -> Result<(SendStream, RecvStream), Error> {
        let (send, receive) = self.connection.open_bi().await?;
        Ok((SendStream::new(send), RecvStream::new(receive)))
    }

    async fn open_uni(&self) -> Result<SendStream, Error> {
        Ok(SendStream::new(self.connection.open_uni().await?))
    }

    fn send_datagram(&self, payload: Bytes) -> Result<(), Error> {
        Ok(self.connection.send_datagram(payload)?)
    }

    async fn recv_datagram(&self) -> Result<Bytes, Error> {
        Ok(self.connection.read_datagram().await?)
    }

    fn max_datagram_size(&self) -> usize {
        self.connection.max_datagram_size().unwrap_or_default()
    }

    fn protocol(&self) -> Option<&str> {
        self.protocol.as_deref()
    }

    fn close(&self, code: u32, reason: &str) {
        self.connection.close(code.into(), reason.as_bytes());
    }

    async fn closed(&self) -> Error {
        self.connection.closed().await.into()
    }

    fn stats(&self) -> impl web_transport_trait::Stats {
        SessionStats::from(self.connection.stats())
    }
}

/// Figures of a session, summed over the paths that are open.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct SessionStats {
    bytes_sent: u64,
    bytes_received: u64,
    packets_sent: u64,
    packets_received: u64,
    packets_lost: u64,
    bytes_lost: u64,
    /// The smallest of the paths.
    rtt: Option<Duration>,
    /// The sum of what the paths may have in flight in a round trip, in bits per second.
    send_rate: u64,
}

impl From<hvq::stats::ConnectionStats> for SessionStats {
    fn from(stats: hvq::stats::ConnectionStats) -> Self {
        let mut all = Self { rtt: stats.paths.iter().map(|path| path.rtt).min(), ..Self::default() };
        for path in &stats.paths {
            all.bytes_sent += path.counters.bytes_sent;
            all.bytes_received += path.counters.bytes_received;
            all.packets_sent += path.counters.datagrams_sent;
            all.packets_received += path.counters.packets_received;
            all.packets_lost += path.counters.packets_lost;
            all.bytes_lost += path.counters.bytes_lost;
            let bits = (path.window as u64).saturating_mul(8).saturating_mul(1_000_000);
            let microseconds = u64::try_from(path.rtt.as_micros()).unwrap_or(u64::MAX);
            all.send_rate = all.send_rate.saturating_add(bits.checked_div(microseconds).unwrap_or_default());
        }
        all
    }
}

impl web_transport_trait::Stats for SessionStats {
    fn bytes_sent(&self) -> Option<u64> {
        Some(self.bytes_sent)
    }

    fn bytes_received(&self) -> Option<u64> {
        Some(self.bytes_received)
    }

    fn packets_sent(&self) -> Option<u64> {
        Some(self.packets_sent)
    }

    fn packets_received(&self) -> Option<u64> {
        Some(self.packets_received)
    }

    fn bytes_lost(&self) -> Option<u64> {
        Some(self.bytes_lost)
    }

    fn packets_lost(&self) -> Option<u64> {
        Some(self.packets_lost)
    }

    fn rtt(&self) -> Option<Duration> {
        self.rtt
    }

    fn estimated_send_rate(&self) -> Option<u64> {
        (self.send_rate > 0).then_some(self.send_rate)
    }
}
