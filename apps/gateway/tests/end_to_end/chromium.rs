//! Chromium finds HTTP/3 by itself.

use crate::common::page_in_chromium;
use crate::setup::Fixture;

/// A page that visits another again and again, and says by which protocol each navigation came.
///
/// The next frame is added while the one before ends: the page's load event, which Chromium waits for, comes after all of them.
const PAGE: &str = r#"<!doctype html><title>page</title><link rel="icon" href="data:,"><p id="result"></p><script>
  const protocol = (window) => window.performance.getEntriesByType("navigation")[0].nextHopProtocol;
  const pause = (time) => { for (const end = performance.now() + time; performance.now() < end;); };
  const seen = [protocol(window)];
  const visit = () => {
    const frame = document.body.appendChild(document.createElement("iframe"));
    frame.onload = () => {
      seen.push(protocol(frame.contentWindow));
      document.getElementById("result").textContent = seen.join(" ");
      if (seen.length < 7) {
        pause(200);
        visit();
      }
    };
    frame.src = "/frame.html?" + Math.random();
  };
  visit();
</script>"#;

/// Has Chromium load the page; returns the protocols that its navigations came by.
async fn protocols(place: &Fixture) -> Vec<String> {
    let port = place.gateway.tcp_addrs()[0].port();
    let certificate = format!("--ignore-certificate-errors-spki-list={}", place.public_key());
    let arguments = [
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
