//! Tests of the application's decisions about clients (attacks.md B16).

use super::network::{Network, Recording, transport};
use crate::connection::{ClientAddress, Event, FourTuple};
use crate::endpoint::{Admission, Decision};
use crate::error::{ConnectionError, Dropped, ErrorCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const RTT: Duration = Duration::from_millis(40);

/// A network whose server decides with the decisions in turn, a client, and what is sent.
fn deciding(decisions: &'static [Decision]) -> (Network, FourTuple, Recording) {
    let mut network = Network::new(transport(), transport());
    let turn = AtomicUsize::new(0);
    let decide = move || decisions[turn.fetch_add(1, Ordering::Relaxed) % decisions.len()];
    network.configure_server(|server| server.admission = Some(Admission::new(move |_| decide())));
    let tuple = network.link(RTT / 2);
    let recording = network.record(0);
    (network, tuple, recording)
}

fn ended_with(network: &Network, wanted: impl Fn(&ConnectionError) -> bool) -> bool {
    let ended = |event: &Event| matches!(event, Event::Closed(error) if wanted(error));
    network.client_events.iter().any(|(_, event)| ended(event))
}

#[test]
fn an_accepted_client_connects() {
    let (mut network, tuple, _) = deciding(&[Decision::Accept]);
    let client = network.connect(tuple);
    network.run_for(RTT * 2);
    assert!(network.client_events.contains(&(client, Event::Confirmed)));
}

#[test]
fn a_client_that_followed_a_retry_is_not_sent_another() {
    let (mut network, tuple, _) = deciding(&[Decision::Retry]);
    let client = network.connect(tuple);
    network.run_for(RTT * 3);
    assert!(network.client_events.contains(&(client, Event::Confirmed)));
    assert_eq!(network.server.stats().retries, 1);
}

#[test]
fn a_refused_client_is_told_and_leaves_no_state() {
    let (mut network, tuple, _) = deciding(&[Decision::Refuse]);
    network.connect(tuple);
    network.run_for(RTT + Duration::from_millis(1));
    let refused = |error: &ConnectionError| matches!(error, ConnectionError::PeerTransport(error) if error.code == ErrorCode::CONNECTION_REFUSED);
    assert!(ended_with(&network, refused), "{:?}", network.client_events);
    assert_eq!(network.server.handles().count(), 0);
    assert!(network.server.stats().refusals > 0);
}

#[test]
fn an_ignored_client_hears_nothing() {
    let (mut network, tuple, recording) = deciding(&[Decision::Ignore]);
    network.connect(tuple);
    network.run_for(Duration::from_secs(11));
    assert!(ended_with(&network, |error| *error == ConnectionError::HandshakeTimeout));
    assert!(recording.borrow().iter().all(|bytes| bytes.len() == 1200), "only the client spoke");
    assert_eq!(network.server.handles().count(), 0);
    assert!(network.server.stats().dropped[&Dropped::Unwanted] > 2);
}

#[test]
fn a_decision_that_changes_with_every_copy_of_an_initial_starts_one_connection_at_most() {
    // attacks.md B16: copies arrive before, between and after the decisions.
    for decisions in [
        &[Decision::Retry, Decision::Accept][..],
        &[Decision::Refuse, Decision::Accept],
        &[Decision::Ignore, Decision::Retry, Decision::Accept],
        &[Decision::Accept, Decision::Refuse, Decision::Ignore, Decision::Retry],
    ] {
        let (mut network, tuple, recording) = deciding(decisions);
        network.connect(tuple);
        for _ in 0..20 {
            network.run_for(RTT / 5);
            let seen = recording.borrow().clone();
            for bytes in seen.iter().filter(|bytes| bytes.len() == 1200).take(4) {
                network.forge(tuple.local, bytes);
            }
        }
        assert!(network.server.handles().count() <= 2, "{decisions:?}");
        network.run_for(Duration::from_secs(1));
    }
}

#[test]
fn the_application_sees_where_a_client_is_and_what_it_proved() {
    let mut network = Network::new(transport(), transport());
    let tuple = network.link(RTT / 2);
    let (unproven, proven) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counts = (Arc::clone(&unproven), Arc::clone(&proven));
    let admission = Admission::new(move |candidate| {
        assert_eq!((candidate.remote, candidate.local), (tuple.local, tuple.remote));
        assert_eq!((candidate.connections, candidate.handshaking), (0, 0));
        match candidate.address {
            ClientAddress::Unproven => {
                counts.0.fetch_add(1, Ordering::Relaxed);
                assert_eq!(candidate.proposal, Decision::Accept);
                Decision::Retry
            }
            ClientAddress::Proven => {
                counts.1.fetch_add(1, Ordering::Relaxed);
                candidate.proposal
            }
        }
    });
    network.configure_server(|server| server.admission = Some(admission));
    let client = network.connect(tuple);
    network.run_for(RTT * 3);
    assert!(network.client_events.contains(&(client, Event::Confirmed)));
    assert_eq!((unproven.load(Ordering::Relaxed), proven.load(Ordering::Relaxed)), (2, 1));
}

/// A network whose server defers its decisions, a client that asks, and its number once it arrived.
fn deferring() -> (Network, FourTuple, u64) {
    let mut network = Network::new(transport(), transport());
    network.configure_server(|server| server.admission = Some(Admission::deferred()));
    network.server.config.epoch = Duration::from_secs(1_000_000);
    let tuple = network.link(RTT / 2);
    network.connect(tuple);
    network.run_for(RTT / 2 + Duration::from_millis(1));
    let candidate = network.server.next_deferred().expect("a client asks");
    assert_eq!((candidate.remote, candidate.local), (tuple.local, tuple.remote));
    assert_eq!(network.server.next_deferred().map(|other| other.number), None, "told once");
    (network, tuple, candidate.number)
}

#[test]
fn a_deferred_client_connects_in_the_round_trip_that_follows_the_decision() {
    let (mut network, _, number) = deferring();
    network.run_for(RTT * 4);
    assert_eq!(
        network.server.next_deferred().map(|other| other.number),
        None,
        "repetitions are no other client"
    );
    assert_eq!(network.server.handles().count(), 0);
    let now = network.now;
    let handle = network.server.accept_deferred(number, None, now).expect("it waits");
    network.run_for(RTT * 3 / 2 + Duration::from_millis(2));
    assert!(network.server_events.contains(&(handle, Event::Connected)), "{:?}", network.server_events);
    assert_eq!(network.server.accept_deferred(number, None, now), Err(Dropped::Unwanted), "once");
}

#[test]
fn a_deferred_client_gets_the_configuration_that_the_decision_gives() {
    let (mut network, _, number) = deferring();
    let mut config = network.server_config.clone();
    config.transport = Arc::new(crate::connection::TransportConfig { max_udp_payload: 1_333, ..transport() });
    let now = network.now;
    network.server.accept_deferred(number, Some(config), now).expect("it waits");
    network.run_for(RTT * 2);
    let (client, _) = network.client_events.first().cloned().expect("connected");
    let peer = network.client(client).peer_parameters().map(|peer| peer.max_udp_payload_size);
    assert_eq!(peer, Some(1_333));
}

#[test]
fn a_deferred_client_is_asked_for_a_proof_once_and_refused_when_the_application_says_so() {
    let (mut network, _, number) = deferring();
    let now = network.now;
    assert!(network.server.turn_away(number, Decision::Retry, now));
    network.run_for(RTT + Duration::from_millis(1));
    let again = network.server.next_deferred().expect("it came back");
    assert_eq!(again.address, ClientAddress::Proven);
    let now = network.now;
    assert!(!network.server.turn_away(again.number, Decision::Retry, now), "it follows no second one");
    assert!(network.server.turn_away(again.number, Decision::Refuse, now));
    network.run_for(RTT);
    let refused = |error: &ConnectionError| matches!(error, ConnectionError::PeerTransport(error) if error.code == ErrorCode::CONNECTION_REFUSED);
    assert!(ended_with(&network, refused), "{:?}", network.client_events);
}

#[test]
fn a_proof_that_is_too_old_when_the_application_decides_is_none() {
    let proven = || {
        let (mut network, _, number) = deferring();
        let now = network.now;
        assert!(network.server.turn_away(number, Decision::Retry, now));
        network.run_for(RTT + Duration::from_millis(1));
        let number = network.server.next_deferred().expect("it came back").number;
        (network, number, now + Duration::from_secs(3_600))
    };
    let (mut network, number, late) = proven();
    assert_eq!(network.server.accept_deferred(number, None, late), Err(Dropped::InvalidToken));
    let (mut network, number, _) = proven();
    let now = network.now;
    assert!(network.server.accept_deferred(number, None, now).is_ok(), "it is in time");
    let (mut network, number, late) = proven();
    assert!(network.server.turn_away(number, Decision::Retry, late), "it is asked for another");
}

#[test]
fn clients_that_wait_are_bounded_and_those_who_come_late_have_to_prove_their_addresses() {
    let (mut network, _, first) = deferring();
    for _ in 0..400 {
        let tuple = network.link(RTT / 2);
        network.connect(tuple);
    }
    network.run_for(RTT * 3);
    let mut unproven = 1;
    let mut all = 1;
    while let Some(candidate) = network.server.next_deferred() {
        unproven += usize::from(candidate.address == ClientAddress::Unproven);
        all += 1;
    }
    assert_eq!((unproven, all), (128, 256));
    network.run_for(Duration::from_secs(11));
    let tuple = network.link(RTT / 2);
    network.connect(tuple);
    network.run_for(RTT);
    assert_eq!(
        network.server.accept_deferred(first, None, network.now),
        Err(Dropped::Unwanted),
        "it gave way"
    );
    assert!(network.server.next_deferred().is_some());
}

#[test]
fn keying_material_depends_on_label_and_context() {
    let mut network = Network::new(transport(), transport());
    network.keep_tls();
    let tuple = network.link(RTT / 2);
    let client = network.connect(tuple);
    network.run_for(RTT * 3);
    let mut exported = |label: &[u8], context: &[u8]| {
        let mut out = [0; 32];
        network.client(client).export_keying_material(&mut out, label, context).expect("TLS is kept");
        out
    };
    let (plain, other) = (exported(b"label", b"a"), exported(b"label", b"b"));
    assert_ne!(plain, other);
    assert_ne!(plain, exported(b"other", b"a"));
}
