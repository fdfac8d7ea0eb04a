//! nginx as an origin: what comes through the gateway is what nginx says to anybody.

use crate::common::nginx;
use crate::setup::{Client, Fixture, bytes, get, post};
use bytes::Bytes;
use http::{Method, Request};
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// nginx, in one process that ends with this.
struct Nginx {
    child: Child,
    folder: tempfile::TempDir,
    plain: SocketAddr,
    tls: SocketAddr,
    prior: SocketAddr,
    certificate: Vec<u8>,
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // It may have ended already.
        let _ended = self.child.kill();
        let _status = self.child.wait();
    }
}

fn free_port() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

impl Nginx {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        fs::create_dir(&root).unwrap();
        fs::write(root.join("large.bin"), bytes(2_000_000)).unwrap();
        fs::write(root.join("page.html"), "<p>hello</p>".repeat(200)).unwrap();
        let key = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        fs::write(folder.path().join("chain.pem"), key.cert.pem()).unwrap();
        fs::write(folder.path().join("key.pem"), key.signing_key.serialize_pem()).unwrap();
        let (plain, tls, prior) = (free_port(), free_port(), free_port());
        let dir = folder.path().display();
        let config = format!(
            "daemon off; master_process off; pid {dir}/pid; error_log {dir}/error.log;
             events {{ worker_connections 512; }}
             http {{
               access_log off; default_type text/plain; gzip on; gzip_proxied any; gzip_min_length 100;
               gzip_types text/plain; client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy;
               fastcgi_temp_path {dir}/fastcgi; uwsgi_temp_path {dir}/uwsgi; scgi_temp_path {dir}/scgi;
               server {{
                 listen {plain}; listen {tls} ssl http2; listen {prior} http2;
                 ssl_certificate {dir}/chain.pem; ssl_certificate_key {dir}/key.pem;
                 root {dir}/root; client_max_body_size 10m;
                 location /say {{ return 200 '$server_protocol $scheme $host $http_priority $http_x_forwarded_for'; }}
                 location /none {{ return 204; }}
                 location /put {{ if ($request_method = POST) {{ return 201 '$content_length $http_transfer_encoding'; }} }}
                 location /away {{ return 302 https://localhost/say; }}
               }}
             }}"
        );
        fs::write(folder.path().join("nginx.conf"), config).unwrap();
        let mut command = Command::new(nginx());
        command.arg("-p").arg(folder.path()).arg("-c").arg(folder.path().join("nginx.conf"));
        command.arg("-e").arg(folder.path().join("error.log"));
        let child = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let certificate = key.cert.pem().into_bytes();
        let nginx = Self { child, folder, plain, tls, prior, certificate };
        let start = Instant::now();
        while TcpStream::connect(plain).is_err() {
            let log = fs::read_to_string(nginx.folder.path().join("error.log")).unwrap_or_default();
            assert!(start.elapsed() < Duration::from_secs(20), "nginx does not start: {log}");
            std::thread::sleep(Duration::from_millis(20));
        }
        nginx
    }

    /// The status, fields and body that nginx has for a request without a gateway.
    fn ask(&self, method: &str, path: &str, fields: &str) -> (u16, Vec<(String, String)>, Vec<u8>) {
        let mut stream = TcpStream::connect(self.plain).unwrap();
        write!(stream, "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{fields}\r\n")
            .unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap();
        let head = String::from_utf8(answer[..end].to_vec()).unwrap();
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let pair =
            |line: &str| line.split_once(": ").map(|(name, value)| (name.to_lowercase(), value.to_owned()));
        (status, lines.filter_map(pair).collect(), answer[end + 4..].to_vec())
    }
}

fn request(method: &str, path: &str, fields: &str) -> Request<Bytes> {
    let mut request = Request::builder().method(method).uri(format!("https://localhost{path}"));
    for line in fields.lines() {
        let (name, value) = line.split_once(": ").unwrap();
        request = request.header(name, value);
    }
    request.body(Bytes::new()).unwrap()
}

async fn compare(nginx: &Nginx, client: &Client, (method, path, fields): (&str, &str, &str)) {
    let (status, wanted, content) = nginx.ask(method, path, fields);
    let (response, body) = client.ask(request(method, path, fields)).await.unwrap();
    assert_eq!(response.status().as_u16(), status, "{method} {path}");
    // A body of unknown length is in chunks there, and here it is not.
    let chunked = wanted.iter().any(|(name, _)| name == "transfer-encoding");
    assert!(chunked || body == content, "{method} {path}: {} bytes, {}", body.len(), content.len());
    for (name, value) in wanted {
        if !matches!(name.as_str(), "connection" | "date" | "transfer-encoding") {
            assert_eq!(response.headers()[&name], value, "{method} {path}: {name}");
        }
    }
}

#[tokio::test]
async fn everything_that_nginx_answers_comes_through_unchanged() {
    // I15.
    let nginx = Nginx::start();
    let place = Fixture::before(nginx.plain).await;
    let client = place.client_of_two_paths().await;
    let (_, fields, _) = nginx.ask("GET", "/page.html", "");
    let tag = fields.iter().find(|(name, _)| name == "etag").map(|(_, value)| value.clone()).unwrap();
    for asked in [
        ("GET", "/large.bin", ""),
        ("GET", "/page.html", ""),
        ("HEAD", "/large.bin", ""),
        ("GET", "/large.bin", "range: bytes=100-199\r\n"),
        ("GET", "/large.bin", "range: bytes=1999990-\r\n"),
        ("GET", "/large.bin", "range: bytes=3000000-\r\n"),
        ("GET", "/none", ""),
        ("GET", "/missing", ""),
        ("GET", "/away", ""),
        ("OPTIONS", "/page.html", ""),
        ("GET", "/page.html", &format!("if-none-match: {tag}\r\n")),
        ("GET", "/page.html", "accept-encoding: gzip\r\n"),
        ("GET", "/page.html?a=b&c=%20d", ""),
        ("GET", "//page.html", ""),
        ("GET", "/%2e%2e/etc/passwd", ""),
    ] {
        compare(&nginx, &client, asked).await;
    }
}

#[tokio::test]
async fn uploads_arrive_with_and_without_a_length_and_after_a_word() {
    let nginx = Nginx::start();
    let place = Fixture::before(nginx.plain).await;
    let client = place.client().await;
    let mut known = post("/put", bytes(100_000));
    known.headers_mut().insert("content-length", 100_000.into());
    let (response, body) = client.ask(known).await.unwrap();
    assert_eq!((response.status().as_u16(), body.as_slice()), (201, &b"100000 "[..]));
    let (response, _) = client.ask(post("/put", bytes(100_000))).await.unwrap();
    assert_eq!(response.status().as_u16(), 201);
    // 100-continue: the interim response comes first, then the answer.
    let mut stream = client.requests.clone();
    let request = Request::post("https://localhost/put").header("expect", "100-continue").body(()).unwrap();
    let mut stream = stream.send_request(request).await.unwrap();
    assert_eq!(stream.recv_response().await.unwrap().status().as_u16(), 100);
    stream.send_data(Bytes::from_static(b"now")).await.unwrap();
    stream.finish().await.unwrap();
    assert_eq!(stream.recv_response().await.unwrap().status().as_u16(), 201);
}

#[tokio::test]
async fn tls_and_http_2_without_tls_reach_the_same_nginx() {
    let nginx = Nginx::start();
    fs::write(nginx.folder.path().join("ca.pem"), &nginx.certificate).unwrap();
    let ca = nginx.folder.path().join("ca.pem");
    let (tls, prior, ca) = (nginx.tls.port(), nginx.prior, ca.display());
    let place = Fixture::new(&format!(
        "[[host]]\nnames = ['localhost']\norigin = 'https://localhost:{tls}'\nca = '{ca}'\n\
         [[host]]\nnames = ['prior.example']\norigin = 'h2c://{prior}'\n\
         [[host]]\nnames = ['strange.example']\norigin = 'https://127.0.0.1:{tls}'\nca = '{ca}'\n"
    ))
    .await;
    let client = place.client().await;
    let mut asked = get("/say");
    asked.headers_mut().insert("priority", "u=2".parse().unwrap());
    let (_, text) = client.ask(asked).await.unwrap();
    assert_eq!(String::from_utf8(text).unwrap(), "HTTP/2.0 https localhost u=2 127.0.0.1");
    let prior = Request::get("https://prior.example/say").body(Bytes::new()).unwrap();
    let (_, text) = client.ask(prior).await.unwrap();
    assert_eq!(String::from_utf8(text).unwrap(), "HTTP/2.0 http prior.example  127.0.0.1");
    let mut upload = post("/put", bytes(300_000));
    *upload.uri_mut() = "https://prior.example/put".parse().unwrap();
    assert_eq!(client.status(upload).await, 201);
    // A certificate for another name is refused.
    let strange = Request::get("https://strange.example/say").body(Bytes::new()).unwrap();
    assert_eq!(client.status(strange).await, 502);
}

#[tokio::test]
async fn header_sections_that_nginx_refuses_are_refused_through_the_gateway_too() {
    // I17: nginx takes lines of up to 8 KiB, four of them.
    let nginx = Nginx::start();
    let place = Fixture::before(nginx.plain).await;
    let client = place.client().await;
    for (length, agreed) in [(8_000, true), (9_000, false)] {
        let field = format!("x-large: {}\r\n", "a".repeat(length));
        let direct = nginx.ask("GET", "/say", &field).0;
        let status = client.status(request("GET", "/say", &field)).await;
        assert_eq!((status, status == 200), (direct, agreed), "{length}");
        let path = format!("/say?{}", "a".repeat(length));
        let direct = nginx.ask("GET", &path, "").0;
        assert_eq!(client.status(request("GET", &path, "")).await, direct, "{length}");
    }
}

#[tokio::test]
async fn methods_that_nginx_refuses_are_refused_with_its_words() {
    let nginx = Nginx::start();
    let place = Fixture::before(nginx.plain).await;
    let client = place.client().await;
    for method in ["DELETE", "TRACE", "PATCH"] {
        let direct = nginx.ask(method, "/page.html", "").0;
        let asked =
            Request::builder().method(method.parse::<Method>().unwrap()).uri("https://localhost/page.html");
        assert_eq!(client.status(asked.body(Bytes::new()).unwrap()).await, direct, "{method}");
    }
}
