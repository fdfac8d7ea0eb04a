//! Random cells: a seed and a number decide everything.

use super::cell::OutageCell;
use super::outage::{Outage, OutageKind, Pattern};
use crate::experiment::pages::Reach;
use crate::pages::{Page, builtin};
use crate::workload::page_load::{Deployment, Interaction, single};
use hvq_emulation::{Bandwidth, ChannelSpec, Direction, Interval, Probability, QueueLimit};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::sync::Arc;
use std::time::Duration;

/// The pages, light ones.
const PAGES: [&str; 6] = ["p34", "p05", "p07", "p30", "p12", "p19"];
/// The packets that queues hold.
const QUEUES: [usize; 4] = [8, 30, 100, 800];
/// The share of channels that lose packets at random.
const LOSSY: f64 = 0.4;
/// The length of flapping, from the start of the load.
const FLAPPING: Duration = Duration::from_secs(30);
/// The deployments, each as often as it stands there.
const DEPLOYMENTS: [Deployment; 12] = [
    Deployment::Gateway,
    Deployment::Gateway,
    Deployment::Gateway,
    Deployment::Gateway,
    Deployment::Cold,
    Deployment::Cold,
    Deployment::Cold,
    Deployment::Resumed,
    Deployment::Resumed,
    Deployment::TcpTls,
    Deployment::TcpTls,
    Deployment::Http1,
];

/// Cell `number` of `seed`.
pub fn drawn(seed: u64, number: u32) -> OutageCell {
    let mixed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(u64::from(number));
    let mut draw = Draw { dice: StdRng::seed_from_u64(mixed) };
    let kind = draw.one_of(&OutageKind::ALL);
    let deployment = draw.one_of(&DEPLOYMENTS);
    let urllc = draw.channel((2.0, 40.0), (0.5, 20.0));
    let embb = draw.channel((15.0, 200.0), (2.0, 200.0));
    let page = Arc::new(draw.load());
    let outages = draw.outages(kind, deployment.lead());
    OutageCell { name: number.to_string(), kind, page, deployment, embb, urllc, outages, seed: mixed }
}

/// The dice of one cell.
struct Draw {
    dice: StdRng,
}

impl Draw {
    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.dice.random_range(0..choices.len())]
    }

    /// A number whose logarithm is uniform.
    fn between(&mut self, (low, high): (f64, f64)) -> f64 {
        low * (high / low).powf(self.dice.random::<f64>())
    }

    /// A time in whole milliseconds, from seconds.
    fn time(&mut self, seconds: (f64, f64)) -> Duration {
        Duration::from_millis((self.between(seconds) * 1e3).round() as u64)
    }

    /// A channel with a round-trip time in milliseconds and a rate in Mbit/s out of these ranges.
    fn channel(&mut self, rtt: (f64, f64), rate: (f64, f64)) -> ChannelSpec {
        let rtt = Duration::from_millis(self.between(rtt).round() as u64);
        let kilobits = (self.between(rate) * 1e3).round() as u64;
        let mut spec = ChannelSpec::constant(rtt, Bandwidth::from_bits_per_second(kilobits * 1_000));
        let queue = QueueLimit::Packets(self.one_of(&QUEUES));
        let loss = match self.dice.random_bool(LOSSY) {
            true => Probability::new((self.between((0.0005, 0.03)) * 1e4).round() / 1e4),
            false => None,
        };
        for link in [&mut spec.up, &mut spec.down] {
            link.queue = queue;
            link.loss = loss.unwrap_or_default();
        }
        spec
    }

    /// A page, a download, or a stream of small requests.
    fn load(&mut self) -> Page {
        match self.dice.random_range(0..10) {
            0..4 => builtin::page(self.one_of(&PAGES)).expect("the pages are compiled in"),
            4..7 => single((self.between((20e3, 4e6))).round() as u64),
            _ => {
                let number = self.between((10.0, 300.0)).round() as u32;
                let answer = self.between((200.0, 4_000.0)).round() as u64;
                let page = Interaction::Exchanges { number, answer }.page();
                Page { id: format!("{number} requests of {answer} bytes"), ..page }
            }
        }
    }

    fn outages(&mut self, kind: OutageKind, lead: Duration) -> Vec<Outage> {
        let channel = self.one_of(&[Reach::Embb, Reach::Urllc]);
        let begin = lead + self.time((0.02, 3.0));
        let end = |draw: &mut Self, from: Duration| from + draw.time((0.2, 20.0));
        match kind {
            OutageKind::Start => vec![Outage::once(channel, Duration::ZERO, end(self, lead))],
            OutageKind::Middle => vec![Outage::once(channel, begin, end(self, begin))],
            OutageKind::OneWay => {
                let way = self.one_of(&[Direction::Up, Direction::Down]);
                let until = end(self, begin);
                let from = self.one_of(&[Duration::ZERO, begin]);
                vec![Outage { way: Some(way), ..Outage::once(channel, from, until) }]
            }
            OutageKind::Both => {
                let from = self.one_of(&[begin, begin, begin, Duration::ZERO]);
                let back = [end(self, begin), end(self, begin)];
                vec![Outage::once(Reach::Embb, from, back[0]), Outage::once(Reach::Urllc, from, back[1])]
            }
            OutageKind::Turns => {
                let until = end(self, begin);
                let other = if channel == Reach::Embb { Reach::Urllc } else { Reach::Embb };
                // From half a second before the first is back to two seconds after.
                let next = (until + self.time((0.001, 2.5))).saturating_sub(Duration::from_millis(500));
                let next = next.max(begin);
                vec![Outage::once(channel, begin, until), Outage::once(other, next, end(self, next))]
            }
            OutageKind::Flapping => {
                let both = [Reach::Embb, Reach::Urllc];
                let flapping = self.one_of(&[1, 2]);
                let channels = if flapping == 2 { &both[..] } else { &[channel][..] };
                channels.iter().map(|channel| self.flapping(*channel, lead)).collect()
            }
        }
    }

    fn flapping(&mut self, channels: Reach, lead: Duration) -> Outage {
        let period = self.time((0.05, 20.0));
        let dark = period.mul_f64(self.dice.random_range(0.2..0.8));
        let way = self.one_of(&[None, None, Some(Direction::Up), Some(Direction::Down)]);
        let begin = lead + self.time((0.001, 1.0));
        let from = self.one_of(&[Duration::ZERO, begin]);
        let during = Interval { from, until: lead + FLAPPING };
        Outage { channels, way, pattern: Pattern::Flapping { during, period, dark } }
    }
}
