//! Page loads over eMBB and URLLC with every scheme (NSDI 2023, Fig. 3; HotMobile 2021, Fig. 3; HotNets 2023, Table 1).

mod outcome;
mod plan;
mod run;
mod scheme;
#[cfg(test)]
mod tests;

pub use outcome::{ChannelUse, Outcome};
pub(crate) use plan::stretch_offset;
pub use plan::{Plan, Sizes};
pub use run::{Channels, Run};
pub use scheme::{Below, Scheme};
