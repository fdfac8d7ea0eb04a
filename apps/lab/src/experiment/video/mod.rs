//! Real-time video over eMBB and URLLC with every scheme (HotNets 2023, Fig. 2).

mod curve;
mod datagrams;
mod outcome;
mod plan;
mod run;
mod scheme;
#[cfg(test)]
mod tests;

pub use outcome::{Outcome, Viewing};
pub use plan::{Dark, Plan, frames};
pub use run::Run;
pub use scheme::{Scheme, Steering};
