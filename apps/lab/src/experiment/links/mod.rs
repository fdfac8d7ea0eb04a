//! Ordinary access links, two or three of which one device has: channels without a guarantee and without a name.

mod device;
mod link;
mod variation;

pub use device::{Links, MOST_LINKS};
pub use link::Link;
