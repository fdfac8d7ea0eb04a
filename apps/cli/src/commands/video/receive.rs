//! `hvq video receive`.

mod arrivals;
mod display;
mod figures;
mod forward;
mod overlay;
mod page_server;
mod player;

use super::{ALPN, SILENCE, screen};
use crate::arguments::Format;
use crate::commands::serve::listen;
use crate::failure::{Exit, Failure, OrFail, exit_of};
use crate::output::{self, Console};
use crate::paths;
use crate::signals::Signals;
use crate::tls::{self, SelfSigned};
use crate::transport::TransportArguments;
use arrivals::Arrivals;
use clap::Args;
use display::Display;
use figures::Figures;
use forward::{Forwarder, Outlet};
use hvq::{
    ChannelOptions, Connection, ConnectionError, EarlyData, Endpoint, EndpointOptions, ServerConfig,
    TransportConfig,
};
use hvq_video::playout::{Adaptive, Gaps, Playout, Wait};
use hvq_video::roq;
use page_server::PageServer;
use player::Player;
use serde_json::json;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// Layers that wait to be looked at: a sender who floods has to wait.
const QUEUE: usize = 64;
/// Frames that wait for the decoder, which a slow machine may not keep up with.
const BACKLOG: usize = 30;
/// The interval at which a page gets new figures, and the number of frames over which they are taken.
const REFRESH: Duration = Duration::from_millis(250);
const RECENT: usize = 300;

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
    display: Display,
    /// Serve a page at this address: the live picture, latencies of layers, bytes of channels, freezes (needs ffmpeg)
    #[arg(long, value_name = "ADDRESS:PORT")]
    page: Option<SocketAddr>,
    #[command(flatten)]
    outlet: Outlet,
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

/// The waiting time of a receiver.
#[derive(Clone, Copy, Debug)]
enum Waiting {
    Fixed(Duration),
    Adaptive,
}

fn wait(text: &str) -> Result<Waiting, String> {
    match text {
        "adaptive" => Ok(Waiting::Adaptive),
        time => {
            crate::duration::parse(time).map(Waiting::Fixed).map_err(|error| format!("{error}; or adaptive"))
        }
    }
}

impl Waiting {
    fn playout(self) -> Playout {
        let wait = match self {
            Self::Fixed(time) => Wait::Fixed(time),
            Self::Adaptive => Wait::Adaptive(Adaptive::new(Adaptive::MOST)),
        };
        Playout::new(wait, Gaps::Wait)
    }
}

/// Receives videos, one after another.
pub(crate) async fn run(arguments: Box<ReceiveArguments>, console: Console) -> Result<(), Failure> {
    arguments.display.check()?;
    let forwarder = arguments.outlet.forwarder().await?.map(Arc::new);
    let mut signals = Signals::new()?;
    let endpoint = bind(&arguments, if forwarder.is_some() { roq::ALPN } else { ALPN })?;
    let server = match arguments.page {
        Some(address) => {
            screen::check_program("ffmpeg")?;
            Some(PageServer::open(address).await?)
        }
        None => None,
    };
    arguments.outlet.describe()?;
    let page = server.as_ref().map(|(_, address)| *address);
    announce((&arguments, &endpoint), page, console)?;
    let server = server.map(|(server, _)| server);
    let mut videos = 0;
    loop {
        let connection = tokio::select! {
            connection = endpoint.accept() => connection,
            _ = signals.next() => None,
        };
        let Some(connection) = connection else { return Ok(()) };
        let result = match &forwarder {
            Some(forwarder) => {
                forward(forwarder, &connection, &mut signals, (arguments.format.json, console)).await
            }
            None => {
                let display = arguments.display.of_video(videos);
                videos = videos.saturating_add(1);
                watch((&arguments, display), &connection, &mut signals, (server.as_ref(), console)).await
            }
        };
        match &result {
            Ok(_) => connection.close(0, b"the receiver stopped"),
            Err(_) => connection.close(1, b"the receiver failed"),
        }
        match result {
            Err(failure) if arguments.once => {
                let _late = timeout(Duration::from_millis(500), endpoint.wait_idle()).await;
                return Err(failure);
            }
            Err(failure) => failure.report(),
            Ok(Ended::Interrupted) => {
                let _late = timeout(Duration::from_millis(500), endpoint.wait_idle()).await;
                return Ok(());
            }
            Ok(Ended::Complete) if arguments.once => return Ok(()),
            Ok(Ended::Complete) => {}
        }
    }
}

