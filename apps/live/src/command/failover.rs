//! `hvq lab failover`: for how long loads stand still when a link fails.

use crate::failover::{self, Contender, FailoverPlan, LinkFault, Rival};
use crate::report;
use clap::Args;
use hvq_emulation::tun::program;
use hvq_lab::command::{progress, stop_on_signals};
use hvq_program::arguments::{FigureArguments, ResultArguments};
use hvq_program::failure::{Exit, Failure};
use hvq_program::output::{self, Console, check_distinct};
use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Instant;

/// The name of the command in the marks of files for tables.
const NAME: &str = "failover";

/// The reason for which rivals are not measured unless there is a program of theirs.
const NO_PROGRAM: &str = "--rivals names no program that could be measured (make failover builds it)";

/// Arguments of `hvq lab failover`.
#[derive(Debug, Args)]
pub struct FailoverArguments {
    /// The clients: policies, migration for a connection without multipath, and with --rivals quinn, quiche, noq,
    /// mptcp-cubic and mptcp-bbr (by default hvc, min-rtt, redundant, dchannel, migration and all rivals that there are)
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    clients: Vec<Contender>,
    /// The program of other implementations (bench/rivals in the sources), which are then measured beside hvq
    #[arg(long, value_name = "PROGRAM")]
    rivals: Option<PathBuf>,
    /// The faults: down, silent, upwards, downwards, slow, renumbered, both (by default all)
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    faults: Vec<LinkFault>,
    /// Trials of each fault with each client
    #[arg(long, value_name = "NUMBER", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    trials: u32,
    /// Trials at the same time, each in namespaces of its own; more than the machine has room for make gaps longer
    #[arg(long, value_name = "NUMBER", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=64))]
    jobs: u16,
    #[command(flatten)]
    results: ResultArguments,
    #[command(flatten)]
    figure: FigureArguments,
}

impl FailoverArguments {
    /// The clients, and a sentence on each rival that cannot be among them.
    fn contenders(&self) -> Result<(Vec<Contender>, Vec<String>), Failure> {
        let usage = |says: String| Failure::new(Exit::Usage, says);
        if let Some(path) = &self.rivals {
            failover::check_rivals(path)
                .map_err(|error| usage(format!("--rivals {}: {error}", path.display())))?;
        }
        for client in &self.clients {
            let Contender::Rival(rival) = client else { continue };
            let obstacle = if self.rivals.is_some() { rival.obstacle() } else { Some(NO_PROGRAM.to_owned()) };
            if let Some(says) = obstacle {
                return Err(usage(format!("--clients {client}: {says}")));
            }
        }
        if !self.clients.is_empty() {
            return Ok((self.clients.clone(), Vec::new()));
        }
        let mut contenders = Contender::usual();
        if self.rivals.is_none() {
            let rivals = Rival::ALL.map(Rival::name).join(", ");
            return Ok((contenders, vec![format!("{rivals}: {NO_PROGRAM}")]));
        }
        let mut absent = Vec::new();
        for rival in Rival::ALL {
            match rival.obstacle() {
                None => contenders.push(Contender::Rival(rival)),
                Some(says) => absent.push(format!("{}: {says}", rival.name())),
            }
        }
        Ok((contenders, absent))
    }

    fn plan(&self, contenders: Vec<Contender>) -> Result<FailoverPlan, Failure> {
        Ok(FailoverPlan {
            rivals: self.rivals.clone(),
            contenders,
            faults: if self.faults.is_empty() { LinkFault::ALL.to_vec() } else { self.faults.clone() },
            trials: self.trials,
            jobs: self.jobs.into(),
            launcher: program::this_program(&[OsStr::new("inside")])?,
        })
    }
}

/// Makes every trial and prints the tables; fails if one could not be made.
pub fn run(arguments: &FailoverArguments, console: Console) -> Result<(), Failure> {
    check_distinct("--clients", &arguments.clients)?;
    check_distinct("--faults", &arguments.faults)?;
    let (contenders, absent) = arguments.contenders()?;
    let plan = arguments.plan(contenders)?;
    arguments.results.check(NAME)?;
    arguments.figure.check()?;
    for says in &absent {
        console.say(format!("failover: not measured: {says}"));
    }
    let start = Instant::now();
    let (interruption, stop) = stop_on_signals(console)?;
    let bar = progress(plan.contenders.len() * plan.faults.len() * plan.trials as usize, console);
    let trials = failover::run(&plan, &stop, |trial| {
        bar.set_message(format!("{}, {}", trial.contender, trial.fault));
        bar.inc(1);
    });
    bar.finish_and_clear();
    let tables = report::failover(&trials, &absent);
    arguments.results.write_outcomes(&trials)?;
    output::print(tables.trim_end())?;
    if let Some(exit) = interruption.exit() {
        return Err(Failure::new(exit, "ended by a signal: what was measured by then is above"));
    }
    arguments.figure.write(|| Some(report::failover_figure(&trials)))?;
    arguments.results.write_tables(NAME, &tables)?;
    console.say(format!("failover: {} trials in {:.0} s", trials.len(), start.elapsed().as_secs_f64()));
    let unmade = trials.iter().filter(|trial| trial.problem.is_some()).count();
    if unmade == 0 {
        return Ok(());
    }
    Err(Failure::new(Exit::Runtime, format!("{unmade} trials could not be made")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        failover: FailoverArguments,
    }

    fn contenders(words: &[&str]) -> Result<(Vec<Contender>, Vec<String>), String> {
        let line =
            Line::try_parse_from(["failover"].iter().chain(words)).map_err(|error| error.to_string())?;
        line.failover.contenders().map_err(|failure| failure.line())
    }

    #[test]
    fn rivals_need_a_program_and_tables_name_those_that_are_not_there() {
        let (alone, absent) = contenders(&[]).unwrap();
        assert_eq!(alone, Contender::usual());
        assert!(
            absent.len() == 1
                && absent[0].contains("quinn, quiche, noq, mptcp")
                && absent[0].contains("--rivals")
        );
        let (named, absent) = contenders(&["--clients", "hvc,migration"]).unwrap();
        assert!(named.len() == 2 && absent.is_empty(), "nobody asked for others");
        for (words, says) in [
            (&["--clients", "hvc,mptcp-bbr"][..], "--clients mptcp-bbr: --rivals names no program"),
            (&["--clients", "moon"], "mptcp-bbr"),
            (&["--rivals", "/nonexistent/rivals"], "--rivals /nonexistent/rivals: No such file"),
            (&["--rivals", "true"], "--rivals true: it is not the program of rivals"),
        ] {
            let problem = contenders(words).unwrap_err();
            assert!(problem.contains(says), "{problem}");
        }
    }
}
