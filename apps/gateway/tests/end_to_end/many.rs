//! Several workers on one port, and several gateways behind a load balancer.

use crate::operation::ask_admin;
use crate::setup::{Client, Fixture, Origin, get, to, within};
use hvq::balancing::{FirstOctet, QuicLb, QuicLbConfig};
use hvq::{LocalAddress, PathOptions};
use hvq_gateway::configuration::Hex;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::task::JoinSet;

/// More than one worker is sure to have some of them.
const CLIENTS: usize = 24;
const KEY: &str = "8f95f09245765f80256934e50c66207f";

async fn second_path(client: &Client, remote: SocketAddr) {
    let local = LocalAddress::Ip(IpAddr::from(Ipv4Addr::LOCALHOST));
    let second = PathOptions::new("second", local).to(remote);
    let id = within(client.connection.open_path(second)).await.unwrap();
    within(client.connection.path_validated(id)).await.unwrap();
}

async fn move_away(client: &Client) {
    let first = client.connection.paths()[0].id;
    let elsewhere: LocalAddress = "127.0.0.1:0".parse().unwrap();
    within(client.connection.migrate_path(first, elsewhere)).await.unwrap();
}

async fn metric(admin: SocketAddr, line: &str) -> u64 {
    let text = ask_admin(admin, "/metrics", "localhost").await;
    let value = text.lines().find_map(|found| found.strip_prefix(line)?.strip_prefix(' '));
    value.unwrap_or_else(|| panic!("{line} is not in\n{text}")).parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_serve_reload_count_and_stop_as_one() {
    let (first, second) = (Origin::plain().await, Origin::plain().await);
    let text = |origin: &Origin| format!("workers = 3\nadmin = '127.0.0.1:0'\n{}", to(origin.address));
    let mut place = Fixture::new(&text(&first)).await;
    let (addresses, admin) = (place.gateway.local_addrs(), place.gateway.admin_addr().unwrap());
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        let client = place.client().await;
        // The second path comes to another port: a socket of the same worker.
        second_path(&client, addresses[1]).await;
        assert_eq!(client.status(get("/before")).await, 200);
        clients.push(client);
    }
    assert_eq!(place.reload(&text(&second)), Ok(Vec::new()));
    for client in &clients {
        move_away(client).await;
        assert_eq!(client.status(get("/after")).await, 200);
    }
    assert_eq!((first.seen().len(), second.seen().len()), (CLIENTS, CLIENTS), "all workers have what is new");
    assert_eq!(metric(admin, "hvq_gateway_connections").await, CLIENTS as u64);
    assert_eq!(metric(admin, "hvq_gateway_requests_total{status=\"2xx\"}").await, 2 * CLIENTS as u64);
    let paths = metric(admin, "hvq_gateway_paths{channel=\"embb\"}").await;
    assert_eq!(paths, 2 * CLIENTS as u64, "two each, whoever serves them");
    let fewer = place.reload(&text(&second).replace("workers = 3", "workers = 2"));
    assert_eq!(fewer, Ok(vec!["workers"]), "only a restart changes their number");
    let Fixture { gateway, folder, .. } = place;
    within(gateway.stop()).await;
    for client in &clients {
        within(client.connection.closed()).await;
    }
    drop(folder);
    // Sockets are closed by tasks that end a moment later.
    for address in addresses {
        within(async {
            while std::net::UdpSocket::bind(address).is_err() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
    }
}

/// A load balancer that keeps nothing about connections: it reads the server from connection IDs, and has chance decide
/// about those that clients chose (draft-ietf-quic-load-balancers, §4).
struct Balancer {
    address: SocketAddr,
    /// Datagrams by what decided: connection ID, or address.
    decided: Arc<Mutex<[usize; 2]>>,
    _tasks: JoinSet<()>,
}

impl Balancer {
    async fn new(lb: QuicLb, servers: Vec<(Vec<u8>, SocketAddr)>) -> Self {
        let front = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
        let (address, decided) = (front.local_addr().unwrap(), Arc::new(Mutex::new([0; 2])));
        let counts = decided.clone();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut backs: HashMap<(SocketAddr, SocketAddr), Arc<UdpSocket>> = HashMap::new();
            let mut answers = JoinSet::new();
            let mut buffer = vec![0; 65_535];
            while let Ok((size, client)) = front.recv_from(&mut buffer).await {
                let datagram = &buffer[..size];
                let named = destination(datagram).and_then(|id| lb.server_id(id));
                let known = servers.iter().find(|(server, _)| Some(server) == named.as_ref());
                counts.lock().unwrap()[usize::from(known.is_none())] += 1;
                let (_, server) = known.unwrap_or(&servers[usize::from(client.port()) % servers.len()]);
                let back = match backs.get(&(client, *server)) {
                    Some(back) => back.clone(),
                    None => {
                        let back = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
                        back.connect(server).await.unwrap();
                        backs.insert((client, *server), back.clone());
                        answers.spawn(answer(back.clone(), front.clone(), client));
                        back
                    }
                };
                let _sent = back.send(datagram).await;
            }
        });
        Self { address, decided, _tasks: tasks }
    }
}

