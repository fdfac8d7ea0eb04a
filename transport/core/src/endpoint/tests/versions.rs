//! Tests of the version that a connection speaks (RFC 9368, RFC 9369).

use super::network::{Network, transport};
use crate::connection::{Datagram, Ecn, Event, FourTuple, TransportConfig};
use crate::endpoint::{ConnectionHandle, EndpointConfig, RetryPolicy};
use crate::error::{ConnectionError, ErrorCode};
use crate::handshake::negotiation::{VersionChoice, Versions};
use crate::wire::header::put_version_negotiation;
use crate::wire::version::Version;
use bytes::BytesMut;
use std::time::Duration;

const RTT: Duration = Duration::from_millis(40);
const V1: Version = Version::V1;
const V2: Version = Version::V2;

fn speaking(list: &[Version], choice: VersionChoice) -> TransportConfig {
    TransportConfig { versions: Versions::new(list, choice).unwrap(), ..transport() }
}

/// A client and a server that speak these versions.
fn network(client: &[Version], server: &[Version], choice: VersionChoice) -> (Network, FourTuple) {
    let client = speaking(client, VersionChoice::AsOffered);
    let mut network = Network::new(client, speaking(server, choice));
    let tuple = network.link(RTT / 2);
    (network, tuple)
}

fn versions_in_use(network: &mut Network, client: ConnectionHandle) -> (Version, Version) {
    (network.client(client).version(), network.server().version())
}

fn closed_with(network: &Network, wanted: impl Fn(&ConnectionError) -> bool) -> bool {
    let closed = |event: &Event| matches!(event, Event::Closed(error) if wanted(error));
    network.client_events.iter().any(|(_, event)| closed(event))
}

#[test]
fn a_server_without_preference_stays_with_what_the_client_began_with() {
    for list in [[V1, V2], [V2, V1]] {
        let (mut network, tuple) = network(&list, &[V1, V2], VersionChoice::AsOffered);
        let client = network.connect(tuple);
        network.run_for(RTT + Duration::from_millis(1));
        assert!(network.client_events.contains(&(client, Event::Connected)), "{list:?}");
        assert_eq!(versions_in_use(&mut network, client), (list[0], list[0]));
        network.run_for(RTT);
        assert!(network.client_events.contains(&(client, Event::Confirmed)));
    }
}

#[test]
fn a_server_moves_a_connection_to_the_version_it_prefers_at_no_cost_in_time() {
    for (client_list, server_list) in [([V1, V2], [V2, V1]), ([V2, V1], [V1, V2])] {
        let (mut network, tuple) = network(&client_list, &server_list, VersionChoice::OwnPreference);
        let client = network.connect(tuple);
        network.run_for(RTT + Duration::from_millis(1));
        assert!(network.client_events.contains(&(client, Event::Connected)), "{:?}", network.client_events);
        assert_eq!(versions_in_use(&mut network, client), (server_list[0], server_list[0]));
        network.run_for(RTT * 2);
        assert!(network.client_events.contains(&(client, Event::Confirmed)));
        assert_eq!(network.server.stats().version_negotiations, 0);
    }
}

#[test]
fn a_server_moves_no_client_to_a_version_that_it_does_not_speak() {
    let (mut network, tuple) = network(&[V1], &[V2, V1], VersionChoice::OwnPreference);
    let client = network.connect(tuple);
    network.run_for(RTT * 2);
    assert_eq!(versions_in_use(&mut network, client), (V1, V1));
}

#[test]
fn a_retry_comes_in_the_original_version_and_the_move_after_it() {
    // RFC 9369 §4.1.
    let (mut network, tuple) = network(&[V1, V2], &[V2, V1], VersionChoice::OwnPreference);
    network.configure_server(|server| server.retry = RetryPolicy::Always);
    let sent = network.record(0);
    let client = network.connect(tuple);
    network.run_for(RTT * 3);
    assert!(network.client_events.contains(&(client, Event::Confirmed)));
    assert_eq!(versions_in_use(&mut network, client), (V2, V2));
    let retries = sent.borrow().iter().filter(|bytes| bytes[0] & 0xf0 == 0xf0 && bytes[4] == 1).count();
    assert_eq!(retries as u64, network.server.stats().retries);
}

//= https://www.rfc-editor.org/rfc/rfc9002#section-6.2.1
//= type=test
//# When ack-eliciting packets in multiple packet number spaces are in flight, the timer MUST be set to the
//# earlier value of the Initial and Handshake packet number spaces.
#[test]
fn the_move_survives_the_loss_of_each_of_the_first_datagrams() {
    for lost in 0..10 {
        let (mut network, tuple) = network(&[V1, V2], &[V2, V1], VersionChoice::OwnPreference);
        let mut number = 0;
        network.links[0].drop = Box::new(move |_, _| {
            number += 1;
            number == lost + 1
        });
        let client = network.connect(tuple);
        network.run_for(Duration::from_secs(5));
        assert!(network.client_events.contains(&(client, Event::Confirmed)), "datagram {lost}");
        assert_eq!(versions_in_use(&mut network, client), (V2, V2), "datagram {lost}");
    }
}

