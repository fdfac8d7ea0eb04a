//! Several paths over loopback addresses.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use common::{NAME, Pair, Pki, local, pattern, transport, transport_of, within};
use hvq::path::Status;
use hvq::{
    Bandwidth, ConnectOptions, Connection, Endpoint, Hints, MigratePathError, OpenPathError, PathEvent,
    PathId, PathOptions, PathState, Policy,
};
use std::time::Duration;

/// Sends `data` from server to client, while `meanwhile` goes on.
async fn transfer(pair: &Pair, data: &[u8], meanwhile: impl Future<Output = ()>) {
    let send = async {
        let mut stream = pair.far.open_uni().await.unwrap();
        stream.write_all(data).await.unwrap();
        stream.finish().unwrap();
    };
    let receive = async {
        let mut stream = pair.near.accept_uni().await.unwrap();
        stream.read_to_end(1 << 30).await.unwrap()
    };
    let (_, back, _) = within(async { tokio::join!(send, receive, meanwhile) }).await;
    assert!(back == data);
}

fn sent(connection: &Connection, path: PathId) -> u64 {
    connection.path(path).map_or(0, |path| path.stats.counters.bytes_sent)
}

async fn two_paths(policy: Policy) -> (Pair, PathId) {
    let pair = Pair::on(&["127.0.0.1:0", "127.0.0.2:0"], transport_of(policy), transport_of(policy)).await;
    let options = PathOptions::new("second", local("127.0.0.2")).to(pair.server.local_addrs()[1]);
    let path = within(pair.near.open_path(options)).await.unwrap();
    (pair, path)
}

#[tokio::test]
async fn two_paths_carry_a_transfer_and_one_is_enough_for_the_rest() {
    let (pair, second) = two_paths(Policy::RoundRobin).await;
    let paths = pair.near.paths();
    assert_eq!(paths.iter().map(|path| path.id).collect::<Vec<_>>(), [PathId(0), second]);
    assert_eq!((paths[1].name.as_deref(), paths[1].state), (Some("second"), PathState::Validated));
    assert_eq!(paths[1].stats.tuple.local.ip(), std::net::IpAddr::from([127, 0, 0, 2]));
    // However quick one of them is, the other gets its part before long.
    within(async {
        while [PathId(0), second].iter().any(|path| sent(&pair.far, *path) <= 30_000) {
            transfer(&pair, &pattern(1_000_000), async {}).await;
        }
    })
    .await;
    let mut events = pair.far.path_events();
    let abandon = async {
        tokio::time::sleep(Duration::from_millis(5)).await;
        pair.near.abandon_path(PathId(0), 0).unwrap();
    };
    transfer(&pair, &pattern(5_000_000), abandon).await;
    assert_eq!(pair.near.paths().len(), 1);
    let gone = within(async {
        loop {
            match events.recv().await {
                Some(PathEvent::Abandoned { path, .. }) => return path,
                Some(_) => {}
                None => panic!("the connection ended"),
            }
        }
    });
    assert_eq!(gone.await, PathId(0));
}

#[tokio::test]
async fn a_transfer_outlives_a_path_that_is_cut() {
    // The second path leads through a relay, which stops.
    let pair = Pair::with(transport_of(Policy::RoundRobin), transport_of(Policy::RoundRobin)).await;
    let relay = Relay::start(pair.server_addr()).await;
    let options = PathOptions::new("relayed", local("127.0.0.1:0")).to(relay.address);
    let path = within(pair.near.open_path(options)).await.unwrap();
    let piece = pattern(1 << 20);
    // The transfer lasts until the path that is cut was in use, however quick the other one is, and goes on after that.
    let send = async {
        let mut stream = pair.far.open_uni().await.unwrap();
        let mut length = 0;
        while sent(&pair.far, path) < 100_000 {
            stream.write_all(&piece).await.unwrap();
            length += piece.len();
        }
        relay.task.abort();
        for _ in 0..10 {
            stream.write_all(&piece).await.unwrap();
            length += piece.len();
        }
        stream.finish().unwrap();
        length
    };
    let receive = async {
        let mut stream = pair.near.accept_uni().await.unwrap();
        let mut length = 0;
        while let Some(chunk) = stream.read_chunk(1 << 20).await.unwrap() {
            assert!(chunk.iter().zip(length..).all(|(byte, at)| *byte == piece[at % piece.len()]));
            length += chunk.len();
        }
        length
    };
    let (sent, received) = within(async { tokio::join!(send, receive) }).await;
    assert_eq!(received, sent);
    assert_eq!(pair.near.close_reason(), None);
}

