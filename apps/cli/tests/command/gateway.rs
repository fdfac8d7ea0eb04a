//! `hvq gateway` and `hvq proxy` as programs: over two paths, and told by signals.

use crate::support::{Running, code, hvq, json, run, said};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

/// An origin that answers every connection with its request's first line, in a thread that ends with the test program.
fn origin(name: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 4096];
            let length = stream.read(&mut request).unwrap_or(0);
            let request = String::from_utf8_lossy(&request[..length]).into_owned();
            let text = format!("{name}: {}", request.lines().next().unwrap_or_default());
            let head =
                format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", text.len());
            // The gateway may be gone.
            let _gone = stream.write_all((head + &text).as_bytes());
        }
    });
    address
}

struct Fixture(tempfile::TempDir);

impl Fixture {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.file(name).to_str().unwrap().to_owned()
    }

    /// A gateway on two ports, with the certificate in `chain.pem`.
    fn gateway(&self, more: &[&str]) -> Running {
        let certificate = self.text("chain.pem");
        let mut arguments =
            vec!["gateway", "--json", "--self-signed", "localhost", "--write-cert", &certificate];
        arguments.extend(["--listen", "127.0.0.1:0", "--listen", "127.0.0.1:0"]);
        arguments.extend(more);
        Running::start(arguments)
    }

    /// A proxy with two paths to `gateway`.
    fn proxy(&self, gateway: &Running, more: &[&str]) -> Running {
        let (first, second) = (gateway.address(0), gateway.address(1));
        let (name, certificate) = (format!("localhost:{}", first.port()), self.text("chain.pem"));
        let paths = [format!("embb=127.0.0.1>{first}"), format!("urllc=127.0.0.1>{second}")];
        let mut arguments = vec!["proxy", "--json", "--listen", "127.0.0.1:0", "--gateway", &name];
        arguments.extend(["--cacert", &certificate, "--path", &paths[0], "--path", &paths[1]]);
        arguments.extend(more);
        Running::start(arguments)
    }

    /// Writes a certificate for `name` as `NAME.pem`, with its key as `NAME.key`, which is its own authority.
    fn certificate(&self, name: &str) {
        let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
        fs::write(self.file(&format!("{name}.pem")), made.cert.pem()).unwrap();
        fs::write(self.file(&format!("{name}.key")), made.signing_key.serialize_pem()).unwrap();
    }

    /// Runs `hvq get` for `path` at `gateway` over two paths.
    fn get(&self, gateway: &Running, path: &str) -> std::process::Output {
        let (first, second) = (gateway.address(0), gateway.address(1));
        let certificate = self.text("chain.pem");
        let arguments = [
            "get",
            "--max-time",
            "20s",
            "--cacert",
            &certificate,
            "--path",
            "embb=127.0.0.1",
            "--path",
            &format!("urllc=127.0.0.1>{second}"),
            &format!("https://localhost:{}{path}", first.port()),
        ]
        .map(str::to_owned);
        run(arguments)
    }
}

