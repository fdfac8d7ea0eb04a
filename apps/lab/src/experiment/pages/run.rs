//! One page load with one scheme.

use super::belief::Belief;
use super::below::{Below, Flows};
use super::order::Order;
use super::outcome::{ChannelUse, PageOutcome};
use super::scheme::Scheme;
use super::stretch::led;
use crate::pages::Page;
use crate::workload::page_load::{Background, Deployment, Manner, PageLoad, Paths};
use crate::world::cross::Cross;
use crate::world::medium::{self, Medium};
use crate::world::rewards::Rewards;
use crate::world::wire::Wire;
use crate::world::{Net, Radio, Side};
use hvq_emulation::steer::{Branch, Knowledge, Pair, Steered};
use hvq_emulation::{Channel, ChannelSpec, Collapse, Direction, Probability, TraceError};
use hvq_scheduler::{Bandwidth, Hints, PathId, Policy, Sharing};
use hvq_transport::congestion::Algorithm;
use hvq_transport::connection::{
    ChannelHint, FourTuple, HintExchange, Multipath, PathMemory, TransportConfig,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// A load that takes longer has failed.
pub const LIMIT: Duration = Duration::from_secs(60);

/// The UDP payload of datagrams: what fits an Ethernet frame over IPv6.
const DATAGRAM: usize = 1452;

/// The two channels.
#[derive(Clone, Debug, PartialEq)]
pub struct Channels {
    /// Their name in tables and drawings.
    pub name: String,
    /// The channel with the high bandwidth.
    pub embb: ChannelSpec,
    /// The channel with the low latency.
    pub urllc: ChannelSpec,
}

/// The description of a run.
#[derive(Clone, Debug)]
pub struct PageRun {
    /// The page.
    pub page: Arc<Page>,
    /// The manner in which it is loaded.
    pub manner: Manner,
    /// The channels, their traces begun where they are to be.
    pub channels: Channels,
    /// The knowledge of the channels, right or wrong.
    pub belief: Belief,
    /// The order in which connections are told of the channels.
    pub order: Order,
    /// The scheme by which they are used.
    pub scheme: Scheme,
    /// The controller of every path.
    pub congestion: Algorithm,
    /// The repetition, counted from 0.
    pub repetition: u32,
    /// The further notes.
    pub notes: Notes,
    /// The seed of everything random.
    pub seed: u64,
}

/// The notes of a run besides times and bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Notes {
    /// The notes that cost nothing.
    #[default]
    Few,
    /// These and the errors of the rewards that the policy of two paths expects.
    Rewards,
}

/// The channels, of two, that connections are opened over.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reach {
    /// Both, the first as the policy says.
    Both,
    /// The one with the high bandwidth.
    Embb,
    /// The one with the low latency.
    Urllc,
}

/// The end of a load.
#[derive(Clone, PartialEq, Debug)]
pub enum Ending {
    /// The page load time.
    Loaded(Duration),
    /// A connection that the load needed is over, for this reason.
    Failed(String),
    /// The load still went on at the limit; a description of the network then.
    Stuck(String),
}

impl PageRun {
    /// Loads the page with the policy of two paths, over the channels in `reach` alone: the transport, what it is told of
    /// the channels and its controllers are the same for all three. The load ends `limit` after its beginning at the latest.
    ///
    /// # Errors
    ///
    /// A trace cannot be read.
    pub fn ending(&self, reach: Reach, limit: Duration) -> Result<Ending, TraceError> {
        let mut net = self.net()?;
        let both = self.connect(&mut net)?;
        let paths = match (reach, both.second) {
            (Reach::Both, _) | (_, None) => both,
            (one, Some(second)) => {
                let [urllc, embb] = self.order.of([both.first, second]);
                Paths { first: if one == Reach::Embb { embb } else { urllc }, second: None }
            }
        };
        let mut load = PageLoad::new(&self.page, self.manner, paths);
        net.run(&mut load, Net::START + self.manner.deployment.lead() + limit);
        Ok(match (load.page_load_time(), load.failure()) {
            (Some(time), _) => Ending::Loaded(time),
            (None, Some(failure)) => Ending::Failed(failure.to_owned()),
            (None, None) => Ending::Stuck(net.describe()),
        })
    }

