//! Instructions of the protocol for a datagram, a request and a handshake, counted by callgrind: the same on every run and
//! on a busy machine.
//!
//! Each pair runs twice and does unlike amounts of work; the difference is what the longer run cost more, so that slow start
//! and the program's start do not count.

use crate::contender::{Contender, Material};
use crate::pipe;
use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::path::Path;
use std::process::{Command, Stdio};

/// The first argument of the processes that are counted.
pub const WORK: &str = "count";
/// Functions whose names hold one of these belong to packet protection or copy bytes; every stack has to do both.
const PROTECTION_OR_COPY: [&str; 8] =
    ["aes", "gcm", "ghash", "aead", "chacha", "memcpy", "memmove", "memset"];

/// The workload of a pair while it is watched.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Workload {
    /// One stream; counted for a datagram.
    Transfer,
    /// Small requests, 100 at a time; counted for one.
    Requests,
    /// Small requests, one after the other; counted for one.
    LoneRequests,
    /// Full handshakes; counted for one.
    Handshakes,
}

impl Workload {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Transfer, Self::Requests, Self::LoneRequests, Self::Handshakes];

    /// Bytes, requests or handshakes of the two runs.
    fn amounts(self) -> [u64; 2] {
        match self {
            Self::Transfer => [16 << 20, 48 << 20],
            Self::Requests => [5_000, 15_000],
            Self::LoneRequests => [1_000, 3_000],
            Self::Handshakes => [40, 120],
        }
    }
}

/// One run of a pair.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Task {
    /// The contender.
    pub contender: Contender,
    /// Certificate and key.
    pub material: Material,
    /// UDP payload of full datagrams in bytes.
    pub datagram: u16,
    /// Its workload.
    pub workload: Workload,
    /// The amount of it: bytes, requests or handshakes.
    pub amount: u64,
}

/// Instructions for a datagram, a request or a handshake, at both ends together.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Count {
    /// The contender.
    pub contender: Contender,
    /// Its workload.
    pub workload: Workload,
    /// All but packet protection and the copying of bytes.
    pub protocol: f64,
    /// All.
    pub all: f64,
    /// Datagrams that carried data, requests or handshakes of the difference.
    pub units: u64,
    /// The functions that take most of `protocol`, with their own instructions for each of these.
    pub largest: Vec<(String, f64)>,
}

/// Does one run and prints the number of datagrams, requests or handshakes: what callgrind watches.
pub fn work(task: &Task) -> Result<()> {
    let pair = pipe::pair(task.contender, &task.material, task.datagram)?;
    let mut pair = pair.context("the library does not come without its sockets")?;
    pair.handshake()?;
    let units = match task.workload {
        Workload::Transfer => pair.transfer(task.amount)?,
        Workload::Requests => {
            pipe::requests(pair.as_mut(), u32::try_from(task.amount)?, pipe::AT_ONCE)?;
            task.amount
        }
        Workload::LoneRequests => {
            pipe::requests(pair.as_mut(), u32::try_from(task.amount)?, 1)?;
            task.amount
        }
        Workload::Handshakes => {
            for _ in 0..task.amount {
                pair.handshake()?;
            }
            task.amount
        }
    };
    println!("{units}");
    Ok(())
}

/// Counts the instructions of a task of any amount; `None` if the contender does not come without its sockets.
pub fn count(mut task: Task, folder: &Path) -> Result<Option<Count>> {
    let Task { contender, datagram, workload, .. } = task;
    if pipe::pair(contender, &task.material, datagram)?.is_none() {
        return Ok(None);
    }
    let mut runs = Vec::new();
    for amount in workload.amounts() {
        task.amount = amount;
        runs.push(run(&task, folder)?);
    }
    let [short, long] = runs.as_slice() else { unreachable!("there are two runs") };
    let units = long.units.saturating_sub(short.units).max(1);
    let each = |more: u64, less: u64| (more as f64 - less as f64) / units as f64;
    let mut own: Vec<(String, f64)> = long
        .functions
        .iter()
        .map(|(name, more)| (name.clone(), each(*more, short.functions.get(name).copied().unwrap_or(0))))
        .collect();
    own.sort_by(|a, b| b.1.total_cmp(&a.1));
    let all = own.iter().map(|(_, cost)| cost).sum();
    own.retain(|(name, _)| !is_protection_or_copy(name));
    let protocol = own.iter().map(|(_, cost)| cost).sum();
    own.truncate(40);
    Ok(Some(Count { contender, workload, protocol, all, units, largest: own }))
}

fn is_protection_or_copy(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    PROTECTION_OR_COPY.iter().any(|part| name.contains(part))
}

/// The counts of callgrind for one process.
struct Run {
    units: u64,
    functions: HashMap<String, u64>,
}

fn run(task: &Task, folder: &Path) -> Result<Run> {
    let file = folder.join("callgrind.out");
    let contender = task.contender;
    let task = serde_json::to_string(task)?;
    let output = Command::new("valgrind")
        .args(["--quiet", "--tool=callgrind"])
        .arg(format!("--callgrind-out-file={}", file.display()))
        .arg(std::env::current_exe()?)
        .args([WORK, &task])
        .stdin(Stdio::null())
        .output()
        .context("cannot run valgrind")?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "{contender:?}: {}", String::from_utf8_lossy(&output.stderr));
    let units = text.trim().parse().context("the process did not say how much it did")?;
    let functions = own_costs(&std::fs::read_to_string(&file)?);
    ensure!(!functions.is_empty(), "callgrind counted nothing");
    Ok(Run { units, functions })
}

/// Each function's own instructions, from a file in callgrind's format (valgrind manual, "Callgrind Format Specification").
fn own_costs(profile: &str) -> HashMap<String, u64> {
    let mut names: HashMap<&str, &str> = HashMap::new();
    let mut costs: HashMap<String, u64> = HashMap::new();
    let mut current = "";
    let mut is_call = false;
    for line in profile.lines() {
        if let Some(named) = line.strip_prefix("fn=").or_else(|| line.strip_prefix("cfn=")) {
            let (id, name) = named.split_once(' ').unwrap_or((named, ""));
            if !name.is_empty() {
                names.insert(id, name);
            }
            if line.starts_with("fn=") {
                current = names.get(id).copied().unwrap_or(id);
            }
        } else if line.starts_with("calls=") {
            // The next line has the cost of what is called, which counts for itself.
            is_call = true;
        } else if line.starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first)) {
            let cost = line.split_whitespace().nth(1).and_then(|cost| cost.parse::<u64>().ok());
            if let Some(cost) = cost
                && !is_call
            {
                *costs.entry(current.to_owned()).or_default() += cost;
            }
            is_call = false;
        }
    }
    costs
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROFILE: &str = "events: Ir\nfl=(1) a.rs\nfn=(1) seal\n10 100\n+2 20\ncfn=(2) memcpy\ncalls=3 50\n+1 900\n* 5\n\nfn=(2)\n50 900\n";

    #[test]
    fn a_function_counts_without_what_it_calls() {
        let costs = own_costs(PROFILE);
        assert_eq!(costs["seal"], 125);
        assert_eq!(costs["memcpy"], 900);
    }

    #[test]
    fn packet_protection_and_copies_are_told_by_name() {
        assert!(is_protection_or_copy("ring_core_0_17_14__aes_hw_ctr32_encrypt_blocks"));
        assert!(is_protection_or_copy("__memmove_avx_unaligned_erms"));
        assert!(!is_protection_or_copy("hvq_transport::connection::Connection::poll"));
    }
}
