//! Several certificates: each client is shown the one of the host that it asks for, and asks for no other host over that connection.

use crate::operation::ask_admin;
use crate::setup::{Fixture, Origin, to, within};
use crate::tls::{Http2, TlsClient, exchange_over};
use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use std::process::Stdio;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// A certificate with its key, both PEM.
pub struct Made {
    pub chain: String,
    pub key: String,
}

impl Made {
    pub fn new(names: &[&str], year: i32) -> Self {
        let key = rcgen::KeyPair::generate().unwrap();
        let listed: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = rcgen::CertificateParams::new(listed).unwrap();
        // Clients tell those that they trust apart by their subjects.
        params.distinguished_name.push(rcgen::DnType::CommonName, format!("{names:?} until {year}"));
        params.not_after = rcgen::date_time_ymd(year, 1, 1);
        Self { chain: params.self_signed(&key).unwrap().pem(), key: key.serialize_pem() }
    }
}

impl Made {
    /// A certificate for `names` below an authority, as browsers want one, and the authority, in PEM.
    pub fn below_an_authority(names: &[&str]) -> (String, Self) {
        let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, "hvq's tests");
        let issuer =
            rcgen::CertifiedIssuer::self_signed(params, rcgen::KeyPair::generate().unwrap()).unwrap();
        let key = rcgen::KeyPair::generate().unwrap();
        let listed: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = rcgen::CertificateParams::new(listed).unwrap();
        params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ServerAuth];
        let now = std::time::SystemTime::now();
        params.not_before = (now - std::time::Duration::from_secs(3600)).into();
        params.not_after = (now + std::time::Duration::from_secs(30 * 86_400)).into();
        let chain = params.signed_by(&key, &issuer).unwrap().pem();
        let authority = AsRef::<rcgen::Certificate>::as_ref(&issuer).pem();
        (authority, Self { chain, key: key.serialize_pem() })
    }
}

/// The tables of further certificates in these files.
pub fn tables(names: &[&str]) -> String {
    let table = |name| format!("[[identity]]\ncertificate = 'DIR/{name}.pem'\nkey = 'DIR/{name}.key'\n");
    names.iter().map(table).collect()
}

/// A gateway of localhost, `a.test` and `*.b.test` in front of `origin`, and what its clients trust.
async fn three(origin: &Origin) -> (Fixture, Vec<u8>) {
    let (a, b) = (Made::new(&["a.test"], 2040), Made::new(&["*.b.test"], 2041));
    let hosts = to(origin.address).replace("'localhost'", "'localhost', 'a.test', '*.b.test'");
    let text =
        format!("admin = '127.0.0.1:0'\n{}[tcp]\nlisten = ['127.0.0.1:0']\n{hosts}", tables(&["a", "b"]));
    let files =
        [("a.pem", &a.chain[..]), ("a.key", &a.key[..]), ("b.pem", &b.chain[..]), ("b.key", &b.key[..])];
    let place = Fixture::with(&text, &files).await;
    let trust = [place.trust().pem(), a.chain.into_bytes(), b.chain.into_bytes()].concat();
    (place, trust)
}

fn request(host: &str) -> Request<Bytes> {
    Request::get(format!("https://{host}/")).body(Bytes::new()).unwrap()
}

const HOSTS: [&str; 3] = ["localhost", "a.test", "www.b.test"];

#[tokio::test]
async fn each_host_has_its_certificate_over_each_protocol_and_no_other_host_is_served_with_it() {
    let origin = Origin::plain().await;
    let (place, trust) = three(&origin).await;
    for name in HOSTS {
        let http3 = place.client_for(name, &trust).await.unwrap();
        let tls = TlsClient::for_host(&place, name, &trust, b"\x02h2").await.unwrap();
        let http2 = Http2::over(tls).await;
        for host in HOSTS {
            let expected = if host == name { 200 } else { 421 };
            assert_eq!(http3.status(request(host)).await, expected, "{host} over HTTP/3 to {name}");
            let (head, _) = request(host).into_parts();
            let response = http2.ask(Request::from_parts(head, Full::default())).await.unwrap();
            assert_eq!(response.status(), expected, "{host} over HTTP/2 to {name}");
            let tls = TlsClient::for_host(&place, name, &trust, b"\x08http/1.1").await.unwrap();
            let answer = exchange_over(tls, &format!("GET / HTTP/1.1\r\nhost: {host}\r\n\r\n")).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {expected} ")), "{host} to {name}: {answer}");
        }
    }
    // A wildcard is for one label (RFC 9525 §6.3): the client sees the default there, and goes.
    assert!(place.client_for("x.y.b.test", &trust).await.is_err());
    assert!(TlsClient::for_host(&place, "x.y.b.test", &trust, b"\x02h2").await.is_err());
}

