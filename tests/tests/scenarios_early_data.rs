//! Resumption and 0-RTT: what was sent before the handshake arrives once, whatever the server decides (RFC 9001 §4.6, §9.2).

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use bytes::BytesMut;
use hvq_emulation::Direction;
use hvq_scheduler::Policy;
use hvq_tests::net::{Application, Fate, Net, Side, identity};
use hvq_transport::PathId;
use hvq_transport::connection::{Connection, EarlyDataState, Event, TransportConfig};
use hvq_transport::connection::{VersionChoice, Versions};
use hvq_transport::crypto::keys::{Level, Suite};
use hvq_transport::crypto::protect::SealKey;
use hvq_transport::crypto::session::{ClientTls, EarlyData, ServerTls, SessionStore, SessionTicket};
use hvq_transport::endpoint::{ClientConfig, ServerConfig};
use hvq_transport::error::{ConnectionError, Dropped, ErrorCode};
use hvq_transport::stream::{Direction as Kind, ReadOutcome, StreamEvent, StreamId};
use hvq_transport::time::Instant;
use hvq_transport::trace::{Subject, TraceEvent, Tracer};
use hvq_transport::wire::connection_id::ConnectionId;
use hvq_transport::wire::grease::QuicBit;
use hvq_transport::wire::header::{Incoming, LongHeader, LongKind, PacketKind, next_packet, patch_length};
use hvq_transport::wire::version::Version;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A round trip of 40 ms, and hardly any time to send.
const WIRE: &str = "rtt=40ms,rate=200mbit";
const ROUND_TRIP: Duration = Duration::from_millis(40);

/// Tickets of the one server there is.
#[derive(Debug, Default)]
struct Tickets(Mutex<Vec<SessionTicket>>);

impl SessionStore for Tickets {
    fn put(&self, server_name: &str, ticket: SessionTicket) {
        assert_eq!(server_name, identity::SERVER_NAME);
        self.0.lock().unwrap().push(ticket);
    }

    fn take(&self, _: &str, protocols: &[Vec<u8>]) -> Option<SessionTicket> {
        let ticket = self.0.lock().unwrap().pop()?;
        assert!(protocols.contains(&ticket.alpn));
        Some(ticket)
    }
}

fn transport() -> TransportConfig {
    TransportConfig::new(Arc::new(|| Policy::Hvc.scheduler()))
}

fn server_tls(context: &str) -> ServerTls {
    let builder = ServerTls::builder(identity::identity()).alpn(["hvq"]).early_data(EarlyData::On);
    builder.early_data_context(context).build().unwrap()
}

/// A client that keeps tickets, a server that accepts 0-RTT, and what the server is made from.
fn network(early_data: EarlyData) -> (Net, ServerTls, Arc<Tickets>) {
    let mut net = Net::new(transport(), transport(), 1);
    let tls = server_tls("same");
    net.server.endpoint.set_server(Some(ServerConfig::new(tls.clone(), Arc::new(transport()))));
    let tickets = Arc::new(Tickets::default());
    let builder = ClientTls::builder().alpn(["hvq"]).verify(identity::trust());
    let client = builder.sessions(tickets.clone()).early_data(early_data).build().unwrap();
    net.client_config = ClientConfig::new(client, Arc::new(transport()));
    net.wire(WIRE);
    net.wire(WIRE);
    (net, tls, tickets)
}

/// A watch on the 0-RTT and 1-RTT packets of path 0 that an end of a connection seals, and on those that it ignores.
#[derive(Clone, Debug, Default)]
struct Watch(Arc<Mutex<Watched>>);

#[derive(Debug, Default)]
struct Watched {
    sent: Vec<(Level, u64)>,
    dropped: Vec<Dropped>,
}

