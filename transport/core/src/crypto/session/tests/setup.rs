//! Mistakes in the configuration are told when it is made.

use super::*;
use std::path::Path;

fn identity(chain: &str, key: &str) -> Identity {
    Identity::Pem { chain: chain.as_bytes().to_vec(), key: key.as_bytes().to_vec() }
}

/// Returns the error's text, for a server of this identity.
fn complaint(identity: Identity) -> String {
    ServerTls::builder(identity).alpn(["h3"]).build().unwrap_err().to_string()
}

/// PEM with bytes between its lines that are not base64 of anything.
const BROKEN: &str = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";

#[test]
fn a_missing_file_is_named() {
    let missing = Path::new("no/such/file.pem").to_path_buf();
    let text = complaint(Identity::Files { chain: missing.clone(), key: missing.clone() });
    assert!(text.starts_with("cannot read no/such/file.pem: "), "{text}");
    let error = ClientTls::builder().alpn(["h3"]).verify(Verify::CaFile(missing)).build().unwrap_err();
    assert!(error.to_string().starts_with("cannot read no/such/file.pem: "), "{error}");
}

#[test]
fn pem_that_is_none_is_told() {
    let pki = pki();
    assert_eq!(complaint(identity("hello", &pki.key)), "the certificate contains no certificate");
    let text = complaint(identity(BROKEN, &pki.key));
    assert!(text.starts_with("the certificate is not valid PEM: "), "{text}");
    for key in ["", "hello", &pki.chain] {
        let text = complaint(identity(&pki.chain, key));
        assert!(text.starts_with("the private key is not valid PEM: "), "{text}");
    }
    for (pem, start) in
        [("hello", "the CA certificate contains no"), (BROKEN, "the CA certificate is not valid PEM: ")]
    {
        let builder = ClientTls::builder().alpn(["h3"]).verify(Verify::CaPem(pem.into()));
        let text = builder.build().unwrap_err().to_string();
        assert!(text.starts_with(start), "{text}");
    }
}

#[test]
fn the_key_of_another_certificate_is_told() {
    let text = complaint(identity(&pki().chain, &pki().key));
    assert_eq!(text, "the private key does not belong to the certificate");
}

#[test]
fn files_serve_as_well_as_memory() {
    let pki = pki();
    let directory = std::env::temp_dir().join(format!("hvq-crypto-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let (chain, key, ca) = (directory.join("chain.pem"), directory.join("key.pem"), directory.join("ca.pem"));
    for (path, text) in [(&chain, &pki.chain), (&key, &pki.key), (&ca, &pki.ca)] {
        std::fs::write(path, text).unwrap();
    }
    let server = ServerTls::builder(Identity::Files { chain, key }).alpn(["h3"]).build();
    let client = ClientTls::builder().alpn(["h3"]).verify(Verify::CaFile(ca)).build();
    std::fs::remove_dir_all(&directory).unwrap();
    let (mut client, mut server) = sessions(&client.unwrap(), &server.unwrap(), "example.test");
    shake(&mut client, &mut server, 4096).unwrap();
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-7
//= type=test
//# Endpoints MUST explicitly negotiate an application protocol
//= https://www.rfc-editor.org/rfc/rfc9001#section-8.1
//= type=test
//# Unless another mechanism is used for agreeing on an application protocol, endpoints MUST use ALPN for this
//# purpose.
#[test]
fn protocols_are_required_and_have_one_to_255_bytes() {
    let pki = pki();
    for alpn in [vec![], vec![vec![]], vec![b"h3".to_vec(), vec![7; 256]]] {
        let client = ClientTls::builder().alpn(alpn.clone()).verify(pki.verify()).build();
        assert!(matches!(client, Err(TlsConfigError::Alpn)));
        let server = ServerTls::builder(pki.identity()).alpn(alpn).build();
        assert!(matches!(server, Err(TlsConfigError::Alpn)));
    }
}

#[test]
fn unknown_groups_are_told() {
    let error = ClientTls::builder()
        .alpn(["h3"])
        .verify(Verify::Insecure)
        .curves("X25519:Bogus")
        .build()
        .unwrap_err();
    assert!(error.to_string().starts_with("unknown key exchange groups \"X25519:Bogus\": "), "{error}");
}

#[test]
fn names_that_cannot_be_are_refused() {
    let client = pki().client();
    for name in ["", ".", "two words", "tab\t.test", "nul\0.test", "é.test", &"long.".repeat(60)] {
        let result = Session::client(&client, name, b"client parameters");
        assert!(matches!(result, Err(TlsConfigError::ServerName(_))), "{name:?}");
    }
}