#[tokio::test]
async fn all_names_of_a_certificate_share_a_connection() {
    let origin = Origin::plain().await;
    let (place, trust) = three(&origin).await;
    let client = place.client_for("one.b.test", &trust).await.unwrap();
    assert_eq!(client.status(request("two.b.test")).await, 200);
    assert_eq!(client.status(request("ONE.b.test:443")).await, 200);
    // Nobody serves it, whatever the certificate.
    assert_eq!(client.status(request("elsewhere.test")).await, 421);
}

#[tokio::test]
async fn a_reload_replaces_all_certificates_or_none_and_each_tells_its_end() {
    let origin = Origin::plain().await;
    let (mut place, trust) = three(&origin).await;
    let admin = place.gateway.admin_addr().unwrap();
    let ends = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| line.starts_with("hvq_gateway_certificate_expiry"));
        lines.map(str::to_owned).collect()
    };
    let told = ends(&ask_admin(admin, "/metrics", "localhost").await);
    assert_eq!(told.len(), 3, "{told:?}");
    for (name, end) in [("a.test", 2_208_988_800_u64), ("*.b.test", 2_240_611_200)] {
        let metric = "hvq_gateway_certificate_expiry_timestamp_seconds";
        let line = format!("{metric}{{name=\"{name}\"}} {end}");
        assert!(told.contains(&line), "{line}: {told:?}");
    }
    let file = std::fs::read_to_string(place.file("gateway.toml")).unwrap();
    let text = file.lines().skip(2).map(|line| format!("{line}\n")).collect::<String>();
    let (a, b) = (Made::new(&["a.test"], 2042), Made::new(&["*.b.test"], 2043));
    // The new key of the one is there, and that of the other is not yet: nothing is replaced.
    std::fs::write(place.file("a.pem"), &a.chain).unwrap();
    std::fs::write(place.file("a.key"), &a.key).unwrap();
    std::fs::write(place.file("b.pem"), &b.chain).unwrap();
    let refused = place.reload(&text).unwrap_err();
    assert!(refused.contains("identity") && refused.contains("does not belong"), "{refused}");
    for name in HOSTS {
        assert_eq!(place.client_for(name, &trust).await.unwrap().status(request(name)).await, 200);
        TlsClient::for_host(&place, name, &trust, b"\x02h2").await.unwrap();
    }
    std::fs::write(place.file("b.key"), &b.key).unwrap();
    assert_eq!(place.reload(&text), Ok(Vec::new()));
    for (name, made) in [("a.test", &a), ("www.b.test", &b)] {
        assert!(place.client_for(name, &trust).await.is_err(), "the old one is shown no more");
        let trust = made.chain.as_bytes();
        assert_eq!(place.client_for(name, trust).await.unwrap().status(request(name)).await, 200);
        TlsClient::for_host(&place, name, trust, b"\x02h2").await.unwrap();
    }
    let told = ends(&ask_admin(admin, "/metrics", "localhost").await);
    assert!(told.iter().any(|line| line.contains("a.test") && line.ends_with(" 2272147200")), "{told:?}");
}

/// Asks for `name` with OpenSSL's client, which keeps its session in `file`, or brings the one that is there; returns the words it has for
/// whether that was resumed.
async fn visit(place: &Fixture, name: &str, (option, file): (&str, &str)) -> String {
    let address = place.gateway.tcp_addrs()[0].to_string();
    let mut command = Command::new("openssl");
    command.args(["s_client", "-connect", &address, "-servername", name, "-alpn", "http/1.1", "-ign_eof"]);
    command.arg(option).arg(place.file(file)).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut client = command.stderr(Stdio::null()).kill_on_drop(true).spawn().unwrap();
    let request = format!("GET / HTTP/1.1\r\nhost: {name}\r\nconnection: close\r\n\r\n");
    client.stdin.as_mut().unwrap().write_all(request.as_bytes()).await.unwrap();
    let output = within(client.wait_with_output()).await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("HTTP/1.1 200 OK"), "{said}");
    let kind = said.lines().find(|line| line.starts_with("New, ") || line.starts_with("Reused, "));
    kind.and_then(|line| line.split(',').next()).unwrap().to_owned()
}

#[tokio::test]
async fn a_ticket_of_one_name_does_not_resume_a_session_under_another_over_tcp() {
    // F15, over TCP: who resumes is shown no certificate.
    let origin = Origin::plain().await;
    let (place, _) = three(&origin).await;
    for name in HOSTS {
        assert_eq!(visit(&place, name, ("-sess_out", "session")).await, "New");
        for other in HOSTS {
            let expected = if other == name { "Reused" } else { "New" };
            assert_eq!(visit(&place, other, ("-sess_in", "session")).await, expected, "{name} to {other}");
        }
    }
}
