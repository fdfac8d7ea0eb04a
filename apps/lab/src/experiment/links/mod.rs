//! Ordinary access links, two of which one device has: channels without a guarantee and without a name.

mod device;
mod link;
mod variation;

pub use device::Links;
pub use link::Link;
