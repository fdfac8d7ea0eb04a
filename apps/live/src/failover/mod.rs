//! Failover in figures: what befalls one of two links, and for how long requests, a download and datagrams stand still.
//!
//! ```text
//!   near namespace                                        far namespace
//!   requests  ─┐                                          ┌─ echo
//!   download  ─┼─ hvq client ─┬─ wifi ═ veth, tbf ─┬─ hvq server ─┼─ endless bytes
//!   datagrams ─┘              └─ cell ═ veth, tbf ─┘      └─ echo
//! ```
//!
//! The network is that of [`chaos`](crate::chaos), with the rate of each link limited. Both ends run in this process, each in
//! its namespace, with the library as any program uses it: the client has a [`PathManager`](hvq::PathManager). The three
//! loads are a connection each.

mod arrivals;
mod client;
mod fault;
mod server;

pub use fault::LinkFault;

use crate::chaos::event::{Change, Line, Step};
use crate::chaos::network::Network;
use crate::error::{LiveError, cannot};
use arrivals::Arrivals;
use client::Observed;
use hvq::Identity;
use hvq_emulation::tun::program::Launcher;
use hvq_lab::experiment::campaign::Stop;
use hvq_lab::experiment::pool;
use hvq_scheduler::Policy;
use serde::Serialize;
use std::fmt;
use std::io;
use std::str::FromStr;
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

/// From the first answers to the fault.
const SETTLE: Duration = Duration::from_millis(1_000);
/// From the last step to the end.
const TAIL: Duration = Duration::from_millis(1_500);
/// Both ends have so long to begin.
const START: Duration = Duration::from_secs(20);
/// The name in the server's certificate.
const NAME: &str = "failover.test";

/// A client and its policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Contender {
    /// hvq over both links, with this policy at both ends.
    Multipath(Policy),
    /// hvq without multipath, whose one path moves to the other link.
    Migration,
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Multipath(policy) => policy.fmt(f),
            Self::Migration => f.write_str("migration"),
        }
    }
}

impl FromStr for Contender {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "migration" {
            return Ok(Self::Migration);
        }
        let policy = text.parse().map(Self::Multipath);
        policy.map_err(|_| format!("{text:?} is neither a policy nor migration"))
    }
}

impl Contender {
    /// Those that are tried unless somebody names others.
    pub fn usual() -> Vec<Self> {
        let mut usual: Vec<Self> =
            ["hvc", "min-rtt", "redundant", "dchannel"].iter().filter_map(|name| name.parse().ok()).collect();
        usual.push(Self::Migration);
        usual
    }
}

/// The plan of the experiment.
#[derive(Clone, Debug)]
pub struct FailoverPlan {
    /// The clients.
    pub contenders: Vec<Contender>,
    /// The faults.
    pub faults: Vec<LinkFault>,
    /// Trials of each fault with each client; they hit one link and the other in turn.
    pub trials: u32,
    /// Trials at the same time.
    pub jobs: usize,
    /// The command that starts the first process of a namespace, which nothing here does.
    pub launcher: Launcher,
}

/// A trial.
#[derive(Clone, Debug, Serialize)]
pub struct FailoverTrial {
    /// The client.
    pub contender: String,
    /// The fault.
    pub fault: LinkFault,
    /// The number of the trial, from 0.
    pub number: u32,
    /// The longest time between two answers from the fault on, in milliseconds; `null` if none came at the end any more.
    pub requests_ms: Option<f64>,
    /// The same between two reads of the download.
    pub download_ms: Option<f64>,
    /// The same between two datagrams.
    pub datagrams_ms: Option<f64>,
    /// From the command that mended the link to the first packet that the peer acknowledged over it, in milliseconds; `null` if
    /// nothing is mended, or none was.
    pub recovery_ms: Option<f64>,
    /// UDP payload that the server sent for each byte of the download.
    pub sent_per_byte: Option<f64>,
    /// Requests that ended without an answer.
    pub failures: u64,
    /// Tasks that the machine ran or had waiting, averaged over a minute.
    pub load: f64,
    /// The reason for which there is nothing else.
    pub problem: Option<String>,
}

/// The times that a trial measures.
#[derive(Clone, Debug, Default)]
struct Figures {
    requests: Option<Duration>,
    download: Option<Duration>,
    datagrams: Option<Duration>,
    recovery: Option<Duration>,
    sent_per_byte: Option<f64>,
    failures: u64,
}

/// A trial that is to be made.
struct Task {
    contender: Contender,
    fault: LinkFault,
    number: u32,
}

