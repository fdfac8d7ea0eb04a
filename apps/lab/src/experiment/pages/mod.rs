//! Page loads over eMBB and URLLC with every scheme (NSDI 2023, Fig. 3; HotMobile 2021, Fig. 3; HotNets 2023, Table 1).

mod belief;
mod below;
mod order;
mod outcome;
mod plan;
mod run;
mod scheme;
mod stretch;
#[cfg(test)]
mod tests;

pub use belief::{Belief, Informed};
pub(super) use below::Flows;
pub use below::{BackgroundKnowledge, Below, Rule};
pub use order::Order;
pub use outcome::{ChannelUse, PageOutcome};
pub use plan::{PagesPlan, Sizes};
pub use run::{Channels, Ending, LIMIT, Notes, PageRun, Reach};
pub(super) use run::{ideal, is_told};
pub use scheme::{Scheme, SlowStart};
pub use stretch::{part, seed_of, stretch};
