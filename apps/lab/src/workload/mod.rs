//! What applications do in the world.

pub mod bulk;
pub mod pattern;
