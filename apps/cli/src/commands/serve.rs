//! `hvq serve`: files, or objects of pages, over HTTP/3.

use crate::arguments::Format;
use crate::descriptors;
use crate::failure::{Exit, Failure, OrFail};
use crate::output::{self, Console};
use crate::signals::Signals;
use crate::tls::{self, Publication, SelfSigned};
use clap::Args;
use hvq::admission::RetryPolicy;
use hvq::config::Migration;
use hvq::{ChannelOptions, EarlyData, Identity, ServerConfig};
use hvq_live::objects::Pages;
use hvq_program::announced::OriginFrame;
use hvq_program::arguments::TransportArguments;
use hvq_program::content::Files;
use hvq_program::listen::{self, SocketFacts};
use hvq_program::server::Service;
use serde_json::json;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// The time that the last connections may take to say goodbye.
const GOODBYE: Duration = Duration::from_secs(3);

/// Arguments of `hvq serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// The address to listen on; may be repeated (by default [::]:4433, or the addresses of the channels)
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Vec<SocketAddr>,
    /// A listening address that belongs to a channel, and what is known of it; may be repeated
    #[arg(long, value_name = "NAME=ADDRESS[:PORT][,rate=…,delay=…,dscp=…]")]
    channel: Vec<ChannelOptions>,
    /// The address to which clients shall move after the handshake; once for each IP version
    #[arg(long, value_name = "ADDRESS:PORT")]
    preferred_address: Vec<SocketAddr>,
    /// The permission for clients to move to other addresses: allow or refuse; another port is always followed
    #[arg(long, value_name = "WHETHER", default_value = "allow", value_parser = migration)]
    migration: Migration,
    #[command(flatten)]
    identity: IdentityArguments,
    #[command(flatten)]
    content: ContentArguments,
    #[command(flatten)]
    transport: TransportArguments,
    /// Answer requests that come before the handshake is complete (0-RTT), once with each ticket
    #[arg(long)]
    early_data: bool,
    /// The cases in which clients have to prove their address first: always, busy or never
    #[arg(long, value_name = "WHEN", default_value = "busy", value_parser = retry)]
    retry: RetryPolicy,
    /// The ORIGIN frame (RFC 9412), which tells clients that one connection is for all names of the certificate: send or omit
    #[arg(long, value_name = "WHETHER", default_value = "send", value_parser = origin_frame)]
    origin_frame: OriginFrame,
    /// Stop after so many requests
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    max_requests: Option<u64>,
    #[command(flatten)]
    format: Format,
}

impl ServeArguments {
    /// Only GET and HEAD are answered at all, which do no harm when somebody repeats them (RFC 8470).
    fn early_data(&self) -> EarlyData {
        if self.early_data { EarlyData::On } else { EarlyData::Off }
    }
}

/// Reads when clients have to prove their address.
fn retry(text: &str) -> Result<RetryPolicy, String> {
    match text {
        "always" => Ok(RetryPolicy::Always),
        "busy" => Ok(RetryPolicy::default()),
        "never" => Ok(RetryPolicy::Never),
        _ => Err("choose from always, busy, never".to_owned()),
    }
}

/// Reads whether clients may move.
fn migration(text: &str) -> Result<Migration, String> {
    match text {
        "allow" => Ok(Migration::Allowed),
        "refuse" => Ok(Migration::Refused),
        _ => Err("choose from allow, refuse".to_owned()),
    }
}

/// Reads whether the ORIGIN frame is sent.
fn origin_frame(text: &str) -> Result<OriginFrame, String> {
    match text {
        "send" => Ok(OriginFrame::Sent),
        "omit" => Ok(OriginFrame::Omitted),
        _ => Err("choose from send, omit".to_owned()),
    }
}

/// Reads a factor on what a page recorded.
fn factor(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| (0.0..=1000.0).contains(number));
    number.ok_or_else(|| format!("{text:?} is no factor from 0 to 1000"))
}

/// The identity of the server.
#[derive(Debug, Args)]
pub(crate) struct IdentityArguments {
    /// The certificate chain (PEM)
    #[arg(long, value_name = "FILE", requires = "key", required_unless_present = "self_signed")]
    cert: Option<PathBuf>,
    /// The private key (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// Make a certificate for this host name or address; may be repeated
    #[arg(long, value_name = "NAME", conflicts_with_all = ["cert", "key"])]
    self_signed: Vec<String>,
    /// Write the certificate that was made to this file, for --cacert
    #[arg(long, value_name = "FILE", requires = "self_signed")]
    write_cert: Option<PathBuf>,
}

