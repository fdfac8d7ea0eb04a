//! One load: a shell with everything in it, and a browser that is told to begin.

use super::arm::{Arm, Speech};
use super::browser::{BrowserOptions, Pipes, Timing};
use super::{BrowserLoad, Stage, WARM, stretch};
use crate::error::LiveError;
use crate::shell::{Packets, Report, Running, Shell};
use crate::tools::folder;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// A page has so long to load, with the start of the browser.
const LIMIT: Duration = Duration::from_secs(45);
/// And everything so long to end.
const END: Duration = Duration::from_secs(10);

/// The host of the page that is loaded first.
const WARM_HOST: &str = "warm.test";
/// The far end of the first channel.
const FAR: &str = "100.64.0.1";

impl Stage {
    /// Loads page `page` over `channel`, whose repetition this is, by `arm`.
    pub(super) fn load(&self, page: usize, (channel, repetition): (&str, u32), arm: Arm) -> BrowserLoad {
        let mut load = BrowserLoad {
            page: self.sites[page].id.clone(),
            channel: channel.to_owned(),
            arm,
            repetition,
            plt_ms: None,
            protocols: Vec::new(),
            embb_bytes: 0,
            urllc_bytes: 0,
            late_ms: 0.0,
            most_late_ms: 0.0,
            trusted: false,
            failure: None,
        };
        match self.try_load(page, &stretch(channel, repetition), arm) {
            Err(error) => load.failure = Some(error.to_string()),
            Ok((timing, report)) => {
                load.plt_ms = Some(timing.loaded);
                load.protocols = timing.protocols;
                // Where there is a single channel, it is eMBB.
                load.embb_bytes = report.bytes("embb") + report.bytes("channel");
                load.urllc_bytes = report.bytes("urllc");
                load.late_ms = report.lateness_ms.p99;
                load.most_late_ms = report.lateness_ms.max;
                load.trusted = report.trusted;
            }
        }
        load
    }

    fn try_load(&self, page: usize, embb: &str, arm: Arm) -> Result<(Timing, Report), LiveError> {
        let scratch = folder()?;
        let pipes = Pipes::new(scratch.path())?;
        let browser = pipes.command(&self.chromium, &self.options(page, arm));
        let mut options = vec!["--embb".to_owned(), embb.to_owned()];
        options.extend(arm.options().iter().map(|option| (*option).to_owned()));
        let shell = Shell {
            hvq: self.tools.hvq.clone(),
            options,
            server: format!("{}{}", self.gateway(arm, scratch.path()), self.server),
            command: format!("{}{browser}", self.proxy(arm, scratch.path())),
            packets: Packets::Counted,
        };
        let mut running = shell.start(scratch.path())?;
        let mut browser = pipes.open()?;
        let scheme = if let Speech::Proxy(..) = arm.speech() { "http" } else { "https" };
        if scheme == "http" {
            appears(&scratch.path().join("proxy"), &mut running)?;
        }
        browser.load(&format!("{scheme}://{WARM_HOST}/{WARM}"), &mut running, LIMIT)?;
        let url = format!("{scheme}:{}", self.sites[page].first);
        let timing = browser.load(&url, &mut running, LIMIT)?;
        browser.close();
        let report = running.wait(END)?.report;
        check(arm, &timing)?;
        Ok((timing, report))
    }

    fn options(&self, page: usize, arm: Arm) -> BrowserOptions {
        let more = match arm.speech() {
            Speech::Http2 => vec!["--disable-quic".to_owned()],
            Speech::Http3 => {
                let origins: Vec<String> =
                    self.hosts[page].iter().map(|host| format!("{host}:443")).collect();
                vec![format!("--origin-to-force-quic-on={}", origins.join(","))]
            }
            Speech::Proxy(..) => vec![
                "--disable-quic --proxy-server=https://127.0.0.1:3128".to_owned(),
                // Without the proxy these names are not known at all.
                "'--proxy-bypass-list=*.google.com;*.googleapis.com;*.gvt1.com'".to_owned(),
            ],
        };
        BrowserOptions { address: FAR.to_owned(), key: self.identity.1.clone(), more }
    }

    /// Returns the start of the far end's command line.
    fn gateway(&self, arm: Arm, folder: &Path) -> String {
        let Speech::Proxy(scheduler, _) = arm.speech() else { return String::new() };
        let ready = folder.join("gateway");
        let [chain, key] = self.identity.0.each_ref().map(|file| file.display().to_string());
        // What is not known of eMBB is not said; what URLLC promises is.
        format!(
            "'{}' -q gateway --json --cert '{chain}' --key '{key}' --origin http://127.0.0.1:80 \
             --scheduler {scheduler} --channel \"embb=$HVQ_EMBB_FAR:8443\" \
             --channel \"urllc=$HVQ_URLLC_FAR:8443,rate=2mbit,delay=2.5ms\" > '{}' & {} ",
            self.tools.hvq.display(),
            ready.display(),
            until(&ready)
        )
    }

    /// Returns the start of the near end's command line.
    fn proxy(&self, arm: Arm, folder: &Path) -> String {
        let Speech::Proxy(scheduler, paths) = arm.speech() else { return String::new() };
        let [chain, key] = self.identity.0.each_ref().map(|file| file.display().to_string());
        let paths = [
            "--path \"embb=$HVQ_EMBB_NEAR>$HVQ_EMBB_FAR:8443\"",
            "--path \"urllc=$HVQ_URLLC_NEAR>$HVQ_URLLC_FAR:8443,rate=2mbit,delay=2.5ms\"",
        ]
        .get(..paths)
        .unwrap_or_default()
        .join(" ");
        format!(
            "'{}' -q proxy --json --insecure --gateway \"$HVQ_EMBB_FAR:8443\" --tls-cert '{chain}' --tls-key '{key}' \
             --scheduler {scheduler} {paths} > '{}' & ",
            self.tools.hvq.display(),
            folder.join("proxy").display()
        )
    }
}

/// Returns the shell command that waits until the file `ready` holds something.
fn until(ready: &Path) -> String {
    format!("until [ -s '{}' ]; do sleep 0.02; done;", ready.display())
}

/// Waits until the file `ready` holds something.
fn appears(ready: &Path, running: &mut Running) -> Result<(), LiveError> {
    let start = Instant::now();
    while fs::metadata(ready).map_or(0, |file| file.len()) == 0 {
        if start.elapsed() > END || !running.runs() {
            return Err(running.failed("the proxy did not start"));
        }
        thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// Checks that objects came by the protocol of `arm`.
fn check(arm: Arm, timing: &Timing) -> Result<(), LiveError> {
    let wanted = if arm.speech() == Speech::Http3 { "h3" } else { "h2" };
    if timing.protocols.iter().all(|protocol| protocol == wanted) {
        return Ok(());
    }
    let says = format!("{}: objects came by {}", arm.name(), timing.protocols.join(", "));
    Err(LiveError::Program { program: "chromium", says })
}
