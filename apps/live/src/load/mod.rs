//! Many requests with h2load over loopback: `hvq gateway` beside Nginx's own HTTP/3.

pub mod endurance;
mod generator;
mod server;

use crate::error::{LiveError, cannot};
use crate::nginx;
use crate::observer::Observer;
use crate::tools::{Tools, folder};
use generator::Generator;
use serde::Serialize;
use server::{ServerProcess, ServerSetup};
use std::fs;
use std::path::Path;

/// The plan of the requests.
#[derive(Clone, Debug)]
pub struct LoadPlan {
    /// Rounds, in each of which every server has its turn.
    pub rounds: u32,
    /// Requests of a round for small files.
    pub small_requests: u32,
    /// Requests of a round for large files.
    pub large_requests: u32,
}

/// The server that answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum Subject {
    /// Nginx, which the others are measured against.
    #[serde(rename = "nginx")]
    Nginx,
    /// `hvq gateway` with a folder.
    #[serde(rename = "hvq gateway, files")]
    Files,
    /// `hvq gateway` in front of Nginx over HTTP/1.1.
    #[serde(rename = "hvq gateway, nginx behind it")]
    Origin,
}

impl Subject {
    /// All of them, Nginx first.
    pub const ALL: [Self; 3] = [Self::Nginx, Self::Files, Self::Origin];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nginx => "nginx",
            Self::Files => "hvq gateway, files",
            Self::Origin => "hvq gateway, nginx behind it",
        }
    }
}

/// A file that is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Size {
    /// Its name in tables, and below the root.
    pub name: &'static str,
    /// Its bytes.
    pub bytes: u64,
    /// Connections at a time.
    pub connections: u32,
    /// Requests at a time on each.
    pub streams: u32,
}

/// The files.
pub const SIZES: [Size; 2] = [
    Size { name: "1KiB", bytes: 1 << 10, connections: 50, streams: 10 },
    Size { name: "10MiB", bytes: 10 << 20, connections: 4, streams: 1 },
];

/// The results of a server's turn.
#[derive(Clone, Debug, Serialize)]
pub struct Round {
    /// The server that answered.
    pub subject: Subject,
    /// The size of the files that were asked for.
    pub size: &'static str,
    /// Counted from 0.
    pub round: u32,
    /// Requests that were answered with success.
    pub succeeded: u64,
    /// All others.
    pub failed: u64,
    /// The duration of the turn, in seconds.
    pub seconds: f64,
    /// Processor time that the server took, all of its threads; not that of what is behind it.
    pub processor_seconds: f64,
    /// Times of requests in milliseconds: the median, and what 99 of 100 do not exceed.
    pub latency_ms: [f64; 2],
}

impl Round {
    /// Requests a second.
    pub fn rate(&self) -> f64 {
        self.succeeded as f64 / self.seconds.max(1e-9)
    }

    /// Requests for each second of the server's processor time.
    pub fn rate_per_processor(&self) -> f64 {
        self.succeeded as f64 / self.processor_seconds.max(1e-2)
    }
}

/// Starts all servers and asks them in turn; each round begins with another one. It ends early when it is to.
///
/// # Errors
/// Nginx or h2load is not there, or a server does not start.
pub fn run(tools: &Tools, plan: &LoadPlan, observer: Observer<'_>) -> Result<Vec<Round>, LiveError> {
    let files = folder()?;
    let setup = prepare(tools, files.path())?;
    let generator = Generator { h2load: tools.h2load()?, folder: files.path().to_owned() };
    let origin = ServerProcess::start(&setup, None)?;
    let mut servers = Vec::new();
    for subject in Subject::ALL {
        servers.push((subject, ServerProcess::start(&setup, Some((subject, origin.port)))?));
    }
    let mut rounds = Vec::new();
    for size in SIZES {
        let requests = if size.bytes > 1 << 20 { plan.large_requests } else { plan.small_requests };
        for (_, server) in &servers {
            // Files come into memory, and code into caches.
            generator.ask(server.port, size, (requests / 20).max(size.connections))?;
        }
        for round in 0..plan.rounds {
            for turn in 0..servers.len() {
                if !observer.goes_on() {
                    return Ok(rounds);
                }
                let (subject, server) = &servers[(turn + round as usize) % servers.len()];
                let before = server.processor_seconds();
                let asked = generator.ask(server.port, size, requests)?;
                let result = Round {
                    subject: *subject,
                    size: size.name,
                    round,
                    succeeded: asked.succeeded,
                    failed: u64::from(requests).saturating_sub(asked.succeeded),
                    seconds: asked.seconds,
                    processor_seconds: server.processor_seconds() - before,
                    latency_ms: asked.latency_ms,
                };
                (observer.say)(&format!(
                    "{}, {}: {:.0} requests/s",
                    subject.name(),
                    size.name,
                    result.rate()
                ));
                rounds.push(result);
            }
        }
    }
    Ok(rounds)
}

fn prepare(tools: &Tools, files: &Path) -> Result<ServerSetup, LiveError> {
    let root = files.join("root");
    fs::create_dir(&root).map_err(cannot("make a folder"))?;
    for size in SIZES {
        fs::write(root.join(size.name), vec![b'.'; size.bytes as usize]).map_err(cannot("write a file"))?;
    }
    let (identity, _) = nginx::identity(files)?;
    Ok(ServerSetup {
        hvq: tools.hvq.clone(),
        nginx: tools.nginx()?,
        root,
        identity,
        folder: files.to_owned(),
    })
}
