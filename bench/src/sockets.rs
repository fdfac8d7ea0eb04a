//! Measurements over loopback and over emulated channels: two processes for each, contenders in turn, rounds one after
//! the other.

use crate::contender::{Account, Contender, Job, Material, Side, Task};
use crate::figures::{Figure, Measure};
use crate::meter::Usage;
use crate::worker;
use anyhow::Result;
use hvq_emulation::relay::Relay;
use hvq_emulation::{Bandwidth, ChannelSpec};
use serde::Serialize;
use std::net::SocketAddr;
use std::time::Duration;

/// Bytes of a GiB.
const GIB: f64 = (1u64 << 30) as f64;
/// A transfer that is slower than this is given up, in bytes per second.
const SLOWEST: u64 = 4_000_000;
/// The time that anything else may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// The rate of each emulated channel.
pub const CHANNEL_RATE: Bandwidth = Bandwidth::from_megabits_per_second(200);
/// The rates of unequal channels.
const UNEQUAL_RATES: [Bandwidth; 2] =
    [Bandwidth::from_megabits_per_second(200), Bandwidth::from_megabits_per_second(50)];
/// The round-trip time of each.
const CHANNEL_RTT: Duration = Duration::from_millis(10);

/// The way of the datagrams.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// From socket to socket.
    Loopback,
    /// Through an emulated channel for each path, all of them equal.
    Channels,
    /// Through two emulated channels, the second of a quarter of the first one's rate.
    UnequalChannels,
}

/// One measurement of one contender.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Trial {
    /// The contender.
    pub contender: Contender,
    /// The round, from 0.
    pub round: usize,
    /// The job.
    pub job: Job,
    /// The way of the datagrams.
    pub way: Way,
    /// The size of full datagrams in bytes.
    pub datagram: u16,
}

/// The results of a trial.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Sample {
    /// The trial.
    #[serde(flatten)]
    pub trial: Trial,
    /// The server's measurements.
    pub server: Account,
    /// The client's measurements.
    pub client: Account,
}

/// Does what `trial` says.
pub async fn measure(trial: Trial, material: &Material) -> Result<Sample> {
    let Trial { contender, job, datagram, .. } = trial;
    let task = Task { contender, side: Side::Server, job, datagram, material: material.clone() };
    let patience = match job {
        Job::Bulk { bytes } | Job::Upload { bytes } => Duration::from_secs(20 + bytes / SLOWEST),
        Job::Idle { connections } => PATIENCE + Duration::from_millis(10) * connections,
        Job::Many { connections, bytes } => {
            Duration::from_secs(60 + u64::from(connections) * bytes / SLOWEST)
        }
        _ => PATIENCE,
    };
    let mut relays = Vec::new();
    let rates = match trial.way {
        Way::Loopback => None,
        Way::Channels => Some([CHANNEL_RATE; 2]),
        Way::UnequalChannels => Some(UNEQUAL_RATES),
    };
    let pair = worker::run(task, patience, |addresses| {
        let Some(rates) = rates else { return Ok(addresses) };
        for (upstream, rate) in addresses.iter().zip(rates) {
            let spec = ChannelSpec::constant(CHANNEL_RTT, rate);
            let listen = SocketAddr::new(upstream.ip(), 0);
            relays.push(Relay::start(listen, *upstream, spec, 1)?);
        }
        Ok(relays.iter().map(|relay| relay.local_addr()).collect())
    })
    .await?;
    Ok(Sample { trial, server: pair.server, client: pair.client })
}

impl Sample {
    fn figure(&self, measure: Measure, value: f64) -> Figure {
        Figure { measure, contender: self.trial.contender, round: self.trial.round, value }
    }

    /// The figures of transfers of `bytes` bytes on each of so many connections.
    fn of_many(&self, connections: u32, bytes: u64) -> Vec<Figure> {
        let seconds = self.client.usage.elapsed;
        let bytes = f64::from(connections) * bytes as f64;
        let mut figures = vec![
            self.figure(Measure::ManyRate(connections), bytes * 8e-6 / seconds),
            self.figure(Measure::ManySender(connections), self.server.usage.cpu() / bytes * GIB),
            self.figure(Measure::ManyReceiver(connections), self.client.usage.cpu() / bytes * GIB),
        ];
        if self.server.datagrams_sent > 0 {
            let lost = self.server.packets_lost as f64 / self.server.datagrams_sent as f64;
            figures.push(self.figure(Measure::ManyLost(connections), lost * 100.0));
        }
        figures
    }

