//! `hvq get` from `hvq serve` over loopback.

use crate::support::{Running, code, hvq, json, run, said};
use std::fs;
use std::path::{Path, PathBuf};

/// A folder with a site in it, and a secret beside the site.
struct Fixture {
    folder: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("site/sub")).unwrap();
        fs::write(folder.path().join("secret"), "secret").unwrap();
        let place = Self { folder };
        fs::write(place.site().join("hello.txt"), "hello world").unwrap();
        fs::write(place.site().join("empty"), "").unwrap();
        fs::write(place.site().join("sub/index.html"), "<p>index").unwrap();
        let large: Vec<u8> = (0..3_000_000_u32).map(|index| (index % 251) as u8).collect();
        fs::write(place.site().join("large"), large).unwrap();
        place
    }

    fn site(&self) -> PathBuf {
        self.folder.path().join("site")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn certificate(&self) -> PathBuf {
        self.file("certificate.pem")
    }

    fn serve(&self, more: &[&str]) -> Running {
        Running::serve(&self.site(), &self.certificate(), more)
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The records of the only qlog file in `folder` whose name ends so, without the header.
fn log(folder: &Path, end: &str) -> Vec<serde_json::Value> {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<_> = files.filter(|file| text(file).ends_with(end)).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    let records = fs::read_to_string(&files[0]).unwrap();
    records.split('\u{1e}').skip(2).map(|record| serde_json::from_str(record).unwrap()).collect()
}

#[test]
fn both_ends_write_a_log_of_the_connection_with_the_path_of_every_packet() {
    let place = Fixture::new();
    let logs = place.file("logs");
    let server = place.serve(&["--qlog", text(&logs)]);
    let certificate = place.certificate();
    let mut command = hvq();
    command.env("QLOGDIR", &logs).args(["get", "--cacert", text(&certificate), &server.url("/hello.txt")]);
    let output = command.output().unwrap();
    assert_eq!(code(&output), 0, "{}", said(&output));
    server.interrupt();
    assert_eq!(server.wait().0, 0);
    for end in ["client.sqlog", "server.sqlog"] {
        let records = log(&logs, end);
        assert!(records[0]["name"] == "connectivity:connection_started", "{}", records[0]);
        let sent = |record: &&serde_json::Value| record["name"] == "transport:packet_sent";
        assert!(records.iter().filter(sent).any(|record| record["data"]["header"]["path_id"] == 0));
        assert!(records.iter().any(|record| record["name"] == "connectivity:connection_closed"), "{end}");
        let times: Vec<f64> = records.iter().map(|record| record["time"].as_f64().unwrap()).collect();
        assert!(times.is_sorted(), "{end}");
    }
}

#[test]
fn a_file_arrives_whole_from_a_server_whose_certificate_is_trusted() {
    let place = Fixture::new();
    let server = place.serve(&[]);
    let certificate = place.certificate();
    let output = run(["get", "--cacert", text(&certificate), &server.url("/hello.txt")]);
    assert_eq!((code(&output), output.stdout.as_slice()), (0, &b"hello world"[..]), "{}", said(&output));
    let target = place.file("large");
    let output =
        run(["get", "--json", "--cacert", text(&certificate), "-o", text(&target), &server.url("/large")]);
    let statistics = json(&output);
    assert_eq!((&statistics["status"], &statistics["bytes"]), (&200.into(), &3_000_000.into()));
    assert_eq!(statistics["scheduler"], "hvc");
    assert_eq!(statistics["paths"][0]["state"], "validated");
    assert!(statistics["paths"][0]["bytes_received"].as_u64().unwrap() > 3_000_000);
    assert!(statistics["times_ms"]["total"].as_f64().unwrap() > 0.0);
    assert_eq!(fs::read(target).unwrap(), fs::read(place.site().join("large")).unwrap());
}

#[test]
fn several_urls_share_a_connection_and_go_to_their_files() {
    let place = Fixture::new();
    let server = place.serve(&[]);
    let output = hvq()
        .current_dir(place.folder.path())
        .args(["get", "-k", "-O", "-v", &server.url("/hello.txt"), &server.url("/empty")])
        .output()
        .unwrap();
    assert_eq!(code(&output), 0, "{}", said(&output));
    assert_eq!(fs::read(place.file("hello.txt")).unwrap(), b"hello world");
    assert_eq!(fs::read(place.file("empty")).unwrap(), b"");
    let said = said(&output);
    assert_eq!(said.matches("* connected to").count(), 1, "{said}");
    for part in
        ["multipath agreed", "> GET https://localhost", "< HTTP/3 200 OK", "< content-length: 11", "* path 0"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn statuses_are_passed_on_and_fail_with_22_if_asked() {
    let place = Fixture::new();
    let server = place.serve(&[]);
    for (path, more, status) in [
        ("/missing", &[][..], 404),
        ("/..%2fsecret", &[], 404),
        ("/%2e%2e/secret", &[], 404),
        ("/hello.txt", &["-X", "DELETE"], 405),
        ("/hello.txt", &["-d", "data"], 405),
        ("/hello.txt", &["-H", "range: bytes=99-"], 416),
        ("/hello.txt", &["-H", "range: bytes=1-2"], 206),
        ("/hello.txt", &["-X", "HEAD"], 200),
        ("/sub", &[], 301),
        ("/sub/", &["--priority", "u=1, i"], 200),
    ] {
        let url = server.url(path);
        let output = run([&["get", "-k", "--json", &url], more].concat());
        assert_eq!((code(&output), &json(&output)["status"]), (0, &status.into()), "{path} {more:?}");
        let output = run([&["get", "-k", "--fail", "-o", "-", &url], more].concat());
        let failed = status >= 400;
        assert_eq!(code(&output), if failed { 22 } else { 0 }, "{path} {more:?}: {}", said(&output));
        assert!(!failed || (output.stdout.is_empty() && said(&output).contains(&status.to_string())));
    }
}

#[test]
fn a_certificate_that_nobody_vouches_for_exits_with_4() {
    let place = Fixture::new();
    let server = place.serve(&[]);
    let output = run(["get", &server.url("/hello.txt")]);
    assert_eq!(code(&output), 4, "{}", said(&output));
    assert!(said(&output).contains("certificate") && said(&output).lines().count() == 1);
    // The certificate is for localhost, which 127.0.0.1 is not.
    let url = format!("https://{}/hello.txt", server.address(0));
    let output = run(["get", "--cacert", text(&place.certificate()), &url]);
    assert_eq!(code(&output), 4, "{}", said(&output));
}

#[test]
fn a_server_that_is_not_there_exits_with_3_and_impatience_with_28() {
    // Bound, so that nobody else answers there, and never read.
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/", silent.local_addr().unwrap());
    let output = run(["get", "-k", "--connect-timeout", "300ms", &url]);
    assert_eq!(code(&output), 3, "{}", said(&output));
    assert!(said(&output).contains("timed out"));
    let output = run(["get", "-k", "--max-time", "300ms", &url]);
    assert_eq!(code(&output), 28, "{}", said(&output));
    let output = run(["get", "-k", "https://name.invalid/"]);
    assert_eq!(code(&output), 3, "{}", said(&output));
}

#[test]
fn a_host_that_does_not_answer_keeps_nothing_from_another() {
    let place = Fixture::new();
    let server = place.serve(&[]);
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let silent = format!("https://{}/", silent.local_addr().unwrap());
    let hello = server.url("/hello.txt");
    let output = run([
        "get",
        "-k",
        "--connect-timeout",
        "300ms",
        &hello,
        &silent,
        &hello,
        "-o",
        "-",
        "-o",
        "-",
        "-o",
        "-",
    ]);
    assert_eq!(code(&output), 3, "{}", said(&output));
    assert!(said(&output).contains("timed out") && said(&output).contains("not every URL was fetched"));
    let once = run(["get", "-k", &hello, "-o", "-"]).stdout;
    assert!(!once.is_empty() && output.stdout == [once.clone(), once].concat());
}

#[test]
fn a_path_that_cannot_be_used_is_a_warning() {
    let place = Fixture::new();
    let server = place.serve(&[]);
    let first = format!("first=127.0.0.1>{}", server.address(0));
    let output = run([
        "get",
        "-k",
        "--path",
        &first,
        "--path",
        "second=203.0.113.9",
        &server.url("/large"),
        "-o",
        "-",
    ]);
    assert_eq!((code(&output), output.stdout.len()), (0, 3_000_000), "{}", said(&output));
    assert!(said(&output).contains("warning: path second cannot be used"), "{}", said(&output));
    let arguments = ["get", "-k", "-v", "--json", "--path", &first, "--path", "second=203.0.113.9"];
    let output = run([&arguments[..], &[&server.url("/large")]].concat());
    let unused = &json(&output)["unused"];
    assert_eq!((unused.as_array().unwrap().len(), &unused[0]["name"]), (1, &"second".into()), "{unused}");
    assert!(unused[0]["reason"].as_str().unwrap().contains("203.0.113.9"), "{unused}");
    assert!(said(&output).contains("* path second cannot be used: "), "{}", said(&output));
    let output = run(["get", "-k", "--path", "first=203.0.113.9", &server.url("/hello.txt")]);
    assert_eq!(code(&output), 3, "{}", said(&output));
}

#[test]
fn a_path_over_which_nobody_answers_is_named_at_the_end() {
    let place = Fixture::new();
    let server = place.serve(&[]);
    let relay = format!("slow:127.0.0.1:0={},rate=2mbit", server.address(0));
    let relays = Running::start(["emulate", "--json", "--duration", "20s", "--channel", &relay]);
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    fs::write(place.site().join("some"), vec![7; 500_000]).unwrap();
    let first = format!("first=127.0.0.1>{}", relays.ready["listening"][0]["listen"].as_str().unwrap());
    let second = format!("second=127.0.0.1>{}", silent.local_addr().unwrap());
    let output = run(["get", "-k", "--json", "--path", &first, "--path", &second, &server.url("/some")]);
    assert_eq!((code(&output), &json(&output)["bytes"]), (0, &500_000.into()), "{}", said(&output));
    assert!(said(&output).contains("warning: path second cannot be used: "), "{}", said(&output));
    assert_eq!(json(&output)["unused"][0]["name"], "second");
}

#[test]
fn a_first_path_that_is_dead_leaves_the_transfer_to_the_second() {
    let place = Fixture::new();
    let server = place.serve(&[]);
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let dead = format!("dead=127.0.0.1>{}", silent.local_addr().unwrap());
    let alive = format!("alive=127.0.0.1>{}", server.address(0));
    let output = run(["get", "-k", "--json", "--path", &dead, "--path", &alive, &server.url("/large")]);
    assert_eq!((code(&output), &json(&output)["bytes"]), (0, &3_000_000.into()), "{}", said(&output));
    let statistics = json(&output);
    let first = &statistics["paths"][0];
    assert_eq!((&first["name"], &first["id"]), (&"alive".into(), &0.into()), "{statistics}");
    // It waits 250 ms for the first; without another attempt it is 10 s, and nothing.
    let took = statistics["times_ms"]["connect"].as_f64().unwrap();
    assert!((250.0..3_000.0).contains(&took), "{took}");
    assert_eq!(statistics["unused"][0]["name"], "dead", "{statistics}");
}

#[test]
fn a_path_without_a_remote_goes_to_the_host_whichever_path_comes_first() {
    let place = Fixture::new();
    let server = place.serve(&[]);
    let relay = format!("urllc:127.0.0.1:0={},urllc", server.address(0));
    let relays = Running::start(["emulate", "--json", "--duration", "20s", "--channel", &relay]);
    let relay = relays.ready["listening"][0]["listen"].as_str().unwrap();
    let urllc = format!("urllc=127.0.0.1:0>{relay},rate=2mbit,delay=2.5ms");
    let embb = "embb=127.0.0.1:0,rate=60mbit,delay=25ms".to_owned();
    // `hvc` begins on the channel of small delay, wherever that stands.
    for paths in [[&urllc, &embb], [&embb, &urllc]] {
        let url = server.url("/large");
        let arguments = ["get", "-k", "-v", "--json", "--path", paths[0], "--path", paths[1], &url];
        let output = run(arguments);
        assert_eq!(code(&output), 0, "{}", said(&output));
        let statistics = json(&output);
        let path = |name: &str| {
            let paths = statistics["paths"].as_array().unwrap();
            paths.iter().find(|path| path["name"] == name).unwrap_or_else(|| panic!("{statistics}")).clone()
        };
        assert_eq!((&path("urllc")["id"], &path("urllc")["remote"]), (&0.into(), &relay.into()));
        assert_eq!(path("embb")["remote"], server.address(0).to_string());
        assert!(path("embb")["bytes_received"].as_u64().unwrap() > 1_500_000, "{statistics}");
        let line = format!("* path embb goes from 127.0.0.1:0 to {}", server.address(0));
        assert!(said(&output).contains(&line), "{}", said(&output));
    }
}

#[test]
fn a_path_of_an_ip_version_that_the_host_does_not_have_is_an_error() {
    let output = run(["get", "-k", "--path", "cell=::1", "https://127.0.0.1:9/"]);
    assert_eq!(code(&output), 2, "{}", said(&output));
    let text = "path cell starts at ::1, an IPv6 address, and 127.0.0.1 has no IPv6 address";
    assert!(said(&output).contains(text), "{}", said(&output));
}

#[test]
fn a_log_that_goes_to_no_terminal_has_no_colours() {
    let place = Fixture::new();
    let said = fs::File::create(place.file("said")).unwrap();
    let mut command = hvq();
    command.args(["--log", "hvq=info", "serve", "--json", "--self-signed", "localhost"]);
    command.args(["--listen", "127.0.0.1:0", "--max-requests", "1", "--root", text(&place.site())]);
    let server = Running::of(command.stderr(said));
    assert_eq!(code(&run(["get", "-k", &server.url("/hello.txt")])), 0);
    assert_eq!(server.wait().0, 0);
    let said = fs::read_to_string(place.file("said")).unwrap();
    assert!(said.contains(" INFO ") && said.contains("/hello.txt") && !said.contains('\u{1b}'), "{said:?}");
}

#[test]
fn objects_of_pages_are_served_to_size() {
    let server = Running::start([
        "serve",
        "--json",
        "--self-signed",
        "localhost",
        "--listen",
        "127.0.0.1:0",
        "--page",
        "p05",
        "--page",
        "p12",
        "--wait-scale",
        "0",
    ]);
    let output = run(["get", "-k", "--json", &server.url("/p12/1")]);
    assert_eq!((&json(&output)["status"], &json(&output)["bytes"]), (&200.into(), &10_158.into()));
    assert_eq!(json(&run(["get", "-k", "--json", &server.url("/p12/9999")]))["status"], 404);
}

#[test]
fn a_server_stops_after_its_last_request_and_its_answer_is_whole() {
    let place = Fixture::new();
    let server = place.serve(&["--max-requests", "1"]);
    let output = run(["get", "-k", &server.url("/large")]);
    assert_eq!((code(&output), output.stdout.len()), (0, 3_000_000), "{}", said(&output));
    assert_eq!(server.wait().0, 0);
}

#[cfg(unix)]
#[test]
fn a_server_that_is_interrupted_ends_in_order() {
    let place = Fixture::new();
    let server = place.serve(&[]);
    assert_eq!(code(&run(["get", "-k", &server.url("/hello.txt")])), 0);
    server.interrupt();
    assert_eq!(server.wait().0, 0);
}

#[test]
fn both_ends_log_their_keys() {
    let place = Fixture::new();
    let log = place.file("keys");
    let server = place.serve(&["--keylog", text(&log)]);
    let output =
        hvq().env("SSLKEYLOGFILE", &log).args(["get", "-k", &server.url("/hello.txt")]).output().unwrap();
    assert_eq!(code(&output), 0, "{}", said(&output));
    let keys = fs::read_to_string(&log).unwrap();
    assert_eq!(keys.matches("CLIENT_TRAFFIC_SECRET_0 ").count(), 2, "{keys}");
    assert_eq!(keys.matches("SERVER_HANDSHAKE_TRAFFIC_SECRET ").count(), 2, "{keys}");
}

#[test]
fn an_ipv6_literal_is_an_address() {
    if std::net::UdpSocket::bind("[::1]:0").is_err() {
        return;
    }
    let place = Fixture::new();
    let server = place.serve(&["--listen", "[::1]:0"]);
    let output = run(["get", "-k", &format!("https://{}/hello.txt", server.address(0))]);
    assert_eq!((code(&output), output.stdout.as_slice()), (0, &b"hello world"[..]), "{}", said(&output));
}

#[test]
fn a_second_run_resumes_the_session_and_sends_its_request_early() {
    let place = Fixture::new();
    let server = place.serve(&["--early-data"]);
    let (certificate, session) = (place.certificate(), place.file("session"));
    let get = |more: &[&str]| {
        let mut arguments = vec!["get", "-v", "--cacert", text(&certificate), "--session", text(&session)];
        arguments.extend(more);
        let url = server.url("/hello.txt");
        arguments.push(&url);
        let output = run(&arguments);
        assert_eq!((code(&output), output.stdout.as_slice()), (0, &b"hello world"[..]), "{}", said(&output));
        said(&output)
    };
    assert!(!get(&["--early-data"]).contains("resumed"));
    let known = std::fs::read(place.file("session.paths")).expect("what was measured of paths is kept");
    assert_eq!(known.first(), Some(&1), "the version of the form");
    assert!(known.len() > 40, "a path was measured: {} bytes", known.len());
    let second = get(&["--early-data"]);
    assert!(second.contains("resumed, 0-RTT accepted"), "{second}");
    let third = get(&[]);
    assert!(third.contains("resumed, 0-RTT not used"), "{third}");
}

#[test]
fn secrets_are_logged_only_when_asked() {
    // attacks F14.
    let place = Fixture::new();
    let server = place.serve(&[]);
    let (certificate, keys) = (place.certificate(), place.file("keys"));
    let url = server.url("/hello.txt");
    let output = run(["get", "-v", "--cacert", text(&certificate), &url]);
    assert!(!said(&output).contains("TRAFFIC_SECRET") && !keys.exists());
    let output =
        hvq().args(["get", "--cacert", text(&certificate), &url]).env("SSLKEYLOGFILE", &keys).output();
    assert_eq!(code(&output.unwrap()), 0);
    let logged = fs::read_to_string(&keys).unwrap();
    for label in ["CLIENT_HANDSHAKE_TRAFFIC_SECRET ", "CLIENT_TRAFFIC_SECRET_0 ", "SERVER_TRAFFIC_SECRET_0 "]
    {
        assert_eq!(logged.lines().filter(|line| line.starts_with(label)).count(), 1, "{label}");
    }
}

#[test]
fn packets_are_encrypted_with_the_suites_that_were_named_or_not_at_all() {
    let place = Fixture::new();
    let server = place.serve(&[]);
    let url = server.url("/hello.txt");
    // A secret is as long as the hash of its suite: SHA-384 goes with AES-256 (RFC 8446 §B.4).
    for (suite, digits) in [("aes128", 64), ("aes256", 96), ("chacha20", 64)] {
        let keys = place.file(suite);
        let output = run(["get", "-k", "--ciphers", suite, "--keylog", text(&keys), &url]);
        assert_eq!((code(&output), output.stdout.as_slice()), (0, &b"hello world"[..]), "{}", said(&output));
        let logged = fs::read_to_string(&keys).unwrap();
        let line = logged.lines().find(|line| line.starts_with("CLIENT_TRAFFIC_SECRET_0 ")).unwrap();
        assert_eq!(line.rsplit(' ').next().map(str::len), Some(digits), "{suite}: {line}");
    }
    let strict = place.serve(&["--ciphers", "chacha20"]);
    let output = run(["get", "-k", "--ciphers", "aes128,aes256", &strict.url("/hello.txt")]);
    assert_eq!(code(&output), 4, "no suite in common: {}", said(&output));
    let output = run(["get", "-k", "--ciphers", "aes128,chacha20", &strict.url("/hello.txt")]);
    assert_eq!(code(&output), 0, "one in common: {}", said(&output));
}

#[test]
fn a_path_moves_to_another_port_while_files_arrive_and_shows_what_it_was_told() {
    // Enough that they still arrive when the new address is validated, on a slow machine and a fast one.
    const COPIES: usize = 24;
    let place = Fixture::new();
    let options =
        ["--rotate-packets", "50", "--spin-bit", "off", "--greasing", "off", "--ack-frequency", "off"];
    let server = place.serve(&options);
    let url = server.url("/large");
    let mut arguments: Vec<String> = ["get", "-v", "-k", "--migrate-after", "1ms"].map(String::from).into();
    arguments.extend(options.map(String::from));
    for number in 0..COPIES {
        arguments.extend([
            "-o".to_owned(),
            text(&place.file(&format!("copy{number}"))).to_owned(),
            url.clone(),
        ]);
    }
    let output = run(&arguments);
    assert_eq!(code(&output), 0, "{}", said(&output));
    assert!(said(&output).contains("* path 0 has moved from "), "{}", said(&output));
    let large = fs::read(place.site().join("large")).unwrap();
    for number in 0..COPIES {
        assert_eq!(fs::read(place.file(&format!("copy{number}"))).unwrap(), large);
    }
    let refusing = place.serve(&["--migration", "refuse"]);
    let target = place.file("refused");
    let output =
        run(["get", "-v", "-k", "--migrate-after", "1ms", "-o", text(&target), &refusing.url("/large")]);
    assert_eq!((code(&output), fs::read(target).unwrap()), (0, large), "{}", said(&output));
    assert!(!said(&output).contains("has moved"), "{}", said(&output));
}
