//! Chromium and Firefox as clients of WebTransport: a page talks to the example's server.

use crate::setup::within;
use crate::web_transport_echo;
use hvq::Identity;
use hvq_h3::web_transport::{Origins, SessionEnd, Terms};
use rcgen::{CertificateParams, KeyPair};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc::unbounded_channel;

/// A page that echoes in each way, and says what came back. `DER` and `PORT` are filled in.
const PAGE: &str = r#"<!doctype html><title>page</title><link rel="icon" href="data:,"><script>
  const report = (text) => fetch("/result?" + encodeURIComponent(text));
  const bytes = (text) => new TextEncoder().encode(text);
  const write = async (writable, text) => {
    const writer = writable.getWriter();
    await writer.write(bytes(text));
    await writer.close();
  };
  const all = async (readable) => await new Response(readable).text();
  const datagram = async (session) => {
    const writer = session.datagrams.writable.getWriter();
    const reader = session.datagrams.readable.getReader();
    const answer = reader.read();
    for (let tries = 0; tries < 50; tries++) {
      writer.write(bytes("datagram"));
      const wait = new Promise((done) => setTimeout(done, 100));
      const came = await Promise.race([answer, wait]);
      if (came) return new TextDecoder().decode(came.value);
    }
    return "none";
  };
  (async () => {
    try {
      const hash = await crypto.subtle.digest("SHA-256", new Uint8Array([DER]));
      const session = new WebTransport("https://127.0.0.1:PORT/echo", {
        serverCertificateHashes: [{ algorithm: "sha-256", value: hash }],
      });
      await session.ready;
      const both = await session.createBidirectionalStream();
      await write(both.writable, "bidirectional");
      const said = [await all(both.readable)];
      await write(await session.createUnidirectionalStream(), "unidirectional");
      const incoming = await session.incomingUnidirectionalStreams.getReader().read();
      said.push(await all(incoming.value), await datagram(session));
      session.close({ closeCode: 7, reason: "done" });
      await session.closed;
      report(said.join("-"));
    } catch (error) {
      report("failed: " + error + " " + error.source + " " + error.streamErrorCode);
    }
  })();
</script>"#;

/// A browser that ends with the test.
struct Browser(Child);

impl Drop for Browser {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _ended = self.0.wait();
    }
}

/// Has Chromium load `url` with a new profile below `profile`.
fn chromium(url: &str, profile: &Path) -> Browser {
    let places = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
    let program = places.into_iter().find(|place| Path::new(place).exists());
    let program = program.expect("Chromium is not here: `scripts/deps.sh` installs what tests start");
    let browser = Command::new(program)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
        .args(["--disable-background-networking", "--disable-component-update", "--remote-debugging-port=0"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    Browser(browser.expect("Chromium starts"))
}

/// Has Firefox load `url` with a new profile below `profile`.
fn firefox(url: &str, profile: &Path) -> Browser {
    let program = std::env::var_os("HVQ_FIREFOX").expect("make firefox says where it is");
    let quiet = [
        "network.captive-portal-service.enabled",
        "network.connectivity-service.enabled",
        "app.update.enabled",
    ];
    let preferences: String = quiet.iter().map(|name| format!("user_pref(\"{name}\", false);\n")).collect();
    std::fs::write(profile.join("user.js"), preferences).unwrap();
    let browser = Command::new(program)
        .args(["--headless", "--no-remote", "--profile"])
        .arg(profile)
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    Browser(browser.expect("Firefox starts"))
}

/// Serves `page` over HTTP/1.1 until it reports a result.
async fn result_of(page: String, listener: TcpListener) -> String {
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = vec![0; 4096];
        let length = stream.read(&mut request).await.unwrap();
        let request = String::from_utf8_lossy(&request[..length]).into_owned();
        let target = request.split(' ').nth(1).unwrap_or_default().to_owned();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\ncontent-length:";
        stream.write_all(format!("{head} {}\r\n\r\n{page}", page.len()).as_bytes()).await.unwrap();
        if let Some(result) = target.strip_prefix("/result?") {
            return result.replace("%20", " ");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_in_chromium_echoes_over_streams_and_datagrams() {
    echoes(chromium).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Firefox: make firefox"]
async fn a_page_in_firefox_echoes_over_streams_and_datagrams() {
    echoes(firefox).await;
}

/// Has a page in `browser` talk to the example's server.
async fn echoes(browser: impl Fn(&str, &Path) -> Browser) {
    // Browsers take certificates by their hash that have an ECDSA key and are valid for two weeks at most.
    let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
    params.not_before = (SystemTime::now() - Duration::from_secs(3600)).into();
    params.not_after = (SystemTime::now() + Duration::from_secs(10 * 86_400)).into();
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let identity =
        Identity::Pem { chain: certificate.pem().into_bytes(), key: key.serialize_pem().into_bytes() };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let terms = Terms { origins: Origins::Listed(vec![format!("http://{address}")]), ..Terms::default() };
    let server = web_transport_echo::listen(identity).unwrap();
    let port = server.local_addr().unwrap().port();
    let (told, mut ends) = unbounded_channel();
    tokio::spawn(web_transport_echo::serve(server, terms, move |end| drop(told.send(end))));
    let der = certificate.der().iter().map(u8::to_string).collect::<Vec<_>>().join(",");
    let page = PAGE.replace("DER", &der).replace("PORT", &port.to_string());
    let profile = tempfile::tempdir().unwrap();
    let _browser = browser(&format!("http://{address}/"), profile.path());
    assert_eq!(within(result_of(page, listener)).await, "bidirectional-unidirectional-datagram");
    let end = SessionEnd::ClosedByPeer { code: 7, reason: "done".to_owned() };
    assert_eq!(within(ends.recv()).await, Some(end));
}