    /// Runs it. Fails if a trace cannot be read; what happens to the load is part of the outcome.
    pub fn outcome(&self) -> Result<PageOutcome, TraceError> {
        let mut net = self.net()?;
        let paths = self.connect(&mut net)?;
        net.crosses = self.crosses()?;
        let listens = self.notes == Notes::Rewards && paths.second.is_some();
        net.rewards = listens.then(Rewards::default);
        let mut load = PageLoad::new(&self.page, self.shared(), paths).with_rewards(net.rewards.clone());
        let begin = Net::START + self.manner.deployment.lead();
        net.run(&mut load, begin);
        let before = self.usage(&net);
        net.run(&mut load, begin + LIMIT);
        let after = self.usage(&net);
        let (embb, urllc) = (after.0.since(before.0), after.1.since(before.1));
        let loaded = load.page_load_time();
        let late = || format!("not loaded after {} s", LIMIT.as_secs());
        Ok(PageOutcome {
            page: self.page.id.clone(),
            channels: self.channels.name.clone(),
            scheme: self.scheme,
            repetition: self.repetition,
            plt_ms: loaded.map(milliseconds),
            embb,
            urllc,
            noted: noted(&net, self.manner.deployment.lead()),
            ends_ms: load.ends().into_iter().map(milliseconds).collect(),
            progress_ms: load.progress().into_iter().map(milliseconds).collect(),
            failure: loaded.is_none().then(|| load.failure().map_or_else(late, str::to_owned)),
        })
    }

    /// The manner of the load, with the connections to a gateway that the scheme asks for.
    fn shared(&self) -> Manner {
        let connections = match self.scheme {
            Scheme::Below(Below::DChannel(rule)) => rule.flows,
            _ => 1,
        };
        Manner { connections, ..self.manner }
    }

    /// The network without its channels.
    fn net(&self) -> Result<Net, TraceError> {
        let mut net = Net::new(self.config(Side::Client)?, self.config(Side::Server)?, self.seed);
        if self.manner.deployment.resumes() {
            net.resume_sessions();
        }
        net.radio = Radio::Common;
        Ok(net)
    }

    /// The controller of this run. HyStart++ (RFC 9406) takes a packet's change of channel for a queue and ends slow start;
    /// what the papers measured shows no trace of that (NSDI 2023, Table 5: half the load time saved at 100 ms), so steered
    /// packets get CUBIC without it. In the papers' deployment all that stands for one TCP connection has that same
    /// sender, so that what is compared differs in the channels alone.
    fn controller(&self) -> Algorithm {
        let same_sender = self.manner.deployment.greets();
        match (self.scheme, self.congestion) {
            (Scheme::Below(Below::DChannel(rule)), Algorithm::Cubic) => rule.slow_start.cubic(),
            (Scheme::EmbbWith(slow_start), Algorithm::Cubic) => slow_start.cubic(),
            (Scheme::Below(_), Algorithm::Cubic) => Algorithm::PlainCubic,
            (Scheme::EmbbAlone | Scheme::UrllcAlone | Scheme::Ideal, Algorithm::Cubic) if same_sender => {
                Algorithm::PlainCubic
            }
            (_, controller) => controller,
        }
    }

    fn config(&self, side: Side) -> Result<TransportConfig, TraceError> {
        let policy = self.scheme.policy(side);
        let mut config = TransportConfig::new(Arc::new(move || policy.scheduler()));
        config.set_datagram_size(DATAGRAM.into());
        config.set_congestion(self.controller().into());
        config.set_multipath(Multipath::Off);
        config.set_queue_bound(self.scheme.queue_bound(side));
        config.set_path_memory(self.manner.deployment.path_memory());
        if matches!(self.scheme, Scheme::Foreign(_)) && side == Side::Server {
            config.set_path_hints(HintExchange::Off);
            config.set_path_memory(PathMemory::Off);
        }
        if self.scheme.has_paths() {
            config.set_multipath(Multipath::UpTo(PathId(3)));
            let mut channels = Vec::new();
            if self.scheme.hears(side) && self.belief.informed.includes(side) {
                channels = [self.guaranteed()?, self.rumoured()?].concat();
            }
            if self.manner.deployment == Deployment::Revisited {
                self.name_links(&mut channels);
            }
            config.set_channels(channels);
        }
        Ok(config)
    }

