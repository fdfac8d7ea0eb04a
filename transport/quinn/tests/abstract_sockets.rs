//! Runtimes and sockets of the program in quinn's shape.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use hvq_quinn as quinn;
use quinn::rustls::RootCertStore;
use quinn::rustls::pki_types::PrivatePkcs8KeyDer;
use quinn::udp::{RecvMeta, Transmit};
use quinn::{
    AsyncTimer, AsyncUdpSocket, ClientConfig, Connection, Endpoint, EndpointConfig, Runtime, ServerConfig,
    TokioRuntime, UdpPoller,
};
use std::future::Future;
use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// Longer than any test takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A count of calls.
#[derive(Debug, Default)]
struct Counts {
    sent: AtomicUsize,
    received: AtomicUsize,
    timers: AtomicUsize,
    spawned: AtomicUsize,
    wrapped: AtomicUsize,
}

fn count(counter: &AtomicUsize) -> usize {
    counter.load(Ordering::Relaxed)
}

/// A socket around that of tokio's runtime.
#[derive(Debug)]
struct Counting(Arc<dyn AsyncUdpSocket>, Arc<Counts>);

impl AsyncUdpSocket for Counting {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        self.0.clone().create_io_poller()
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        assert!(transmit.segment_size.is_none(), "the socket sends one at a time");
        self.1.sent.fetch_add(1, Ordering::Relaxed);
        self.0.try_send(transmit)
    }

    fn poll_recv(
        &self,
        context: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let received = self.0.poll_recv(context, bufs, meta);
        if let Poll::Ready(Ok(count)) = &received {
            self.1.received.fetch_add(*count, Ordering::Relaxed);
        }
        received
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    fn may_fragment(&self) -> bool {
        self.0.may_fragment()
    }
}

/// A runtime that leaves its work to tokio's.
#[derive(Debug, Default)]
struct Own(Arc<Counts>);

impl Runtime for Own {
    fn new_timer(&self, deadline: Instant) -> Pin<Box<dyn AsyncTimer>> {
        self.0.timers.fetch_add(1, Ordering::Relaxed);
        TokioRuntime.new_timer(deadline)
    }

    fn spawn(&self, future: Pin<Box<dyn Future<Output = ()> + Send>>) {
        self.0.spawned.fetch_add(1, Ordering::Relaxed);
        TokioRuntime.spawn(future);
    }

    fn wrap_udp_socket(&self, socket: UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
        self.0.wrapped.fetch_add(1, Ordering::Relaxed);
        Ok(Arc::new(Counting(TokioRuntime.wrap_udp_socket(socket)?, self.0.clone())))
    }
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("in time")
}

fn bound() -> UdpSocket {
    UdpSocket::bind("127.0.0.1:0").unwrap()
}

fn counting(counts: &Arc<Counts>) -> Arc<Counting> {
    Arc::new(Counting(TokioRuntime.wrap_udp_socket(bound()).unwrap(), counts.clone()))
}

fn configs() -> (ServerConfig, ClientConfig) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (certificate, key) = (made.cert.der().clone(), made.signing_key.serialize_der());
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let server = ServerConfig::with_single_cert(vec![certificate], PrivatePkcs8KeyDer::from(key).into());
    (server.unwrap(), ClientConfig::with_root_certificates(Arc::new(roots)).unwrap())
}

async fn connect(client: &Endpoint, server: &Endpoint) -> (Connection, Connection) {
    let connecting = client.connect(server.local_addr().unwrap(), "localhost").unwrap();
    let accepting = async { server.accept().await.unwrap().await.unwrap() };
    let (near, far) = within(async { tokio::join!(connecting, accepting) }).await;
    (near.unwrap(), far)
}

async fn transfer(near: &Connection, far: &Connection) {
    let sending = async {
        let mut stream = near.open_uni().await.unwrap();
        stream.write_all(&[7; 200_000]).await.unwrap();
        stream.finish().unwrap();
    };
    let receiving = async { far.accept_uni().await.unwrap().read_to_end(200_000).await.unwrap() };
    let ((), received) = within(async { tokio::join!(sending, receiving) }).await;
    assert_eq!(received.len(), 200_000);
}

#[tokio::test]
async fn a_connection_goes_over_a_socket_around_another_and_moves_to_the_next() {
    let (server_config, client_config) = configs();
    let (theirs, ours, next) = (Arc::default(), Arc::<Counts>::default(), Arc::<Counts>::default());
    let (config, runtime) = (EndpointConfig::default, || Arc::new(TokioRuntime));
    let server =
        Endpoint::new_with_abstract_socket(config(), Some(server_config), counting(&theirs), runtime())
            .unwrap();
    let mut client = Endpoint::new_with_abstract_socket(config(), None, counting(&ours), runtime()).unwrap();
    client.set_default_client_config(client_config);
    let (near, far) = connect(&client, &server).await;
    transfer(&near, &far).await;
    assert!(count(&ours.sent) > 100 && count(&ours.received) > 0 && count(&theirs.received) > 100);
    let socket = counting(&next);
    client.rebind_abstract(socket.clone()).unwrap();
    assert_eq!(client.local_addr().unwrap(), socket.local_addr().unwrap());
    transfer(&near, &far).await;
    assert!(count(&next.sent) > 100, "{next:?}");
    assert_eq!(far.remote_address(), client.local_addr().unwrap());
}

#[tokio::test]
async fn an_endpoint_runs_on_a_runtime_of_the_program() {
    let (server_config, client_config) = configs();
    let (a, b) = (Arc::new(Own::default()), Arc::new(Own::default()));
    let server = Endpoint::new(EndpointConfig::default(), Some(server_config), bound(), a.clone()).unwrap();
    let mut client = Endpoint::new(EndpointConfig::default(), None, bound(), b.clone()).unwrap();
    client.set_default_client_config(client_config);
    let (near, far) = connect(&client, &server).await;
    transfer(&near, &far).await;
    for Own(counts) in [&*a, &*b] {
        assert_eq!((count(&counts.spawned), count(&counts.wrapped)), (1, 1));
        assert!(count(&counts.timers) > 0 && count(&counts.sent) > 5, "{counts:?}");
    }
    // A further path binds a socket of the kernel, which the program's runtime watches, too.
    let second: hvq::LocalAddress = "127.0.0.2:0".parse().unwrap();
    within(near.hvq().open_path(hvq::PathOptions::new("second", second))).await.unwrap();
    assert_eq!(count(&b.0.wrapped), 2);
}

#[tokio::test]
async fn timers_are_reset_and_never_early() {
    let began = Instant::now();
    let mut timer = TokioRuntime.new_timer(began + Duration::from_secs(60));
    timer.as_mut().reset(began + Duration::from_millis(20));
    within(std::future::poll_fn(|context| timer.as_mut().poll(context))).await;
    assert!(began.elapsed() >= Duration::from_millis(20));
}

#[cfg(not(feature = "runtime-smol"))]
#[test]
fn there_is_no_runtime_outside_of_one() {
    assert!(quinn::default_runtime().is_none());
    assert!(Endpoint::client(([127, 0, 0, 1], 0).into()).is_err());
}
