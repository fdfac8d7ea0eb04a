//! Contexts of BoringSSL that the program made, which know nothing of QUIC.

use super::*;
use boring::ssl::{AlpnError, SslContext, SslVerifyMode, SslVersion, select_next_proto};
use foreign_types::ForeignType;
use std::ptr::NonNull;

/// A context that speaks TLS 1.2 at most, as `configure` completes it.
fn context(configure: impl FnOnce(&mut SslContextBuilder)) -> SslContext {
    let mut builder = SslContextBuilder::new(SslMethod::tls()).unwrap();
    builder.set_max_proto_version(Some(SslVersion::TLS1_2)).unwrap();
    configure(&mut builder);
    builder.build()
}

fn pointer(context: &SslContext) -> NonNull<std::ffi::c_void> {
    NonNull::new(context.as_ptr().cast()).unwrap()
}

#[test]
fn sessions_of_a_foreign_context_speak_tls_1_3_and_the_clients_protocols() {
    let pki = pki();
    let asking = context(|builder| builder.set_verify(SslVerifyMode::NONE));
    let answering = context(|builder| {
        builder.set_certificate(&boring::x509::X509::from_pem(pki.chain.as_bytes()).unwrap()).unwrap();
        let key = boring::pkey::PKey::private_key_from_pem(pki.key.as_bytes()).unwrap();
        builder.set_private_key(&key).unwrap();
        builder.set_alpn_select_callback(|_, offered| {
            select_next_proto(b"\x02h3", offered).ok_or(AlpnError::ALERT_FATAL)
        });
    });
    // SAFETY: both contexts are valid, and of the same BoringSSL.
    let (client, server) = unsafe {
        let protocols = [b"other".to_vec(), b"h3".to_vec()];
        (
            ClientTls::from_context(pointer(&asking), &protocols, NameCheck::None).unwrap(),
            ServerTls::from_context(pointer(&answering)).unwrap(),
        )
    };
    for (client, server) in [(&client, &server), (&client, &pki.server()), (&pki.client(), &server)] {
        let (mut client, mut server) = sessions(client, server, "example.test");
        shake(&mut client, &mut server, 4096).unwrap();
        assert!(!client.is_handshaking() && !server.is_handshaking());
        assert_eq!(client.alpn().as_deref(), Some(&b"h3"[..]));
    }
}
