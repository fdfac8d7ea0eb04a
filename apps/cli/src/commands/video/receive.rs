//! `hvq video receive`.

use crate::arguments::Format;
use crate::failure::{Exit, Failure, OrFail};
use crate::output::{self, Console};
use crate::signals::Signals;
use crate::tls::{self, SelfSigned};
use clap::Args;
use hvq::{ChannelOptions, EarlyData, Endpoint, ServerConfig};
use hvq_program::arguments::TransportArguments;
use hvq_program::listen::{self, SocketFacts};
use hvq_video::roq;
use hvq_video::session::receive::{
    Destination, Display, Forwarder, Output, PageServer, Receiver, Videos, Waiting,
};
use hvq_video::session::{ALPN, SILENCE};
use serde_json::json;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// Arguments of `hvq video receive`.
#[derive(Debug, Args)]
pub(crate) struct ReceiveArguments {
    /// The address to listen on; may be repeated (by default [::]:4433, or the addresses of the channels)
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Vec<SocketAddr>,
    /// A listening address that belongs to a channel, and what is known of it; may be repeated
    #[arg(long, value_name = "NAME=ADDRESS[:PORT][,rate=…,delay=…]")]
    channel: Vec<ChannelOptions>,
    #[command(flatten)]
    display: DisplayArguments,
    /// Serve a page at this address: the live picture, latencies of layers, bytes of channels, freezes (needs ffmpeg)
    #[arg(long, value_name = "ADDRESS:PORT")]
    page: Option<SocketAddr>,
    #[command(flatten)]
    outlet: OutletArguments,
    /// The time to wait for layers that make a picture better: a time, or adaptive
    #[arg(long, value_name = "TIME|adaptive", default_value = "60ms", value_parser = wait)]
    wait: Waiting,
    /// Write the certificate that is made to this file, for the sender's --cacert
    #[arg(long, value_name = "FILE")]
    write_cert: Option<PathBuf>,
    /// Stop when a video has come to its end
    #[arg(long)]
    once: bool,
    #[command(flatten)]
    transport: TransportArguments,
    #[command(flatten)]
    format: Format,
}

fn wait(text: &str) -> Result<Waiting, String> {
    match text {
        "adaptive" => Ok(Waiting::Adaptive),
        time => {
            crate::duration::parse(time).map(Waiting::Fixed).map_err(|error| format!("{error}; or adaptive"))
        }
    }
}

/// The display of pictures.
#[derive(Debug, Args)]
struct DisplayArguments {
    /// Write the video to this file, whose name says the format: .y4m, or what ffmpeg knows (.mp4, .webm, .mkv); further videos
    /// go to NAME-2 and so on
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Show the video in a window (ffplay)
    #[arg(long, conflicts_with = "record")]
    play: bool,
    /// Draw this title, the latency and the layers of each picture into a strip below it
    #[arg(long, value_name = "TITLE")]
    strip: Option<String>,
}

/// The destination of RTP packets.
#[derive(Debug, Args)]
struct OutletArguments {
    /// Take RTP over QUIC (draft-ietf-avtcore-rtp-over-quic, `hvq video send --rtp`) and send it on to a player
    #[arg(
        long,
        value_name = "udp:HOST:PORT",
        value_parser = player,
        conflicts_with_all = ["record", "play", "strip", "page"]
    )]
    rtp_out: Option<SocketAddr>,
    /// The flow that is taken
    #[arg(long, value_name = "NUMBER", default_value_t = 0, requires = "rtp_out")]
    flow: u64,
    /// Write what the player must know to this file: `ffplay -protocol_whitelist file,rtp,udp FILE`
    #[arg(long, value_name = "FILE", requires = "rtp_out")]
    sdp: Option<PathBuf>,
}

fn player(text: &str) -> Result<SocketAddr, String> {
    let address = text.strip_prefix("udp:").unwrap_or(text);
    let parsed = address.parse().ok().filter(|address: &SocketAddr| address.port() > 0);
    parsed.ok_or_else(|| format!("{text:?} is no address such as udp:127.0.0.1:5004"))
}

/// Receives videos, one after another.
pub(crate) async fn run(arguments: Box<ReceiveArguments>, console: Console) -> Result<(), Failure> {
    let display = arguments.display.display();
    display.check()?;
    let forwarder = match arguments.outlet.rtp_out {
        Some(to) => Some(Forwarder::new(to, arguments.outlet.flow).await?),
        None => None,
    };
    let mut signals = Signals::new()?;
    let endpoint = bind(&arguments, if forwarder.is_some() { roq::ALPN } else { ALPN })?;
    let (page, address) = match arguments.page {
        Some(address) => {
            PageServer::check()?;
            let (server, address) = PageServer::open(address).await?;
            (Some(server), Some(address))
        }
        None => (None, None),
    };
    if let (Some(path), Some(forwarder)) = (&arguments.outlet.sdp, &forwarder) {
        let written = std::fs::write(path, forwarder.description());
        written.or_fail(Exit::Usage, || format!("cannot write {}", path.display()))?;
    }
    announce(&arguments, &endpoint, address, console)?;
    let receiver = Receiver {
        output: match forwarder {
            Some(forwarder) => Output::Rtp(Arc::new(forwarder)),
            None => Output::Pictures { display, page },
        },
        wait: arguments.wait,
        videos: if arguments.once { Videos::First } else { Videos::All },
        format: arguments.format.results(),
        console,
    };
    receiver.run(&endpoint, &mut signals).await
}

impl DisplayArguments {
    fn display(&self) -> Display {
        let destination = match (&self.record, self.play) {
            (Some(path), _) => Destination::File(path.clone()),
            (None, true) => Destination::Window,
            (None, false) => Destination::Nowhere,
        };
        Display::new(destination, self.strip.clone())
    }
}

fn bind(arguments: &ReceiveArguments, alpn: &[u8]) -> Result<Endpoint, Failure> {
    let made = SelfSigned::new(&["localhost".to_owned()])?;
    let tls = tls::server_of(alpn, made.identity(), &arguments.transport.secrecy(), EarlyData::Off)?;
    let config = |facts: SocketFacts| {
        let transport =
            arguments.transport.config().set_channels(facts.hints).set_idle_timeout(SILENCE).clone();
        ServerConfig::new(tls.clone(), Arc::new(transport))
    };
    let endpoint = listen::bind(&arguments.listen, &arguments.channel, config)?;
    made.published_at(arguments.write_cert.as_deref()).publish()?;
    Ok(endpoint)
}

fn announce(
    arguments: &ReceiveArguments,
    endpoint: &Endpoint,
    page: Option<SocketAddr>,
    console: Console,
) -> Result<(), Failure> {
    let addresses = endpoint.local_addrs();
    if arguments.format.json {
        return output::print(&json!({ "listening": addresses, "page": page }).to_string());
    }
    let addresses = addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    console.say(format!("waiting for a video on {addresses} (UDP)"));
    if let Some(page) = page {
        console.say(format!("watch it at http://{page}/"));
    }
    Ok(())
}
