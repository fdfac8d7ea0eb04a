//! Dialers, watchers of links and path managers on smol, where no runtime of tokio was entered.

#![cfg(feature = "runtime-smol")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use common::{NAME, PATIENCE, Pki, local, transport};
use hvq::links::{LinkKind, LinkState, Links};
use hvq::path_manager::LinkUse;
use hvq::runtime::SmolRuntime;
use hvq::{
    ConnectOptions, ConnectionError, Destination, DialError, Dialer, Endpoint, EndpointOptions, PathManager,
    ServerConfig,
};
use std::net::UdpSocket;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The delay before the second attempt (RFC 8305 §8).
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// The result of `future` on smol, which must come before [`PATIENCE`] is over.
fn on_smol<T>(future: impl Future<Output = T>) -> T {
    assert!(tokio::runtime::Handle::try_current().is_err());
    let late = async {
        smol::Timer::after(PATIENCE).await;
        panic!("it takes too long")
    };
    smol::block_on(smol::future::or(future, late))
}

fn endpoint(server: Option<ServerConfig>) -> Endpoint {
    let local = server.iter().map(|_| local("127.0.0.1:0")).collect();
    let runtime = Some(Arc::new(SmolRuntime) as _);
    Endpoint::new(EndpointOptions { server, local, runtime, ..EndpointOptions::default() }).unwrap()
}

#[test]
fn a_dead_address_costs_one_attempt_delay_on_smol() {
    on_smol(async {
        let (pki, dead) = (Pki::new(), UdpSocket::bind("127.0.0.9:0").unwrap());
        let server = endpoint(Some(pki.server(transport())));
        let alive = server.local_addrs()[0];
        let dialer = Dialer::new(endpoint(None), pki.client(transport()));
        let addresses = [dead.local_addr().unwrap(), alive];
        let destinations = addresses.map(|address| Destination { address, paths: Vec::new() });
        let begun = Instant::now();
        let dialed = dialer.dial_resolved(NAME, &destinations).await.unwrap();
        let took = begun.elapsed();
        assert!(took >= ATTEMPT_DELAY && took < 4 * ATTEMPT_DELAY, "{took:?}");
        assert_eq!(dialed.connection.remote_address(), alive);
    });
}

#[test]
fn names_are_resolved_on_smol() {
    on_smol(async {
        let pki = Pki::new();
        let server = endpoint(Some(pki.server(transport())));
        let port = server.local_addrs()[0].port();
        let dialer = Dialer::new(endpoint(None), pki.client(transport()));
        // Its certificate is for another name, and says that the server was found.
        let error = dialer.dial("localhost", port, &[]).await.unwrap_err();
        let DialError::Failed { source: ConnectionError::Transport(source), .. } = &error else {
            panic!("{error:?}");
        };
        assert!(source.to_string().contains("certificate"), "{error}");
        let error = dialer.dial("name.invalid", port, &[]).await.unwrap_err();
        assert!(matches!(error, DialError::Destination(_)), "{error}");
        assert!(!Destination::resolve("localhost", port, &[]).await.unwrap().is_empty());
    });
}

#[test]
fn links_are_watched_and_paths_managed_on_smol() {
    on_smol(async {
        let polled = Links::poll(Duration::from_millis(10)).await.unwrap().current();
        let links = Links::watch().await.unwrap();
        let loopback = links.current().iter().find(|link| link.kind == LinkKind::Loopback).cloned().unwrap();
        assert!(polled.iter().any(|link| link.index == loopback.index));
        assert_eq!(loopback.state, LinkState::Up);
        let pki = Pki::new();
        let server = endpoint(Some(pki.server(transport())));
        let options = ConnectOptions::new(server.local_addrs()[0], NAME);
        let client = endpoint(None);
        let connection = client.connect_with(pki.client(transport()), options).unwrap().await.unwrap();
        let manager = PathManager::builder().spawn(&connection).await.unwrap();
        let mut events = manager.events();
        let uses = |usage: &LinkUse| matches!(usage, LinkUse::Path { .. });
        let is_used =
            |link: &hvq::path_manager::LinkStatus| link.index == loopback.index && uses(&link.usage);
        assert!(manager.status_when(|status| status.links.iter().any(is_used)).await.is_some());
        // It ends when it is told to, and its events with it.
        manager.stop();
        while events.recv().await.is_some() {}
        assert!(!connection.paths().is_empty());
    });
}
