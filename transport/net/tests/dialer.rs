//! The dialer over real sockets: names, dead addresses, servers that do not answer, and attempts that are given up.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use common::{NAME, Pki, local, transport, within};
use hvq::{ConnectionError, Destination, DialError, Dialer, Endpoint, PathOptions};
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// The delay before the second attempt (RFC 8305 §8).
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);
/// The time that a handshake may take beyond it on a machine that is busy.
const SLACK: Duration = Duration::from_millis(700);

/// A socket at `address` that answers nothing.
fn silence(address: &str) -> UdpSocket {
    UdpSocket::bind(address).unwrap()
}

fn at(socket: &UdpSocket) -> SocketAddr {
    socket.local_addr().unwrap()
}

fn plain(address: SocketAddr) -> Destination {
    Destination { address, paths: Vec::new() }
}

/// The given paths to `address`.
fn over(paths: &[PathOptions], address: SocketAddr) -> Destination {
    Destination { address, paths: paths.iter().map(|path| path.clone().to(address)).collect() }
}

#[tokio::test]
async fn an_ipv6_address_that_is_dead_costs_one_attempt_delay() {
    let (pki, dead) = (Pki::new(), silence("[::1]:0"));
    let server = Endpoint::server(pki.server(transport()), &[local("127.0.0.1:0")]).unwrap();
    let alive = server.local_addrs()[0];
    let client = Endpoint::client(&[]).unwrap();
    let dialer = Dialer::new(client.clone(), pki.client(transport()));
    let begun = Instant::now();
    let dialed = within(dialer.dial_resolved(NAME, &[plain(at(&dead)), plain(alive)])).await.unwrap();
    let took = begun.elapsed();
    assert!(took >= ATTEMPT_DELAY && took < ATTEMPT_DELAY + SLACK, "{took:?}");
    assert_eq!((dialed.connection.remote_address(), dialed.others), (alive, Vec::new()));
    assert_eq!(client.open_connections(), 1, "one connection for all to see");
}

#[tokio::test]
async fn a_path_and_an_address_that_are_both_dead_cost_no_more() {
    // From 127.0.0.2 nothing comes back of the IPv4 server, and its other address is dead: the second attempt differs in both.
    let (pki, dead) = (Pki::new(), silence("127.0.0.9:0"));
    let server = Endpoint::server(pki.server(transport()), &[local("127.0.0.1:0")]).unwrap();
    let alive = server.local_addrs()[0];
    let client = Endpoint::client(&[]).unwrap();
    let dialer = Dialer::new(client.clone(), pki.client(transport()));
    let paths = [PathOptions::new("wifi", local("127.0.0.2")), PathOptions::new("cell", local("127.0.0.3"))];
    let destinations = [over(&paths, at(&dead)), over(&paths, alive)];
    let begun = Instant::now();
    let dialed = within(dialer.dial_resolved(NAME, &destinations)).await.unwrap();
    let took = begun.elapsed();
    assert!(took >= ATTEMPT_DELAY && took < ATTEMPT_DELAY + SLACK, "{took:?}");
    assert_eq!(dialed.connection.remote_address(), alive);
    assert_eq!(dialed.others, [paths[0].clone().to(alive)], "to the address that is known to work");
    assert!(within(dialed.connection.open_path(dialed.others[0].clone())).await.is_ok());
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_one_error_that_names_every_attempt() {
    let (pki, other) = (Pki::new(), Pki::new());
    let (first, second) = (silence("127.0.0.9:0"), silence("[::1]:0"));
    // One of another authority, whose certificate does not do.
    let stranger = Endpoint::server(other.server(transport()), &[local("127.0.0.1:0")]).unwrap();
    let refused = stranger.local_addrs()[0];
    let config = transport().set_handshake_timeout(Duration::from_millis(1_200)).clone();
    let client = Endpoint::client(&[]).unwrap();
    let dialer = Dialer::new(client.clone(), pki.client(config));
    let path = PathOptions::new("wifi", local("127.0.0.2"));
    let destinations = [plain(at(&second)), over(&[path], at(&first)), plain(refused)];
    let error = within(dialer.dial_resolved(NAME, &destinations)).await.unwrap_err();
    let text = error.to_string();
    println!("{text}");
    assert!(text.starts_with(&format!("cannot connect to {NAME}: ")), "{text}");
    for named in [format!("{}: no answer", at(&second)), format!("{} over wifi: no answer", at(&first))] {
        assert!(text.contains(&named), "{named} in {text}");
    }
    let DialError::Failed { attempts, .. } = &error else { panic!("{error:?}") };
    let of_refused = attempts.iter().find(|attempt| attempt.remote == refused).unwrap();
    assert!(matches!(of_refused.error, Some(ConnectionError::Transport(_))), "{attempts:?}");
    assert_eq!(client.open_connections(), 0);
}

#[tokio::test]
async fn a_dial_that_is_given_up_leaves_nothing() {
    let (pki, first, second) = (Pki::new(), silence("127.0.0.9:0"), silence("[::1]:0"));
    let client = Endpoint::client(&[]).unwrap();
    let dialer = Dialer::new(client.clone(), pki.client(transport()));
    let destinations = [plain(at(&first)), plain(at(&second))];
    let dial = dialer.dial_resolved(NAME, &destinations);
    assert!(tokio::time::timeout(ATTEMPT_DELAY + Duration::from_millis(150), dial).await.is_err());
    within(client.wait_idle()).await;
    assert_eq!((client.open_connections(), client.local_addrs()), (0, Vec::new()));
    let mut room = [0; 2_000];
    for socket in [&first, &second] {
        socket.set_nonblocking(true).unwrap();
        assert!(socket.recv(&mut room).is_ok(), "both attempts had begun");
    }
}

#[tokio::test]
async fn a_name_is_resolved_and_one_that_is_none_is_said() {
    let pki = Pki::new();
    let server = Endpoint::server(pki.server(transport()), &[local("127.0.0.1:0")]).unwrap();
    let port = server.local_addrs()[0].port();
    let dialer = Dialer::new(Endpoint::client(&[]).unwrap(), pki.client(transport()));
    // Its certificate is for another name, and says that the server was found.
    let error = within(dialer.dial("localhost", port, &[])).await.unwrap_err();
    let DialError::Failed { source: ConnectionError::Transport(source), attempts, .. } = &error else {
        panic!("{error:?}");
    };
    assert!(source.to_string().contains("certificate") && error.to_string().contains("localhost"), "{error}");
    assert!(attempts.iter().any(|attempt| attempt.remote.port() == port), "{attempts:?}");
    let error = within(dialer.dial("name.invalid", port, &[])).await.unwrap_err();
    assert!(matches!(error, DialError::Destination(_)), "{error}");
    assert!(error.to_string().contains("name.invalid"), "{error}");
}
