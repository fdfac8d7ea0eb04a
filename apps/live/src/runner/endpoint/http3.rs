//! Files over HTTP/3.

use crate::files;
use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use hvq::Connection;
use hvq_h3::Settings;
use hvq_h3::client::Client;
use hvq_h3::serving::{Incoming, Server};
use std::future::pending;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::task::JoinHandle;

/// The time that a client may take for a header section, and for a part of a response.
const PATIENCE: Duration = Duration::from_secs(60);

/// Answers requests with the files of `folder`, until the connection ends.
pub(crate) async fn serve(connection: Connection, folder: PathBuf) {
    let Ok(server) = Server::new(connection, Settings::default()).await else { return };
    let answer = move |incoming: Incoming| {
        let folder = folder.clone();
        async move {
            if let Err(error) = answer(incoming, &folder).await {
                eprintln!("hvq-endpoint: {error:#}");
            }
        }
    };
    server.run(pending(), || PATIENCE, answer).await;
}

async fn answer(incoming: Incoming, folder: &Path) -> Result<()> {
    let (request, mut sending, _body) = incoming.request(PATIENCE).await?;
    let found = match *request.method() {
        Method::GET => files::read(folder, request.uri().path()).await.map_err(|_| StatusCode::NOT_FOUND),
        _ => Err(StatusCode::METHOD_NOT_ALLOWED),
    };
    let status = found.as_ref().err().copied().unwrap_or(StatusCode::OK);
    let content = found.unwrap_or_default();
    let head = Response::builder().status(status).header("content-length", content.len());
    Ok(sending.whole(&head.body(())?, content).await?)
}

/// Begins to speak HTTP/3 on `connection`: the client, and the task that reads what belongs to no request.
///
/// # Errors
/// The connection ended.
pub(crate) async fn start(connection: &Connection) -> Result<(Arc<Client>, JoinHandle<()>)> {
    let client = Client::new(connection.clone(), Settings::default()).await?;
    let watching = tokio::spawn(client.watch());
    Ok((Arc::new(client), watching))
}

/// Asks for `url` and writes what comes to `file`.
///
/// # Errors
/// The connection ended, the server refused, or the file cannot be written.
pub(crate) async fn get(client: Arc<Client>, url: &str, file: &Path) -> Result<()> {
    let (_sent, mut receiving) = client.whole(&Request::get(url).body(())?, Bytes::new()).await?;
    let response = receiving.response().await?;
    ensure!(response.status() == StatusCode::OK, "{url}: {}", response.status());
    let mut target = tokio::fs::File::create(file).await.with_context(|| file.display().to_string())?;
    while let Some(part) = receiving.data().await? {
        target.write_all(&part).await?;
    }
    target.flush().await?;
    Ok(())
}
