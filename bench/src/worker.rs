//! Two processes for each measurement over sockets, each kept on a core of its own.

use crate::contender::{Account, Line, Side, Task};
use anyhow::{Context, Result, bail, ensure};
use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

/// The measurements of the two processes.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    /// The server.
    pub server: Account,
    /// The client.
    pub client: Account,
}

/// Runs `server` and a client for it, which is told the addresses that `reach` makes of the server's.
pub async fn run(
    server: Task,
    patience: Duration,
    reach: impl FnOnce(Vec<SocketAddr>) -> Result<Vec<SocketAddr>>,
) -> Result<Pair> {
    let name = server.contender.label();
    let both = timeout(patience, both(server, reach)).await;
    both.unwrap_or_else(|_| bail!("not done after {patience:?}")).context(name)
}

async fn both(server: Task, reach: impl FnOnce(Vec<SocketAddr>) -> Result<Vec<SocketAddr>>) -> Result<Pair> {
    let mut worker = Worker::start(&server)?;
    let Line::Listening(addresses) = worker.line().await.context("the server failed")? else {
        bail!("the server did not say where it listens");
    };
    let client = Task { side: Side::Client(reach(addresses)?), ..server };
    let client = Worker::start(&client)?;
    let (client, server) =
        tokio::try_join!(async { client.finish().await.context("the client failed") }, async {
            worker.finish().await.context("the server failed")
        },)?;
    Ok(Pair { server, client })
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
