//! Bulk transfers: two processes for each, contenders in turn, rounds one after the other.

use crate::contender::{Account, Contender, Line, Material, Side, Task};
use crate::meter::Usage;
use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

/// Bytes of a GiB.
const GIB: f64 = (1u64 << 30) as f64;
/// A transfer that is slower than this is given up, in bytes per second.
const SLOWEST: u64 = 4_000_000;

/// What is transferred how often.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Plan {
    /// With what.
    pub contenders: Vec<Contender>,
    /// Sizes of full datagrams in bytes.
    pub datagrams: Vec<u16>,
    /// Bytes of a transfer.
    pub bytes: u64,
    /// Transfers of each.
    pub rounds: usize,
}

/// One transfer.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Sample {
    /// With what.
    pub contender: Contender,
    /// The round, from 0.
    pub round: usize,
    /// The size of full datagrams in bytes.
    pub datagram: u16,
    /// Bytes transferred.
    pub bytes: u64,
    /// What the server measured.
    pub sender: Account,
    /// What the client measured.
    pub receiver: Account,
}

impl Sample {
    /// Throughput as the receiver saw it, in Mbit/s.
    pub fn mbit(&self) -> f64 {
        self.bytes as f64 * 8e-6 / self.receiver.usage.elapsed
    }

    /// CPU seconds of both processes for a GiB.
    pub fn cpu(&self) -> f64 {
        self.cpu_of(&self.sender.usage) + self.cpu_of(&self.receiver.usage)
    }

    /// CPU seconds of one process for a GiB.
    pub fn cpu_of(&self, usage: &Usage) -> f64 {
        usage.cpu() / (self.bytes as f64 / GIB)
    }

    /// Datagrams that the server sent with each system call.
    pub fn datagrams_per_call(&self) -> f64 {
        self.sender.datagrams_sent as f64 / (self.sender.send_calls.max(1)) as f64
    }
}

/// Makes all transfers of `plan`, and tells `progress` of each.
pub async fn measure(plan: &Plan, mut progress: impl FnMut(&Sample)) -> Result<Vec<Sample>> {
    let folder = tempfile::tempdir()?;
    let material = Material::create(folder.path())?;
    let mut samples = Vec::new();
    for &datagram in &plan.datagrams {
        for round in 0..plan.rounds {
            for &contender in &plan.contenders {
                let bytes = plan.bytes;
                let task =
                    Task { contender, side: Side::Server, bytes, datagram, material: material.clone() };
                let patience = Duration::from_secs(20 + bytes / SLOWEST);
                let (sender, receiver) = timeout(patience, transfer(task))
                    .await
                    .unwrap_or_else(|_| bail!("not done after {patience:?}"))
                    .with_context(|| format!("{}, {datagram}-byte datagrams", contender.label()))?;
                let sample = Sample { contender, round, datagram, bytes, sender, receiver };
                progress(&sample);
                samples.push(sample);
            }
        }
    }
    Ok(samples)
}

/// One transfer between two new processes: what the server and the client measured.
async fn transfer(server: Task) -> Result<(Account, Account)> {
    let mut worker = Worker::start(&server)?;
    let Line::Listening(addresses) = worker.line().await.context("the server failed")? else {
        bail!("the server did not say where it listens");
    };
    let client = Task { side: Side::Client(addresses), ..server };
    let receiver = Worker::start(&client)?.finish().await.context("the client failed")?;
    let sender = worker.finish().await.context("the server failed")?;
    Ok((sender, receiver))
}

/// A process of the benchmark. It is killed when this is dropped.
struct Worker {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Worker {
    fn start(task: &Task) -> Result<Self> {
        let program = std::env::current_exe().context("cannot find this program")?;
        let mut child = Command::new(program)
            .arg(crate::WORK)
            .arg(serde_json::to_string(task)?)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let output = child.stdout.take().context("the output is piped")?;
        Ok(Self { child, lines: BufReader::new(output).lines() })
    }

    async fn line(&mut self) -> Result<Line> {
        let line = self.lines.next_line().await?.context("it ended early; its message is above")?;
        Ok(serde_json::from_str(&line)?)
    }

    async fn finish(mut self) -> Result<Account> {
        let Line::Done(account) = self.line().await? else { bail!("it said something else than a result") };
        let status = self.child.wait().await?;
        ensure!(status.success(), "it ended with {status}");
        Ok(account)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_for_a_gibibyte_and_of_both_processes() {
        let usage = Usage { elapsed: 2.0, user: 1.0, system: 0.5 };
        let account = Account { usage, datagrams_sent: 100, send_calls: 10, packets_lost: 0 };
        let sample = Sample {
            contender: Contender::Hvq,
            round: 0,
            datagram: 1200,
            bytes: 1 << 29,
            sender: account,
            receiver: account,
        };
        assert_eq!(sample.cpu(), 6.0);
        assert!((sample.mbit() - 2147.48).abs() < 0.01);
        assert_eq!(sample.datagrams_per_call(), 10.0);
    }
}
