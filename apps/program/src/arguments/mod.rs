//! Arguments that several commands share, for the command line.

#[cfg(feature = "dns")]
mod names;
mod paths;
mod privacy;
mod results;
mod transport;
mod trust;

#[cfg(feature = "dns")]
pub use names::NameArguments;
pub use paths::PathArguments;
pub use results::{FigureArguments, ResultArguments};
pub use transport::TransportArguments;
pub use trust::{ClientIdentityArguments, TrustArguments};
