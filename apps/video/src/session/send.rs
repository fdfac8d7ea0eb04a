//! Sending: pictures are encoded in layers, each at its time, and carried over a connection.

mod admission_queue;
mod carriage;

use super::pictures::{Source, TEST};
use super::{ALPN, Size, time_of_day};
use crate::adaptation::{Adaptation, Delivery};
use crate::layers::LAYERS;
use crate::message::{LayerHeader, Reference};
use crate::roq;
use crate::vpx::{Base, Encoder, References, Settings};
use carriage::{Carrier, EncodedPicture};
use hvq::Connection;
use hvq_program::failure::{Exit, Failure, OrFail, exit_of};
use hvq_program::signals::Signals;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;

/// The time that base layers take over URLLC.
const FLIGHT: Duration = Duration::from_millis(10);
/// The time that data under way may take when the video is over.
const LINGER: Duration = Duration::from_secs(2);
/// The interval at which rates are adapted.
const STEP: Duration = Duration::from_secs(1);

/// A video to send, and the way to send it.
#[derive(Clone, Debug)]
pub struct SendOptions {
    /// A video file or anything else that ffmpeg reads, `camera` (or `camera:DEVICE`) for Video4Linux, `test` for a test
    /// picture.
    pub source: String,
    /// The size of the pictures; `None` takes that of the file, or 640x360 for `test`.
    pub size: Option<Size>,
    /// The rate of each layer by itself, in kbit/s.
    pub kilobits: [u32; LAYERS],
    /// The number of frames after which a layer above the base layer begins anew: 0 for never, 1 for always.
    pub references: References,
    /// The sizing of base layers.
    pub base: Base,
    /// The adaptation of rates to what the channels carry.
    pub rates: Rates,
    /// The information about layers for the transport.
    pub tell: Tell,
    /// The carriage of layers.
    pub carriage: Carriage,
    /// The time after which the video ends, if it is longer.
    pub duration: Option<Duration>,
}

/// The adaptation of rates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rates {
    /// They follow the channels.
    Adapted,
    /// They stay as they are, whatever the channels carry.
    Fixed,
}

/// The information about layers for the transport.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tell {
    /// The priorities of layers, and their deadlines; a late layer is taken back.
    Deadlines,
    /// The priorities of layers.
    Priorities,
    /// Nothing.
    Nothing,
}

/// The form in which layers travel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// Each layer is a message of ours ([`crate::message`]).
    Messages,
    /// Each picture is a frame of RTP over QUIC with this flow identifier (draft-ietf-avtcore-rtp-over-quic).
    Rtp(u64),
}

/// The part of QUIC that layers travel in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Vehicle {
    /// A stream for each layer, or for each picture of RTP.
    Streams,
    /// Datagrams (RFC 9221): what is lost stays lost, and what is late is dropped.
    Datagrams,
}

/// The carriage of layers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Carriage {
    /// The part of QUIC.
    pub vehicle: Vehicle,
    /// The form.
    pub form: Form,
}

impl Carriage {
    /// The application protocol of the connection.
    pub fn alpn(self) -> &'static [u8] {
        match self.form {
            Form::Rtp(_) => roq::ALPN,
            Form::Messages => ALPN,
        }
    }
}

/// A video that is open, with an encoder for it.
pub struct Sender {
    options: SendOptions,
    source: Source,
    encoder: Encoder,
}

/// The counts of a video that was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sent {
    /// Frames.
    pub frames: u32,
    /// Layers above the base layer.
    pub layers: u32,
    /// Layers of those that were taken back because they were late.
    pub late: u32,
    /// Pictures that were left out because the encoder was too slow.
    pub left_out: u32,
    /// Layers that were not sent because their rate was 0.
    pub skipped: u64,
}

impl Sender {
    /// Opens the source, and makes an encoder for its pictures.
    ///
    /// # Errors
    /// The source cannot be read, or its pictures cannot be encoded ([`Exit::Usage`]).
    pub fn open(options: SendOptions) -> Result<Self, Failure> {
        let source = Source::open(&options.source, options.size)?;
        let settings = Settings {
            rate: source.rate,
            kilobits: options.kilobits,
            references: options.references,
            base: options.base,
            ..Settings::new(source.width, source.height)
        };
        let encoder = Encoder::new(settings).or_fail(Exit::Usage, || "cannot encode".to_owned())?;
        Ok(Self { options, source, encoder })
    }

    /// The video in words.
    pub fn describe(&self) -> String {
        let SendOptions { source, kilobits, .. } = &self.options;
        let what = if source == TEST { "a test picture" } else { source };
        format!("{what}, {}x{}, {kilobits:?} kbit/s", self.source.width, self.source.height)
    }

    /// Sends over `connection` until the video ends; returns what was sent by then, and why it ended before if it did.
    pub async fn send(self, connection: &Connection) -> (Sent, Result<(), Failure>) {
        let progress = Arc::new(Progress::new(self.options.kilobits));
        let result = stream(self, connection, &progress).await;
        (progress.sent(), result)
    }
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
    fn new(rates: [u32; LAYERS]) -> Self {
        Self {
            sent: AtomicU32::new(0),
            late: AtomicU32::new(0),
            frames: AtomicU32::new(0),
            left_out: AtomicU32::new(0),
            skipped: AtomicU64::new(0),
            rates: Mutex::new(rates),
        }
    }

    fn sent(&self) -> Sent {
        let of = |counter: &AtomicU32| counter.load(Ordering::Relaxed);
        Sent {
            frames: of(&self.frames),
            layers: of(&self.sent),
            late: of(&self.late),
            left_out: of(&self.left_out),
            skipped: self.skipped.load(Ordering::Relaxed),
        }
    }

    /// The rate of each layer, 0 for those that are not sent.
    fn rates(&self) -> [u32; LAYERS] {
        *self.rates.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Encodes and sends pictures, each at its time.
async fn stream(sender: Sender, connection: &Connection, progress: &Arc<Progress>) -> Result<(), Failure> {
    let Sender { options, source, encoder } = sender;
    let most = options.duration.map(|time| (time.as_secs_f64() / source.interval().as_secs_f64()) as u32);
    let (frames, mut encoded) = mpsc::channel(2);
    let encoding = {
        let progress = progress.clone();
        std::thread::spawn(move || encode(source, encoder, most.unwrap_or(u32::MAX), &frames, &progress))
    };
    let mut adaptation = Adaptation::new(progress.rates());
    let mut step = tokio::time::interval(STEP);
    step.tick().await;
    let mut before = (0, 0);
    let mut signals = Signals::new()?;
    let mut carrier = Carrier::new(connection, &options, progress);
    loop {
        tokio::select! {
            frame = encoded.recv() => match frame {
                Some(frame) => carrier.send(frame).await?,
                None => break,
            },
            _ = step.tick(), if options.rates == Rates::Adapted => {
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
    mut source: Source,
    mut encoder: Encoder,
    most: u32,
    frames: &mpsc::Sender<EncodedPicture>,
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
