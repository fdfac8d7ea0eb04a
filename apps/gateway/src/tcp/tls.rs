//! TLS of connections over TCP, and the announcement of HTTP/3. A new configuration replaces both.

use crate::acceptor::acceptor;
use crate::configuration::{Config, TcpConfig, TlsVersion};
use crate::gateway::StartError;
use crate::listening::key_log;
use boring::ssl::{SslAcceptor, SslVersion};
use http::HeaderValue;
use hvq::Identity;
use std::time::Duration;

/// The settings that new connections over TCP are made from.
pub(super) struct Serving {
    pub(super) acceptor: SslAcceptor,
    /// The value of `alt-svc`, if HTTP/3 is announced.
    pub(super) alt_svc: Option<HeaderValue>,
}

impl Serving {
    /// Makes the settings of `config`, for a gateway whose port of HTTP/3 is `port`.
    pub(super) fn new(config: &Config, tcp: &TcpConfig, port: Option<u16>) -> Result<Self, StartError> {
        let alt_svc = port.and_then(|port| alt_svc(port, tcp.alt_svc));
        Ok(Self { acceptor: tls(config, tcp)?, alt_svc })
    }
}

/// Makes the acceptor with the identity of `config`.
pub(super) fn tls(config: &Config, tcp: &TcpConfig) -> Result<SslAcceptor, StartError> {
    let mut builder = match &config.identity {
        Identity::Pem { chain, key } => acceptor(chain, key)?,
        Identity::Files { chain, key } => acceptor(&read(chain)?, &read(key)?)?,
    };
    if tcp.oldest_tls == TlsVersion::V1_3 {
        builder.set_min_proto_version(Some(SslVersion::TLS1_3)).map_err(crate::AcceptorError::from)?;
    }
    if let Some(file) = &config.key_log {
        let log = key_log(file)
            .map_err(|source| StartError::KeyLog { file: file.display().to_string(), source })?;
        builder.set_keylog_callback(move |_, line| log(line));
    }
    Ok(builder.build())
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
