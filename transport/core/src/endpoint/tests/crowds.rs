//! More clients than slots: who gets one, who gives way, and how long the others wait (attacks.md K4).

use super::event_log::incoming;
use super::forged::{Forged, initial, sealed};
use super::hellos::honest_hello;
use super::network::{Link, Network, address, transport};
use crate::connection::Event;
use crate::endpoint::{ConnectionHandle, EndpointConfig, Output, RetryPolicy};
use crate::error::{ConnectionError, Dropped, ErrorCode};
use crate::time::Instant;
use crate::wire::frame::{Crypto, Frame};
use crate::wire::header::Incoming;
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

const RTT: Duration = Duration::from_millis(40);
const TICK: Duration = Duration::from_millis(1);
/// Handshakes that begin before the caller gets to say what else arrived.
const TURNS: usize = 2;

/// Retry packets, and to whom they went.
type Retries = Rc<RefCell<Vec<(SocketAddr, Vec<u8>)>>>;

/// Clients that begin handshakes, follow every Retry and then fall silent, beside honest ones.
struct Crowd {
    network: Network,
    hello: Vec<u8>,
    begun: u64,
    retries: Retries,
    honest: Vec<(ConnectionHandle, Instant)>,
}

impl Crowd {
    fn new(config: EndpointConfig) -> Self {
        let mut network = Network::new(transport(), transport());
        network.restart_server(config);
        network.link(RTT / 2);
        let mut hello = Vec::new();
        Frame::Crypto(Crypto { offset: 0, data: honest_hello().into() }).put(&mut hello);
        Self { network, hello, begun: 0, retries: Retries::default(), honest: Vec::new() }
    }

    /// Somebody who hears at `from`, and remembers Retry packets only.
    fn attacker(&mut self, from: [u8; 4]) -> SocketAddr {
        let client = SocketAddr::from((from, 5000));
        let retries = Rc::clone(&self.retries);
        let drop = Box::new(move |_, bytes: &[u8]| {
            if bytes[0] & 0xf0 == 0xf0 {
                retries.borrow_mut().push((client, bytes.to_vec()));
            }
            true
        });
        self.network.links.push(Link { client, server: address(443), delay: RTT / 2, drop });
        client
    }

    /// A handshake begins at `from`.
    fn begin(&mut self, from: SocketAddr) {
        self.begun += 1;
        let packet = initial(&self.begun.to_be_bytes(), &self.hello);
        self.network.forge(from, &sealed(&packet, |first| first));
    }

    /// Gives the proof of each client that was asked for one.
    fn follow(&mut self) {
        for (from, bytes) in std::mem::take(&mut *self.retries.borrow_mut()) {
            let Some(Incoming::Retry { source, token, .. }) = incoming(&bytes).pop() else {
                panic!("{bytes:?}")
            };
            let packet = Forged { token: token.to_vec(), ..initial(source.as_slice(), &self.hello) };
            self.network.forge(from, &sealed(&packet, |first| first));
        }
    }

    /// `count` handshakes of each of `attackers` that prove their address.
    fn fill(&mut self, attackers: &[SocketAddr], count: usize) {
        for _ in 0..count {
            attackers.iter().for_each(|from| self.begin(*from));
            self.network.run_for(Duration::ZERO);
            self.follow();
            self.network.run_for(Duration::ZERO);
        }
    }

    /// An honest client connects from `from`.
    fn connect(&mut self, from: [u8; 4]) -> ConnectionHandle {
        let port = 2000 + self.honest.len() as u16;
        let tuple = self.network.link_from((from, port).into(), RTT / 2);
        let handle = self.network.connect(tuple);
        self.honest.push((handle, self.network.now));
        handle
    }

    fn is_connected(&self, handle: ConnectionHandle) -> bool {
        self.network.client_events.contains(&(handle, Event::Connected))
    }

    fn has_ended(&self, handle: ConnectionHandle) -> bool {
        let ended = |event: &Event| matches!(event, Event::Closed(ConnectionError::PeerTransport(error)) if error.code == ErrorCode::CONNECTION_REFUSED);
        self.network.client_events.iter().any(|(of, event)| *of == handle && ended(event))
    }
}

