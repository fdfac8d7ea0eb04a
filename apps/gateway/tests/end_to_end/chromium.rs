//! Chromium finds HTTP/3 by itself.

use crate::setup::{Fixture, within};
use std::path::Path;
use std::process::Stdio;

/// A page that visits another again and again, and says by which protocol each navigation came.
const PAGE: &str = r#"<!doctype html><title>page</title><link rel="icon" href="data:,"><p id="result"></p><script>
  const protocol = (window) => window.performance.getEntriesByType("navigation")[0].nextHopProtocol;
  const visit = () => new Promise((done) => {
    const frame = document.body.appendChild(document.createElement("iframe"));
    frame.onload = () => done(protocol(frame.contentWindow));
    frame.src = "/frame.html?" + Math.random();
  });
  const sleep = (time) => new Promise((done) => setTimeout(done, time));
  (async () => {
    const seen = [protocol(window)];
    for (let visits = 0; visits < 6; visits++) {
      await sleep(200);
      seen.push(await visit());
    }
    document.getElementById("result").textContent = seen.join(" ");
  })();
</script>"#;

/// Has Chromium load the page; returns the protocols that its navigations came by.
async fn protocols(place: &Fixture) -> Vec<String> {
    let (profile, port) = (tempfile::tempdir().unwrap(), place.gateway.tcp_addrs()[0].port());
    let names = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
    let chromium =
        names.iter().find(|path| Path::new(path).exists()).expect("scripts/deps.sh test installs it");
    let mut browser = tokio::process::Command::new(chromium);
    browser
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--dump-dom"])
        .args([
            "--disable-background-networking",
            "--disable-component-update",
            "--virtual-time-budget=20000",
        ])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg("--host-resolver-rules=MAP h3.example 127.0.0.1,MAP * ~NOTFOUND")
        .arg(format!("--ignore-certificate-errors-spki-list={}", place.public_key()))
        // Chromium takes certificates over QUIC from authorities that it was shipped with only, and from any for the hosts that this names.
        // It names another port: at the gateway's nothing is forced, and HTTP/3 has to be found.
        .arg("--origin-to-force-quic-on=h3.example:1")
        .arg(format!("https://h3.example:{port}/page.html"));
    let output = within(browser.stdin(Stdio::null()).kill_on_drop(true).output()).await.unwrap();
    let page = String::from_utf8(output.stdout).unwrap();
    let result = page.split_once("<p id=\"result\">").and_then(|(_, rest)| rest.split_once("</p>"));
    result.unwrap_or_else(|| panic!("{page}")).0.split(' ').map(str::to_owned).collect()
}

#[tokio::test]
async fn chromium_comes_over_http2_and_comes_back_over_http3() {
    let text = "[tcp]\nlisten = ['127.0.0.1:0']\n[[host]]\nnames = ['h3.example']\nfiles = 'DIR'\n";
    let place = Fixture::with(text, &[("page.html", PAGE), ("frame.html", "<!doctype html>frame")]).await;
    let seen = protocols(&place).await;
    assert_eq!((seen[0].as_str(), seen.last().unwrap().as_str()), ("h2", "h3"), "{seen:?}");
    // Nothing but the announcement tells it.
    let silent = text.replace("[tcp]", "[tcp]\nalt_svc = '0s'");
    let place = Fixture::with(&silent, &[("page.html", PAGE), ("frame.html", "<!doctype html>frame")]).await;
    let seen = protocols(&place).await;
    assert!(seen.iter().all(|protocol| protocol == "h2") && seen.len() == 7, "{seen:?}");
}
