//! HTTP/3 for clients that ask for tunnels, without `h3`.

mod extended_connect;

pub use extended_connect::{ExtendedConnect, ExtendedConnectError};
