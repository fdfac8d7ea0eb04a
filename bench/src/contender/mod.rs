//! The contenders, and the work of each of their two processes.

mod floor;
pub mod hvq;
mod material;
mod peer_pair;
pub mod quiche;
mod s2n_quic;
pub mod stack;
mod tcp;

pub use material::Material;
pub use peer_pair::{noq, quinn};

use crate::meter::Usage;
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::task::LocalSet;

/// The application protocol of the benchmark: a length in eight bytes, answered with that many bytes.
pub const ALPN: &[u8] = b"hvq-bench";
/// Bytes of a request: a length, the most significant byte first.
const REQUEST: usize = 8;
/// Bytes of a small request and of its answer.
pub const SMALL: usize = 100;
/// Bytes that a server writes at a time, and that a client asks for at most.
const BLOCK: usize = 256 << 10;
/// Bytes asked for as buffers of every socket; the system may give less, the same to all.
const SOCKET_BUFFER: usize = 4 << 20;
/// The silence after which a connection ends: what most have by default.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// The same where connections are idle on purpose, and have to be there when they are weighed.
const LONG_IDLE_TIMEOUT: Duration = Duration::from_secs(300);
/// Streams of a kind that each end lets the other have open: more than any job has under way.
pub const STREAMS: u32 = 512;

/// One row of the comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Contender {
    /// hvq on one path, policy `single`.
    Hvq,
    /// hvq on two loopback paths, policy `hvc`.
    HvqTwoPaths,
    /// quinn, on the same kind of runtime.
    Quinn,
    /// noq, a fork of quinn with the multipath extension, here on one path.
    Noq,
    /// quiche, in a loop of its own around one socket.
    Quiche,
    /// s2n-quic with its TLS by rustls and AWS-LC.
    S2nQuic,
    /// TCP of the kernel with TLS 1.3 by rustls and `ring`, on blocking sockets, in segments as large as the datagrams.
    TcpTls,
    /// Datagrams with segmentation offload that are sealed, sent, received and opened, and nothing else: what no QUIC goes below.
    Floor,
}

impl Contender {
    /// All of them, the one that ratios refer to first.
    pub const ALL: [Self; 8] = [
        Self::Hvq,
        Self::Quinn,
        Self::Noq,
        Self::Quiche,
        Self::S2nQuic,
        Self::HvqTwoPaths,
        Self::TcpTls,
        Self::Floor,
    ];

    /// Returns the name of the contender, for people.
    pub fn label(self) -> &'static str {
        match self {
            Self::Hvq => "hvq, 1 path, single",
            Self::HvqTwoPaths => "hvq, 2 paths, hvc",
            Self::Quinn => "quinn",
            Self::Noq => "noq",
            Self::Quiche => "quiche",
            Self::S2nQuic => "s2n-quic",
            Self::TcpTls => "TCP + TLS, rustls",
            Self::Floor => "UDP + AEAD only",
        }
    }
}

/// The side of the transfer on which a process is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Side {
    /// The server, which sends the data.
    Server,
    /// The client of the server at these addresses, one for each path.
    Client(Vec<SocketAddr>),
}

/// The job of a pair of processes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Job {
    /// The server sends the client so many bytes on one stream.
    Bulk {
        /// The bytes.
        bytes: u64,
    },
    /// The client sends the server so many bytes on one stream, and is told when all have arrived.
    Upload {
        /// The bytes.
        bytes: u64,
    },
    /// Full handshakes, a few at a time; each connection is closed at once.
    Handshakes {
        /// The number of handshakes.
        count: u32,
    },
    /// Small requests on streams of their own, answered with as many bytes.
    Requests {
        /// The number of requests.
        count: u32,
        /// The number of requests that are under way at a time.
        at_once: u32,
    },
    /// The server sends each of many connections so many bytes, all at the same time.
    Many {
        /// The number of connections.
        connections: u32,
        /// The bytes of each.
        bytes: u64,
    },
    /// Connections on which nothing happens.
    Idle {
        /// The number of connections.
        connections: u32,
    },
}

/// The task of one process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Task {
    /// The contender.
    pub contender: Contender,
    /// The side.
    pub side: Side,
    /// The job.
    pub job: Job,
    /// UDP payload of full datagrams in bytes.
    pub datagram: u16,
    /// Certificate and key.
    pub material: Material,
}

impl Task {
    /// The silence after which a connection ends.
    pub fn idle_timeout(&self) -> Duration {
        if matches!(self.job, Job::Idle { .. }) { LONG_IDLE_TIMEOUT } else { IDLE_TIMEOUT }
    }
}

/// The latencies of requests, in seconds.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Latency {
    /// Half of them took at most this.
    pub median: f64,
    /// The 99th percentile.
    pub p99: f64,
}

impl Latency {
    /// Returns the latencies of requests that took `times`.
    pub fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let at = |percent: usize| {
            let rank = (times.len() * percent).div_ceil(100).saturating_sub(1);
            times.get(rank).copied().unwrap_or_default().as_secs_f64()
        };
        Self { median: at(50), p99: at(99) }
    }
}

/// The measurements of one process.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Account {
    /// Time and CPU time from the first request to the end of the job.
    pub usage: Usage,
    /// Datagrams sent, where the library tells.
    pub datagrams_sent: u64,
    /// System calls that sent them, where the library tells.
    pub send_calls: u64,
    /// Packets declared lost, where the library tells.
    pub packets_lost: u64,
    /// The latencies of requests.
    pub latency: Option<Latency>,
    /// The number of bytes by which the process grew.
    pub resident: u64,
}

/// A line that a process writes to its standard output, as JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Line {
    /// The server listens at these addresses.
    Listening(Vec<SocketAddr>),
    /// The process is done.
    Done(Account),
}

/// Does `task` and says so on standard output: the whole life of a process of the benchmark.
pub fn work(task: &Task) -> Result<()> {
    let account = match task.contender {
        Contender::Hvq | Contender::HvqTwoPaths => on_tokio::<hvq::Hvq>(task),
        Contender::Quinn => on_tokio::<quinn::PeerPair>(task),
        Contender::Noq => on_tokio::<noq::PeerPair>(task),
        Contender::S2nQuic => on_tokio::<s2n_quic::S2nQuic>(task),
        Contender::Quiche => quiche::work(task),
        Contender::TcpTls => tcp::work(task),
        Contender::Floor => floor::work(task),
    }?;
    say(&Line::Done(account))
}

/// Does `task` with `S` on one thread, as all contenders do.
fn on_tokio<S: stack::Stack>(task: &Task) -> Result<Account> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let side = async {
        match &task.side {
            Side::Server => stack::serve::<S>(task).await,
            Side::Client(to) => stack::fetch::<S>(task, to).await,
        }
    };
    LocalSet::new().block_on(&runtime, side)
}

/// Writes a line for the process that started this one.
fn say(line: &Line) -> Result<()> {
    println!("{}", serde_json::to_string(line)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_99th_percentile_leaves_one_of_a_hundred_above() {
        let times = (1..=200).rev().map(Duration::from_millis).collect();
        let latency = Latency::of(times);
        assert_eq!((latency.median, latency.p99), (0.1, 0.198));
        assert_eq!(Latency::of(Vec::new()), Latency::default());
    }
}
