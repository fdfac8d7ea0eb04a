//! Flows of programs with their own stacks, over a connection of QUIC, to hosts on loopback.

use super::endpoint::tests::Program;
use super::*;
use crate::server::destination;
use crate::server::flows::Flows;
use hvq::{
    ClientConfig, ClientTls, Endpoint, EndpointOptions, Identity, Policy, ServerConfig, ServerTls,
    TransportConfig, Verify,
};
use hvq_h3::client::Client as Http;
use hvq_h3::{Settings, Tunnels, serving};
use smoltcp::socket::tcp::{RecvError, Socket, State};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// No test takes as long as this unless it hangs.
const LIMIT: Duration = Duration::from_secs(60);
/// The address of programs, and that of the host as they know it: the far end of the test takes it for loopback.
const INSIDE: Ipv4Addr = Ipv4Addr::new(100, 64, 200, 2);
const HOST: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

/// A lane to a server that takes `places` flows.
struct Place {
    lane: Lane,
    packets: mpsc::UnboundedReceiver<Vec<u8>>,
    unplaced: Vec<Vec<u8>>,
    start: Instant,
    _kept: (Endpoint, Endpoint, JoinSet<()>),
}

fn transport() -> Arc<TransportConfig> {
    Arc::new(TransportConfig::new(Arc::new(|| Policy::default().scheduler())))
}

/// Serves flows on one connection.
async fn serve(connection: hvq::Connection, flows: Arc<Flows>) {
    let settings = Settings { tunnels: Tunnels::Taken, ..Settings::default() };
    let mut http = serving::Server::new(connection, settings).await.unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(http.watch());
    while let Ok(incoming) = http.accept().await {
        let flows = flows.clone();
        tasks.spawn(async move {
            let (request, sending, receiving) = incoming.request(LIMIT).await.unwrap();
            let wanted = destination(&request).unwrap();
            assert_eq!(
                (wanted.ip(), request.headers()["authorization"].as_bytes()),
                (HOST.into(), &b"Bearer t"[..])
            );
            let host = SocketAddr::from((Ipv4Addr::LOCALHOST, wanted.port()));
            let _ended = flows.lead((host, crate::server::Meter::default()), (sending, receiving)).await;
        });
    }
}

impl Place {
    async fn new(places: usize) -> Self {
        let key = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let chain = key.cert.pem().into_bytes();
        let identity =
            Identity::Pem { chain: chain.clone(), key: key.signing_key.serialize_pem().into_bytes() };
        let tls = ServerTls::builder(identity).alpn([hvq_h3::ALPN]).build().unwrap();
        let listener = Endpoint::new(EndpointOptions {
            server: Some(ServerConfig::new(tls, transport())),
            local: vec![IpAddr::from(Ipv4Addr::LOCALHOST).into()],
            ..EndpointOptions::default()
        })
        .unwrap();
        let tls = ClientTls::builder().alpn([hvq_h3::ALPN]).verify(Verify::CaPem(chain)).build().unwrap();
        let dialing = Endpoint::client(&[]).unwrap();
        let remote = listener.local_addr().unwrap();
        let connecting = dialing.connect(ClientConfig::new(tls, transport()), remote, "localhost").unwrap();
        let (client, server) = tokio::join!(connecting, listener.accept());
        let mut tasks = JoinSet::new();
        tasks.spawn(serve(server.unwrap(), Arc::new(Flows::new(places))));
        let settings = Settings { tunnels: Tunnels::Taken, ..Settings::default() };
        let http = Arc::new(Http::new(client.unwrap(), settings).await.unwrap());
        tasks.spawn(http.watch());
        let (packet, packets) = mpsc::unbounded_channel();
        let hand = move |outgoing: Outgoing| drop(packet.send(outgoing.packet));
        let output = Output { hand: Arc::new(hand), offload: Offload::Nothing };
        let requests = Requests::new(http, Some("Bearer t".parse().unwrap()));
        let lane = Lane::new(vec![Prefix::only(INSIDE.into())], requests, output);
        Self { lane, packets, unplaced: Vec::new(), start: Instant::now(), _kept: (dialing, listener, tasks) }
    }

