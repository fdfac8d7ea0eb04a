//! `hvq video send`.

use super::size;
use crate::arguments::Format;
use crate::failure::{Exit, Failure, OrFail, exit_of};
use crate::output::{self, Console};
use crate::paths;
use crate::qlog::Logs;
use crate::tls::{self, Resumption};
use clap::{Args, ValueEnum};
use hvq::{ClientConfig, ConnectOptions, Connection, Endpoint, PathOptions, Verify};
use hvq_program::arguments::TransportArguments;
use hvq_program::transport::check_names;
use hvq_video::layers::LAYERS;
use hvq_video::session::send::{Carriage, Form, Rates, SendOptions, Sender, Tell, Vehicle};
use hvq_video::session::{SILENCE, Size};
use hvq_video::vpx::{Base, References};
use serde_json::json;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// Arguments of `hvq video send`.
#[derive(Debug, Args)]
pub(crate) struct SendArguments {
    /// A video file or anything else that ffmpeg reads, camera (or camera:DEVICE) for Video4Linux, test for a test picture
    #[arg(value_name = "FILE|camera|test")]
    source: String,
    /// The address of the receiver
    #[arg(long, value_name = "ADDRESS:PORT")]
    to: Option<SocketAddr>,
    /// A path; may be repeated. The first carries the handshake
    #[arg(long = "path", value_name = "NAME=LOCAL[>REMOTE][,rate=…,delay=…]")]
    paths: Vec<PathOptions>,
    /// Accept the receiver's certificate if it goes back to one in this file (PEM); without it any is accepted
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,
    /// The size of the pictures (by default that of the file; 640x360 for test)
    #[arg(long, value_name = "WIDTHxHEIGHT", value_parser = size)]
    size: Option<Size>,
    /// The rate of each layer by itself, in kbit/s
    #[arg(long, value_name = "BASE,MIDDLE,HIGHEST", default_value = "400,4100,7500", value_parser = kilobits)]
    kbit: [u32; LAYERS],
    /// Every so many frames a layer above the base layer begins anew, so that errors end: 0 for never, 1 for always
    #[arg(long, value_name = "FRAMES", default_value_t = References::default().period)]
    refresh: u32,
    /// The sizing of base layers: rehearsed by a second encoder, so that none is late for being large, or rated, which
    /// takes less of the processor
    #[arg(long, value_name = "HOW", value_enum, default_value_t = Sizing::Rehearsed)]
    base: Sizing,
    /// The information about layers for the transport: deadlines (and priorities), priorities, or nothing
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = TellArgument::Deadlines)]
    tell: TellArgument,
    #[command(flatten)]
    carriage: CarriageArguments,
    /// Keep the rates as they are, whatever the channels carry
    #[arg(long)]
    fixed: bool,
    /// Stop after this time
    #[arg(long, value_name = "TIME", value_parser = crate::duration::parse)]
    duration: Option<Duration>,
    #[command(flatten)]
    transport: TransportArguments,
    #[command(flatten)]
    format: Format,
}

/// The sizing of base layers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Sizing {
    /// A second encoder tries quantizers for each picture.
    Rehearsed,
    /// By the rate control of libvpx, on average.
    Rated,
}

impl From<Sizing> for Base {
    fn from(sizing: Sizing) -> Self {
        match sizing {
            Sizing::Rehearsed => Self::Rehearsed,
            Sizing::Rated => Self::Rated,
        }
    }
}

/// Three rates with commas between.
fn kilobits(text: &str) -> Result<[u32; LAYERS], String> {
    let rates: Result<Vec<u32>, _> = text.split(',').map(|rate| rate.trim().parse()).collect();
    rates
        .ok()
        .and_then(|rates| rates.try_into().ok())
        .filter(|rates: &[u32; LAYERS]| rates.iter().all(|rate| (1..=1_000_000).contains(rate)))
        .ok_or_else(|| format!("{text:?} is no list of three rates in kbit/s, such as 400,4100,7500"))
}

/// The carriage of layers.
#[derive(Debug, Args)]
struct CarriageArguments {
    /// Send layers in datagrams (RFC 9221), cut into fragments: what is lost stays lost, and what is late is dropped
    #[arg(long)]
    datagrams: bool,
    /// Send RTP over QUIC (draft-ietf-avtcore-rtp-over-quic) with this flow identifier (0 if none is given), each picture
    /// in a stream, or its packets in datagrams: for receivers that are not hvq, and `hvq video receive --rtp-out`
    #[arg(long, value_name = "FLOW", num_args = 0..=1, require_equals = true, default_missing_value = "0",
        value_parser = clap::value_parser!(u64).range(..1 << 62))]
    rtp: Option<u64>,
}

