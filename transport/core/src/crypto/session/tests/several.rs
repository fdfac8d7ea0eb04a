//! Several certificates of one server: the one for each name, and tickets that do not cross from one to another.

use super::*;
use crate::crypto::replay::ReplayGuard;
use crate::time::Instant;
use std::sync::Arc;

/// One authority, and a server with a certificate for each of these lists of names.
struct Several {
    ca: String,
    leaves: Vec<Vec<u8>>,
    credentials: Vec<ServerCredential>,
}

impl Several {
    fn new(names: &[&[&str]]) -> Self {
        let authority = authority();
        let (mut leaves, mut credentials) = (Vec::new(), Vec::new());
        for names in names {
            let key = KeyPair::generate().unwrap();
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            let leaf = CertificateParams::new(names).unwrap().signed_by(&key, &authority).unwrap();
            leaves.push(leaf.der().to_vec());
            let (chain, key) = (leaf.pem().into_bytes(), key.serialize_pem().into_bytes());
            credentials.push(ServerCredential::from(Identity::Pem { chain, key }));
        }
        Self { ca: AsRef::<rcgen::Certificate>::as_ref(&authority).pem(), leaves, credentials }
    }

    fn builder(&self) -> ServerTlsBuilder {
        let (first, others) = self.credentials.split_first().unwrap();
        let builder = ServerTls::builder(first.clone()).alpn(["h3"]);
        others.iter().fold(builder, |builder, other| builder.credential(other.clone()))
    }

    fn client(&self) -> ClientTls {
        let trust = Verify::CaPem(self.ca.clone().into());
        ClientTls::builder().alpn(["h3"]).verify(trust).sessions(Arc::new(Wanted)).build().unwrap()
    }

    /// The number of the certificate that a client is shown who asks for `name`.
    fn shown(&self, server: &ServerTls, name: &str) -> Result<usize, Failure> {
        let (mut client, mut server) = sessions(&self.client(), server, name);
        shake(&mut client, &mut server, 4096)?;
        let shown = client.peer_certificates().remove(0);
        Ok(self.leaves.iter().position(|leaf| *leaf == shown).unwrap())
    }
}

#[test]
fn each_name_has_its_certificate_and_no_name_the_first_one() {
    let several =
        Several::new(&[&["main.test", "127.0.0.1"], &["*.wild.test"], &["www.wild.test", "other.test"]]);
    let server = several.builder().build().unwrap();
    for (name, number) in
        [("main.test", 0), ("127.0.0.1", 0), ("a.wild.test", 1), ("WWW.wild.test", 2), ("other.test", 2)]
    {
        assert_eq!(several.shown(&server, name).unwrap(), number, "{name}");
        assert_eq!(server.names().choose(Some(name)), number, "the table says the same");
    }
    // The client sees that the certificate is of another one.
    let (who, _) = several.shown(&server, "unknown.test").unwrap_err();
    assert_eq!(who, Role::Client);
}

#[test]
fn a_staple_comes_with_its_certificate_alone() {
    let mut several = Several::new(&[&["a.test"], &["b.test"]]);
    several.credentials[1].ocsp = Some(b"the answer of a responder".to_vec());
    let server = several.builder().build().unwrap();
    for (name, staple) in [("a.test", None), ("b.test", Some(&b"the answer of a responder"[..]))] {
        let (mut client, mut server) = sessions(&several.client(), &server, name);
        client.boring().unwrap().ssl.set_status_type(boring::ssl::StatusType::OCSP).unwrap();
        shake(&mut client, &mut server, 4096).unwrap();
        assert_eq!(client.boring().unwrap().ssl.ocsp_status(), staple, "{name}");
    }
}

#[test]
fn each_certificate_has_the_same_settings() {
    let several = Several::new(&[&["a.test"], &["b.test"]]);
    let (lines, log) = mpsc::channel();
    let keylog: KeyLog = Box::new(move |line| lines.send(line.to_owned()).unwrap());
    let chacha = [Suite::ChaCha20Poly1305];
    let server = several.builder().keylog(keylog).suites(chacha).tickets(3).build().unwrap();
    for name in ["a.test", "b.test"] {
        let (mut client, mut session) = sessions(&several.client(), &server, name);
        shake(&mut client, &mut session, 4096).unwrap();
        assert_eq!((client.cipher_suite(), client.take_tickets().len()), (Some(chacha[0]), 3), "{name}");
        assert_eq!(client.alpn().unwrap(), b"h3");
        assert!(log.try_iter().any(|line| line.starts_with("SERVER_TRAFFIC_SECRET_0")), "{name}");
    }
}

/// A server of two names, and clients that come back.
struct Returning {
    client: ClientTls,
    server: ServerTls,
    guard: Arc<ReplayGuard>,
}

impl Returning {
    fn new(server: ServerTls, several: &Several) -> Self {
        Self { client: several.client(), server, guard: Arc::new(ReplayGuard::new(&[5; 32])) }
    }

    /// Ends of a connection for `name`, once the server has what the client sent first.
    fn connect(&self, name: &str, ticket: Option<&Ticket>) -> (Session, Session) {
        let (mut client, mut server) = sessions(&self.client, &self.server, name);
        server.bind_tickets(Version::V1).unwrap();
        server.accept_early_data(b"limits", &self.guard, Instant::ZERO).unwrap();
        if let Some(ticket) = ticket {
            client.resume(ticket).unwrap();
            client.offer_early_data();
        }
        shake(&mut client, &mut server, 4096).unwrap();
        assert!(!client.is_handshaking() && !server.is_handshaking());
        (client, server)
    }

    fn ticket(&self, name: &str) -> Ticket {
        self.connect(name, None).0.take_tickets().remove(0)
    }
}

#[test]
fn a_ticket_of_one_name_neither_resumes_nor_opens_early_data_under_another() {
    // Attack F15: who resumes is shown no certificate, and would take the session for one with the other host.
    let several = Several::new(&[&["a.test"], &["b.test"], &["c.test"]]);
    let keys = TicketKeys::new(&[1; 32], &[]);
    for builder in [several.builder(), several.builder().ticket_keys(keys)] {
        let world = Returning::new(builder.build().unwrap(), &several);
        let names = ["a.test", "b.test", "c.test"];
        for (issued, used) in names.iter().flat_map(|issued| names.map(|used| (*issued, used))) {
            let (client, server) = world.connect(used, Some(&world.ticket(issued)));
            let expected = issued == used;
            let outcome = (client.is_resumed(), server.is_early_data_accepted());
            assert_eq!(outcome, (expected, expected), "{issued} to {used}");
        }
    }
}

#[test]
fn tickets_belong_to_the_version_of_quic_whatever_the_certificate() {
    let several = Several::new(&[&["a.test"], &["b.test"]]);
    let world = Returning::new(several.builder().build().unwrap(), &several);
    for name in ["a.test", "b.test"] {
        let ticket = world.ticket(name);
        let (mut client, mut server) = sessions(&world.client, &world.server, name);
        server.bind_tickets(Version::V2).unwrap();
        client.resume(&ticket).unwrap();
        shake(&mut client, &mut server, 4096).unwrap();
        assert!(!client.is_resumed(), "{name}");
    }
}
