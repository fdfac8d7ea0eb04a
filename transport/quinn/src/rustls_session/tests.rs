use super::*;
use hvq::transport::crypto::session::Session;
use rustls::RootCertStore;
use rustls::pki_types::PrivatePkcs8KeyDer;

/// A certificate for `localhost`, and configurations of two ends that trust it.
fn configs() -> (ClientConfig, ServerConfig) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut client = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    client.alpn_protocols = vec![b"other".to_vec(), b"test".to_vec()];
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()).into();
    let mut server = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    server.alpn_protocols = vec![b"test".to_vec()];
    (client, server)
}

/// A session, and the secrets that it gave.
struct End {
    session: Session,
    secrets: Vec<(&'static str, Level, Vec<u8>)>,
}

impl End {
    /// Gives everything that this end has to say to `other`.
    fn speak(&mut self, other: &mut Self) -> Result<bool, TransportError> {
        let mut spoke = false;
        while let Some(output) = self.session.poll() {
            match output {
                SessionOutput::Send { level, data } => {
                    spoke = true;
                    other.session.provide(level, &data)?;
                }
                SessionOutput::ReadSecret { level, secret, .. } => {
                    self.secrets.push(("read", level, secret.as_slice().to_vec()));
                }
                SessionOutput::WriteSecret { level, secret, .. } => {
                    self.secrets.push(("write", level, secret.as_slice().to_vec()));
                }
                SessionOutput::Ticket | SessionOutput::EarlyDataRejected => {}
            }
        }
        Ok(spoke)
    }

