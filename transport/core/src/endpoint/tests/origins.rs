//! The part of the configuration in answers and choices of an endpoint: connection IDs, times, policies, sizes.

use super::network::{FirstWithRoom, Network, transport};
use crate::PathId;
use crate::connection::TransportConfig;
use crate::crypto::token::Fingerprint;
use crate::endpoint::replay::TokenRegister;
use crate::endpoint::{ConnectionIds, EndpointConfig, NetworkPath, RetryPolicy};
use crate::stream::Direction;
use crate::time::Instant;
use crate::wire::connection_id::ConnectionId;
use hvq_scheduler::{Flights, Hints, Item, PathView, Placement, Scheduler};
use rand::RngCore;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const RTT: Duration = Duration::from_millis(40);

/// Connection IDs of so many bytes that begin with 0xab.
#[derive(Debug)]
struct Marked(usize);

impl ConnectionIds for Marked {
    fn length(&self) -> usize {
        self.0
    }

    fn generate(&self, mut rng: &mut dyn RngCore) -> ConnectionId {
        let random = ConnectionId::random(&mut rng, self.0 - 1);
        ConnectionId::new(&[&[0xab], random.as_slice()].concat()).expect("not too long")
    }
}

#[test]
fn a_retry_gives_an_id_of_the_configuration_unless_that_is_too_short_to_be_unpredictable() {
    // The client's next Initial goes where that ID says. RFC 9000 §7.2: at least eight bytes.
    for (length, given, is_marked) in [(4, 8, false), (7, 8, false), (8, 8, true), (12, 12, true)] {
        let mut network = Network::new(transport(), transport());
        network.restart_server(EndpointConfig { ids: Some(Arc::new(Marked(length))), ..Default::default() });
        network.configure_server(|server| server.retry = RetryPolicy::Always);
        let tuple = network.link(RTT / 2);
        let sent = network.record(0);
        network.connect(tuple);
        network.run_for(RTT);
        let sent = sent.borrow();
        let retry = sent.iter().find(|bytes| bytes[0] & 0xf0 == 0xf0).expect("a Retry packet");
        let source = 6 + usize::from(retry[5]);
        let seen = (usize::from(retry[source]), retry[source + 1] == 0xab);
        assert_eq!(seen, (given, is_marked), "{length}");
    }
}

/// Notes the times that it is told, in seconds.
#[derive(Debug, Default)]
struct Times {
    issued: AtomicU64,
    noted: AtomicU64,
}

impl TokenRegister for Times {
    fn is_fresh(&self, _: &Fingerprint, issued: Instant) -> bool {
        self.issued.store(issued.as_nanos() / 1_000_000_000, Ordering::Relaxed);
        true
    }

    fn note(&self, _: Fingerprint, now: Instant) {
        self.noted.store(now.as_nanos() / 1_000_000_000, Ordering::Relaxed);
    }
}

#[test]
fn the_times_of_tokens_count_from_the_epoch_of_the_configuration() {
    let mut network = Network::new(transport(), transport());
    let (times, epoch) = (Arc::<Times>::default(), Duration::from_secs(5_000));
    let config = EndpointConfig { used_tokens: Some(times.clone()), epoch, ..Default::default() };
    network.restart_server(config);
    let tuple = network.link(RTT / 2);
    network.connect(tuple);
    network.run_for(Duration::from_secs(10));
    network.connect(tuple);
    network.run_for(Duration::from_secs(1));
    assert_eq!(network.server.stats().proven_addresses, 1, "by a token of the first connection");
    assert_eq!(times.issued.load(Ordering::Relaxed), 5_000);
    assert_eq!(times.noted.load(Ordering::Relaxed), 5_010);
}

/// Begins on the path of this index.
#[derive(Debug)]
struct Begins(usize);

impl Scheduler for Begins {
    fn name(&self) -> &'static str {
        "begins"
    }

    fn place(&mut self, item: &Item, paths: &[PathView]) -> Placement {
        FirstWithRoom.place(item, paths)
    }

    fn first(&mut self, _: &Flights, _: &[PathView]) -> usize {
        self.0
    }
}

#[test]
fn a_connection_begins_where_the_policy_says_once_something_is_known_of_all_ways() {
    for (choice, begun) in [(0, 0), (1, 1), (2, 2), (3, 0), (9, 0)] {
        let config = TransportConfig::new(Arc::new(move || Box::new(Begins(choice))));
        let mut network = Network::new(config, transport());
        let tuples = [(); 3].map(|()| network.link(RTT / 2));
        let known = Hints { delay: Some(RTT / 2), ..Hints::NONE };
        let first = |hints: [Hints; 3]| {
            let ways: Vec<_> = (0..3).map(|n| NetworkPath { tuple: tuples[n], hints: hints[n] }).collect();
            network.client.first_network_path(&network.client_config, &ways, network.now)
        };
        assert_eq!(first([known; 3]), begun);
        assert_eq!(first([known, Hints::NONE, known]), 0, "nothing tells of the delay of one");
        assert_eq!(network.client.first_network_path(&network.client_config, &[], network.now), 0);
    }
}

#[test]
fn a_size_that_the_system_refuses_is_not_used_again_by_any_connection_over_that_path() {
    let mut network = Network::new(transport(), transport());
    let (refused, other) = (network.link(RTT / 2), network.link(RTT / 2));
    let handles = [refused, refused, other].map(|tuple| network.connect(tuple));
    network.run_for(RTT * 4);
    for handle in handles {
        let connection = network.client(handle);
        let id = connection.open(Direction::Unidirectional).expect("the server permits a stream");
        assert_eq!(connection.write(id, &vec![7; 30_000]), Ok(30_000));
    }
    network.run_for(Duration::from_secs(5));
    let sizes = |network: &Network| {
        handles.map(|handle| {
            let path = network.client.get(handle).and_then(|connection| connection.path_stats(PathId::ZERO));
            path.expect("it is open").datagram_size
        })
    };
    let before = sizes(&network);
    assert!(before.iter().all(|size| *size > 1_300), "{before:?}: larger ones were found to pass");
    let now = network.now;
    network.client.on_refused(refused, 1_300, now);
    let after = sizes(&network);
    assert!(after[0] < 1_300 && after[1] < 1_300, "{after:?}");
    assert_eq!(after[2], before[2]);
}

#[test]
fn a_name_that_no_host_can_have_is_refused_and_leaves_no_connection() {
    let mut network = Network::new(transport(), transport());
    let tuple = network.link(RTT / 2);
    let [longest, longer] = [253, 254].map(|length| "a".repeat(length));
    for (name, is_valid) in [
        (longest.as_str(), true),
        ("server.test.", true),
        ("[::1]", true),
        (longer.as_str(), false),
        ("", false),
        (".", false),
        ("two words", false),
        ("ö.test", false),
    ] {
        let before = network.client.handles().count();
        let begun = network.client.connect(&network.client_config, tuple, name, network.now);
        assert_eq!(begun.is_ok(), is_valid, "{name}");
        assert_eq!(network.client.handles().count() - before, usize::from(is_valid));
    }
}
