//! The connections that a browser has to each domain where a connection carries one request at a time (HTTP/1.1).

use super::line::RequestTarget;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Connections to a domain at most: what Chrome and Firefox do.
pub(super) const MOST: u32 = 6;

/// No page has as many domains.
const DOMAINS: u32 = 1_000;

/// The number of the server at the far end of connection number `socket` to `domain`: each has one of its own, as each is a
/// flow of its own.
pub(super) const fn server(domain: u32, socket: u32) -> u32 {
    domain + socket * DOMAINS
}

/// The domain of server number `server`.
pub(super) const fn domain_of(server: u32) -> u32 {
    server % DOMAINS
}

/// The requests that wait for the connections of each domain, and the number of those that were begun.
#[derive(Debug, Default)]
pub(super) struct Sockets {
    domains: BTreeMap<u32, Domain>,
    /// Domains whose addresses are known.
    known: BTreeSet<u32>,
}

#[derive(Debug, Default)]
struct Domain {
    waiting: VecDeque<RequestTarget>,
    begun: u32,
}

impl Sockets {
    /// `wanted` waits for a connection to `domain`.
    pub(super) fn push(&mut self, domain: u32, wanted: RequestTarget) {
        self.domains.entry(domain).or_default().waiting.push_back(wanted);
    }

    /// Takes away the request that has waited longest for a connection to `domain`.
    pub(super) fn pop(&mut self, domain: u32) -> Option<RequestTarget> {
        self.domains.get_mut(&domain)?.waiting.pop_front()
    }

    /// The servers of the connections to `domain` that were begun.
    pub(super) fn begun(&self, domain: u32) -> impl Iterator<Item = u32> + use<> {
        let begun = self.domains.get(&domain).map_or(0, |known| known.begun);
        (0..begun).map(move |socket| server(domain, socket))
    }

    /// Begins a connection to `domain` if more waits than the `opening` ones will take: the server of it.
    pub(super) fn begin(&mut self, domain: u32, opening: usize) -> Option<u32> {
        let known = self.domains.get_mut(&domain)?;
        if opening >= known.waiting.len() || known.begun >= MOST {
            return None;
        }
        known.begun += 1;
        Some(server(domain, known.begun - 1))
    }

    /// The address of `domain` is known.
    pub(super) fn learn(&mut self, domain: u32) {
        self.known.insert(domain);
    }

    /// Returns true if `domain` is known.
    pub(super) fn knows(&self, domain: u32) -> bool {
        self.known.contains(&domain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::ObjectId;

    #[test]
    fn a_domain_gets_a_connection_for_each_request_that_waits_up_to_six() {
        let mut sockets = Sockets::default();
        for object in 0..9 {
            sockets.push(3, RequestTarget::Object(ObjectId(object), 400));
        }
        let mut opening = 0;
        while let Some(server) = sockets.begin(3, opening) {
            assert_eq!((domain_of(server), server / 1000), (3, opening as u32));
            opening += 1;
        }
        assert_eq!((opening, sockets.begun(3).count(), sockets.begun(4).count()), (6, 6, 0));
        assert_eq!(sockets.pop(3), Some(RequestTarget::Object(ObjectId(0), 400)));
        assert_eq!(sockets.pop(4), None);
    }

    #[test]
    fn no_connection_is_begun_for_what_one_that_opens_will_take() {
        let mut sockets = Sockets::default();
        sockets.push(0, RequestTarget::Address(0));
        assert_eq!((sockets.begin(0, 0), sockets.begin(0, 1)), (Some(0), None));
    }
}
