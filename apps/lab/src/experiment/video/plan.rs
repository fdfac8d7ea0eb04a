//! The variations, and the runs that follow from them.

use super::run::VideoRun;
use super::scheme::VideoScheme;
use crate::experiment::definition::Half;
use crate::experiment::pages::{Channels, part};
use crate::workload::page_load::LEAD;
use hvq_emulation::{ChannelSpec, Interval, TraceName};
use hvq_video::clip::Clip;
use std::sync::Arc;
use std::time::Duration;

/// A stretch of time, counted from the first frame on, in which eMBB carries nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dark {
    /// The time at which it begins.
    pub from: Duration,
    /// Its duration.
    pub time: Duration,
}

/// The variations of the experiment.
#[derive(Clone, Debug)]
pub struct VideoPlan {
    /// The clip, which is repeated, and its name.
    pub clip: (String, Arc<Clip>),
    /// eMBB by these traces.
    pub traces: Vec<TraceName>,
    /// The schemes by which both channels are used.
    pub schemes: Vec<VideoScheme>,
    /// The duration of each video.
    pub time: Duration,
    /// Videos with each scheme, each on another stretch of the trace.
    pub repetitions: u32,
    /// The cut of eMBB, if there is one.
    pub dark: Option<Dark>,
    /// The half of each trace that the videos are from.
    pub half: Half,
    /// The seed of everything random.
    pub seed: u64,
}

impl VideoPlan {
    /// All runs: by trace, then by stretch, then by scheme, so that what is compared runs together.
    pub fn runs(&self) -> Vec<VideoRun> {
        let stretches =
            self.traces.iter().flat_map(|trace| (0..self.repetitions).map(move |turn| (*trace, turn)));
        let runs =
            stretches.flat_map(|(trace, turn)| self.schemes.iter().map(move |scheme| (trace, turn, *scheme)));
        runs.map(|(trace, turn, scheme)| self.run(trace, turn, scheme)).collect()
    }

    fn run(&self, trace: TraceName, repetition: u32, scheme: VideoScheme) -> VideoRun {
        let (_, clip) = &self.clip;
        let embb = part(&ChannelSpec::trace(trace), self.half, (repetition, self.time));
        let mut embb = embb.expect("the traces are compiled in");
        if let Some(Dark { from, time }) = self.dark {
            let interval = Interval { from: LEAD + from, until: LEAD + from + time };
            embb.up.blackouts.push(interval);
            embb.down.blackouts.push(interval);
        }
        VideoRun {
            clip: clip.clone(),
            channels: Channels { name: trace.label().to_owned(), embb, urllc: ChannelSpec::urllc() },
            scheme,
            frames: frames(self.time),
            repetition,
            seed: self.seed.wrapping_add(repetition.into()),
        }
    }
}

/// Returns the number of frames in a video of this length.
pub fn frames(time: Duration) -> u32 {
    (time.as_nanos() / Clip::INTERVAL.as_nanos().max(1)).try_into().unwrap_or(u32::MAX)
}
