//! Handshakes in memory, and how they fail.

mod client_certificates;
mod early_data;
mod failures;
mod foreign_contexts;
mod other_libraries;
mod panics;
mod setup;
mod several;
mod verifying;

use super::post_handshake::POST_HANDSHAKE_LIMIT;
use super::*;
use crate::error::ErrorCode;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;

const NAMES: [&str; 4] = ["example.test", "*.wild.test", "127.0.0.1", "::1"];

/// Authorities made so far.
static AUTHORITIES: AtomicU32 = AtomicU32::new(0);

/// A certificate authority and a server certificate that it signed, in PEM.
struct Pki {
    ca: String,
    chain: String,
    key: String,
}

/// A store of tickets that the tests take before they reach it.
#[derive(Debug)]
struct Wanted;

impl SessionStore for Wanted {
    fn put(&self, _: &str, _: SessionTicket) {}

    fn take(&self, _: &str, _: &[Vec<u8>]) -> Option<SessionTicket> {
        None
    }
}

/// A new authority.
fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    // Names of authorities differ from each other and from that of the server, by which BoringSSL tells them apart.
    let authority = AUTHORITIES.fetch_add(1, Ordering::Relaxed);
    params.distinguished_name.push(DnType::CommonName, format!("authority {authority}"));
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn pki() -> Pki {
    let ca = authority();
    let key = KeyPair::generate().unwrap();
    let names: Vec<String> = NAMES.map(str::to_owned).into();
    let leaf = CertificateParams::new(names).unwrap().signed_by(&key, &ca).unwrap();
    let ca = AsRef::<rcgen::Certificate>::as_ref(&ca).pem();
    Pki { chain: format!("{}{ca}", leaf.pem()), ca, key: key.serialize_pem() }
}

impl Pki {
    fn identity(&self) -> Identity {
        Identity::Pem { chain: self.chain.clone().into(), key: self.key.clone().into() }
    }

    fn server(&self) -> ServerTls {
        ServerTls::builder(self.identity()).alpn(["h3", "hq-interop"]).build().unwrap()
    }

    fn client(&self) -> ClientTls {
        let builder = ClientTls::builder().alpn(["hq-interop", "h3"]).verify(self.verify());
        builder.sessions(std::sync::Arc::new(Wanted)).build().unwrap()
    }

    fn verify(&self) -> Verify {
        Verify::CaPem(self.ca.clone().into())
    }
}

/// A secret that TLS gave out: whether for reading, its level, and its bytes.
type Given = (bool, Level, Vec<u8>);

/// Outputs of one side, with CRYPTO data ready to be carried over.
#[derive(Default)]
struct Taken {
    data: Vec<(Level, Bytes)>,
    secrets: Vec<Given>,
    tickets: usize,
    rejected: bool,
}

fn take(session: &mut Session) -> Taken {
    let mut taken = Taken::default();
    while let Some(output) = session.poll() {
        match output {
            SessionOutput::Send { level, data } => taken.data.push((level, data)),
            SessionOutput::ReadSecret { level, secret, .. } => {
                taken.secrets.push((true, level, secret.as_slice().to_vec()));
            }
            SessionOutput::WriteSecret { level, secret, .. } => {
                taken.secrets.push((false, level, secret.as_slice().to_vec()));
            }
            SessionOutput::Ticket => taken.tickets += 1,
            SessionOutput::EarlyDataRejected => taken.rejected = true,
        }
    }
    taken
}

/// A failure: the side that failed, and its error.
type Failure = (Role, TransportError);

#[derive(Default, Debug)]
struct Outcome {
    client_secrets: Vec<Given>,
    server_secrets: Vec<Given>,
    tickets: usize,
}

/// Carries CRYPTO data to and fro, in pieces of `piece` bytes, until both sides are silent.
fn shake(client: &mut Session, server: &mut Session, piece: usize) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::default();
    client.start().map_err(|error| (Role::Client, error))?;
    for _round in 0..10 {
        let sent = take(client);
        outcome.client_secrets.extend(sent.secrets);
        outcome.tickets += sent.tickets;
        carry(server, &sent.data, piece).map_err(|error| (Role::Server, error))?;
        let answer = take(server);
        outcome.server_secrets.extend(answer.secrets);
        carry(client, &answer.data, piece).map_err(|error| (Role::Client, error))?;
        if sent.data.is_empty() && answer.data.is_empty() {
            return Ok(outcome);
        }
    }
    panic!("the handshake does not end");
}

fn carry(session: &mut Session, data: &[(Level, Bytes)], piece: usize) -> Result<(), TransportError> {
    data.iter()
        .flat_map(|(level, data)| data.chunks(piece).map(|piece| (*level, piece)))
        .try_for_each(|(level, piece)| session.provide(level, piece))
}