    /// Names the links of all hosts in `channels`, for what is remembered of their paths. Here both interfaces of a host have one IP
    /// address, by which they cannot be told apart.
    fn name_links(&self, channels: &mut Vec<ChannelHint>) {
        for wire in [0, 1] {
            for address in self.servers(wire).into_iter().chain([Wire::addresses(wire).local]) {
                let known = channels.iter().position(|channel| channel.local == address);
                let index = known.unwrap_or(channels.len());
                if known.is_none() {
                    channels.push(ChannelHint::new(address, Hints::NONE));
                }
                channels[index].link = Some(address.to_string().into());
            }
        }
    }

    /// Returns the hints about eMBB at the client and where connections end that begin on URLLC; usually none.
    fn rumoured(&self) -> Result<Vec<ChannelHint>, TraceError> {
        let [_, embb] = self.order.of([0, 1]);
        let FourTuple { local, remote } = Wire::addresses(embb);
        let ends = [(local, Direction::Up), (remote, Direction::Down)];
        let hint = |(address, direction)| -> Result<Option<ChannelHint>, TraceError> {
            let hints = self.belief.of_embb(self.channels.embb.typical(direction)?);
            Ok(hints.map(|hints| ChannelHint::new(address, hints)))
        };
        let hints: Result<Vec<Option<ChannelHint>>, TraceError> = ends.into_iter().map(hint).collect();
        Ok(hints?.into_iter().flatten().collect())
    }

    /// Returns the operator's guarantees of URLLC, by the addresses of all hosts; of eMBB nobody knows anything in
    /// advance.
    fn guaranteed(&self) -> Result<Vec<ChannelHint>, TraceError> {
        let shared = if self.is_alone() { Sharing::Dedicated } else { Sharing::Endpoint };
        let hints = |direction| -> Result<Hints, TraceError> {
            let typical = self.channels.urllc.typical(direction)?;
            Ok(self.belief.of_urllc(Hints {
                rate: typical.rate.map(|rate| Bandwidth::from_bits_per_second(rate.bits_per_second())),
                delay: Some(typical.delay),
                shared,
                ..Hints::NONE
            }))
        };
        let down = hints(Direction::Down)?;
        let [urllc, _] = self.order.of([0, 1]);
        let local = Wire::addresses(urllc).local;
        let of_servers = self.servers(urllc).into_iter().map(|address| ChannelHint::new(address, down));
        Ok([ChannelHint::new(local, hints(Direction::Up)?)].into_iter().chain(of_servers).collect())
    }

    /// Returns true if a single connection has the channels for itself.
    fn is_alone(&self) -> bool {
        self.manner.deployment == Deployment::Gateway
            && !matches!(self.manner.background, Background::Bulk(_))
    }

    /// The addresses of all servers at the far end of `wire`.
    fn servers(&self, wire: u16) -> Vec<SocketAddr> {
        let paths = Paths { first: Wire::addresses(wire), second: None };
        let mut servers = vec![paths.first.remote];
        if !self.is_alone() {
            let flows = 0..self.manner.background.flows();
            servers.extend(flows.map(|index| paths.to_background(index).first.remote));
        }
        if self.manner.deployment != Deployment::Gateway {
            let domains: BTreeSet<u32> = self.page.objects.iter().map(|object| object.domain).collect();
            let numbers = domains.into_iter().flat_map(|domain| self.manner.deployment.servers(domain));
            servers.extend(numbers.map(|number| paths.to_domain(number).first.remote));
        }
        servers
    }