impl Watch {
    fn take(&self) -> Watched {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl Tracer for Watch {
    fn record(&mut self, _now: Instant, event: &TraceEvent<'_>) {
        let mut watched = self.0.lock().unwrap();
        match event {
            TraceEvent::PacketSent(packet)
                if matches!(packet.level, Level::ZeroRtt | Level::OneRtt) && packet.path == PathId::ZERO =>
            {
                watched.sent.push((packet.level, packet.number));
            }
            TraceEvent::PacketDropped { reason, .. } => watched.dropped.push(*reason),
            _ => {}
        }
    }
}

/// A request on a stream, which the server answers with the request in reverse.
#[derive(Default)]
struct Exchange {
    request: Vec<u8>,
    asked: BTreeMap<StreamId, Vec<u8>>,
    answer: Vec<u8>,
    answered_at: Option<Instant>,
    /// Requests that the server read to their end, and how many of these came in 0-RTT packets.
    served: usize,
    early: usize,
}

impl Exchange {
    fn new(bytes: usize) -> Self {
        let request = (0..bytes).map(|index| (index % 251) as u8).collect();
        Self { request, ..Self::default() }
    }

    fn ask(&self, connection: &mut Connection) {
        let id = connection.open(Kind::Bidirectional).expect("a stream is permitted");
        assert_eq!(connection.write(id, &self.request), Ok(self.request.len()));
        connection.finish(id).unwrap();
    }

    fn serve(&mut self, id: StreamId, connection: &mut Connection) {
        loop {
            match connection.read(id, 4096) {
                Ok(ReadOutcome::Data(data)) => self.asked.entry(id).or_default().extend_from_slice(&data),
                Ok(ReadOutcome::Finished) => {
                    // Nothing to answer: an event told once more of what an accept already led to.
                    let Some(mut answer) = self.asked.remove(&id) else { return };
                    assert!(answer == self.request, "the request is whole");
                    answer.reverse();
                    connection.write(id, &answer).unwrap();
                    connection.finish(id).unwrap();
                    self.served += 1;
                    self.early += usize::from(connection.is_early_stream(id));
                    return;
                }
                _ => return,
            }
        }
    }
}

impl Application for Exchange {
    fn on_event(&mut self, side: Side, event: &Event, connection: &mut Connection, now: Instant) {
        match (side, event) {
            (Side::Server, Event::Stream(StreamEvent::Opened { direction })) => {
                while let Some(id) = connection.accept(*direction) {
                    self.serve(id, connection);
                }
            }
            (Side::Server, Event::Stream(StreamEvent::Readable(id))) => self.serve(*id, connection),
            (Side::Client, Event::Stream(StreamEvent::Readable(id))) => loop {
                match connection.read(*id, 4096) {
                    Ok(ReadOutcome::Data(data)) => self.answer.extend_from_slice(&data),
                    Ok(ReadOutcome::Finished) => {
                        self.answer.reverse();
                        assert!(self.answer == self.request, "the answer is whole");
                        self.answered_at = Some(now);
                        return;
                    }
                    _ => return,
                }
            },
            _ => {}
        }
    }

    fn is_done(&self) -> bool {
        self.answered_at.is_some()
    }
}

/// A first connection, so that the client has tickets.
fn get_tickets(net: &mut Net) {
    let tuple = net.wires[0].tuple();
    net.connect(tuple);
    net.run_for(Duration::from_millis(300));
    let now = net.now;
    net.client.connection().close(0, b"", now);
    net.run_for(Duration::from_secs(3));
    assert_eq!(net.server.endpoint.handles().count(), 0, "it is forgotten");
}

/// Asks on a new connection as soon as it permits, and returns how long the answer took.
fn ask(net: &mut Net, exchange: &mut Exchange) -> Duration {
    let start = net.now;
    let tuple = net.wires[0].tuple();
    net.connect(tuple);
    if net.client.connection().is_early_data() {
        exchange.ask(net.client.connection());
    } else {
        while !net.client.get().is_some_and(|connection| connection.lifecycle().is_connected()) {
            net.run_for(Duration::from_millis(1));
        }
        exchange.ask(net.client.connection());
    }
    let until = net.now + Duration::from_secs(10);
    assert!(net.run(exchange, until), "{}", net.describe());
    exchange.answered_at.unwrap().since(start)
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-7.4.1
//= type=test
//# When sending frames in 0-RTT packets, a client MUST only use remembered transport parameters; importantly
//= https://www.rfc-editor.org/rfc/rfc9000#section-13.2.6
//= type=test
//# Packets that a client sends with 0-RTT packet protection MUST be acknowledged by the server in packets
//# protected by 1-RTT keys
//= https://www.rfc-editor.org/rfc/rfc9000#section-17.2.3
//= type=test
//# A client MUST NOT send 0-RTT packets once it starts processing 1-RTT packets from the server
//= https://www.rfc-editor.org/rfc/rfc9001#section-5.6
//= type=test
//# Once a client has installed 1-RTT keys, it MUST NOT send any more 0-RTT packets.
#[test]
fn a_request_in_0rtt_is_answered_within_the_first_round_trip() {
    let (mut net, _, tickets) = network(EarlyData::On);
    get_tickets(&mut net);
    assert!(!tickets.0.lock().unwrap().is_empty());
    let mut exchange = Exchange::new(3000);
    let took = ask(&mut net, &mut exchange);
    assert!(took < ROUND_TRIP + Duration::from_millis(5), "{took:?}\n{}", net.describe());
    assert_eq!((exchange.served, exchange.early), (1, 1));
    net.run_for(Duration::from_millis(200));
    let client = net.client.connection();
    assert_eq!((client.early_data(), client.is_early_data()), (EarlyDataState::Accepted, false));
    // RFC 10069 §2, attacks G6: multipath is agreed on anew.
    assert!(client.is_resumed() && client.is_multipath());
    let stats = client.stats();
    assert_eq!(stats.paths[0].counters.packets_lost, 0);
    let server = net.server.get().expect("it is open");
    assert!(server.is_resumed() && server.stats().dropped == 0, "{}", net.describe());
}

//= https://www.rfc-editor.org/rfc/rfc9001#section-5.6
//= type=test
//# A client therefore MUST NOT use 0-RTT for application data unless specifically requested by the
//# application that is in use.
#[test]
fn without_the_clients_will_a_session_is_resumed_but_no_data_comes_early() {
    let (mut net, _, _) = network(EarlyData::Off);
    get_tickets(&mut net);
    let mut exchange = Exchange::new(3000);
    let took = ask(&mut net, &mut exchange);
    assert!(took >= ROUND_TRIP * 2, "{took:?}");
    assert!(net.client.connection().is_resumed());
    assert_eq!((exchange.early, net.client.connection().early_data()), (0, EarlyDataState::Unused));
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-7.4.1
//= type=test
//# The client MUST use the server's new values in the handshake instead; if the server does not provide new
//# values, the default values are used.
//= https://www.rfc-editor.org/rfc/rfc9000#section-7.4.1
//= type=test
//# If 0-RTT data is accepted by the server, the server MUST NOT reduce any limits or alter any values that
//# might be violated by the client with its 0-RTT data
//= https://www.rfc-editor.org/rfc/rfc9000#section-7.4.1
//= type=test
//# In particular, a server that accepts 0-RTT data MUST NOT set values for the following parameters (Section
//# 18.2) that are smaller than the remembered values of the parameters.
//= https://www.rfc-editor.org/rfc/rfc9000#section-7.4.1
//= type=test
//# A server MUST reject 0-RTT data if the restored values for transport parameters cannot be supported.
//= https://www.rfc-editor.org/rfc/rfc9001#section-4.6.2
//= type=test
//# When rejecting 0-RTT, a server MUST NOT process any 0-RTT packets, even if it could
//= https://www.rfc-editor.org/rfc/rfc9002#section-6.4
//= type=test
//# The sender MUST discard all recovery state associated with those packets and MUST remove them from the
//# count of bytes in flight.
#[test]
fn rejected_early_data_arrives_whole_after_the_handshake_within_the_new_limits() {
    // RFC 9001 §4.6.2, RFC 9000 §7.4.1.
    for bytes in [100, 3000, 60_000] {
        let (mut net, tls, _) = network(EarlyData::On);
        get_tickets(&mut net);
        // The limits shrink, so that the ticket does not open 0-RTT any more.
        let mut limits = transport();
        limits.streams_mut().stream_data_bidi_remote = 2000;
        limits.streams_mut().max_data = 5000;
        net.server.endpoint.set_server(Some(ServerConfig::new(tls, Arc::new(limits))));
        let mut exchange = Exchange::new(bytes);
        let took = ask(&mut net, &mut exchange);
        assert!(took >= ROUND_TRIP * 2, "{took:?}");
        assert_eq!((exchange.served, exchange.early), (1, 0));
        let client = net.client.connection();
        assert_eq!(client.early_data(), EarlyDataState::Rejected);
        assert!(client.is_resumed(), "only 0-RTT is rejected");
        assert_eq!(client.stats().paths[0].counters.packets_lost, 0, "rejection is no congestion");
    }
}

//= https://www.rfc-editor.org/rfc/rfc9001#section-4.9.3
//= type=test
//# After receiving a 1-RTT packet, servers MUST discard 0-RTT keys within a short time; the RECOMMENDED time
//# period is three times the Probe Timeout (PTO, see [QUIC-RECOVERY])
#[test]
fn a_server_opens_no_0rtt_packet_soon_after_the_handshake() {
    let (mut net, _, _) = network(EarlyData::On);
    get_tickets(&mut net);
    let early: Rc<RefCell<Vec<Vec<u8>>>> = Rc::default();
    let copy = Rc::clone(&early);
    net.tap = Some(Box::new(move |_, direction, bytes| {
        let mut rest = BytesMut::from(bytes);
        while direction == Direction::Up
            && !rest.is_empty()
            && let Ok(Incoming::Protected(packet)) = next_packet(&mut rest, 8, QuicBit::Free)
        {
            if packet.kind == PacketKind::ZeroRtt {
                copy.borrow_mut().push(packet.bytes.to_vec());
            }
        }
        Fate::Pass
    }));
    ask(&mut net, &mut Exchange::new(3000));
    let watch = Watch::default();
    net.server.connection().set_tracer(Box::new(watch.clone()));
    // The client's first 1-RTT packet is there half a round trip after the answer; three probe timeouts are 0.5 s at most.
    net.run_for(ROUND_TRIP);
    let late = |net: &mut Net| {
        for packet in early.borrow().iter() {
            let datagram = net.arriving(0, Direction::Up, packet);
            net.inject(Side::Server, datagram);
        }
        watch.take().dropped
    };
    let count = early.borrow().len();
    assert!(count > 0);
    assert_eq!(late(&mut net), vec![Dropped::Duplicate; count], "for what was delayed");
    net.run_for(Duration::from_millis(500));
    assert_eq!(late(&mut net), vec![Dropped::NoKeys; count]);
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-17.2.3
//= type=test
//# New packet numbers MUST be used for any new packets that are sent; as described in Section 17.2.5.3,
//# reusing packet numbers could compromise packet protection.
#[test]
fn what_was_rejected_is_sent_again_under_new_packet_numbers() {
    let (mut net, tls, _) = network(EarlyData::On);
    get_tickets(&mut net);
    let limits = transport().set_max_datagram_frame(0).clone();
    net.server.endpoint.set_server(Some(ServerConfig::new(tls, Arc::new(limits))));
    let watch = Watch::default();
    let tracer = watch.clone();
    let factory = move |_: &Subject| Some(Box::new(tracer.clone()) as Box<dyn Tracer>);
    let watched = transport().set_tracer(Some(Arc::new(factory))).clone();
    net.client_config.set_transport(Arc::new(watched));
    ask(&mut net, &mut Exchange::new(20_000));
    assert_eq!(net.client.connection().early_data(), EarlyDataState::Rejected);
    let sent = watch.take().sent;
    let numbers: Vec<u64> = sent.iter().map(|(_, number)| *number).collect();
    assert!(numbers.is_sorted_by(|one, next| one < next), "{sent:?}");
    // About as many packets for the same data.
    let of = |wanted: Level| sent.iter().filter(|(level, _)| *level == wanted).count();
    assert!(of(Level::ZeroRtt) > 5 && of(Level::OneRtt) > 5, "{sent:?}");
}

//= https://www.rfc-editor.org/rfc/rfc9221#section-3
//= type=test
//# When servers decide to accept 0-RTT data, they MUST send a max_datagram_frame_size transport parameter
//# greater than or equal to the value they sent to the client in the connection where they sent
#[test]
fn a_server_that_accepts_early_data_takes_datagrams_as_large_as_before() {
    // A server accepts 0-RTT with the limits that the ticket was given under, and with no others.
    let takes = |limit| Arc::new(transport().set_max_datagram_frame(limit).clone());
    for (limit, state) in [
        (1200, EarlyDataState::Accepted),
        (9000, EarlyDataState::Rejected),
        (1199, EarlyDataState::Rejected),
        (0, EarlyDataState::Rejected),
    ] {
        let (mut net, tls, _) = network(EarlyData::On);
        net.server.endpoint.set_server(Some(ServerConfig::new(tls.clone(), takes(1200))));
        get_tickets(&mut net);
        net.server.endpoint.set_server(Some(ServerConfig::new(tls, takes(limit))));
        ask(&mut net, &mut Exchange::new(3000));
        let client = net.client.connection();
        let announced = client.peer_parameters().expect("the handshake is complete").max_datagram_frame_size;
        assert_eq!((client.early_data(), announced), (state, limit));
    }
}

#[test]
fn settings_of_the_application_that_changed_reject_early_data() {
    // RFC 9001 §4.6.1.
    let (mut net, _, _) = network(EarlyData::On);
    get_tickets(&mut net);
    let config = ServerConfig::new(server_tls("other"), Arc::new(transport()));
    net.server.endpoint.set_server(Some(config));
    let mut exchange = Exchange::new(5000);
    ask(&mut net, &mut exchange);
    assert_eq!((exchange.served, exchange.early), (1, 0));
    assert_eq!(net.client.connection().early_data(), EarlyDataState::Rejected);
}

//= https://www.rfc-editor.org/rfc/rfc9001#section-9.2
//= type=test
//# Endpoints MUST implement and use the replay protections described in [TLS13], however it is recognized
//# that these protections are imperfect
#[test]
fn a_replayed_first_flight_is_served_once() {
    // RFC 8446 §8, RFC 9001 §9.2, attacks F12.
    let (mut net, _, _) = network(EarlyData::On);
    get_tickets(&mut net);
    let recording: Rc<RefCell<Vec<Vec<u8>>>> = Rc::default();
    let copy = Rc::clone(&recording);
    net.tap = Some(Box::new(move |_, direction, bytes| {
        if direction == Direction::Up && bytes.first().is_some_and(|first| first & 0x80 != 0) {
            copy.borrow_mut().push(bytes.to_vec());
        }
        Fate::Pass
    }));
    let mut exchange = Exchange::new(3000);
    ask(&mut net, &mut exchange);
    let now = net.now;
    net.client.connection().close(0, b"", now);
    net.run_for(Duration::from_secs(3));
    assert_eq!(net.server.endpoint.handles().count(), 0);
    net.tap = Some(Box::new(|_, _, _| Fate::Drop));
    for wire in [0, 1] {
        for bytes in recording.borrow().iter() {
            let datagram = net.arriving(wire, Direction::Up, bytes);
            net.inject(Side::Server, datagram);
        }
        exchange.answered_at = None;
        let until = net.now + Duration::from_secs(1);
        net.run(&mut exchange, until);
        assert!(net.server.endpoint.handles().count() > 0, "the copy is answered with a handshake");
    }
    assert_eq!((exchange.served, exchange.early), (1, 1));
    let accepted = net.server.events.iter().filter(|(_, event)| *event == Event::EarlyData).count();
    assert_eq!(accepted, 1);
}

//= https://www.rfc-editor.org/rfc/rfc9001#section-5.7
//= type=test
//# Endpoints in either role MUST NOT decrypt 1-RTT packets from their peer prior to completing the handshake.
//= https://www.rfc-editor.org/rfc/rfc9001#section-5.7
//= type=test
//# A server MUST NOT process incoming 1-RTT protected packets before the TLS handshake is complete
//= https://www.rfc-editor.org/rfc/rfc9001#section-5.7
//= type=test
//# Even if it has 1-RTT secrets, a client MUST NOT process incoming 1-RTT protected packets before the TLS
//# handshake is complete.
#[test]
fn early_data_that_overtakes_the_client_hello_is_kept_and_lost_flights_are_repeated() {
    // RFC 9001 §5.7, attacks B15.
    for lost in 0..4 {
        let (mut net, _, _) = network(EarlyData::On);
        get_tickets(&mut net);
        let mut seen = 0;
        net.tap = Some(Box::new(move |_, direction, _| {
            if direction == Direction::Down {
                return Fate::Pass;
            }
            seen += 1;
            if seen == lost + 1 { Fate::Drop } else { Fate::Pass }
        }));
        let mut exchange = Exchange::new(3000);
        let took = ask(&mut net, &mut exchange);
        assert_eq!(exchange.served, 1, "datagram {lost} is lost");
        assert!(took < Duration::from_millis(1500), "datagram {lost} is lost: {took:?}");
    }
}

#[test]
fn early_data_survives_bad_channels() {
    for seed in 0..100 {
        let mut net = Net::new(transport(), transport(), seed);
        let tls = server_tls("same");
        net.server.endpoint.set_server(Some(ServerConfig::new(tls, Arc::new(transport()))));
        let builder = ClientTls::builder().alpn(["hvq"]).verify(identity::trust());
        let builder = builder.sessions(Arc::new(Tickets::default())).early_data(EarlyData::On);
        net.client_config = ClientConfig::new(builder.build().unwrap(), Arc::new(transport()));
        net.wire("rtt=40ms,rate=20mbit,loss=5%,reorder=5%/10ms,duplicate=2%");
        let tuple = net.wires[0].tuple();
        net.connect(tuple);
        net.run_for(Duration::from_secs(5));
        let mut exchange = Exchange::new(20_000);
        ask(&mut net, &mut exchange);
        assert_eq!(exchange.served, 1, "seed {seed}");
    }
}

const V1: Version = Version::V1;
const V2: Version = Version::V2;

fn speaking(list: &[Version], choice: VersionChoice) -> Arc<TransportConfig> {
    Arc::new(transport().set_versions(Versions::new(list, choice).unwrap()).clone())
}

/// Has new connections of `net` choose among these versions.
fn speak(net: &mut Net, tls: &ServerTls, client: &[Version], server: Arc<TransportConfig>) {
    net.server.endpoint.set_server(Some(ServerConfig::new(tls.clone(), server)));
    let own = net.client_config.tls().clone();
    net.client_config = ClientConfig::new(own, speaking(client, VersionChoice::AsOffered));
}

#[test]
fn tickets_are_of_use_in_the_version_that_their_session_ended_up_with_and_in_no_other() {
    // RFC 9369 §5.
    let cases = [([V2, V1], V2, EarlyDataState::Accepted), ([V1, V2], V2, EarlyDataState::Unused)];
    for (client, version, state) in cases {
        let (mut net, tls, tickets) = network(EarlyData::On);
        speak(&mut net, &tls, &[V1, V2], speaking(&[V2, V1], VersionChoice::OwnPreference));
        get_tickets(&mut net);
        assert!(tickets.0.lock().unwrap().iter().all(|ticket| ticket.version == version));
        speak(&mut net, &tls, &client, speaking(&[V1, V2], VersionChoice::AsOffered));
        let mut exchange = Exchange::new(3000);
        ask(&mut net, &mut exchange);
        let client = net.client.connection();
        assert_eq!((exchange.served, client.early_data()), (1, state));
        assert_eq!(client.is_resumed(), state == EarlyDataState::Accepted);
    }
}

#[test]
fn a_server_takes_no_ticket_of_another_version_whatever_the_client_believes() {
    // RFC 9369 §5.
    let (mut net, tls, tickets) = network(EarlyData::On);
    get_tickets(&mut net);
    tickets.0.lock().unwrap().iter_mut().for_each(|ticket| ticket.version = V2);
    speak(&mut net, &tls, &[V2, V1], speaking(&[V1, V2], VersionChoice::AsOffered));
    let mut exchange = Exchange::new(3000);
    ask(&mut net, &mut exchange);
    assert_eq!((exchange.served, exchange.early), (1, 0));
    let client = net.client.connection();
    assert_eq!((client.early_data(), client.is_resumed()), (EarlyDataState::Rejected, false));
}

#[test]
fn early_data_in_a_version_that_the_server_gave_up_arrives_in_another() {
    // RFC 9368 §2.1: the second attempt begins from nothing.
    let (mut net, tls, _) = network(EarlyData::On);
    speak(&mut net, &tls, &[V2, V1], speaking(&[V2, V1], VersionChoice::AsOffered));
    get_tickets(&mut net);
    speak(&mut net, &tls, &[V2, V1], speaking(&[V1], VersionChoice::AsOffered));
    let mut exchange = Exchange::new(20_000);
    ask(&mut net, &mut exchange);
    assert_eq!((exchange.served, exchange.early), (1, 0));
    let client = net.client.connection();
    assert_eq!((client.version(), client.early_data()), (V1, EarlyDataState::Rejected));
    assert!(!client.is_resumed() && client.stats().paths[0].counters.packets_lost == 0);
}

/// A 0-RTT packet with these frames that answers to the IDs of `first`, the client's first datagram.
fn zero_rtt(first: &[u8], (suite, secret): (Suite, &[u8]), frames: &[u8]) -> Vec<u8> {
    let length = usize::from(first[5]);
    let (destination, rest) = first[6..].split_at(length);
    let source = &rest[1..1 + usize::from(rest[0])];
    let header = LongHeader {
        kind: LongKind::ZeroRtt,
        version: V1,
        destination: ConnectionId::new(destination).unwrap(),
        source: ConnectionId::new(source).unwrap(),
        token: &[],
    };
    let mut packet = Vec::new();
    let layout = header.put(&mut packet, 500, 2);
    packet.extend_from_slice(frames);
    packet.resize(packet.len() + 20, 0);
    patch_length(&mut packet, &layout, 0, Suite::TAG_LENGTH);
    SealKey::new(suite, secret).seal(&mut packet, 0, &layout, PathId::ZERO, 500);
    packet
}

/// The secret of 0-RTT in a line of a key log, if it is one of these.
fn early_secret(line: &str) -> Option<Vec<u8>> {
    let digits = line.strip_prefix("CLIENT_EARLY_TRAFFIC_SECRET ")?.split_once(' ')?.1;
    let pairs = digits.as_bytes().chunks(2);
    Some(pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect())
}

/// One of each type of frame of the multipath extension.
fn multipath_frames() -> Vec<Vec<u8>> {
    let acknowledgements = [vec![0x3e, 0, 0, 0, 0, 0], vec![0x3f, 0, 0, 0, 0, 0, 0, 0, 0]];
    // PATH_NEW_CONNECTION_ID: path, sequence number, retire_prior_to, length; the connection ID and its token.
    let new_id = [&[0x7e, 0x78, 1, 1, 0, 8][..], &[5; 24]].concat();
    let others = [0x75, 0x76, 0x77, 0x79, 0x7a, 0x7b, 0x7c].map(|kind| vec![0x7e, kind, 1, 0]);
    acknowledgements.into_iter().chain([new_id]).chain(others).collect()
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-10.3
//= type=test
//# An endpoint that wishes to communicate a fatal connection error MUST use a CONNECTION_CLOSE frame if it is
//# able.
//= https://www.rfc-editor.org/rfc/rfc9000#section-11.1
//= type=test
//# such as an obvious violation of protocol semantics or corruption of state that affects an entire
//# connection, MUST be signaled using a CONNECTION_CLOSE frame (Section 19.19).
//= https://www.rfc-editor.org/rfc/rfc9000#section-12.4
//= type=test
//# An endpoint MUST treat receipt of a frame in a packet type that is not permitted as a connection error of
//# type PROTOCOL_VIOLATION.
//= https://www.rfc-editor.org/rfc/rfc9001#section-8.3
//= type=test
//# A server MUST treat receipt of a CRYPTO frame in a 0-RTT packet as a connection error of type
//# PROTOCOL_VIOLATION.
#[test]
fn frames_that_have_no_place_in_0rtt_packets_close_the_connection() {
    // RFC 9000 §12.5, attacks A17; RFC 10069 §4, attacks G1; the last one is harmless.
    let handshake_done: &[u8] = &[0x1e];
    let path_response: &[u8] = &[0x1b, 1, 2, 3, 4, 5, 6, 7, 8];
    let plain = [handshake_done, &[2, 0, 0, 0, 0], &[6, 0, 1, 7], path_response, &[7, 1, 9]];
    let of_paths = multipath_frames();
    let of_paths = of_paths.iter().map(Vec::as_slice);
    for frames in plain.into_iter().chain(of_paths).chain([&[1][..]]) {
        let (mut net, _, tickets) = network(EarlyData::On);
        let secrets: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
        let log = Arc::clone(&secrets);
        let builder = ClientTls::builder().alpn(["hvq"]).verify(identity::trust());
        let builder = builder.sessions(tickets).early_data(EarlyData::On);
        let builder = builder.keylog(Box::new(move |line| log.lock().unwrap().extend(early_secret(line))));
        net.client_config = ClientConfig::new(builder.build().unwrap(), Arc::new(transport()));
        get_tickets(&mut net);
        let first: Rc<RefCell<Option<Vec<u8>>>> = Rc::default();
        let recorded = Rc::clone(&first);
        net.tap = Some(Box::new(move |_, direction, bytes| {
            if direction == Direction::Up && recorded.borrow().is_none() {
                *recorded.borrow_mut() = Some(bytes.to_vec());
            }
            Fate::Pass
        }));
        let tuple = net.wires[0].tuple();
        net.connect(tuple);
        net.run_for(ROUND_TRIP * 3 / 4);
        let secret = secrets.lock().unwrap().pop().expect("the ticket permits 0-RTT");
        let before = net.server.get().expect("it is open").stats().paths[0].counters.packets_received;
        for suite in [Suite::Aes128Gcm, Suite::Aes256Gcm, Suite::ChaCha20Poly1305] {
            if secret.len() == suite.secret_length() {
                let bytes = zero_rtt(first.borrow().as_ref().unwrap(), (suite, &secret), frames);
                let datagram = net.arriving(0, Direction::Up, &bytes);
                net.inject(Side::Server, datagram);
            }
        }
        let after = net.server.get().expect("it is there").stats().paths[0].counters.packets_received;
        assert_eq!(after, before + 1, "the packet is authentic");
        net.run_for(Duration::from_millis(1));
        let closed = net.server.saw_any(|event| match event {
            Event::Closed(ConnectionError::Transport(error)) => error.code == ErrorCode::PROTOCOL_VIOLATION,
            _ => false,
        });
        assert_eq!(closed, frames != [1], "{frames:?}\n{}", net.describe());
    }
}
