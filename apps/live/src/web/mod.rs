//! Pages in Chromium, from Nginx, over emulated channels in every way that there is.

pub mod arm;
pub mod browser;
pub mod markup;
mod one;
mod virtual_time;

use crate::error::{LiveError, cannot};
use crate::nginx::{self, NginxConfig};
use crate::observer::Observer;
use crate::tools::{Tools, folder, found};
use arm::Arm;
use hvq_lab::pages::Page;
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
pub use virtual_time::{Expected, expected};

/// A page that every browser loads first, in another window with other connections, so that its parts have been started.
const WARM: &str = "warm.html";

/// The plan of the loads: pages, channels, arms and repetitions.
#[derive(Clone, Debug)]
pub struct WebPlan {
    /// The pages.
    pub pages: Vec<Arc<Page>>,
    /// eMBB, as of `hvq run --embb`: traces among them begin elsewhere with each repetition.
    pub channels: Vec<String>,
    /// The ways.
    pub arms: Vec<Arm>,
    /// Loads of each page with each arm over each channel.
    pub repetitions: u32,
}

/// One load.
#[derive(Clone, Debug, Serialize)]
pub struct BrowserLoad {
    /// The page.
    pub page: String,
    /// eMBB.
    pub channel: String,
    /// The way.
    pub arm: Arm,
    /// Counted from 0.
    pub repetition: u32,
    /// The end of the load event by the browser's clock, in milliseconds since the navigation began.
    pub plt_ms: Option<f64>,
    /// The protocols by which objects came.
    pub protocols: Vec<String>,
    /// Bytes over eMBB, both ways.
    pub embb_bytes: u64,
    /// Bytes over URLLC, both ways.
    pub urllc_bytes: u64,
    /// The delay with which 1 of 100 packets was written later than the channels say, in milliseconds.
    pub late_ms: f64,
    /// The longest such delay of all packets, in milliseconds.
    pub most_late_ms: f64,
    /// True if the emulator was in time.
    pub trusted: bool,
    /// The reason for which there is nothing else.
    pub failure: Option<String>,
}

/// The programs and files that loads share.
struct Stage {
    tools: Tools,
    chromium: PathBuf,
    /// The command line of Nginx.
    server: String,
    /// The certificate and its key, and the hash of the key.
    identity: ([PathBuf; 2], String),
    sites: Vec<markup::BrowserPage>,
    hosts: Vec<Vec<String>>,
}

/// Loads every page with every arm over every channel, so often as the plan says; arms take turns with each page, and begin
/// with another one each time. It ends early when it is to.
///
/// # Errors
/// The system fails, or Nginx or Chromium is not there.
pub fn run(tools: &Tools, plan: &WebPlan, observer: Observer<'_>) -> Result<Vec<BrowserLoad>, LiveError> {
    let files = folder()?;
    let stage = Stage::new(tools, plan, files.path())?;
    let mut loads = Vec::new();
    let cells = plan.repetitions as usize * plan.channels.len() * plan.pages.len();
    for cell in 0..cells {
        // Pages change first, then channels, then repetitions.
        let page = cell % plan.pages.len();
        let channel = &plan.channels[cell / plan.pages.len() % plan.channels.len()];
        let repetition = (cell / plan.pages.len() / plan.channels.len()) as u32;
        for turn in 0..plan.arms.len() {
            let arm = plan.arms[(turn + cell) % plan.arms.len()];
            if !observer.goes_on() {
                return Ok(loads);
            }
            let load = stage.load(page, (channel, repetition), arm);
            (observer.say)(&described(&load, loads.len() + 1, cells * plan.arms.len()));
            loads.push(load);
        }
    }
    Ok(loads)
}

fn described(load: &BrowserLoad, number: usize, count: usize) -> String {
    let BrowserLoad { page, channel, arm, failure, plt_ms, .. } = load;
    let result = match (plt_ms, failure) {
        (_, Some(failure)) => failure.clone(),
        (Some(time), _) => {
            format!("{time:.0} ms{}", if load.trusted { "" } else { ", the emulator was late" })
        }
        (None, None) => String::new(),
    };
    format!("{number}/{count}: {page}, {channel}, {}: {result}", arm.name())
}

