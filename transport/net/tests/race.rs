//! Connections that begin on the first of several paths that answers, over real sockets.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use common::{NAME, Pki, echo, local, transport, within};
use hvq::{ConnectOptions, ConnectionError, Endpoint, PathId, PathOptions};
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// The delay before the attempts after the first path's (RFC 8305 §8).
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// A socket that takes what it gets and answers nothing.
struct Silence(UdpSocket);

impl Silence {
    fn new() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        Self(socket)
    }

    fn address(&self) -> SocketAddr {
        self.0.local_addr().unwrap()
    }

    /// Datagrams that came since the last call.
    fn count(&self) -> usize {
        let mut room = [0; 2_000];
        std::iter::from_fn(|| self.0.recv(&mut room).ok()).count()
    }
}

/// A path called `name` from an address of its own to `remote`.
fn path(name: &str, from: &str, remote: SocketAddr) -> PathOptions {
    PathOptions::new(name, local(from)).to(remote)
}

#[tokio::test]
async fn a_first_path_that_leads_nowhere_costs_the_attempt_delay() {
    let (pki, silence) = (Pki::new(), Silence::new());
    let server = Endpoint::server(pki.server(transport()), &[local("127.0.0.1:0")]).unwrap();
    let client = Endpoint::client(&[]).unwrap();
    let remote = server.local_addrs()[0];
    let paths = [path("dead", "127.0.0.2", silence.address()), path("alive", "127.0.0.3", remote)];
    let options = ConnectOptions::new(remote, NAME).racing(0, &paths);
    let begun = Instant::now();
    let connecting = client.connect_with(pki.client(transport()), options).unwrap();
    let (near, far) = within(async { tokio::join!(connecting, server.accept()) }).await;
    let took = begun.elapsed();
    let (near, far) = (near.unwrap(), far.unwrap());
    // A handshake on a busy machine takes its time, and a probe timeout would be a second.
    assert!(took >= ATTEMPT_DELAY && took < ATTEMPT_DELAY + Duration::from_millis(700), "{took:?}");
    let first = near.path(PathId(0)).unwrap();
    assert_eq!((first.name.as_deref(), near.remote_address()), (Some("alive"), remote));
    assert_eq!(near.remaining_paths(), paths[..1], "the path that was left is there to be opened");
    assert!(silence.count() >= 1);
    assert_eq!(
        (client.open_connections(), server.open_connections()),
        (1, 1),
        "one connection for all to see"
    );

    let _echo = echo(far);
    let (mut send, mut receive) = near.open_bi().await.unwrap();
    within(send.write_all(b"over the other path")).await.unwrap();
    send.finish().unwrap();
    assert_eq!(within(receive.read_to_end(100)).await.unwrap(), b"over the other path");
    near.close(0, b"");
    within(client.wait_idle()).await;
    assert_eq!(client.local_addrs(), [], "no socket of an attempt stays");
}

#[tokio::test]
async fn while_the_first_path_answers_nothing_is_sent_over_the_others() {
    let (pki, silence) = (Pki::new(), Silence::new());
    let server = Endpoint::server(pki.server(transport()), &[local("127.0.0.1:0")]).unwrap();
    let client = Endpoint::client(&[]).unwrap();
    let remote = server.local_addrs()[0];
    let paths = [path("first", "127.0.0.2", remote), path("second", "127.0.0.3", silence.address())];
    let options = ConnectOptions::new(remote, NAME).racing(0, &paths);
    let near = within(client.connect_with(pki.client(transport()), options).unwrap()).await.unwrap();
    tokio::time::sleep(ATTEMPT_DELAY * 2).await;
    assert_eq!(near.path(PathId(0)).unwrap().name.as_deref(), Some("first"));
    assert_eq!(near.remaining_paths(), paths[1..]);
    assert_eq!(silence.count(), 0);
}

#[tokio::test]
async fn a_first_path_whose_interface_is_missing_is_left_out_at_once() {
    let pki = Pki::new();
    let server = Endpoint::server(pki.server(transport()), &[local("127.0.0.1:0")]).unwrap();
    let client = Endpoint::client(&[]).unwrap();
    let remote = server.local_addrs()[0];
    let paths = [path("missing", "no-such-if0", remote), path("alive", "127.0.0.3", remote)];
    let options = ConnectOptions::new(remote, NAME).racing(0, &paths);
    let near = within(client.connect_with(pki.client(transport()), options).unwrap()).await.unwrap();
    assert_eq!(near.path(PathId(0)).unwrap().name.as_deref(), Some("alive"));
    assert_eq!(near.remaining_paths(), paths[..1], "whoever opens it learns why it cannot be used");
    let error = near.open_path(paths[0].clone()).await.unwrap_err();
    assert!(error.to_string().contains("no-such-if0"), "{error}");
    let missing = [paths[0].clone(), path("gone", "no-such-if1", remote)];
    let options = ConnectOptions::new(remote, NAME).racing(0, &missing);
    let error = client.connect_with(pki.client(transport()), options).unwrap_err();
    assert!(error.to_string().contains("no-such-if0"), "{error}");
}

#[tokio::test]
async fn where_no_path_leads_anywhere_the_attempt_ends_at_the_callers_limit() {
    let (pki, silence, other) = (Pki::new(), Silence::new(), Silence::new());
    let client = Endpoint::client(&[]).unwrap();
    let paths = [path("dead", "127.0.0.2", silence.address()), path("dark", "127.0.0.3", other.address())];
    let options = ConnectOptions::new(silence.address(), NAME).racing(0, &paths);
    let limit = Duration::from_millis(900);
    let config = transport().set_handshake_timeout(limit).clone();
    let begun = Instant::now();
    let error = within(client.connect_with(pki.client(config), options).unwrap()).await.unwrap_err();
    assert_eq!(error, ConnectionError::HandshakeTimeout);
    assert!(begun.elapsed() >= limit, "{:?}", begun.elapsed());
    assert!(silence.count() >= 1 && other.count() >= 1, "both were tried");
    assert_eq!(client.open_connections(), 0);
}
