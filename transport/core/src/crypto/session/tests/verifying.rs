//! Applications that judge the server's certificates themselves.

use super::*;
use std::sync::Arc;

/// A client that has `verdict` judge, and a server.
fn judged(verdict: CertificateVerdict) -> (Session, Session) {
    let pki = pki();
    let verifier: Verifier = Arc::new(move |presented: Presented<'_>| {
        assert_eq!((presented.server_name, presented.chain.len()), ("example.test", 2));
        verdict
    });
    let client = ClientTls::builder().alpn(["h3"]).verifier(verifier).build().unwrap();
    sessions(&client, &pki.server(), "example.test")
}

#[test]
fn a_server_that_the_application_trusts_is_trusted_and_one_that_it_waits_with_is_not_yet() {
    for (verdict, is_complete) in [(CertificateVerdict::Trusted, true), (CertificateVerdict::Pending, false)]
    {
        let (mut client, mut server) = judged(verdict);
        shake(&mut client, &mut server, 4096).expect("nothing is wrong");
        assert_eq!(
            (!client.is_handshaking(), !server.is_handshaking()),
            (is_complete, is_complete),
            "{verdict:?}"
        );
    }
}

#[test]
fn a_server_that_the_application_refuses_gets_its_alert() {
    // RFC 8446 §6.2. What is no alert about certificates is told as certificate_unknown.
    for (alert, told) in
        [(42, 42), (43, 43), (44, 44), (45, 45), (48, 48), (49, 49), (0, 46), (46, 46), (80, 46)]
    {
        let (mut client, mut server) = judged(CertificateVerdict::Refused { alert });
        let (role, error) = shake(&mut client, &mut server, 4096).unwrap_err();
        assert_eq!((role, error.code), (Role::Client, ErrorCode::crypto(told)), "alert {alert}");
    }
}
