//! Sessions of another library.

use super::*;

/// A session that has nothing to say, whose peer's parameters are given.
#[derive(Debug)]
struct Silent(Option<Vec<u8>>);

impl TlsSession for Silent {
    fn start(&mut self) -> Result<(), TransportError> {
        Ok(())
    }

    fn provide(&mut self, _: Level, _: &[u8]) -> Result<(), TransportError> {
        Ok(())
    }

    fn poll(&mut self) -> Option<SessionOutput> {
        None
    }

    fn set_transport_parameters(&mut self, _: &[u8]) -> Result<(), TlsConfigError> {
        Ok(())
    }

    fn is_handshaking(&self) -> bool {
        true
    }

    fn peer_transport_parameters(&self) -> Option<Vec<u8>> {
        self.0.clone()
    }

    fn alpn(&self) -> Option<Vec<u8>> {
        None
    }

    fn server_name(&self) -> Option<String> {
        None
    }

    fn peer_certificates(&self) -> Vec<Vec<u8>> {
        Vec::new()
    }

    fn is_resumed(&self) -> bool {
        false
    }

    fn export_keying_material(&self, _: &mut [u8], _: &[u8], _: &[u8]) -> Result<(), TlsConfigError> {
        Ok(())
    }
}

#[test]
fn empty_transport_parameters_of_the_peer_are_none() {
    let known = |parameters: Option<&[u8]>| {
        let parameters = parameters.map(<[u8]>::to_vec);
        let tls = ClientTls::provided(move |_, _| Ok(Box::new(Silent(parameters.clone()))));
        Session::client(&tls, "example.test", b"ours").unwrap().peer_transport_parameters()
    };
    assert_eq!(known(Some(b"theirs")).as_deref(), Some(&b"theirs"[..]));
    assert_eq!((known(Some(b"")), known(None)), (None, None));
}
