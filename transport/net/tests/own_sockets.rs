//! Sockets of the program: connections in memory.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use bytes::BytesMut;
use common::{NAME, Pair, Pki, local, pattern, transport, within};
use hvq::balancing::SteeredBy;
use hvq::runtime::{Arrivals, AsyncUdpSocket, Datagram, Outgoing, RemoveSocketError};
use hvq::{Connection, Endpoint, EndpointOptions, PathId, PathOptions};
use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::num::NonZeroU16;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

/// Datagrams that wait at an address at most.
const ROOM: usize = 16;

/// A network of addresses, each with what waits there.
#[derive(Debug, Default)]
struct Network(Mutex<HashMap<SocketAddr, Inbox>>);

#[derive(Debug, Default)]
struct Inbox {
    datagrams: VecDeque<Datagram>,
    reader: Option<Waker>,
    senders: Vec<Waker>,
}

#[derive(Debug)]
struct MemorySocket {
    network: Arc<Network>,
    local: SocketAddr,
    may_fragment: bool,
    /// The last address that took nothing.
    full: Mutex<Option<SocketAddr>>,
    largest: AtomicUsize,
    sent: AtomicUsize,
}

impl Network {
    fn bind(self: &Arc<Self>, address: &str) -> Arc<MemorySocket> {
        Arc::new(self.socket(address))
    }

    fn socket(self: &Arc<Self>, address: &str) -> MemorySocket {
        let local = address.parse().unwrap();
        self.0.lock().unwrap().insert(local, Inbox::default());
        let (network, full) = (Arc::clone(self), Mutex::default());
        let (largest, sent) = (AtomicUsize::new(0), AtomicUsize::new(0));
        MemorySocket { network, local, may_fragment: false, full, largest, sent }
    }
}

impl AsyncUdpSocket for MemorySocket {
    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.local)
    }

    fn try_send(&self, batch: &Outgoing<'_>) -> io::Result<usize> {
        let mut network = self.network.0.lock().unwrap();
        // Nobody there: the network loses it.
        let Some(inbox) = network.get_mut(&batch.remote) else { return Ok(batch.contents.len()) };
        let room = ROOM.saturating_sub(inbox.datagrams.len());
        if room == 0 {
            *self.full.lock().unwrap() = Some(batch.remote);
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let mut taken = 0;
        for payload in batch.datagrams().take(room) {
            self.largest.fetch_max(payload.len(), Ordering::Relaxed);
            self.sent.fetch_add(1, Ordering::Relaxed);
            taken += payload.len();
            let (remote, bytes) = (self.local, BytesMut::from(payload));
            // The address is the endpoint's to know.
            let local = ([0, 0, 0, 0], 0).into();
            inbox.datagrams.push_back(Datagram { local, remote, ecn: batch.ecn, bytes });
        }
        inbox.reader.take().into_iter().for_each(Waker::wake);
        Ok(taken)
    }

    fn poll_send_ready(&self, context: &mut Context<'_>) -> Poll<()> {
        let Some(remote) = *self.full.lock().unwrap() else { return Poll::Ready(()) };
        let mut network = self.network.0.lock().unwrap();
        match network.get_mut(&remote) {
            Some(inbox) if inbox.datagrams.len() >= ROOM => {
                inbox.senders.push(context.waker().clone());
                Poll::Pending
            }
            _ => Poll::Ready(()),
        }
    }

    fn poll_receive(&self, context: &mut Context<'_>, arrivals: &mut Arrivals) -> Poll<io::Result<()>> {
        let mut network = self.network.0.lock().unwrap();
        let inbox = network.get_mut(&self.local).unwrap();
        if inbox.datagrams.is_empty() {
            inbox.reader = Some(context.waker().clone());
            return Poll::Pending;
        }
        arrivals.datagrams().extend(inbox.datagrams.drain(..));
        inbox.senders.drain(..).for_each(Waker::wake);
        Poll::Ready(Ok(()))
    }

    fn may_fragment(&self) -> bool {
        self.may_fragment
    }
}

fn endpoint(pki: Option<&Pki>, sockets: &[&Arc<MemorySocket>]) -> Endpoint {
    let sockets = sockets.iter().map(|socket| Arc::clone(*socket) as Arc<dyn AsyncUdpSocket>).collect();
    let server = pki.map(|pki| pki.server(transport()));
    Endpoint::new(EndpointOptions { server, sockets, ..EndpointOptions::default() }).unwrap()
}

async fn connect(pki: &Pki, server: &Endpoint, client: &Endpoint) -> (Connection, Connection) {
    let connecting = client.connect(pki.client(transport()), server.local_addrs()[0], NAME).unwrap();
    let (near, far) = within(async { tokio::join!(connecting, server.accept()) }).await;
    (near.unwrap(), far.unwrap())
}

async fn transfer(near: &Connection, far: &Connection, bytes: &[u8]) {
    let sending = async {
        let mut stream = near.open_uni().await.unwrap();
        stream.write_all(bytes).await.unwrap();
        stream.finish().unwrap();
    };
    let receiving = async { far.accept_uni().await.unwrap().read_to_end(bytes.len()).await.unwrap() };
    let ((), received) = within(async { tokio::join!(sending, receiving) }).await;
    assert!(received == bytes);
}

