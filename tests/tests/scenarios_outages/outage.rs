//! Outages: the changes of the wires, and the time for which data may stand still meanwhile.

use crate::policies::Chooser;
use hvq_scheduler::{Bandwidth, Hints};
use hvq_tests::net::{Net, Side};
use hvq_tests::talk::{INTERVAL, Talk};
use hvq_transport::connection::{ChannelHint, FourTuple, TransportConfig};
use std::fmt;
use std::net::SocketAddr;
use std::ops::Range;
use std::time::Duration;

/// The numbers of wires.
pub const WIRES: [usize; 2] = [2, 3];

/// The wires, and the probe timeout of each after little was measured: three round trips, for the variation is taken to be
/// half of the first, and the longest delay of acknowledgements (RFC 9002 §5.3, §6.2.1).
const SPECS: [(&str, u64); 3] =
    [("rtt=5ms,rate=2mbit", 40), ("rtt=50ms,rate=60mbit", 175), ("rtt=30ms,rate=20mbit", 115)];
/// Paths are open and measured by then.
const BEGIN: u64 = 1_500;
/// All is dark for so long.
const DARK: u64 = 3_000;
/// An end that never comes.
const NEVER: u64 = 600_000;

/// The directions that an interval of darkness concerns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Up,
    Down,
    Both,
}

/// An event that delays data beside a path that works.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Surprise {
    /// Nothing: all that do not work are known to be silent.
    None,
    /// Another path dies, which each end finds out after a probe timeout of that path, one after the other where
    /// acknowledgements went there.
    Deaths,
    /// A path is up for less than the probe timeout that would tell of it, and what is repeated there is lost again.
    Flapping,
    /// A path has an address of which nothing is known but the initial round-trip time (RFC 9000 §9.4).
    Move,
}

/// The initial round-trip time, after which a challenge is repeated.
const INITIAL_RTT: u64 = 333;
/// The time after which a policy is overruled that holds everything back: four times the least time between two
/// questions.
const STALL: u64 = 80;

/// Outages of wires, in milliseconds since the start.
#[derive(Clone, Debug)]
pub struct Outage {
    name: String,
    wires: usize,
    dark: Vec<(usize, Way, Range<u64>)>,
    /// The wire whose client has another address from [`BEGIN`] on.
    moved: Option<usize>,
    surprise: Surprise,
    end: u64,
}

impl Outage {
    fn new(wires: usize, name: String) -> Self {
        Self { name, wires, dark: Vec::new(), moved: None, surprise: Surprise::Deaths, end: BEGIN + 2 * DARK }
    }

    fn with(mut self, wire: usize, way: Way, dark: Range<u64>) -> Self {
        self.dark.push((wire, way, dark));
        self
    }

    fn others(&self, wire: usize) -> impl Iterator<Item = usize> + use<> {
        (0..self.wires).filter(move |other| *other != wire)
    }

    /// All wires are dark, and one comes back.
    pub fn all_but_later(wires: usize, back: usize) -> Self {
        let mut outage = Self::new(wires, format!("all dark, {back} comes back"));
        outage.surprise = Surprise::None;
        let outage = outage.with(back, Way::Both, BEGIN..BEGIN + DARK);
        outage.others(back).fold(outage, |outage, wire| outage.with(wire, Way::Both, BEGIN..NEVER))
    }

    /// All wires are dark, and one comes back, each direction of it a second before the other.
    pub fn one_way_first(wires: usize, back: usize) -> [Self; 2] {
        [(Way::Up, Way::Down), (Way::Down, Way::Up)].map(|(first, second)| {
            let mut outage = Self::new(wires, format!("all dark, {back} comes back, {first:?} first"));
            outage.surprise = Surprise::None;
            let outage = outage.with(back, first, BEGIN..BEGIN + DARK - 1_000);
            let outage = outage.with(back, second, BEGIN..BEGIN + DARK);
            outage.others(back).fold(outage, |outage, wire| outage.with(wire, Way::Both, BEGIN..NEVER))
        })
    }

    /// One direction of a wire dies.
    pub fn one_way(wires: usize, dying: usize) -> [Self; 2] {
        [Way::Up, Way::Down]
            .map(|way| Self::new(wires, format!("{way:?} of {dying} dies")).with(dying, way, BEGIN..NEVER))
    }

    /// The client has another address on one wire, and the others die some time after that.
    pub fn moved(wires: usize, moved: usize, after: u64) -> Self {
        let mut outage = Self::new(wires, format!("{moved} moves, the others die {after} ms later"));
        outage.moved = Some(moved);
        outage.surprise = Surprise::Move;
        outage.end += after;
        outage.others(moved).fold(outage, |outage, wire| outage.with(wire, Way::Both, BEGIN + after..NEVER))
    }

    /// One wire is dark for every second half of a `period`.
    pub fn flapping(wires: usize, flapping: usize, period: u64) -> Self {
        let mut outage = Self::new(wires, format!("{flapping} flaps every {period} ms"));
        outage.surprise = Surprise::Flapping;
        outage.end = BEGIN + (period * 5 / 2).max(2_000);
        let starts = (BEGIN..outage.end).step_by(period as usize);
        starts.fold(outage, |outage, at| outage.with(flapping, Way::Both, at..at + period / 2))
    }

