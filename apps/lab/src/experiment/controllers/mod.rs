//! The use of two unlike channels by congestion controllers (HotNets 2023, Fig. 1): steered below a transport that sees
//! one path, and as two paths of a transport that knows them.

mod arrangement;
mod observed;
mod outcome;
mod run;
#[cfg(test)]
mod tests;

pub use arrangement::{Arrangement, Setting};
pub use outcome::{ControllerOutcome, Milliseconds, Queue, Series};
pub use run::{ControllerRun, STEP};

use hvq_emulation::{ChannelSpec, Probability, TraceName};
use hvq_transport::congestion::Algorithm;
use std::time::Duration;

/// The variations of the experiment. The first round-trip time and the first loss are the base; each other value is
/// varied alone.
#[derive(Clone, Debug)]
pub struct ControllersPlan {
    /// The controllers.
    pub controllers: Vec<Algorithm>,
    /// Round-trip times of eMBB at 60 Mbit/s.
    pub rtts: Vec<Duration>,
    /// Random loss in both directions of both channels.
    pub losses: Vec<Probability>,
    /// eMBB traces.
    pub traces: Vec<TraceName>,
    /// The duration of each download.
    pub time: Duration,
    /// The seed of everything random.
    pub seed: u64,
}

impl ControllersPlan {
    /// The channels of each setting, without repetitions.
    pub fn settings(&self) -> Vec<Setting> {
        let rtt = self.rtts.first().copied().unwrap_or(Setting::RTT);
        let loss = self.losses.first().copied().unwrap_or_default();
        let rtts = self.rtts.iter().map(|rtt| Setting::constant(*rtt, loss));
        let losses = self.losses.iter().skip(1).map(|loss| Setting::constant(rtt, *loss));
        let traces =
            self.traces.iter().map(|name| Setting::new(name.label(), ChannelSpec::trace(*name), loss));
        let mut settings: Vec<Setting> = Vec::new();
        for setting in rtts.chain(losses).chain(traces) {
            if !settings.contains(&setting) {
                settings.push(setting);
            }
        }
        settings
    }

    /// All runs: by setting, then by controller, then by arrangement.
    pub fn runs(&self) -> Vec<ControllerRun> {
        let mut runs = Vec::new();
        for setting in self.settings() {
            for &controller in &self.controllers {
                runs.extend(Arrangement::ALL.map(|arrangement| ControllerRun {
                    setting: setting.clone(),
                    controller,
                    arrangement,
                    time: self.time,
                    seed: self.seed,
                }));
            }
        }
        runs
    }
}
