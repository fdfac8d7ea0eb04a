//! Other implementations of QUIC, and Multipath TCP of the kernel, at either end of what `hvq lab failover` measures.
//!
//! ```text
//!   hvq lab failover ── starts ──> hvq-rivals --role server    in the far namespace
//!                    ── starts ──> hvq-rivals --role client    in the near namespace
//!                    <── lines ──  ready, begun, arrived, acknowledged, played, served
//! ```
//!
//! Loads, pauses and what is noted are those of hvq's own client there. Each implementation is driven as a program would be
//! that is made for machines with two links: it hears of links what hvq hears of them.

mod arguments;
mod loads;
mod mptcp;
mod news;
mod noq;
mod quic_pair;
mod quiche;
mod quinn;
mod record;
mod tls;

use anyhow::{Context, Result};
use arguments::{Arguments, Implementation, Role};
use clap::Parser;
use record::{Said, say};
use std::process::ExitCode;
use tokio::io::AsyncReadExt;
use tokio::task::LocalSet;

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("hvq-rivals: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = LocalSet::new().block_on(&runtime, async {
        match arguments.role {
            Role::Server => say(&Said::Served { sent: serve(arguments).await? }),
            Role::Client => play(arguments).await?.tell(),
        }
    });
    // Reading from standard input cannot be given up.
    runtime.shutdown_background();
    outcome
}

/// Serves until standard input ends; the bytes that were sent for the download.
async fn serve(arguments: &Arguments) -> Result<u64> {
    let sent = record::Counter::default();
    let serving = async {
        match arguments.implementation {
            Implementation::Quinn => quinn::serve(arguments, &sent).await,
            Implementation::Quiche => quiche::serve(arguments, &sent).await,
            Implementation::Noq => noq::serve(arguments, &sent).await,
            Implementation::MptcpCubic => mptcp::serve(arguments, "cubic", &sent).await,
            Implementation::MptcpBbr => mptcp::serve(arguments, "bbr", &sent).await,
        }
    };
    tokio::select! {
        served = serving => served.context("cannot serve")?,
        ended = end_of_input() => ended?,
    }
    Ok(sent.get())
}

/// Plays the loads until standard input ends.
async fn play(arguments: &Arguments) -> Result<record::Record> {
    let record = record::Record::default();
    let playing = async {
        match arguments.implementation {
            Implementation::Quinn => quinn::play(arguments, &record).await,
            Implementation::Quiche => quiche::play(arguments, &record).await,
            Implementation::Noq => noq::play(arguments, &record).await,
            Implementation::MptcpCubic => mptcp::play(arguments, "cubic", &record).await,
            Implementation::MptcpBbr => mptcp::play(arguments, "bbr", &record).await,
        }
    };
    tokio::select! {
        played = playing => played.context("cannot play")?,
        ended = end_of_input() => ended?,
    }
    Ok(record)
}

async fn end_of_input() -> Result<()> {
    tokio::io::stdin().read_to_end(&mut Vec::new()).await.context("cannot read standard input")?;
    Ok(())
}
