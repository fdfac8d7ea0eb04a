//! One run: a download over one arrangement of the channels.

use super::arrangement::{Arrangement, Setting, Wires, connect, tell};
use super::observed::{Observed, RttSample, RttSamples};
use super::outcome::{ControllerOutcome, Milliseconds, Queue, Series, megabits, milliseconds};
use crate::workload::bulk::Download;
use crate::world::Net;
use hvq_emulation::steer::Branch;
use hvq_emulation::{Direction, DropReason, LinkStatistics, TraceError};
use hvq_scheduler::{Hints, PathId, Policy};
use hvq_transport::congestion::Algorithm;
use hvq_transport::connection::TransportConfig;
use std::sync::Arc;
use std::time::Duration;

/// The step of the series.
pub const STEP: Duration = Duration::from_millis(200);

/// The UDP payload of datagrams: what fits an Ethernet frame over IPv6.
const DATAGRAM: usize = 1452;

/// The description of a run.
#[derive(Clone, Debug)]
pub struct ControllerRun {
    /// The channels.
    pub setting: Setting,
    /// The controller of every path.
    pub controller: Algorithm,
    /// The arrangement of the channels.
    pub arrangement: Arrangement,
    /// The duration, the handshake included.
    pub time: Duration,
    /// The seed of everything random.
    pub seed: u64,
}

impl ControllerRun {
    /// Runs it. Fails if a trace cannot be read; what happens to the connection is part of the outcome.
    pub fn outcome(&self) -> Result<ControllerOutcome, TraceError> {
        let mut net = Net::new(self.config(), self.config(), self.seed);
        let Wires { first, second } = connect(&mut net, self.arrangement, &self.setting)?;
        net.connect(first);
        let download = Download::new(second.map(|tuple| (tuple, Hints::NONE)));
        let mut observed = Observed { download, samples: RttSamples::default(), failure: None };
        net.run(&mut observed, Net::START + self.time);
        Ok(self.measured(&net, &observed))
    }

    fn config(&self) -> TransportConfig {
        let mut config = TransportConfig::new(Arc::new(|| Policy::Hvc.scheduler()));
        config.set_datagram_size(DATAGRAM.into());
        config.set_congestion(self.controller.into());
        config.set_multipath(self.arrangement.multipath());
        tell(&mut config, self.arrangement, &self.setting);
        config
    }

    fn measured(&self, net: &Net, observed: &Observed) -> ControllerOutcome {
        let (embb, urllc) = self.downlinks(net);
        let delivered = |link: Option<&LinkStatistics>| link.map_or(0, |link| link.left.bytes);
        let (over_embb, over_urllc) = (delivered(Some(embb)), delivered(urllc));
        let share = over_urllc as f64 / (over_embb + over_urllc).max(1) as f64;
        let bulk = match self.arrangement {
            Arrangement::Single | Arrangement::Steered => PathId::ZERO,
            Arrangement::Multipath => PathId(1),
        };
        let mut samples = observed.samples.take();
        samples.retain(|sample| sample.path == bulk);
        let paths = net.server.get().map(|connection| connection.stats().paths).unwrap_or_default();
        let progress = &observed.download.progress;
        ControllerOutcome {
            setting: self.setting.name.clone(),
            embb: self.setting.embb.to_string(),
            urllc: self.setting.urllc.to_string(),
            controller: self.controller.name().to_owned(),
            arrangement: self.arrangement,
            seconds: self.time.as_secs_f64(),
            seed: self.seed,
            capacity: self.setting.capacity(self.arrangement),
            capacity_is_steady: self.setting.is_steady(),
            goodput: megabits(progress.iter().sum(), self.time),
            throughput: megabits(over_embb + over_urllc, self.time),
            urllc_share: (share * 1e4).round() / 1e4,
            rtt: Milliseconds::of(samples.iter().map(|sample| sample.rtt).collect()),
            embb_queue: queue(embb),
            urllc_queue: urllc.map(queue).unwrap_or_default(),
            lost: paths.iter().map(|path| path.counters.packets_lost).sum(),
            spurious: paths.iter().map(|path| path.counters.spurious_losses).sum(),
            series: series(self.time, observed.download.connected_after(), progress, &samples),
            failure: observed.failure.clone(),
        }
    }

    /// The downlinks of eMBB and, if it is used, of URLLC.
    fn downlinks<'a>(&self, net: &'a Net) -> (&'a LinkStatistics, Option<&'a LinkStatistics>) {
        let wire = |index: usize| &net.wires[index].channel;
        let plain = |index| wire(index).link(Direction::Down).statistics();
        match wire(0).steered() {
            Some(steered) => {
                let down = |branch| steered.statistics(branch, Direction::Down);
                (down(Branch::HighBandwidth), Some(down(Branch::LowLatency)))
            }
            None if self.arrangement == Arrangement::Multipath => (plain(1), Some(plain(0))),
            None => (plain(0), None),
        }
    }
}

fn queue(link: &LinkStatistics) -> Queue {
    Queue {
        delay: link.queueing().into(),
        overflowed: link.dropped(DropReason::Queue).packets,
        lost: link.dropped(DropReason::Random).packets,
    }
}

/// Goodput from `progress`, bytes by millisecond since `connected`, and round-trip times from `samples`.
fn series(time: Duration, connected: Duration, progress: &[u64], samples: &[RttSample]) -> Series {
    let steps = time.as_nanos().div_ceil(STEP.as_nanos()) as usize;
    let step_of = |at: Duration| ((at.as_nanos() / STEP.as_nanos()) as usize).min(steps.saturating_sub(1));
    let mut bytes = vec![0; steps];
    for (millisecond, read) in (0..).zip(progress) {
        if let Some(sum) = bytes.get_mut(step_of(connected + Duration::from_millis(millisecond))) {
            *sum += read;
        }
    }
    let mut rtts: Vec<Vec<Duration>> = vec![Vec::new(); steps];
    for sample in samples {
        if let Some(step) = rtts.get_mut(step_of(sample.at)) {
            step.push(sample.rtt);
        }
    }
    let summary = |rtts: Vec<Duration>| {
        let (least, most) = (rtts.iter().min()?, rtts.iter().max()?);
        let mean = rtts.iter().sum::<Duration>() / u32::try_from(rtts.len()).ok()?;
        Some([milliseconds(*least), milliseconds(mean), milliseconds(*most)])
    };
    Series {
        step: milliseconds(STEP),
        goodput: bytes.into_iter().map(|bytes| megabits(bytes, STEP)).collect(),
        rtt: rtts.into_iter().map(summary).collect(),
    }
}
