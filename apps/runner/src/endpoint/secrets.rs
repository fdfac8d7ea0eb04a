//! Certificates, key logs and qlog files, where the runner wants them.

use crate::case::Case;
use crate::settings::Settings;
use anyhow::{Context, Result};
use hvq::qlog::{Qlog, QlogOptions};
use hvq::transport::crypto::session::KeyLog;
use hvq::{ClientTls, Identity, ServerTls, SessionStore, Verify};
use std::fs::OpenOptions;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The time that the disk may take for the last events.
const PATIENCE: Duration = Duration::from_secs(2);
/// Groups without post-quantum ones: test cases count on a ClientHello in one datagram.
const CURVES: &str = "X25519:P-256:P-384";

/// TLS of a server that speaks HTTP/0.9 and HTTP/3.
pub(crate) fn server(settings: &Settings, case: Case) -> Result<ServerTls> {
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
pub(crate) fn client(settings: &Settings, case: Case, sessions: Arc<dyn SessionStore>) -> Result<ClientTls> {
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
    let opened = OpenOptions::new().create(true).append(true).open(path);
    let file = Mutex::new(opened.with_context(|| format!("the key log {path}"))?);
    Ok(Some(Box::new(move |line| {
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        // A key log that cannot be written is missed later, by whoever reads the capture.
        let _written = file.write_all(format!("{line}\n").as_bytes());
    })))
}

/// Logs of connections, unless the folder's name is empty.
pub(crate) fn logs(settings: &Settings) -> Result<Option<Qlog>> {
    if settings.qlog.is_empty() {
        return Ok(None);
    }
    let opened = Qlog::open(QlogOptions::new(&settings.qlog));
    Ok(Some(opened.with_context(|| format!("the logs in {}", settings.qlog))?))
}

/// Waits until the last events are written.
pub(crate) fn finish(logs: Option<&Qlog>) {
    if logs.is_some_and(|logs| !logs.flush(PATIENCE)) {
        eprintln!("hvq-endpoint: the disk did not take all events of the logs");
    }
}
