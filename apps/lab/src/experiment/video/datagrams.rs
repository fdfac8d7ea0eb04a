//! Video without a transport: packets that are sent when a picture is captured, and never again (HotNets 2023, §3.3).

use super::scheme::Steering;
use crate::experiment::pages::{ChannelUse, Channels};
use crate::workload::video::{Arrival, Program};
use hvq_emulation::steer::{
    Branch, CostReward, DelaySource, Flow, Knowledge, Pair, Sent, Steered, SteeringPolicy,
};
use hvq_emulation::{Channel, Departure, Direction, TraceError};
use hvq_video::layers::LAYERS;
use std::collections::BTreeMap;
use std::time::Duration;

/// Bytes of UDP payload that a packet has at most, and of a layer that it carries.
const PACKET: usize = 1400;
const HEADER: usize = 20;

/// A part of a layer.
#[derive(Clone, Copy, Debug)]
struct Part {
    frame: u32,
    layer: usize,
}

/// The channels that packets enter.
enum Entry {
    One(Box<Channel<Part>>),
    Steered(Box<Steered<Part>>),
    ByLayer { embb: Box<Channel<Part>>, urllc: Box<Channel<Part>> },
}

impl Entry {
    fn new(
        steering: Steering,
        Channels { embb, urllc, .. }: &Channels,
        seed: u64,
    ) -> Result<Self, TraceError> {
        Ok(match steering {
            Steering::Embb => Self::One(Box::new(Channel::new(embb, seed)?)),
            Steering::Priority => Self::ByLayer {
                embb: Box::new(Channel::new(embb, seed)?),
                urllc: Box::new(Channel::new(urllc, seed.wrapping_add(1))?),
            },
            Steering::DChannel => {
                let policy = |direction| -> Result<Box<dyn SteeringPolicy>, TraceError> {
                    let (wide, quick) = (embb.typical(direction)?, urllc.typical(direction)?);
                    let unlimited = hvq_emulation::Bandwidth::from_bits_per_second(u64::MAX);
                    let known = Knowledge {
                        high_bandwidth_delay: wide.delay,
                        low_latency_delay: quick.delay,
                        low_latency_rate: quick.rate.unwrap_or(unlimited),
                    };
                    Ok(Box::new(CostReward::new(known).with_delays(DelaySource::Measured)))
                };
                let pair = Pair { high_bandwidth: embb.clone(), low_latency: urllc.clone() };
                let (up, down) = (policy(Direction::Up)?, policy(Direction::Down)?);
                Self::Steered(Box::new(Steered::new(&pair, seed, up, down)?))
            }
        })
    }

    fn enqueue(&mut self, at: Duration, part: Part, size: usize) {
        match self {
            Self::One(channel) => {
                channel.enqueue(Direction::Down, at, part, size);
            }
            Self::Steered(steered) => {
                steered.enqueue(Direction::Down, at, Sent { flow: Flow(1), packet: part, size });
            }
            Self::ByLayer { embb, urllc } => {
                let channel = if part.layer == 0 { urllc } else { embb };
                channel.enqueue(Direction::Down, at, part, size);
            }
        }
    }

    fn next_deadline(&self) -> Option<Duration> {
        match self {
            Self::One(channel) => channel.next_deadline(),
            Self::Steered(steered) => steered.next_deadline(),
            Self::ByLayer { embb, urllc } => {
                [embb.next_deadline(), urllc.next_deadline()].into_iter().flatten().min()
            }
        }
    }

    fn dequeue(&mut self, at: Duration) -> Option<Departure<Part>> {
        match self {
            Self::One(channel) => channel.dequeue(at),
            Self::Steered(steered) => steered.dequeue(at),
            Self::ByLayer { embb, urllc } => {
                let left = embb.dequeue(at).or_else(|| urllc.dequeue(at));
                // Both channels are of one device, which stays awake for either (NSDI 2023, §4.2.2).
                if left.is_some() {
                    embb.link_mut(Direction::Down).keep_awake(at);
                }
                left
            }
        }
        .map(|(_, departure)| departure)
    }

    /// Bytes that came over eMBB and over URLLC.
    fn usage(&self) -> (u64, u64) {
        let plain = |channel: &Channel<Part>| channel.link(Direction::Down).statistics().left.bytes;
        match self {
            Self::One(channel) => (plain(channel), 0),
            Self::Steered(steered) => {
                let of = |branch| steered.statistics(branch, Direction::Down).left.bytes;
                (of(Branch::HighBandwidth), of(Branch::LowLatency))
            }
            Self::ByLayer { embb, urllc } => (plain(embb), plain(urllc)),
        }
    }
}

/// The result of sending a video.
#[derive(Debug)]
pub(super) struct Sending {
    pub(super) arrivals: Vec<Arrival>,
    pub(super) embb: ChannelUse,
    pub(super) urllc: ChannelUse,
}

/// Sends `program` over `channels` until `end`.
pub(super) fn send(
    program: &Program,
    channels: &Channels,
    steering: Steering,
    (seed, end): (u64, Duration),
) -> Result<Sending, TraceError> {
    let mut entry = Entry::new(steering, channels, seed)?;
    let mut missing: BTreeMap<(u32, usize), usize> = BTreeMap::new();
    let mut arrivals = Vec::new();
    let mut next = 0;
    loop {
        let frame = (next < program.frames).then(|| Program::captured(next));
        let Some(now) = [frame, entry.next_deadline()].into_iter().flatten().min().filter(|at| *at <= end)
        else {
            break;
        };
        if frame.is_some_and(|at| at <= now) {
            for layer in 0..LAYERS {
                let parts = parts(program.clip.frame(next).bytes[layer] as usize);
                missing.insert((next, layer), parts.len());
                parts.into_iter().for_each(|size| entry.enqueue(now, Part { frame: next, layer }, size));
            }
            next += 1;
        }
        while let Some(Departure { packet: Part { frame, layer }, at, .. }) = entry.dequeue(now) {
            let Some(left) = missing.get_mut(&(frame, layer)) else { continue };
            *left -= 1;
            if *left == 0 {
                missing.remove(&(frame, layer));
                arrivals.push((at, program.header(frame, layer)));
            }
        }
    }
    let (embb, urllc) = entry.usage();
    let down = |down| ChannelUse { up: 0, down };
    Ok(Sending { arrivals, embb: down(embb), urllc: down(urllc) })
}

/// The sizes of the packets of a layer of `bytes`.
fn parts(bytes: usize) -> Vec<usize> {
    let most = PACKET - HEADER;
    let full = bytes / most;
    let rest = bytes % most;
    std::iter::repeat_n(PACKET, full).chain((rest > 0).then_some(rest + HEADER)).collect()
}
