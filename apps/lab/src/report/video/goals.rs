//! The project's goals for video, compared with the measurements.

use super::compare::{ReceiverView, Row, rows};
use crate::experiment::video::VideoOutcome;

/// The channels that the goals are about: mmWave, driving.
const CHANNELS: &str = "MM-D";

/// A goal and what became of it.
#[derive(Clone, PartialEq, Debug)]
pub struct VideoGoal {
    /// The goal, in words.
    pub says: &'static str,
    /// The measured value.
    pub measured: String,
    /// True if it is met.
    pub met: bool,
}

/// The goals whose schemes were run.
pub fn goals(outcomes: &[VideoOutcome]) -> Vec<VideoGoal> {
    let all = ReceiverView::ALL.map(|receiver| rows(outcomes, receiver));
    let find = |rows: &'_ [Row], scheme: &str| -> Option<Row> {
        rows.iter().find(|row| row.channels == CHANNELS && row.scheme.to_string() == scheme).cloned()
    };
    let [paper, adaptive] = &all;
    let mut goals = Vec::new();
    let (Some(ours), Some(quick)) = (find(paper, "hvc+deadlines"), find(adaptive, "hvc+deadlines")) else {
        return goals;
    };
    goals.push(VideoGoal {
        says: "p95 latency at most 72 ms on mmWave driving with the 60 ms wait",
        measured: format!("{:.1} ms", ours.latency.p95),
        met: ours.latency.p95 <= 72.0,
    });
    let rivals =
        ["udp:dchannel", "below:dchannel", "dchannel"].into_iter().filter_map(|name| find(paper, name));
    let best = rivals.min_by(|one, other| one.latency.p95.total_cmp(&other.latency.p95));
    if let Some(best) = best {
        let times = best.latency.p95 / ours.latency.p95.max(f64::MIN_POSITIVE);
        goals.push(VideoGoal {
            says: "p95 latency at least 2.26 times better than DChannel's, the best way of running it",
            measured: format!("{times:.2} times ({}: {:.1} ms)", best.scheme, best.latency.p95),
            met: times >= 2.26,
        });
    }
    if let Some(other) = find(paper, "priority-svc+priorities") {
        let more = ours.ssim.mean - other.ssim.mean;
        goals.push(VideoGoal {
            says: "SSIM at least 0.005 above that of priority-svc",
            measured: format!("{more:+.4} ({:.4} and {:.4})", ours.ssim.mean, other.ssim.mean),
            met: more >= 0.005,
        });
    }
    goals.push(VideoGoal {
        says: "no freeze while URLLC is up",
        measured: format!(
            "{:.1} a minute, {:.1} % of frames not shown",
            ours.freezes_a_minute,
            ours.missing * 100.0
        ),
        met: ours.freezes_a_minute == 0.0 && ours.missing == 0.0,
    });
    let less = ours.ssim.mean - quick.ssim.mean;
    goals.push(VideoGoal {
        says: "with an adaptive wait p95 under 45 ms at an SSIM within 0.01",
        measured: format!("{:.1} ms, {:+.4}", quick.latency.p95, -less),
        met: quick.latency.p95 < 45.0 && less <= 0.01,
    });
    goals
}
