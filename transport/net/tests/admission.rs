//! A server that one address floods with handshakes, over the sockets of this machine: attacks.md K4. It measures the machine as
//! much as the server, so that it is run by hand (`make admission`).
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use bytes::BytesMut;
use common::{NAME, Pki, local, transport, within};
use hvq::config::{Greasing, Version};
use hvq::stats::EndpointStats;
use hvq::transport::crypto::initial::initial_keys;
use hvq::transport::crypto::session::{Session, SessionOutput};
use hvq::transport::wire::connection_id::ConnectionId;
use hvq::transport::wire::frame::{Crypto, Frame};
use hvq::transport::wire::grease::QuicBit;
use hvq::transport::wire::header::{Incoming, LongHeader, LongKind, next_packet, patch_length};
use hvq::transport::wire::transport_parameters::TransportParameters;
use hvq::{Connection, Endpoint, PathId, Role};
use rand::SeedableRng;
use rand::rngs::StdRng;
use std::fmt::Write;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Handshakes that the attacker begins in a second.
const RATES: [u64; 4] = [0, 250, 1_000, 10_000];
/// The duration of each flood.
const LENGTH: Duration = Duration::from_secs(15);
/// Time in which slots fill before anybody is looked at.
const WARM: Duration = Duration::from_secs(1);
/// The time from one honest client to the next.
const GAP: Duration = Duration::from_millis(25);
/// The bound on the time that others may wait longer at p99.
const BOUND: Duration = Duration::from_millis(50);
const SOURCE: [u8; 8] = [5; 8];
const TAG: usize = 16;

/// The ClientHello of a client, as a CRYPTO frame.
fn hello(pki: &Pki) -> Vec<u8> {
    let tls = pki.client(transport()).tls().clone();
    let parameters = TransportParameters {
        initial_source_connection_id: ConnectionId::new(&SOURCE),
        ..TransportParameters::default()
    };
    let parameters = parameters.encode(Role::Client, Greasing::Off, &mut StdRng::seed_from_u64(1));
    let mut session = Session::client(&tls, NAME, &parameters).unwrap();
    session.start().unwrap();
    let mut hello = Vec::new();
    while let Some(output) = session.poll() {
        if let SessionOutput::Send { data, .. } = output {
            hello.extend_from_slice(&data);
        }
    }
    let mut frame = Vec::new();
    Frame::Crypto(Crypto { offset: 0, data: hello.into() }).put(&mut frame);
    frame
}

/// A client's first datagram.
fn initial(destination: ConnectionId, token: &[u8], payload: &[u8]) -> Vec<u8> {
    let source = ConnectionId::new(&SOURCE).unwrap();
    let header = LongHeader { kind: LongKind::Initial, version: Version::V1, destination, source, token };
    let mut bytes = Vec::new();
    let layout = header.put(&mut bytes, 0, 4);
    bytes.extend(payload);
    bytes.resize(bytes.len().max(1_200 - TAG), 0);
    patch_length(&mut bytes, &layout, 0, TAG);
    let (seal, _) = initial_keys(Version::V1, &destination, Role::Client);
    seal.seal(&mut bytes, 0, &layout, PathId::ZERO, 0);
    bytes
}

/// The attacker's counters.
#[derive(Default)]
struct Flood {
    begun: AtomicU64,
    followed: AtomicU64,
    over: AtomicBool,
}

/// Begins `rate` handshakes a second at `server` from one address, proves it whenever it is asked to, and says no more.
fn flood(flood: &Flood, rate: u64, server: SocketAddr, hello: &[u8]) {
    let socket = UdpSocket::bind("127.9.9.9:0").unwrap();
    socket.connect(server).unwrap();
    socket.set_nonblocking(true).unwrap();
    let (start, mut buffer) = (Instant::now(), [0; 2_048]);
    let mut number = 0_u64;
    while !flood.over.load(Ordering::Relaxed) {
        let due = (start.elapsed().as_micros() as u64 * rate) / 1_000_000;
        while number < due {
            number += 1;
            let id = ConnectionId::new(&number.to_be_bytes()).unwrap();
            flood
                .begun
                .fetch_add(u64::from(socket.send(&initial(id, &[], hello)).is_ok()), Ordering::Relaxed);
            if number.is_multiple_of(16) {
                follow(flood, &socket, &mut buffer, hello);
            }
        }
        follow(flood, &socket, &mut buffer, hello);
        thread::sleep(Duration::from_micros(500));
    }
}

