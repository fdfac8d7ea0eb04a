//! Two channels that go dark, held against the better one alone in virtual time: `hvq lab outages` in short.

use hvq_lab::experiment::outages::{OutageCell, OutageOutcome, OutageVerdict, drawn, named, names, policies};
use hvq_lab::experiment::pool;
use hvq_lab::report::outages as report;
use std::thread::available_parallelism;

/// The seed of all cells, as of `hvq lab outages`.
const SEED: u64 = 1;
/// Random cells.
const DRAWN: u32 = 80;
/// The policies that a random cell is run with: cells take turns, so that each policy meets many.
const TURN: usize = 5;

/// The policies that by definition place data on every path in turn, whatever it takes: what is on a path that goes dark waits
/// until the path counts as silent, and with flapping again each time.
const IN_TURN: [&str; 2] = ["round-robin", "weighted"];

/// One over the share of random cells in which policies that choose a path may be late. Of these cells 2.6 % are: most where channels flap, or
/// are both dark at once. What shifts loads by a packet moves some of them, either way: of 2,400 cells of other seeds, 8 became late and 8 in
/// time by a change of how paths open.
const LATE: usize = 32;

/// The outcomes of `cells`, each with the policies that `turn` picks by its index.
fn outcomes(cells: &[OutageCell], turn: impl Fn(usize) -> Vec<usize> + Sync) -> Vec<OutageOutcome> {
    let all = policies();
    let tasks: Vec<(usize, &OutageCell)> = cells.iter().enumerate().collect();
    let run = |(index, cell): &(usize, &OutageCell)| {
        let chosen: Vec<_> = turn(*index).into_iter().map(|policy| all[policy % all.len()]).collect();
        cell.outcomes(&chosen).expect("there are no traces")
    };
    let jobs = available_parallelism().map_or(1, usize::from);
    pool::run(&tasks, jobs, run, |_| ()).concat()
}

/// Fails with the worst of `failed`.
fn none_of(failed: &[OutageOutcome]) {
    let replay = |outcome: &OutageOutcome| {
        let OutageOutcome { cell, policy, .. } = outcome;
        format!("hvq lab outages --seed {SEED} --cell {cell} --policies {policy} -v")
    };
    let worst = report::worst(failed, 20, replay);
    assert!(failed.is_empty(), "{}\n{worst}", report::markdown(failed));
}

/// Returns those of `outcomes` whose verdict is one of `verdicts`.
fn with(verdicts: &[OutageVerdict], outcomes: &[OutageOutcome]) -> Vec<OutageOutcome> {
    outcomes.iter().filter(|outcome| verdicts.contains(&outcome.verdict)).cloned().collect()
}

/// The named cells with every policy.
fn before() -> Vec<OutageOutcome> {
    let cells: Vec<OutageCell> = names().filter_map(|name| named(name, SEED)).collect();
    let every = policies().len();
    outcomes(&cells, |_| (0..every).collect())
}

/// Random cells with a few policies each.
fn random() -> Vec<OutageOutcome> {
    let cells: Vec<OutageCell> = (0..DRAWN).map(|number| drawn(SEED, number)).collect();
    outcomes(&cells, |index| (index * TURN..(index + 1) * TURN).collect())
}

#[test]
fn with_outages_that_were_found_before_every_policy_ends_what_one_channel_ends() {
    none_of(&with(&[OutageVerdict::Never], &before()));
}

#[test]
fn with_outages_that_were_found_before_policies_that_choose_a_path_are_no_later_than_one_channel() {
    let late = with(&[OutageVerdict::Late, OutageVerdict::Never], &before());
    let chosen: Vec<OutageOutcome> =
        late.into_iter().filter(|outcome| !IN_TURN.contains(&outcome.policy.as_str())).collect();
    none_of(&chosen);
}

#[test]
fn with_random_outages_every_policy_ends_what_one_channel_ends() {
    none_of(&with(&[OutageVerdict::Never], &random()));
}

#[test]
fn with_random_outages_policies_that_choose_a_path_are_later_than_one_channel_in_few_cells() {
    let chosen: Vec<OutageOutcome> =
        random().into_iter().filter(|outcome| !IN_TURN.contains(&outcome.policy.as_str())).collect();
    let late = with(&[OutageVerdict::Late, OutageVerdict::Never], &chosen);
    assert!(chosen.len() > 300, "{} cells", chosen.len());
    if late.len() * LATE > chosen.len() {
        none_of(&late);
    }
}

#[test]
#[ignore = "the goal: of cells with random outages 4 % are late still, with policies that place in turn 8 %"]
fn with_outages_no_policy_is_later_than_the_better_channel_alone() {
    none_of(&with(&[OutageVerdict::Late, OutageVerdict::Never], &[before(), random()].concat()));
}
