//! Programs on hvq in virtual time.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use hvq::runtime::{Arrivals, Dscp, Ecn, Outgoing, RemoveSocketError, Runtime};
use hvq::{
    ClientConfig, ClientTls, Connection, ConnectionError, Endpoint, EndpointOptions, LocalAddress,
    OpenPathError, PathEvent, PathEvents, PathId, PathOptions, PathState, Policy, ServerConfig, ServerTls,
    TransportConfig,
};
use hvq_testing::{Clock, Host, Passage, SERVER_NAME, Simulation, Stalled, TraceEvent, identity, trust};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

const SERVER: &str = "10.0.0.1";
const WIFI: &str = "10.1.0.2";
const CELLULAR: &str = "10.2.0.2";

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn transport() -> TransportConfig {
    let mut transport = TransportConfig::new(Arc::new(|| Policy::RoundRobin.scheduler()));
    transport.set_idle_timeout(seconds(30));
    transport
}

fn local(address: &str) -> LocalAddress {
    address.parse().unwrap()
}

/// A phone on two links and a server, which reads streams to their ends.
struct Stage {
    simulation: Simulation,
    phone: Host,
    server: Endpoint,
    client: Endpoint,
}

impl Stage {
    fn new(seed: u64) -> Self {
        let simulation = Simulation::new(seed);
        let machine = simulation.host(&[(SERVER, "")]).unwrap();
        let wifi = (WIFI, "rtt=20ms,rate=50mbit,loss=0.5%");
        let phone = simulation.host(&[wifi, (CELLULAR, "rtt=60ms,rate=20mbit")]).unwrap();
        let tls = ServerTls::builder(identity()).alpn(["test"]).build().unwrap();
        let server = Some(ServerConfig::new(tls, Arc::new(transport())));
        let local = vec![SocketAddr::new(SERVER.parse().unwrap(), 443).into()];
        let server =
            machine.endpoint(EndpointOptions { server, local, ..EndpointOptions::default() }).unwrap();
        let client = phone.endpoint(EndpointOptions::default()).unwrap();
        Self { simulation, phone, server, client }
    }

    async fn connect(&self, transport: TransportConfig) -> (Connection, Connection) {
        let tls = ClientTls::builder().alpn(["test"]).verify(trust()).build().unwrap();
        let config = ClientConfig::new(tls, Arc::new(transport));
        // The socket is bound without a word about addresses: to the first of the host.
        let near = self.client.connect(config, self.server.local_addrs()[0], SERVER_NAME).unwrap().await;
        (near.unwrap(), self.server.accept().await.unwrap())
    }

    fn clock(&self) -> Clock {
        self.simulation.clock()
    }
}

/// Sends `bytes` over a stream to the other end, which reads it to its end; waits for that.
async fn transfer(stage: &Stage, near: &Connection, far: &Connection, bytes: usize) {
    let far = far.clone();
    stage.simulation.spawn(async move {
        let (mut send, mut receive) = far.accept_bi().await.unwrap();
        let received = receive.read_to_end(bytes).await.unwrap().len();
        send.write_all(received.to_string().as_bytes()).await.unwrap();
        send.finish().unwrap();
    });
    let (mut send, mut receive) = near.open_bi().await.unwrap();
    send.write_all(&vec![7; bytes]).await.unwrap();
    send.finish().unwrap();
    let answer = receive.read_to_end(20).await.unwrap();
    assert_eq!(answer, bytes.to_string().as_bytes());
}

#[test]
fn ten_minutes_of_silence_take_a_moment_and_a_keep_alive_outlives_them() {
    let began = std::time::Instant::now();
    let stage = Stage::new(1);
    let result = stage.simulation.run(async {
        let mut lively = transport();
        lively.set_keep_alive(Some(seconds(10)));
        let (kept, far) = stage.connect(lively).await;
        let (silent, _far) = stage.connect(transport()).await;
        stage.simulation.record();
        stage.clock().sleep(seconds(600)).await;
        let ended = silent.closed().await;
        transfer(&stage, &kept, &far, 1_000).await;
        (ended, stage.clock().now())
    });
    let (ended, now) = result.unwrap();
    assert_eq!(ended, ConnectionError::IdleTimeout);
    assert!((seconds(600)..seconds(602)).contains(&now), "{now:?}");
    let sent = stage.simulation.trace().iter().filter(|event| event.passage == Passage::Sent).count();
    assert!((110..400).contains(&sent), "{sent} datagrams: a PING each ten seconds and its answer");
    // Generous, because the machine may be busy.
    assert!(began.elapsed() < seconds(20), "{:?}", began.elapsed());
}

