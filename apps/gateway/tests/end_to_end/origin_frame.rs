//! The hosts that clients of HTTP/3 are told of (RFC 9412).

use crate::common::page_in_chromium;
use crate::names::{Made, tables};
use crate::setup::{Fixture, public_key, within};
use bytes::Bytes;
use http::Request;
use hvq::{ClientConfig, ClientTls, Endpoint, Policy, TransportConfig, Verify};
use hvq_h3::client::Client;
use hvq_h3::{Origin, Settings};
use std::sync::Arc;
use std::time::Duration;

/// A gateway of localhost, with a certificate of its own, and of two hosts whose certificate is for three, with more in its file.
async fn place(more: &str, page: &str) -> (Fixture, Made) {
    let shared = Made::new(&["one.hvq.test", "two.hvq.test", "three.hvq.test"], 2040);
    let text = format!(
        "{more}{}[tcp]\nlisten = ['127.0.0.1:0']\n[[host]]\nnames = ['localhost', 'one.hvq.test', 'two.hvq.test']\nfiles = 'DIR'\n",
        tables(&["shared"])
    );
    let files = [
        ("shared.pem", &shared.chain[..]),
        ("shared.key", &shared.key[..]),
        ("page.html", page),
        ("text", "hello"),
    ];
    (Fixture::with(&text, &files).await, shared)
}

/// A client that asked `name` for something.
async fn client(place: &Fixture, name: &str, trust: &[u8]) -> (Client, Endpoint) {
    let tls = ClientTls::builder().alpn([hvq_h3::ALPN]).verify(Verify::CaPem(trust.to_vec()));
    let transport = Arc::new(TransportConfig::new(Arc::new(|| Policy::default().scheduler())));
    let (endpoint, remote) = (Endpoint::client(&[]).unwrap(), place.gateway.local_addrs()[0]);
    let config = ClientConfig::new(tls.build().unwrap(), transport);
    let connection = within(endpoint.connect(config, remote, name).unwrap()).await.unwrap();
    let client = Client::new(connection, Settings::default()).await.unwrap();
    tokio::spawn(client.watch());
    assert_eq!(status(&client, name).await, 200);
    (client, endpoint)
}

async fn status(client: &Client, host: &str) -> u16 {
    let request = Request::get(format!("https://{host}/text")).body(()).unwrap();
    let (_sent, mut receiving) = within(client.whole(&request, Bytes::new())).await.unwrap();
    within(receiving.response()).await.unwrap().status().as_u16()
}

/// Returns true if the client is told soon that it may ask for `host` at `port`.
async fn hears_of(client: &Client, host: &str, port: u16) -> bool {
    let origin = Origin::new(host, port).unwrap();
    for _ in 0..50 {
        if client.serves(&origin) {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    false
}

#[tokio::test]
async fn clients_hear_of_the_served_hosts_of_the_certificate_that_they_were_shown() {
    let (place, shared) = place("", "").await;
    let trust = [place.trust().pem(), shared.chain.clone().into_bytes()].concat();
    let (udp, tcp) = (place.gateway.local_addrs()[0].port(), place.gateway.tcp_addrs()[0].port());
    let (one, _endpoint) = client(&place, "one.hvq.test", &trust).await;
    assert!(hears_of(&one, "two.hvq.test", udp).await && hears_of(&one, "two.hvq.test", tcp).await);
    assert_eq!(status(&one, "two.hvq.test").await, 200);
    let is_told = |host, port| one.serves(&Origin::new(host, port).unwrap());
    assert!(!is_told("three.hvq.test", udp), "nobody serves it");
    assert!(!is_told("localhost", udp), "it has another certificate");
    assert!(!is_told("two.hvq.test", 1), "nobody listens there");
    // The certificate of this one is for one host.
    let (alone, _endpoint) = client(&place, "localhost", &trust).await;
    assert!(!hears_of(&alone, "localhost", udp).await);
}

#[tokio::test]
async fn nobody_is_told_if_the_file_says_so() {
    let (place, shared) = place("origin_frame = false\n", "").await;
    let (one, _endpoint) = client(&place, "one.hvq.test", shared.chain.as_bytes()).await;
    assert!(!hears_of(&one, "two.hvq.test", place.gateway.local_addrs()[0].port()).await);
}

/// A page with a picture of another host of its server: of the same site, since browsers keep what
/// other sites are asked for on connections of their own.
const PAGE: &str = r#"<!doctype html><title>page</title><link rel="icon" href="data:,"><img id="picture"><script>
  document.getElementById("picture").src = "https://two.hvq.test:" + location.port + "/text";
</script>"#;

/// Has Chromium load the page, with `two.hvq.test` at an address where nobody is; returns the requests that came to the gateway.
async fn loaded_by_chromium(more: &str) -> String {
    let (place, shared) =
        place(&format!("{more}[log]\nfile = 'DIR/access.log'\nformat = 'json'\n"), PAGE).await;
    let port = place.gateway.local_addrs()[0].port();
    let arguments = [
        "--host-resolver-rules=MAP one.hvq.test 127.0.0.1,MAP two.hvq.test 127.0.0.9,MAP * ~NOTFOUND",
        &format!("--ignore-certificate-errors-spki-list={}", public_key(shared.chain.as_bytes())),
        &format!("--origin-to-force-quic-on=one.hvq.test:{port},two.hvq.test:{port}"),
    ];
    page_in_chromium(&format!("https://one.hvq.test:{port}/page.html"), &arguments).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    std::fs::read_to_string(place.file("access.log")).unwrap()
}

#[tokio::test]
async fn chromium_asks_for_a_host_that_it_heard_of_over_the_connection_that_it_has() {
    let told = loaded_by_chromium("").await;
    assert!(told.contains("/page.html") && told.contains("\"two.hvq.test"), "{told}");
    let untold = loaded_by_chromium("origin_frame = false\n").await;
    assert!(untold.contains("/page.html") && !untold.contains("\"two.hvq.test"), "{untold}");
}
