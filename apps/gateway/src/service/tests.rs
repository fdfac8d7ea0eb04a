//! A gateway that breaks while the program waits for signals.

use super::*;
use crate::Overrides;
use crate::configuration::Serves;
use hvq::trace::TracerFactory;
use hvq::{ClientConfig, ClientTls, Endpoint, TransportConfig, Verify};
use hvq_program::tls::SelfSigned;
use hvq_scheduler::Policy;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Returns the answer of `address` about the gateway's health.
async fn health(address: SocketAddr) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn the_program_ends_with_an_error_when_a_driver_dies_and_says_so_before() {
    // K10.
    let folder = tempfile::tempdir().unwrap();
    let tracer: TracerFactory = Arc::new(|_| panic!("as a bug would"));
    let overrides = Overrides {
        listen: vec!["127.0.0.1:0".parse().unwrap()],
        admin: Some("127.0.0.1:0".parse().unwrap()),
        identity: Some(SelfSigned::new(&["localhost".to_owned()]).unwrap().identity()),
        fallback: Some(Serves::files(folder.path())),
        tracer: Some(tracer),
        ..Overrides::default()
    };
    let load = || Config::load(None, &overrides);
    let mut gateway = Gateway::start(load().unwrap()).await.unwrap();
    let (remote, admin) = (gateway.local_addrs()[0], gateway.admin_addr().unwrap());
    let mut signals = Signals::of_service().unwrap();
    let client = async {
        assert!(health(admin).await.starts_with("HTTP/1.1 200"));
        let tls = ClientTls::builder().alpn([hvq_h3::ALPN]).verify(Verify::Insecure).build().unwrap();
        let transport = TransportConfig::new(Arc::new(|| Policy::Hvc.scheduler()));
        let endpoint = Endpoint::client(&[]).unwrap();
        let config = ClientConfig::new(tls, Arc::new(transport));
        let connecting = endpoint.connect(config, remote, "localhost").unwrap();
        let _never = timeout(Duration::from_millis(300), connecting).await;
        health(admin).await
    };
    let attending =
        timeout(Duration::from_secs(30), attend(&mut gateway, &mut signals, load, Console::Quiet));
    let (ended, before) = tokio::join!(attending, client);
    assert!(before.starts_with("HTTP/1.1 503"), "{before}");
    let failure = ended.expect("the program goes on without a driver").unwrap_err();
    assert_eq!(failure.exit(), Exit::Runtime);
    assert!(failure.line().contains("worker 0"), "{}", failure.line());
}
