//! Handshakes that fail do so with the alert of the RFC and a reason for people.

use super::*;

/// The failure of a handshake between these two.
fn failure(client: &ClientTls, server: &ServerTls, name: &str) -> Failure {
    let (mut client, mut server) = sessions(client, server, name);
    shake(&mut client, &mut server, 4096).unwrap_err()
}

/// The ClientHello of a client, with the type of one extension changed to one that nobody knows.
fn hello_without(extension: u16) -> Vec<u8> {
    let pki = pki();
    let mut client = Session::client(&pki.client(), "example.test", b"client parameters").unwrap();
    client.start().unwrap();
    let mut hello: Vec<u8> = take(&mut client).data.iter().flat_map(|(_, data)| data.to_vec()).collect();
    let u16_at = |hello: &[u8], at: usize| usize::from(u16::from_be_bytes([hello[at], hello[at + 1]]));
    // RFC 8446 §4.1.2: header, version and random, session ID, cipher suites, compression methods, extensions.
    let mut at = 4 + 2 + 32;
    at += 1 + usize::from(hello[at]);
    at += 2 + u16_at(&hello, at);
    at += 1 + usize::from(hello[at]);
    at += 2;
    while u16_at(&hello, at) != usize::from(extension) {
        at += 4 + u16_at(&hello, at + 2);
    }
    hello[at..at + 2].copy_from_slice(&[0xff, 0x77]);
    hello
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-7
//= type=test
//# Endpoints MUST explicitly negotiate an application protocol
//= https://www.rfc-editor.org/rfc/rfc9001#section-8.1
//= type=test
//# When using ALPN, endpoints MUST immediately close a connection (see Section 10.2 of [QUIC-TRANSPORT]) with
//# a no_application_protocol TLS alert (QUIC error code 0x0178; see Section 4.8)
//= https://www.rfc-editor.org/rfc/rfc9001#section-8.1
//= type=test
//# The server MUST treat the inability to select a compatible application protocol as a connection error of
//# type 0x0178 (no_application_protocol)
#[test]
fn without_a_protocol_in_common_the_server_says_so() {
    // RFC 9001 §8.1.
    let pki = pki();
    let client = ClientTls::builder().alpn(["other"]).verify(pki.verify()).build().unwrap();
    let (side, error) = failure(&client, &pki.server(), "example.test");
    assert_eq!(
        (side, error.code, error.reason.as_ref()),
        (Role::Server, ErrorCode::crypto(120), "no application protocol")
    );
}

//= https://www.rfc-editor.org/rfc/rfc9001#section-8.1
//= type=test
//# When using ALPN, endpoints MUST immediately close a connection (see Section 10.2 of [QUIC-TRANSPORT]) with
//# a no_application_protocol TLS alert (QUIC error code 0x0178; see Section 4.8)
#[test]
fn a_client_that_offers_no_protocol_is_refused() {
    // RFC 9001 §8.1.
    let mut server = Session::server(&pki().server(), b"server parameters").unwrap();
    let error = server.provide(Level::Initial, &hello_without(16)).unwrap_err();
    assert_eq!((error.code, error.reason.as_ref()), (ErrorCode::crypto(120), "no application protocol"));
}

//= https://www.rfc-editor.org/rfc/rfc9001#section-8.2
//= type=test
//# Endpoints MUST send the quic_transport_parameters extension; endpoints that receive ClientHello or
//# EncryptedExtensions messages without the quic_transport_parameters extension MUST close the
#[test]
fn a_client_without_transport_parameters_is_refused() {
    // RFC 9001 §8.2.
    let mut server = Session::server(&pki().server(), b"server parameters").unwrap();
    let error = server.provide(Level::Initial, &hello_without(57)).unwrap_err();
    assert_eq!(error.code, ErrorCode::crypto(109));
    assert!(error.reason.starts_with("missing extension"), "{}", error.reason);
}

//= https://www.rfc-editor.org/rfc/rfc9001#section-4.4
//= type=test
//# A client MUST authenticate the identity of the server
#[test]
fn a_certificate_of_an_unknown_authority_is_refused_with_the_reason() {
    let other = pki();
    let (side, error) = failure(&other.client(), &pki().server(), "example.test");
    assert_eq!(side, Role::Client);
    assert!((0x100..0x200).contains(&error.code.0));
    assert!(error.reason.starts_with("certificate verify failed: "), "{}", error.reason);
}

#[test]
fn a_chain_that_leads_nowhere_says_that_the_issuer_is_missing() {
    let (trusted, pki) = (pki(), pki());
    let own = pki.chain.split_inclusive("-----END CERTIFICATE-----\n").next().unwrap().replace('\r', "");
    let identity = Identity::Pem { chain: own.into(), key: pki.key.clone().into() };
    let server = ServerTls::builder(identity).alpn(["h3"]).build().unwrap();
    let (side, error) = failure(&trusted.client(), &server, "example.test");
    assert_eq!((side, error.code), (Role::Client, ErrorCode::crypto(48)));
    assert_eq!(error.reason, "certificate verify failed: unable to get local issuer certificate");
}

#[test]
fn an_illegal_parameter_is_told_as_such_unless_bytes_of_a_ticket_are_meant() {
    let error = alert::failure(Some(47), &ErrorStack::get(), Ok(()));
    assert_eq!((error.code, error.reason.as_ref()), (ErrorCode::crypto(47), "illegal parameter"));
}

#[test]
fn the_systems_roots_do_not_vouch_for_a_private_authority() {
    // Systems without roots are told so when TLS is configured.
    match ClientTls::builder().alpn(["h3"]).build() {
        Ok(client) => {
            let provided::ClientEngine::BoringSsl(context) = client.engine() else { panic!("no other") };
            #[expect(deprecated, reason = "nobody else uses the store")]
            let count = context.cert_store().objects().len();
            // A folder is read when a certificate is looked for.
            let [file, folder] =
                ["SSL_CERT_FILE", "SSL_CERT_DIR"].map(|name| std::env::var_os(name).is_some());
            assert!(count > 0 || folder && !file);
            let (side, error) = failure(&client, &pki().server(), "example.test");
            assert_eq!(side, Role::Client);
            assert!(error.reason.starts_with("certificate verify failed: "), "{}", error.reason);
        }
        Err(error) => assert!(matches!(error, TlsConfigError::NoSystemRoots), "{error}"),
    }
}

//= https://www.rfc-editor.org/rfc/rfc9001#section-4.4
//= type=test
//# A client MUST authenticate the identity of the server
#[test]
fn a_certificate_counts_only_for_its_own_names_and_addresses() {
    let pki = pki();
    for name in ["example.test", "EXAMPLE.test", "example.test.", "a.wild.test", "127.0.0.1", "::1", "[::1]"]
    {
        let (mut client, mut server) = sessions(&pki.client(), &pki.server(), name);
        shake(&mut client, &mut server, 4096).unwrap_or_else(|(_, error)| panic!("{name}: {error}"));
    }
    for name in ["other.test", "a.example.test", "a.b.wild.test", "127.0.0.2", "::2"] {
        let (side, error) = failure(&pki.client(), &pki.server(), name);
        assert_eq!(side, Role::Client, "{name}");
        let reason = error.reason.to_lowercase();
        assert!(
            reason.starts_with("certificate verify failed: ") && reason.contains("mismatch"),
            "{name}: {reason}"
        );
    }
}

#[test]
fn an_insecure_client_accepts_any_certificate() {
    let client = ClientTls::builder().alpn(["h3"]).verify(Verify::Insecure).build().unwrap();
    let (mut client, mut server) = sessions(&client, &pki().server(), "somebody.else");
    shake(&mut client, &mut server, 4096).unwrap();
    assert_eq!(client.peer_certificates().len(), 2);
}

//= https://www.rfc-editor.org/rfc/rfc9001#section-4.1.3
//= type=test
//# If the packet is from a previously installed encryption level, it MUST NOT contain data that extends past
//# the end of previously received data in that flow
//= https://www.rfc-editor.org/rfc/rfc9001#section-4.1.3
//= type=test
//# Implementations MUST treat any violations of this requirement as a connection error of type
//# PROTOCOL_VIOLATION.
#[test]
fn data_of_a_level_that_has_not_begun_is_a_protocol_violation() {
    // RFC 9001 §4.1.3.
    let mut server = Session::server(&pki().server(), b"server parameters").unwrap();
    for level in [Level::Handshake, Level::OneRtt, Level::ZeroRtt] {
        let mut server = Session::server(&pki().server(), b"server parameters").unwrap();
        let error = server.provide(level, &[1, 2, 3]).unwrap_err();
        assert_eq!(error.code, ErrorCode::PROTOCOL_VIOLATION, "{level:?}");
    }
    let (mut connected, _) = connected();
    assert_eq!(connected.provide(Level::Initial, b"x").unwrap_err().code, ErrorCode::PROTOCOL_VIOLATION);
    assert!(server.provide(Level::Initial, &[]).is_ok());
}

//= https://www.rfc-editor.org/rfc/rfc9001#section-6
//= type=test
//# Endpoints MUST treat the receipt of a TLS KeyUpdate message as a connection error of type 0x010a,
//# equivalent to a fatal TLS alert of unexpected_message; see Section 4.8.
#[test]
fn tls_messages_that_quic_does_not_have_are_unexpected() {
    // RFC 9001 §6, §8.3: KeyUpdate, also twice, and EndOfEarlyData.
    for message in [[24, 0, 0, 1, 0].as_slice(), &[24, 0, 0, 1, 0, 24, 0, 0, 1, 0], &[5, 0, 0, 0]] {
        let (mut client, mut server) = connected();
        for session in [&mut client, &mut server] {
            let error = session.provide(Level::OneRtt, message).unwrap_err();
            assert_eq!(error.code, ErrorCode::crypto(10), "{error}");
        }
    }
}

#[test]
fn a_key_update_behind_finished_is_unexpected_as_well() {
    let pki = pki();
    let (mut client, mut server) = sessions(&pki.client(), &pki.server(), "example.test");
    client.start().unwrap();
    carry(&mut server, &take(&mut client).data, 4096).unwrap();
    carry(&mut client, &take(&mut server).data, 4096).unwrap();
    let mut flight: Vec<u8> = take(&mut client).data.iter().flat_map(|(_, data)| data.to_vec()).collect();
    flight.extend([24, 0, 0, 1, 0]);
    assert_eq!(server.provide(Level::Handshake, &flight).unwrap_err().code, ErrorCode::crypto(10));
}

//= https://www.rfc-editor.org/rfc/rfc9001#section-4.8
//= type=test
//# a QUIC endpoint MUST treat any alert from TLS as if it were at the "fatal" level.
#[test]
fn a_failed_session_stays_failed() {
    let mut server = Session::server(&pki().server(), b"server parameters").unwrap();
    let error = server.provide(Level::Initial, &[2, 0, 0, 0]).unwrap_err();
    assert_eq!(error.code, ErrorCode::crypto(10));
    assert_eq!(server.provide(Level::Initial, &hello_without(0)).unwrap_err(), error);
    assert_eq!(server.start().unwrap_err(), error);
}

#[test]
fn a_client_hello_of_megabytes_exceeds_the_buffer_after_a_few_kilobytes() {
    let mut server = Session::server(&pki().server(), b"server parameters").unwrap();
    // RFC 8446 §4: the type, and a length of nearly 16 MiB.
    server.provide(Level::Initial, &[1, 0xff, 0xff, 0xff]).unwrap();
    let pieces = (0..100).take_while(|_| server.provide(Level::Initial, &[0; 1000]).is_ok()).count();
    assert_eq!(pieces, 16);
    let error = server.provide(Level::Initial, &[0]).unwrap_err();
    assert_eq!(error.code, ErrorCode::CRYPTO_BUFFER_EXCEEDED, "{error}");
}

#[test]
fn a_flood_of_tickets_is_bounded_in_memory_and_in_bytes() {
    let pki = pki();
    let (mut client, mut server) = sessions(&pki.client(), &pki.server(), "example.test");
    client.start().unwrap();
    carry(&mut server, &take(&mut client).data, 4096).unwrap();
    carry(&mut client, &take(&mut server).data, 4096).unwrap();
    carry(&mut server, &take(&mut client).data, 4096).unwrap();
    let tickets: Vec<u8> = take(&mut server).data.iter().flat_map(|(_, data)| data.to_vec()).collect();
    assert!(!tickets.is_empty());
    for _ in 0..POST_HANDSHAKE_LIMIT / tickets.len() {
        client.provide(Level::OneRtt, &tickets).expect("within the limit");
        take(&mut client);
    }
    let (rest, beyond) = tickets.split_at(POST_HANDSHAKE_LIMIT % tickets.len());
    client.provide(Level::OneRtt, rest).expect("all of the limit");
    let error = client.provide(Level::OneRtt, &beyond[..1]).unwrap_err();
    assert_eq!(error.code, ErrorCode::CRYPTO_BUFFER_EXCEEDED, "{error}");
    assert_eq!(client.take_tickets().len(), MAX_TICKETS);
}

//= https://www.rfc-editor.org/rfc/rfc9001#section-4.2
//= type=test
//# An endpoint MUST terminate the connection if a version of TLS older than 1.3 is negotiated.
#[test]
fn any_first_bytes_give_an_error_or_wait_for_more() {
    let tls = pki().server();
    for first in 0..=255 {
        for length in [0, 1, 200] {
            let mut server = Session::server(&tls, b"server parameters").unwrap();
            let mut message = vec![first, 0, 0, length];
            message.extend(std::iter::repeat_n(first, usize::from(length)));
            let result = server.provide(Level::Initial, &message);
            assert!(result.is_err_and(|error| (0x100..0x200).contains(&error.code.0)), "{first} {length}");
            assert!(server.is_handshaking());
        }
    }
}

#[test]
fn alerts_have_names() {
    assert_eq!(
        [alert_name(48), alert_name(120), alert_name(255)],
        ["unknown certificate authority", "no application protocol", "unknown alert"]
    );
}

/// Passes a handshake on until the client is done, with each flight of the server changed by `change`.
fn client_with(change: impl Fn(Level, &mut Vec<u8>)) -> Result<(), crate::error::TransportError> {
    let pki = pki();
    let (mut client, mut server) = sessions(&pki.client(), &pki.server(), "example.test");
    client.start()?;
    for _ in 0..4 {
        for (level, data) in take(&mut client).data {
            server.provide(level, &data).expect("the client is honest");
        }
        for (level, data) in take(&mut server).data {
            let mut data = data.to_vec();
            change(level, &mut data);
            client.provide(level, &data)?;
        }
    }
    assert!(!client.is_handshaking());
    Ok(())
}

/// Replaces `old` in `data`, which holds it once at most, by `new`.
fn replace(data: &mut Vec<u8>, old: &[u8], new: &[u8]) {
    if let Some(at) = data.windows(old.len()).position(|window| window == old) {
        data.splice(at..at + old.len(), new.iter().copied());
    }
}

//= https://www.rfc-editor.org/rfc/rfc9001#section-4.4
//= type=test
//# More specifically, servers MUST NOT send post- handshake TLS CertificateRequest messages, and clients MUST
//# treat receipt of such messages as a connection error of type PROTOCOL_VIOLATION.
#[test]
fn certificate_requests_after_the_handshake_close_the_connection() {
    for count in [1, 2] {
        let (mut client, _) = connected();
        let error = client.provide(Level::OneRtt, &[13, 0, 0, 3, 0, 0, 0].repeat(count)).unwrap_err();
        assert_eq!(error.code, ErrorCode::PROTOCOL_VIOLATION, "{error}");
    }
}

//= https://www.rfc-editor.org/rfc/rfc9001#section-4.1.3
//= type=test
//# if there is data from a previous encryption level that TLS has not consumed, this MUST be treated as a
//# connection error of type PROTOCOL_VIOLATION.
#[test]
fn data_behind_the_last_message_of_a_level_is_a_protocol_violation() {
    let pki = pki();
    let (mut client, mut server) = sessions(&pki.client(), &pki.server(), "example.test");
    client.start().unwrap();
    let mut hello: Vec<u8> = take(&mut client).data.iter().flat_map(|(_, data)| data.to_vec()).collect();
    hello.push(1);
    let error = server.provide(Level::Initial, &hello).unwrap_err();
    assert_eq!(error.code, ErrorCode::PROTOCOL_VIOLATION, "{error}");
}

//= https://www.rfc-editor.org/rfc/rfc9001#section-4.6.1
//= type=test
//# A client MUST treat receipt of a NewSessionTicket that contains an early_data extension with any other
//# value as a connection error of type PROTOCOL_VIOLATION.
#[test]
fn a_ticket_that_limits_early_data_is_a_protocol_violation() {
    let pki = pki();
    let (mut client, mut server) = sessions(&pki.client(), &pki.server(), "example.test");
    let guard = std::sync::Arc::new(crate::crypto::replay::ReplayGuard::new(&[7; 32]));
    server.accept_early_data(b"context", &guard, crate::time::Instant::ZERO).unwrap();
    client.start().unwrap();
    let mut closed = None;
    for _ in 0..4 {
        for (level, data) in take(&mut client).data {
            server.provide(level, &data).unwrap();
        }
        for (level, data) in take(&mut server).data {
            let mut data = data.to_vec();
            replace(&mut data, &[0, 42, 0, 4, 0xff, 0xff, 0xff, 0xff], &[0, 42, 0, 4, 0, 0, 0, 1]);
            closed = closed.or(client.provide(level, &data).err());
        }
    }
    assert_eq!(closed.expect("the ticket is refused").code, ErrorCode::PROTOCOL_VIOLATION);
}

//= https://www.rfc-editor.org/rfc/rfc9001#section-8.1
//= type=test
//# While [ALPN] only specifies that servers use this alert, QUIC clients MUST use error 0x0178 to terminate a
//# connection when ALPN negotiation fails.
#[test]
fn a_client_ends_if_the_server_selects_no_protocol() {
    assert_eq!(client_with(|_, _| {}), Ok(()));
    let error = client_with(|level, data| {
        // The extension of EncryptedExtensions (RFC 7301 §3.1) goes, and what is around it gets shorter.
        let alpn = [0, 16, 0, 5, 0, 3, 2, b'h', b'3'];
        if level == Level::Handshake && data.windows(alpn.len()).any(|window| window == alpn) {
            replace(data, &alpn, &[]);
            assert_eq!((data[0], data[1], data[4]), (8, 0, 0), "a short EncryptedExtensions comes first");
            data[3] -= alpn.len() as u8;
            data[5] -= alpn.len() as u8;
        }
    });
    assert_eq!(error.unwrap_err().code, ErrorCode::crypto(120));
}

/// A certificate for `example.test` that vouches for itself and has the same subject as others, until the year `until`, in PEM.
fn own_certificate(until: i32) -> Pki {
    let mut params = CertificateParams::new(["example.test".to_owned()]).unwrap();
    params.not_after = rcgen::date_time_ymd(until, 1, 1);
    let key = KeyPair::generate().unwrap();
    let chain = params.self_signed(&key).unwrap().pem();
    Pki { ca: chain.clone(), chain, key: key.serialize_pem() }
}

#[test]
fn of_certificates_with_the_same_subject_each_is_trusted_for_itself_while_it_is_valid_and_under_its_name() {
    let (first, second, stranger) = (own_certificate(2100), own_certificate(2100), own_certificate(2100));
    let expired = own_certificate(2001);
    let roots = [&first, &second, &expired].map(|pki| pki.ca.as_str()).concat();
    let client = || {
        let builder = ClientTls::builder().alpn(["h3"]).verify(Verify::CaPem(roots.clone().into()));
        builder.build().unwrap()
    };
    for pki in [&first, &second] {
        let (mut near, mut far) = sessions(&client(), &pki.server(), "example.test");
        shake(&mut near, &mut far, 4096).expect("trusted");
        let (role, _) = failure(&client(), &pki.server(), "other.test");
        assert_eq!(role, Role::Client, "another name");
    }
    let both = [&first, &second].map(|pki| pki.ca.as_str()).concat();
    let client_of_two = ClientTls::builder().alpn(["h3"]).verify(Verify::CaPem(both.into())).build().unwrap();
    for pki in [&first, &second] {
        let (mut near, mut far) = sessions(&client_of_two, &pki.server(), "example.test");
        shake(&mut near, &mut far, 4096).expect("trusted");
    }
    for pki in [&stranger, &expired] {
        let (role, error) = failure(&client(), &pki.server(), "example.test");
        assert_eq!(role, Role::Client, "{error}");
    }
}
