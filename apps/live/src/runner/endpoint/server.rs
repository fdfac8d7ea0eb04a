//! The server's side: files over whichever protocol the client asks for.

use crate::case::{HQ, TestCase};
use crate::settings::Settings;
use crate::{hq, http3, secrets};
use anyhow::{Context, Result};
use hvq::{Connection, Endpoint, EndpointOptions, LocalAddress, ServerConfig};
use hvq_program::output::Console;
use hvq_program::qlog::Logs;
use hvq_program::signals::Signals;
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The time that the last connections may take to say goodbye.
const GOODBYE: Duration = Duration::from_millis(500);

/// Serves until it is told to stop.
///
/// # Errors
/// The addresses cannot be had, or the certificate is no good.
pub(crate) async fn run(settings: &Settings, case: TestCase) -> Result<()> {
    let logs = secrets::logs(settings)?;
    let endpoint = bind(settings, case, &logs)?;
    // One line, so that whoever starts this knows when to go on.
    println!("{}", json!({ "listening": endpoint.local_addrs() }));
    let mut signals = Signals::new().map_err(secrets::told)?;
    loop {
        tokio::select! {
            accepted = endpoint.accept() => {
                let Some(connection) = accepted else { break };
                tokio::spawn(serve(connection, settings.www.clone()));
            }
            _ = signals.next() => break,
        }
    }
    endpoint.close(0, b"");
    let _late = tokio::time::timeout(GOODBYE, endpoint.wait_idle()).await;
    logs.finish(Console::Normal);
    Ok(())
}

/// A server that listens.
///
/// # Errors
/// The addresses cannot be had, or the certificate is no good.
pub(crate) fn bind(settings: &Settings, case: TestCase, logs: &Logs) -> Result<Endpoint> {
    let tls = secrets::server(settings, case)?;
    let transport = logs.watch(case.transport(settings));
    let config = ServerConfig::new(tls, Arc::new(transport)).set_retry(case.retry()).clone();
    let local = settings.listen.iter().copied().map(LocalAddress::Socket).collect();
    let options = EndpointOptions { server: Some(config), local, ..EndpointOptions::default() };
    Endpoint::new(options).with_context(|| format!("cannot listen on {:?}", settings.listen))
}

/// Serves one connection.
pub(crate) async fn serve(connection: Connection, folder: PathBuf) {
    match connection.alpn().as_deref() {
        Some(protocol) if protocol == HQ => hq::serve(connection, folder).await,
        _ => http3::serve(connection, folder).await,
    }
}
