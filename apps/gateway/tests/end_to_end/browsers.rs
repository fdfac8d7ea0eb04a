//! A page in a browser, through the gateway to an origin: HTTP/3 that it finds by itself, an upload, WebSockets.

use crate::common::page_in_chromium;
use crate::firefox::screenshot_of_firefox;
use crate::names::{Made, tables};
use crate::setup::{Fixture, Origin, Visit, length, public_key};
use futures::{SinkExt, StreamExt};
use serde::Deserialize;
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

/// The page; its comments say what it does.
const PAGE: &str = include_str!("browsers.html");

/// The result that the page reports.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Reported {
    agent: String,
    /// The protocols of its visits.
    protocols: Vec<String>,
    /// True if what was uploaded arrived.
    upload: bool,
    /// The codes that WebSockets were closed with: of its own host, and of another one.
    sockets: Vec<serde_json::Value>,
    error: Option<String>,
}

/// The report, once it came.
#[derive(Debug, Default)]
struct Report {
    text: Mutex<String>,
    came: Notify,
}

/// The sum that the page makes of what it uploads.
fn sum(body: &[u8]) -> u32 {
    body.iter().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(*byte)))
}

/// Answers a request of the page; returns false if its connection became a WebSocket, which has ended.
async fn answer(visit: &mut Visit, head: &str, report: &Report) -> bool {
    let path = head.split(' ').nth(1).unwrap_or_default();
    let key = head.lines().find_map(|line| line.strip_prefix("sec-websocket-key: "));
    if let Some(key) = key {
        let accept = derive_accept_key(key.trim().as_bytes());
        let switch = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-protocol: chat";
        visit.write(format!("{switch}\r\nsec-websocket-accept: {accept}\r\n\r\n")).await;
        let mut socket = WebSocketStream::from_raw_socket(&mut visit.stream, Role::Server, None).await;
        while let Some(Ok(message)) = socket.next().await {
            if message.is_text() || message.is_binary() {
                socket.send(message).await.unwrap();
            }
        }
        return false;
    }
    let body = visit.body(length(head).unwrap_or(0)).await;
    match path {
        "/page" => visit.page(PAGE).await,
        "/upload" => visit.ok(format!("{} {}", body.len(), sum(&body)).as_bytes()).await,
        "/result" => {
            *report.text.lock().unwrap() = String::from_utf8(body).unwrap();
            visit.ok(b"").await;
            report.came.notify_one();
        }
        "/hold" => {
            report.came.notified().await;
            visit.ok(b"").await;
        }
        _ => visit.page("<!doctype html>frame").await,
    }
    true
}

/// A gateway in front of the origin of the page.
struct Place {
    fixture: Fixture,
    shared: Made,
    report: Arc<Report>,
    _origin: Origin,
}

impl Place {
    async fn new(certificate: Made) -> Self {
        let report = Arc::new(Report::default());
        let reported = report.clone();
        let origin = Origin::new(move |mut visit| {
            let report = reported.clone();
            async move {
                while let Some(head) = visit.head().await {
                    if !answer(&mut visit, &head, &report).await {
                        break;
                    }
                }
            }
        })
        .await;
        let text = format!(
            "{}[log]\nfile = 'DIR/access.log'\nformat = 'json'\n[tcp]\nlisten = ['127.0.0.1:0']\n\
             [[host]]\nnames = ['page.example', 'sockets.example']\norigin = 'http://{}'\n",
            tables(&["shared"]),
            origin.address
        );
        let files = [("shared.pem", &certificate.chain[..]), ("shared.key", &certificate.key[..])];
        let fixture = Fixture::with(&text, &files).await;
        Self { fixture, shared: certificate, report, _origin: origin }
    }

    fn url(&self) -> String {
        format!("https://page.example:{}/page", self.fixture.gateway.tcp_addrs()[0].port())
    }

    fn reported(&self) -> Reported {
        let text = self.report.text.lock().unwrap();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: the page reported {text:?}"))
    }

    /// The protocol by which the WebSocket at `path` came to the gateway, as its log has it.
    async fn protocol_of(&self, path: &str) -> String {
        // A line is written when the socket has ended.
        for _ in 0..100 {
            let log = std::fs::read_to_string(self.fixture.file("access.log")).unwrap();
            let mut entries =
                log.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
            if let Some(entry) = entries.find(|entry| entry["path"] == path) {
                return entry["protocol"].as_str().unwrap_or_default().to_owned();
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        panic!("no request for {path} was logged");
    }

    /// Checks what the page reported, but for the protocols of WebSockets.
    fn check(&self) -> Reported {
        let reported = self.reported();
        let found = reported.protocols.first().zip(reported.protocols.last());
        assert_eq!(found, Some((&"h2".to_owned(), &"h3".to_owned())), "{reported:?}");
        assert!(reported.upload && reported.error.is_none(), "{reported:?}");
        assert_eq!(reported.sockets, [1000, 1000], "{reported:?}");
        reported
    }
}

/// Has Chromium load the page with `more` options; returns the protocols of the WebSockets to its own host and to another.
async fn sockets_of_chromium(more: &[&str]) -> [String; 2] {
    let place = Place::new(Made::new(&["page.example", "sockets.example"], 2040)).await;
    let certificate =
        format!("--ignore-certificate-errors-spki-list={}", public_key(place.shared.chain.as_bytes()));
    let mut arguments = vec![
        "--host-resolver-rules=MAP page.example 127.0.0.1,MAP sockets.example 127.0.0.1,MAP * ~NOTFOUND",
        // As in the other tests: HTTP/3 is forced elsewhere, so that it has to be found here.
        "--origin-to-force-quic-on=page.example:1",
        &certificate,
    ];
    arguments.extend(more);
    page_in_chromium(&place.url(), &arguments).await;
    place.check();
    [place.protocol_of("/own").await, place.protocol_of("/other").await]
}

#[tokio::test]
async fn websockets_of_chromium_come_over_the_connection_that_it_has_or_a_new_one() {
    // To its own host over the connection of HTTP/2 that it began with (RFC 8441), to another by an upgrade.
    assert_eq!(sockets_of_chromium(&[]).await, ["HTTP/2.0", "HTTP/1.1"]);
    // Over HTTP/3 (RFC 9220), which Chromium 156 speaks, but not by default.
    let over_http3 =
        sockets_of_chromium(&["--enable-features=EnableWebsocketsOverHttp3,WebsocketsOverHttp3"]);
    assert_eq!(over_http3.await, ["HTTP/3.0", "HTTP/1.1"]);
}

#[tokio::test]
#[ignore = "needs Firefox: make firefox"]
async fn firefox_finds_http3_uploads_and_speaks_over_websockets() {
    let (authority, made) = Made::below_an_authority(&["page.example", "sockets.example"]);
    let place = Place::new(made).await;
    screenshot_of_firefox(&place.url(), &authority, "gateway.png").await;
    let reported = place.check();
    let protocols = [place.protocol_of("/own").await, place.protocol_of("/other").await];
    assert!(reported.agent.contains("Firefox/"), "{reported:?}");
    println!("{}: visits by {:?}, WebSockets by {protocols:?}", reported.agent, reported.protocols);
    // The other host shares certificate and address, so that Firefox asks for it over the connection of HTTP/2, too.
    assert_eq!(protocols, ["HTTP/2.0", "HTTP/2.0"]);
}
