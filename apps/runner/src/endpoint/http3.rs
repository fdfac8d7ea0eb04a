//! Files over HTTP/3.

use crate::files;
use anyhow::{Context, Result, ensure};
use bytes::{Buf, Bytes};
use futures::future::poll_fn;
use h3::client::SendRequest;
use h3::server::RequestResolver;
use http::{Method, Request, Response, StatusCode};
use hvq::Connection;
use std::path::{Path, PathBuf};
use tokio::io::AsyncWriteExt;
use tokio::task::JoinHandle;

/// The handle that sends requests.
pub(crate) type Requests = SendRequest<hvq_h3::OpenStreams, Bytes>;

/// Answers requests with the files of `folder`, until the connection ends.
pub(crate) async fn serve(connection: Connection, folder: PathBuf) {
    let Ok(mut server) = h3::server::Connection::new(hvq_h3::Connection::new(connection)).await else {
        return;
    };
    while let Ok(Some(resolver)) = server.accept().await {
        let folder = folder.clone();
        tokio::spawn(async move {
            if let Err(error) = answer(resolver, &folder).await {
                eprintln!("hvq-endpoint: {error:#}");
            }
        });
    }
}

async fn answer(resolver: RequestResolver<hvq_h3::Connection, Bytes>, folder: &Path) -> Result<()> {
    let (request, mut stream) = resolver.resolve_request().await?;
    let found = match *request.method() {
        Method::GET => files::read(folder, request.uri().path()).await.map_err(|_| StatusCode::NOT_FOUND),
        _ => Err(StatusCode::METHOD_NOT_ALLOWED),
    };
    let status = found.as_ref().err().copied().unwrap_or(StatusCode::OK);
    let content = found.unwrap_or_default();
    let head = Response::builder().status(status).header("content-length", content.len());
    stream.send_response(head.body(())?).await?;
    if !content.is_empty() {
        stream.send_data(content).await?;
    }
    Ok(stream.finish().await?)
}

/// Begins to speak HTTP/3 on `connection`: what sends requests, and the task that reads what belongs to none of them.
///
/// # Errors
/// The connection ended.
pub(crate) async fn start(connection: &Connection) -> Result<(Requests, JoinHandle<()>)> {
    let (mut driver, requests) = h3::client::new(hvq_h3::Connection::new(connection.clone())).await?;
    let driving = tokio::spawn(async move {
        let _end = poll_fn(|context| driver.poll_close(context)).await;
    });
    Ok((requests, driving))
}

/// Asks for `url` and writes what comes to `file`.
///
/// # Errors
/// The connection ended, the server refused, or the file cannot be written.
pub(crate) async fn get(mut requests: Requests, url: &str, file: &Path) -> Result<()> {
    let mut stream = requests.send_request(Request::get(url).body(())?).await?;
    stream.finish().await?;
    let response = stream.recv_response().await?;
    ensure!(response.status() == StatusCode::OK, "{url}: {}", response.status());
    let mut target = tokio::fs::File::create(file).await.with_context(|| file.display().to_string())?;
    while let Some(mut part) = stream.recv_data().await? {
        let bytes = part.copy_to_bytes(part.remaining());
        target.write_all(&bytes).await?;
    }
    target.flush().await?;
    Ok(())
}
