//! Millions of requests to one gateway: whether any fails, and whether it grows.

use super::generator::Generator;
use super::server::ServerProcess;
use super::{SIZES, Subject, prepare};
use crate::error::LiveError;
use crate::observer::Observer;
use crate::tools::{Tools, folder};
use serde::Serialize;

/// Requests of a turn: h2load keeps a line about each until it ends.
const TURN: u64 = 250_000;

/// The results of a turn.
#[derive(Clone, Debug, Serialize)]
pub struct Turn {
    /// Requests that were answered with success.
    pub succeeded: u64,
    /// All others.
    pub failed: u64,
    /// The duration of the turn, in seconds.
    pub seconds: f64,
    /// The 99th percentile of request times, in milliseconds.
    pub p99_ms: f64,
    /// Memory of the gateway behind it, in KiB; 0 where the system does not say.
    pub memory_kib: u64,
}

/// Asks a gateway that serves files for `requests` of 1 KiB, in turns. It ends early when it is to.
///
/// # Errors
/// h2load or Nginx is not there, or the gateway does not start or does not last.
pub fn run(tools: &Tools, requests: u64, observer: Observer<'_>) -> Result<Vec<Turn>, LiveError> {
    let files = folder()?;
    let setup = prepare(tools, files.path())?;
    let generator = Generator { h2load: tools.h2load()?, folder: files.path().to_owned() };
    let mut server = ServerProcess::start(&setup, Some((Subject::Files, 0)))?;
    let (mut turns, mut left) = (Vec::new(), requests);
    while left > 0 && observer.goes_on() {
        let wanted = left.min(TURN);
        left -= wanted;
        let asked = generator.ask(server.port, SIZES[0], u32::try_from(wanted).unwrap_or(u32::MAX))?;
        server.lasts()?;
        let turn = Turn {
            succeeded: asked.succeeded,
            failed: wanted.saturating_sub(asked.succeeded),
            seconds: asked.seconds,
            p99_ms: asked.latency_ms[1],
            memory_kib: server.memory_kib(),
        };
        turns.push(turn);
        let failed: u64 = turns.iter().map(|turn| turn.failed).sum();
        (observer.say)(&format!("{} of {requests} requests, {failed} failed", requests - left));
    }
    Ok(turns)
}
