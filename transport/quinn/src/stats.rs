//! Figures of a connection, over all of its paths.

use std::time::Duration;

/// Datagrams of a connection in one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct UdpStats {
    /// UDP datagrams; packets, of those that were received.
    pub datagrams: u64,
    /// Bytes of UDP payload in them.
    pub bytes: u64,
}

/// Figures of paths. Counters are sums over the open paths; the rest is of the one with the smallest round-trip time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct PathStats {
    /// The smoothed round-trip time.
    pub rtt: Duration,
    /// The smallest round-trip time.
    pub min_rtt: Duration,
    /// Bytes of the congestion windows of all paths.
    pub cwnd: u64,
    /// Packets declared lost.
    pub lost_packets: u64,
    /// Bytes of packets declared lost.
    pub lost_bytes: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Bytes of the largest UDP payload that is sent.
    pub current_mtu: u16,
}

/// Figures of a connection. Those of each path: [`Connection::hvq`](crate::Connection::hvq) and its `stats`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ConnectionStats {
    /// Sent.
    pub udp_tx: UdpStats,
    /// Received.
    pub udp_rx: UdpStats,
    /// The paths.
    pub path: PathStats,
}

impl From<hvq::stats::ConnectionStats> for ConnectionStats {
    fn from(stats: hvq::stats::ConnectionStats) -> Self {
        let quickest = stats.paths.iter().min_by_key(|path| path.rtt);
        let mut all = Self::default();
        if let Some(path) = quickest {
            (all.path.rtt, all.path.min_rtt) = (path.rtt, path.min_rtt);
            all.path.current_mtu = path.datagram_size.try_into().unwrap_or(u16::MAX);
        }
        for path in &stats.paths {
            all.path.cwnd += path.window as u64;
            all.path.lost_packets += path.counters.packets_lost;
            all.path.lost_bytes += path.counters.bytes_lost;
            all.path.sent_packets += path.counters.datagrams_sent;
            all.udp_tx.datagrams += path.counters.datagrams_sent;
            all.udp_tx.bytes += path.counters.bytes_sent;
            all.udp_rx.datagrams += path.counters.packets_received;
            all.udp_rx.bytes += path.counters.bytes_received;
        }
        all
    }
}
