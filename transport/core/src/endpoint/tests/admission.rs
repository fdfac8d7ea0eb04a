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
