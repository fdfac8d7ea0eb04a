//! Real programs through the proxy.

use crate::setup::{Fixture, Knows, Origin, within};
use hvq::{ClientConfig, ClientTls, Policy, TransportConfig, Verify};
use hvq_gateway::proxy::{GatewayAddress, Link, LinkOptions, Proxy, ProxyOptions};
use hvq_program::names::Names;
use std::fs;
use std::net::SocketAddr;
use std::process::Output;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::process::Command;

async fn run(program: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(program);
    // Nothing from the environment decides where requests go.
    for name in [
        "http_proxy",
        "https_proxy",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "all_proxy",
        "NO_PROXY",
        "no_proxy",
    ] {
        command.env_remove(name);
    }
    within(command.args(arguments).kill_on_drop(true).output()).await.unwrap()
}

async fn curl(arguments: &[&str]) -> (String, Option<i32>) {
    // `--noproxy ""`: not even what is on this machine goes past the proxy.
    let output = run("curl", &[&["-sS", "--noproxy", "", "--max-time", "20"], arguments].concat()).await;
    (String::from_utf8(output.stdout).unwrap(), output.status.code())
}

#[tokio::test]
async fn curl_goes_through_by_url_by_connect_and_by_socks_over_both_paths() {
    let (place, origin) = (Fixture::new().await, Origin::new().await);
    let (proxy, url) = (place.address(), format!("http://{}/a?b", origin.address));
    let http = format!("http://{proxy}");
    for way in [
        &["-x", &http, &url][..],
        &["-x", &http, "--proxytunnel", &url],
        &["-x", &format!("socks5h://{proxy}"), &url],
        &["-x", &format!("socks5://{proxy}"), &url],
    ] {
        assert_eq!(curl(way).await, ("GET /a?b 0".to_owned(), Some(0)), "{way:?}");
    }
    // A name, which only the gateway resolves.
    let name = format!("http://localhost:{}/n", origin.address.port());
    let (text, _) = curl(&["-x", &format!("socks5h://{proxy}"), &name]).await;
    assert_eq!(text, "GET /n 0");
    let (text, _) = curl(&["-x", &http, "--data-binary", &"x".repeat(100_000), &url]).await;
    assert_eq!(text, "POST /a?b 100000");
    let seen = origin.seen();
    assert!(seen[0].contains("x-forwarded-for: 127.0.0.1") && !seen[0].contains("proxy-"), "{}", seen[0]);
    assert!(!seen[1].contains("x-forwarded-for"), "nobody changes what is in a tunnel: {}", seen[1]);
    let paths = place.link.paths();
    assert_eq!(paths.len(), 2, "{paths:?}");
    within(place.proxy.stop()).await;
}

#[tokio::test]
async fn over_tls_the_priority_of_requests_arrives() {
    let (place, origin) = (Fixture::new().await, Origin::new().await);
    let (proxy, url) = (format!("https://{}", place.address()), format!("http://{}/a", origin.address));
    let ca = place.certificate();
    let ca = ca.to_str().unwrap();
    let way = ["-x", &proxy, "--proxy-cacert", ca, "-H", "priority: u=1, i", &url];
    assert_eq!(curl(&way).await, ("GET /a 0".to_owned(), Some(0)));
    assert!(origin.seen()[0].contains("priority: u=1, i"), "{}", origin.seen()[0]);
    assert_eq!(curl(&["-x", &proxy, "--proxy-cacert", ca, "--proxytunnel", &url]).await.0, "GET /a 0");
    // Without its certificate nobody believes the proxy.
    assert_eq!(curl(&["-x", &proxy, &url]).await.1, Some(60));
}

