//! The cost of one answer of a scheduling policy.

mod workload;

use crate::spread::Spread;
use anyhow::{Context, Result};
use hvq_scheduler::{Policy, Scheduler};
use serde::Serialize;
use std::hint::black_box;
use std::time::{Duration, Instant};
use workload::Workload;

/// Numbers of paths that are measured.
const PATHS: [usize; 2] = [2, 8];
/// Virtual time between two decisions: a packet's worth at 100 Mbit/s.
const STEP: Duration = Duration::from_micros(100);
/// The goal for two paths, in nanoseconds.
pub const GOAL: f64 = 200.0;

/// The cost of one policy's decisions.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Decision {
    /// The policy's name.
    pub policy: &'static str,
    /// Paths to choose from.
    pub paths: usize,
    /// Nanoseconds for a call of `place`, the loop around it included.
    pub nanoseconds: Spread,
}

/// The length of the measurement.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Batches of each policy and number of paths; all take turns.
    pub batches: usize,
    /// The duration of a batch, about.
    pub batch: Duration,
}

/// Measures every policy.
pub fn measure(effort: Effort) -> Result<Vec<Decision>> {
    let workloads = PATHS.map(Workload::new);
    let mut rows = Vec::new();
    for name in Policy::NAMES {
        for workload in &workloads {
            let policy: Policy = name.parse().context("a listed name is known")?;
            rows.push(Row::new(name, workload, policy.scheduler(), effort.batch));
        }
    }
    for _ in 0..effort.batches {
        for row in &mut rows {
            let nanoseconds = row.batch();
            row.results.push(nanoseconds);
        }
    }
    let decision = |row: Row<'_>| {
        let nanoseconds = Spread::of(row.results).context("there is at least one batch")?;
        Ok(Decision { policy: row.name, paths: row.workload.paths, nanoseconds })
    };
    rows.into_iter().map(decision).collect()
}

struct Row<'a> {
    name: &'static str,
    workload: &'a Workload,
    scheduler: Box<dyn Scheduler>,
    now: Duration,
    decisions: u32,
    results: Vec<f64>,
}

impl<'a> Row<'a> {
    /// A row whose batches take about as long as `batch`.
    fn new(
        name: &'static str,
        workload: &'a Workload,
        scheduler: Box<dyn Scheduler>,
        batch: Duration,
    ) -> Self {
        let mut row =
            Self { name, workload, scheduler, now: Duration::ZERO, decisions: 10_000, results: Vec::new() };
        let nanoseconds = row.batch().max(0.1);
        row.decisions = (batch.as_nanos() as f64 / nanoseconds).max(1_000.0) as u32;
        row
    }

    /// Nanoseconds per decision.
    fn batch(&mut self) -> f64 {
        let started = Instant::now();
        let mut situations = self.workload.situations.iter().cycle();
        for _ in 0..self.decisions {
            let Some((item, paths)) = situations.next() else { break };
            let mut item = *item;
            item.now = self.now;
            self.now += STEP;
            black_box(self.scheduler.place(black_box(&item), black_box(paths)));
        }
        started.elapsed().as_nanos() as f64 / f64::from(self.decisions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_is_measured_with_every_number_of_paths() {
        let effort = Effort { batches: 2, batch: Duration::from_micros(200) };
        let decisions = measure(effort).unwrap();
        assert_eq!(decisions.len(), Policy::NAMES.len() * PATHS.len());
        assert!(decisions.iter().all(|decision| decision.nanoseconds.min > 0.0));
    }
}