/// Carries datagrams between one client and a server.
struct Relay {
    address: std::net::SocketAddr,
    task: tokio::task::JoinHandle<()>,
}

impl Relay {
    async fn start(server: std::net::SocketAddr) -> Self {
        let near = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let far = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
        far.connect(server).await.unwrap();
        let address = near.local_addr().unwrap();
        let task = tokio::spawn(async move {
            let (mut up, mut down, mut client) = (vec![0; 65_536], vec![0; 65_536], None);
            loop {
                tokio::select! {
                    Ok((length, from)) = near.recv_from(&mut up) => {
                        client = Some(from);
                        far.send(&up[..length]).await.unwrap();
                    }
                    Ok(length) = far.recv(&mut down) => {
                        if let Some(client) = client {
                            near.send_to(&down[..length], client).await.unwrap();
                        }
                    }
                }
            }
        });
        Self { address, task }
    }
}

#[tokio::test]
async fn a_path_that_leads_nowhere_is_reported_and_the_connection_goes_on() {
    let mut hasty = transport();
    hasty.set_validation_timeout(Duration::from_millis(500));
    let pair = Pair::with(hasty, transport()).await;
    let nobody = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let options = PathOptions::new("nowhere", local("127.0.0.1:0")).to(nobody.local_addr().unwrap());
    let error = within(pair.near.open_path(options)).await.unwrap_err();
    assert!(matches!(error, OpenPathError::Unreachable(_)), "{error}");
    transfer(&pair, &pattern(100_000), async {}).await;
}

#[tokio::test]
async fn data_may_flow_before_a_path_is_validated() {
    let pair = Pair::with(transport(), transport()).await;
    let mut events = pair.near.path_events();
    let path = within(pair.near.start_path(PathOptions::new("fast", local("127.0.0.1:0")))).await.unwrap();
    assert!(pair.near.path(path).is_some());
    within(pair.near.path_validated(path)).await.unwrap();
    let validated = within(async {
        while let Some(event) = events.recv().await {
            if event == PathEvent::Validated(path) {
                return true;
            }
        }
        false
    });
    assert!(validated.await);
}

#[tokio::test]
async fn what_is_wrong_with_a_path_is_said() {
    let mut single = transport();
    single.set_multipath(hvq::Multipath::Off);
    let pair = Pair::with(single, transport()).await;
    let options = || PathOptions::new("second", local("127.0.0.1:0"));
    let error = within(pair.near.open_path(options())).await.unwrap_err();
    assert!(error.to_string().contains("multipath was not negotiated"), "{error}");
    let pair = Pair::new().await;
    let error = within(pair.far.open_path(options())).await.unwrap_err();
    assert!(error.to_string().contains("only a client"), "{error}");
    let error =
        within(pair.near.open_path(PathOptions::new("wrong", local("no-such-if0")))).await.unwrap_err();
    assert!(error.to_string().contains("no-such-if0"), "{error}");
    assert_eq!(pair.client.local_addrs().len(), 1);
    assert!(pair.near.abandon_path(PathId(0), 0).is_err());
    assert!(pair.near.set_path_status(PathId(9), Status::Backup).is_err());
}

#[tokio::test]
async fn hints_and_status_are_passed_on() {
    let (pair, second) = two_paths(Policy::Hvc).await;
    let hints = Hints { rate: Some(Bandwidth::from_mbit(2)), ..Hints::NONE };
    pair.near.set_hints(second, hints).unwrap();
    assert_eq!(pair.near.path(second).unwrap().stats.rate, hints.rate);
    let mut events = pair.far.path_events();
    pair.near.set_path_status(second, Status::Backup).unwrap();
    let news = within(async {
        loop {
            if let Some(PathEvent::PeerStatus(path, status)) = events.recv().await {
                return (path, status);
            }
        }
    });
    assert_eq!(news.await, (second, Status::Backup));
}