/// A download over two paths, of which one dies under way: the trace, and the time that it took.
fn one_of_two_dies(seed: u64) -> (Vec<TraceEvent>, Duration) {
    let stage = Stage::new(seed);
    stage.simulation.record();
    let took = stage.simulation.run(async {
        let (near, far) = stage.connect(transport()).await;
        let options = PathOptions::new("cellular", local(CELLULAR));
        let second = near.open_path(options).await.unwrap();
        let began = stage.clock().now();
        let (phone, clock) = (stage.phone.clone(), stage.clock());
        stage.simulation.spawn(async move {
            clock.sleep(Duration::from_millis(150)).await;
            phone.cut(WIFI.parse().unwrap());
        });
        transfer(&stage, &near, &far, 2_000_000).await;
        let states: Vec<_> = near.paths().iter().map(|path| path.state).collect();
        assert_eq!(states, [PathState::Silent, PathState::Validated]);
        let sent = near.path(second).unwrap().stats.counters.bytes_sent;
        assert!(sent > 1_000_000, "{sent} bytes over the path that lives");
        stage.clock().now() - began
    });
    (stage.simulation.trace(), took.unwrap())
}

#[test]
fn a_path_that_dies_under_a_download_is_outlived_and_equal_seeds_give_equal_traces() {
    let (trace, took) = one_of_two_dies(7);
    assert!((Duration::from_millis(600)..seconds(3)).contains(&took), "{took:?}");
    let lost = trace.iter().filter(|event| event.passage == Passage::Lost).count();
    assert!(lost > 0 && trace.len() > 3_000, "{lost} of {}", trace.len());
    for _ in 0..3 {
        let again = one_of_two_dies(7);
        let differs = trace.iter().zip(&again.0).position(|(one, other)| one != other);
        assert_eq!(differs, None);
        assert_eq!((again.0.len(), again.1), (trace.len(), took));
    }
    assert_ne!(one_of_two_dies(8).0, trace);
}

/// The address at which the first path of `connection` begins.
fn beginning(connection: &Connection) -> SocketAddr {
    connection.path(PathId::ZERO).unwrap().stats.tuple.local
}

/// The next path that is given up, with its code.
async fn abandoned(events: &mut PathEvents) -> (PathId, u64) {
    loop {
        if let PathEvent::Abandoned { path, code } = events.recv().await.unwrap() {
            return (path, code);
        }
    }
}

fn ids(connection: &Connection) -> Vec<PathId> {
    connection.paths().iter().map(|path| path.id).collect()
}

impl Stage {
    /// Adds a socket of the phone at `address` to the client.
    fn add(&self, address: SocketAddr) -> SocketAddr {
        let socket = self.phone.bind_udp_socket(address).unwrap().unwrap();
        self.client.add_abstract_socket(socket).unwrap()
    }
}

/// The code of PATH_ABANDON for a path without a socket: PATH_UNSTABLE_OR_POOR.
const GONE: u64 = 0x3e76;

#[test]
fn a_socket_that_is_removed_under_an_upload_takes_its_path_along_and_may_come_back() {
    let stage = Stage::new(5);
    stage.simulation.record();
    let result = stage.simulation.run(async {
        let (near, far) = stage.connect(transport()).await;
        let (wifi, mut told) = (beginning(&near), far.path_events());
        let second = near.open_path(PathOptions::new("cellular", local(CELLULAR))).await.unwrap();
        let (client, clock, removal) =
            (stage.client.clone(), stage.clock(), stage.clock().now() + Duration::from_millis(150));
        stage.simulation.spawn(async move {
            clock.sleep(Duration::from_millis(150)).await;
            client.remove_socket(wifi).unwrap();
        });
        transfer(&stage, &near, &far, 2_000_000).await;
        assert_eq!(abandoned(&mut told).await, (PathId::ZERO, GONE));
        assert_eq!((ids(&near), ids(&far)), (vec![second], vec![second]));
        assert_eq!(stage.client.remove_socket(wifi), Err(RemoveSocketError::Unknown(wifi)));
        let back = stage.clock().now();
        assert!(removal < back);
        assert_eq!(stage.add(wifi), wifi);
        let third = near.open_path(PathOptions::new("wifi", wifi)).await.unwrap();
        assert_eq!(near.path(third).unwrap().stats.tuple.local, wifi);
        transfer(&stage, &near, &far, 1_000_000).await;
        (wifi, removal, back)
    });
    let (wifi, removal, back) = result.unwrap();
    let sent = |from: Duration, until: Duration| {
        let of = |event: &&TraceEvent| event.from == wifi && event.passage == Passage::Sent;
        let trace = stage.simulation.trace();
        trace.iter().filter(of).filter(|event| (from..until).contains(&event.at)).count()
    };
    assert!(sent(Duration::ZERO, removal) > 100);
    assert_eq!(sent(removal + Duration::from_nanos(1), back), 0);
    assert!(sent(back, seconds(100)) > 100);
}

