//! Leases of addresses: those of the tunnels, and those that rest while packets for their former holders are still
//! under way.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

/// The numbers of tunnels within their networks.
pub(super) const HOSTS: RangeInclusive<u8> = 2..=254;

/// The limits of giving out addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Allotment {
    /// Tunnels that whoever shows one token may have, those whose addresses rest among them.
    pub per_client: usize,
    /// The time that an address which was freed is given to nobody else.
    pub rest: Duration,
}

impl Default for Allotment {
    /// 16 for each client, and a minute of rest.
    fn default() -> Self {
        Self { per_client: 16, rest: Duration::from_secs(60) }
    }
}

/// The reason for which nobody gets an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Refused {
    /// All are given out or rest.
    Full,
    /// The client has as many as it may.
    Enough,
}

/// The numbers of tunnels, by what they are used for. `T` is a tunnel.
#[derive(Debug)]
pub(super) struct Leases<T> {
    allotment: Allotment,
    hosts: BTreeMap<u8, Lease<T>>,
}

#[derive(Debug)]
struct Lease<T> {
    client: Box<str>,
    usage: Usage<T>,
}

#[derive(Debug)]
enum Usage<T> {
    /// A tunnel has it.
    Held(T),
    /// Nobody has had it since then.
    Resting(Instant),
}

impl<T> Leases<T> {
    /// None yet.
    pub(super) fn new(allotment: Allotment) -> Self {
        Self { allotment, hosts: BTreeMap::new() }
    }

    /// A number for `tunnel`, which belongs to `client`: one of the client's that rests, or one that nobody had for long.
    pub(super) fn take(&mut self, client: &str, tunnel: T, now: Instant) -> Result<u8, Refused> {
        let rest = self.allotment.rest;
        self.hosts.retain(|_, lease| match lease.usage {
            Usage::Held(_) => true,
            Usage::Resting(since) => now.saturating_duration_since(since) < rest,
        });
        let own = || self.hosts.iter().filter(|(_, lease)| &*lease.client == client);
        // What is on its way to that number is for the same client.
        let resting =
            own().find(|(_, lease)| matches!(lease.usage, Usage::Resting(_))).map(|(host, _)| *host);
        let host = match resting {
            Some(host) => host,
            None if own().count() >= self.allotment.per_client => return Err(Refused::Enough),
            None => HOSTS.into_iter().find(|host| !self.hosts.contains_key(host)).ok_or(Refused::Full)?,
        };
        self.hosts.insert(host, Lease { client: client.into(), usage: Usage::Held(tunnel) });
        Ok(host)
    }

    /// The tunnel of `host` has ended.
    pub(super) fn free(&mut self, host: u8, now: Instant) {
        if let Some(lease) = self.hosts.get_mut(&host) {
            lease.usage = Usage::Resting(now);
        }
    }

    /// The tunnel that has `host`.
    pub(super) fn get(&self, host: u8) -> Option<&T> {
        match &self.hosts.get(&host)?.usage {
            Usage::Held(tunnel) => Some(tunnel),
            Usage::Resting(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leases(per_client: usize) -> (Leases<u32>, Instant) {
        (Leases::new(Allotment { per_client, rest: Duration::from_secs(60) }), Instant::now())
    }

    #[test]
    fn a_client_has_so_many_addresses_and_others_have_theirs() {
        // K5, K20.
        let (mut leases, now) = leases(3);
        let hosts: Vec<_> = (0..3).map(|tunnel| leases.take("ann", tunnel, now).unwrap()).collect();
        assert_eq!(hosts, [2, 3, 4]);
        assert_eq!(leases.take("ann", 9, now), Err(Refused::Enough));
        assert_eq!(leases.take("bob", 9, now), Ok(5));
        assert_eq!((leases.get(3), leases.get(5), leases.get(6)), (Some(&1), Some(&9), None));
    }

    #[test]
    fn an_address_that_was_freed_rests_before_somebody_else_gets_it() {
        let (mut leases, now) = leases(200);
        let second = |seconds| now + Duration::from_secs(seconds);
        assert_eq!(leases.take("ann", 1, now), Ok(2));
        leases.free(2, second(10));
        assert_eq!(leases.get(2), None, "nothing is sent to who had it");
        assert_eq!(leases.take("bob", 2, second(11)), Ok(3));
        // Its own it gets back at once: what is under way is for it.
        assert_eq!(leases.take("ann", 3, second(12)), Ok(2));
        leases.free(2, second(20));
        assert_eq!(leases.take("bob", 4, second(79)), Ok(4));
        assert_eq!(leases.take("bob", 5, second(80)), Ok(2));
    }

    #[test]
    fn whoever_comes_and_goes_uses_no_more_addresses_than_its_own() {
        let (mut leases, now) = leases(2);
        for round in 0..1_000 {
            let at = now + Duration::from_millis(round);
            let host = leases.take("ann", 0, at).unwrap();
            leases.free(host, at);
        }
        assert_eq!(leases.hosts.len(), 1);
        for client in 0..300 {
            let taken = leases.take(&format!("client {client}"), 0, now + Duration::from_secs(2));
            assert_eq!(taken.is_ok(), client < 252, "{client}");
        }
        assert_eq!(leases.take("one more", 0, now + Duration::from_secs(3)), Err(Refused::Full));
    }
}