#[tokio::test]
async fn wget_and_its_proxy_variable_work() {
    let (place, origin) = (Fixture::new().await, Origin::new().await);
    let file = place.folder.path().join("out");
    let (proxy, url) =
        (format!("http_proxy=http://{}", place.address()), format!("http://{}/w", origin.address));
    let arguments =
        ["-q", "-e", &proxy, "-e", "use_proxy=yes", "-e", "no_proxy=", "-O", file.to_str().unwrap(), &url];
    let output = run("wget", &arguments).await;
    assert!(output.status.success(), "{output:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "GET /w 0");
}

#[tokio::test]
async fn what_the_gateway_refuses_is_refused_in_every_language() {
    let (place, origin) = (Fixture::who(Knows::AnotherToken).await, Origin::new().await);
    let (proxy, url) = (place.address(), format!("http://{}/", origin.address));
    let http = format!("http://{proxy}");
    let (status, _) = curl(&["-x", &http, "-o", "/dev/null", "-w", "%{http_code}", &url]).await;
    assert_eq!(status, "502", "the token is not the program's business");
    let (status, code) =
        curl(&["-x", &http, "--proxytunnel", "-o", "/dev/null", "-w", "%{http_connect}", &url]).await;
    assert_eq!((status.as_str(), code), ("502", Some(56)));
    assert_eq!(curl(&["-x", &format!("socks5h://{proxy}"), &url]).await.1, Some(97));
    assert_eq!(origin.seen().len(), 0);
}

#[tokio::test]
async fn a_gateway_that_was_away_is_found_again() {
    let (mut place, origin) = (Fixture::new().await, Origin::new().await);
    let (http, url) = (format!("http://{}", place.address()), format!("http://{}/", origin.address));
    assert_eq!(curl(&["-x", &http, &url]).await.0, "GET / 0");
    place.restart_gateway().await;
    assert_eq!(curl(&["-x", &http, &url]).await.0, "GET / 0");
    assert_eq!(place.link.paths().len(), 2);
}

/// Returns the proxy's answer to a request for `url`.
async fn ask(proxy: SocketAddr, url: &str) -> String {
    let mut stream = TcpStream::connect(proxy).await.unwrap();
    let request = format!("GET {url} HTTP/1.1\r\nhost: origin.invalid\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn requests_that_wait_for_a_gateway_that_is_not_there_share_one_attempt() {
    const ATTEMPT: Duration = Duration::from_secs(2);
    // Bound, so that nobody else answers there, and never read.
    let silent = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let tls = ClientTls::builder().alpn([hvq_h3::ALPN]).verify(Verify::Insecure).build().unwrap();
    let transport = TransportConfig::new(Arc::new(|| Policy::default().scheduler()))
        .set_handshake_timeout(ATTEMPT)
        .clone();
    let link = Link::new(LinkOptions {
        gateway: GatewayAddress { host: "127.0.0.1".to_owned(), port: silent.local_addr().unwrap().port() },
        config: ClientConfig::new(tls, Arc::new(transport)),
        names: Names::default(),
        paths: Vec::new().into(),
        token: None,
        destined: |_| {},
        unusable: |_, _| {},
        noticed: |_| {},
    });
    let link = Arc::new(link.unwrap());
    let options = ProxyOptions { listen: ([127, 0, 0, 1], 0).into(), identity: None, link };
    let proxy = Proxy::start(options).await.unwrap();
    let (start, address) = (Instant::now(), proxy.local_addr());
    let waiting: Vec<_> =
        (0..4).map(|_| tokio::spawn(async move { ask(address, "http://origin.invalid/").await })).collect();
    for waiting in waiting {
        let answer = within(waiting).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 502") && answer.contains("cannot connect"), "{answer}");
    }
    // One after the other they would take four times as long.
    assert!((ATTEMPT..ATTEMPT * 2).contains(&start.elapsed()), "{:?}", start.elapsed());
    let again = Instant::now();
    assert!(ask(address, "http://origin.invalid/").await.starts_with("HTTP/1.1 502"));
    assert!(again.elapsed() < ATTEMPT / 2, "{:?} within the pause", again.elapsed());
    proxy.stop().await;
}

#[tokio::test]
async fn a_first_path_that_is_dead_leaves_the_gateway_to_the_second() {
    let (silent, origin) = (UdpSocket::bind("127.0.0.1:0").await.unwrap(), Origin::new().await);
    let dead = silent.local_addr().unwrap();
    let place = Fixture::behind(dead).await;
    let (http, url) = (format!("http://{}", place.address()), format!("http://{}/", origin.address));
    let start = Instant::now();
    assert_eq!(curl(&["-x", &http, &url]).await.0, "GET / 0");
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}, and 10 s are the limit", start.elapsed());
    let paths = place.link.paths();
    assert_eq!(paths[0].name.as_deref(), Some("path0"), "{paths:?}");
    assert!(paths.iter().any(|path| path.stats.tuple.remote == dead), "it may come back: {paths:?}");
}