fn sessions(client: &ClientTls, server: &ServerTls, name: &str) -> (Session, Session) {
    (
        Session::client(client, name, b"client parameters").unwrap(),
        Session::server(server, b"server parameters").unwrap(),
    )
}

fn connected() -> (Session, Session) {
    let pki = pki();
    let (mut client, mut server) = sessions(&pki.client(), &pki.server(), "example.test");
    shake(&mut client, &mut server, 4096).unwrap();
    (client, server)
}

fn is_send<T: Send>(_: &T) {}

//= https://www.rfc-editor.org/rfc/rfc9000#section-7
//= type=test
//# The cryptographic handshake MUST provide the following properties:
//= https://www.rfc-editor.org/rfc/rfc9001#section-4.2
//= type=test
//# Clients MUST NOT offer TLS versions older than 1.3
//= https://www.rfc-editor.org/rfc/rfc9001#section-8.1
//= type=test
//# Servers MUST select an application protocol compatible with the QUIC version that the client has selected
#[test]
fn a_handshake_gives_both_sides_parameters_protocol_and_names() {
    let (client, server) = connected();
    is_send(&client);
    assert!(!client.is_handshaking() && !server.is_handshaking());
    assert_eq!(client.peer_transport_parameters().unwrap(), b"server parameters");
    assert_eq!(server.peer_transport_parameters().unwrap(), b"client parameters");
    // The server prefers h3, whatever the client prefers.
    assert_eq!((client.alpn().unwrap(), server.alpn().unwrap()), (b"h3".to_vec(), b"h3".to_vec()));
    assert_eq!(server.server_name().as_deref(), Some("example.test"));
    assert_eq!(client.peer_certificates().len(), 2);
    assert!(server.peer_certificates().is_empty());
    assert_eq!(client.cipher_suite(), server.cipher_suite());
    assert!(client.cipher_suite().is_some() && !client.is_resumed());
}

#[test]
fn only_the_suites_that_are_named_are_offered_and_accepted() {
    let pki = pki();
    let alpn = || ClientTls::builder().alpn(["h3"]).verify(Verify::Insecure);
    let chacha = alpn().suites([Suite::ChaCha20Poly1305]).build().unwrap();
    let (mut client, mut server) = sessions(&chacha, &pki.server(), "example.test");
    shake(&mut client, &mut server, 4096).unwrap();
    assert_eq!(server.cipher_suite(), Some(Suite::ChaCha20Poly1305));
    let aes = alpn().suites([Suite::Aes256Gcm, Suite::Aes128Gcm]).build().unwrap();
    let strict = ServerTls::builder(pki.identity()).alpn(["h3"]).suites([Suite::ChaCha20Poly1305]).build();
    let (mut client, mut server) = sessions(&aes, &strict.unwrap(), "example.test");
    let (who, error) = shake(&mut client, &mut server, 4096).unwrap_err();
    // RFC 8446 §4.1.1: no parameters that both support are a handshake_failure.
    assert_eq!((who, error.code), (Role::Server, ErrorCode::crypto(40)));
    assert!(alpn().suites([Suite::Aes128Gcm, Suite::Aes128Gcm]).build().is_err());
}

#[test]
fn each_side_reads_with_the_secrets_that_the_other_writes_with() {
    let pki = pki();
    let (mut client, mut server) = sessions(&pki.client(), &pki.server(), "example.test");
    let outcome = shake(&mut client, &mut server, 4096).unwrap();
    let length = client.cipher_suite().unwrap().secret_length();
    assert_eq!((outcome.client_secrets.len(), outcome.server_secrets.len()), (4, 4));
    for (is_read, level, secret) in &outcome.client_secrets {
        assert!(matches!(level, Level::Handshake | Level::OneRtt));
        assert_eq!(secret.len(), length);
        assert!(outcome.server_secrets.contains(&(!is_read, *level, secret.clone())));
    }
}

#[test]
fn crypto_data_may_come_byte_by_byte() {
    let pki = pki();
    let (mut client, mut server) = sessions(&pki.client(), &pki.server(), "example.test");
    shake(&mut client, &mut server, 1).unwrap();
    assert!(!client.is_handshaking() && !server.is_handshaking());
}

#[test]
fn a_client_hello_with_post_quantum_groups_is_longer_than_a_datagram_and_shorter_without() {
    let pki = pki();
    let builder = || ClientTls::builder().alpn(["h3"]).verify(pki.verify());
    let mut lengths = Vec::new();
    for tls in [builder().build().unwrap(), builder().curves("X25519").build().unwrap()] {
        let (mut client, mut server) = sessions(&tls, &pki.server(), "example.test");
        client.start().unwrap();
        lengths.push(take(&mut client).data.iter().map(|(_, data)| data.len()).sum::<usize>());
        let (mut client, _) = sessions(&tls, &pki.server(), "example.test");
        shake(&mut client, &mut server, 1000).unwrap();
    }
    assert!(lengths[0] > 1200 && lengths[1] < 600, "{lengths:?}");
}

