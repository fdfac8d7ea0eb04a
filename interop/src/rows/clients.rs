//! Programs that other people wrote as clients of `hvq serve`, each in a process of its own.

use super::process::{Served, folder, json_of, output_of};
use super::{CONTENT, FILE, Setup};
use crate::content::{check_hash, content, fnv1a};
use crate::identity::NAME;
use crate::report::Exchange;
use anyhow::{Context, Result, ensure};
use ring::digest;
use serde::Deserialize;
use std::path::Path;
use tokio::process::Command;

/// The client that runs on aioquic.
const AIOQUIC: &str = include_str!("aioquic_get.py");
/// The client that runs on libcurl.
const PYCURL: &str = include_str!("pycurl_get.py");
/// The page that Chromium loads. It fetches the file and writes what arrived into the page.
const PAGE: &str = include_str!("chromium.html");
/// Requests of h2load.
const REQUESTS: u32 = 20_000;

/// The output of a client that hashes the bytes that it receives.
#[derive(Debug, Deserialize)]
struct Received {
    version: String,
    status: u16,
    bytes: usize,
    sha256: String,
}

/// The version of QUIC that a client starts with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Version {
    /// RFC 9000.
    One,
    /// RFC 9369.
    Two,
}

/// An aioquic client fetches a file from `hvq serve`.
pub async fn aioquic(setup: &Setup) -> Result<Exchange> {
    python(setup, AIOQUIC, "aioquic").await
}

/// libcurl fetches a file from `hvq serve`.
pub async fn libcurl(setup: &Setup) -> Result<Exchange> {
    python(setup, PYCURL, "").await
}

async fn python(setup: &Setup, script: &str, name: &'static str) -> Result<Exchange> {
    ensure!(setup.python.exists(), "there is no Python at {} (--python)", setup.python.display());
    let body = content(CONTENT, 8);
    let folder = folder(&body)?;
    let served = Served::start(setup, folder.path()).await?;
    let mut client = Command::new(&setup.python);
    client.args(["-c", script]).arg(served.port.to_string()).arg(format!("/{FILE}"));
    client.arg(setup.identity.certificate_file());
    let received: Received = json_of(client, "the Python client").await?;
    exchange(&received, &body, name)
}

/// A quic-go client fetches a file from `hvq serve`.
pub async fn quic_go(setup: &Setup, version: Version) -> Result<Exchange> {
    ensure!(setup.quic_go.is_file(), "there is no quic-go at {} (--quic-go)", setup.quic_go.display());
    let body = content(CONTENT, 10);
    let folder = folder(&body)?;
    let served = Served::start(setup, folder.path()).await?;
    let mut client = Command::new(&setup.quic_go);
    client.arg("get");
    if version == Version::Two {
        client.arg("-v2");
    }
    client.arg(setup.identity.certificate_file());
    client.arg(format!("https://127.0.0.1:{}/{FILE}", served.port));
    exchange(&json_of(client, "quic-go").await?, &body, "quic-go")
}

fn exchange(received: &Received, body: &[u8], name: &str) -> Result<Exchange> {
    ensure!(received.status == 200, "hvq serve answers {}", received.status);
    check_hash(received.bytes, &received.sha256, body, "received by the client")?;
    let peer = format!("{name} {}", received.version).trim().to_owned();
    Ok(Exchange { bytes: CONTENT as u64, peer, ..Exchange::default() })
}

/// The result that the page in Chromium reports.
#[derive(Debug, Deserialize)]
struct Loaded {
    version: String,
    status: u16,
    bytes: usize,
    fnv1a: u32,
    protocols: Vec<String>,
}

/// Chromium loads a page and fetches a file from `hvq serve`.
pub async fn chromium(setup: &Setup) -> Result<Exchange> {
    let body = content(CONTENT, 11);
    let folder = folder(&body)?;
    std::fs::write(folder.path().join("page.html"), PAGE)?;
    let served = Served::start(setup, folder.path()).await?;
    let origin = format!("{NAME}:{}", served.port);
    let profile = tempfile::tempdir()?;
    let mut browser = Command::new(&setup.chromium);
    browser
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("--origin-to-force-quic-on={origin}"))
        .arg(format!("--ignore-certificate-errors-spki-list={}", key_hash(setup)))
        // Its own services at home stay unknown to it.
        .arg(format!("--host-resolver-rules=MAP {NAME} 127.0.0.1,MAP * ~NOTFOUND,EXCLUDE 127.0.0.1"))
        .arg(format!("https://{origin}/page.html"));
    let page = output_of(browser, "Chromium").await?;
    let result = page.split_once("<p id=\"result\">").and_then(|(_, rest)| rest.split_once("</p>"));
    let (result, _) = result.context("the page did not load")?;
    let loaded: Loaded = serde_json::from_str(result).with_context(|| format!("the page says {result}"))?;
    ensure!(loaded.status == 200, "hvq serve answers {}", loaded.status);
    ensure!(loaded.bytes == body.len() && loaded.fnv1a == fnv1a(&body), "other bytes arrived: {result}");
    let all_http3 = !loaded.protocols.is_empty() && loaded.protocols.iter().all(|name| name == "h3");
    ensure!(all_http3, "not all came over HTTP/3: {:?}", loaded.protocols);
    Ok(Exchange { bytes: CONTENT as u64, peer: loaded.version.replace('/', " "), ..Exchange::default() })
}

/// The hash of the certificate's public key, as Chromium takes it: SHA-256 in base64.
fn key_hash(setup: &Setup) -> String {
    let hash = digest::digest(&digest::SHA256, &setup.identity.public_key_der);
    base64(hash.as_ref())
}

/// `bytes` in base64 (RFC 4648 §4).
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let group = (0..3).fold(0u32, |group, index| group << 8 | u32::from(*chunk.get(index).unwrap_or(&0)));
        for position in 0..4 {
            let digit = (group >> (18 - 6 * position)) as usize & 63;
            text.push(if position <= chunk.len() { DIGITS[digit] as char } else { '=' });
        }
    }
    text
}

/// h2load sends many small requests to `hvq serve`.
pub async fn h2load(setup: &Setup) -> Result<Exchange> {
    ensure!(setup.h2load.is_file(), "there is no h2load at {} (--h2load)", setup.h2load.display());
    let body = content(1024, 12);
    let folder = folder(&body)?;
    let served = Served::start(setup, folder.path()).await?;
    let mut client = Command::new(&setup.h2load);
    client.args(["--npn-list=h3", "-c", "50", "-m", "10", "-n"]).arg(REQUESTS.to_string());
    client.arg(format!("https://127.0.0.1:{}/{FILE}", served.port));
    let report = output_of(client, "h2load").await?;
    let wanted = format!("{REQUESTS} succeeded, 0 failed, 0 errored, 0 timeout");
    ensure!(report.contains(&wanted), "not all requests succeeded: {}", report.trim());
    let rate = report.lines().find_map(|line| line.strip_prefix("finished in ")).unwrap_or_default();
    let rate = rate.split(", ").find(|part| part.ends_with("req/s")).unwrap_or("rate unknown");
    let note = format!("{REQUESTS} requests, {rate}");
    let peer = version_of(&setup.h2load).await?;
    Ok(Exchange { bytes: u64::from(REQUESTS) * 1024, peer, note, ..Exchange::default() })
}

async fn version_of(program: &Path) -> Result<String> {
    let mut command = Command::new(program);
    command.arg("--version");
    let text = output_of(command, "h2load --version").await?;
    Ok(text.trim().replace("nghttp2/", ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_rfc() {
        // RFC 4648 §10.
        for (bytes, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }
}