/// Returns those of `wanted` that this system can run, and the reasons for which it cannot run the others.
pub fn possible(wanted: &[Arm]) -> (Vec<Arm>, Vec<String>) {
    let controllers =
        fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    let missing = |arm: &Arm| match arm {
        Arm::Mptcp if found(Path::new("mptcpize")).is_none() => Some("mptcpize is not installed"),
        Arm::Mptcp if !Path::new("/proc/sys/net/mptcp").exists() => Some("the kernel has no MPTCP"),
        Arm::DchannelBbr if !controllers.split_whitespace().any(|name| name == "bbr") => {
            Some("the kernel has no BBR (modprobe tcp_bbr)")
        }
        _ => None,
    };
    let why = wanted.iter().filter_map(|arm| Some(format!("web, {}: {}", arm.name(), missing(arm)?)));
    (wanted.iter().copied().filter(|arm| missing(arm).is_none()).collect(), why.collect())
}

/// eMBB of repetition `repetition`: traces begin two minutes later with each.
pub fn stretch(channel: &str, repetition: u32) -> String {
    match channel.parse::<hvq_emulation::TraceName>() {
        Ok(_) => format!("{channel},offset={}s", 60 + 120 * repetition % 480),
        Err(_) => channel.to_owned(),
    }
}

impl Stage {
    fn new(tools: &Tools, plan: &WebPlan, folder: &Path) -> Result<Self, LiveError> {
        let chromium = tools.chromium()?;
        let root = folder.join("pages");
        let mut sites = Vec::new();
        for page in &plan.pages {
            let nothing =
                || LiveError::Program { program: "page", says: format!("{} has no document", page.id) };
            let site = markup::BrowserPage::new(page).ok_or_else(nothing)?;
            fs::create_dir_all(root.join(&site.id)).map_err(cannot("make a folder"))?;
            for file in &site.files {
                let target = root.join(file.path.trim_start_matches('/'));
                fs::write(target, &file.content).map_err(cannot("write a page"))?;
            }
            sites.push(site);
        }
        fs::write(root.join(WARM), "<!doctype html><title>warm</title>").map_err(cannot("write a page"))?;
        let identity = nginx::identity(folder)?;
        let site = NginxConfig {
            root,
            plain: vec!["[::]:80 ipv6only=off".to_owned()],
            secure: vec!["[::]:443 ipv6only=off".to_owned()],
            identity: Some(identity.0.clone()),
            more: served(&sites),
        };
        let server = site.command(&tools.nginx()?, folder)?;
        let hosts = plan.pages.iter().map(|page| markup::hosts(page)).collect();
        Ok(Self { tools: tools.clone(), chromium, server, identity, sites, hosts })
    }
}

/// Returns the configuration of Nginx for the pages.
fn served(sites: &[markup::BrowserPage]) -> String {
    let mut text = "types { text/html html; text/javascript js; text/css css; image/gif gif; font/woff2 woff2; }\n\
                    add_header Access-Control-Allow-Origin * always;\nadd_header Timing-Allow-Origin * always;\n"
        .to_owned();
    for (from, to) in sites.iter().flat_map(|site| &site.redirects) {
        text.push_str(&format!("location = {from} {{ return 302 $scheme:{to}; }}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use hvq_lab::pages::builtin;

    #[test]
    fn traces_begin_elsewhere_each_time_and_fixed_channels_are_the_same() {
        assert_eq!(stretch("LB-D", 0), "LB-D,offset=60s");
        assert_eq!(stretch("LB-D", 2), "LB-D,offset=300s");
        assert_eq!(stretch("rtt=40ms,rate=60mbit", 2), "rtt=40ms,rate=60mbit");
    }

    #[test]
    fn redirects_keep_the_scheme_that_they_were_asked_by() {
        let site = markup::BrowserPage::new(&builtin::page("p05").unwrap()).unwrap();
        let text = served(&[site]);
        assert!(text.contains("location = /p05/0.redirect { return 302 $scheme://d"), "{text}");
    }
}
