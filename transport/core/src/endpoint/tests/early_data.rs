//! Resumed sessions, and data that goes with the first flight of a client (RFC 9001 §4.6).

use super::basics::read_all;
use super::network::{Network, transport, verdict};
use crate::connection::{Connection, EarlyDataState, Event, FourTuple};
use crate::crypto::session::{EarlyData, SessionStore, SessionTicket, Ticket};
use crate::endpoint::ConnectionHandle;
use crate::error::ErrorCode;
use crate::stream::{Direction, StreamId};
use std::sync::Arc;
use std::time::Duration;

const RTT: Duration = Duration::from_millis(40);
/// The time that a datagram takes, and a little.
const ONE_WAY: Duration = Duration::from_millis(21);

/// Tickets of the one server that there is.
#[expect(clippy::disallowed_types, reason = "the lock is that of an application, which is out of the core")]
#[derive(Debug, Default)]
pub(super) struct Tickets(std::sync::Mutex<Vec<SessionTicket>>);

impl Tickets {
    /// Returns the number of tickets.
    pub(super) fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

impl SessionStore for Tickets {
    fn put(&self, server_name: &str, ticket: SessionTicket) {
        assert_eq!(server_name, "server.test");
        self.0.lock().unwrap().push(ticket);
    }

    fn take(&self, server_name: &str, protocols: &[Vec<u8>]) -> Option<SessionTicket> {
        assert_eq!((server_name, protocols), ("server.test", &[b"hvq".to_vec(), b"other".to_vec()][..]));
        self.0.lock().unwrap().pop()
    }
}

/// A server that accepts 0-RTT, and a client that was connected to it and has a ticket.
fn acquainted() -> (Network, FourTuple) {
    let (network, tuple, _) = acquainted_with(EarlyData::On);
    (network, tuple)
}

/// The same with a client that wants 0-RTT, or does not, and its tickets.
fn acquainted_with(early_data: EarlyData) -> (Network, FourTuple, Arc<Tickets>) {
    let mut network = Network::new(transport(), transport());
    network.accept_early_data(1, "same", "hvq");
    let tickets = Arc::new(Tickets::default());
    network.keep_sessions(tickets.clone(), early_data);
    let tuple = network.link(RTT / 2);
    let first = network.connect(tuple);
    network.run_for(RTT * 4);
    assert!(!network.client(first).is_resumed() && !network.server().is_resumed());
    assert_eq!(tickets.len(), 1);
    let now = network.now;
    network.client(first).close(0, b"", now);
    network.run_for(Duration::from_secs(5));
    assert_eq!(network.server.handles().count(), 0);
    (network, tuple, tickets)
}

/// Opens a stream, and writes `data` on it.
fn say(network: &mut Network, client: ConnectionHandle, data: &[u8]) -> StreamId {
    let client = network.client(client);
    let id = client.open(Direction::Unidirectional).expect("permitted");
    assert_eq!(client.write(id, data), Ok(data.len()));
    id
}

fn heard_early(network: &Network) -> bool {
    network.server_events.iter().any(|(_, event)| *event == Event::EarlyData)
}

#[test]
fn data_of_the_first_flight_is_read_at_once_and_known_as_early() {
    let (mut network, tuple) = acquainted();
    let client = network.connect(tuple);
    assert!(network.client(client).is_early_data());
    assert_eq!(network.client(client).early_data(), EarlyDataState::Offered);
    let early = say(&mut network, client, b"early");
    network.run_for(ONE_WAY);
    assert!(heard_early(&network) && network.server().is_early_data());
    assert_eq!(network.server().early_data(), EarlyDataState::Accepted);
    assert_eq!(read_all(&mut network, early), b"early");
    assert!(network.server().is_early_stream(early));
    network.run_for(RTT * 2);
    let is_settled = |connection: &Connection| {
        let is_accepted = connection.early_data() == EarlyDataState::Accepted;
        is_accepted && connection.is_resumed() && !connection.is_early_data()
    };
    assert!(is_settled(network.client(client)) && is_settled(network.server()));
    let late = say(&mut network, client, b"late");
    network.run_for(ONE_WAY);
    assert_eq!(read_all(&mut network, late), b"late");
    assert!(!network.server().is_early_stream(late));
}

//= https://www.rfc-editor.org/rfc/rfc9001#section-4.6.2
//= type=test
//# When rejecting 0-RTT, a server MUST NOT process any 0-RTT packets, even if it could
#[test]
fn data_of_a_first_flight_that_is_rejected_arrives_once_after_the_handshake() {
    // Its tickets have another key now, or it is configured otherwise.
    for (key, context, resumes) in [(2, "same", false), (1, "other", true)] {
        let (mut network, tuple) = acquainted();
        network.accept_early_data(key, context, "hvq");
        let client = network.connect(tuple);
        let id = say(&mut network, client, b"early");
        network.run_for(ONE_WAY);
        assert!(!heard_early(&network) && read_all(&mut network, id).is_empty());
        network.run_for(RTT * 3);
        assert_eq!(network.client(client).early_data(), EarlyDataState::Rejected);
        assert_eq!((network.client(client).is_resumed(), network.server().is_resumed()), (resumes, resumes));
        assert_eq!(read_all(&mut network, id), b"early");
        assert!(!network.server().is_early_stream(id));
        network.run_for(RTT * 3);
        assert_eq!(read_all(&mut network, id), b"", "it came once");
    }
}

#[test]
fn early_data_of_a_protocol_that_the_server_speaks_no_more_is_not_sent_again() {
    // RFC 9001 §4.6.2: the application would have to start anew.
    let (mut network, tuple) = acquainted();
    network.accept_early_data(1, "same", "other");
    let client = network.connect(tuple);
    say(&mut network, client, b"early");
    network.run_for(RTT * 3);
    assert_eq!(verdict(&network.client_events), Some(ErrorCode::crypto(120)));
}

//= https://www.rfc-editor.org/rfc/rfc9001#section-5.6
//= type=test
//# A client therefore MUST NOT use 0-RTT for application data unless specifically requested by the
//# application that is in use.
#[test]
fn without_the_application_s_wish_or_a_ticket_that_can_be_read_there_is_no_early_data() {
    for (wish, spoils) in [(EarlyData::Off, false), (EarlyData::On, true)] {
        let (mut network, tuple, tickets) = acquainted_with(wish);
        if spoils {
            tickets.0.lock().unwrap()[0].tls = Ticket(vec![1, 2, 3]);
        }
        let client = network.connect(tuple);
        assert!(!network.client(client).is_early_data());
        network.run_for(RTT * 3);
        assert!(network.client_events.contains(&(client, Event::Connected)));
        assert_eq!(network.client(client).is_resumed(), !spoils);
        assert_eq!(network.client(client).early_data(), EarlyDataState::default());
    }
}

#[test]
fn a_copy_of_a_first_flight_opens_no_second_connection_with_its_data() {
    // RFC 9001 §9.2, RFC 8446 §8.
    let (mut network, tuple) = acquainted();
    let flight = network.record(0);
    let client = network.connect(tuple);
    say(&mut network, client, b"early");
    network.run_for(ONE_WAY);
    assert!(heard_early(&network));
    let copy = flight.borrow().clone();
    network.run_for(RTT * 4);
    let now = network.now;
    network.client(client).close(0, b"", now);
    network.run_for(Duration::from_secs(1));
    network.server_events.clear();
    for datagram in &copy {
        network.forge(tuple.local, datagram);
    }
    network.run_for(ONE_WAY);
    assert!(!heard_early(&network), "the ticket was used before");
}

#[test]
fn certificates_and_keying_material_are_known_once_the_handshake_is_complete() {
    let export = |connection: &mut Connection| {
        let mut key = [0; 32];
        connection.export_keying_material(&mut key, b"label", b"context").map(|()| key)
    };
    let mut network = Network::new(transport(), transport());
    network.keep_tls();
    let tuple = network.link(RTT / 2);
    let client = network.connect(tuple);
    assert!(export(network.client(client)).is_err(), "there is nothing yet");
    assert!(network.client(client).peer_certificates().is_empty());
    network.run_for(RTT * 3);
    let key = export(network.client(client)).expect("it is complete");
    assert_ne!(key, [0; 32]);
    assert_eq!(export(network.server()).ok(), Some(key));
    assert_eq!(network.client(client).peer_certificates().len(), 1);
    assert!(network.server().peer_certificates().is_empty(), "it asked for none");
}

#[test]
fn tls_is_freed_with_the_handshake_where_nothing_needs_it_and_tickets_are_skipped() {
    let mut network = Network::new(transport(), transport());
    let tuple = network.link(RTT / 2);
    let client = network.connect(tuple);
    network.run_for(RTT * 3);
    let check = |connection: &mut Connection| {
        assert!(connection.lifecycle().is_confirmed());
        assert!(connection.export_keying_material(&mut [0; 32], b"label", b"context").is_err());
        assert_eq!(connection.alpn().as_deref(), Some(&b"hvq"[..]));
    };
    check(network.client(client));
    check(network.server());
    assert_eq!(network.client(client).peer_certificates().len(), 1);
}
