//! The server's side: files over whichever protocol the client asks for.

use crate::case::{Case, HQ};
use crate::settings::Settings;
use crate::{hq, http3, secrets};
use anyhow::{Context, Result};
use hvq::{Connection, Endpoint, EndpointOptions, LocalAddress, ServerConfig, TransportConfig};
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// The time that the last connections may take to say goodbye.
const GOODBYE: Duration = Duration::from_millis(500);

/// Serves until it is told to stop.
///
/// # Errors
/// The addresses cannot be had, or the certificate is no good.
pub(crate) async fn run(settings: &Settings, case: Case) -> Result<()> {
    let logs = secrets::logs(settings)?;
    let endpoint = bind(settings, case, logs.as_ref())?;
    // One line, so that whoever starts this knows when to go on.
    println!("{}", json!({ "listening": endpoint.local_addrs() }));
    let mut terminate = signal(SignalKind::terminate())?;
    loop {
        tokio::select! {
            accepted = endpoint.accept() => {
                let Some(connection) = accepted else { break };
                tokio::spawn(serve(connection, settings.www.clone()));
            }
            _ = terminate.recv() => break,
            _ = tokio::signal::ctrl_c() => break,
        }
    }
    endpoint.close(0, b"");
    let _late = tokio::time::timeout(GOODBYE, endpoint.wait_idle()).await;
    secrets::finish(logs.as_ref());
    Ok(())
}

/// A server that listens.
///
/// # Errors
/// The addresses cannot be had, or the certificate is no good.
pub(crate) fn bind(settings: &Settings, case: Case, logs: Option<&hvq::qlog::Qlog>) -> Result<Endpoint> {
    let tls = secrets::server(settings, case)?;
    let transport =
        TransportConfig { tracer: logs.map(hvq::qlog::Qlog::factory), ..case.transport(settings) };
    let config = ServerConfig { retry: case.retry(), ..ServerConfig::new(tls, Arc::new(transport)) };
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