/// The information about layers for the transport.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum TellArgument {
    /// The priorities of layers, and their deadlines; a late layer is taken back.
    Deadlines,
    /// The priorities of layers.
    Priorities,
    /// Nothing.
    Nothing,
}

impl From<TellArgument> for Tell {
    fn from(argument: TellArgument) -> Self {
        match argument {
            TellArgument::Deadlines => Self::Deadlines,
            TellArgument::Priorities => Self::Priorities,
            TellArgument::Nothing => Self::Nothing,
        }
    }
}

impl CarriageArguments {
    fn carriage(&self) -> Carriage {
        Carriage {
            vehicle: if self.datagrams { Vehicle::Datagrams } else { Vehicle::Streams },
            form: self.rtp.map_or(Form::Messages, Form::Rtp),
        }
    }
}

impl SendArguments {
    fn options(&self) -> SendOptions {
        SendOptions {
            source: self.source.clone(),
            size: self.size,
            kilobits: self.kbit,
            references: References { period: self.refresh },
            base: self.base.into(),
            rates: if self.fixed { Rates::Fixed } else { Rates::Adapted },
            tell: self.tell.into(),
            carriage: self.carriage.carriage(),
            duration: self.duration,
        }
    }
}

/// Sends until the video ends or the receiver leaves.
pub(crate) async fn run(arguments: Box<SendArguments>, console: Console) -> Result<(), Failure> {
    check_names(&arguments.paths)?;
    let logs = arguments.transport.logs()?;
    let options = arguments.options();
    let sender = tokio::task::spawn_blocking(move || Sender::open(options)).await??;
    let (endpoint, connection) = connect(&arguments, &logs, console).await?;
    console.say(format!("sending {}", sender.describe()));
    let (sent, result) = sender.send(&connection).await;
    let figures = paths::figures(&connection);
    connection.close(0, b"the video is over");
    let _late = timeout(Duration::from_millis(500), endpoint.wait_idle()).await;
    logs.finish(console);
    if arguments.format.json {
        output::print(
            &json!({
                "frames": sent.frames, "layers": sent.layers, "late": sent.late,
                "left_out": sent.left_out, "skipped": sent.skipped, "paths": figures,
            })
            .to_string(),
        )?;
    } else {
        console.say(format!(
            "{} frames sent; of {} layers {} were taken back because they were late",
            sent.frames, sent.layers, sent.late
        ));
        figures.iter().for_each(|path| console.say(paths::line(path)));
    }
    if sent.left_out > 0 {
        console.say(format!(
            "{} pictures were left out: the encoder is too slow for them here (--size makes them smaller, --base rated takes less)",
            sent.left_out
        ));
    }
    result
}

async fn connect(
    arguments: &SendArguments,
    logs: &Logs,
    console: Console,
) -> Result<(Endpoint, Connection), Failure> {
    let verify = arguments.cacert.clone().map_or(Verify::Insecure, Verify::CaFile);
    let tls = tls::client_of(
        arguments.carriage.carriage().alpn(),
        verify,
        &arguments.transport.secrecy(),
        &Resumption::default(),
    )?;
    let transport =
        arguments.transport.config().set_idle_timeout(SILENCE).set_keep_alive(Some(SILENCE / 4)).clone();
    let config = ClientConfig::new(tls, Arc::new(logs.watch(transport)));
    let endpoint = Endpoint::client(&[])?;
    let first = arguments.paths.first();
    let remote = first.and_then(|path| path.remote).or(arguments.to).ok_or_else(|| {
        Failure::new(Exit::Usage, "where is the receiver? Say --to ADDRESS:PORT, or --path NAME=LOCAL>REMOTE")
    })?;
    let mut options = ConnectOptions::new(remote, "localhost");
    if let Some(path) = first {
        options = options.over(path);
    }
    let said = || format!("cannot connect to the receiver at {remote}");
    let connecting = endpoint.connect_with(config, options).or_fail(Exit::Connection, said)?;
    let connection = connecting.await.map_err(|error| {
        let exit = match exit_of(&error) {
            Exit::Timeout => Exit::Connection,
            exit => exit,
        };
        Failure::new(exit, format!("cannot connect to the receiver at {remote}: {error}"))
    })?;
    for mut path in arguments.paths.iter().skip(1).cloned() {
        path.remote = path.remote.or(arguments.to);
        let name = path.name.clone();
        if let Err(error) = connection.open_path(path).await {
            console.say(format!("hvq: warning: path {name} cannot be used: {}", Failure::from(error).line()));
        }
    }
    Ok((endpoint, connection))
}
