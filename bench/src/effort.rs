//! The amount of measurement: rounds, sizes and counts.

use crate::contender::{Contender, Job};
use crate::sockets::{Trial, Way};
use crate::{Arguments, PIPE_DATAGRAM, Part, decisions, pipe};
use std::time::Duration;

/// Rounds over emulated channels, which take their time and spread little.
const CHANNEL_ROUNDS: usize = 3;

/// Rounds of idle connections, whose memory spreads as little.
const IDLE_ROUNDS: usize = 2;

/// Requests that are under way at a time, and what each of these rows has of the requests: those that are alone take long.
const REQUESTS_AT_ONCE: [(u32, u32); 3] = [(1, 5), (100, 1), (400, 1)];

/// The amount of each measurement.
#[derive(Clone, Debug)]
pub struct Effort {
    /// The contenders that take part.
    pub contenders: Vec<Contender>,
    /// The number of turns of each contender.
    pub rounds: usize,
    /// Pairs of processes, those of one kind together.
    jobs: Vec<(Job, Way, u16)>,
    /// The amount of work in the pipe.
    pub pipe: pipe::Effort,
    /// The length of the measurement of decisions.
    pub decisions: decisions::Effort,
    /// The time for which each library seals and opens in a round.
    pub aead: Duration,
}

/// The sizes of a smoke test or of the real thing.
struct Size {
    mebibytes: u64,
    channel_mebibytes: u64,
    rounds: u16,
    datagrams: &'static [u16],
    handshakes: u32,
    requests: u32,
    /// Connections that receive at the same time, and the bytes of each.
    many: (u32, u64),
    /// Idle connections.
    connections: u32,
    pipe: pipe::Effort,
    decisions: decisions::Effort,
    aead: Duration,
}

const QUICK: Size = Size {
    mebibytes: 64,
    channel_mebibytes: 16,
    rounds: 2,
    datagrams: &[1200],
    handshakes: 100,
    requests: 5_000,
    many: (50, 1 << 20),
    connections: 200,
    pipe: pipe::Effort { bytes: 32 << 20, handshakes: 100, requests: 10_000 },
    decisions: decisions::Effort { batches: 5, batch: Duration::from_millis(10) },
    aead: Duration::from_millis(20),
};

const FULL: Size = Size {
    mebibytes: 512,
    channel_mebibytes: 128,
    rounds: 5,
    datagrams: &[1200, 1350, 1452],
    handshakes: 1_000,
    requests: 100_000,
    many: (1_000, 1 << 20),
    connections: 10_000,
    pipe: pipe::Effort { bytes: 256 << 20, handshakes: 1_000, requests: 200_000 },
    decisions: decisions::Effort { batches: 25, batch: Duration::from_millis(40) },
    aead: Duration::from_millis(500),
};

impl Effort {
    /// Returns the amount that `arguments` ask for.
    pub(crate) fn of(arguments: &Arguments) -> Self {
        let size = if arguments.quick { QUICK } else { FULL };
        let bytes = arguments.size.unwrap_or(size.mebibytes) << 20;
        let channel_bytes = arguments.size.unwrap_or(size.channel_mebibytes) << 20;
        let given = arguments.datagram.as_slice();
        let datagrams = if given.is_empty() { size.datagrams } else { given };
        let mut jobs = Vec::new();
        if arguments.wants(Part::Bulk) {
            jobs.extend(datagrams.iter().map(|datagram| (Job::Bulk { bytes }, Way::Loopback, *datagram)));
        }
        let mut add = |part, job, way| {
            if arguments.wants(part) {
                jobs.push((job, way, PIPE_DATAGRAM));
            }
        };
        add(Part::Upload, Job::Upload { bytes }, Way::Loopback);
        add(Part::Channels, Job::Bulk { bytes: channel_bytes }, Way::Channels);
        add(Part::Channels, Job::Bulk { bytes: channel_bytes }, Way::UnequalChannels);
        add(Part::Handshakes, Job::Handshakes { count: size.handshakes }, Way::Loopback);
        for (at_once, share) in REQUESTS_AT_ONCE {
            add(Part::Requests, Job::Requests { count: size.requests / share, at_once }, Way::Loopback);
        }
        let (connections, bytes) = size.many;
        add(Part::Many, Job::Many { connections, bytes }, Way::Loopback);
        add(Part::Memory, Job::Idle { connections: size.connections }, Way::Loopback);
        let or_nothing = |part, count| if arguments.wants(part) { count } else { 0 };
        Self {
            contenders: arguments.contenders(),
            rounds: usize::from(arguments.rounds.unwrap_or(size.rounds)),
            jobs,
            pipe: pipe::Effort {
                bytes: if arguments.wants(Part::Pipe) { size.pipe.bytes } else { 0 },
                handshakes: or_nothing(Part::PipeHandshakes, size.pipe.handshakes),
                requests: or_nothing(Part::PipeRequests, size.pipe.requests),
            },
            decisions: size.decisions,
            aead: size.aead,
        }
    }

    /// All pairs of processes, in their order.
    pub fn trials(&self) -> Vec<Trial> {
        let mut trials = Vec::new();
        for &(job, way, datagram) in &self.jobs {
            for round in 0..self.rounds_of(job, way) {
                let able = self.contenders.iter().filter(|contender| is_able(**contender, job, way));
                trials.extend(able.map(|&contender| Trial { contender, round, job, way, datagram }));
            }
        }
        trials
    }

    fn rounds_of(&self, job: Job, way: Way) -> usize {
        match (job, way) {
            (_, Way::Channels | Way::UnequalChannels) => self.rounds.min(CHANNEL_ROUNDS),
            (Job::Idle { .. }, _) => self.rounds.min(IDLE_ROUNDS),
            _ => self.rounds,
        }
    }
}

/// Returns true if the figure would say anything: a second path makes no difference to a handshake, and the use of the
/// whole rate of one path is a question to hvq only.
fn is_able(contender: Contender, job: Job, way: Way) -> bool {
    match (job, way) {
        (_, Way::Channels) => matches!(contender, Contender::Hvq | Contender::HvqTwoPaths),
        (_, Way::UnequalChannels) => contender == Contender::HvqTwoPaths,
        (Job::Bulk { .. }, _) => true,
        (Job::Upload { .. }, _) => contender != Contender::Floor,
        (_, _) if matches!(contender, Contender::TcpTls | Contender::Floor) => false,
        (Job::Idle { .. }, _) => true,
        (Job::Many { .. }, _) => !matches!(contender, Contender::HvqTwoPaths | Contender::Quiche),
        _ => contender != Contender::HvqTwoPaths,
    }
}
