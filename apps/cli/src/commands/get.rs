//! `hvq get`: URLs over HTTP/3, over one or several paths.

use crate::arguments::Format;
use crate::duration;
use crate::failure::{Exit, Failure, OrFail};
use crate::output::{self, Console};
use crate::qlog::Logs;
use crate::tls::{self, Resumption};
use bytes::Bytes;
use clap::Args;
use http::StatusCode;
use hvq::tls::Replay;
use hvq::{ClientConfig, EarlyData};
use hvq_program::arguments::NameArguments;
use hvq_program::arguments::PathArguments;
use hvq_program::arguments::TransportArguments;
use hvq_program::arguments::TrustArguments;
use hvq_program::client::{
    self, ErrorStatus, RequestOptions, Session, Settings, Sink, Statistics, Target, fetch,
};
use hvq_program::names::Names;
use hvq_program::sessions::FileSessions;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

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
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", value_parser = client::fetch::header)]
    headers: Vec<client::fetch::Header>,
    /// The method (GET, or POST with --data)
    #[arg(short = 'X', long = "request", value_name = "METHOD", value_parser = client::fetch::method)]
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
    #[command(flatten)]
    names: NameArguments,
    #[command(flatten)]
    paths: PathArguments,
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
    arguments.network.paths.choice()?;
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

impl GetArguments {
    /// The settings of a connection for requests with these options.
    fn settings(&self, options: &RequestOptions, logs: &Logs, names: &Names) -> Result<Settings, Failure> {
        let network = &self.network;
        let replay = if options.is_repeatable() { Replay::Accepted } else { Replay::Refused };
        // Requests that may do harm when they are repeated wait for the handshake (RFC 8470, RFC 9110 §9.2.1).
        let early_data = match self.resumption.early_data && options.is_repeatable() {
            true => EarlyData::On,
            false => EarlyData::Off,
        };
        let sessions = self.resumption.session.as_deref().map(FileSessions::open).transpose()?.map(Arc::new);
        let resumption = Resumption { sessions: sessions.clone(), early_data };
        let tls = tls::client(self.trust.trust(), &network.transport.secrecy(), &resumption)?;
        let transport = network.transport.config().set_handshake_timeout(network.connect_timeout).clone();
        Ok(Settings {
            config: ClientConfig::new(tls, Arc::new(logs.watch(transport))),
            names: names.clone(),
            paths: network.paths.choice()?,
            replay,
            migrate_after: network.migrate_after,
            sessions,
        })
    }

    /// The options of each request; a body may be in a file.
    async fn options(&self) -> Result<RequestOptions, Failure> {
        let asked = &self.request;
        let body = match asked.data.as_deref() {
            None => None,
            Some(data) => Some(match data.strip_prefix('@') {
                Some(file) => {
                    let read = tokio::fs::read(file).await;
                    read.or_fail(Exit::Usage, || format!("cannot read {file}"))?.into()
                }
                None => Bytes::copy_from_slice(data.as_bytes()),
            }),
        };
        Ok(RequestOptions {
            method: asked.method.clone(),
            headers: asked.headers.clone(),
            priority: asked.priority.clone(),
            body,
            error_status: if asked.fail { ErrorStatus::Fails } else { ErrorStatus::Accepted },
        })
    }

    /// The destination of the body of the URL number `index`.
    fn sink(&self, target: &Target, index: usize) -> Result<Sink, Failure> {
        if self.sink.remote_name {
            return Ok(Sink::Planned(target.file_name()?.into()));
        }
        Ok(match self.sink.output.get(index) {
            Some(path) if path.as_os_str() == "-" => Sink::Output(tokio::io::stdout()),
            Some(path) => Sink::Planned(path.clone()),
            None if self.format.json => Sink::Nowhere,
            None => Sink::Output(tokio::io::stdout()),
        })
    }
}

async fn fetch_all(arguments: &GetArguments, logs: &Logs, console: Console) -> Result<(), Failure> {
    let targets = arguments.urls.iter().map(|url| Target::parse(url)).collect::<Result<Vec<_>, _>>()?;
    if arguments.sink.output.len() > targets.len() {
        return Err(Failure::new(Exit::Usage, "there are more --output than URLs"));
    }
    let (options, names) = (arguments.options().await?, arguments.network.names.names()?);
    let mut session: Option<Session> = None;
    let mut result = Ok(());
    for (index, target) in targets.iter().enumerate() {
        let next = Next { arguments, options: &options, logs, names: &names, target, index };
        if let Err(failure) = next.fetch(&mut session, console).await {
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

/// The next URL to fetch.
struct Next<'a> {
    arguments: &'a GetArguments,
    options: &'a RequestOptions,
    logs: &'a Logs,
    /// The way from names to addresses, which all connections share.
    names: &'a Names,
    target: &'a Target,
    /// Its place among the URLs, counted from 0.
    index: usize,
}

impl Next<'_> {
    /// The session, if it serves the URL; it is closed if not.
    async fn serving<'a>(&self, session: &'a mut Option<Session>, console: Console) -> Option<&'a Session> {
        let serves = match &*session {
            Some(open) => open.serves(self.target, console).await,
            None => false,
        };
        if let Some(other) = session.take_if(|_| !serves) {
            other.close(console).await;
        }
        session.as_ref()
    }

    /// Fetches it over `session`, or over a new one if there is none that serves it.
    async fn fetch(&self, session: &mut Option<Session>, console: Console) -> Result<(), Failure> {
        let Self { arguments, options, target, .. } = *self;
        let mut fetched = None;
        if let Some(open) = self.serving(session, console).await {
            fetched = Some(fetch(open, target, options, arguments.sink(target, self.index)?, console).await?);
        }
        // A server may not have meant what it said (RFC 9110 §15.5.20): one of its own is asked then.
        if fetched.as_ref().is_none_or(|fetched| fetched.status == StatusCode::MISDIRECTED_REQUEST)
            && self.serving(session, console).await.is_none()
        {
            let settings = arguments.settings(options, self.logs, self.names)?;
            let open = session.insert(Session::open(target, &settings, console).await?);
            fetched = Some(fetch(open, target, options, arguments.sink(target, self.index)?, console).await?);
        }
        let (open, fetched) = session.as_ref().zip(fetched).expect("it was fetched over one");
        let statistics = Statistics::new(open, target, &fetched, arguments.network.transport.scheduler);
        statistics.tell(console);
        if arguments.format.json {
            output::print(&statistics.json())?;
        }
        fetched.judge(options, &target.url)
    }
}
