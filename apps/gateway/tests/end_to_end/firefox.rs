//! Firefox, which `make firefox` runs: no other test needs it.

use crate::common::within;
use std::path::Path;
use std::process::{Command, Stdio};

/// Has Firefox load `url` with a new profile, for which every name is at 127.0.0.1 and `authority` (PEM) vouches for servers, until the
/// page's load event; keeps a picture of the page as `name` in the folder that `HVQ_SCREENSHOTS` names.
pub async fn screenshot_of_firefox(url: &str, authority: &str, name: &str) {
    let tool =
        |variable| std::env::var_os(variable).expect("make firefox says where the tools of this test are");
    let profile = tempfile::tempdir().unwrap();
    std::fs::write(profile.path().join("user.js"), PREFERENCES).unwrap();
    let file = profile.path().join("authority.pem");
    std::fs::write(&file, authority).unwrap();
    let database = format!("sql:{}", profile.path().display());
    let certutil = |arguments: &[&str]| {
        let mut command = Command::new(tool("HVQ_CERTUTIL"));
        assert!(command.args(["-d", &database]).args(arguments).status().unwrap().success());
    };
    certutil(&["-N", "--empty-password"]);
    certutil(&["-A", "-n", "authority", "-t", "C,,", "-i", file.to_str().unwrap()]);
    let picture = Path::new(&tool("HVQ_SCREENSHOTS")).join(name);
    let mut browser = tokio::process::Command::new(tool("HVQ_FIREFOX"));
    browser.args(["--headless", "--no-remote", "--profile"]).arg(profile.path());
    browser.arg("--screenshot").arg(&picture).arg(url);
    browser.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    assert!(within(browser.status()).await.unwrap().success());
    assert!(picture.is_file(), "there is no picture of the page");
}

/// The differences from Firefox's defaults: names lead here, it calls nobody, and an authority that somebody added is no reason to avoid HTTP/3.
const PREFERENCES: &str = r#"
user_pref("network.dns.forceResolve", "127.0.0.1");
user_pref("network.http.http3.disable_when_third_party_roots_found", false);
user_pref("network.captive-portal-service.enabled", false);
user_pref("network.connectivity-service.enabled", false);
user_pref("app.update.enabled", false);
user_pref("app.normandy.enabled", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("browser.aboutwelcome.enabled", false);
user_pref("browser.shell.checkDefaultBrowser", false);
"#;
