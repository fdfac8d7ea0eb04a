//! Real interfaces that go and come: how long a stream of small requests stands still.
//!
//! ```text
//!   near namespace                                    far namespace
//!   requests ─▶ hvq proxy ─┬─ wifi ═ veth ═ wifi ─┬─ hvq gateway
//!   requests, in C ────────┴─ cell ═ veth ═ cell ─┴─ echo, in C
//! ```
//!
//! Each try has namespaces and programs of its own, which go when this process does, however that ends. All it takes is the
//! `ip` command. Packets of one direction are dropped by a neighbour entry with an address that no interface has: senders
//! notice nothing, as on a radio.

pub(crate) mod event;
pub(crate) mod network;
mod programs;
mod stream;

pub use event::Event;
pub use programs::Examples;

use crate::error::{LiveError, cannot};
use crate::observer::Observer;
use crate::tools::folder;
use event::Step;
use hvq_emulation::tun::program::Launcher;
use hvq_lab::experiment::pool;
use hvq_lab::names::by_name;
use hvq_scheduler::Policy;
use network::Network;
use programs::{Pair, Paths, START};
use serde::Serialize;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};
use stream::{Gaps, ask};

/// From the first answer to the event.
const SETTLE: Duration = Duration::from_millis(1_000);
/// From the last step of the event to the end.
const TAIL: Duration = Duration::from_millis(4_000);

/// The programs that are tried.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TriedProgram {
    /// HTTP/1.1 requests through `hvq proxy` and `hvq gateway`, whose paths are named.
    Proxy,
    /// The same, with paths that follow the links (`--path auto`, the default).
    LinksProxy,
    /// The C example `requests` with the C example `echo`.
    Example,
}

impl TriedProgram {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Proxy, Self::LinksProxy, Self::Example];

    /// The name that [`FromStr`] takes.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Proxy => "proxy",
            Self::LinksProxy => "links-proxy",
            Self::Example => "example",
        }
    }
}

impl fmt::Display for TriedProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for TriedProgram {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        by_name(text, "client", &Self::ALL, Self::name)
    }
}

/// The plan of the experiment.
#[derive(Clone, Debug)]
pub struct ChaosPlan {
    /// The clients; the C example only if it is compiled.
    pub clients: Vec<TriedProgram>,
    /// The policies of both ends.
    pub policies: Vec<Policy>,
    /// The events.
    pub events: Vec<Event>,
    /// The program `hvq`.
    pub hvq: PathBuf,
    /// The C examples, if they are compiled.
    pub examples: Option<Examples>,
    /// The command that starts the first process of a namespace.
    pub launcher: Launcher,
    /// Tries at the same time.
    pub jobs: usize,
}

/// A try.
#[derive(Clone, Debug, Serialize)]
pub struct Try {
    /// The programs.
    pub client: TriedProgram,
    /// The policy.
    pub policy: String,
    /// The event.
    pub event: Event,
    /// The longest time between two answers, in milliseconds; `null` if none came at the end any more.
    pub gap_ms: Option<f64>,
    /// Answers in all.
    pub answers: u64,
    /// Requests that ended without one.
    pub failures: u64,
    /// The reason for which there is nothing else.
    pub problem: Option<String>,
}

impl Try {
    /// Returns true if answers ceased, or the longest gap was longer than `most` seconds beyond the time without any
    /// path.
    pub fn is_longer_than(&self, most: f64) -> bool {
        let dark = self.event.dark().as_secs_f64();
        self.problem.is_none() && self.gap_ms.is_none_or(|gap| gap / 1e3 > dark + most)
    }
}

/// A try that is to be made.
struct Task {
    client: TriedProgram,
    policy: Policy,
    event: Event,
}

/// Makes every try until `observer` says to end; those that cannot be made say why.
pub fn run(plan: &ChaosPlan, observer: Observer<'_>) -> Vec<Try> {
    let mut tasks = Vec::new();
    let is_there = |client: &TriedProgram| *client != TriedProgram::Example || plan.examples.is_some();
    for client in plan.clients.iter().copied().filter(is_there) {
        for policy in &plan.policies {
            tasks.extend(plan.events.iter().map(|event| Task { client, policy: *policy, event: *event }));
        }
    }
    let stop = observer.stop;
    let outcomes =
        pool::run(&tasks, plan.jobs, |task| (!stop.is_ordered()).then(|| task.outcome(plan)), |_| ());
    outcomes.into_iter().flatten().collect()
}

impl Task {
    fn outcome(&self, plan: &ChaosPlan) -> Try {
        let made = self.attempt(plan);
        let problem = made.as_ref().err().map(LiveError::to_string);
        let gaps = made.unwrap_or_default();
        Try {
            client: self.client,
            policy: self.policy.to_string(),
            event: self.event,
            gap_ms: gaps.longest.map(|gap| gap.as_micros() as f64 / 1e3),
            answers: gaps.answers,
            failures: gaps.failures,
            problem,
        }
    }

    fn attempt(&self, plan: &ChaosPlan) -> Result<Gaps, LiveError> {
        let (files, network) = (folder()?, Network::new(&plan.launcher)?);
        let steps = self.event.steps();
        let last = steps.last().map(|step| step.at).unwrap_or_default();
        let time = SETTLE + last + TAIL;
        let pair = Pair { hvq: &plan.hvq, policy: self.policy, folder: files.path(), network: &network };
        if let (TriedProgram::Example, Some(examples)) = (self.client, &plan.examples) {
            let (_server, asking, begin) = pair.examples(examples, time)?;
            play(&network, &steps, begin)?;
            return asking.gaps(time);
        }
        let paths = if self.client == TriedProgram::LinksProxy { Paths::Links } else { Paths::Named };
        let (_programs, proxy) = pair.proxy(paths)?;
        let (begun, told) = sync_channel(1);
        std::thread::scope(|scope| {
            let near = network.namespaces().near();
            let asking = scope.spawn(move || near.within(|| ask(proxy, time, &begun)));
            let begin = told.recv_timeout(START);
            let begin = begin.map_err(|_| LiveError::Program {
                program: "hvq proxy",
                says: "the first request is not answered".to_owned(),
            })?;
            play(&network, &steps, begin)?;
            let gaps = asking.join().unwrap_or_else(|_| Err(io::Error::other("the requests panicked")));
            gaps.map_err(cannot("ask"))
        })
    }
}

/// Takes `steps`, each at its time after the first answer, which came at `begin`.
fn play(network: &Network, steps: &[Step], begin: Instant) -> Result<(), LiveError> {
    for step in steps {
        std::thread::sleep((begin + SETTLE + step.at).saturating_duration_since(Instant::now()));
        network.apply(*step)?;
    }
    Ok(())
}
