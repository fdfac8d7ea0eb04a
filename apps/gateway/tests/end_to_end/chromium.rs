//! Chromium finds HTTP/3 by itself.

use crate::common::page_in_chromium;
use crate::setup::Fixture;

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
    let port = place.gateway.tcp_addrs()[0].port();
    let certificate = format!("--ignore-certificate-errors-spki-list={}", place.public_key());
    let arguments = [
        "--virtual-time-budget=20000",
        "--host-resolver-rules=MAP h3.example 127.0.0.1,MAP * ~NOTFOUND",
        &certificate,
        // Chromium takes certificates over QUIC from authorities that it was shipped with only, and from any for the hosts that this names.
        // It names another port: at the gateway's nothing is forced, and HTTP/3 has to be found.
        "--origin-to-force-quic-on=h3.example:1",
    ];
    let page = page_in_chromium(&format!("https://h3.example:{port}/page.html"), &arguments).await;
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
