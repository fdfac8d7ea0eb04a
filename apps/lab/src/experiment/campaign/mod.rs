//! The runs of an experiment: which there are, what they measure, and the file that keeps it.

mod record;
mod session;
mod store;
mod task;
#[cfg(test)]
mod tests;

pub use record::{Key, Record};
pub use session::{CampaignError, Session, Stop, Tally};
pub use store::{Found, Store, StoreError, merge, read};
pub use task::{Scope, Shard, Task, progress_name, tasks};
