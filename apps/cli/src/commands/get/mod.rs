//! `hvq get`: URLs over HTTP/3, over one or several paths.

mod connect;
mod fetch;
mod others;
mod sink;
mod statistics;
pub(crate) mod target;
#[cfg(test)]
mod tests;

use crate::arguments::Format;
use crate::duration;
use crate::failure::{Exit, Failure};
use crate::output::{self, Console};
use crate::qlog::Logs;
use crate::tls::{ClientIdentityArguments, Trust};
use crate::transport::{TransportArguments, check_names};
use bytes::Bytes;
use clap::Args;
use connect::Session;
use hvq::{PathOptions, Verify};
use statistics::Statistics;
use std::path::PathBuf;
use std::time::Duration;
use target::Target;

/// Arguments of `hvq get`.
#[derive(Debug, Args)]
pub(crate) struct GetArguments {
    /// The URL to fetch: https://HOST[:PORT]/PATH, or HOST[:PORT]/PATH
    #[arg(required = true, value_name = "URL")]
    urls: Vec<String>,
    #[command(flatten)]
    request: RequestArguments,
    #[command(flatten)]
    sink: SinkArguments,
    #[command(flatten)]
    trust: TrustArguments,
    #[command(flatten)]
    resumption: ResumptionArguments,
    #[command(flatten)]
    network: NetworkArguments,
    #[command(flatten)]
    format: Format,
}

/// The request.
#[derive(Debug, Args)]
struct RequestArguments {
    /// A header of the request; may be repeated
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", value_parser = fetch::header)]
    headers: Vec<fetch::Header>,
    /// The method (GET, or POST with --data)
    #[arg(short = 'X', long = "request", value_name = "METHOD", value_parser = fetch::method)]
    method: Option<http::Method>,
    /// The body of the request; @FILE reads it from a file
    #[arg(short, long, value_name = "TEXT|@FILE")]
    data: Option<String>,
    /// The urgency of the response (RFC 9218), such as "u=1, i"
    #[arg(long, value_name = "PRIORITY", value_parser = hvq_h3::priority::typed)]
    priority: Option<http::HeaderValue>,
    /// Fail with exit code 22 if the server answers with an error status
    #[arg(short, long)]
    fail: bool,
}

/// The destination of bodies.
#[derive(Debug, Args)]
struct SinkArguments {
    /// Write to this file; one for each URL (by default standard output; with --json nowhere)
    #[arg(short, long, value_name = "FILE", conflicts_with = "remote_name")]
    output: Vec<PathBuf>,
    /// Write to a file of the name at the end of the URL
    #[arg(short = 'O', long)]
    remote_name: bool,
}

/// The certificates to trust.
#[derive(Debug, Args)]
pub(crate) struct TrustArguments {
    /// Accept any certificate: whoever is on the way can read and change everything
    #[arg(short = 'k', long, conflicts_with = "cacert")]
    insecure: bool,
    /// Accept certificates that go back to one in this file (PEM), instead of the system's
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,
    #[command(flatten)]
    own: ClientIdentityArguments,
}

impl TrustArguments {
    /// Returns the certificates that are accepted, and the client's own.
    pub(crate) fn trust(&self) -> Trust {
        Trust::new(self.verify(), self.own.identity())
    }

    /// Returns true if the client has a certificate of its own.
    pub(crate) fn has_identity(&self) -> bool {
        self.own.identity().is_some()
    }

    /// Returns the certificates that are accepted.
    pub(crate) fn verify(&self) -> Verify {
        match (&self.cacert, self.insecure) {
            (Some(file), _) => Verify::CaFile(file.clone()),
            (None, true) => Verify::Insecure,
            (None, false) => Verify::SystemRoots,
        }
    }
}

/// The session that is kept for the next connection.
#[derive(Debug, Args)]
struct ResumptionArguments {
    /// Keep session tickets in this file, and resume with those of earlier runs
    #[arg(long, value_name = "FILE")]
    session: Option<PathBuf>,
    /// Send the request before the handshake is complete (0-RTT) if a ticket permits it; whoever is on the way can have
    /// such a request delivered again, so that only GET and HEAD without a body are sent so
    #[arg(long, requires = "session")]
    early_data: bool,
}

