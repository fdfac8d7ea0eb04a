//! Finds out whether a seed goes wrong, and with how few operations it still does.

use super::draw::{Op, Plan, plan};
use super::play::{Played, run};
use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

/// Plays that one shrinking may cost.
const MOST_PLAYS: usize = 600;

thread_local! {
    /// True while this thread plays, so that a panic is a finding and not news for people.
    static PLAYING: Cell<bool> = const { Cell::new(false) };
}

/// A seed that goes wrong.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The world, and the operations that are enough.
    plan: Plan,
    /// The number of operations that were drawn.
    drawn: usize,
    /// The problem.
    problem: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {} goes wrong: {}", self.plan.setting.seed, self.problem)?;
        writeln!(f, "in {:#?}", self.plan.setting)?;
        writeln!(f, "with {} of {} operations:", self.plan.ops.len(), self.drawn)?;
        self.plan.ops.iter().try_for_each(|op| writeln!(f, "    {op:?}"))?;
        write!(f, "Reproduce with: make soak SEED={}", self.plan.setting.seed)
    }
}

/// Plays `seed`; if it goes wrong, says how, and with as few operations as were found to be enough.
pub fn examine(seed: u64) -> Result<Played, Box<Finding>> {
    let plan = plan(seed);
    play(&plan).map_err(|problem| Box::new(shrink(plan, problem)))
}

/// Drops operations from a plan that goes wrong, as long as it still does: halves first, single ones last.
fn shrink(mut plan: Plan, mut problem: String) -> Finding {
    let drawn = plan.ops.len();
    let (mut plays, mut size) = (0, drawn.div_ceil(2));
    while size > 0 && plays < MOST_PLAYS {
        let mut start = 0;
        let before = plan.ops.len();
        while start < plan.ops.len() && plays < MOST_PLAYS {
            let fewer = without(&plan.ops, start, size);
            let candidate = Plan { ops: fewer, setting: plan.setting.clone() };
            plays += 1;
            match play(&candidate) {
                Err(worse) => (plan, problem) = (candidate, worse),
                Ok(_) => start += size,
            }
        }
        if plan.ops.len() == before || size > plan.ops.len() {
            size /= 2;
        }
    }
    Finding { plan, drawn, problem }
}

fn without(ops: &[Op], start: usize, count: usize) -> Vec<Op> {
    let end = ops.len().min(start + count);
    ops[..start].iter().chain(&ops[end..]).cloned().collect()
}

/// Plays a plan; a panic is a problem like any other.
fn play(plan: &Plan) -> Result<Played, String> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let loud = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !PLAYING.get() {
                loud(info);
            }
        }));
    });
    PLAYING.set(true);
    let result = catch_unwind(AssertUnwindSafe(|| run(plan)));
    PLAYING.set(false);
    result.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(format!("panic: {}", text.unwrap_or_else(|| "without a word".to_owned())))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_that_does_not_matter_is_dropped() {
        let ops: Vec<Op> = (0..20).map(|milliseconds| Op::Wait { milliseconds }).collect();
        assert_eq!(without(&ops, 15, 10), ops[..15]);
        assert_eq!(without(&ops, 0, 19), ops[19..]);
    }

    #[test]
    fn a_seed_always_draws_the_same() {
        assert_eq!(plan(5).ops, plan(5).ops);
        assert_ne!(plan(5).ops, plan(6).ops);
    }
}
