//! What is compared, and what each of its two processes does.

mod hvq;
mod material;
pub mod noq;
pub mod quiche;
pub mod quinn;

pub use material::Material;

use crate::meter::Usage;
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// The application protocol of the benchmark: a length in eight bytes, answered with that many bytes.
pub const ALPN: &[u8] = b"hvq-bench";
/// Bytes of a request: a length, the most significant byte first.
const REQUEST: usize = 8;
/// Bytes that a server writes at a time, and that a client asks for at most.
const BLOCK: usize = 256 << 10;
/// Bytes asked for as buffers of every socket; the system may give less, the same to all.
const SOCKET_BUFFER: usize = 4 << 20;

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
}

impl Contender {
    /// All of them, the one that ratios refer to first.
    pub const ALL: [Self; 5] = [Self::Hvq, Self::Quinn, Self::Noq, Self::Quiche, Self::HvqTwoPaths];

    /// What people call it.
    pub fn label(self) -> &'static str {
        match self {
            Self::Hvq => "hvq, 1 path, single",
            Self::HvqTwoPaths => "hvq, 2 paths, hvc",
            Self::Quinn => "quinn",
            Self::Noq => "noq",
            Self::Quiche => "quiche",
        }
    }
}

/// Which side of the transfer a process is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Side {
    /// The server, which sends the data.
    Server,
    /// The client of the server at these addresses, one for each path.
    Client(Vec<SocketAddr>),
}

/// What one process has to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Task {
    /// With what.
    pub contender: Contender,
    /// On which side.
    pub side: Side,
    /// Bytes to transfer.
    pub bytes: u64,
    /// UDP payload of full datagrams in bytes.
    pub datagram: u16,
    /// Certificate and key.
    pub material: Material,
}

/// What one process measured.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Account {
    /// Time and CPU time from the request to the end of the transfer.
    pub usage: Usage,
    /// Datagrams sent.
    pub datagrams_sent: u64,
    /// System calls that sent them.
    pub send_calls: u64,
    /// Packets declared lost.
    pub packets_lost: u64,
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
    let account = match (task.contender, &task.side) {
        (Contender::Hvq | Contender::HvqTwoPaths, Side::Server) => on_tokio(hvq::serve(task)),
        (Contender::Hvq | Contender::HvqTwoPaths, Side::Client(to)) => on_tokio(hvq::fetch(task, to)),
        (Contender::Quinn, Side::Server) => on_tokio(quinn::serve(task)),
        (Contender::Quinn, Side::Client(to)) => on_tokio(quinn::fetch(task, to)),
        (Contender::Noq, Side::Server) => on_tokio(noq::serve(task)),
        (Contender::Noq, Side::Client(to)) => on_tokio(noq::fetch(task, to)),
        (Contender::Quiche, Side::Server) => quiche::serve(task),
        (Contender::Quiche, Side::Client(to)) => quiche::fetch(task, to),
    }?;
    say(&Line::Done(account))
}

/// Runs `future` on one thread, as all contenders do.
fn on_tokio<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(future)
}

/// Writes a line for the process that started this one.
fn say(line: &Line) -> Result<()> {
    println!("{}", serde_json::to_string(line)?);
    Ok(())
}
