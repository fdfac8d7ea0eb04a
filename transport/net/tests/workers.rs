//! Several endpoints on one port: every datagram of a connection meets at one of them, from wherever it comes.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use common::{NAME, Pki, echo, local, pattern, transport, within};
use hvq::admission::RetryPolicy;
use hvq::balancing::{Generation, SteeredBy, Succession};
use hvq::{
    ClientConfig, ClientTls, Connection, EarlyData, Endpoint, EndpointConfig, EndpointOptions, PathState,
    ServerConfig, ServerTls, SessionStore, SessionTicket, Verify,
};
use std::num::NonZeroU16;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Two paths each: as many connections that three workers of four being idle is out of the question.
const CONNECTIONS: usize = 48;

fn count(workers: u16) -> NonZeroU16 {
    NonZeroU16::new(workers).expect("not zero")
}

/// Workers that send back what they get.
struct Group {
    workers: Vec<Endpoint>,
    pki: Pki,
}

impl Group {
    fn new(workers: u16, steered_by: SteeredBy) -> Self {
        Self::with(workers, steered_by, |_| {})
    }

    fn with(workers: u16, steered_by: SteeredBy, change: impl Fn(&mut ServerConfig)) -> Self {
        let pki = Pki::new();
        let mut server = pki.server(transport());
        change(&mut server);
        let options = EndpointOptions {
            server: Some(server),
            local: vec![local("127.0.0.1:0")],
            ..EndpointOptions::default()
        };
        let workers = Endpoint::workers(options, count(workers), steered_by).expect("binds");
        for worker in &workers {
            let worker = worker.clone();
            tokio::spawn(async move {
                while let Some(connection) = worker.accept().await {
                    echo(connection);
                }
            });
        }
        Self { workers, pki }
    }

    async fn connect(&self, client: &Endpoint) -> Connection {
        let remote = self.workers[0].local_addrs()[0];
        let connecting = client.connect(self.pki.client(transport()), remote, NAME).expect("starts");
        within(connecting).await.expect("connects")
    }

    fn handed_over(&self) -> u64 {
        self.workers.iter().map(|worker| worker.io_stats().handed_over).sum()
    }

    fn sum(&self, of: impl Fn(&Endpoint) -> u64) -> u64 {
        self.workers.iter().map(of).sum()
    }
}

async fn round_trip(connection: &Connection, bytes: usize) {
    let sent = pattern(bytes);
    let (mut send, mut receive) = within(connection.open_bi()).await.expect("opens");
    let (written, back) = within(async {
        tokio::join!(
            async {
                send.write_all(&sent).await?;
                send.finish().map_err(|_| hvq::WriteError::Closed)
            },
            receive.read_to_end(bytes)
        )
    })
    .await;
    written.expect("is sent");
    assert_eq!(back.expect("comes back"), sent);
}

