//! The `hvq` command as a client of servers that other people wrote, each in a process of its own.

use super::process::{folder, json_of};
use super::{CONTENT, FILE, Setup};
use crate::content::{check, content};
use crate::report::{Exchange, PathUse};
use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use std::net::UdpSocket;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// The output of `hvq get --json`, as far as it is of interest here.
#[derive(Debug, Deserialize)]
struct Fetched {
    status: u16,
    paths: Vec<FetchedPath>,
}

/// A path in it.
#[derive(Debug, Deserialize)]
struct FetchedPath {
    id: u32,
    bytes_sent: u64,
    bytes_received: u64,
}

/// `hvq get` fetches a file from nginx.
pub async fn nginx(setup: &Setup) -> Result<Exchange> {
    ensure!(setup.nginx.is_file(), "there is no nginx at {} (--nginx)", setup.nginx.display());
    let body = content(CONTENT, 7);
    let folder = folder(&body)?;
    let port = free_port()?;
    std::fs::write(folder.path().join("nginx.conf"), configuration(setup, folder.path(), port))?;
    let mut server = Command::new(&setup.nginx)
        .arg("-p")
        .arg(folder.path())
        .args(["-e", "error.log", "-c", "nginx.conf"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .context("cannot start nginx")?;
    started(&mut server, folder.path(), port).await?;
    let exchange = fetch(setup, port, folder.path(), &body, nginx_version(setup).await?).await?;
    let log = std::fs::read_to_string(folder.path().join("access.log"))?;
    ensure!(log.contains("HTTP/3.0\" 200"), "nginx did not see an HTTP/3 request: {log}");
    Ok(exchange)
}

/// `hvq get` fetches a file from quic-go.
pub async fn quic_go(setup: &Setup) -> Result<Exchange> {
    ensure!(setup.quic_go.is_file(), "there is no quic-go at {} (--quic-go)", setup.quic_go.display());
    let body = content(CONTENT, 9);
    let folder = folder(&body)?;
    let mut server = Command::new(&setup.quic_go)
        .arg("serve")
        .arg(setup.identity.certificate_file())
        .arg(setup.identity.key_file())
        .arg(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .context("cannot start quic-go")?;
    let output = server.stdout.take().context("the output of quic-go is read here")?;
    let line = BufReader::new(output).lines().next_line().await?.context("quic-go says nothing")?;
    let (port, version) = line.trim().split_once(' ').context("quic-go prints its port and version")?;
    let port = port.parse().context("quic-go prints its port")?;
    fetch(setup, port, folder.path(), &body, format!("quic-go {version}")).await
}

/// `hvq get` fetches the file from 127.0.0.1 and compares it.
async fn fetch(setup: &Setup, port: u16, folder: &Path, body: &[u8], peer: String) -> Result<Exchange> {
    let target = folder.join("received.bin");
    let mut get = Command::new(&setup.hvq);
    get.args(["get", "--json", "--fail", "--cacert"]).arg(setup.identity.certificate_file());
    get.arg("--output").arg(&target).arg(format!("https://127.0.0.1:{port}/{FILE}"));
    let fetched: Fetched = json_of(get, "hvq get").await?;
    ensure!(fetched.status == 200, "{peer} answers {}", fetched.status);
    check(&std::fs::read(&target)?, body, "received by hvq get")?;
    let uses =
        |path: FetchedPath| PathUse { id: path.id, sent: path.bytes_sent, received: path.bytes_received };
    let paths = fetched.paths.into_iter().map(uses).collect();
    Ok(Exchange { bytes: CONTENT as u64, paths, peer, note: String::new() })
}

/// A port of 127.0.0.1 that nobody had a moment ago: nginx cannot tell which one the system chose.
fn free_port() -> Result<u16> {
    Ok(UdpSocket::bind("127.0.0.1:0")?.local_addr()?.port())
}

fn configuration(setup: &Setup, folder: &Path, port: u16) -> String {
    let (folder, certificate, key) =
        (folder.display(), setup.identity.certificate_file(), setup.identity.key_file());
    let (certificate, key) = (certificate.display(), key.display());
    // One process, so that ending it ends all of nginx. As root it would serve as a user who cannot read the folder.
    format!(
        "daemon off;
        master_process off;
        error_log error.log info;
        pid nginx.pid;
        events {{ worker_connections 64; }}
        http {{
            access_log access.log;
            default_type application/octet-stream;
            client_body_temp_path temp-body;
            proxy_temp_path temp-proxy;
            fastcgi_temp_path temp-fastcgi;
            uwsgi_temp_path temp-uwsgi;
            scgi_temp_path temp-scgi;
            ssl_certificate {certificate};
            ssl_certificate_key {key};
            ssl_protocols TLSv1.3;
            server {{
                listen 127.0.0.1:{port} quic reuseport;
                server_name localhost;
                http3_stream_buffer_size 1m;
                root {folder};
            }}
        }}
        "
    )
}

/// Waits until nginx has its socket.
async fn started(server: &mut Child, folder: &Path, port: u16) -> Result<()> {
    for _ in 0..200 {
        if let Some(status) = server.try_wait()? {
            let log = std::fs::read_to_string(folder.join("error.log")).unwrap_or_default();
            bail!("nginx ended with {status}: {}", log.trim());
        }
        // With reuseport only sockets that ask for it share the port: this one does not.
        if folder.join("nginx.pid").exists() && UdpSocket::bind(("127.0.0.1", port)).is_err() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    bail!("nginx does not start")
}

async fn nginx_version(setup: &Setup) -> Result<String> {
    let output = Command::new(&setup.nginx).arg("-v").kill_on_drop(true).output().await?;
    let text = String::from_utf8_lossy(&output.stderr);
    let version = text.trim().rsplit('/').next().unwrap_or("?");
    Ok(format!("nginx {version}"))
}
