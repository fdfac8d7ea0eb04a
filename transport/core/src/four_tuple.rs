//! The addresses of a network path.

use std::net::SocketAddr;

/// A local and a remote address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FourTuple {
    /// The address at which this endpoint receives.
    pub local: SocketAddr,
    /// The address at which the peer receives.
    pub remote: SocketAddr,
}

impl FourTuple {
    /// Returns true if `other` differs in ports at most: a NAT binding that changed, most likely, on the same way
    /// through the network (RFC 9000 §9.4).
    pub fn has_addresses_of(&self, other: &Self) -> bool {
        self.local.ip() == other.local.ip() && self.remote.ip() == other.remote.ip()
    }
}