async fn validated(connection: &Connection) {
    let both = async {
        while connection.paths().iter().filter(|path| path.state == PathState::Validated).count() < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    within(both).await;
}

/// Connects, opens second paths from other ports, and moves the first to yet other ones.
async fn exercise(group: &Group) {
    let mut clients = Vec::new();
    for _ in 0..CONNECTIONS {
        let client = Endpoint::client(&[]).expect("binds");
        let connection = group.connect(&client).await;
        connection.open_path("second=127.0.0.1:0".parse().expect("a path")).await.expect("opens");
        clients.push((client, connection));
    }
    for (_, connection) in &clients {
        validated(connection).await;
        round_trip(connection, 20_000).await;
    }
    for (_, connection) in &clients {
        let first = connection.paths()[0].id;
        within(connection.migrate_path(first, local("127.0.0.1:0"))).await.expect("moves");
        round_trip(connection, 20_000).await;
    }
    let all: Vec<usize> = group.workers.iter().map(Endpoint::open_connections).collect();
    assert_eq!(all.iter().sum::<usize>(), CONNECTIONS);
    assert!(all.iter().all(|connections| *connections > 0), "all take part: {all:?}");
    let dropped: Vec<_> = group.workers.iter().map(|worker| worker.stats().dropped).collect();
    assert!(dropped.iter().all(|dropped| dropped.is_empty()), "{dropped:?}");
    // attacks.md F5: no worker takes a connection of another for none, and resets it.
    assert_eq!(group.sum(|worker| worker.stats().stateless_resets), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_path_and_every_move_of_a_connection_finds_its_worker() {
    let group = Group::new(4, SteeredBy::Kernel);
    exercise(&group).await;
    #[cfg(target_os = "linux")]
    assert_eq!(group.handed_over(), 0, "the kernel knew them all");
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-5.2.3
//= type=test
//# Server deployments that use this simple form of load balancing MUST avoid the creation of a stateless reset
//# oracle; see Section 21.11.
//= https://www.rfc-editor.org/rfc/rfc9000#section-21.11
//= type=test
//# endpoints that share a static key for stateless resets (see Section 10.3.2) MUST be arranged so that packets
//# with a given connection ID always arrive at an instance that has connection state
//= https://www.rfc-editor.org/rfc/rfc9000#section-21.11
//= type=test
//# More generally, servers MUST NOT generate a stateless reset if a connection with the corresponding connection
//# ID could be active on any endpoint using the same static key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_hand_over_what_the_kernel_does_not_steer() {
    let group = Group::new(3, SteeredBy::Workers);
    exercise(&group).await;
    assert!(group.handed_over() > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_retry_of_one_worker_is_good_for_the_one_that_the_client_comes_back_to() {
    for steered_by in [SteeredBy::Kernel, SteeredBy::Workers] {
        let group = Group::with(4, steered_by, |server| {
            server.set_retry(RetryPolicy::Always);
        });
        let client = Endpoint::client(&[local("127.0.0.1:0")]).expect("binds");
        for _ in 0..24 {
            round_trip(&group.connect(&client).await, 100).await;
        }
        // Nobody is asked twice, and tokens of earlier connections count with every worker.
        let (retries, proven) =
            (group.sum(|worker| worker.stats().retries), group.sum(|worker| worker.stats().proven_addresses));
        assert_eq!(proven, 24);
        assert!((1..24).contains(&retries), "{retries}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_that_start_anew_with_their_key_end_the_connections_of_before() {
    // The key is shared, and each connection ID belongs to one worker.
    let pki = Pki::new();
    let key = hvq::tls::ResetKey::new(&[7; 32]);
    let start = |address: &str| {
        let options = EndpointOptions {
            config: EndpointConfig::default().set_reset_key(Some(key.clone())).clone(),
            server: Some(pki.server(transport())),
            local: vec![local(address)],
            ..EndpointOptions::default()
        };
        Endpoint::workers(options, count(4), SteeredBy::Kernel)
    };
    let before = start("127.0.0.1:0").expect("binds");
    let address = before[0].local_addrs()[0];
    let client = Endpoint::client(&[]).expect("binds");
    let mut connections = Vec::new();
    for _ in 0..12 {
        let connecting = client.connect(pki.client(transport()), address, NAME).expect("starts");
        connections.push(within(connecting).await.expect("connects"));
    }
    assert!(start(&address.to_string()).is_err(), "nobody else shares the address");
    drop(before);
    // The drivers end once the closing period of what nobody accepted is over; the address is free then.
    let after = within(async {
        loop {
            match start(&address.to_string()) {
                Ok(workers) => break workers,
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    })
    .await;
    for connection in connections {
        within(connection.closed()).await;
    }
    drop(after);
}

/// Keeps the first ticket that comes, and gives it again and again: a thief of tickets, or a copy of a client.
#[derive(Debug, Default)]
struct Thief(Mutex<Option<SessionTicket>>);

impl SessionStore for Thief {
    fn put(&self, _name: &str, ticket: SessionTicket) {
        self.0.lock().unwrap().get_or_insert(ticket);
    }

    fn take(&self, _name: &str, _alpn: &[Vec<u8>]) -> Option<SessionTicket> {
        self.0.lock().unwrap().clone()
    }
}

// On one thread, so that no handshake is complete before the test has asked for 0-RTT.
#[tokio::test]
async fn a_ticket_opens_0_rtt_once_whichever_worker_it_is_shown_to() {
    // attacks.md F12: RFC 9001 §9.2.
    let group = Group::with(4, SteeredBy::Kernel, |server| {
        let builder = ServerTls::builder(Pki::new().identity()).alpn(["hq-test"]);
        server.set_tls(builder.early_data(EarlyData::On).build().unwrap());
    });
    let thief = Arc::new(Thief::default());
    let builder = ClientTls::builder().alpn(["hq-test"]).verify(Verify::Insecure);
    let tls = builder.sessions(thief.clone()).early_data(EarlyData::On).build().unwrap();
    let config = ClientConfig::new(tls, Arc::new(transport()));
    let client = Endpoint::client(&[local("127.0.0.1:0")]).unwrap();
    let remote = group.workers[0].local_addrs()[0];
    let first = within(client.connect(config.clone(), remote, NAME).unwrap()).await.unwrap();
    within(async {
        while thief.0.lock().unwrap().is_none() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let mut accepted = 0;
    for _ in 0..16 {
        let connecting = client.connect(config.clone(), remote, NAME).unwrap();
        let (again, early) = connecting.into_0rtt().expect("the ticket permits it");
        accepted += usize::from(within(early).await);
        assert!(again.is_resumed(), "every worker knows tickets of the others");
        round_trip(&again, 100).await;
    }
    assert_eq!(accepted, 1);
    drop(first);
}

#[tokio::test]
async fn workers_need_an_address_and_connection_ids_that_tell_them_apart() {
    let server = Some(Pki::new().server(transport()));
    let options = |id_length, address: &str| EndpointOptions {
        config: EndpointConfig::default().set_id_length(id_length).clone(),
        server: server.clone(),
        local: (!address.is_empty()).then(|| local(address)).into_iter().collect(),
        ..EndpointOptions::default()
    };
    for (options, reason) in [(options(8, ""), "address"), (options(3, "127.0.0.1:0"), "four bytes")] {
        let error = Endpoint::workers(options, count(2), SteeredBy::Kernel).expect_err("refused");
        assert!(error.to_string().contains(reason), "{error}");
    }
    let one = Endpoint::workers(options(8, "127.0.0.1:0"), count(1), SteeredBy::Kernel).expect("binds");
    assert_eq!(one.len(), 1);
}

/// A group with these keys and this place in the succession, which sends back what it gets.
fn successor(pki: &Pki, address: &str, succession: Succession) -> std::io::Result<Vec<Endpoint>> {
    let mut config = EndpointConfig::default();
    config
        .set_reset_key(Some(hvq::tls::ResetKey::new(&[7; 32])))
        .set_token_key(Some(hvq::tls::TokenKey::new(&[8; 32])));
    let (server, local) = (Some(pki.server(transport())), vec![local(address)]);
    let options = EndpointOptions { config, server, local, ..EndpointOptions::default() };
    let workers = Endpoint::succeeding(options, count(2), succession)?;
    for worker in workers.clone() {
        tokio::spawn(async move {
            while let Some(connection) = worker.accept().await {
                echo(connection);
            }
        });
    }
    Ok(workers)
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn those_who_take_over_get_what_is_new_and_the_others_keep_what_they_have() {
    let pki = Pki::new();
    let first = Succession { secret: 0x1234_5678, generation: Generation::Even, before: 0 };
    let old = successor(&pki, "127.0.0.1:0", first).unwrap();
    let remote = old[0].local_addrs()[0];
    let connect = async |client: &Endpoint| {
        within(client.connect(pki.client(transport()), remote, NAME).unwrap()).await.unwrap()
    };
    let client = Endpoint::client(&[]).unwrap();
    let mut before = Vec::new();
    for _ in 0..24 {
        before.push(connect(&client).await);
    }
    assert!(successor(&pki, &remote.to_string(), first).is_err(), "nobody shares an address unasked");
    let second = Succession { generation: first.generation.next(), before: 2, ..first };
    let new = successor(&pki, &remote.to_string(), second).unwrap();
    let mut after = Vec::new();
    for _ in 0..24 {
        after.push(connect(&client).await);
    }
    let open = |workers: &[Endpoint]| workers.iter().map(Endpoint::open_connections).sum::<usize>();
    assert_eq!((open(&old), open(&new)), (24, 24));
    for connection in before.iter().chain(&after) {
        round_trip(connection, 20_000).await;
        // Also from another address.
        let path = connection.paths()[0].id;
        within(connection.migrate_path(path, local("127.0.0.1:0"))).await.unwrap();
        round_trip(connection, 20_000).await;
    }
    let resets =
        |workers: &[Endpoint]| workers.iter().map(|worker| worker.stats().stateless_resets).sum::<u64>();
    assert_eq!((resets(&old), resets(&new)), (0, 0));
    // Once the old ones are gone, all is for the new ones.
    old.iter().for_each(|worker| worker.close(0, b""));
    for connection in &before {
        within(connection.closed()).await;
    }
    within(old[0].wait_idle()).await;
    within(old[1].wait_idle()).await;
    drop(old);
    for connection in &after {
        round_trip(connection, 20_000).await;
    }
    round_trip(&connect(&client).await, 20_000).await;
    assert_eq!(resets(&new), 0);
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handshakes_under_way_while_others_take_over_are_completed() {
    let pki = Pki::new();
    let mut place = Succession { secret: 0x1234_5678, generation: Generation::Even, before: 0 };
    let old = successor(&pki, "127.0.0.1:0", place).unwrap();
    let remote = old[0].local_addrs()[0];
    let client = Endpoint::client(&[]).unwrap();
    let begin = || {
        let connecting = client.connect(pki.client(transport()), remote, NAME).unwrap();
        tokio::spawn(async move { within(connecting).await.unwrap() })
    };
    let mut begun = Vec::new();
    for _ in 0..16 {
        begun.push(begin());
        tokio::task::yield_now().await;
    }
    place = Succession { generation: place.generation.next(), before: 2, ..place };
    let new = successor(&pki, &remote.to_string(), place).unwrap();
    begun.extend((0..16).map(|_| begin()));
    let mut connections = Vec::new();
    for connecting in begun {
        connections.push(connecting.await.unwrap());
        round_trip(connections.last().unwrap(), 20_000).await;
    }
    let open = |workers: &[Endpoint]| workers.iter().map(Endpoint::open_connections).sum::<usize>();
    assert!(open(&new) >= 16, "what began later is theirs: {} and {}", open(&old), open(&new));
}
