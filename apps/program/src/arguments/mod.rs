//! Arguments that several commands share, for the command line.

mod paths;
mod privacy;
mod transport;
mod trust;

pub use paths::PathArguments;
pub use transport::TransportArguments;
pub use trust::{ClientIdentityArguments, TrustArguments};
