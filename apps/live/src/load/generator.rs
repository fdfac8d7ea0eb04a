//! h2load, and what it says.

use super::Size;
use super::server::placed;
use crate::error::{LiveError, cannot};
use hvq_emulation::samples::quantile;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// It ends after so many seconds in any case.
const LIMIT: &str = "300";

/// The command that lets it end with `timeout`, which is its parent.
const ENDS: [&str; 3] = ["setpriv", "--pdeathsig", "KILL"];

/// h2load.
pub(super) struct Generator {
    pub(super) h2load: PathBuf,
    /// The folder of its log.
    pub(super) folder: PathBuf,
}

/// The measurements of h2load.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Asked {
    pub(super) succeeded: u64,
    pub(super) seconds: f64,
    pub(super) latency_ms: [f64; 2],
}

impl Generator {
    /// Asks the server at `port` so often for the file of this size.
    pub(super) fn ask(&self, port: u16, size: Size, requests: u32) -> Result<Asked, LiveError> {
        let log = self.folder.join("h2load.log");
        // It appends to what is there.
        let _gone = fs::remove_file(&log);
        let words = placed(1);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).args(["timeout", LIMIT]).args(ENDS).arg(&self.h2load).arg("--npn-list=h3");
        command.args(["-c", &size.connections.min(requests).to_string(), "-m", &size.streams.to_string()]);
        command.args(["-n", &requests.to_string()]).arg(format!("--log-file={}", log.display()));
        command.arg(format!("https://127.0.0.1:{port}/{}", size.name)).stdin(Stdio::null());
        let output = command.output().map_err(cannot("start h2load"))?;
        let said = String::from_utf8_lossy(&output.stdout);
        let log = fs::read_to_string(&log).unwrap_or_default();
        read(&said, &log).ok_or_else(|| {
            let error = String::from_utf8_lossy(&output.stderr);
            let says = error.lines().chain(said.lines()).last().unwrap_or_default().to_owned();
            LiveError::Program { program: "h2load", says }
        })
    }
}

/// Reads the output and the log of h2load: for each request a line with its start, its status and its time in
/// microseconds.
fn read(said: &str, log: &str) -> Option<Asked> {
    let finished = said.lines().find_map(|line| line.strip_prefix("finished in "))?;
    let requests = said.lines().find(|line| line.starts_with("requests: "))?;
    let succeeded = requests.split(", ").find_map(|part| part.strip_suffix(" succeeded"))?;
    let mut times: Vec<f64> = log.lines().filter_map(|line| line.split('\t').nth(2)?.parse().ok()).collect();
    times.sort_by(f64::total_cmp);
    let at = |share| quantile(&times, share).unwrap_or_default() * 1e-3;
    Some(Asked {
        succeeded: succeeded.parse().ok()?,
        seconds: seconds(finished.split(',').next()?)?,
        latency_ms: [at(0.5), at(0.99)],
    })
}

/// A time as h2load writes it: `1.25s`, `830.12ms`, `95us`.
fn seconds(text: &str) -> Option<f64> {
    let units = [("us", 1e-6), ("ms", 1e-3), ("s", 1.0)];
    units.iter().find_map(|(unit, factor)| Some(text.strip_suffix(unit)?.parse::<f64>().ok()? * factor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_h2load_prints_and_logs_is_read() {
        let said = "starting benchmark...\n\nfinished in 830.50ms, 24081.88 req/s, 24.9MB/s\n\
                    requests: 20000 total, 20000 started, 20000 done, 19999 succeeded, 1 failed, 1 errored, 0 timeout\n";
        let log = "1700000000000000\t200\t1500\n1700000000000100\t200\t2500\n1700000000000200\t-1\t90000\n";
        let asked = read(said, log).unwrap();
        assert_eq!(asked, Asked { succeeded: 19999, seconds: 0.8305, latency_ms: [2.5, 90.0] });
        assert_eq!(read("connect failed", ""), None);
    }

    #[test]
    fn times_have_the_units_of_h2load() {
        assert_eq!((seconds("1.5s"), seconds("20ms"), seconds("7m")), (Some(1.5), Some(0.02), None));
    }
}
