//! HTTP/0.9 over QUIC, which the runner calls `hq-interop`: a line with the method and the path on a stream, and the file
//! and nothing else in answer.

use crate::files;
use anyhow::{Context, Result, bail};
use bytes::Bytes;
use hvq::{Connection, RecvStream, SendStream};
use std::path::{Path, PathBuf};
use tokio::io::AsyncWriteExt;

/// The longest request that is read.
const LONGEST: usize = 4096;
/// Bytes that are read from a stream at a time.
const CHUNK: usize = 64 << 10;
/// The code with which a stream is reset whose request cannot be answered.
const NO_SUCH_FILE: u64 = 0x10;

/// Answers requests with the files of `folder`, until the connection ends.
pub(crate) async fn serve(connection: Connection, folder: PathBuf) {
    while let Ok((send, receive)) = connection.accept_bi().await {
        let folder = folder.clone();
        tokio::spawn(async move {
            if let Err(error) = answer(send, receive, &folder).await {
                eprintln!("hvq-endpoint: {error:#}");
            }
        });
    }
}

async fn answer(mut send: SendStream, mut receive: RecvStream, folder: &Path) -> Result<()> {
    let request = receive.read_to_end(LONGEST).await.context("a request")?;
    match content(&request, folder).await {
        Ok(content) => {
            send.write_chunk(content).await?;
            send.finish()?;
            // Until the client has it all.
            send.stopped().await?;
            Ok(())
        }
        Err(error) => {
            send.reset(NO_SUCH_FILE)?;
            Err(error)
        }
    }
}

async fn content(request: &[u8], folder: &Path) -> Result<Bytes> {
    files::read(folder, path(request)?).await
}

/// The path that a request names.
fn path(request: &[u8]) -> Result<&str> {
    let line = std::str::from_utf8(request).context("a request is text")?.trim_end();
    match line.split_once(' ') {
        Some(("GET", path)) if !path.contains(char::is_whitespace) => Ok(path),
        _ => bail!("{line:?} is no request"),
    }
}

/// Asks for `path` and writes what comes to `file`.
///
/// # Errors
/// The connection ended, the server refused, or the file cannot be written.
pub(crate) async fn get(connection: &Connection, path: &str, file: &Path) -> Result<()> {
    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_all(format!("GET {path}\r\n").as_bytes()).await?;
    send.finish()?;
    let mut target = tokio::fs::File::create(file).await.with_context(|| file.display().to_string())?;
    while let Some(chunk) = receive.read_chunk(CHUNK).await.with_context(|| path.to_owned())? {
        target.write_all(&chunk).await?;
    }
    target.flush().await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_one_word_and_a_path() {
        assert_eq!(path(b"GET /file\r\n").unwrap(), "/file");
        assert_eq!(path(b"GET /file").unwrap(), "/file");
        for request in [&b"POST /file\r\n"[..], b"GET /a b\r\n", b"GET", b"", b"\xff\xfe"] {
            assert!(path(request).is_err(), "{request:?}");
        }
    }
}