/// Returns a program's answer from `origin` through `proxy`.
fn ask(proxy: &Running, origin: SocketAddr) -> String {
    let address: SocketAddr = proxy.ready["listening"].as_str().unwrap().parse().unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    write!(stream, "GET http://{origin}/through HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn signal(name: &str, running: &Running) {
    let sent = std::process::Command::new("kill").args([name, &running.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

#[test]
fn a_gateway_fetches_from_its_origin_reads_its_file_again_and_ends_when_told() {
    let place = Fixture::new();
    let file = |origin: SocketAddr| format!("[[host]]\nnames = ['*']\norigin = 'http://{origin}'\n");
    fs::write(place.file("gateway.toml"), file(origin("one"))).unwrap();
    let log = place.text("access.log");
    let gateway = place.gateway(&["--config", &place.text("gateway.toml"), "--access-log", &log]);
    let output = place.get(&gateway, "/a");
    assert_eq!(
        (code(&output), output.stdout.as_slice()),
        (0, &b"one: GET /a HTTP/1.1"[..]),
        "{}",
        said(&output)
    );

    // J9: a broken file changes nothing, a sound one everything.
    fs::write(place.file("gateway.toml"), "colour = 'red'\n").unwrap();
    signal("-HUP", &gateway);
    thread::sleep(Duration::from_millis(200));
    assert_eq!(place.get(&gateway, "/b").stdout, b"one: GET /b HTTP/1.1");
    fs::write(place.file("gateway.toml"), file(origin("two"))).unwrap();
    signal("-HUP", &gateway);
    let start = Instant::now();
    while place.get(&gateway, "/c").stdout != b"two: GET /c HTTP/1.1" {
        assert!(start.elapsed() < Duration::from_secs(20), "the file was not read again");
    }
    signal("-TERM", &gateway);
    assert_eq!(gateway.wait().0, 0);
    let log = fs::read_to_string(log).unwrap();
    assert!(log.contains("\"GET /a HTTP/3.0\" 200 20 "), "{log}");
}

#[test]
fn a_host_header_asks_a_host_of_that_name() {
    let place = Fixture::new();
    let hosts = ["one", "two"].map(|name| {
        fs::create_dir(place.file(name)).unwrap();
        fs::write(place.file(&format!("{name}/who")), name).unwrap();
        format!("[[host]]\nnames = ['{name}.example']\nfiles = '{}'\n", place.text(name))
    });
    fs::write(place.file("gateway.toml"), hosts.concat()).unwrap();
    let gateway = place.gateway(&["--config", &place.text("gateway.toml")]);
    let (certificate, url) = (place.text("chain.pem"), gateway.url("/who"));
    for name in ["one", "two"] {
        let output = run(["get", "--cacert", &certificate, "-H", &format!("Host: {name}.example"), &url]);
        assert_eq!(output.stdout, name.as_bytes(), "{}", said(&output));
    }
}

#[test]
fn a_path_that_a_proxy_cannot_use_is_a_warning() {
    let place = Fixture::new();
    let gateway = place.gateway(&["--root", place.0.path().to_str().unwrap()]);
    let name = format!("localhost:{}", gateway.address(0).port());
    let mut proxy = hvq();
    proxy.args([
        "proxy",
        "--listen",
        "127.0.0.1:0",
        "--gateway",
        &name,
        "--cacert",
        &place.text("chain.pem"),
    ]);
    // 192.0.2.0/24 is for documentation (RFC 5737): no machine has an address of it.
    proxy.args(["--path", "embb=127.0.0.1", "--path", "urllc=192.0.2.1"]).stderr(Stdio::piped());
    let mut proxy = proxy.spawn().unwrap();
    let said = BufReader::new(proxy.stderr.take().unwrap());
    // No terminal, no colours.
    let warned = said.lines().map(Result::unwrap).find(|line| line.contains("path urllc cannot be used"));
    proxy.kill().unwrap();
    proxy.wait().unwrap();
    let warned = warned.unwrap();
    assert!(!warned.contains('\u{1b}'), "{warned:?}");
}

#[test]
fn a_configuration_is_checked_without_starting_anything() {
    let place = Fixture::new();
    fs::write(place.file("gateway.toml"), "[limits]\nheader = '1 parsec'\n").unwrap();
    let check = ["gateway", "--check-config", "--config"].map(str::to_owned).into_iter();
    let output = run(check.clone().chain([place.text("gateway.toml")]));
    assert_eq!(code(&output), 2);
    assert!(said(&output).contains("gateway.toml:2: limits.header: "), "{}", said(&output));
    fs::write(place.file("gateway.toml"), "[[host]]\nnames = ['*']\norigin = 'http://127.0.0.1:1'\n")
        .unwrap();
    let sound = check.chain([place.text("gateway.toml"), "--self-signed".to_owned(), "localhost".to_owned()]);
    let output = run(sound);
    assert_eq!(code(&output), 0, "{}", said(&output));
    // Environment goes before the file, flags before both.
    let mut command = hvq();
    command.env("HVQ_GATEWAY_ORIGIN", "nonsense").args([
        "gateway",
        "--check-config",
        "--self-signed",
        "localhost",
    ]);
    let output = command.output().unwrap();
    assert_eq!(code(&output), 2);
    assert!(said(&output).contains("h2c://"), "{}", said(&output));
    command.args(["--origin", "http://127.0.0.1:1"]);
    assert_eq!(code(&command.output().unwrap()), 0);
}

#[test]
fn routes_of_tunnels_beyond_reach_are_refused_or_warned_of() {
    let place = Fixture::new();
    fs::write(place.file("tokens"), "ann 0123456789abcdef\n").unwrap();
    let tokens = place.text("tokens");
    let gateway = |more: &[&str]| {
        let common = ["gateway", "--self-signed", "localhost", "--tokens", &tokens, "--tunnel-route"];
        run([&common[..], more].concat())
    };
    // With and without the check: nothing starts.
    for more in [&["169.254.7.0/24"][..], &["169.254.7.0/24", "--check-config"]] {
        let output = gateway(more);
        assert_eq!(code(&output), 2, "{}", said(&output));
        assert!(
            said(&output).contains("169.254.7.0/24 would be dropped") && said(&output).contains("--reach")
        );
    }
    let output = gateway(&["169.254.7.0/24", "--check-config", "--reach", "169.254.7.0/24"]);
    assert!(code(&output) == 0 && !said(&output).contains("warning"), "{}", said(&output));
    let output = gateway(&["0.0.0.0/0", "--check-config"]);
    assert_eq!(code(&output), 0, "{}", said(&output));
    assert!(said(&output).contains("warning: ") && said(&output).contains("10.0.0.0/8"), "{}", said(&output));
}

#[test]
fn the_example_of_a_configuration_is_sound_but_for_its_certificate() {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../gateway/examples/gateway.toml");
    let output = run(["gateway", "--check-config", "--config", example, "--self-signed", "localhost"]);
    assert_eq!(code(&output), 0, "{}", said(&output));
    // With everything that is commented out.
    let text = fs::read_to_string(example).unwrap();
    let lines = text.lines().map(|line| match line.strip_prefix("# ") {
        Some(rest)
            if rest.starts_with('[') || rest.split_once(" = ").is_some_and(|(key, _)| !key.contains(' ')) =>
        {
            rest
        }
        _ => line,
    });
    let place = Fixture::new();
    fs::write(place.file("tokens"), "ann 0123456789abcdef\n").unwrap();
    fs::create_dir(place.file("acme")).unwrap();
    place.certificate("clients");
    place.certificate("other");
    let all = lines.collect::<Vec<_>>().join("\n");
    let all = all
        .replace("/etc/hvq/tokens", &place.text("tokens"))
        .replace("/etc/hvq/clients.pem", &place.text("clients.pem"))
        .replace("/etc/hvq/other.pem", &place.text("other.pem"))
        .replace("/etc/hvq/other.key", &place.text("other.key"))
        .replace("/srv/www", place.0.path().to_str().unwrap())
        .replace("/var/lib/hvq", place.0.path().to_str().unwrap())
        .replace("/var/log/hvq", place.0.path().to_str().unwrap());
    // There is no authority and no response of one, and a host has either one origin or several.
    let absent = [
        "ca = \"/etc/hvq/origin-ca.pem\"",
        "ocsp = \"/etc/hvq/other-ocsp.der\"",
        "origin = \"http://127.0.0.1:8080\"",
    ];
    let all = absent.iter().fold(all, |all, line| all.replace(line, ""));
    fs::write(place.file("all.toml"), all).unwrap();
    let output =
        run(["gateway", "--check-config", "--config", &place.text("all.toml"), "--self-signed", "localhost"]);
    assert_eq!(code(&output), 0, "{}", said(&output));
}

#[test]
fn a_proxy_carries_curl_to_the_gateway_and_both_end_when_told() {
    let place = Fixture::new();
    fs::write(place.file("tokens"), "ann 0123456789abcdef\n").unwrap();
    fs::write(place.file("token"), "0123456789abcdef\n").unwrap();
    let tokens = place.text("tokens");
    let gateway = place.gateway(&[
        "--allow",
        "127.0.0.1:*",
        "--tokens",
        &tokens,
        "--reach",
        "127.0.0.0/8",
        "--drain",
        "200ms",
    ]);
    let proxy = place.proxy(&gateway, &["--token-file", &place.text("token")]);
    let answer = ask(&proxy, origin("far"));
    assert!(answer.ends_with("far: GET /through HTTP/1.1"), "{answer}");
    signal("-TERM", &proxy);
    assert_eq!(proxy.wait().0, 0);
    gateway.interrupt();
    assert_eq!(gateway.wait().0, 0);
}

#[test]
fn workers_behind_a_balancer_let_holders_of_a_certificate_through() {
    let place = Fixture::new();
    place.certificate("ann");
    fs::write(place.file("lb.key"), "8f95f09245765f80256934e50c66207f\n").unwrap();
    let (ca, key) = (place.text("ann.pem"), place.text("lb.key"));
    let mut options = vec!["--workers", "3", "--server-id", "0a01", "--quic-lb-key-file", &key];
    options.extend(["--quic-lb-rotation", "1", "--allow", "127.0.0.1:*", "--reach", "127.0.0.0/8"]);
    options.extend(["--client-ca", &ca, "--client", "ann", "--drain", "200ms"]);
    let gateway = place.gateway(&options);
    let far = origin("far");
    let (certificate, own) = (place.text("ann.pem"), place.text("ann.key"));
    let ann = place.proxy(&gateway, &["--client-cert", &certificate, "--client-key", &own]);
    assert!(ask(&ann, far).ends_with("far: GET /through HTTP/1.1"));
    let nobody = place.proxy(&gateway, &[]);
    assert!(ask(&nobody, far).starts_with("HTTP/1.1 502"), "{}", ask(&nobody, far));
    gateway.interrupt();
    assert_eq!(gateway.wait().0, 0);
    let output = run(["get", "--client-cert", &certificate, "https://localhost/"]);
    assert_eq!(code(&output), 2, "a certificate without its key");
}

#[test]
fn a_proxy_does_not_listen_to_other_machines_unless_that_is_permitted() {
    // I12.
    let output = run(["proxy", "--listen", "0.0.0.0:0", "--gateway", "localhost:1"]);
    assert_eq!(code(&output), 2);
    assert!(said(&output).contains("--allow-remote"), "{}", said(&output));
}

#[test]
fn the_addresses_of_a_gateway_are_told_as_json() {
    let place = Fixture::new();
    let gateway = place.gateway(&["--root", place.0.path().to_str().unwrap(), "--admin", "127.0.0.1:0"]);
    assert_eq!(gateway.ready["listening"].as_array().unwrap().len(), 2);
    assert!(gateway.ready["admin"].as_str().unwrap().parse::<SocketAddr>().unwrap().port() > 0);
    fs::write(place.file("hello"), "hi").unwrap();
    let certificate = place.text("chain.pem");
    let url = gateway.url("/hello");
    let output = run(["get", "--json", "--cacert", &certificate, &url]);
    assert_eq!(json(&output)["status"], 200);
}