    fn secret(&self, direction: &str, level: Level) -> Option<&[u8]> {
        let found = self.secrets.iter().find(|(name, at, _)| *name == direction && *at == level);
        found.map(|(_, _, secret)| secret.as_slice())
    }
}

fn ends() -> (End, End) {
    let (client_config, server_config) = configs();
    let tls = client(&Arc::new(client_config));
    let near = Session::client(&tls, "localhost", b"of the client").unwrap();
    let far = Session::server(&server(&Arc::new(server_config)), b"of the server").unwrap();
    (End { session: near, secrets: Vec::new() }, End { session: far, secrets: Vec::new() })
}

fn connected() -> (End, End) {
    let (mut near, mut far) = ends();
    near.session.start().unwrap();
    while near.speak(&mut far).unwrap() | far.speak(&mut near).unwrap() {}
    (near, far)
}

#[test]
fn both_ends_have_the_same_secrets_parameters_protocol_and_exported_material() {
    let (near, far) = connected();
    assert!(!near.session.is_handshaking() && !far.session.is_handshaking());
    for level in [Level::Handshake, Level::OneRtt] {
        assert_eq!(near.secret("write", level).unwrap(), far.secret("read", level).unwrap());
        assert_eq!(near.secret("read", level).unwrap(), far.secret("write", level).unwrap());
    }
    assert_eq!(near.session.peer_transport_parameters().unwrap(), b"of the server");
    assert_eq!(far.session.peer_transport_parameters().unwrap(), b"of the client");
    assert_eq!((near.session.alpn(), far.session.alpn()), (Some(b"test".to_vec()), Some(b"test".to_vec())));
    assert_eq!(far.session.server_name().as_deref(), Some("localhost"));
    assert_eq!(near.session.peer_certificates().len(), 1);
    let (mut one, mut other) = ([0; 32], [0; 32]);
    near.session.export_keying_material(&mut one, b"label", b"context").unwrap();
    far.session.export_keying_material(&mut other, b"label", b"context").unwrap();
    assert_eq!(one, other);
}

#[test]
fn a_server_reads_no_1_rtt_packets_before_the_client_is_done() {
    let (mut near, mut far) = ends();
    near.session.start().unwrap();
    near.speak(&mut far).unwrap();
    far.speak(&mut near).unwrap();
    assert!(far.secret("write", Level::OneRtt).is_some(), "it may answer");
    assert_eq!(far.secret("read", Level::OneRtt), None, "the client has not proved anything");
    near.speak(&mut far).unwrap();
    far.speak(&mut near).unwrap();
    assert!(far.secret("read", Level::OneRtt).is_some());
}

#[test]
fn parameters_of_a_server_change_until_it_hears_the_client() {
    let (mut near, mut far) = ends();
    far.session.set_transport_parameters(b"chosen later").unwrap();
    near.session.start().unwrap();
    while near.speak(&mut far).unwrap() | far.speak(&mut near).unwrap() {}
    assert_eq!(near.session.peer_transport_parameters().unwrap(), b"chosen later");
    assert!(far.session.set_transport_parameters(b"too late").is_err());
}

#[test]
fn bytes_at_another_level_end_the_session_for_good() {
    let (_, mut far) = ends();
    let error = far.session.provide(Level::Handshake, b"x").unwrap_err();
    assert_eq!(error.code, ErrorCode::PROTOCOL_VIOLATION);
    let (mut near, _) = ends();
    near.session.start().unwrap();
    near.speak(&mut far).unwrap_err();
    assert!(far.session.is_handshaking(), "a ClientHello does not mend it");
}

#[test]
fn a_certificate_that_rustls_refuses_is_the_alert_that_the_peer_is_told() {
    let (client_config, _) = configs();
    let (_, of_another) = configs();
    let near = Session::client(&client(&Arc::new(client_config)), "localhost", b"p").unwrap();
    let far = Session::server(&server(&Arc::new(of_another)), b"p").unwrap();
    let (mut near, mut far) =
        (End { session: near, secrets: Vec::new() }, End { session: far, secrets: Vec::new() });
    near.session.start().unwrap();
    near.speak(&mut far).unwrap();
    let error = far.speak(&mut near).unwrap_err();
    assert!((0x100..0x200).contains(&error.code.0), "{error:?}");
    assert!(near.session.is_handshaking());
    assert_eq!(near.session.provide(Level::Initial, b"").unwrap_err(), error, "it stays over");
}

#[test]
fn messages_after_the_handshake_are_bounded() {
    let (_, mut far) = connected();
    // A ticket's first bytes, which rustls waits to see the rest of.
    let mut sent = 0;
    let error = loop {
        sent += 1024;
        if let Err(error) = far.session.provide(Level::OneRtt, &[4; 1024]) {
            break error;
        }
    };
    assert!(sent <= POST_HANDSHAKE_LIMIT + 1024, "{sent} bytes were taken: {error:?}");
}

#[test]
fn the_program_sees_the_secrets_in_its_own_key_log() {
    #[derive(Debug, Default)]
    struct Labels(Mutex<Vec<String>>);
    impl KeyLog for Labels {
        fn log(&self, label: &str, _random: &[u8], _secret: &[u8]) {
            self.0.lock().unwrap().push(label.to_owned());
        }
    }
    let (mut client_config, _) = configs();
    let labels = Arc::new(Labels::default());
    client_config.key_log = Arc::clone(&labels) as Arc<dyn KeyLog>;
    let recorder = Recorder::instead_of(&client_config.key_log);
    recorder.log(ONE_RTT[0], &[0; 32], &[1; 32]);
    recorder.log("EXPORTER_SECRET", &[0; 32], &[2; 32]);
    assert_eq!(*labels.0.lock().unwrap(), [ONE_RTT[0], "EXPORTER_SECRET"]);
    assert_eq!(recorder.take(ONE_RTT[0]).unwrap().as_slice(), [1; 32]);
    assert!(recorder.take("EXPORTER_SECRET").is_none(), "nobody asks for it");
    assert!(!format!("{recorder:?}").contains('1'), "secrets are not printed");
}

#[test]
fn names_that_are_neither_hosts_nor_addresses_are_refused_and_brackets_are_none() {
    let tls = client(&Arc::new(configs().0));
    assert!(matches!(Session::client(&tls, "two words", b"p"), Err(TlsConfigError::ServerName(_))));
    assert!(Session::client(&tls, "[::1]", b"p").is_ok());
}
