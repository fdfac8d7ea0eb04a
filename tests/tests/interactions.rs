//! Random interactions by seed (see `hvq_tests::interactions`): many small worlds, each with its own operations.

use hvq_tests::interactions::{Played, Rarities, examine};
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Seeds that a test run plays, unless `HVQ_SEEDS` says otherwise.
const SEEDS: u64 = 10_000;

fn number(name: &str) -> Option<u64> {
    std::env::var(name)
        .ok()
        .filter(|text| !text.is_empty())
        .map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is a number, not `{text}`")))
}

/// The output on the way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Report {
    None,
    Progress,
}

/// The sums over all worlds.
#[derive(Debug, Default)]
struct Sum {
    worlds: u64,
    datagrams: u64,
    several_paths: u64,
    rarities: Rarities,
    findings: Vec<String>,
}

impl Sum {
    fn add(&mut self, played: Played) {
        self.worlds += 1;
        self.datagrams += played.datagrams;
        self.several_paths += u64::from(played.last_paths > 1);
        self.rarities.key_updates += played.rarities.key_updates;
        self.rarities.early += played.rarities.early;
        self.rarities.preferred += played.rarities.preferred;
        self.rarities.isolated += played.rarities.isolated;
        self.rarities.worn_out += played.rarities.worn_out;
    }

    /// The worlds are worth their time: they talk, half of them over several paths when they end, and what is rare
    /// happens in some.
    fn check(&self) {
        if self.worlds < 100 {
            return;
        }
        assert!(self.datagrams > 20 * self.worlds, "{self:?}");
        assert!(self.several_paths > self.worlds / 2, "{self:?}");
        let Rarities { key_updates, early, preferred, isolated, worn_out } = self.rarities;
        assert!(key_updates > self.worlds / 10 && worn_out < self.worlds / 100, "{self:?}");
        assert!(early > self.worlds / 25 && preferred > self.worlds / 50, "{self:?}");
        assert!(isolated > self.worlds / 10, "{self:?}");
    }
}

/// Plays `count` seeds from `first` on, on all processors, until `most` of them have gone wrong.
fn play(first: u64, count: u64, most: usize, report: Report) -> Sum {
    let (next, sum, began) = (AtomicU64::new(first), Mutex::new(Sum::default()), Instant::now());
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first.saturating_add(count)
                || sum.lock().expect("nobody panics with it").findings.len() >= most
            {
                return;
            }
            let result = examine(seed);
            let mut sum = sum.lock().expect("nobody panics with it");
            match result {
                Ok(played) => sum.add(played),
                Err(finding) => {
                    if report == Report::Progress {
                        println!("{finding}\n");
                    }
                    sum.findings.push(finding.to_string());
                }
            }
            let done = sum.worlds + sum.findings.len() as u64;
            if report == Report::Progress && (done.is_multiple_of(10_000) || done == count) {
                println!("{done} seeds, {} wrong, {:.0?}", sum.findings.len(), began.elapsed());
                let _closed_output = std::io::stdout().flush();
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    sum.into_inner().expect("nobody panics with it")
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-12.3
//= type=test
//# A QUIC endpoint MUST NOT reuse a packet number within the same packet number space in one connection
//= https://www.rfc-editor.org/rfc/rfc9002#section-6.2.1
//= type=test
//# The PTO timer MUST NOT be set if a timer is set for time threshold loss detection; see Section 6.1.2
#[test]
fn random_interactions_break_no_rule_and_everything_arrives() {
    let count = number("HVQ_SEEDS").unwrap_or(SEEDS);
    let sum = play(0, count, 1, Report::None);
    assert!(sum.findings.is_empty(), "{}", sum.findings.join("\n"));
    assert_eq!(sum.worlds, count);
    sum.check();
}

#[test]
#[ignore = "for `make soak`, which sets the seeds"]
fn soak() {
    let sum = match number("HVQ_SEED") {
        Some(seed) => play(seed, 1, 1, Report::Progress),
        None => play(
            number("HVQ_FIRST").unwrap_or(0),
            number("HVQ_SEEDS").unwrap_or(1_000_000),
            10,
            Report::Progress,
        ),
    };
    assert!(sum.findings.is_empty(), "{} seeds went wrong", sum.findings.len());
    println!("{sum:?}, nothing went wrong");
}
