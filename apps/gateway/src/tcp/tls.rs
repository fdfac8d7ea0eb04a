//! TLS of connections over TCP, and the announcement of HTTP/3. A new configuration replaces both.

use crate::acceptor::{AcceptorError, acceptor};
use crate::configuration::{Config, TcpConfig, TlsVersion};
use crate::gateway::StartError;
use crate::listening::key_log;
use boring::sha::sha256;
use boring::ssl::{NameType, SelectCertError, SslAcceptor, SslAcceptorBuilder, SslContext, SslVersion};
use boring::x509::X509;
use http::HeaderValue;
use hvq::Identity;
use hvq::tls::{KeyLog, ServerCredential, ServerNames};
use std::sync::Arc;
use std::time::Duration;

/// The settings that new connections over TCP are made from.
pub(super) struct Serving {
    pub(super) acceptor: SslAcceptor,
    /// The names of the certificates.
    pub(super) names: Arc<ServerNames>,
    /// The value of `alt-svc`, if HTTP/3 is announced.
    pub(super) alt_svc: Option<HeaderValue>,
}

impl Serving {
    /// Makes the settings of `config`, for a gateway whose certificates have `names`, and whose port of HTTP/3 is `port`.
    pub(super) fn new(
        config: &Config,
        tcp: &TcpConfig,
        names: &Arc<ServerNames>,
        port: Option<u16>,
    ) -> Result<Self, StartError> {
        let alt_svc = port.and_then(|port| alt_svc(port, tcp.alt_svc));
        Ok(Self { acceptor: tls(config, tcp, names.clone())?, names: names.clone(), alt_svc })
    }
}

/// Makes the acceptor, which shows each client the certificate that `names` has for it: that of QUIC.
fn tls(config: &Config, tcp: &TcpConfig, names: Arc<ServerNames>) -> Result<SslAcceptor, StartError> {
    let log = config.key_log.as_ref().map(|file| {
        key_log(file)
            .map(Arc::new)
            .map_err(|source| StartError::KeyLog { file: file.display().to_string(), source })
    });
    let log = log.transpose()?;
    let (default, others) = config.credentials.split_first().expect("there is at least one certificate");
    let contexts = others.iter().map(|other| Ok(context(other, tcp, log.clone())?.build().into_context()));
    let contexts = contexts.collect::<Result<Vec<SslContext>, StartError>>()?;
    let mut builder = context(default, tcp, log)?;
    builder.set_select_certificate_callback(move |mut hello| {
        let number = names.choose(hello.servername(NameType::HOST_NAME));
        match number.checked_sub(1).and_then(|other| contexts.get(other)) {
            Some(context) => hello.ssl_mut().set_ssl_context(context).map_err(|_| SelectCertError::ERROR),
            None => Ok(()),
        }
    });
    Ok(builder.build())
}

/// Makes a context that presents `credential`. In all else those of the gateway are alike.
fn context(
    credential: &ServerCredential,
    tcp: &TcpConfig,
    log: Option<Arc<KeyLog>>,
) -> Result<SslAcceptorBuilder, StartError> {
    let (chain, key) = match &credential.identity {
        Identity::Pem { chain, key } => (chain.clone(), key.clone()),
        Identity::Files { chain, key } => (read(chain)?, read(key)?),
    };
    let mut builder = acceptor(&chain, &key)?;
    if tcp.oldest_tls == TlsVersion::V1_3 {
        builder.set_min_proto_version(Some(SslVersion::TLS1_3)).map_err(AcceptorError::from)?;
    }
    // RFC 8446 §4.6.1: who resumes is shown no certificate, so that a ticket stands for the one that was shown before.
    let own = X509::from_pem(&chain).and_then(|own| own.to_der()).map_err(AcceptorError::from)?;
    builder.set_session_id_context(&sha256(&own)).map_err(AcceptorError::from)?;
    if let Some(log) = log {
        builder.set_keylog_callback(move |_, line| log(line));
    }
    if let Some(response) = credential.ocsp.clone() {
        let staple = builder.set_status_callback(move |ssl| ssl.set_ocsp_status(&response).map(|()| true));
        staple.map_err(AcceptorError::from)?;
    }
    Ok(builder)
}

fn read(file: &std::path::Path) -> Result<Vec<u8>, StartError> {
    std::fs::read(file).map_err(|error| StartError::Content(format!("{}: {error}", file.display())))
}

/// The value of `alt-svc` that announces HTTP/3 at `port` for so long (RFC 7838 §3, RFC 9114 §3.1.1); `None` if that is no time.
fn alt_svc(port: u16, lasts: Duration) -> Option<HeaderValue> {
    let seconds = lasts.as_secs();
    let value = HeaderValue::try_from(format!("h3=\":{port}\"; ma={seconds}"));
    value.ok().filter(|_| seconds > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http3_is_announced_with_its_port_for_the_time_that_is_said() {
        let value = alt_svc(8443, Duration::from_secs(86_400)).unwrap();
        assert_eq!(value, "h3=\":8443\"; ma=86400");
        assert_eq!(alt_svc(443, Duration::ZERO), None);
    }
}
