//! The rows: what is exchanged with whom.

mod http3;
mod multipath;
mod programs;

use crate::identity::Identity;
use crate::report::Exchange;
use anyhow::{Context, Result};
use multipath::Cut;
use std::path::PathBuf;
use std::time::Duration;

/// What rows need from outside.
#[derive(Debug)]
pub struct Setup {
    /// The certificate of all servers.
    pub identity: Identity,
    /// The `hvq` command.
    pub hvq: PathBuf,
    /// nginx, built with HTTP/3.
    pub nginx: PathBuf,
    /// A Python that has aioquic.
    pub python: PathBuf,
}

/// A row of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row(u8);

impl Row {
    /// All rows, in their order.
    pub fn all() -> impl Iterator<Item = Self> {
        (1..=LAST).map(Self)
    }

    /// The row with this number.
    pub fn numbered(number: u8) -> Option<Self> {
        (1..=LAST).contains(&number).then_some(Self(number))
    }

    /// Its number.
    pub fn number(self) -> u8 {
        self.0
    }

    /// Who does what.
    pub fn what(self) -> &'static str {
        match self.0 {
            1 => "hvq client <> noq server, 2 paths",
            2 => "noq client <> hvq server, 2 paths",
            3 => "hvq client <> noq server, 2nd path cut",
            4 => "noq client <> hvq server, 2nd path cut",
            5 => "hvq client <  quiche server, HTTP/3",
            6 => "quiche client <  hvq server, HTTP/3",
            7 => "hvq get <  nginx, HTTP/3",
            8 => "aioquic client <  hvq serve, HTTP/3",
            9 => "hvq client <> noq server, 1st path cut",
            _ => "noq client <> hvq server, 1st path cut",
        }
    }

    /// Does it, and fails unless all content arrived as it was sent within `patience`.
    ///
    /// # Errors
    /// What went wrong.
    pub async fn run(self, setup: &Setup, patience: Duration) -> Result<Exchange> {
        let identity = &setup.identity;
        let exchange = async {
            match self.0 {
                1 => multipath::client(identity, Cut::Nothing).await,
                2 => multipath::server(identity, Cut::Nothing).await,
                3 => multipath::client(identity, Cut::Second).await,
                4 => multipath::server(identity, Cut::Second).await,
                5 => http3::client(identity, patience).await,
                6 => http3::server(identity, patience).await,
                7 => programs::nginx(setup).await,
                8 => programs::aioquic(setup).await,
                9 => multipath::client(identity, Cut::First).await,
                _ => multipath::server(identity, Cut::First).await,
            }
        };
        let late = || format!("not done after {} s", patience.as_secs());
        tokio::time::timeout(patience, exchange).await.with_context(late)?
    }
}

const LAST: u8 = 10;