/// The paths to the server, and the time limits.
#[derive(Debug, Args)]
struct NetworkArguments {
    /// A path; may be repeated. The first carries the handshake, or with `hvc` the one that is sooner done, if `delay` of
    /// each is given
    #[arg(long = "path", value_name = "NAME=LOCAL[>REMOTE][,rate=…,delay=…,congestion=…,dscp=…]")]
    paths: Vec<PathOptions>,
    /// Give up when everything has taken so long (exit code 28)
    #[arg(short, long, value_name = "TIME", value_parser = duration::parse)]
    max_time: Option<Duration>,
    /// Give up when a handshake has taken so long (exit code 3)
    #[arg(long, value_name = "TIME", value_parser = duration::parse, default_value = "10s")]
    connect_timeout: Duration,
    /// Move the first path to another port of its address after this time, as if the network changed
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    migrate_after: Option<Duration>,
    #[command(flatten)]
    transport: TransportArguments,
}

/// Fetches all URLs, one after the other.
pub(crate) async fn run(arguments: Box<GetArguments>, console: Console) -> Result<(), Failure> {
    check_names(&arguments.network.paths)?;
    let logs = arguments.network.transport.logs()?;
    let all = fetch_all(&arguments, &logs, console);
    let result = match arguments.network.max_time {
        None => all.await,
        Some(limit) => tokio::time::timeout(limit, all).await.unwrap_or_else(|_| {
            Err(Failure::new(Exit::Timeout, format!("not done after {limit:?} (--max-time)")))
        }),
    };
    logs.finish(console);
    result
}

async fn fetch_all(arguments: &GetArguments, logs: &Logs, console: Console) -> Result<(), Failure> {
    let targets = arguments.urls.iter().map(|url| Target::parse(url)).collect::<Result<Vec<_>, _>>()?;
    if arguments.sink.output.len() > targets.len() {
        return Err(Failure::new(Exit::Usage, "there are more --output than URLs"));
    }
    let body = fetch::body(arguments).await?;
    let mut session: Option<Session> = None;
    let mut result = Ok(());
    for (index, target) in targets.iter().enumerate() {
        let next = (index, target, body.clone());
        if let Err(failure) = fetch_next(next, &mut session, arguments, (logs, console)).await {
            // One URL that fails does not keep the next from being fetched.
            result = Err(if index + 1 == targets.len() {
                failure
            } else {
                failure.report();
                Failure::new(failure.exit(), "not every URL was fetched")
            });
        }
    }
    if let Some(session) = session {
        session.close(console).await;
    }
    result
}

/// Fetches one URL, the `index`th, over `session` if that leads there and is not lost, else over a new one.
async fn fetch_next(
    (index, target, body): (usize, &Target, Option<Bytes>),
    session: &mut Option<Session>,
    arguments: &GetArguments,
    (logs, console): (&Logs, Console),
) -> Result<(), Failure> {
    let is_of_use = |open: &Session| open.serves(target) && open.connection.close_reason().is_none();
    let open = match session.take() {
        Some(open) if is_of_use(&open) => open,
        other => {
            if let Some(other) = other {
                other.close(console).await;
            }
            Session::open(target, arguments, logs, console).await?
        }
    };
    let open = session.insert(open);
    let sink = sink::open(arguments, target, index)?;
    let fetched = fetch::fetch(open, (target, body), arguments, sink, console).await?;
    report(open, target, &fetched, arguments, console)?;
    fetched.judge(arguments.request.fail, &target.url)
}

fn report(
    session: &Session,
    target: &Target,
    fetched: &fetch::Fetched,
    arguments: &GetArguments,
    console: Console,
) -> Result<(), Failure> {
    let statistics = Statistics::new(session, target, fetched, arguments.network.transport.scheduler);
    console.detail(|| statistics.text());
    if session.connection.is_resumed() {
        console.detail(|| {
            let accepted = session.connection.early_data_accepted() == Some(true);
            format!("* the session was resumed, 0-RTT {}", if accepted { "accepted" } else { "not used" })
        });
    }
    if arguments.format.json {
        output::print(&statistics.json())?;
    }
    Ok(())
}
