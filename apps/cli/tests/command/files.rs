//! Files that are written: tried before there is work whose results they are for, and left alone by what does not start.

use crate::support::{Running, code, run, said};
use std::fs;
use std::path::PathBuf;

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
}

#[test]
fn the_certificate_of_a_server_that_runs_is_not_that_of_one_that_does_not_start() {
    let place = Fixture::new();
    let certificate = place.text("chain.pem");
    let server = Running::serve(place.0.path(), &place.file("chain.pem"), &[]);
    let before = fs::read_to_string(&certificate).unwrap();
    let address = server.address(0).to_string();
    let (made, root) = (["--self-signed", "localhost", "--write-cert", &certificate], place.text(""));
    for arguments in [
        [&["serve", "--listen", &address][..], &made].concat(),
        [&["gateway", "--root", &root, "--listen", &address], &made[..]].concat(),
        [&["gateway", "--root", &root, "--check-config"], &made[..]].concat(),
        vec!["video", "receive", "--listen", &address, "--write-cert", &certificate],
    ] {
        let output = run(&arguments);
        let expected = if arguments.contains(&"--check-config") { 0 } else { 2 };
        assert_eq!(code(&output), expected, "{arguments:?}: {}", said(&output));
        assert_eq!(fs::read_to_string(&certificate).unwrap(), before, "{arguments:?}");
    }
}

#[test]
fn what_cannot_be_written_is_said_before_anything_is_run() {
    let place = Fixture::new();
    fs::write(place.file("prose.md"), "precious\n").unwrap();
    let (folder, prose, below) = (place.text(""), place.text("prose.md"), place.text("prose.md/below"));
    let long = ["--trace", "MM-D", "--schemes", "hvc"];
    for (arguments, part) in [
        ([&["lab", "pages", "--repeat", "1000", "--json", &folder][..], &long].concat(), "directory"),
        ([&["lab", "pages", "--repeat", "1000", "--write", &prose], &long[..]].concat(), "pages: begin"),
        ([&["lab", "video", "--repetitions", "100", "--figure", &below], &long[..]].concat(), "below"),
        ([&["lab", "video", "--repetitions", "100", "--write", &prose], &long[..]].concat(), "video: begin"),
        (vec!["lab", "controllers", "--seconds", "60000", "--out", &prose], "cannot create"),
        (vec!["lab", "controllers", "--seconds", "60000", "--write", &prose], "controllers: begin"),
        (vec!["lab", "report", "--out", &below], "below"),
        (vec!["lab", "run", "price", "price"], "price stands there twice"),
        (vec!["lab", "pages", "--schemes", "hvc,hvc"], "hvc stands there twice"),
        (vec!["demo", "--repeat", "1000", "--out", &folder], "directory"),
        (vec!["demo", "--repeat", "1000", "--json", &below], "below"),
    ] {
        let output = run(&arguments);
        let said = said(&output);
        assert_eq!(code(&output), 2, "{arguments:?}: {said}");
        assert!(said.contains(part) && said.lines().count() == 1, "{arguments:?}: {said}");
        assert!(output.stdout.is_empty());
        assert_eq!(fs::read_to_string(&prose).unwrap(), "precious\n", "{arguments:?}");
    }
    assert_eq!(fs::read_dir(place.0.path()).unwrap().count(), 1, "nothing else is left behind");
}

#[test]
fn a_capture_without_what_was_asked_for_says_so() {
    let place = Fixture::new();
    // The header of a pcap file of Ethernet frames, and nothing behind it.
    let header = [[0xd4, 0xc3, 0xb2, 0xa1], [2, 0, 4, 0], [0; 4], [0; 4], [0, 0, 1, 0], [1, 0, 0, 0]];
    fs::write(place.file("empty.pcap"), header.concat()).unwrap();
    let output = run(["decode", &place.text("empty.pcap"), "--keys", &place.text("empty.pcap")]);
    assert_eq!(code(&output), 0, "{}", said(&output));
    assert!(said(&output).contains("no packet of QUIC"), "{}", said(&output));
}

#[test]
fn files_of_a_proxy_are_named_when_they_are_wrong() {
    let place = Fixture::new();
    let made = |name: &str| {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        fs::write(place.file(&format!("{name}.pem")), made.cert.pem()).unwrap();
        fs::write(place.file(&format!("{name}.key")), made.signing_key.serialize_pem()).unwrap();
    };
    made("one");
    made("two");
    fs::write(place.file("nothing"), "\n").unwrap();
    fs::write(place.file("tokens"), "ann 0123456789abcdef\n").unwrap();
    for (flag, arguments) in [
        ("nothing: there is no token", ["--token-file", "nothing", "--listen", "127.0.0.1:0"]),
        ("tokens: expected one token", ["--token-file", "tokens", "--listen", "127.0.0.1:0"]),
        ("nothing: there is no certificate", ["--tls-cert", "nothing", "--tls-key", "one.key"]),
        ("nothing: there is no private key", ["--tls-cert", "one.pem", "--tls-key", "nothing"]),
        ("two.key: the private key does not belong", ["--tls-cert", "one.pem", "--tls-key", "two.key"]),
    ] {
        let named = arguments.map(|word| match place.file(word).exists() {
            true => place.text(word),
            false => word.to_owned(),
        });
        let rest =
            ["proxy", "-k", "--gateway", "localhost:1", "--connect-timeout", "100ms"].map(str::to_owned);
        let output = run(rest.into_iter().chain(named));
        assert_eq!(code(&output), 2, "{arguments:?}: {}", said(&output));
        assert!(said(&output).contains(flag), "{flag}: {}", said(&output));
    }
}

#[cfg(unix)]
#[test]
fn services_end_in_order_when_they_are_told_to() {
    let place = Fixture::new();
    let root = place.text("");
    let own = ["--self-signed", "localhost"];
    let terminated = |arguments: &[&str]| {
        let running = Running::start(arguments);
        let kill = std::process::Command::new("kill").args(["-TERM", &running.id().to_string()]).status();
        assert!(kill.unwrap().success());
        let (code, rest) = running.wait();
        assert_eq!(code, 0, "{arguments:?}");
        rest
    };
    terminated(&[&["serve", "--json", "--listen", "127.0.0.1:0", "--root", &root][..], &own].concat());
    terminated(&["video", "receive", "--json", "--listen", "127.0.0.1:0"]);
    let figures = terminated(&["emulate", "--json", "--listen", "127.0.0.1:0", "--upstream", "127.0.0.1:9"]);
    assert!(figures.contains("\"channels\""), "{figures}");
}
