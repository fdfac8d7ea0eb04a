//! The policies: those of the table, and some that break their contract.

use hvq_scheduler::{Item, PathId, PathView, Placement, Policy, Scheduler};
use hvq_transport::connection::SchedulerFactory;
use std::fmt;
use std::sync::Arc;

/// The policy that places frames.
#[derive(Clone, Copy, Debug)]
pub enum Chooser {
    /// A policy of the table.
    Policy(Policy),
    /// One that names the same path whatever happens.
    Clinging(PathId),
    /// One that always waits.
    Waiting,
}

impl Chooser {
    /// All of them.
    pub fn all() -> Vec<Self> {
        let table =
            Policy::NAMES.into_iter().map(|name| Self::Policy(name.parse().expect("a listed name parses")));
        table.chain([Self::Clinging(PathId(0)), Self::Clinging(PathId(1)), Self::Waiting]).collect()
    }

    /// Returns the factory of its schedulers.
    pub fn factory(self) -> SchedulerFactory {
        Arc::new(move || match self {
            Self::Policy(policy) => policy.scheduler(),
            other => Box::new(Adversary(other)),
        })
    }
}

impl fmt::Display for Chooser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Policy(policy) => policy.fmt(f),
            Self::Clinging(path) => write!(f, "always path {path}"),
            Self::Waiting => f.write_str("always waiting"),
        }
    }
}

#[derive(Debug)]
struct Adversary(Chooser);

impl Scheduler for Adversary {
    fn name(&self) -> &'static str {
        "adversary"
    }

    fn place(&mut self, item: &Item, _: &[PathView]) -> Placement {
        match self.0 {
            Chooser::Clinging(path) => Placement::On { path, bytes: item.bytes },
            _ => Placement::Wait,
        }
    }
}