#[tokio::test]
async fn a_connection_in_memory_has_two_paths_over_sockets_of_the_program() {
    let (network, pki) = (Arc::new(Network::default()), Pki::new());
    let listening = [network.bind("10.0.0.1:443"), network.bind("10.1.0.1:443")];
    let server = endpoint(Some(&pki), &[&listening[0], &listening[1]]);
    let first = network.bind("10.0.0.2:5000");
    let client = endpoint(None, &[&first]);
    let (near, far) = connect(&pki, &server, &client).await;
    let second = network.bind("10.1.0.2:5000");
    let address = client.add_abstract_socket(second.clone()).unwrap();
    let options = PathOptions::new("second", address).to(listening[1].local);
    let id = within(near.open_path(options)).await.unwrap();
    assert_eq!(near.path(id).unwrap().stats.tuple.local, address);
    transfer(&near, &far, &pattern(300_000)).await;
    let stats = client.io_stats();
    assert!(first.sent.load(Ordering::Relaxed) > 10 && second.sent.load(Ordering::Relaxed) > 5);
    let sent = first.sent.load(Ordering::Relaxed) + second.sent.load(Ordering::Relaxed);
    assert_eq!((stats.datagrams_sent as usize, stats.send_errors), (sent, 0));
    // Paths know their addresses, though datagrams of these sockets do not say where they arrived.
    assert_eq!(client.local_addrs(), [first.local, second.local]);
}

#[tokio::test]
async fn where_datagrams_may_be_fragmented_none_is_larger_than_every_network_carries() {
    let pki = Pki::new();
    for may_fragment in [false, true] {
        let network = Arc::new(Network::default());
        let [a, b] = ["10.0.0.1:443", "10.0.0.2:5000"]
            .map(|address| Arc::new(MemorySocket { may_fragment, ..network.socket(address) }));
        let (server, client) = (endpoint(Some(&pki), &[&a]), endpoint(None, &[&b]));
        let (near, far) = connect(&pki, &server, &client).await;
        transfer(&near, &far, &pattern(300_000)).await;
        transfer(&far, &near, &pattern(300_000)).await;
        for socket in [a, b] {
            let largest = socket.largest.load(Ordering::Relaxed);
            assert_eq!(largest > 1_200, !may_fragment, "{largest}");
        }
    }
}

#[tokio::test]
async fn an_address_is_taken_once_and_workers_take_sockets_of_the_kernel_alone() {
    let (network, pki) = (Arc::new(Network::default()), Pki::new());
    let client = endpoint(None, &[&network.bind("10.0.0.2:5000")]);
    let refused = client.add_abstract_socket(network.bind("10.0.0.2:5000")).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::AddrInUse);
    let options = EndpointOptions {
        server: Some(pki.server(transport())),
        local: vec![local("127.0.0.1:0")],
        sockets: vec![network.bind("10.0.0.3:443")],
        ..EndpointOptions::default()
    };
    let refused = Endpoint::workers(options, NonZeroU16::MIN, SteeredBy::Workers).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::Unsupported);
}

#[tokio::test]
async fn a_socket_of_the_kernel_that_is_removed_is_closed_with_its_path() {
    let pair = Pair::new().await;
    let first = pair.near.path(PathId::ZERO).unwrap().stats.tuple.local;
    let other = pair.client.add_socket(UdpSocket::bind("127.0.0.2:0").unwrap()).unwrap();
    let second = within(pair.near.open_path(PathOptions::new("second", other))).await.unwrap();
    assert_eq!(UdpSocket::bind(first).unwrap_err().kind(), io::ErrorKind::AddrInUse);
    pair.client.remove_socket(first).unwrap();
    within(pair.client.beat()).await;
    assert!(UdpSocket::bind(first).is_ok(), "nobody has the port any more");
    assert_eq!(pair.client.local_addrs(), [other]);
    transfer(&pair.near, &pair.far, &pattern(300_000)).await;
    let ids: Vec<_> = pair.near.paths().iter().map(|path| path.id).collect();
    assert_eq!(ids, [second]);
    assert_eq!(pair.client.remove_socket(other), Err(RemoveSocketError::Last(other)));
    let refused = io::Error::from(pair.client.remove_socket(first).unwrap_err());
    assert_eq!(refused.kind(), io::ErrorKind::AddrNotAvailable);
}

#[tokio::test]
async fn a_socket_of_the_program_that_is_removed_is_dropped() {
    let (network, pki) = (Arc::new(Network::default()), Pki::new());
    let (near, far) = (network.bind("10.0.0.2:5000"), network.bind("10.0.0.2:6000"));
    let client = endpoint(None, &[&near, &far]);
    client.remove_socket(near.local).unwrap();
    within(client.beat()).await;
    assert_eq!((Arc::strong_count(&near), Arc::strong_count(&far)), (1, 2));
    client.add_abstract_socket(near).unwrap();
    let options = EndpointOptions {
        server: Some(pki.server(transport())),
        local: vec![local("127.0.0.1:0"), local("127.0.0.2:0")],
        ..EndpointOptions::default()
    };
    if let Ok(workers) = Endpoint::workers(options, NonZeroU16::MIN, SteeredBy::Workers) {
        let shared = workers[0].local_addrs()[0];
        assert_eq!(workers[0].remove_socket(shared), Err(RemoveSocketError::Shared(shared)));
    }
}

#[cfg(not(feature = "runtime-smol"))]
#[test]
fn an_endpoint_without_a_runtime_is_an_error() {
    let error = Endpoint::client(&[]).unwrap_err();
    assert!(error.to_string().contains("runtime"), "{error}");
}
