//! Chromium loads a page of nginx through a proxy and a gateway.

use crate::common::{nginx, page_in_chromium};
use crate::setup::{Fixture, within};
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The page says what arrived, by which protocol the browser got it, and when the load event was.
const PAGE: &str = r#"<!doctype html><title>page</title><link rel="icon" href="data:,"><p id="result">nothing</p>
<link rel="stylesheet" href="style.css"><script src="script.js"></script><img src="picture.gif" onload="seen = true">
<script>addEventListener("load", () => {
  const entries = performance.getEntriesByType("resource").map((entry) => entry.nextHopProtocol);
  document.getElementById("result").textContent = [ran, seen, ...entries].join(" ");
})</script>"#;
/// One pixel.
const PICTURE: &[u8] = b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";

/// nginx in one process, which ends with this.
struct Nginx {
    child: Child,
    folder: tempfile::TempDir,
    port: u16,
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // It may have ended already.
        let _ended = self.child.kill();
        let _status = self.child.wait();
    }
}

impl Nginx {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let script = format!("var ran = true, seen = false; /*{}*/", " ".repeat(100_000));
        for (name, content) in [
            ("page.html", PAGE.as_bytes()),
            ("style.css", b"p { color: green }"),
            ("script.js", script.as_bytes()),
            ("picture.gif", PICTURE),
        ] {
            fs::write(folder.path().join(name), content).unwrap();
        }
        let dir = folder.path().display();
        let config = format!(
            "daemon off; master_process off; pid {dir}/pid; error_log {dir}/errors; events {{}}
             http {{
               types {{ text/html html; text/css css; text/javascript js; image/gif gif; }}
               log_format told '$uri $http_priority'; access_log {dir}/requests told;
               client_body_temp_path {dir}/1; proxy_temp_path {dir}/2; fastcgi_temp_path {dir}/3;
               uwsgi_temp_path {dir}/4; scgi_temp_path {dir}/5;
               server {{ listen 127.0.0.1:{port}; root {dir}; }}
             }}"
        );
        fs::write(folder.path().join("nginx.conf"), config).unwrap();
        let mut command = Command::new(nginx());
        command.arg("-p").arg(folder.path()).arg("-c").arg(folder.path().join("nginx.conf"));
        let child = command.stderr(Stdio::null()).spawn().unwrap();
        let listens = async {
            while TcpStream::connect(("127.0.0.1", port)).is_err() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        within(listens).await;
        Self { child, folder, port }
    }
}

#[tokio::test]
async fn chromium_loads_a_page_of_nginx_and_says_how_urgent_its_parts_are() {
    let (place, nginx) = (Fixture::new().await, Nginx::start().await);
    let arguments = [
        "--ignore-certificate-errors",
        &format!("--proxy-server=https://{}", place.address()),
        // What is on this machine goes through the proxy too, and nothing goes home.
        "--proxy-bypass-list=<-loopback>",
        "--host-resolver-rules=MAP * ~NOTFOUND,EXCLUDE 127.0.0.1",
    ];
    let url = format!("http://127.0.0.1:{}/page.html", nginx.port);
    let page = page_in_chromium(&url, &arguments).await;
    assert!(page.contains("<p id=\"result\">true true h2 h2 h2</p>"), "{page}");
    let requests = fs::read_to_string(nginx.folder.path().join("requests")).unwrap();
    let priority = |name: &str| {
        let line =
            requests.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{requests}"));
        line.trim().to_owned()
    };
    // RFC 9218: the document and what blocks it come before pictures.
    assert!(
        priority("/page.html").starts_with("u=0") && priority("/style.css").starts_with("u=0"),
        "{requests}"
    );
    assert!(
        priority("/script.js").starts_with("u=1") && priority("/picture.gif").contains('i'),
        "{requests}"
    );
    assert_eq!(place.link.paths().len(), 2);
    within(place.proxy.stop()).await;
}
