//! Statistics of results: estimates with confidence intervals, and goals compared with them.

mod estimate;
mod goal;
mod results;
#[cfg(test)]
mod tests;

pub use estimate::{Estimate, quantile};
pub use goal::{Check, Verdict, number, verdicts};
pub use results::Results;