#[test]
fn a_client_begins_again_in_a_version_that_the_server_speaks() {
    // RFC 9368 §2.1.
    for (client_list, server_list) in [([V2, V1], [V1]), ([V1, V2], [V2])] {
        let (mut network, tuple) = network(&client_list, &server_list, VersionChoice::AsOffered);
        let client = network.connect(tuple);
        network.run_for(RTT * 2 + Duration::from_millis(1));
        assert!(network.client_events.contains(&(client, Event::Connected)), "{:?}", network.client_events);
        assert_eq!(versions_in_use(&mut network, client), (server_list[0], server_list[0]));
        assert!(network.server.stats().version_negotiations > 0);
    }
}

#[test]
fn ends_without_a_version_in_common_give_up() {
    let (mut network, tuple) = network(&[V1], &[V2], VersionChoice::AsOffered);
    network.connect(tuple);
    network.run_for(RTT + Duration::from_millis(1));
    assert!(closed_with(&network, |error| *error == ConnectionError::VersionMismatch));
}

#[test]
fn forged_version_negotiation_cannot_hide_a_better_version() {
    // RFC 9368 §4, attacks.md B17.
    let (mut network, tuple) = network(&[V2, V1], &[V2, V1], VersionChoice::AsOffered);
    let sent = network.record(0);
    network.connect(tuple);
    network.run_for(Duration::from_millis(1));
    let initial = sent.borrow()[0].clone();
    let destination = usize::from(initial[5]);
    let (destination, rest) = initial[6..].split_at(destination);
    let source = &rest[1..=usize::from(rest[0])];
    let mut answer = Vec::new();
    put_version_negotiation(&mut answer, source, destination, &[V1], 0);
    let bytes = BytesMut::from(&answer[..]);
    let forged = Datagram { local: tuple.local, remote: tuple.remote, ecn: Ecn::NotEct, bytes };
    network.client.handle(forged, network.now);
    network.run_for(RTT * 3);
    let code = ErrorCode::VERSION_NEGOTIATION_ERROR;
    let downgraded =
        |error: &ConnectionError| matches!(error, ConnectionError::Transport(e) if e.code == code);
    assert!(closed_with(&network, downgraded), "{:?}", network.client_events);
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-6.2
//= type=test
//# A client MUST discard any Version Negotiation packet if it has received and successfully processed any
//# other packet, including an earlier Version Negotiation packet
#[test]
fn version_negotiation_for_another_connection_id_is_ignored() {
    let (mut network, tuple) = network(&[V2, V1], &[V2, V1], VersionChoice::AsOffered);
    let sent = network.record(0);
    let client = network.connect(tuple);
    network.run_for(Duration::from_millis(1));
    let initial = sent.borrow()[0].clone();
    let rest = &initial[6 + usize::from(initial[5])..];
    let source = &rest[1..=usize::from(rest[0])];
    let mut answer = Vec::new();
    put_version_negotiation(&mut answer, source, &[7; 12], &[V1], 0);
    let bytes = BytesMut::from(&answer[..]);
    let forged = Datagram { local: tuple.local, remote: tuple.remote, ecn: Ecn::NotEct, bytes };
    network.client.handle(forged, network.now);
    network.run_for(RTT * 2);
    assert_eq!(versions_in_use(&mut network, client), (V2, V2));
}

#[test]
fn version_negotiation_is_rationed() {
    // attacks.md A5.
    let (mut network, tuple) = network(&[V1], &[V1], VersionChoice::AsOffered);
    network.restart_server(EndpointConfig { negotiations_per_second: 10, ..EndpointConfig::default() });
    let mut initial = vec![0xc0, 0x1a, 0x2a, 0x3a, 0x4a, 8];
    initial.extend([1; 8]);
    initial.resize(1200, 0);
    for _ in 0..1000 {
        network.forge(tuple.local, &initial);
    }
    assert_eq!(network.server.stats().version_negotiations, 10);
}

#[test]
fn a_token_is_only_presented_in_the_version_that_it_came_in() {
    // RFC 9369 §5: the token came over version 2, and the next connection begins with version 1.
    let (mut network, tuple) = network(&[V1, V2], &[V2, V1], VersionChoice::OwnPreference);
    network.configure_server(|server| server.retry = RetryPolicy::Always);
    for _ in 0..2 {
        network.connect(tuple);
        network.run_for(RTT * 4);
    }
    assert_eq!(network.server.stats().retries, 2);
}