    /// Puts the channels into `net`, two of them in the order of the run: handshakes are on the first.
    fn connect(&self, net: &mut Net) -> Result<Paths, TraceError> {
        let Channels { embb, urllc, .. } = &self.led();
        let plain = |net: &mut Net, spec: &ChannelSpec| {
            let channel = Channel::new(spec, net.dice())?;
            Ok(net.join(Medium::Plain(Box::new(channel))))
        };
        Ok(match self.scheme {
            Scheme::EmbbAlone | Scheme::EmbbWith(_) => Paths { first: plain(net, embb)?, second: None },
            Scheme::UrllcAlone => Paths { first: plain(net, urllc)?, second: None },
            Scheme::Ideal => Paths { first: plain(net, &ideal(&self.led())?)?, second: None },
            Scheme::Below(below) => {
                let steered = self.steered(below, net.dice())?;
                Paths { first: net.join(Medium::Steered(Box::new(steered))), second: None }
            }
            Scheme::Paths(_) | Scheme::Bound(_) | Scheme::Told(_) | Scheme::Foreign(_) => {
                let [one, other] = self.order.of([urllc, embb]);
                let first = plain(net, one)?;
                Paths { first, second: Some(plain(net, other)?) }
            }
        })
    }

    /// The traffic of others on URLLC, or on the ideal channel in its place.
    fn crosses(&self) -> Result<Vec<Cross>, TraceError> {
        let Background::OnUrllc { percent } = self.manner.background else { return Ok(Vec::new()) };
        let wire = match self.scheme {
            Scheme::EmbbAlone | Scheme::EmbbWith(_) => return Ok(Vec::new()),
            scheme if scheme.has_paths() => self.order.of([0, 1])[0],
            _ => 0,
        };
        let flow = |direction| -> Result<Option<Cross>, TraceError> {
            let rate = self.channels.urllc.typical(direction)?.rate;
            let taken = rate.map(|rate| rate.bits_per_second() * u64::from(percent) / 100);
            let taken = taken.filter(|taken| *taken > 0);
            Ok(taken.map(|taken| Cross::new(wire, direction, taken, self.seed)))
        };
        Ok([flow(Direction::Up)?, flow(Direction::Down)?].into_iter().flatten().collect())
    }

    /// The channels, eMBB's trace begun so that the load meets the place that was chosen.
    fn led(&self) -> Channels {
        let embb = led(&self.channels.embb, self.manner.deployment.lead());
        Channels { embb, ..self.channels.clone() }
    }

    /// Returns the purposes of flows. If every domain has a server of its own, the first host is the resolver of names.
    fn flows(&self) -> Flows {
        let paths = Paths { first: Wire::addresses(0), second: None };
        let resolver = match self.manner.deployment {
            Deployment::Gateway => None,
            _ => Some(medium::flow(paths.first.remote)),
        };
        let background = (0..self.manner.background.flows())
            .map(|index| medium::flow(paths.to_background(index).first.remote))
            .collect();
        Flows { resolver, background }
    }

    fn steered(&self, below: Below, dice: u64) -> Result<Steered<crate::world::wire::Packet>, TraceError> {
        let Channels { embb, urllc, .. } = &self.led();
        let known = |direction| -> Result<Knowledge, TraceError> {
            let (embb, urllc) = (embb.typical(direction)?, urllc.typical(direction)?);
            let unlimited = hvq_emulation::Bandwidth::from_bits_per_second(u64::MAX);
            Ok(Knowledge {
                high_bandwidth_delay: embb.delay,
                low_latency_delay: urllc.delay,
                low_latency_rate: urllc.rate.map_or(unlimited, |rate| self.belief.rate(rate)),
            })
        };
        let flows = self.flows();
        let [up, down] = [Direction::Up, Direction::Down]
            .map(|direction| known(direction).map(|known| below.steerer(direction, known, &flows)));
        let pair = Pair { high_bandwidth: embb.clone(), low_latency: urllc.clone() };
        Ok(Steered::new(&pair, dice, up?, down?)?.with_reordering(below.reordering()))
    }

    /// Returns the traffic over eMBB and over URLLC so far.
    fn usage(&self, net: &Net) -> (ChannelUse, ChannelUse) {
        let plain = |index: usize| {
            let wire = &net.wires[index];
            let left = |direction| wire.channel.link(direction).statistics().left.bytes;
            ChannelUse { up: left(Direction::Up), down: left(Direction::Down) }.since(crossed(wire))
        };
        let none = ChannelUse::default();
        match (self.scheme, net.wires[0].channel.steered()) {
            (_, Some(steered)) => {
                let branch = |branch| {
                    let [up, down] = [Direction::Up, Direction::Down]
                        .map(|direction| steered.statistics(branch, direction).left.bytes);
                    ChannelUse { up, down }
                };
                (branch(Branch::HighBandwidth), branch(Branch::LowLatency).since(crossed(&net.wires[0])))
            }
            (scheme, None) if scheme.has_paths() => {
                let [urllc, embb] = self.order.of([plain(0), plain(1)]);
                (embb, urllc)
            }
            (Scheme::UrllcAlone, None) => (none, plain(0)),
            (_, None) => (plain(0), none),
        }
    }
}