/// Returns the times that honest clients take to connect, one every 20 ms, ascending, while `attackers` begin `rate`
/// handshakes a second together, for `length`.
fn delays(attackers: &[[u8; 4]], rate: u64, length: Duration) -> Vec<Duration> {
    let mut crowd = Crowd::new(EndpointConfig::default());
    let attackers: Vec<_> = attackers.iter().map(|from| crowd.attacker(*from)).collect();
    let (start, mut waiting, mut delays) = (crowd.network.now, Vec::new(), Vec::new());
    let mut ticks = 0;
    while crowd.network.now.since(start) < length || !waiting.is_empty() {
        let due = rate * (ticks + 1) / 1_000;
        while crowd.begun < due {
            let turn = crowd.begun as usize % attackers.len();
            crowd.begin(attackers[turn]);
        }
        if ticks % 20 == 0 && crowd.network.now.since(start) < length {
            let [high, low] = (ticks as u16).to_be_bytes();
            waiting.push((crowd.connect([10, high, low, 1]), crowd.network.now));
        }
        crowd.follow();
        crowd.network.run_for(TICK);
        ticks += 1;
        let now = crowd.network.now;
        waiting.retain(|(handle, since)| {
            let connected = crowd.is_connected(*handle);
            assert!(now.since(*since) < Duration::from_secs(9), "an honest client was kept out");
            connected.then(|| delays.push(now.since(*since))).is_none()
        });
        crowd.network.client_events.retain(|(_, event)| *event == Event::Connected);
    }
    delays.sort();
    delays
}

#[test]
fn one_address_that_follows_every_retry_delays_others_by_no_more_than_50_ms() {
    // attacks.md K4: at 250 a second all slots are taken after four seconds, at 10,000 after a tenth of one.
    let alone = delays(&[[192, 0, 2, 1]], 0, Duration::from_secs(1));
    assert_eq!(alone.len(), 50);
    for (rate, length) in [(250, 6), (1_000, 3), (10_000, 2)] {
        let delays = delays(&[[192, 0, 2, 1]], rate, Duration::from_secs(length));
        let p99 = delays[delays.len() * 99 / 100];
        assert_eq!(delays.len() as u64, length * 50, "{rate} a second");
        // The proof of an address takes a round trip of 40 ms.
        assert!(p99 <= alone[49] + Duration::from_millis(50), "{rate} a second: {p99:?} for {:?}", alone[49]);
    }
}

#[test]
fn a_network_full_of_attackers_delays_others_no_more_than_one_address() {
    let attackers: Vec<_> = (0..=255).map(|last| [192, 0, 2, last]).collect();
    let delays = delays(&attackers, 5_000, Duration::from_secs(2));
    assert_eq!(delays.len(), 100);
    assert!(delays[98] <= RTT * 2 + Duration::from_millis(50), "{:?}", delays[98]);
}

/// A server with few slots for handshakes.
fn small(max_handshaking: usize) -> EndpointConfig {
    EndpointConfig { max_handshaking, ..EndpointConfig::default() }
}

#[test]
fn one_address_may_hold_every_slot_but_no_more_while_nobody_else_needs_one() {
    let mut crowd = Crowd::new(small(30));
    crowd.network.configure_server(|server| server.retry = RetryPolicy::Always);
    let nat = crowd.attacker([192, 0, 2, 1]);
    crowd.fill(&[nat], 29);
    assert_eq!(crowd.network.server.handles().count(), 29);
    crowd.fill(&[nat], 11);
    assert_eq!(crowd.network.server.handles().count(), 30, "max_handshaking is the limit");
    let stats = crowd.network.server.stats();
    assert_eq!((stats.slots.refused_handshakes, stats.slots.displaced_handshakes), (10, 0));
    assert_eq!(stats.dropped[&Dropped::Limit], 10);
    // Handshakes that take longer than a second give way even to those of their own network.
    crowd.network.run_for(Duration::from_millis(1_100));
    let mate = crowd.connect([192, 0, 2, 1]);
    crowd.network.run_for(RTT * 3);
    assert!(crowd.is_connected(mate));
}

#[test]
fn an_honest_client_in_the_network_of_attackers_gets_a_slot_of_the_one_that_holds_the_most() {
    let mut crowd = Crowd::new(small(30));
    crowd.network.configure_server(|server| server.retry = RetryPolicy::Always);
    let attackers: Vec<_> = (1..=3).map(|last| crowd.attacker([192, 0, 2, last])).collect();
    crowd.fill(&attackers, 10);
    assert_eq!(crowd.network.server.handles().count(), 30);
    let mate = crowd.connect([192, 0, 2, 77]);
    crowd.network.run_for(RTT * 3);
    assert!(crowd.is_connected(mate));
    assert_eq!(crowd.network.server.stats().slots.displaced_handshakes, 1);
}

#[test]
fn nobody_fills_the_share_of_another_by_writing_in_its_name() {
    // Twenty handshakes in the name of a victim that proves nothing, and ten of an attacker that does.
    let mut crowd = Crowd::new(small(30));
    crowd.network.configure_server(|server| server.retry = RetryPolicy::WhenBusy(20));
    for port in 1..=20 {
        crowd.begin(([203, 0, 113, 5], 1000 + port).into());
        crowd.network.run_for(Duration::ZERO);
    }
    let attacker = crowd.attacker([192, 0, 2, 1]);
    crowd.fill(&[attacker], 10);
    assert_eq!(crowd.network.server.handles().count(), 30);
    let victim = crowd.connect([203, 0, 113, 5]);
    crowd.network.run_for(RTT * 3);
    assert!(crowd.is_connected(victim), "{:?}", crowd.network.server.stats());
}

