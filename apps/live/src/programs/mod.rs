//! Programs of every day in `hvq run`: what of theirs rides which channel.

pub mod traffic;

use crate::error::{LiveError, cannot};
use crate::nginx::NginxConfig;
use crate::observer::Observer;
use crate::shell::{Packets, Shell};
use crate::tools::{Tools, folder, found};
use serde::Serialize;
use std::fs;
use std::path::Path;
use std::time::Duration;
use traffic::Traffic;

/// Bytes of the file that is downloaded.
const SIZE: usize = 256 << 10;
/// No program takes longer than this.
const LIMIT: Duration = Duration::from_secs(60);
/// The name that is looked up, and its address (RFC 2606, RFC 5737).
const NAME: &str = "www.example.org";
const ADDRESS: &str = "192.0.2.7";

/// The plan of the experiment.
#[derive(Clone, Debug)]
pub struct ProgramsPlan {
    /// eMBB, as of `hvq run --embb`.
    pub embb: String,
    /// The duration of a bulk transfer, in seconds.
    pub bulk_seconds: u32,
}

/// A program with one way over the channels.
#[derive(Clone, Debug, Serialize)]
pub struct ProgramOutcome {
    /// The program that was run.
    pub program: &'static str,
    /// The way of its packets over the channels.
    pub way: &'static str,
    /// The duration of the run in seconds, with its start.
    pub seconds: Option<f64>,
    /// The program's own measurement.
    pub says: String,
    /// The traffic on each channel.
    pub traffic: Vec<Traffic>,
    /// The 99th percentile of the delay with which packets left the emulator late, in milliseconds.
    pub late_ms: f64,
    /// True if the emulator was in time.
    pub trusted: bool,
    /// The reason for which there is nothing else.
    pub failure: Option<String>,
}

/// The ways: their names and options of `hvq run`.
const WAYS: [(&str, &[&str]); 3] =
    [("direct", &["--direct"]), ("dchannel", &[]), ("tunnel, hvc", &["--scheduler", "hvc"])];

/// A program and the server that it talks with.
struct Program {
    name: &'static str,
    needs: &'static [&'static str],
    server: String,
    command: String,
}

/// Runs every program over every way, until it is to end. Programs that are not there are passed over, and their outcome
/// says so.
///
/// # Errors
/// The system fails, or there is no Nginx.
pub fn run(
    tools: &Tools,
    plan: &ProgramsPlan,
    observer: Observer<'_>,
) -> Result<Vec<ProgramOutcome>, LiveError> {
    let files = folder()?;
    fs::write(files.path().join("file"), vec![b'.'; SIZE]).map_err(cannot("write a file"))?;
    let mut outcomes = Vec::new();
    for program in programs(tools, plan, files.path())? {
        let missing = program.needs.iter().find(|name| found(Path::new(name)).is_none());
        for (way, options) in WAYS {
            if !observer.goes_on() {
                return Ok(outcomes);
            }
            (observer.say)(&format!("{}, {way}", program.name));
            let failed = |failure: String| ProgramOutcome {
                program: program.name,
                way,
                seconds: None,
                says: String::new(),
                traffic: Vec::new(),
                late_ms: 0.0,
                trusted: false,
                failure: Some(failure),
            };
            outcomes.push(match missing {
                Some(name) => failed(format!("skipped: {name} is not installed")),
                None => try_one(tools, plan, &program, (way, options))
                    .unwrap_or_else(|error| failed(error.to_string())),
            });
        }
    }
    Ok(outcomes)
}

