//! `hvq video send`.

mod admission_queue;
mod carriage;

use super::pictures::{Source, TEST};
use super::{ALPN, SILENCE, time_of_day};
use crate::arguments::Format;
use crate::failure::{Exit, Failure, OrFail, exit_of};
use crate::output::{self, Console};
use crate::paths;
use crate::qlog::Logs;
use crate::signals::Signals;
use crate::tls::{self, Resumption};
use crate::transport::{TransportArguments, check_names};
use carriage::{Carriage, Carrier, Frame};
use clap::{Args, ValueEnum};
use hvq::{ClientConfig, ConnectOptions, Connection, Endpoint, PathOptions, TransportConfig, Verify};
use hvq_video::adaptation::{Adaptation, Delivery};
use hvq_video::layers::LAYERS;
use hvq_video::message::{LayerHeader, Reference};
use hvq_video::vpx::{Base, Encoder, References, Settings};
use serde_json::json;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// The time that base layers take over URLLC.
const FLIGHT: Duration = Duration::from_millis(10);
/// The time that data under way may take when the video is over.
const LINGER: Duration = Duration::from_secs(2);
/// The interval at which rates are adapted.
const STEP: Duration = Duration::from_secs(1);

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
    size: Option<(usize, usize)>,
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
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = Tell::Deadlines)]
    tell: Tell,
    #[command(flatten)]
    carriage: Carriage,
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

/// The information about layers for the transport.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Tell {
    /// The priorities of layers, and their deadlines; a late layer is taken back.
    Deadlines,
    /// The priorities of layers.
    Priorities,
    /// Nothing.
    Nothing,
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

/// Width and height, as in 640x360.
pub(super) fn size(text: &str) -> Result<(usize, usize), String> {
    let parsed =
        text.split_once('x').and_then(|(width, height)| Some((width.parse().ok()?, height.parse().ok()?)));
    let sides = 16..=4096_usize;
    parsed
        .filter(|(width, height)| sides.contains(width) && sides.contains(height))
        .ok_or_else(|| format!("{text:?} is no size such as 640x360, with sides of 16 to 4096"))
}

/// The state that sender and encoder share.
#[derive(Debug)]
struct Progress {
    sent: AtomicU32,
    late: AtomicU32,
    frames: AtomicU32,
    left_out: AtomicU32,
    skipped: AtomicU64,
    rates: Mutex<[u32; LAYERS]>,
}