#[test]
fn a_connection_whose_only_path_has_no_socket_waits_for_the_socket_or_for_another_path() {
    let stage = Stage::new(6);
    let result = stage.simulation.run(async {
        let (near, far) = stage.connect(transport()).await;
        let (wifi, mut told) = (beginning(&near), far.path_events());
        assert_eq!(stage.client.remove_socket(wifi), Err(RemoveSocketError::Last(wifi)));
        stage.add(SocketAddr::new(CELLULAR.parse().unwrap(), 0));
        stage.client.remove_socket(wifi).unwrap();
        stage.clock().sleep(seconds(1)).await;
        assert_eq!(ids(&near), [PathId::ZERO], "there is no other one");
        // It comes back, and so does the path.
        assert_eq!(stage.add(wifi), wifi);
        transfer(&stage, &near, &far, 100_000).await;
        stage.client.remove_socket(wifi).unwrap();
        let (opener, clock) = (near.clone(), stage.clock());
        stage.simulation.spawn(async move {
            clock.sleep(seconds(1)).await;
            opener.open_path(PathOptions::new("cellular", local(CELLULAR))).await.unwrap();
        });
        transfer(&stage, &near, &far, 100_000).await;
        assert_eq!(abandoned(&mut told).await, (PathId::ZERO, GONE));
        assert_eq!((ids(&near), ids(&near).contains(&PathId::ZERO)), (ids(&far), false));
    });
    assert_eq!(result, Ok(()));
}

#[test]
fn waiting_for_a_path_that_leads_nowhere_costs_no_time() {
    let stage = Stage::new(3);
    let error = stage.simulation.run(async {
        let (near, _far) = stage.connect(transport()).await;
        stage.phone.cut(CELLULAR.parse().unwrap());
        let before = stage.clock().now();
        let error = near.open_path(PathOptions::new("cellular", local(CELLULAR))).await.unwrap_err();
        assert!(stage.clock().now() - before > Duration::from_millis(500));
        error
    });
    assert!(matches!(error, Ok(OpenPathError::Unreachable(_))), "{error:?}");
}

#[test]
fn what_cannot_happen_is_an_error() {
    let simulation = Simulation::new(1);
    assert_eq!(simulation.run(std::future::pending::<()>()), Err(Stalled::Idle));
    let busy = std::future::poll_fn(|context| {
        context.waker().wake_by_ref();
        std::task::Poll::<()>::Pending
    });
    assert_eq!(simulation.run(busy), Err(Stalled::Busy));
    let host = simulation.host(&[("10.0.0.1", "rtt=1ms"), ("2001:db8::1", "")]).unwrap();
    for (address, reason) in [("10.0.0.1", "already"), ("10.0.0", "no IP address")] {
        let error = simulation.host(&[(address, "")]).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
    assert!(simulation.host(&[("10.0.0.9", "rtt=soon")]).is_err());
    let bind = |address: &str| {
        host.endpoint(EndpointOptions { local: vec![local(address)], ..EndpointOptions::default() })
    };
    let first = bind("10.0.0.1:443").unwrap();
    assert_eq!(bind("10.0.0.1:443").unwrap_err().kind(), io::ErrorKind::AddrInUse);
    assert_eq!(bind("10.0.0.2:443").unwrap_err().kind(), io::ErrorKind::AddrNotAvailable);
    assert_eq!(bind("[::]:0").unwrap().local_addr().unwrap().ip(), host.addresses()[0]);
    drop(first);
    // The driver closes its socket once it had its turn.
    let slept = simulation.run(simulation.clock().sleep(seconds(1)));
    assert_eq!(slept, Ok(()));
    assert!(bind("10.0.0.1:443").is_ok());
}

#[test]
fn an_endpoint_outlives_its_simulation_as_a_dead_one() {
    let stage = Stage::new(1);
    let Stage { simulation, client, server, .. } = stage;
    drop(simulation);
    let waiting = std::pin::pin!(client.stopped());
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(waiting.poll(&mut context).is_ready());
    drop(server);
}

fn datagram(remote: SocketAddr, contents: &[u8]) -> Outgoing<'_> {
    let (ecn, segment) = (Ecn::Ect0, contents.len());
    Outgoing { remote, source: None, ecn, dscp: Dscp::DEFAULT, contents, segment }
}

