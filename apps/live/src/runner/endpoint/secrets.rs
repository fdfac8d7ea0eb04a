//! Certificates, key logs and qlog files, where the runner wants them.

use crate::case::TestCase;
use crate::settings::Settings;
use anyhow::Result;
use hvq::tls::KeyLog;
use hvq::{ClientTls, Identity, ServerTls, SessionStore, Verify};
use hvq_program::failure::Failure;
use hvq_program::qlog::Logs;
use std::path::Path;
use std::sync::Arc;

/// Groups without post-quantum ones: test cases count on a ClientHello in one datagram.
const CURVES: &str = "X25519:P-256:P-384";

/// TLS of a server that speaks HTTP/0.9 and HTTP/3.
pub(crate) fn server(settings: &Settings, case: TestCase) -> Result<ServerTls> {
    let identity =
        Identity::Files { chain: settings.certs.join("cert.pem"), key: settings.certs.join("priv.key") };
    let mut builder = ServerTls::builder(identity)
        .alpn([crate::case::HQ, hvq_h3::ALPN])
        .early_data(case.early_data())
        .suites(case.suites().iter().copied());
    if let Some(log) = keylog(&settings.keylog)? {
        builder = builder.keylog(log);
    }
    Ok(builder.build()?)
}

/// TLS of a client that keeps its tickets in `sessions`.
pub(crate) fn client(
    settings: &Settings,
    case: TestCase,
    sessions: Arc<dyn SessionStore>,
) -> Result<ClientTls> {
    let authority = settings.certs.join("ca.pem");
    let verify = if authority.is_file() { Verify::CaFile(authority) } else { Verify::Insecure };
    let mut builder = ClientTls::builder()
        .alpn([case.protocol()])
        .verify(verify)
        .curves(CURVES)
        .sessions(sessions)
        .early_data(case.early_data())
        .suites(case.suites().iter().copied());
    if let Some(log) = keylog(&settings.keylog)? {
        builder = builder.keylog(log);
    }
    Ok(builder.build()?)
}

/// A key log that is appended to, unless `path` is empty.
fn keylog(path: &str) -> Result<Option<KeyLog>> {
    if path.is_empty() {
        return Ok(None);
    }
    hvq_program::tls::open_keylog(Path::new(path)).map(Some).map_err(told)
}

/// Logs of connections, unless the folder's name is empty.
pub(crate) fn logs(settings: &Settings) -> Result<Logs> {
    let folder = (!settings.qlog.is_empty()).then(|| Path::new(&settings.qlog));
    Logs::open(folder).map_err(told)
}

/// The failure as an error.
pub(crate) fn told(failure: Failure) -> anyhow::Error {
    anyhow::Error::msg(failure.line())
}
