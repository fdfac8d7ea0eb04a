//! Tokens for later connections (RFC 9000 §8.1.3).

use super::network::{Network, transport};
use crate::connection::{Event, FourTuple};
use crate::crypto::token::Fingerprint;
use crate::endpoint::replay::{ReplayFilter, TokenRegister};
use crate::endpoint::{ConnectionHandle, EndpointConfig, RetryPolicy};
use crate::time::Instant;
use bytes::Bytes;
use std::net::SocketAddr;
use std::time::Duration;

const RTT: Duration = Duration::from_millis(40);

/// A server that has strangers prove their addresses.
fn network() -> (Network, FourTuple) {
    let mut network = Network::new(transport(), transport());
    network.configure_server(|server| server.retry = RetryPolicy::Always);
    let tuple = network.link(RTT / 2);
    (network, tuple)
}

fn tokens(network: &Network, of: ConnectionHandle) -> Vec<Bytes> {
    let token = |(handle, event): &(ConnectionHandle, Event)| match event {
        Event::NewToken(token) if *handle == of => Some(token.clone()),
        _ => None,
    };
    network.client_events.iter().filter_map(token).collect()
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-8.1.3
//= type=test
//# The client MUST include the token in all Initial packets it sends, unless a Retry replaces the token with
//# a newer one
//= https://www.rfc-editor.org/rfc/rfc9000#section-8.1.3
//= type=test
//# When a server receives an Initial packet with an address validation token, it MUST attempt to validate the
//# token, unless it has already completed address validation
#[test]
fn a_second_connection_needs_no_retry_nor_does_a_third() {
    let (mut network, tuple) = network();
    let first = network.connect(tuple);
    network.run_for(RTT * 4);
    assert_eq!(tokens(&network, first).len(), 1);
    for round in 1..=3 {
        let next = network.connect(tuple);
        network.run_for(RTT + Duration::from_millis(1));
        assert!(network.client_events.contains(&(next, Event::Connected)), "connection {round}");
        network.run_for(RTT * 3);
        assert_eq!(tokens(&network, next).len(), 1);
    }
    let stats = network.server.stats();
    // A ClientHello with a post-quantum key takes two datagrams, each of which is asked for a proof.
    assert_eq!((stats.retries, stats.proven_addresses), (1, 4));
}

#[test]
fn a_token_lifts_the_limit_of_three_times_what_came() {
    let (mut network, tuple) = network();
    network.connect(tuple);
    network.run_for(RTT * 4);
    network.connect(tuple);
    network.run_for(RTT / 2 + Duration::from_millis(1));
    let handle = network.server.handles().max().unwrap();
    let path = network.server.get(handle).unwrap().path_stats(crate::PathId::ZERO).unwrap();
    assert_eq!(path.tuple.remote, tuple.local);
    assert!(network.server.get(handle).unwrap().is_address_proven());
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-8.1.3
//= type=test
//# When a server receives an Initial packet with an address validation token, it MUST attempt to validate the
//# token, unless it has already completed address validation
//= https://www.rfc-editor.org/rfc/rfc9000#section-8.1.4
//= type=test
//# If the client IP address has changed, the server MUST adhere to the anti-amplification limit; see Section
//# 8
//= https://www.rfc-editor.org/rfc/rfc9000#section-8.1.4
//= type=test
//# To protect against such attacks, servers MUST ensure that replay of tokens is prevented or limited
#[test]
fn a_token_that_is_used_twice_or_from_elsewhere_counts_as_none() {
    // attacks.md B21.
    let (mut network, tuple) = network();
    let first = network.connect(tuple);
    network.run_for(RTT * 4);
    let token = tokens(&network, first).remove(0);
    network.client_config.token = Some(token.clone());
    let mut damaged = token.to_vec();
    *damaged.last_mut().unwrap() ^= 1;
    let cases =
        [token.clone(), token.clone(), token.slice(..20), Bytes::from(damaged), Bytes::from_static(&[1])];
    let mut retries = Vec::new();
    for token in cases {
        network.client_config.token = Some(token);
        let client = network.connect(tuple);
        let before = network.server.stats().retries;
        network.run_for(RTT * 3);
        assert!(network.client_events.contains(&(client, Event::Confirmed)));
        retries.push(network.server.stats().retries > before);
    }
    assert_eq!(retries, [false, true, true, true, true]);
    let other = FourTuple { local: SocketAddr::from(([10, 9, 9, 9], 1)), remote: tuple.remote };
    network.link(RTT / 2);
    network.links[1].client = other.local;
    network.links[1].server = other.remote;
    network.client_config.token = None;
    let elsewhere = network.connect(other);
    let before = network.server.stats().retries;
    network.run_for(RTT * 3);
    assert!(network.client_events.contains(&(elsewhere, Event::Confirmed)));
    assert!(network.server.stats().retries > before);
}

#[test]
fn the_token_of_a_multipath_connection_proves_all_its_addresses() {
    // RFC 10069 §3.1.3.
    let (mut network, tuple) = network();
    let second = FourTuple { local: SocketAddr::from(([10, 0, 0, 2], 1)), remote: tuple.remote };
    network.link(RTT / 2);
    network.links[1].client = second.local;
    network.links[1].server = second.remote;
    let client = network.connect(tuple);
    network.run_for(RTT * 4);
    let now = network.now;
    network.client(client).open_path(second, now).unwrap();
    network.run_for(RTT * 4);
    let given = tokens(&network, client);
    assert_eq!(given.len(), 2);
    // The first token proves the first address only, the last one both.
    let before = network.server.stats().retries;
    network.client_config.token = Some(given[1].clone());
    let again = network.connect(second);
    network.run_for(RTT + Duration::from_millis(1));
    assert!(network.client_events.contains(&(again, Event::Connected)));
    assert_eq!(network.server.stats().retries, before);
    network.client_config.token = Some(given[0].clone());
    network.connect(second);
    network.run_for(RTT * 3);
    assert!(network.server.stats().retries > before);
}

#[test]
fn a_token_outlives_a_restart_of_a_server_that_keeps_its_key() {
    let (mut network, tuple) = network();
    let key = crate::crypto::token::TokenKey::new(&[7; 32]);
    let config = |epoch| EndpointConfig {
        token_key: Some(key.clone()),
        epoch: Duration::from_secs(epoch),
        ..EndpointConfig::default()
    };
    network.restart_server(config(1000));
    network.connect(tuple);
    network.run_for(RTT * 4);
    network.restart_server(config(2000));
    let again = network.connect(tuple);
    network.run_for(RTT + Duration::from_millis(1));
    assert!(network.client_events.contains(&(again, Event::Connected)));
    assert_eq!(network.server.stats().retries, 0);
}

/// Remembers used tokens for several endpoints.
#[derive(Debug, Default)]
#[expect(clippy::disallowed_types, reason = "the lock is that of the servers, which are out of the core")]
struct Register(std::sync::Mutex<ReplayFilter>);

impl TokenRegister for Register {
    fn is_fresh(&self, token: &Fingerprint, issued: Instant) -> bool {
        self.0.lock().unwrap().is_fresh(token, issued)
    }

    fn note(&self, token: Fingerprint, now: Instant) {
        self.0.lock().unwrap().note(token, now);
    }
}

#[test]
fn a_token_proves_an_address_once_to_all_servers_that_remember_together() {
    // RFC 9000 §8.1.4; attacks.md B21.
    for (register, proofs) in [(None, 1), (Some(std::sync::Arc::<Register>::default()), 0)] {
        let (mut network, tuple) = network();
        let key = crate::crypto::token::TokenKey::new(&[7; 32]);
        let config = || EndpointConfig {
            token_key: Some(key.clone()),
            used_tokens: register.clone().map(|register| register as _),
            ..EndpointConfig::default()
        };
        network.restart_server(config());
        let first = network.connect(tuple);
        network.run_for(RTT * 4);
        let token = tokens(&network, first).pop().unwrap();
        network.client_config.token = Some(token.clone());
        network.connect(tuple);
        network.run_for(RTT * 4);
        assert_eq!(network.server.stats().proven_addresses, 2, "after a Retry, and by the token");
        // Another server with the same key is shown the same token.
        network.restart_server(config());
        network.client_config.token = Some(token);
        network.connect(tuple);
        network.run_for(RTT / 2 + Duration::from_millis(1));
        assert_eq!(network.server.stats().proven_addresses, proofs);
    }
}