fn bind(arguments: &ReceiveArguments, alpn: &[u8]) -> Result<Endpoint, Failure> {
    let made = SelfSigned::new(&["localhost".to_owned()])?;
    let tls = tls::server_of(alpn, made.identity(), &arguments.transport.secrecy(), EarlyData::Off)?;
    let local = listen::addresses(&arguments.listen, &arguments.channel)?;
    let server = |channels| {
        let transport = TransportConfig { channels, idle_timeout: SILENCE, ..arguments.transport.config() };
        ServerConfig::new(tls.clone(), Arc::new(transport))
    };
    let options = EndpointOptions {
        server: Some(server(Vec::new())),
        local: local.clone(),
        ..EndpointOptions::default()
    };
    let endpoint = Endpoint::new(options).or_fail(Exit::Usage, || {
        let local = local.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        format!("cannot listen on {local}")
    })?;
    made.published_at(arguments.write_cert.as_deref()).publish()?;
    let hints = listen::hints(&arguments.channel, &endpoint.local_addrs());
    if !hints.is_empty() {
        endpoint.set_server(Some(server(hints)));
    }
    Ok(endpoint)
}

fn announce(
    (arguments, endpoint): (&ReceiveArguments, &Endpoint),
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

/// The end of a video, if nothing failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ended {
    Complete,
    Interrupted,
}

/// Sends RTP on until the sender ends it.
async fn forward(
    forwarder: &Arc<Forwarder>,
    connection: &Connection,
    signals: &mut Signals,
    (json, console): (bool, Console),
) -> Result<Ended, Failure> {
    console.say(format!("RTP from {}", connection.remote_address()));
    tokio::select! {
        result = forwarder.run(connection, json, console) => result.map(|()| Ended::Complete),
        _ = signals.next() => Ok(Ended::Interrupted),
    }
}

/// Receives the video of one connection.
async fn watch(
    (arguments, display): (&ReceiveArguments, Display),
    connection: &Connection,
    signals: &mut Signals,
    (server, console): (Option<&PageServer>, Console),
) -> Result<Ended, Failure> {
    console.say(format!("a video from {}", connection.remote_address()));
    let (layers, mut arrived) = mpsc::channel(QUEUE);
    let arrivals = Arrivals { layers, malformed: Arc::default() };
    let malformed = arrivals.malformed.clone();
    let accepting = tokio::spawn(arrivals::take(connection.clone(), arrivals));
    let (pending, frames) = mpsc::channel(BACKLOG);
    let pictures = server.cloned();
    let (learnt, learning) = mpsc::unbounded_channel();
    let showing = std::thread::spawn(move || display.show(frames, pictures.as_ref(), &learnt));
    let mut player = Player::new(arguments.wait.playout(), learning);
    let mut refresh = tokio::time::interval(REFRESH);
    let ended = loop {
        let until = player.until();
        tokio::select! {
            arrival = arrived.recv() => match arrival {
                Some(arrival) => player.on_layer(arrival),
                None => break Ended::Complete,
            },
            // Pictures cannot be shown; why is known below.
            () = pending.closed() => break Ended::Complete,
            () = tokio::time::sleep(until.unwrap_or(Duration::MAX)), if until.is_some() => {}
            _ = refresh.tick(), if server.is_some() => tell(server, &player.figures, connection),
            _ = signals.next() => break Ended::Interrupted,
        }
        player.play_due(&pending);
    };
    // What is there at the end is shown, too.
    while let Some(until) = player.until() {
        tokio::time::sleep(until).await;
        player.play_due(&pending);
    }
    drop(pending);
    let shown = tokio::task::spawn_blocking(move || showing.join()).await?;
    let shown = shown.unwrap_or_else(|_| Err(Failure::new(Exit::Runtime, "the decoder failed")));
    let figures = &mut player.figures;
    figures.damaged = shown?;
    figures.malformed = malformed.load(Ordering::Relaxed);
    tell(server, figures, connection);
    report(arguments, connection, figures, console)?;
    if ended == Ended::Interrupted {
        accepting.abort();
        return Ok(ended);
    }
    match accepting.await? {
        ConnectionError::PeerApplication { code: 0, .. } => Ok(Ended::Complete),
        end => Err(Failure::new(exit_of(&end), format!("the sender is gone: {end}"))),
    }
}

/// Gives a page new figures.
fn tell(server: Option<&PageServer>, figures: &Figures, connection: &Connection) {
    if let Some(server) = server {
        server.tell(figures.latest(RECENT, &paths::figures(connection)).to_string());
    }
}

fn report(
    arguments: &ReceiveArguments,
    connection: &Connection,
    figures: &Figures,
    console: Console,
) -> Result<(), Failure> {
    let paths = paths::figures(connection);
    if arguments.format.json {
        return output::print(&figures.json(&paths).to_string());
    }
    figures.lines().iter().for_each(|line| console.say(line));
    paths.iter().for_each(|path| console.say(paths::line(path)));
    Ok(())
}
