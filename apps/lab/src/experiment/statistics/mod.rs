//! What results say: estimates with confidence intervals, and goals held against them.

mod estimate;
mod goal;
mod results;
#[cfg(test)]
mod tests;

pub use estimate::{Estimate, quantile};
pub use goal::{Check, Verdict, number, verdicts};
pub use results::Results;
