//! One video with one scheme.

use super::curve::curve;
use super::datagrams;
use super::outcome::{VideoOutcome, Viewing};
use super::scheme::VideoScheme;
use crate::experiment::pages::{self, ChannelUse, Channels, Flows, ideal};
use crate::workload::page_load::Paths;
use crate::workload::video::{Arrival, MessageHints, Program, Video};
use crate::world::medium::Medium;
use crate::world::wire::Wire;
use crate::world::{Net, Radio, Side};
use hvq_emulation::steer::{Branch, Knowledge, Pair, Steered};
use hvq_emulation::{Channel, ChannelSpec, Direction, TraceError};
use hvq_scheduler::{Bandwidth, Hints, PathId, Sharing};
use hvq_transport::congestion::Algorithm;
use hvq_transport::connection::{ChannelHint, FourTuple, Multipath, TransportConfig};
use hvq_transport::stream::StreamLimits;
use hvq_video::clip::Clip;
use hvq_video::message::Deadlines;
use hvq_video::playout::{Gaps, Wait};
use std::sync::Arc;
use std::time::Duration;

/// The time after the last frame within which arrivals count.
const TAIL: Duration = Duration::from_secs(10);

/// The UDP payload of datagrams: what fits an Ethernet frame over IPv6.
const DATAGRAM: usize = 1452;

/// The time that base layers take over a URLLC that nothing else uses: most have less than 2 KB.
const FLIGHT: Duration = Duration::from_millis(10);

/// The description of a run.
#[derive(Clone, Debug)]
pub struct VideoRun {
    /// The clip that is sent, again and again.
    pub clip: Arc<Clip>,
    /// The channels, their traces begun where they are to be.
    pub channels: Channels,
    /// The scheme by which they are used.
    pub scheme: VideoScheme,
    /// The number of frames that are sent.
    pub frames: u32,
    /// The repetition, counted from 0.
    pub repetition: u32,
    /// The seed of everything random.
    pub seed: u64,
}

/// The arrivals of a video, and the traffic that it took.
struct Sent {
    arrivals: Vec<Arrival>,
    embb: ChannelUse,
    urllc: ChannelUse,
    withdrawn: u64,
    failure: Option<String>,
    gaps: Gaps,
}

impl VideoRun {
    /// Runs it. Fails if a trace cannot be read; what happens to the video is part of the outcome.
    pub fn outcome(&self) -> Result<VideoOutcome, TraceError> {
        let Sent { arrivals, embb, urllc, withdrawn, failure, gaps } = match self.scheme {
            VideoScheme::Packets(steering) => {
                let until = (self.seed, self.end());
                let sent =
                    datagrams::send(&self.program(MessageHints::Silent), &self.channels, steering, until)?;
                let datagrams::Sending { arrivals, embb, urllc } = sent;
                Sent { arrivals, embb, urllc, withdrawn: 0, failure: None, gaps: Gaps::Skip }
            }
            VideoScheme::Transport(scheme, voice) => self.transport(scheme, voice)?,
        };
        let curve = curve(&arrivals, &self.clip, self.frames);
        let (paper, adaptive) = Viewing::both(&arrivals, &self.clip, self.frames, gaps);
        Ok(VideoOutcome {
            channels: self.channels.name.clone(),
            scheme: self.scheme,
            repetition: self.repetition,
            seconds: (Clip::INTERVAL * self.frames).as_secs_f64(),
            curve,
            paper,
            adaptive,
            embb,
            urllc,
            withdrawn,
            failure,
        })
    }

    fn program(&self, voice: MessageHints) -> Program {
        let deadlines = Deadlines::of(FLIGHT, Wait::PAPER);
        Program { clip: self.clip.clone(), frames: self.frames, voice, deadlines }
    }

    fn end(&self) -> Duration {
        Program::captured(self.frames) + TAIL
    }

    fn transport(&self, scheme: pages::Scheme, voice: MessageHints) -> Result<Sent, TraceError> {
        let mut net =
            Net::new(self.config(scheme, Side::Client)?, self.config(scheme, Side::Server)?, self.seed);
        net.radio = Radio::Common;
        let paths = self.connect(scheme, &mut net)?;
        let mut video = Video::new(self.program(voice), paths);
        net.run(&mut video, Net::START + self.end());
        let (embb, urllc) = usage(scheme, &net);
        Ok(Sent {
            arrivals: video.arrivals().to_vec(),
            embb,
            urllc,
            withdrawn: video.withdrawn(),
            failure: video.failure().map(str::to_owned),
            gaps: Gaps::Wait,
        })
    }

