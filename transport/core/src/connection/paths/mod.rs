//! The paths of a connection: opened, moved, watched and abandoned.

pub mod failover;
pub mod hints;
pub mod maintenance;
pub mod migration;
pub mod multipath;
pub mod path_use;
pub mod preferred;
pub mod shared_bottleneck;