/// The bytes of others that `wire` delivered.
const fn crossed(wire: &Wire) -> ChannelUse {
    ChannelUse { up: wire.up.crossed, down: wire.down.crossed }
}

/// `time` in milliseconds, to three places.
fn milliseconds(time: Duration) -> f64 {
    time.as_micros() as f64 / 1e3
}

/// One channel with the delay of URLLC and the rate of both: what eMBB carries at each moment, nothing while it is cut,
/// and beside that what URLLC carries.
pub(in crate::experiment) fn ideal(channels: &Channels) -> Result<ChannelSpec, TraceError> {
    let mut spec = channels.embb.clone();
    for (direction, link, urllc) in [
        (Direction::Up, &mut spec.up, &channels.urllc.up),
        (Direction::Down, &mut spec.down, &channels.urllc.down),
    ] {
        link.delay = urllc.delay.clone();
        (link.drx, link.detours) = (None, Vec::new());
        let cut = link.blackouts.drain(..);
        link.collapses.extend(cut.map(|during| Collapse { during, left: Probability::NEVER }));
        link.extra = channels.urllc.typical(direction)?.rate;
    }
    Ok(spec)
}

/// Returns the further measurements: of a steerer, bytes in the reordering buffers of both sides while the page was
/// loaded (NSDI 2023, Table 3), and the difference between the expected and the true gain of packets on URLLC, in
/// milliseconds (Fig. 11).
fn noted(net: &Net, lead: Duration) -> BTreeMap<String, f64> {
    let mut noted = BTreeMap::new();
    if let Some(rewards) = &net.rewards {
        note_errors(&mut noted, rewards.errors());
    }
    if let Some(steered) = net.wires[0].channel.steered() {
        note_steered(&mut noted, steered, (lead, net.elapsed()));
    }
    // Results are written as text and read again: what is short comes back as it was.
    noted.values_mut().for_each(|value| *value = (*value * 1e3).round() / 1e3);
    noted
}

fn note_steered(
    noted: &mut BTreeMap<String, f64>,
    steered: &Steered<crate::world::wire::Packet>,
    (lead, now): (Duration, Duration),
) {
    for (side, direction) in [("proxy", Direction::Up), ("client", Direction::Down)] {
        let occupancy = steered.occupancy(direction);
        noted.insert(format!("{side}_buffer_mean_bytes"), occupancy.mean(lead, now));
        noted.insert(format!("{side}_buffer_most_bytes"), occupancy.most() as f64);
    }
    let errors = [Direction::Up, Direction::Down].map(|direction| steered.reward_errors(direction));
    note_errors(noted, errors.concat());
}

fn note_errors(noted: &mut BTreeMap<String, f64>, errors: Vec<f64>) {
    let mut errors: Vec<f64> = errors.into_iter().map(f64::abs).collect();
    errors.sort_by(f64::total_cmp);
    for (name, share) in [("reward_error_p50_ms", 0.5), ("reward_error_p90_ms", 0.9)] {
        let index = (errors.len() as f64 * share) as usize;
        noted.extend(errors.get(index).map(|error| (name.to_owned(), *error)));
    }
}

/// Returns true if `policy` gets the hints about the channels. The schedulers of multipath transports measure instead:
/// with a guaranteed rate the transport would pace URLLC for them, and spare them the queue that makes MPTCP slow there
/// (NSDI 2023, Fig. 3).
pub(in crate::experiment) fn is_told(policy: Policy) -> bool {
    use Policy::{Blest, Ecf, MinRtt, Redundant, RoundRobin, Sttf, Weighted, Xlink, XlinkAlways};
    !matches!(policy, MinRtt | RoundRobin | Weighted | Redundant | Ecf | Blest | Sttf | Xlink | XlinkAlways)
}
