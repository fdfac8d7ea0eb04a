//! h3spec: a server's answers to what a client must not send, case by case.

use super::process::{Served, folder};
use super::{CONTENT, Setup};
use crate::content::content;
use crate::report::Exchange;
use anyhow::{Context, Result, ensure};
use std::process::Stdio;
use tokio::process::Command;

/// Runs all cases against `hvq serve`: every one must pass.
pub async fn run(setup: &Setup) -> Result<Exchange> {
    ensure!(setup.h3spec.is_file(), "there is no h3spec at {} (--h3spec)", setup.h3spec.display());
    let folder = folder(&content(CONTENT, 13))?;
    let served = Served::start(setup, folder.path()).await?;
    let output = Command::new(&setup.h3spec)
        .args(["127.0.0.1", &served.port.to_string()])
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .context("cannot start h3spec")?;
    let report = String::from_utf8_lossy(&output.stdout);
    let (transport, http) = cases(&report);
    ensure!(transport.len() >= 30 && http.len() >= 15, "h3spec stopped early: {}", report.trim());
    let unexpected: Vec<&str> =
        transport.iter().chain(&http).filter(|case| !case.passes).map(|case| case.name.as_str()).collect();
    ensure!(unexpected.is_empty(), "cases fail: {}", unexpected.join("; "));
    let count =
        |cases: &[Case]| format!("{}/{}", cases.iter().filter(|case| case.passes).count(), cases.len());
    let note = format!("transport {}, HTTP/3 {}", count(&transport), count(&http));
    Ok(Exchange { peer: "h3spec 0.1.7".to_owned(), note, ..Exchange::default() })
}

/// One case of h3spec.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Case {
    name: String,
    passes: bool,
}

/// The cases in a report: those of the transport, and those of HTTP/3.
fn cases(report: &str) -> (Vec<Case>, Vec<Case>) {
    let (mut transport, mut http) = (Vec::new(), Vec::new());
    let mut section = &mut transport;
    for line in report.lines().take_while(|line| !line.starts_with("Failures:")) {
        if line.starts_with("HTTP/3 servers") {
            section = &mut http;
        }
        if let Some(name) = line.strip_prefix("  ").filter(|name| name.starts_with("MUST")) {
            section.push(Case { name: name.to_owned(), passes: !name.contains(" FAILED [") });
        }
    }
    (transport, http)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read_case_by_case() {
        let report = "\nQUIC servers\n  MUST a [1]\nWarning: x\n  MUST send QPACK_DECOMPRESSION_FAILED if b [2] FAILED [1]\n  MUST send QPACK_DECOMPRESSION_FAILED if d [4]\nHTTP/3 servers\n  MUST c [3]\n\nFailures:\n  MUST not count\n";
        let (transport, http) = cases(report);
        assert_eq!(transport.iter().map(|case| case.passes).collect::<Vec<_>>(), [true, false, true]);
        assert_eq!(http.len(), 1);
        assert!(http[0].passes && http[0].name.contains('c'));
    }
}
