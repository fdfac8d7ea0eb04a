//! Random interactions: operations drawn by seed on both ends of a connection over a random network, and what must hold
//! after each of them and at the end.
//!
//! A seed draws a world and operations, which are played until something goes wrong; if it does, operations are dropped
//! for as long as it still does. [`examine`] does all that. A seed always plays the same.

mod draw;
mod earlier;
mod fixture;
mod model;
mod play;
mod player;
mod shrink;

pub use play::{Played, Rarities};
pub use shrink::{Finding, examine};
