//! Packets and frames by channel: of connections that exist, and of those that have ended.

use hvq::stats::{ConnectionStats, DatagramStats};
use hvq::transport::hashing::shrink;
use hvq::{ChannelOptions, Connection, PathId};
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;

/// Addresses that are told apart; the rest is one. Sockets are few, but one bound to all addresses has many.
const TOLD_APART: usize = 64;
/// The label of everything that is not told apart.
const OTHER: &str = "other";

/// The traffic over a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Volume {
    /// Bytes of UDP payload sent.
    pub(super) sent: u64,
    /// Bytes of UDP payload received.
    pub(super) received: u64,
    /// Packets declared lost.
    pub(super) lost: u64,
}

/// Frames of one kind on one channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Frames {
    pub(super) sent: u64,
    pub(super) sent_bytes: u64,
    pub(super) received: u64,
}

/// Sums by channel.
#[derive(Clone, Debug, Default)]
pub(super) struct Sums {
    pub(super) volumes: BTreeMap<String, Volume>,
    pub(super) frames: BTreeMap<(String, &'static str), Frames>,
    /// The counters of datagrams.
    pub(super) datagrams: DatagramStats,
    /// Paths that are open now.
    pub(super) paths: BTreeMap<String, u64>,
}

/// Traffic over all connections.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    names: Vec<ChannelOptions>,
    /// Connections that exist, by when they began, with the channels of the paths that they had.
    open: HashMap<u64, (Connection, HashMap<PathId, String>)>,
    past: Sums,
    begun: u64,
}

impl Traffic {
    pub(super) fn name(&mut self, channels: &[ChannelOptions]) {
        self.names = channels.to_vec();
    }

    /// A connection begins; returns its number, which no other has, of whatever worker it is.
    pub(super) fn begun(&mut self, connection: &Connection) -> u64 {
        self.begun += 1;
        self.open.insert(self.begun, (connection.clone(), HashMap::new()));
        self.begun
    }

    /// The connection with this number ended.
    pub(super) fn ended(&mut self, number: u64) {
        if let Some((connection, mut channels)) = self.open.remove(&number) {
            let stats = connection.stats();
            label(&self.names, &stats, &mut channels);
            self.past.add(&stats, &channels);
        }
        shrink(&mut self.open);
    }

    /// The sums as they stand.
    pub(super) fn sums(&mut self) -> Sums {
        let mut sums = self.past.clone();
        for (connection, channels) in self.open.values_mut() {
            let stats = connection.stats();
            label(&self.names, &stats, channels);
            for path in &stats.paths {
                let channel = channels.get(&path.id).map_or(OTHER, String::as_str);
                let channel = told_apart(&sums.volumes, channel).to_owned();
                *sums.paths.entry(channel).or_default() += 1;
            }
            sums.add(&stats, channels);
        }
        sums
    }
}

/// Notes which channels the open paths are on.
fn label(names: &[ChannelOptions], stats: &ConnectionStats, channels: &mut HashMap<PathId, String>) {
    for path in &stats.paths {
        channels.insert(path.id, channel(names, path.tuple.local));
    }
}

/// The name of the channel that `local` belongs to, or else the address.
fn channel(names: &[ChannelOptions], local: SocketAddr) -> String {
    let named = names.iter().find(|channel| channel.hint_for(local).is_some());
    named.map_or_else(|| local.to_string(), |channel| channel.name.clone())
}

fn told_apart<'a>(known: &BTreeMap<String, Volume>, channel: &'a str) -> &'a str {
    if known.len() >= TOLD_APART && !known.contains_key(channel) { OTHER } else { channel }
}

impl Sums {
    fn add(&mut self, stats: &ConnectionStats, channels: &HashMap<PathId, String>) {
        for path in &stats.paths {
            let channel = channels.get(&path.id).map_or(OTHER, String::as_str);
            let channel = told_apart(&self.volumes, channel).to_owned();
            let volume = self.volumes.entry(channel).or_default();
            volume.sent += path.counters.bytes_sent;
            volume.received += path.counters.bytes_received;
            volume.lost += path.counters.packets_lost;
        }
        self.datagrams += stats.datagrams;
        for frame in &stats.frames {
            let channel = channels.get(&frame.path).map_or(OTHER, String::as_str);
            let channel = told_apart(&self.volumes, channel).to_owned();
            let frames = self.frames.entry((channel, frame.kind)).or_default();
            frames.sent += frame.sent;
            frames.sent_bytes += frame.sent_bytes;
            frames.received += frame.received;
        }
    }
}
