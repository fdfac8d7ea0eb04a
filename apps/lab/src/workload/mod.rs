//! Workloads: applications in the world.

pub mod bulk;
pub mod page_load;
pub mod pattern;
pub mod tunnel;
pub mod video;