async fn answer(back: Arc<UdpSocket>, front: Arc<UdpSocket>, client: SocketAddr) {
    let mut buffer = vec![0; 65_535];
    while let Ok(size) = back.recv(&mut buffer).await {
        let _sent = front.send_to(&buffer[..size], client).await;
    }
}

/// The destination connection ID, or more than it where nothing says how long it is (RFC 8999 §5).
fn destination(datagram: &[u8]) -> Option<&[u8]> {
    if datagram.first()? & 0x80 == 0 {
        return datagram.get(1..);
    }
    let length = usize::from(*datagram.get(5)?);
    datagram.get(6..6 + length)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gateways_behind_a_load_balancer_keep_their_connections() {
    for key in [Some(KEY), None] {
        let origin = Origin::plain().await;
        let (mut places, mut servers) = (Vec::new(), Vec::new());
        for server in ["0a01", "0a02", "0a03"] {
            let key = key.map(|key| format!("key = '{key}'\n")).unwrap_or_default();
            let lb = format!("[quic_lb]\nserver_id = '{server}'\nrotation = 2\nnonce = 9\n{key}");
            let text = format!("workers = 2\nadmin = '127.0.0.1:0'\n{}{lb}", to(origin.address));
            let place = Fixture::new(&text).await;
            servers.push((server.parse::<Hex>().unwrap().0, place.gateway.local_addrs()[0]));
            places.push(place);
        }
        let config = QuicLbConfig {
            rotation: 2,
            server_id: vec![0, 0],
            nonce_length: 9,
            key: key.map(|key| key.parse::<Hex>().unwrap().0.try_into().unwrap()),
            first_octet: FirstOctet::Length,
        };
        let balancer = Balancer::new(QuicLb::new(config, [0; 19]).unwrap(), servers).await;
        let mut clients = Vec::new();
        for number in 0..9 {
            // The certificates differ: whichever gateway it gets to, one of them is right.
            let client = connect_to_any(&places, balancer.address).await;
            second_path(&client, balancer.address).await;
            assert_eq!(client.status(get("/one")).await, 200, "{number}");
            move_away(&client).await;
            assert_eq!(client.status(get("/two")).await, 200, "{number}");
            clients.push(client);
        }
        let mut connections = 0;
        for place in &places {
            let here = metric(place.gateway.admin_addr().unwrap(), "hvq_gateway_connections").await;
            connections += here;
        }
        assert_eq!(connections, clients.len() as u64, "no path became a connection of another gateway");
        let [by_id, by_address] = *balancer.decided.lock().unwrap();
        assert!(by_id > by_address && by_address >= clients.len(), "{by_id} {by_address}");
    }
}

/// A client of the gateway that chance takes it to.
async fn connect_to_any(places: &[Fixture], remote: SocketAddr) -> Client {
    within(async {
        loop {
            for place in places {
                if let Ok(client) = place.try_client_at(remote).await {
                    return client;
                }
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
}
