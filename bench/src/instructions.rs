//! Instructions of the protocol for each datagram, counted by callgrind: the same on every run and on a busy machine.
//!
//! Each pair runs twice with transfers of different lengths; the difference is what the longer one cost more, so that the
//! handshake, slow start and the program's start do not count.

use crate::contender::{Contender, Material};
use crate::pipe;
use anyhow::{Context, Result, ensure};
use serde::Serialize;
use std::collections::HashMap;
use std::path::Path;
use std::process::{Command, Stdio};

/// The first argument of the processes that are counted.
pub const WORK: &str = "count";
/// Bytes of the two transfers.
const TRANSFERS: [u64; 2] = [16 << 20, 48 << 20];
/// Functions whose names hold one of these belong to packet protection or copy bytes; every stack has to do both.
const PROTECTION_OR_COPY: [&str; 8] =
    ["aes", "gcm", "ghash", "aead", "chacha", "memcpy", "memmove", "memset"];

/// Instructions for a datagram, at both ends together.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Count {
    /// Who.
    pub contender: Contender,
    /// All but packet protection and the copying of bytes.
    pub protocol: f64,
    /// All.
    pub all: f64,
    /// Datagrams of the difference that carried data.
    pub datagrams: u64,
    /// The functions that take most of `protocol`, with their own instructions for a datagram.
    pub largest: Vec<(String, f64)>,
}

/// Runs one transfer and prints the number of datagrams: what callgrind watches.
pub fn work(contender: Contender, material: &Material, datagram: u16, bytes: u64) -> Result<()> {
    let pair = pipe::pair(contender, material, datagram)?;
    let mut pair = pair.context("the library does not come without its sockets")?;
    pair.handshake()?;
    println!("{}", pair.transfer(bytes)?);
    Ok(())
}

/// Counts the instructions of `contender`; `None` if it does not come without its sockets.
pub fn count(
    contender: Contender,
    material: &Material,
    datagram: u16,
    folder: &Path,
) -> Result<Option<Count>> {
    if pipe::pair(contender, material, datagram)?.is_none() {
        return Ok(None);
    }
    let mut runs = Vec::new();
    for bytes in TRANSFERS {
        runs.push(run(contender, material, datagram, bytes, folder)?);
    }
    let [short, long] = runs.as_slice() else { unreachable!("there are two transfers") };
    let datagrams = long.datagrams.saturating_sub(short.datagrams).max(1);
    let each = |more: u64, less: u64| (more as f64 - less as f64) / datagrams as f64;
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
    Ok(Some(Count { contender, protocol, all, datagrams, largest: own }))
}

fn is_protection_or_copy(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    PROTECTION_OR_COPY.iter().any(|part| name.contains(part))
}

/// What callgrind saw of one process.
struct Run {
    datagrams: u64,
    functions: HashMap<String, u64>,
}

fn run(contender: Contender, material: &Material, datagram: u16, bytes: u64, folder: &Path) -> Result<Run> {
    let file = folder.join("callgrind.out");
    let task = serde_json::to_string(&(contender, material, datagram, bytes))?;
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
    let datagrams = text.trim().parse().context("the process did not say how many datagrams it sent")?;
    let functions = own_costs(&std::fs::read_to_string(&file)?);
    ensure!(!functions.is_empty(), "callgrind counted nothing");
    Ok(Run { datagrams, functions })
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