    /// Exchanges packets between `program` and the lane until `done` says so.
    async fn drive(&mut self, program: &mut Program, mut done: impl FnMut(&mut Socket<'static>) -> bool) {
        let driven = async {
            loop {
                self.deliver(program);
                if done(program.socket()) {
                    return;
                }
                self.receive(program).await;
            }
        };
        timeout(LIMIT, driven).await.expect("the test hangs");
    }

    /// Exchanges packets between `program` and the lane until that has no flow any more: the last acknowledgements of a program may
    /// be late.
    async fn drain(&mut self, program: &mut Program) {
        let drained = async {
            while self.lane.flows() > 0 {
                self.deliver(program);
                self.receive(program).await;
            }
        };
        timeout(LIMIT, drained).await.expect("the test hangs");
    }

    /// Hands the packets of `program` to the lane.
    fn deliver(&mut self, program: &mut Program) {
        program.poll(self.start.elapsed());
        for packet in program.sent() {
            let header = Header::read(&packet).unwrap();
            if !self.lane.take(&packet, &header) {
                self.unplaced.push(packet);
            }
        }
    }

    /// Waits for a moment, and hands the packets of the lane to `program`.
    async fn receive(&mut self, program: &mut Program) {
        tokio::select! {
            packet = self.packets.recv() => program.receive(packet.unwrap()),
            syn = self.lane.ended() => self.unplaced.extend(syn),
            () = tokio::time::sleep(Duration::from_millis(2)) => {}
        }
        while let Ok(packet) = self.packets.try_recv() {
            program.receive(packet);
        }
    }

    /// A program that connects to `port` of the host, from its own port `source`.
    fn program(source: u16, port: u16) -> Program {
        Program::new(Tuple { source: (INSIDE, source).into(), destination: (HOST, port).into() })
    }

    /// A program that is connected, and the host's end.
    async fn connected(&mut self, source: u16) -> (Program, TcpStream) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let mut program = Self::program(source, listener.local_addr().unwrap().port());
        self.drive(&mut program, |socket| socket.state() == State::Established).await;
        let (host, _) = listener.accept().await.unwrap();
        (program, host)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_megabytes_go_each_way_and_either_end_may_finish_first() {
    const SIZE: usize = 10_000_000;
    let body =
        || (0..SIZE as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect::<Vec<u8>>();
    let mut place = Place::new(10).await;
    // The program finishes first, and hears everything back; the host finishes last.
    let (mut program, mut host) = place.connected(40_000).await;
    let host = tokio::spawn(async move {
        let mut all = Vec::new();
        host.read_to_end(&mut all).await.unwrap();
        host.write_all(&all).await.unwrap();
        all.len()
    });
    let (sent, mut at, mut received) = (body(), 0, Vec::new());
    place
        .drive(&mut program, |socket| {
            if at < SIZE {
                at += socket.send_slice(&sent[at..]).unwrap();
                if at == SIZE {
                    socket.close();
                }
            }
            loop {
                match socket.recv(|data| (data.len(), data.to_vec())) {
                    Ok(data) if data.is_empty() => return false,
                    Ok(data) => received.extend(data),
                    Err(error) => {
                        assert_eq!(error, RecvError::Finished);
                        return true;
                    }
                }
            }
        })
        .await;
    assert!(received == sent && host.await.unwrap() == SIZE);
    // The host finishes first, and still receives.
    let (mut program, mut host) = place.connected(40_001).await;
    host.write_all(b"all that I have").await.unwrap();
    host.shutdown().await.unwrap();
    place.drive(&mut program, |socket| !socket.may_recv() || socket.state() == State::CloseWait).await;
    program.socket().send_slice(b"more").unwrap();
    program.socket().close();
    let mut all = Vec::new();
    let read = host.read_to_end(&mut all);
    tokio::select! {
        read = read => assert_eq!(read.unwrap(), 4),
        () = place.drive(&mut program, |_| false) => {}
    }
    assert_eq!(all, b"more");
    place.drive(&mut program, |socket| matches!(socket.state(), State::Closed | State::TimeWait)).await;
    place.drain(&mut program).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_refuses_refuses_the_program() {
    let mut place = Place::new(10).await;
    let closed = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap().local_addr().unwrap().port();
    let mut program = Place::program(40_000, closed);
    let begin = Instant::now();
    let mut was_open = false;
    place
        .drive(&mut program, |socket| {
            was_open |= socket.state() == State::Established;
            socket.state() == State::Closed
        })
        .await;
    assert!(!was_open && place.unplaced.is_empty() && begin.elapsed() < Duration::from_secs(5));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn resets_go_both_ways() {
    let mut place = Place::new(10).await;
    let (mut program, mut host) = place.connected(40_000).await;
    program.socket().abort();
    let mut buffer = [0; 10];
    let read = host.read(&mut buffer);
    let error = tokio::select! {
        read = read => read.unwrap_err(),
        () = place.drive(&mut program, |_| false) => unreachable!(),
    };
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    let (mut program, host) = place.connected(40_001).await;
    host.set_zero_linger().unwrap();
    drop(host);
    place.drive(&mut program, |socket| socket.state() == State::Closed).await;
    assert_eq!(program.socket().recv(|_| (0, ())), Err(RecvError::InvalidState), "no end, but a reset");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_does_not_read_stops_the_host() {
    let mut place = Place::new(10).await;
    let (mut program, mut host) = place.connected(40_000).await;
    // It is not polled either: its window closes.
    let mut written = 0;
    let chunk = vec![7; 64 << 10];
    while let Ok(count) = timeout(Duration::from_secs(1), host.write(&chunk)).await {
        written += count.unwrap();
        assert!(written < 100 << 20, "bytes are taken without bound");
    }
    drop(host);
    let mut received = 0;
    place
        .drive(&mut program, |socket| {
            while let Ok(count) = socket.recv(|data| (data.len(), data.len())) {
                if count == 0 {
                    return false;
                }
                received += count;
            }
            true
        })
        .await;
    assert_eq!(received, written, "and goes on when it does");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_openings_and_addresses_of_others_get_no_flow() {
    // K19.
    let mut place = Place::new(10).await;
    let mut taken = 0;
    for source in 1..=10_000 {
        let mut program = Place::program(source, 1);
        program.poll(Duration::ZERO);
        let syn = program.sent().remove(0);
        taken += usize::from(place.lane.take(&syn, &Header::read(&syn).unwrap()));
    }
    assert_eq!((taken, place.lane.flows()), (MOST_FLOWS, MOST_FLOWS));
    let mut place = Place::new(10).await;
    let tuple = Tuple { source: ([10, 9, 8, 7], 40_000).into(), destination: (HOST, 80).into() };
    let mut spoofing = Program::new(tuple);
    spoofing.poll(Duration::ZERO);
    let syn = spoofing.sent().remove(0);
    assert!(!place.lane.take(&syn, &Header::read(&syn).unwrap()) && place.lane.flows() == 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flow_for_which_the_server_has_no_room_goes_as_packets() {
    let mut place = Place::new(0).await;
    let mut program = Place::program(40_000, 80);
    program.poll(Duration::ZERO);
    let syn = program.sent().remove(0);
    let header = Header::read(&syn).unwrap();
    assert!(place.lane.take(&syn, &header));
    assert_eq!(timeout(LIMIT, place.lane.ended()).await.unwrap().as_ref(), Some(&syn));
    assert!(!place.lane.take(&syn, &header), "for good");
}

#[test]
fn segments_that_wait_take_no_more_room_than_windows_need() {
    // K19: a segment may be as long as 64 KiB, and a program need not care for windows.
    let (segments, mut waiting) = mpsc::channel(QUEUE);
    let queue = Queue { segments, room: Arc::new(Semaphore::new(ROOM)) };
    let tuple = Tuple { source: (INSIDE, 1).into(), destination: (HOST, 2).into() };
    let long = vec![0; 65_000];
    (0..QUEUE).for_each(|_| queue.push(tuple, &long));
    let held = std::iter::from_fn(|| waiting.try_recv().ok()).count();
    assert_eq!(held, ROOM / long.len());
    queue.push(tuple, &long);
    assert!(waiting.try_recv().is_ok(), "there is room again");
}
