//! Programs in processes of their own: `hvq serve`, what is served, and what programs print.

use super::{FILE, Setup};
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// `hvq serve`, until this is dropped.
#[derive(Debug)]
pub struct Served {
    /// Its port of 127.0.0.1.
    pub port: u16,
    _server: Child,
}

/// The output of `hvq serve --json` when it is ready.
#[derive(Debug, Deserialize)]
struct Listening {
    listening: Vec<SocketAddr>,
}

impl Served {
    /// Starts to serve the files in `folder`.
    ///
    /// # Errors
    /// `hvq serve` does not start.
    pub async fn start(setup: &Setup, folder: &Path) -> Result<Self> {
        let mut server = Command::new(&setup.hvq)
            .args(["serve", "--json", "--listen", "127.0.0.1:0", "--cert"])
            .arg(setup.identity.certificate_file())
            .arg("--key")
            .arg(setup.identity.key_file())
            .arg("--root")
            .arg(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {}", setup.hvq.display()))?;
        let output = server.stdout.take().context("the output of hvq serve is read here")?;
        let line = BufReader::new(output).lines().next_line().await?.context("hvq serve says nothing")?;
        let listening: Listening = serde_json::from_str(&line).context("hvq serve")?;
        let address = listening.listening.first().context("hvq serve listens nowhere")?;
        Ok(Self { port: address.port(), _server: server })
    }
}

/// A folder with the file to serve.
///
/// # Errors
/// It cannot be written.
pub fn folder(body: &[u8]) -> Result<TempDir> {
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join(FILE), body)?;
    Ok(folder)
}

/// Returns the standard output of `command`.
///
/// # Errors
/// It does not start or it fails; with what it says on standard error.
pub async fn output_of(mut command: Command, name: &'static str) -> Result<String> {
    let command = command.stdin(Stdio::null()).kill_on_drop(true);
    let output = command.output().await.with_context(|| format!("cannot start {name}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{name} ended with {}: {}", output.status, errors.trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns the output of `command`, one JSON object.
///
/// # Errors
/// Those of [`output_of`], or it printed something else.
pub async fn json_of<T: DeserializeOwned>(command: Command, name: &'static str) -> Result<T> {
    let output = output_of(command, name).await?;
    serde_json::from_str(&output).with_context(|| format!("{name} printed something else"))
}