#[test]
fn channels_delay_mark_and_lose_what_sockets_send() {
    let simulation = Simulation::new(1);
    let far = simulation.host(&[("10.0.0.1", "down.delay=4ms")]).unwrap();
    let near = simulation.host(&[("10.0.0.2", "up.delay=3ms,up.rate=1mbit,up.ecn=1p")]).unwrap();
    let bind = |host: &Host, at: &str| host.bind_udp_socket(at.parse().unwrap()).unwrap().unwrap();
    let (far, near) = (bind(&far, "10.0.0.1:9"), bind(&near, "0.0.0.0:0"));
    simulation.record();
    let remote = far.local_addr().unwrap();
    // One that is too large, one that waits for nobody, one that finds another in the queue, and one for nobody.
    for (to, size) in [(remote, 1_473), (remote, 1_250), (remote, 1_472), (([10, 0, 0, 7], 9).into(), 10)] {
        assert_eq!(near.try_send(&datagram(to, &vec![1; size])).unwrap(), size);
    }
    let mut arrivals = Arrivals::default();
    let received = simulation.run(async {
        while arrivals.datagrams().len() < 2 {
            std::future::poll_fn(|context| far.poll_receive(context, &mut arrivals)).await.unwrap();
        }
        simulation.clock().now()
    });
    assert_eq!(received, Ok(Duration::from_micros(10_000 + 11_776 + 3_000 + 4_000)), "both of 1 Mbit/s");
    let marks: Vec<_> = arrivals.datagrams().iter().map(|one| (one.bytes.len(), one.ecn)).collect();
    assert_eq!(marks, [(1_250, Ecn::Ect0), (1_472, Ecn::Ce)]);
    let lost = simulation.trace().into_iter().filter(|event| event.passage == Passage::Lost);
    assert_eq!(lost.map(|event| event.bytes).collect::<Vec<_>>(), [1_473, 10]);
}

#[test]
fn a_wait_that_is_given_up_is_waited_for_no_more() {
    let simulation = Simulation::new(1);
    let clock = simulation.clock();
    let given_up = simulation.run(async {
        let mut long = Box::pin(clock.sleep(seconds(3_600)));
        std::future::poll_fn(|context| std::task::Poll::Ready(long.as_mut().poll(context).is_pending())).await
    });
    assert_eq!(given_up, Ok(true));
    assert_eq!(simulation.run(std::future::pending::<()>()), Err(Stalled::Idle));
    assert_eq!(clock.now(), Duration::ZERO);
    let mut timer = simulation.host(&[("10.0.0.1", "")]).unwrap().new_timer();
    let began = std::time::Instant::now();
    let ring = std::future::poll_fn(|context| {
        // Polled with another deadline, it rings no more at the first.
        let _pending = timer.poll(began + seconds(7_200), context);
        let _pending = timer.poll(began + seconds(3_600), context);
        std::task::Poll::<()>::Pending
    });
    assert_eq!(simulation.run(ring), Err(Stalled::Idle));
    assert!(clock.now() <= seconds(3_601), "{:?}", clock.now());
}

#[test]
fn chance_is_the_seed_s() {
    let draw = |seed| {
        let (mut bytes, simulation) = ([0; 32], Simulation::new(seed));
        simulation.host(&[("10.0.0.1", "")]).unwrap().fill_random(&mut bytes).unwrap();
        bytes
    };
    assert_eq!(draw(1), draw(1));
    assert_ne!(draw(1), draw(2));
}