/// Makes every trial until `stop` is ordered, and tells `done` of each; those that cannot be made say why.
pub fn run(plan: &FailoverPlan, stop: &Stop, done: impl Fn(&FailoverTrial) + Sync) -> Vec<FailoverTrial> {
    let mut tasks = Vec::new();
    // A machine that is busy for a while adds a little to every row, and not all to one.
    for number in 0..plan.trials {
        for contender in &plan.contenders {
            let task = |fault: &LinkFault| Task { contender: *contender, fault: *fault, number };
            tasks.extend(plan.faults.iter().map(task));
        }
    }
    let made = pool::run(
        &tasks,
        plan.jobs,
        |task| (!stop.is_ordered()).then(|| task.trial(plan)),
        |trial| trial.iter().for_each(&done),
    );
    made.into_iter().flatten().collect()
}

impl Task {
    fn trial(&self, plan: &FailoverPlan) -> FailoverTrial {
        let made = self.attempt(plan);
        let problem = made.as_ref().err().map(LiveError::to_string);
        let figures = made.unwrap_or_default();
        let ms = |time: Option<Duration>| time.map(|time| time.as_micros() as f64 / 1e3);
        FailoverTrial {
            contender: self.contender.to_string(),
            fault: self.fault,
            number: self.number,
            requests_ms: ms(figures.requests),
            download_ms: ms(figures.download),
            datagrams_ms: ms(figures.datagrams),
            recovery_ms: ms(figures.recovery),
            sent_per_byte: figures.sent_per_byte,
            failures: figures.failures,
            load: load(),
            problem,
        }
    }

    /// The link that is hit first.
    const fn line(&self) -> Line {
        if self.number.is_multiple_of(2) { Line::Wifi } else { Line::Cell }
    }

    fn attempt(&self, plan: &FailoverPlan) -> Result<Figures, LiveError> {
        let network = Network::new(&plan.launcher)?;
        let fast = |line| network.apply(Step { at: Duration::ZERO, line, change: Change::Fast });
        Line::ALL.into_iter().try_for_each(fast)?;
        let made = rcgen::generate_simple_self_signed([NAME.to_owned()]);
        let made = made.map_err(|error| LiveError::Program { program: "rcgen", says: error.to_string() })?;
        let chain = made.cert.pem().into_bytes();
        let identity =
            Identity::Pem { chain: chain.clone(), key: made.signing_key.serialize_pem().into_bytes() };
        let (contender, steps) = (self.contender, self.fault.steps(self.line()));
        let server = server::Control::default();
        let (near, far) = (network.namespaces().near(), network.namespaces().far());
        std::thread::scope(|scope| {
            let (ready, is_ready) = sync_channel(1);
            let serving = {
                let server = &server;
                scope.spawn(move || far.within(|| server::serve(contender, identity, &ready, server)))
            };
            let late = |what: &'static str| {
                server.end();
                LiveError::Program { program: what, says: "it does not begin".to_owned() }
            };
            is_ready.recv_timeout(START).map_err(|_| late("the server"))?;
            let (begun, is_begun) = sync_channel(1);
            let end = server::Control::default();
            let playing = {
                let end = end.clone();
                scope.spawn(move || near.within(|| client::play(contender, chain, &begun, &end)))
            };
            if is_begun.recv_timeout(START).is_err() {
                end.end();
                return Err(late("the client"));
            }
            let applied = apply(&network, &steps);
            std::thread::sleep(TAIL);
            let until = Instant::now();
            end.end();
            let observed = playing.join().unwrap_or_else(|_| Err(io::Error::other("the client panicked")));
            server.end();
            let served = serving.join().unwrap_or_else(|_| Err(io::Error::other("the server panicked")));
            served.map_err(cannot("serve"))?.map_err(cannot("serve"))?;
            let observed = observed.map_err(cannot("ask"))?.map_err(cannot("ask"))?;
            Ok(self.figures(&observed, (&applied?, until), server.sent()))
        })
    }

    /// The figures of what was `observed` while the steps were taken at the times `applied`, until the end.
    fn figures(&self, observed: &Observed, (applied, until): (&[Instant], Instant), sent: u64) -> Figures {
        let from = applied.first().copied().unwrap_or(until);
        let longest = |arrivals: &Arrivals| arrivals.longest(from, until);
        let mended = self.fault.mended_by().and_then(|index| applied.get(index));
        let delivered = observed.delivered;
        Figures {
            requests: longest(&observed.requests),
            download: longest(&observed.download),
            datagrams: longest(&observed.datagrams),
            recovery: mended.and_then(|at| observed.acknowledged_over(self.line()).first_since(*at)),
            sent_per_byte: (delivered > 0).then(|| sent as f64 / delivered as f64),
            failures: observed.failures,
        }
    }
}

/// Takes `steps`, each at its time after a while of calm; returns when the command of each was begun.
fn apply(network: &Network, steps: &[Step]) -> Result<Vec<Instant>, LiveError> {
    std::thread::sleep(SETTLE);
    let begin = Instant::now();
    let mut applied = Vec::new();
    for step in steps {
        std::thread::sleep((begin + step.at).saturating_duration_since(Instant::now()));
        applied.push(Instant::now());
        network.apply(*step)?;
    }
    Ok(applied)
}

/// The average load of the machine in the last minute; 0 where it is not known.
fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or_default()
}
