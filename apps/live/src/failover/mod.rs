//! Failover in figures: what befalls one of two links, and for how long requests, a download and datagrams stand still.
//!
//! ```text
//!   near namespace                                        far namespace
//!   requests  ─┐                                          ┌─ echo
//!   download  ─┼─ hvq client ─┬─ wifi ═ veth, tbf ─┬─ hvq server ─┼─ endless bytes
//!   datagrams ─┘              └─ cell ═ veth, tbf ─┘      └─ echo
//! ```
//!
//! The network is that of [`chaos`](crate::chaos), with the rate of each link limited. Both ends of hvq run in this process, each
//! in its namespace, with the library as any program uses it: the client has a [`PathManager`](hvq::PathManager). Both ends of
//! a rival are processes there, which play the same and tell when something arrived. The three loads are a connection each.

mod arrivals;
mod client;
mod contender;
mod fault;
mod library;
mod observed;
mod program;
mod server;

pub use contender::{Contender, Form, Rival};
pub use fault::LinkFault;

use crate::chaos::event::{Change, Line, Step};
use crate::chaos::network::Network;
use crate::error::LiveError;
use arrivals::Arrivals;
use hvq_emulation::tun::program::Launcher;
use hvq_lab::experiment::campaign::Stop;
use hvq_lab::experiment::pool;
use hvq_program::tls::SelfSigned;
use observed::Account;
use program::RivalProgram;
use serde::Serialize;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// From the first answers to the fault.
const SETTLE: Duration = Duration::from_millis(1_000);
/// From the last step to the end.
const TAIL: Duration = Duration::from_millis(1_500);
/// Both ends have so long to begin.
const START: Duration = Duration::from_secs(20);
/// The name in the server's certificate.
const NAME: &str = "failover.test";

/// The plan of the experiment.
#[derive(Clone, Debug)]
pub struct FailoverPlan {
    /// The program of rivals, which the clients of [`Contender::Rival`] need.
    pub rivals: Option<PathBuf>,
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
    /// UDP payload that the server sent for each byte of the download, or TCP payload.
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

/// A certificate and its key, in PEM.
#[derive(Clone, Debug)]
struct Certificate {
    chain: Vec<u8>,
    key: Vec<u8>,
}

/// Checks that `path` is the program of rivals.
///
/// # Errors
/// It cannot be run, or is another program.
pub fn check_rivals(path: &Path) -> io::Result<()> {
    program::check(path)
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
        let made = SelfSigned::new(&[NAME.to_owned()]);
        let made = made.map_err(|failure| LiveError::Program { program: "hvq", says: failure.line() })?;
        let (chain, key) = made.pem();
        let certificate = Certificate { chain, key };
        let steps = self.fault.steps(self.line());
        let during = || {
            let applied = apply(&network, &steps);
            std::thread::sleep(TAIL);
            (applied, Instant::now())
        };
        let ((applied, until), account) = match (self.contender, &plan.rivals) {
            (Contender::Library(form), _) => library::play(form, &network, certificate, during)?,
            (Contender::Rival(rival), Some(path)) => {
                RivalProgram { path, rival }.play(&network, &certificate, during)?
            }
            (Contender::Rival(_), None) => {
                return Err(LiveError::Missing { program: "the program of rivals", remedy: "name it" });
            }
        };
        Ok(self.figures(&account, (&applied?, until)))
    }

    /// The figures of what was observed while the steps were taken at the times `applied`, until the end.
    fn figures(&self, account: &Account, (applied, until): (&[Instant], Instant)) -> Figures {
        let Account { observed, sent } = account;
        let from = applied.first().copied().unwrap_or(until);
        let longest = |arrivals: &Arrivals| arrivals.longest(from, until);
        let mended = self.fault.mended_by().and_then(|index| applied.get(index));
        let delivered = observed.delivered;
        Figures {
            requests: longest(&observed.requests),
            download: longest(&observed.download),
            datagrams: longest(&observed.datagrams),
            recovery: mended.and_then(|at| observed.acknowledged_over(self.line()).first_since(*at)),
            sent_per_byte: (delivered > 0).then(|| *sent as f64 / delivered as f64),
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