fn follow(flood: &Flood, socket: &UdpSocket, buffer: &mut [u8], hello: &[u8]) {
    while let Ok(length) = socket.recv(buffer) {
        let mut bytes = BytesMut::from(&buffer[..length]);
        if let Ok(Incoming::Retry { source, token, .. }) =
            next_packet(&mut bytes, SOURCE.len(), QuicBit::Fixed)
        {
            let sent = socket.send(&initial(source, &token, hello));
            flood.followed.fetch_add(u64::from(sent.is_ok()), Ordering::Relaxed);
        }
    }
}

/// Holds whatever connects, in a thread of its own.
fn serve(pki: &Pki) -> (SocketAddr, std::sync::mpsc::Sender<()>, thread::JoinHandle<EndpointStats>) {
    let config = pki.server(transport());
    let (tell, told) = std::sync::mpsc::channel();
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let thread = thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let server = Endpoint::server(config, &[local("127.0.0.1:0")]).unwrap();
            tell.send(server.local_addrs()[0]).unwrap();
            let mut held: Vec<Connection> = Vec::new();
            while stopped.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
                if let Ok(Some(connection)) =
                    tokio::time::timeout(Duration::from_millis(50), server.accept()).await
                {
                    held.retain(|one| one.close_reason().is_none());
                    held.push(connection);
                }
            }
            server.stats()
        })
    });
    (told.recv().unwrap(), stop, thread)
}

/// Measures the handshake times of honest clients, from an address of their own each, while the attacker begins `rate`
/// handshakes a second.
async fn measure(rate: u64) -> (Vec<Duration>, Arc<Flood>, EndpointStats) {
    let pki = Pki::new();
    let (server, stop, serving) = serve(&pki);
    let state = Arc::new(Flood::default());
    let flooding = {
        let (state, hello) = (state.clone(), hello(&pki));
        thread::spawn(move || flood(&state, rate, server, &hello))
    };
    tokio::time::sleep(WARM).await;
    let (start, mut clients) = (Instant::now(), Vec::new());
    let mut gap = tokio::time::interval(GAP);
    while start.elapsed() < LENGTH {
        gap.tick().await;
        let [high, low] = (clients.len() as u16).to_be_bytes();
        let address = format!("127.{}.{low}.1:0", high + 1);
        let (config, begun) = (pki.client(transport()), Instant::now());
        clients.push(tokio::spawn(async move {
            let endpoint = Endpoint::client(&[local(&address)]).unwrap();
            let connected = within(endpoint.connect(config, server, NAME).unwrap()).await;
            let took = begun.elapsed();
            connected.map(|connection| connection.close(0, b"")).ok().map(|()| took)
        }));
    }
    let mut delays = Vec::new();
    for client in clients {
        delays.push(client.await.unwrap().unwrap_or(Duration::MAX));
    }
    delays.sort();
    state.over.store(true, Ordering::Relaxed);
    flooding.join().unwrap();
    stop.send(()).unwrap();
    (delays, state, serving.join().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes a minute, and a machine that does nothing else"]
async fn one_address_delays_others_by_no_more_than_50_ms_over_sockets() {
    let mut table = "| handshakes a second | begun | proven | honest clients | failed | p50 | p99 | most | refused | gave way |\n\
                     | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
        .to_owned();
    let mut quantiles = Vec::new();
    for rate in RATES {
        let (delays, flood, stats) = measure(rate).await;
        let at = |share: usize| delays[(delays.len() - 1) * share / 100];
        let failed = delays.iter().filter(|delay| **delay == Duration::MAX).count();
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        writeln!(
            table,
            "| {rate} | {} | {} | {} | {failed} | {:.1} ms | {:.1} ms | {:.1} ms | {} | {} |",
            load(&flood.begun),
            load(&flood.followed),
            delays.len(),
            at(50).as_secs_f64() * 1e3,
            at(99).as_secs_f64() * 1e3,
            at(100).as_secs_f64() * 1e3,
            stats.slots.refused_handshakes,
            stats.slots.displaced_handshakes,
        )
        .unwrap();
        quantiles.push(at(99));
    }
    println!("{table}");
    if let Ok(file) = std::env::var("HVQ_ADMISSION_TABLE") {
        std::fs::write(file, &table).unwrap();
    }
    for (rate, p99) in RATES.iter().zip(&quantiles) {
        assert!(*p99 <= quantiles[0] + BOUND, "{rate} a second:\n{table}");
    }
}