    /// One wire after the other works, each for `turn`.
    pub fn in_turns(wires: usize, turn: u64) -> Self {
        let mut outage = Self::new(wires, format!("turns of {turn} ms"));
        outage.end = BEGIN + (4 * turn).max(2_000);
        for (number, at) in (BEGIN..outage.end).step_by(turn as usize).enumerate() {
            outage = outage
                .others(number % wires)
                .fold(outage, |outage, wire| outage.with(wire, Way::Both, at..at + turn));
        }
        outage
    }

    /// Plays it; tells where data stood still for too long.
    pub fn play(&self, chooser: Chooser) -> Result<(), String> {
        let mut net = self.network(chooser);
        let first = net.wires[0].tuple();
        let wanted: Vec<FourTuple> = net.wires.iter().skip(1).map(|wire| wire.tuple()).collect();
        net.connect(first);
        let mut talk = Talk::new(wanted);
        net.run(&mut talk, Net::START + Duration::from_millis(BEGIN));
        if net.client.get().map_or(0, |connection| connection.path_ids().len()) != self.wires {
            return Err(String::from("the paths are not open in time"));
        }
        if let Some(moved) = self.moved {
            net.wires[moved].outside = SocketAddr::from(([192, 0, 2, 7], 7_000));
        }
        net.run(&mut talk, Net::START + Duration::from_millis(self.end));
        if let Some(failure) = talk.failure {
            return Err(failure);
        }
        for side in Side::BOTH {
            for (wire, span) in self.spans() {
                self.check(&span, self.patience(wire, chooser), &talk.progress[side as usize])
                    .map_err(|problem| format!("{side:?} {problem}"))?;
            }
        }
        Ok(())
    }

    fn network(&self, chooser: Chooser) -> Net {
        let mut config = TransportConfig::new(chooser.factory());
        let hints = Hints {
            rate: Some(Bandwidth::from_mbit(2)),
            delay: Some(Duration::from_micros(2_500)),
            ..Hints::NONE
        };
        let FourTuple { local, remote } = hvq_tests::net::wire::Wire::addresses(0);
        config.set_channels([local, remote].map(|address| ChannelHint::new(address, hints)).to_vec());
        let mut net = Net::new(config.clone(), config, 1);
        for (wire, (spec, _)) in SPECS.iter().enumerate().take(self.wires) {
            let mut spec = (*spec).to_owned();
            for (way, prefix) in [(Way::Up, "up"), (Way::Down, "down")] {
                let dark =
                    self.dark.iter().filter(|(of, which, _)| *of == wire && [way, Way::Both].contains(which));
                let dark: Vec<String> =
                    dark.map(|(.., at)| format!("{}ms..{}ms", at.start, at.end)).collect();
                if !dark.is_empty() {
                    spec += &format!(",{prefix}.blackout={}", dark.join("+"));
                }
            }
            net.wire(&spec);
        }
        net
    }

    /// Returns the spans of time in which each wire carries packets both ways.
    fn spans(&self) -> Vec<(usize, Range<u64>)> {
        let mut spans = Vec::new();
        for wire in 0..self.wires {
            let mut dark: Vec<Range<u64>> =
                self.dark.iter().filter(|(of, ..)| *of == wire).map(|(.., dark)| dark.clone()).collect();
            dark.sort_by_key(|dark| dark.start);
            let mut from = BEGIN;
            for dark in dark {
                if from < dark.start {
                    spans.push((wire, from..dark.start));
                }
                from = from.max(dark.end);
            }
            if from < self.end {
                spans.push((wire, from..self.end));
            }
        }
        spans
    }

    /// The longest that data may stand still while `wire` works: three of its probe timeouts, and what nobody can know
    /// sooner.
    fn patience(&self, wire: usize, chooser: Chooser) -> u64 {
        let (_, own) = SPECS[wire];
        let slowest = SPECS.iter().take(self.wires).map(|(_, timeout)| *timeout).max().unwrap_or(own);
        let unknown = match self.surprise {
            Surprise::None => 0,
            Surprise::Deaths => 2 * slowest,
            Surprise::Flapping => 3 * slowest,
            Surprise::Move => 2 * slowest + INITIAL_RTT,
        };
        let overruled = if matches!(chooser, Chooser::Waiting) { STALL } else { 0 };
        own * 3 + unknown + overruled + INTERVAL.as_millis() as u64
    }

    fn check(&self, span: &Range<u64>, patience: u64, progress: &[Duration]) -> Result<(), String> {
        let mut last = span.start;
        let within = progress.iter().map(|at| at.as_millis() as u64).filter(|at| span.contains(at));
        for at in within.chain([span.end]) {
            if at - last > patience {
                return Err(format!(
                    "read nothing from {last} to {at} ms, though a wire worked from {} to {} ms ({patience} ms)",
                    span.start, span.end
                ));
            }
            last = at;
        }
        Ok(())
    }
}

impl fmt::Display for Outage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} wires, {}", self.wires, self.name)
    }
}
