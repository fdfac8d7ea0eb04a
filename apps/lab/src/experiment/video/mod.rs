//! Real-time video over eMBB and URLLC with every scheme (HotNets 2023, Fig. 2).

mod curve;
mod datagrams;
mod outcome;
mod plan;
mod run;
mod scheme;
#[cfg(test)]
mod tests;

pub use outcome::{VideoOutcome, Viewing};
pub use plan::{Dark, VideoPlan, frames};
pub use run::VideoRun;
pub use scheme::{Steering, VideoScheme};
