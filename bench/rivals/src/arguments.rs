//! Arguments of the program.

use clap::{Parser, ValueEnum};
use std::net::SocketAddr;
use std::path::PathBuf;

/// Plays one end of what `hvq lab failover` measures, with another implementation.
///
/// It ends when standard input does, and then tells on standard output what it has seen, an object of JSON on each line.
#[derive(Parser, Debug)]
#[command(name = "hvq-rivals", version)]
pub struct Arguments {
    /// The implementation
    #[arg(long, value_enum)]
    pub implementation: Implementation,
    /// The end
    #[arg(long, value_enum)]
    pub role: Role,
    /// The address at which the server listens; Multipath TCP takes the next two ports, too
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub server: SocketAddr,
    /// The name in the server's certificate
    #[arg(long)]
    pub name: String,
    /// The server's certificate, which the client trusts
    #[arg(long, value_name = "PEM")]
    pub chain: PathBuf,
    /// The key of the certificate
    #[arg(long, value_name = "PEM")]
    pub key: PathBuf,
}

/// An implementation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Implementation {
    /// quinn, whose one path moves.
    Quinn,
    /// quiche, whose one path moves.
    Quiche,
    /// noq, over both links.
    Noq,
    /// Multipath TCP of the kernel with CUBIC.
    MptcpCubic,
    /// Multipath TCP of the kernel with BBR.
    MptcpBbr,
}

/// An end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Role {
    /// The far end.
    Server,
    /// The near end, which has two links.
    Client,
}
