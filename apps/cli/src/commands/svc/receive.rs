//! `hvq svc receive`.

mod figures;
mod overlay;

use super::screen::Screen;
use super::{ALPN, SILENCE, time_of_day};
use crate::arguments::Format;
use crate::commands::serve::listen;
use crate::failure::{Exit, Failure, OrFail, exit_of};
use crate::output::{self, Voice};
use crate::paths;
use crate::tls::{self, SelfSigned};
use crate::transport::TransportArguments;
use clap::Args;
use figures::Figures;
use hvq::{
    ChannelOptions, Connection, ConnectionError, EarlyData, Endpoint, EndpointOptions, RecvStream,
    ServerConfig, TransportConfig,
};
use hvq_svc::clip::Clip;
use hvq_svc::layers::LAYERS;
use hvq_svc::message::{LARGEST, LayerHeader};
use hvq_svc::picture::Picture;
use hvq_svc::playout::{Adaptive, Decoded, Gaps, Playout, Wait};
use hvq_svc::y4m;
use hvq_vpx::Decoder;
use serde_json::json;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// Layers that wait to be looked at: a sender who floods has to wait.
const QUEUE: usize = 64;
/// Frames that wait for the decoder, which a slow machine may not keep up with.
const BACKLOG: usize = 30;

/// Arguments of `hvq svc receive`.
#[derive(Debug, Args)]
pub(crate) struct ReceiveArguments {
    /// Where to listen; may be repeated (by default [::]:4433, or the addresses of the channels)
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Vec<SocketAddr>,
    /// A listening address that belongs to a channel, and what is known of it; may be repeated
    #[arg(long, value_name = "NAME=ADDRESS[:PORT][,rate=…,delay=…]")]
    channel: Vec<ChannelOptions>,
    #[command(flatten)]
    display: Display,
    /// How long to wait for layers that make a picture better: a time, or adaptive
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

/// How long a receiver waits.
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
pub(crate) async fn run(arguments: Box<ReceiveArguments>, voice: Voice) -> Result<(), Failure> {
    let endpoint = bind(&arguments)?;
    announce(&arguments, &endpoint, voice)?;
    loop {
        let connection = tokio::select! {
            connection = endpoint.accept() => connection,
            interrupt = signal::ctrl_c() => {
                interrupt.or_fail(Exit::Runtime, || "cannot wait for Ctrl-C".to_owned())?;
                None
            }
        };
        let Some(connection) = connection else { return Ok(()) };
        let result = watch(&arguments, &connection, voice).await;
        connection.close(0, b"the receiver stopped");
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

fn bind(arguments: &ReceiveArguments) -> Result<Endpoint, Failure> {
    let made = SelfSigned::new(&["localhost".to_owned()])?;
    if let Some(path) = &arguments.write_cert {
        let written = std::fs::write(path, &made.certificate);
        written.or_fail(Exit::Usage, || format!("cannot write {}", path.display()))?;
    }
    let tls = tls::server_of(ALPN, made.identity(), &arguments.transport.secrecy(), EarlyData::Off)?;
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
    let hints = listen::hints(&arguments.channel, &endpoint.local_addrs());
    if !hints.is_empty() {
        endpoint.set_server(Some(server(hints)));
    }
    Ok(endpoint)
}

fn announce(arguments: &ReceiveArguments, endpoint: &Endpoint, voice: Voice) -> Result<(), Failure> {
    let addresses = endpoint.local_addrs();
    if arguments.format.json {
        return output::print(&json!({ "listening": addresses }).to_string());
    }
    let addresses = addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    voice.say(format!("waiting for a video on {addresses} (UDP)"));
    Ok(())
}

/// How a video ended, if nothing failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ended {
    Complete,
    Interrupted,
}

/// A layer with the time at which all of it was there.
type Arrived = (Duration, LayerHeader, Vec<u8>);

/// A frame to be decoded: what is known of it, and its layers.
type Pending = (Decoded, [Vec<u8>; LAYERS]);

/// Receives the video of one connection.
async fn watch(
    arguments: &ReceiveArguments,
    connection: &Connection,
    voice: Voice,
) -> Result<Ended, Failure> {
    voice.say(format!("a video from {}", connection.remote_address()));
    let (arrived, mut arrivals) = mpsc::channel(QUEUE);
    let accepting = tokio::spawn(accept(connection.clone(), arrived));
    let (pending, frames) = mpsc::channel(BACKLOG);
    let display = arguments.display.clone();
    let showing = std::thread::spawn(move || display.show(frames));
    let (mut playout, mut figures) = (arguments.wait.playout(), Figures::default());
    let mut layers: BTreeMap<(u32, usize), Vec<u8>> = BTreeMap::new();
    let ended = loop {
        let until = playout.deadline().map(|at| at.saturating_sub(time_of_day()));
        tokio::select! {
            arrival = arrivals.recv() => match arrival {
                Some((at, header, data)) => {
                    figures.on_layer(&header, at);
                    if playout.on_layer(&header, at) {
                        layers.insert((header.frame, header.layer), data);
                    }
                }
                None => break Ended::Complete,
            },
            () = tokio::time::sleep(until.unwrap_or(Duration::MAX)), if until.is_some() => {}
            interrupt = signal::ctrl_c() => {
                interrupt.or_fail(Exit::Runtime, || "cannot wait for Ctrl-C".to_owned())?;
                break Ended::Interrupted;
            }
        }
        play_due(&mut playout, &mut layers, (&mut figures, &pending));
    };
    // What is there at the end is shown, too.
    while let Some(at) = playout.deadline() {
        tokio::time::sleep(at.saturating_sub(time_of_day())).await;
        play_due(&mut playout, &mut layers, (&mut figures, &pending));
    }
    drop(pending);
    let shown = tokio::task::spawn_blocking(move || showing.join()).await?;
    let shown = shown.unwrap_or_else(|_| Err(Failure::new(Exit::Runtime, "the decoder failed")));
    figures.damaged = shown?;
    report(arguments, connection, &figures, voice)?;
    if ended == Ended::Interrupted {
        accepting.abort();
        return Ok(ended);
    }
    match accepting.await? {
        ConnectionError::PeerApplication { code: 0, .. } => Ok(Ended::Complete),
        end => Err(Failure::new(exit_of(&end), format!("the sender is gone: {end}"))),
    }
}

/// Hands what is due to the decoder.
fn play_due(
    playout: &mut Playout,
    layers: &mut BTreeMap<(u32, usize), Vec<u8>>,
    (figures, pending): (&mut Figures, &mpsc::Sender<Pending>),
) {
    while let Some(decoded) = playout.poll(time_of_day()) {
        let data = std::array::from_fn(|layer| layers.remove(&(decoded.frame, layer)).unwrap_or_default());
        *layers = layers.split_off(&(decoded.frame, LAYERS));
        figures.on_decoded(&decoded);
        if decoded.depth > 0 && pending.try_send((decoded, data)).is_err() {
            figures.overrun += 1;
        }
    }
}

/// Takes streams until the connection ends, and tells why it did.
async fn accept(connection: Connection, arrived: mpsc::Sender<Arrived>) -> ConnectionError {
    loop {
        match connection.accept_uni().await {
            Ok(stream) => drop(tokio::spawn(read(stream, arrived.clone()))),
            Err(end) => return end,
        }
    }
}

/// Reads a layer. One that is taken back, or is none, is nothing.
async fn read(mut stream: RecvStream, arrived: mpsc::Sender<Arrived>) {
    let Ok(message) = stream.read_to_end(LARGEST).await else { return };
    match LayerHeader::decode(&message) {
        Ok((header, data)) if !data.is_empty() => {
            let _gone = arrived.send((time_of_day(), header, data.to_vec())).await;
        }
        Ok(_) => tracing::debug!("a layer without bytes"),
        Err(error) => tracing::debug!(%error, "a message that is no layer"),
    }
}

/// Where pictures go, and how.
#[derive(Clone, Debug, Args)]
struct Display {
    /// Write the video to this file, whose name says the format: .y4m, or what ffmpeg knows (.mp4, .webm, .mkv)
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Show the video in a window (ffplay)
    #[arg(long, conflicts_with = "record")]
    play: bool,
    /// Draw this title, the latency and the layers of each picture into a strip below it
    #[arg(long, value_name = "TITLE")]
    strip: Option<String>,
}

impl Display {
    /// Decodes and shows frames; how many were damaged.
    ///
    /// A recording has 30 pictures a second, each the one that a viewer saw at that time: what stood still stands still.
    fn show(&self, mut frames: mpsc::Receiver<Pending>) -> Result<u32, Failure> {
        let mut decoder = Decoder::new().or_fail(Exit::Runtime, || "cannot decode".to_owned())?;
        let (mut screen, mut damaged) = (None, 0);
        let mut seen: Option<(Duration, u32, Picture)> = None;
        while let Some((decoded, data)) = frames.blocking_recv() {
            let layers: Vec<&[u8]> = data[..decoded.depth].iter().map(Vec::as_slice).collect();
            let Ok(mut picture) = decoder.decode(&layers) else {
                damaged += 1;
                continue;
            };
            if let Some(title) = &self.strip {
                picture = overlay::with_strip(&picture, title, decoded.latency(), decoded.depth);
            }
            if screen.is_none() {
                screen = self.open(&picture)?;
            }
            let Some(screen) = &mut screen else { continue };
            let (start, mut written, last) = seen.take().unwrap_or_else(|| (decoded.at, 0, picture.clone()));
            let due = decoded.at.saturating_sub(start).as_nanos() / Clip::INTERVAL.as_nanos();
            while u128::from(written) < due {
                screen.show(&last)?;
                written += 1;
            }
            seen = Some((start, written, picture));
        }
        let Some(mut screen) = screen else { return Ok(damaged) };
        if let Some((_, _, last)) = seen {
            screen.show(&last)?;
        }
        screen.finish().map(|()| damaged)
    }

    /// The screen for pictures like `picture`, if there is to be one.
    fn open(&self, picture: &Picture) -> Result<Option<Screen>, Failure> {
        let format = y4m::Format { width: picture.width(), height: picture.height(), rate: (30, 1) };
        Ok(match (&self.record, self.play) {
            (Some(path), _) => Some(Screen::record(path, format)?),
            (None, true) => Some(Screen::window(format)?),
            (None, false) => None,
        })
    }
}

fn report(
    arguments: &ReceiveArguments,
    connection: &Connection,
    figures: &Figures,
    voice: Voice,
) -> Result<(), Failure> {
    let paths = paths::figures(connection);
    if arguments.format.json {
        return output::print(&figures.json(&paths).to_string());
    }
    figures.lines().iter().for_each(|line| voice.say(line));
    paths.iter().for_each(|path| voice.say(paths::line(path)));
    Ok(())
}