    fn config(&self, scheme: pages::Scheme, side: Side) -> Result<TransportConfig, TraceError> {
        let policy = scheme.policy(side);
        let mut config = TransportConfig::new(Arc::new(move || policy.scheduler()));
        config.set_datagram_size(DATAGRAM.into());
        config.set_multipath(Multipath::Off);
        config.set_queue_bound(scheme.queue_bound(side));
        // Layers of senders that take nothing back wait in numbers while eMBB stalls: no limit of ours is to be measured.
        config.set_streams(StreamLimits {
            max_data: 64 << 20,
            stream_data_uni: 4 << 20,
            max_streams_uni: 1 << 14,
            max_window: 64 << 20,
            ..StreamLimits::default()
        });
        // HyStart++ takes a packet's change of channel for a queue, and ends slow start.
        if matches!(scheme, pages::Scheme::Below(_)) {
            config.set_congestion(Algorithm::PlainCubic.into());
        }
        if scheme.has_paths() {
            config.set_multipath(Multipath::UpTo(PathId(3)));
            if scheme.hears(side) {
                config.set_channels(self.guaranteed()?);
            }
        }
        Ok(config)
    }

    /// Returns the operator's guarantees of URLLC for both ends; of eMBB nobody knows anything in advance.
    fn guaranteed(&self) -> Result<Vec<ChannelHint>, TraceError> {
        let FourTuple { local, remote } = Wire::addresses(0);
        let hint = |(address, direction)| {
            let typical = self.channels.urllc.typical(direction)?;
            let hints = Hints {
                rate: typical.rate.map(|rate| Bandwidth::from_bits_per_second(rate.bits_per_second())),
                delay: Some(typical.delay),
                shared: Sharing::Dedicated,
                ..Hints::NONE
            };
            Ok(ChannelHint::new(address, hints))
        };
        [(local, Direction::Up), (remote, Direction::Down)].into_iter().map(hint).collect()
    }

    /// Puts the channels into `net`; URLLC comes first where there are two paths, so that the handshake is on it.
    fn connect(&self, scheme: pages::Scheme, net: &mut Net) -> Result<Paths, TraceError> {
        let Channels { embb, urllc, .. } = &self.channels;
        let plain = |net: &mut Net, spec: &ChannelSpec| {
            let channel = Channel::new(spec, net.dice())?;
            Ok(net.join(Medium::Plain(Box::new(channel))))
        };
        let alone = |first| Paths { first, second: None };
        Ok(match scheme {
            pages::Scheme::EmbbAlone | pages::Scheme::EmbbWith(_) => alone(plain(net, embb)?),
            pages::Scheme::Ideal => alone(plain(net, &ideal(&self.channels)?)?),
            pages::Scheme::UrllcAlone => alone(plain(net, urllc)?),
            pages::Scheme::Below(below) => {
                let steerer = |direction| -> Result<_, TraceError> {
                    let (embb, urllc) = (embb.typical(direction)?, urllc.typical(direction)?);
                    let unlimited = hvq_emulation::Bandwidth::from_bits_per_second(u64::MAX);
                    let known = Knowledge {
                        high_bandwidth_delay: embb.delay,
                        low_latency_delay: urllc.delay,
                        low_latency_rate: urllc.rate.unwrap_or(unlimited),
                    };
                    Ok(below.steerer(direction, known, &Flows::default()))
                };
                let pair = Pair { high_bandwidth: embb.clone(), low_latency: urllc.clone() };
                let (up, down) = (steerer(Direction::Up)?, steerer(Direction::Down)?);
                let steered = Steered::new(&pair, net.dice(), up, down)?.with_reordering(below.reordering());
                alone(net.join(Medium::Steered(Box::new(steered))))
            }
            pages::Scheme::Paths(_)
            | pages::Scheme::Bound(_)
            | pages::Scheme::Told(_)
            | pages::Scheme::Foreign(_) => {
                let first = plain(net, urllc)?;
                Paths { first, second: Some(plain(net, embb)?) }
            }
        })
    }
}

/// Returns the traffic over eMBB and over URLLC.
fn usage(scheme: pages::Scheme, net: &Net) -> (ChannelUse, ChannelUse) {
    let both = |bytes: &dyn Fn(Direction) -> u64| ChannelUse {
        up: bytes(Direction::Up),
        down: bytes(Direction::Down),
    };
    let plain =
        |index: usize| both(&|direction| net.wires[index].channel.link(direction).statistics().left.bytes);
    match (scheme, net.wires[0].channel.steered()) {
        (_, Some(steered)) => {
            let branch = |branch| both(&|direction| steered.statistics(branch, direction).left.bytes);
            (branch(Branch::HighBandwidth), branch(Branch::LowLatency))
        }
        (scheme, None) if scheme.has_paths() => (plain(1), plain(0)),
        (pages::Scheme::UrllcAlone, None) => (ChannelUse::default(), plain(0)),
        (_, None) => (plain(0), ChannelUse::default()),
    }
}
