//! Tools of all tests of this crate that run programs.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

/// No test takes as long as this unless it hangs.
const LIMIT: Duration = Duration::from_secs(60);

/// Returns the result of `future`; panics if it takes too long.
pub async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, future).await.expect("the test hangs")
}

/// The first of these programs that is there.
pub fn program(names: &[&str]) -> PathBuf {
    let found = names.iter().map(Path::new).find(|path| path.exists());
    found
        .unwrap_or_else(|| panic!("none of {names:?} is there: scripts/deps.sh test installs one"))
        .to_owned()
}

/// The program nginx.
pub fn nginx() -> PathBuf {
    program(&["/usr/sbin/nginx", "/usr/local/sbin/nginx", "/usr/bin/nginx"])
}

/// Has Chromium load `url` with a new profile and no network but what `arguments` leave it; returns the page as it is in the end.
pub async fn page_in_chromium(url: &str, arguments: &[&str]) -> String {
    let profile = tempfile::tempdir().unwrap();
    let chromium = program(&["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"]);
    let mut browser = tokio::process::Command::new(chromium);
    browser
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--dump-dom"])
        .args(["--disable-background-networking", "--disable-component-update"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(arguments)
        .arg(url);
    let Output { stdout, .. } =
        within(browser.stdin(Stdio::null()).kill_on_drop(true).output()).await.unwrap();
    String::from_utf8(stdout).unwrap()
}