#[test]
fn tickets_that_nobody_keeps_are_not_written_down() {
    let pki = pki();
    let indifferent = ClientTls::builder().alpn(["h3"]).verify(pki.verify()).build().unwrap();
    let (mut client, mut server) = sessions(&indifferent, &pki.server(), "example.test");
    let outcome = shake(&mut client, &mut server, 4096).unwrap();
    assert_eq!((outcome.tickets, client.take_tickets().len()), (0, 0));
}

#[test]
fn tickets_resume_a_session_and_are_bounded() {
    let pki = pki();
    let (client_tls, server_tls) = (pki.client(), pki.server());
    let (mut client, mut server) = sessions(&client_tls, &server_tls, "example.test");
    let outcome = shake(&mut client, &mut server, 4096).unwrap();
    let tickets = client.take_tickets();
    assert_eq!((outcome.tickets, tickets.len()), (1, 1), "one, unless more are asked for");
    assert!(client.take_tickets().is_empty());

    let (mut client, mut server) = sessions(&client_tls, &server_tls, "example.test");
    client.resume(&tickets[0]).unwrap();
    shake(&mut client, &mut server, 4096).unwrap();
    assert!(client.is_resumed() && server.is_resumed());
    assert_eq!(client.peer_transport_parameters().unwrap(), b"server parameters");

    let (mut client, _) = sessions(&client_tls, &server_tls, "example.test");
    assert!(matches!(client.resume(&Ticket(vec![1, 2, 3])), Err(TlsConfigError::Ticket)));
}

#[test]
fn a_ticket_is_good_with_every_server_that_has_its_key_and_costs_nothing_elsewhere() {
    let pki = pki();
    let server = |current: u8, former: &[[u8; 32]]| {
        let keys = TicketKeys::new(&[current; 32], former);
        assert!(!format!("{keys:?}").contains("cipher"));
        ServerTls::builder(pki.identity()).alpn(["h3"]).ticket_keys(keys).build().unwrap()
    };
    let client_tls = pki.client();
    // Whether a ticket of the one resumes a session with the other, which is a process that started later.
    let resumes = |issuer: &ServerTls, later: &ServerTls| {
        let (mut client, mut server) = sessions(&client_tls, issuer, "example.test");
        shake(&mut client, &mut server, 4096).unwrap();
        let ticket = client.take_tickets().remove(0);
        let (mut client, mut server) = sessions(&client_tls, later, "example.test");
        client.resume(&ticket).unwrap();
        shake(&mut client, &mut server, 4096).unwrap();
        assert!(!client.is_handshaking() && client.is_resumed() == server.is_resumed());
        client.is_resumed()
    };
    assert!(resumes(&server(1, &[]), &server(1, &[])));
    assert!(resumes(&server(1, &[]), &server(2, &[[3; 32], [1; 32]])), "a former key opens");
    assert!(!resumes(&server(2, &[[1; 32]]), &server(1, &[])), "and seals no more");
    assert!(!resumes(&server(1, &[]), &server(2, &[])));
    assert!(!resumes(&pki.server(), &pki.server()), "keys of their own");
}

#[test]
fn a_server_gives_as_many_tickets_as_it_is_told() {
    let pki = pki();
    for wanted in [0, 1, 5] {
        let server_tls = ServerTls::builder(pki.identity()).alpn(["h3"]).tickets(wanted).build().unwrap();
        let (mut client, mut server) = sessions(&pki.client(), &server_tls, "example.test");
        shake(&mut client, &mut server, 4096).unwrap();
        assert_eq!(client.take_tickets().len(), usize::from(wanted));
    }
}

#[test]
fn the_key_log_has_the_secrets_of_both_directions() {
    let pki = pki();
    let (lines, log) = mpsc::channel();
    let keylog: KeyLog = Box::new(move |line| lines.send(line.to_owned()).unwrap());
    let tls = ClientTls::builder().alpn(["h3"]).verify(pki.verify()).keylog(keylog).build().unwrap();
    let (mut client, mut server) = sessions(&tls, &pki.server(), "example.test");
    shake(&mut client, &mut server, 4096).unwrap();
    let lines: Vec<String> = log.try_iter().collect();
    for label in ["CLIENT_HANDSHAKE_TRAFFIC_SECRET", "SERVER_TRAFFIC_SECRET_0"] {
        assert!(lines.iter().any(|line| line.starts_with(label)), "{label} in {lines:?}");
    }
}

#[test]
fn debug_output_shows_no_secret() {
    let (mut client, _) = connected();
    assert!(format!("{client:?}").contains("handshaking: false"));
    assert!(client.take_tickets().iter().all(|ticket| format!("{ticket:?}").ends_with("bytes)")));
    let identity = format!("{:?}", pki().identity());
    assert_eq!(identity, "Pem { .. }");
}