/// The content that the server offers.
#[derive(Debug, Args)]
struct ContentArguments {
    /// The folder whose files are served (by default the current one)
    #[arg(long, value_name = "FOLDER", conflicts_with = "page")]
    root: Option<PathBuf>,
    /// Serve the objects of this page description, a file or a page compiled in, as /PAGE/NUMBER; may be repeated
    #[arg(long, value_name = "FILE|NAME|all")]
    page: Vec<String>,
    /// The factor on the recorded waits of page objects
    #[arg(long, value_name = "FACTOR", default_value_t = 0.1, requires = "page", value_parser = factor)]
    wait_scale: f64,
    /// The factor on the recorded sizes of page objects
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, requires = "page", value_parser = factor)]
    size_scale: f64,
}

/// Serves until it is told to stop.
pub(crate) async fn run(arguments: Box<ServeArguments>, console: Console) -> Result<(), Failure> {
    let site = site(&arguments.content)?;
    let (identity, publication) = identity(&arguments.identity)?;
    let tls = tls::server(identity, &arguments.transport.secrecy(), arguments.early_data())?;
    let logs = arguments.transport.logs()?;
    let mut signals = Signals::new()?;
    descriptors::raise_limit();
    let config = |facts: SocketFacts| {
        let transport = logs.watch(
            arguments
                .transport
                .config()
                .set_channels(facts.hints)
                .set_codepoints(facts.codepoints)
                .set_migration(arguments.migration)
                .set_preferred_addresses(listen::preferred(&arguments.preferred_address))
                .clone(),
        );
        ServerConfig::new(tls.clone(), Arc::new(transport)).set_retry(arguments.retry).clone()
    };
    let endpoint = listen::bind(&arguments.listen, &arguments.channel, config)?;
    publication.publish()?;
    announce(&arguments, &endpoint, &site, console)?;
    let names = match arguments.origin_frame {
        OriginFrame::Sent => tls.names().clone(),
        OriginFrame::Omitted => Arc::default(),
    };
    let service = match site {
        Site::Files(files) => Service::announcing(files, arguments.max_requests, &names),
        Site::Pages(pages) => Service::announcing(pages, arguments.max_requests, &names),
    };
    let running = service.clone();
    let accepting = endpoint.clone();
    let mut server = tokio::spawn(async move { running.run(&accepting, |_| {}).await });
    tokio::select! {
        result = &mut server => result?,
        _ = signals.next() => {
            console.say("stopping: requests under way are finished (a second signal stops at once)");
            service.stop();
            tokio::select! {
                result = &mut server => result?,
                _ = signals.next() => {}
            }
        }
    }
    endpoint.close(hvq_h3::Code::H3_NO_ERROR.value(), b"");
    // Clients that do not answer keep nobody waiting.
    let _late = timeout(GOODBYE, endpoint.wait_idle()).await;
    logs.finish(console);
    Ok(())
}

/// The content of a server.
enum Site {
    /// The files of a folder.
    Files(Files),
    /// The objects of page descriptions, made up to size.
    Pages(Pages),
}

fn site(content: &ContentArguments) -> Result<Site, Failure> {
    if content.page.is_empty() {
        let root = content.root.clone().unwrap_or_else(|| PathBuf::from("."));
        let files =
            Files::new(&root, Files::FRESH).or_fail(Exit::Usage, || format!("--root {}", root.display()))?;
        return Ok(Site::Files(files));
    }
    let mut pages = Pages::read(&content.page)?;
    pages.wait_scale = content.wait_scale;
    pages.size_scale = content.size_scale;
    Ok(Site::Pages(pages))
}

/// The certificate and key that they name, or fresh ones, and what is to be published of those.
pub(crate) fn identity(arguments: &IdentityArguments) -> Result<(Identity, Publication), Failure> {
    if let (Some(chain), Some(key)) = (&arguments.cert, &arguments.key) {
        return Ok((Identity::Files { chain: chain.clone(), key: key.clone() }, Publication::default()));
    }
    let made = SelfSigned::new(&arguments.self_signed)?;
    Ok((made.identity(), made.published_at(arguments.write_cert.as_deref())))
}

/// Says where the server listens.
fn announce(
    arguments: &ServeArguments,
    endpoint: &hvq::Endpoint,
    site: &Site,
    console: Console,
) -> Result<(), Failure> {
    let addresses = endpoint.local_addrs();
    if arguments.format.json {
        return output::print(&json!({ "listening": addresses }).to_string());
    }
    let addresses = addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    console.say(format!("listening on {addresses} (UDP), scheduler {}", arguments.transport.scheduler));
    if let Site::Pages(pages) = site {
        console.say(format!("pages: {}", pages.names().collect::<Vec<_>>().join(", ")));
    }
    Ok(())
}
