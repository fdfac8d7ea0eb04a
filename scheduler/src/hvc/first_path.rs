//! Choice of the first path of a connection: a narrow one brings the keys sooner, a wide one can be used sooner.

use super::cost::{self, nanos, transmission};
use super::tuning::FIRST_PATH_LEAD;
use crate::{Flights, PathSet, PathView};

/// The index of the path over which a connection begins.
///
/// A path that was not the first carries a server's data only after a further round trip over it (RFC 10069 §3.1): beside a
/// handshake over the scarce path the bulk path is late by that handshake and one of its own delays. Half of all
/// connections fetch what the scarce path carries as well, and servers think before they answer: the scarce path is taken if
/// the keys are there before the first flight would arrive on the bulk path, or little later. The queue of other connections on
/// it is part of that time.
pub(super) fn first(flights: &Flights, paths: &[PathView]) -> usize {
    let all: PathSet = (0..paths.len()).collect();
    let scarce = cost::scarce(paths, all);
    let quickest = |set: PathSet| set.iter().min_by_key(|&index| handshake(flights, &paths[index]));
    match (quickest(all.without(scarce)), quickest(scarce)) {
        (Some(bulk), Some(rival)) if is_worth_it(flights, &paths[rival], &paths[bulk]) => rival,
        (Some(bulk), _) => bulk,
        (None, Some(rival)) => rival,
        (None, None) => 0,
    }
}

fn is_worth_it(flights: &Flights, scarce: &PathView, bulk: &PathView) -> bool {
    let (lead, unit) = FIRST_PATH_LEAD;
    handshake(flights, scarce).saturating_mul(unit) < nanos(bulk.delay).saturating_mul(lead)
}

/// Returns the time until the client has keys: its first flight there and the server's back.
fn handshake(flights: &Flights, path: &PathView) -> u64 {
    let bytes = path.backlog.saturating_add(flights.sent).saturating_add(flights.received);
    2 * nanos(path.delay) + transmission(bytes, path.rate)
}