#[tokio::test]
async fn a_client_without_sockets_binds_them_as_needed_and_closes_them() {
    let pki = Pki::new();
    let server = Endpoint::server(pki.server(transport()), &[local("127.0.0.1:0")]).unwrap();
    let client = Endpoint::client(&[]).unwrap();
    let path: PathOptions = "urllc=127.0.0.3:0,rate=2mbit,delay=2.5ms,congestion=copa".parse().unwrap();
    let options = ConnectOptions::new(server.local_addrs()[0], NAME).over(&path);
    let connecting = client.connect_with(pki.client(transport()), options).unwrap();
    let (near, far) = within(async { tokio::join!(connecting, server.accept()) }).await;
    let (near, far) = (near.unwrap(), far.unwrap());
    assert_eq!(far.remote_address().ip(), std::net::IpAddr::from([127, 0, 0, 3]));
    let first = near.path(PathId(0)).unwrap();
    assert_eq!((first.name.as_deref(), first.stats.rate), (Some("urllc"), Some(Bandwidth::from_mbit(2))));
    within(near.open_path("embb=127.0.0.4,congestion=vivace".parse().unwrap())).await.unwrap();
    let controllers: Vec<_> = near.paths().iter().map(|path| path.stats.controller).collect();
    assert_eq!(controllers, ["copa", "vivace"]);
    near.set_congestion(PathId(1), hvq::congestion::Algorithm::Olia).unwrap();
    assert_eq!(near.path(PathId(1)).unwrap().stats.controller, "olia");
    assert!(near.set_congestion(PathId(9), hvq::congestion::Algorithm::Olia).is_err());
    assert_eq!(client.local_addrs().len(), 2);
    near.close(0, b"");
    within(client.wait_idle()).await;
    assert_eq!(client.local_addrs(), []);
    drop(far);
    within(server.wait_idle()).await;
}

