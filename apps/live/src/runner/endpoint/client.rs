//! The client's side: connections as the test case wants them, and a file for each request.

use crate::case::TestCase;
use crate::settings::Settings;
use crate::{files, hq, http3, secrets};
use anyhow::{Context, Result, bail, ensure};
use hvq::tls::MemorySessions;
use hvq::{ClientConfig, Connection, EarlyData, Endpoint};
use hvq_program::output::Console;
use hvq_program::qlog::Logs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use url::{Host, Url};

/// The time that the server may take to notice that a connection is closed.
const GOODBYE: Duration = Duration::from_secs(1);
/// The time for which a ticket is waited for, and keys that may be updated.
const PATIENCE: Duration = Duration::from_secs(20);
/// The interval at which something is looked at that is waited for.
const GLANCE: Duration = Duration::from_millis(2);

/// Downloads what the runner asks for.
///
/// # Errors
/// Not everything arrived in time.
pub(crate) async fn run(settings: &Settings, case: TestCase) -> Result<()> {
    let logs = secrets::logs(settings)?;
    let client = CaseClient::new(settings, case, &logs)?;
    let done = timeout(settings.patience(), client.work()).await;
    client.endpoint.close(0, b"");
    let _late = timeout(GOODBYE, client.endpoint.wait_idle()).await;
    logs.finish(Console::Normal);
    done.context("out of time")?
}

/// A request and where its answer goes.
#[derive(Clone, Debug)]
struct Request {
    url: Url,
    file: PathBuf,
}

/// The state that all connections of the client share.
pub(crate) struct CaseClient {
    case: TestCase,
    endpoint: Endpoint,
    config: ClientConfig,
    sessions: Arc<MemorySessions>,
    requests: Vec<Request>,
}

impl CaseClient {
    /// A client that has not connected yet.
    ///
    /// # Errors
    /// The settings make no sense.
    pub(crate) fn new(settings: &Settings, case: TestCase, logs: &Logs) -> Result<Self> {
        let sessions = Arc::new(MemorySessions::default());
        let tls = secrets::client(settings, case, sessions.clone())?;
        let transport = logs.watch(case.transport(settings));
        let requests = settings.requests.split_whitespace().map(|text| {
            let url = Url::parse(text).with_context(|| text.to_owned())?;
            let file = files::inside(&settings.downloads, url.path())?;
            anyhow::Ok(Request { url, file })
        });
        let requests = requests.collect::<Result<Vec<_>>>()?;
        ensure!(!requests.is_empty(), "there is nothing to download");
        let config = ClientConfig::new(tls, Arc::new(transport));
        Ok(Self { case, endpoint: Endpoint::client(&[])?, config, sessions, requests })
    }

    /// Downloads everything.
    ///
    /// # Errors
    /// Something did not arrive.
    pub(crate) async fn work(&self) -> Result<()> {
        match self.case {
            TestCase::Multiconnect => {
                for request in &self.requests {
                    self.download(std::slice::from_ref(request)).await?;
                }
                Ok(())
            }
            TestCase::Resumption | TestCase::ZeroRtt => self.twice().await,
            _ => self.download(&self.requests).await,
        }
    }

    /// The first file over one connection, and all others over another that resumes its session.
    async fn twice(&self) -> Result<()> {
        let (first, rest) = self.requests.split_first().context("there is nothing to download")?;
        let connection = self.connect(&first.url).await?;
        self.fetch(&connection, std::slice::from_ref(first)).await?;
        let ticket = async {
            while self.sessions.is_empty() {
                sleep(GLANCE).await;
            }
        };
        timeout(PATIENCE, ticket).await.context("the server sends no session ticket")?;
        connection.close(0, b"");
        let next = rest.first().context("there is nothing to download a second time")?;
        let connection = self.connect(&next.url).await?;
        let is_early = connection.is_early_data();
        self.fetch(&connection, rest).await?;
        ensure!(connection.is_resumed(), "the session was not resumed");
        if self.config.tls().early_data() == EarlyData::On {
            ensure!(is_early, "the ticket permits no 0-RTT");
        }
        connection.close(0, b"");
        Ok(())
    }

    async fn download(&self, requests: &[Request]) -> Result<()> {
        let first = requests.first().context("there is nothing to download")?;
        let connection = self.connect(&first.url).await?;
        if self.case == TestCase::KeyUpdate {
            tokio::spawn(update_keys(connection.clone()));
        }
        self.fetch(&connection, requests).await?;
        connection.close(0, b"");
        Ok(())
    }

    /// A connection to the server of `url`, trying its addresses in turn.
    async fn connect(&self, url: &Url) -> Result<Connection> {
        let name = url.host().context("a URL without a host")?.to_string();
        let mut last = None;
        let addresses = addresses(url).await?;
        let attempts = addresses.len() * self.case.attempts();
        for address in addresses.into_iter().cycle().take(attempts) {
            let connecting = self.endpoint.connect(self.config.clone(), address, &name)?;
            let connecting = match connecting.into_0rtt() {
                Ok((connection, _accepted)) => return Ok(connection),
                Err(connecting) => connecting,
            };
            match connecting.await {
                Ok(connection) => return Ok(connection),
                Err(error) => last = Some(error),
            }
        }
        match last {
            Some(error) => Err(error).with_context(|| format!("cannot connect to {url}")),
            None => bail!("{name} has no address"),
        }
    }

    /// Downloads all of `requests` at a time.
    async fn fetch(&self, connection: &Connection, requests: &[Request]) -> Result<()> {
        let mut tasks = JoinSet::new();
        let http3 = if self.case == TestCase::Http3 { Some(http3::start(connection).await?) } else { None };
        for request in requests.iter().cloned() {
            let connection = connection.clone();
            let sender = http3.as_ref().map(|(sender, _)| sender.clone());
            tasks.spawn(async move {
                match sender {
                    Some(sender) => http3::get(sender, request.url.as_str(), &request.file).await,
                    None => hq::get(&connection, request.url.path(), &request.file).await,
                }
            });
        }
        while let Some(done) = tasks.join_next().await {
            done??;
        }
        if let Some((_, driver)) = http3 {
            driver.abort();
        }
        Ok(())
    }
}

/// The addresses of the server of `url`, IPv6 ones last: the runner's server need not listen there.
async fn addresses(url: &Url) -> Result<Vec<SocketAddr>> {
    let port = url.port_or_known_default().context("a URL without a port")?;
    Ok(match url.host().context("a URL without a host")? {
        Host::Ipv4(address) => vec![SocketAddr::from((address, port))],
        Host::Ipv6(address) => vec![SocketAddr::from((address, port))],
        Host::Domain(name) => {
            let found = tokio::net::lookup_host((name, port)).await.with_context(|| name.to_owned())?;
            let mut found: Vec<_> = found.collect();
            found.sort_by_key(SocketAddr::is_ipv6);
            found.dedup();
            found
        }
    })
}

/// Updates the keys as soon as that is permitted (RFC 9001 §6.1).
async fn update_keys(connection: Connection) {
    let updated = async {
        while connection.update_keys().is_err() && connection.close_reason().is_none() {
            sleep(GLANCE).await;
        }
    };
    if timeout(PATIENCE, updated).await.is_err() {
        eprintln!("hvq-endpoint: the keys could not be updated");
    }
}