    /// Returns the figures of the sample.
    pub fn figures(&self) -> Vec<Figure> {
        let figure = |measure, value| self.figure(measure, value);
        let seconds = self.client.usage.elapsed;
        match (self.trial.job, self.trial.way) {
            (Job::Bulk { bytes }, Way::Loopback) => {
                let gibibytes = bytes as f64 / GIB;
                let cpu = |usage: &Usage| usage.cpu() / gibibytes;
                let datagram = self.trial.datagram;
                vec![
                    figure(Measure::BulkRate(datagram), bytes as f64 * 8e-6 / seconds),
                    figure(Measure::BulkSender(datagram), cpu(&self.server.usage)),
                    figure(Measure::BulkReceiver(datagram), cpu(&self.client.usage)),
                ]
            }
            (Job::Bulk { bytes }, Way::Channels) => {
                let channels = if self.trial.contender == Contender::HvqTwoPaths { 2.0 } else { 1.0 };
                let most = CHANNEL_RATE.bits_per_second() as f64 * channels;
                vec![figure(Measure::Channels, bytes as f64 * 8.0 / seconds / most)]
            }
            (Job::Bulk { bytes }, Way::UnequalChannels) => {
                let most: u64 = UNEQUAL_RATES.iter().map(|rate| rate.bits_per_second()).sum();
                vec![figure(Measure::UnequalChannels, bytes as f64 * 8.0 / seconds / most as f64)]
            }
            (Job::Upload { bytes }, _) => vec![
                figure(Measure::UploadRate, bytes as f64 * 8e-6 / seconds),
                figure(Measure::UploadSender, self.client.usage.cpu() / bytes as f64 * GIB),
            ],
            (Job::Handshakes { count }, _) => {
                vec![figure(Measure::Handshakes, f64::from(count) / self.server.usage.elapsed)]
            }
            (Job::Requests { count, at_once }, _) => {
                let latency = self.client.latency.unwrap_or_default();
                vec![
                    figure(Measure::Requests(at_once), f64::from(count) / seconds),
                    figure(Measure::RequestP99(at_once), latency.p99 * 1e3),
                ]
            }
            (Job::Many { connections, bytes }, _) => self.of_many(connections, bytes),
            (Job::Idle { connections }, _) => {
                let each = |account: &Account| account.resident as f64 / f64::from(connections) / 1024.0;
                vec![
                    figure(Measure::Memory, each(&self.server)),
                    figure(Measure::ClientMemory, each(&self.client)),
                ]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(contender: Contender, job: Job, way: Way) -> Sample {
        let usage = Usage { elapsed: 2.0, user: 1.0, system: 0.5 };
        let account = Account { usage, resident: 2 << 20, ..Account::default() };
        let trial = Trial { contender, round: 3, job, way, datagram: 1200 };
        Sample { trial, server: account, client: account }
    }

    #[test]
    fn figures_are_for_a_gibibyte_and_for_a_second() {
        let bulk = sample(Contender::Hvq, Job::Bulk { bytes: 1 << 29 }, Way::Loopback).figures();
        assert_eq!(bulk[0].measure, Measure::BulkRate(1200));
        assert!((bulk[0].value - 2147.48).abs() < 0.01);
        assert_eq!((bulk[1].value, bulk[2].value, bulk[2].round), (3.0, 3.0, 3));
        let requests = Job::Requests { count: 500, at_once: 100 };
        assert_eq!(sample(Contender::Quinn, requests, Way::Loopback).figures()[0].value, 250.0);
        let idle = Job::Idle { connections: 2 };
        assert_eq!(sample(Contender::Noq, idle, Way::Loopback).figures()[0].value, 1024.0);
    }

    #[test]
    fn an_upload_is_the_work_of_the_client() {
        let upload = sample(Contender::Hvq, Job::Upload { bytes: 1 << 30 }, Way::Loopback).figures();
        assert_eq!((upload[0].measure, upload[1].measure), (Measure::UploadRate, Measure::UploadSender));
        assert!((upload[0].value - 4294.97).abs() < 0.01);
        assert_eq!(upload[1].value, 1.5);
    }

    #[test]
    fn two_channels_have_twice_the_rate_of_one() {
        let bytes = CHANNEL_RATE.bits_per_second() / 4;
        let share = |contender| sample(contender, Job::Bulk { bytes }, Way::Channels).figures()[0].value;
        assert_eq!(share(Contender::Hvq), 1.0);
        assert_eq!(share(Contender::HvqTwoPaths), 0.5);
        let bytes = 250_000_000 / 4;
        let unequal = sample(Contender::HvqTwoPaths, Job::Bulk { bytes }, Way::UnequalChannels).figures();
        assert_eq!((unequal[0].measure, unequal[0].value), (Measure::UnequalChannels, 1.0));
    }
}
