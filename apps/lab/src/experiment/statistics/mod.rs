//! Statistics of results: estimates with confidence intervals, and goals compared with them.

mod estimate;
mod evidence;
mod frame;
mod goal;
mod quantity;
mod results;
mod sum;
#[cfg(test)]
mod tests;

pub use estimate::Estimate;
pub use goal::{Check, Decision, GoalVerdict, number, verdicts, with_interval};
pub use results::Results;
