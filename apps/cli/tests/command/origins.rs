//! `hvq get` of several hosts of one server: which share a connection (RFC 9412, RFC 8336).

use crate::names::dns_server;
use crate::support::{Running, code, hvq, said};
use bytes::Bytes;
use http::{Response, StatusCode};
use hvq::{Endpoint, EndpointOptions, Identity, Policy, ServerConfig, ServerTls, TransportConfig};
use hvq_h3::Origin;
use hvq_h3::serving::Server;
use std::net::{IpAddr, Ipv4Addr};
use std::process::Output;
use std::sync::Arc;
use std::time::Duration;

const NAMES: [&str; 3] = ["one.hvq.example", "two.hvq.example", "elsewhere.hvq.example"];

/// Fetches `/hello.txt` of each of the `hosts` at `port`, in this order.
fn get(hosts: &[&str], port: u16, authority: &str) -> Output {
    let dns = dns_server(port).to_string();
    let urls = hosts.iter().map(|host| format!("https://{host}:{port}/hello.txt"));
    let mut command = hvq();
    command.args(["get", "-v", "--cacert", authority, "--dns-server", &dns, "--connect-timeout", "1s"]);
    command.args(urls).output().unwrap()
}

/// The hosts that connections were made to.
fn connected(output: &Output) -> Vec<String> {
    let said = said(output);
    let lines = said.lines().filter(|line| line.contains("connecting to"));
    lines.map(|line| line.rsplit_once(" as ").unwrap().1.to_owned()).collect()
}

#[test]
fn hosts_that_the_server_names_share_a_connection_if_they_are_where_it_is() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("hello.txt"), "hello").unwrap();
    let certificate = folder.path().join("certificate.pem");
    let (root, authority) = (folder.path().to_str().unwrap(), certificate.to_str().unwrap());
    let serve = |more: &[&str]| {
        let names = NAMES.iter().flat_map(|name| ["--self-signed", name]);
        let fixed = ["serve", "--json", "--root", root, "--write-cert", authority, "--listen", "127.0.0.1:0"];
        Running::start(fixed.into_iter().chain(names).chain(more.iter().copied()))
    };
    let server = serve(&[]);
    let output = get(&NAMES[..2], server.address(0).port(), authority);
    assert_eq!((code(&output), output.stdout.as_slice()), (0, &b"hellohello"[..]), "{}", said(&output));
    assert_eq!(connected(&output), ["one.hvq.example"], "{}", said(&output));
    // DNS has the last word.
    let output = get(&["one.hvq.example", "elsewhere.hvq.example"], server.address(0).port(), authority);
    assert_eq!((code(&output), output.stdout.as_slice()), (3, &b"hello"[..]), "{}", said(&output));
    assert_eq!(connected(&output), ["one.hvq.example", "elsewhere.hvq.example"], "{}", said(&output));
    // A certificate alone does not do.
    let silent = serve(&["--origin-frame", "omit"]);
    let output = get(&NAMES[..2], silent.address(0).port(), authority);
    assert_eq!((code(&output), output.stdout.as_slice()), (0, &b"hellohello"[..]), "{}", said(&output));
    assert_eq!(connected(&output), ["one.hvq.example", "two.hvq.example"], "{}", said(&output));
}

/// Serves `connection`, and only the host that it was made for.
async fn serve_one(connection: hvq::Connection, port: u16) {
    let own = connection.server_name().unwrap();
    let server = Server::new(connection, Default::default()).await.unwrap();
    server.announce(&NAMES.map(|name| Origin::new(name, port).unwrap()));
    let answer = move |incoming: hvq_h3::serving::Incoming| {
        let own = own.clone();
        async move {
            let (request, mut sending, _) = incoming.request(Duration::from_secs(10)).await.unwrap();
            let mut head = Response::new(());
            let is_own = request.uri().host() == Some(&own);
            let body = if is_own { own } else { "not here".to_owned() };
            *head.status_mut() = if is_own { StatusCode::OK } else { StatusCode::MISDIRECTED_REQUEST };
            sending.whole(&head, Bytes::from(body)).await.unwrap();
        }
    };
    server.run(std::future::pending(), || Duration::ZERO, answer).await;
}

#[test]
fn a_host_that_the_server_named_in_error_is_asked_over_a_connection_of_its_own() {
    let made = rcgen::generate_simple_self_signed(NAMES.map(str::to_owned)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let certificate = folder.path().join("certificate.pem");
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    let identity = Identity::Pem {
        chain: made.cert.pem().into_bytes(),
        key: made.signing_key.serialize_pem().into_bytes(),
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let port = runtime.block_on(async {
        let tls = ServerTls::builder(identity).alpn([hvq_h3::ALPN]).build().unwrap();
        let transport = Arc::new(TransportConfig::new(Arc::new(|| Policy::default().scheduler())));
        let options = EndpointOptions {
            server: Some(ServerConfig::new(tls, transport)),
            local: vec![IpAddr::from(Ipv4Addr::LOCALHOST).into()],
            ..EndpointOptions::default()
        };
        let endpoint = Endpoint::new(options).unwrap();
        let port = endpoint.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Some(connection) = endpoint.accept().await {
                tokio::spawn(serve_one(connection, port));
            }
        });
        port
    });
    let output = get(&NAMES[..2], port, certificate.to_str().unwrap());
    let bodies = String::from_utf8_lossy(&output.stdout);
    assert_eq!((code(&output), &*bodies), (0, "one.hvq.exampletwo.hvq.example"), "{}", said(&output));
    assert!(said(&output).contains("two.hvq.example is asked for over the connection to one.hvq.example"));
    assert_eq!(connected(&output), ["one.hvq.example", "two.hvq.example"]);
}