#[tokio::test]
async fn a_server_on_all_addresses_is_reached_at_two_of_them_by_one_connection() {
    let pair = {
        let pki = Pki::new();
        let server = Endpoint::server(pki.server(transport()), &[local("0.0.0.0:0")]).unwrap();
        let client = Endpoint::client(&[local("0.0.0.0:0")]).unwrap();
        let port = server.local_addrs()[0].port();
        let connecting =
            client.connect(pki.client(transport()), ([127, 0, 0, 1], port).into(), NAME).unwrap();
        let (near, far) = within(async { tokio::join!(connecting, server.accept()) }).await;
        Pair { pki, server, client, near: near.unwrap(), far: far.unwrap() }
    };
    let port = pair.server_addr().port();
    let options = PathOptions::new("second", local("127.0.0.1:0")).to(([127, 0, 0, 2], port).into());
    let path = within(pair.near.open_path(options)).await.unwrap();
    let far = pair.far.path(path).unwrap();
    assert_eq!(far.stats.tuple.local, ([127, 0, 0, 2], port).into());
    transfer(&pair, &pattern(500_000), async {}).await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_path_may_start_at_an_interface() {
    let pair = Pair::new().await;
    let path = within(pair.near.open_path("loopback=lo".parse().unwrap())).await.unwrap();
    assert_eq!(pair.near.path(path).unwrap().name.as_deref(), Some("loopback"));
    transfer(&pair, &pattern(300_000), async {}).await;
}

#[tokio::test]
async fn a_server_on_all_addresses_of_both_versions_serves_both() {
    let pki = Pki::new();
    let Ok(server) = Endpoint::server(pki.server(transport()), &[local("[::]:0")]) else {
        // The machine has no IPv6: there is nothing to serve.
        assert!(std::net::UdpSocket::bind("[::1]:0").is_err());
        return;
    };
    let client = Endpoint::client(&[]).unwrap();
    for address in ["127.0.0.1", "::1"] {
        let remote = std::net::SocketAddr::new(address.parse().unwrap(), server.local_addrs()[0].port());
        let connecting = client.connect(pki.client(transport()), remote, NAME).unwrap();
        let (near, far) = within(async { tokio::join!(connecting, server.accept()) }).await;
        let (near, _far) = (near.unwrap(), far.unwrap());
        assert_eq!(near.remote_address(), remote);
    }
}

#[tokio::test]
async fn a_path_moves_to_another_port_and_address_while_data_flows() {
    let (pair, second) = two_paths(Policy::RoundRobin).await;
    for target in ["127.0.0.1:0", "127.0.0.3:0"] {
        let before = pair.near.path(second).unwrap().stats.tuple;
        let moved = async {
            tokio::time::sleep(Duration::from_millis(2)).await;
            within(pair.near.migrate_path(second, local(target))).await.unwrap();
        };
        transfer(&pair, &pattern(3_000_000), moved).await;
        let after = pair.near.path(second).unwrap().stats.tuple;
        assert_ne!(before.local, after.local);
        // The server follows with the next packet that does more than probe.
        let followed = || pair.far.path(second).unwrap().stats.tuple.remote == after.local;
        within(async {
            while !followed() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await;
    }
}

#[tokio::test]
async fn a_move_that_is_asked_for_too_early_waits_until_the_handshake_is_confirmed() {
    // RFC 9000 §9: not before the server's HANDSHAKE_DONE, a round trip after the application has the connection.
    let pki = Pki::new();
    let server = Endpoint::server(pki.server(transport()), &[local("127.0.0.1:0")]).unwrap();
    let client = Endpoint::client(&[]).unwrap();
    for _ in 0..10 {
        let connecting = client.connect(pki.client(transport()), server.local_addrs()[0], NAME).unwrap();
        let moving = async {
            let near = connecting.await.unwrap();
            let before = near.path(PathId::ZERO).unwrap().stats.tuple.local;
            near.migrate_path(PathId::ZERO, local("127.0.0.1:0")).await.unwrap();
            assert_ne!(near.path(PathId::ZERO).unwrap().stats.tuple.local, before);
        };
        let ((), far) = within(async { tokio::join!(moving, server.accept()) }).await;
        let _far = far.unwrap();
    }
}

#[tokio::test]
async fn an_endpoint_rebinds_all_paths_of_a_socket_at_once() {
    let (pair, second) = two_paths(Policy::RoundRobin).await;
    let from = pair.near.path(second).unwrap().stats.tuple.local;
    let mut events = pair.near.path_events();
    assert_eq!(pair.client.rebind(from, &local("127.0.0.4:0")).unwrap(), 1);
    within(async { while events.recv().await != Some(PathEvent::Migrated(second)) {} }).await;
    transfer(&pair, &pattern(1_000_000), async {}).await;
    assert_eq!(
        pair.near.path(second).unwrap().stats.tuple.local.ip(),
        std::net::IpAddr::from([127, 0, 0, 4])
    );
    let error = pair.far.migrate_path(second, local("127.0.0.1:0")).await.unwrap_err();
    assert!(matches!(error, MigratePathError::Refused(_)), "{error}");
}

#[tokio::test]
async fn a_connection_begins_where_the_handshake_is_sooner_done_if_hints_tell() {
    let (pki, endpoint) = (Pki::new(), Endpoint::client(&[]).unwrap());
    let first = |policy, delays: [Option<u64>; 2]| {
        let named = |name, address, rate, delay: Option<u64>| {
            let rate = Some(Bandwidth::from_mbit(rate));
            let delay = delay.map(Duration::from_millis);
            PathOptions::new(name, local(address)).with_hints(Hints { rate, delay, ..Hints::NONE })
        };
        let paths = [named("embb", "127.0.0.1", 100, delays[0]), named("urllc", "127.0.0.2", 2, delays[1])];
        endpoint.first_path(&pki.client(transport_of(policy)), ([127, 0, 0, 3], 443).into(), &paths)
    };
    assert_eq!(first(Policy::Hvc, [Some(50), Some(3)]), 1);
    assert_eq!(first(Policy::Hvc, [Some(15), Some(3)]), 0);
    assert_eq!(first(Policy::Hvc, [None, Some(3)]), 0, "nothing tells of the first");
    assert_eq!(first(Policy::MinRtt, [Some(50), Some(3)]), 0, "it leaves the choice to the application");
}
