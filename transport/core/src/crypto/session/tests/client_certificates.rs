//! Clients that say who they are.

use super::*;
use rcgen::{ExtendedKeyUsagePurpose, SanType, date_time_ymd};
use std::time::Duration;

/// An authority, and what it says of a client.
struct Clients {
    ca: String,
    holder: Identity,
}

fn clients(change: impl FnOnce(&mut CertificateParams)) -> Clients {
    let ca = authority();
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["ann.example".to_owned(), "192.0.2.7".to_owned()]).unwrap();
    params.distinguished_name.push(DnType::CommonName, "Ann");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    change(&mut params);
    let leaf = params.signed_by(&key, &ca).unwrap();
    let ca = AsRef::<rcgen::Certificate>::as_ref(&ca).pem();
    Clients { ca, holder: Identity::Pem { chain: leaf.pem().into(), key: key.serialize_pem().into() } }
}

/// Returns the outcome for a client with `identity` at a server that asks for certificates of `authorities`.
fn outcome(identity: Option<&Identity>, authorities: &Clients) -> Result<Vec<Vec<u8>>, Failure> {
    let pki = pki();
    let asking = ServerTls::builder(pki.identity()).alpn(["h3"]).ask_clients(authorities.ca.clone());
    let mut builder = ClientTls::builder().alpn(["h3"]).verify(pki.verify());
    if let Some(identity) = identity {
        builder = builder.identity(identity.clone());
    }
    let (mut client, mut server) =
        sessions(&builder.build().unwrap(), &asking.build().unwrap(), "example.test");
    shake(&mut client, &mut server, 4096)?;
    Ok(server.peer_certificates())
}

#[test]
fn the_right_certificate_is_told_to_the_server() {
    let clients = clients(|params| {
        params.subject_alt_names.push(SanType::Rfc822Name("ann@example.org".try_into().unwrap()));
        params.subject_alt_names.push(SanType::URI("spiffe://example.org/ann".try_into().unwrap()));
        params.not_after = date_time_ymd(2090, 1, 2) + Duration::from_secs(3723);
    });
    let chain = outcome(Some(&clients.holder), &clients).unwrap();
    let holder = CertificateHolder::of(&chain[0]).unwrap();
    assert_eq!(
        holder.names,
        ["ann.example", "192.0.2.7", "ann@example.org", "spiffe://example.org/ann", "Ann"]
    );
    // 2090-01-02, in days since 1970-01-01, and 01:02:03.
    assert_eq!(holder.expires, Duration::from_secs(43_831 * 86_400 + 3723));
}

#[test]
fn a_client_without_a_certificate_is_served_as_nobody() {
    assert_eq!(outcome(None, &clients(|_| {})).unwrap(), Vec::<Vec<u8>>::new());
}

#[test]
fn certificates_of_others_expired_ones_and_those_of_servers_end_the_handshake() {
    let ours = clients(|_| {});
    let refused = |identity: &Identity, authorities: &Clients| {
        let (side, error) = outcome(Some(identity), authorities).unwrap_err();
        (side, error.code, error.reason.to_string())
    };
    let (side, code, reason) = refused(&clients(|_| {}).holder, &ours);
    assert_eq!((side, code), (Role::Server, ErrorCode::crypto(48)), "{reason}");
    let old = clients(|params| params.not_after = date_time_ymd(2020, 1, 1));
    let (side, code, reason) = refused(&old.holder, &old);
    assert_eq!((side, code), (Role::Server, ErrorCode::crypto(45)), "{reason}");
    assert!(reason.contains("expired"), "{reason}");
    let server = clients(|params| params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth]);
    let (side, _, reason) = refused(&server.holder, &server);
    assert_eq!(side, Role::Server, "{reason}");
}

#[test]
fn what_is_no_certificate_is_for_nobody() {
    assert_eq!(CertificateHolder::of(b""), None);
    assert_eq!(CertificateHolder::of(&[0x30; 100]), None);
}

#[test]
fn authorities_that_are_none_are_told() {
    let asking = ServerTls::builder(pki().identity()).alpn(["h3"]).ask_clients("hello");
    let text = asking.build().unwrap_err().to_string();
    assert!(text.starts_with("the authority of clients contains no certificate"), "{text}");
}