fn programs(tools: &Tools, plan: &ProgramsPlan, files: &Path) -> Result<Vec<Program>, LiveError> {
    let site = NginxConfig {
        root: files.to_owned(),
        plain: vec!["[::]:8080 ipv6only=off".to_owned()],
        secure: Vec::new(),
        identity: None,
        more: String::new(),
    };
    let web = site.command(&tools.nginx()?, files)?;
    let dns = found(Path::new("dnsmasq")).unwrap_or_default();
    let dns = format!(
        "exec '{}' --keep-in-foreground --conf-file=/dev/null --no-resolv --no-hosts --user= --pid-file= \
         --address=/example.org/{ADDRESS}",
        dns.display()
    );
    let url = "http://far:8080/file";
    let program =
        |name, needs, server: &str, command| Program { name, needs, server: server.to_owned(), command };
    Ok(vec![
        program("curl, 256 KiB", &["curl"], &web, format!("curl -sS -o /dev/null {url}")),
        program("wget, 256 KiB", &["wget"], &web, format!("wget -q -O /dev/null {url}")),
        program(
            "iperf3",
            &["iperf3"],
            "exec iperf3 --server",
            format!("iperf3 --json --time {} --client far", plan.bulk_seconds),
        ),
        program("a name lookup", &["getent", "dnsmasq"], &dns, format!("getent ahostsv4 {NAME}")),
    ])
}

/// `command` with a line about how long it took, in nanoseconds, behind what it prints.
fn timed(command: &str) -> String {
    format!("begin=$(date +%s%N); {command}; code=$?; echo \"took $(($(date +%s%N) - begin))\"; exit $code")
}

fn try_one(
    tools: &Tools,
    plan: &ProgramsPlan,
    program: &Program,
    (way, options): (&'static str, &[&str]),
) -> Result<ProgramOutcome, LiveError> {
    let scratch = folder()?;
    let mut all = vec!["--embb".to_owned(), plan.embb.clone()];
    all.extend(options.iter().map(|option| (*option).to_owned()));
    let shell = Shell {
        hvq: tools.hvq.clone(),
        options: all,
        server: program.server.clone(),
        command: timed(&program.command),
        packets: Packets::Logged,
    };
    let running = shell.start(scratch.path())?;
    let ended = running.wait(LIMIT)?;
    if ended.report.exit != 0 {
        let says = format!("{} ended with exit code {}", program.name, ended.report.exit);
        return Err(LiveError::Program { program: "hvq run", says });
    }
    let took = ended.output.lines().find_map(|line| line.strip_prefix("took "));
    let log = fs::read_to_string(&ended.packets).map_err(cannot("read the log of packets"))?;
    Ok(ProgramOutcome {
        program: program.name,
        way,
        seconds: took.and_then(|text| text.parse::<f64>().ok()).map(|nanoseconds| nanoseconds * 1e-9),
        says: measured(&ended.output),
        traffic: traffic::of(&log),
        late_ms: ended.report.lateness_ms.p99,
        trusted: ended.report.trusted,
        failure: None,
    })
}

/// Returns the measurement in a program's output: iperf3's rate at the receiver.
fn measured(output: &str) -> String {
    let json = output.split_once("\ntook ").map_or(output, |(json, _)| json);
    let value: serde_json::Value = serde_json::from_str(json).unwrap_or_default();
    let rate = value["end"]["sum_received"]["bits_per_second"].as_f64();
    rate.map_or_else(String::new, |rate| format!("{:.1} Mbit/s", rate * 1e-6))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_iperf3_measures_is_found_in_what_it_prints() {
        let text = "{\"end\":{\"sum_received\":{\"bits_per_second\":61400000.0}}}\ntook 3100000000\n";
        assert_eq!(measured(text), "61.4 Mbit/s");
        assert_eq!(measured("took 17\n"), "");
    }

    #[test]
    fn the_time_of_a_command_is_taken_around_it() {
        let line = timed("sh -c 'sleep 0.05; exit 3'");
        let output = std::process::Command::new("sh").args(["-c", &line]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let took: u64 = text.trim().strip_prefix("took ").unwrap().parse().unwrap();
        assert!(took >= 50_000_000 && output.status.code() == Some(3), "{text}");
    }
}
