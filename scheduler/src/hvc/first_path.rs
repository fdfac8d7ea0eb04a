//! Choice of the first path of a connection: a narrow one brings the keys sooner, a wide one can be used sooner.

use super::cost::{self, nanos, transmission};
use crate::{Flights, PathSet, PathView};

/// The index of the path over which a connection begins.
///
/// A path that was not the first carries a server's data only after a further round trip over it (RFC 10069 §3.1): beside a
/// handshake over the scarce path the bulk path is late by that handshake and one of its own delays. Half of all
/// connections fetch what the scarce path carries as well, so that the keys have to be there earlier by as much: the
/// scarce path is taken if the handshake is over there before its first flight would arrive on the bulk path. The queue
/// of other connections on it is part of that time.
pub(super) fn first(flights: &Flights, paths: &[PathView]) -> usize {
    let all: PathSet = (0..paths.len()).collect();
    let scarce = cost::scarce(paths, all);
    let quickest = |set: PathSet| set.iter().min_by_key(|&index| handshake(flights, &paths[index]));
    match (quickest(all.without(scarce)), quickest(scarce)) {
        (Some(bulk), Some(rival)) if handshake(flights, &paths[rival]) < nanos(paths[bulk].delay) => rival,
        (Some(bulk), _) => bulk,
        (None, Some(rival)) => rival,
        (None, None) => 0,
    }
}

/// Returns the time until the client has keys: its first flight there and the server's back.
fn handshake(flights: &Flights, path: &PathView) -> u64 {
    let bytes = path.backlog.saturating_add(flights.sent).saturating_add(flights.received);
    2 * nanos(path.delay) + transmission(bytes, path.rate)
}
