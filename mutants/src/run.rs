//! Trying mutants: each against the tests that reach it, the nearest and quickest first.

use crate::catalogue::Mutant;
use crate::choice::Choice;
use crate::results::{Entry, Outcome, Results};
use crate::suite::{Suite, Test, Word, each};
use anyhow::Result;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The time of the tests that play in one process at first; later ones play for twice as long each.
const FIRST_BATCH: Duration = Duration::from_millis(60);
/// Results are saved so often.
const SAVE: Duration = Duration::from_secs(15);

/// Limits within which tests are asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Effort {
    /// Processes at a time.
    pub jobs: usize,
    /// The time that the tests of a mutant may take, as measured without one.
    pub budget: Duration,
    /// The time after which no further mutant is begun.
    pub limit: Duration,
}

impl Effort {
    /// The effort that the command line asks for.
    pub fn of(choice: &Choice) -> Self {
        let limit = choice.minutes.map_or(Duration::MAX, |minutes| Duration::from_secs(60 * minutes));
        Self { jobs: choice.jobs, budget: Duration::from_secs(choice.budget), limit }
    }
}

/// Tries `mutants`, and adds what became of them to `results`, which are saved in the repository at a path now and then.
///
/// # Errors
///
/// If a program of tests cannot be run.
pub fn run(
    suite: &Suite,
    mutants: &[&Mutant],
    effort: Effort,
    (results, root): (&mut Results, &Path),
) -> Result<Vec<Entry>> {
    let reaching = reaching(suite, mutants);
    let next = AtomicUsize::new(0);
    let begun = Instant::now();
    let shared = Mutex::new((results, begun, Vec::new()));
    let ends = each(effort.jobs, || -> Result<()> {
        while begun.elapsed() < effort.limit {
            let index = next.fetch_add(1, Relaxed);
            let Some(mutant) = mutants.get(index) else { break };
            let (outcome, test) = judge(suite, mutant, &reaching[index], effort.budget)?;
            let mut guard = shared.lock().expect("nobody panics");
            let (results, saved, tried) = &mut *guard;
            results.put(&mutant.key, outcome);
            tried.push(Entry { key: mutant.key.clone(), outcome, test });
            if saved.elapsed() > SAVE {
                *saved = Instant::now();
                results.save(root)?;
                let survivors = tried.iter().filter(|entry| entry.outcome.survives()).count();
                let (done, all, time) = (tried.len(), mutants.len(), begun.elapsed().as_secs());
                eprintln!("mutants: {done} of {all} in {time} s, {survivors} survive");
            }
        }
        Ok(())
    });
    ends.into_iter().collect::<Result<()>>()?;
    let (results, _, tried) = shared.into_inner().expect("nobody panics");
    results.save(root)?;
    Ok(tried)
}

/// For each mutant the tests that reach it, in the order in which they are asked.
fn reaching<'a>(suite: &'a Suite, mutants: &[&Mutant]) -> Vec<Vec<&'a Test>> {
    let most = mutants.iter().map(|mutant| mutant.number as usize + 1).max().unwrap_or_default();
    let mut by_number: Vec<Vec<&Test>> = vec![Vec::new(); most];
    for test in &suite.tests {
        for number in &test.reaches {
            if let Some(tests) = by_number.get_mut(*number as usize) {
                tests.push(test);
            }
        }
    }
    let sorted = |mutant: &&Mutant| {
        let mut tests = by_number[mutant.number as usize].clone();
        let module = module(&mutant.key.file);
        // Its own module's tests know most about it.
        let weight = |test: &Test| if test.name.starts_with(&module) { test.time / 10 } else { test.time };
        tests.sort_by_key(|test| (test.program, weight(test)));
        tests
    };
    mutants.iter().map(sorted).collect()
}

/// The module of a file, as the names of its tests begin.
fn module(file: &str) -> String {
    let inner = file.split_once("/src/").map_or(file, |parts| parts.1);
    inner.trim_end_matches(".rs").trim_end_matches("/mod").replace('/', "::")
}

fn judge(
    suite: &Suite,
    mutant: &Mutant,
    tests: &[&Test],
    budget: Duration,
) -> Result<(Outcome, Option<String>)> {
    if tests.is_empty() {
        return Ok((Outcome::Unreached, None));
    }
    let (mut left, mut longest, mut spent) = (tests, FIRST_BATCH, Duration::ZERO);
    while let Some(first) = left.first() {
        if spent > budget {
            return Ok((Outcome::Unfinished, None));
        }
        let mut time = Duration::ZERO;
        let fits = |test: &&&Test| {
            time += test.time;
            test.program == first.program && time <= longest
        };
        let count = left.iter().take_while(fits).count().max(1);
        let (batch, rest) = left.split_at(count);
        match suite.ask(batch, mutant.number)? {
            Word::Failed(test) => return Ok((Outcome::Caught, Some(test))),
            Word::TimedOut => return Ok((Outcome::TimedOut, batch.first().map(|test| test.name.clone()))),
            Word::Passed => {}
        }
        spent += batch.iter().map(|test| test.time).sum::<Duration>();
        (left, longest) = (rest, longest * 2);
    }
    Ok((Outcome::Survived, None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::{Genre, Key};

    fn test(name: &str, millis: u64, reaches: &[u32]) -> Test {
        Test { program: 0, name: name.into(), time: Duration::from_millis(millis), reaches: reaches.to_vec() }
    }

    #[test]
    fn a_mutant_is_asked_of_the_tests_that_reach_it_those_of_its_module_first() {
        let tests = vec![
            test("endpoint::tests::slow", 900, &[0, 1]),
            test("path::mtu::tests::near", 500, &[1]),
            test("endpoint::tests::quick", 60, &[1]),
            test("path::mtu::tests::other", 1, &[0]),
        ];
        let suite = Suite { programs: Vec::new(), tests, failing: Vec::new() };
        let key = Key {
            file: "transport/core/src/path/mtu.rs".into(),
            mutation: String::new(),
            line: String::new(),
            ordinal: 0,
        };
        let mutant = Mutant { number: 1, key, genre: Genre::FnValue, start: 0, replacement: String::new() };
        let names: Vec<_> = reaching(&suite, &[&mutant])[0].iter().map(|test| test.name.as_str()).collect();
        assert_eq!(names, ["path::mtu::tests::near", "endpoint::tests::quick", "endpoint::tests::slow"]);
    }
}
