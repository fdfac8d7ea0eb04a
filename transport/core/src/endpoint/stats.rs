//! What an endpoint ignored, and what it said without a connection.

use crate::error::Dropped;
use std::collections::HashMap;

/// Counters of an endpoint.
#[derive(Clone, Default, Debug)]
pub struct EndpointStats {
    /// Datagrams that no connection took, by reason.
    pub dropped: HashMap<Dropped, u64>,
    /// Version Negotiation packets sent.
    pub version_negotiations: u64,
    /// Retry packets sent.
    pub retries: u64,
    /// Connections refused without state for them.
    pub refusals: u64,
    /// Stateless resets sent.
    pub stateless_resets: u64,
    /// Connections of peers that began with a token that proves the address.
    pub proven_addresses: u64,
}
