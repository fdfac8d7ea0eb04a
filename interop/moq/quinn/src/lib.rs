//! hvq-quinn under quinn's name, for programs that are compiled as they were published.
//!
//! Such a program opens no second path. So its environment says which paths its connections take besides the first: `HVQ_PATHS` has them as
//! `hvq get --path` takes them, with spaces between them. `HVQ_SCHEDULER` names a policy, and `HVQ_STATISTICS` has the paths reported each second.

pub use hvq_quinn::*;

mod endpoint;

pub use endpoint::Endpoint;
