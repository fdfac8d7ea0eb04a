//! Two channels that go dark, held against the better one alone in virtual time: `hvq lab outages` in short.

use hvq_lab::experiment::outages::{Cell, Outcome, drawn, named, names, policies};
use hvq_lab::experiment::pool;
use hvq_lab::report::outages as report;
use std::thread::available_parallelism;

/// The seed of all cells, as of `hvq lab outages`.
const SEED: u64 = 1;
/// Random cells.
const DRAWN: u32 = 80;
/// The policies that a random cell is run with: cells take turns, so that each policy meets many.
const TURN: usize = 5;

/// Runs `cells`, each with the policies that `turn` picks by its index, and fails with the worst.
fn hold(cells: &[Cell], turn: impl Fn(usize) -> Vec<usize> + Sync) {
    let all = policies();
    let tasks: Vec<(usize, &Cell)> = cells.iter().enumerate().collect();
    let run = |(index, cell): &(usize, &Cell)| {
        let chosen: Vec<_> = turn(*index).into_iter().map(|policy| all[policy % all.len()]).collect();
        cell.outcomes(&chosen).expect("there are no traces")
    };
    let jobs = available_parallelism().map_or(1, usize::from);
    let outcomes: Vec<Outcome> = pool::run(&tasks, jobs, run, |_| ()).concat();
    let replay = |outcome: &Outcome| {
        let Outcome { cell, policy, .. } = outcome;
        format!("hvq lab outages --seed {SEED} --cell {cell} --policies {policy} -v")
    };
    let worst = report::worst(&outcomes, 20, replay);
    assert!(worst.is_empty(), "{}\n{worst}", report::markdown(&outcomes));
}

#[test]
#[ignore = "two channels are still worse than one in some of these cells"]
fn outages_that_were_found_before_keep_no_policy_from_what_one_channel_does() {
    let cells: Vec<Cell> = names().filter_map(|name| named(name, SEED)).collect();
    let every = policies().len();
    hold(&cells, |_| (0..every).collect());
}

#[test]
#[ignore = "two channels are still worse than one in some of these cells"]
fn random_outages_keep_no_policy_from_what_one_channel_does() {
    let cells: Vec<Cell> = (0..DRAWN).map(|number| drawn(SEED, number)).collect();
    hold(&cells, |index| (index * TURN..(index + 1) * TURN).collect());
}
