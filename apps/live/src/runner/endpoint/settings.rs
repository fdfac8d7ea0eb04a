//! The runner's settings: environment variables, which arguments override.

use clap::{Parser, ValueEnum};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// hvq as an endpoint of the QUIC interop runner
#[derive(Clone, Debug, Parser)]
#[command(name = "hvq-endpoint", version)]
pub(crate) struct Settings {
    /// The side to take
    #[arg(long, env = "ROLE")]
    pub(crate) role: Role,
    /// The test case
    #[arg(long, env = "TESTCASE", default_value = "handshake")]
    pub(crate) testcase: String,
    /// A client's URLs, separated by spaces
    #[arg(long, env = "REQUESTS", default_value = "")]
    pub(crate) requests: String,
    /// The folder whose files a server sends
    #[arg(long, env = "WWW", default_value = "/www")]
    pub(crate) www: PathBuf,
    /// The folder that a client puts files into
    #[arg(long, env = "DOWNLOADS", default_value = "/downloads")]
    pub(crate) downloads: PathBuf,
    /// The folder with cert.pem and priv.key for servers, and ca.pem for clients, which trust everybody without it
    #[arg(long, env = "CERTS", default_value = "/certs")]
    pub(crate) certs: PathBuf,
    /// The addresses on which a server listens, separated by commas
    #[arg(long, env = "LISTEN", default_value = "[::]:443", value_delimiter = ',')]
    pub(crate) listen: Vec<SocketAddr>,
    /// The addresses to which clients shall move after the handshake, separated by commas; the server must hear what is
    /// sent there
    #[arg(long, env = "PREFERRED_ADDRESS", value_delimiter = ',')]
    pub(crate) preferred_address: Vec<SocketAddr>,
    /// Offer the multipath extension
    #[arg(long)]
    pub(crate) multipath: bool,
    /// The seconds that a client may take for everything
    #[arg(long, default_value_t = 290)]
    pub(crate) patience: u64,
    /// Append TLS secrets to this file
    #[arg(long, env = "SSLKEYLOGFILE", default_value = "", hide_default_value = true)]
    pub(crate) keylog: String,
    /// Write a qlog file for each connection into this folder
    #[arg(long, env = "QLOGDIR", default_value = "", hide_default_value = true)]
    pub(crate) qlog: String,
}

/// A side of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Role {
    /// It asks for files.
    Client,
    /// It has them.
    Server,
}

impl Settings {
    /// Returns true if this is to be a server.
    pub(crate) fn is_server(&self) -> bool {
        self.role == Role::Server
    }

    /// Returns the time that a client may take for everything.
    pub(crate) fn patience(&self) -> Duration {
        Duration::from_secs(self.patience)
    }
}