impl Progress {
    /// The rate of each layer, 0 for those that are not sent.
    fn rates(&self) -> [u32; LAYERS] {
        *self.rates.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends until the video ends or the receiver leaves.
pub(crate) async fn run(arguments: Box<SendArguments>, console: Console) -> Result<(), Failure> {
    check_names(&arguments.paths)?;
    let logs = arguments.transport.logs()?;
    let kilobits = arguments.kbit;
    let source = {
        let (name, size) = (arguments.source.clone(), arguments.size);
        tokio::task::spawn_blocking(move || Source::open(&name, size)).await??
    };
    let settings = Settings {
        rate: source.rate,
        kilobits,
        references: References { period: arguments.refresh },
        base: arguments.base.into(),
        ..Settings::new(source.width, source.height)
    };
    let encoder = Encoder::new(settings).or_fail(Exit::Usage, || "cannot encode".to_owned())?;
    let (endpoint, connection) = connect(&arguments, &logs, console).await?;
    let progress = Arc::new(Progress {
        sent: AtomicU32::new(0),
        late: AtomicU32::new(0),
        frames: AtomicU32::new(0),
        left_out: AtomicU32::new(0),
        skipped: AtomicU64::new(0),
        rates: Mutex::new(kilobits),
    });
    let what = if arguments.source == TEST { "a test picture" } else { &arguments.source };
    console.say(format!("sending {what}, {}x{}, {kilobits:?} kbit/s", source.width, source.height));
    let result = stream(&arguments, &connection, (source, encoder), &progress).await;
    let figures = paths::figures(&connection);
    connection.close(0, b"the video is over");
    let _late = timeout(Duration::from_millis(500), endpoint.wait_idle()).await;
    logs.finish(console);
    let of = |counter: &AtomicU32| counter.load(Ordering::Relaxed);
    if arguments.format.json {
        output::print(
            &json!({
                "frames": of(&progress.frames), "layers": of(&progress.sent), "late": of(&progress.late),
                "left_out": of(&progress.left_out), "skipped": progress.skipped.load(Ordering::Relaxed), "paths": figures,
            })
            .to_string(),
        )?;
    } else {
        console.say(format!(
            "{} frames sent; of {} layers {} were taken back because they were late",
            of(&progress.frames),
            of(&progress.sent),
            of(&progress.late)
        ));
        figures.iter().for_each(|path| console.say(paths::line(path)));
    }
    if of(&progress.left_out) > 0 {
        console.say(format!(
            "{} pictures were left out: the encoder is too slow for them here (--size makes them smaller, --base rated takes less)",
            of(&progress.left_out)
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
        arguments.carriage.alpn(),
        verify,
        &arguments.transport.secrecy(),
        &Resumption::default(),
    )?;
    let transport = TransportConfig {
        idle_timeout: SILENCE,
        keep_alive: Some(SILENCE / 4),
        ..arguments.transport.config()
    };
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

/// Encodes and sends pictures, each at its time.
async fn stream(
    arguments: &SendArguments,
    connection: &Connection,
    (source, encoder): (Source, Encoder),
    progress: &Arc<Progress>,
) -> Result<(), Failure> {
    let most = arguments.duration.map(|time| (time.as_secs_f64() / source.interval().as_secs_f64()) as u32);
    let (frames, mut encoded) = mpsc::channel(2);
    let encoding = {
        let progress = progress.clone();
        std::thread::spawn(move || encode((source, encoder), most.unwrap_or(u32::MAX), &frames, &progress))
    };
    let mut adaptation = Adaptation::new(progress.rates());
    let mut step = tokio::time::interval(STEP);
    step.tick().await;
    let mut before = (0, 0);
    let mut signals = Signals::new()?;
    let mut carrier = Carrier::new(connection, (arguments.carriage, arguments.tell), progress);
    loop {
        tokio::select! {
            frame = encoded.recv() => match frame {
                Some(frame) => carrier.send(frame).await?,
                None => break,
            },
            _ = step.tick(), if !arguments.fixed => {
                let now = (progress.sent.load(Ordering::Relaxed), progress.late.load(Ordering::Relaxed));
                let delivery = Delivery { sent: now.0 - before.0, late: now.1 - before.1 };
                before = now;
                let rates = adaptation.step(capacity(connection), delivery);
                *progress.rates.lock().unwrap_or_else(PoisonError::into_inner) = rates;
            }
            signal = signals.next() => {
                return Err(Failure::new(signal, "ended by a signal before the video was over"));
            }
            end = connection.closed() => {
                return Err(Failure::new(exit_of(&end), format!("the receiver is gone: {end}")));
            }
        }
    }
    carrier.finish(LINGER).await;
    encoding.join().unwrap_or_else(|_| Err(Failure::new(Exit::Runtime, "the encoder failed")))
}

/// Returns the transport's estimate of the capacity of all paths: a window in each round trip, or the rate of the
/// bottleneck.
fn capacity(connection: &Connection) -> Option<f64> {
    let rate = |path: hvq::PathInfo| match path.stats.rate {
        Some(rate) => rate.bits_per_second() as f64,
        None => path.stats.window as f64 * 8.0 / path.stats.rtt.as_secs_f64().max(0.001),
    };
    Some(connection.paths().into_iter().map(rate).sum::<f64>()).filter(|rate| *rate > 0.0)
}

/// Encodes on a thread of its own: a picture takes longer than other tasks can wait.
fn encode(
    (mut source, mut encoder): (Source, Encoder),
    most: u32,
    frames: &mpsc::Sender<Frame>,
    progress: &Progress,
) -> Result<(), Failure> {
    let mut rates = progress.rates();
    for frame in 0.. {
        if source.count().0 >= most {
            break;
        }
        let picture = source.next()?;
        progress.left_out.store(source.count().1, Ordering::Relaxed);
        let Some(picture) = picture else { break };
        let header = LayerHeader { frame, layer: 0, captured: time_of_day(), reference: Reference::Earlier };
        let wanted = progress.rates();
        if wanted != rates {
            // A layer that is not sent is encoded all the same, as small as can be: others refer to it again later.
            encoder
                .set_rates(wanted.map(|rate| rate.max(50)))
                .or_fail(Exit::Runtime, || "encoder".to_owned())?;
            rates = wanted;
        }
        let encoded = encoder.encode(&picture).or_fail(Exit::Runtime, || "encoder".to_owned())?;
        if frames.blocking_send((header, encoded)).is_err() {
            break;
        }
        progress.frames.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}
