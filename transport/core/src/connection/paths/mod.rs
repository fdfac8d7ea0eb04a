//! The paths of a connection: opened, moved, watched and abandoned.

pub(crate) mod failover;
pub(crate) mod hints;
pub(crate) mod knowledge;
pub(crate) mod maintenance;
pub(crate) mod migration;
pub(crate) mod multipath;
pub(crate) mod path_use;
pub(crate) mod preferred;
pub(crate) mod shared_bottleneck;