#[test]
fn a_connection_of_the_largest_network_gives_way_and_is_told() {
    let mut crowd = Crowd::new(EndpointConfig { max_connections: 10, ..EndpointConfig::default() });
    let crowded: Vec<_> = (0..10).map(|last| crowd.connect([192, 0, 2, last / 5])).collect();
    crowd.network.run_for(RTT * 4);
    assert!(crowded.iter().all(|handle| crowd.is_connected(*handle)), "one network may have them all");
    let more = crowd.connect([192, 0, 2, 1]);
    let others: Vec<_> = (0..4).map(|n| crowd.connect([198, 51, 100 + n, 1])).collect();
    crowd.network.run_for(RTT * 4);
    assert!(others.iter().all(|handle| crowd.is_connected(*handle) && !crowd.has_ended(*handle)));
    let ended = crowded.iter().filter(|handle| crowd.has_ended(**handle)).count();
    let stats = crowd.network.server.stats().slots;
    assert_eq!((ended, stats.displaced_connections), (4, 4), "{stats:?}");
    assert!(!crowd.is_connected(more) && stats.refused_connections > 0, "it gets no more");
    assert_eq!(crowd.network.server.handles().count(), 10);
    // The application is told of each end, once.
    let closed =
        crowd.network.server_events.iter().filter(|(_, event)| matches!(event, Event::Closed(_))).count();
    let forgotten =
        crowd.network.server_events.iter().filter(|(_, event)| *event == Event::Forgotten).count();
    assert_eq!((closed, forgotten), (4, 4));
}

#[test]
fn a_proof_is_asked_for_before_anybodys_connection_gives_way() {
    // Whoever writes in the name of networks that have nothing would otherwise end the connections of others.
    let mut crowd = Crowd::new(EndpointConfig { max_connections: 5, ..EndpointConfig::default() });
    let crowded: Vec<_> = (0..5).map(|_| crowd.connect([192, 0, 2, 1])).collect();
    crowd.network.run_for(RTT * 4);
    for last in 0..50 {
        crowd.begin(([198, 51, last, 1], 1000).into());
    }
    crowd.network.run_for(RTT * 4);
    assert!(crowded.iter().all(|handle| !crowd.has_ended(*handle)));
    assert_eq!((crowd.network.server.stats().retries, crowd.network.server.handles().count()), (50, 5));
    crowd.network.configure_server(|server| server.retry = RetryPolicy::Never);
    for last in 0..50 {
        crowd.begin(([198, 51, last, 1], 2000).into());
    }
    crowd.network.run_for(RTT * 4);
    assert!(crowded.iter().all(|handle| !crowd.has_ended(*handle)));
    assert_eq!(crowd.network.server.stats().slots.refused_connections, 50);
}

/// The place of the first datagram to `to` among all that the server sends, `None` if there is none.
fn place_of(crowd: &mut Crowd, to: SocketAddr) -> Option<usize> {
    let (now, mut sent, mut place, mut rounds) = (crowd.network.now, 0, None, 0);
    while rounds < 200 {
        match crowd.network.server.poll(now) {
            Output::Transmit(transmit) => {
                place = place.or((transmit.remote == to).then_some(sent));
                sent += 1;
            }
            Output::Event(..) => {}
            Output::Idle(Some(deadline)) if deadline.at <= now => rounds += 1,
            Output::Idle(_) => break,
        }
    }
    place
}

#[test]
fn a_handshake_waits_for_a_few_of_a_flood_and_not_for_all_that_came_before() {
    // Counted in turns: time would measure the machine.
    let mut crowd = Crowd::new(EndpointConfig::default());
    let flood = SocketAddr::from(([192, 0, 2, 1], 5000));
    for _ in 0..200 {
        crowd.begin(flood);
    }
    let honest = SocketAddr::from(([203, 0, 113, 5], 5000));
    crowd.begin(honest);
    let place = place_of(&mut crowd, honest);
    // Of each handshake a datagram or two.
    assert!(place.is_some_and(|place| place <= 3 * TURNS), "{place:?}");
    assert_eq!(crowd.network.server.handles().count(), 201, "the others have their turn later");
}

#[test]
fn who_waits_for_a_turn_is_bounded_and_a_flood_drops_its_own() {
    let mut crowd = Crowd::new(EndpointConfig::default());
    crowd.network.configure_server(|server| server.retry = RetryPolicy::Never);
    let honest = SocketAddr::from(([203, 0, 113, 5], 5000));
    for n in 0..2_000 {
        crowd.begin(([192, 0, 2, 1], 5000).into());
        if n == 500 {
            crowd.begin(honest);
        }
    }
    assert!(place_of(&mut crowd, honest).is_some());
    assert_eq!(crowd.network.server.handles().count(), TURNS + 256);
    assert_eq!(crowd.network.server.stats().slots.displaced_initials, 2_001 - 256 - TURNS as u64);
}
