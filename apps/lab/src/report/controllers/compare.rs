//! The arrangements of each setting and controller side by side, and whether hvq reaches its goal.

use crate::experiment::controllers::{Arrangement, ControllerOutcome, Queue};
use std::fmt;

/// The goal in words.
pub(super) const GOAL: &str = "Goal of hvq: at least 95 % of the goodput that CUBIC gets there (CUBIC itself: 95 % of both \
    channels' rate, where it is constant and nothing is lost), and on eMBB a 95th percentile of queueing no longer than the \
    controller has there alone, or, of those that slow down for losses only, than the longest (5 % and 1 ms are forgiven). Goodput in Mbit/s, times in milliseconds.";

/// The share of CUBIC's goodput to reach, and CUBIC's share of the capacity.
const SHARE: f64 = 0.95;

/// The tolerance for chance differences between both runs of a controller: a factor, and an offset in milliseconds.
const FORGIVEN: (f64, f64) = (1.05, 1.0);

/// The results of a controller in a setting, in each arrangement that was run.
#[derive(Clone, Debug)]
pub struct ControllerComparison<'a> {
    /// The setting.
    pub setting: String,
    /// The controller.
    pub controller: String,
    /// eMBB alone.
    pub single: Option<&'a ControllerOutcome>,
    /// Steered below the transport.
    pub steered: Option<&'a ControllerOutcome>,
    /// Two paths of hvq.
    pub multipath: Option<&'a ControllerOutcome>,
    /// The goodput of hvq as a share of CUBIC's with hvq, if both were run.
    pub of_cubic: Option<f64>,
    /// The verdict on the goal.
    pub verdict: ControllerVerdict,
}

/// The verdict on the goal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ControllerVerdict {
    /// It is.
    Met,
    /// Goodput is too low.
    Slow,
    /// The queue is too long.
    Queueing,
    /// Both.
    SlowAndQueueing,
    /// The connection broke.
    Failed,
}

impl fmt::Display for ControllerVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Met => "met",
            Self::Slow => "too slow",
            Self::Queueing => "queue too long",
            Self::SlowAndQueueing => "too slow, queue too long",
            Self::Failed => "connection failed",
        })
    }
}

/// Every setting and controller in `outcomes`, in their order.
pub fn comparisons(outcomes: &[ControllerOutcome]) -> Vec<ControllerComparison<'_>> {
    let mut keys: Vec<(&str, &str)> = Vec::new();
    for outcome in outcomes {
        let key = (outcome.setting.as_str(), outcome.controller.as_str());
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys.into_iter().map(|(setting, controller)| compare(outcomes, setting, controller)).collect()
}

fn compare<'a>(
    outcomes: &'a [ControllerOutcome],
    setting: &str,
    controller: &str,
) -> ControllerComparison<'a> {
    let find = |controller: &str, arrangement| {
        outcomes.iter().find(|outcome| {
            outcome.setting == setting
                && outcome.controller == controller
                && outcome.arrangement == arrangement
        })
    };
    let multipath = find(controller, Arrangement::Multipath);
    let single = find(controller, Arrangement::Single);
    let cubic = find("cubic", Arrangement::Multipath);
    let of_cubic =
        multipath.zip(cubic).map(|(own, cubic)| own.goodput / cubic.goodput.max(f64::MIN_POSITIVE));
    ControllerComparison {
        setting: setting.to_owned(),
        controller: controller.to_owned(),
        single,
        steered: find(controller, Arrangement::Steered),
        multipath,
        of_cubic,
        verdict: multipath
            .map_or(ControllerVerdict::Failed, |multipath| verdict(multipath, single, of_cubic)),
    }
}

/// Returns true if a controller slows down for losses only.
fn fills_queues(controller: &str) -> bool {
    ["newreno", "cubic", "lia", "olia", "balia"].contains(&controller)
}

fn verdict(
    multipath: &ControllerOutcome,
    single: Option<&ControllerOutcome>,
    of_cubic: Option<f64>,
) -> ControllerVerdict {
    if multipath.failure.is_some() {
        return ControllerVerdict::Failed;
    }
    let share = match multipath.controller.as_str() {
        // How much CUBIC gets of a channel that loses or varies is no matter of steering.
        "cubic" if multipath.capacity_is_steady => multipath.goodput / multipath.capacity,
        "cubic" => 1.0,
        _ => of_cubic.unwrap_or(1.0),
    };
    let slow = share < SHARE;
    let queueing = single.is_some_and(|single| {
        let Queue { delay, overflowed, .. } = single.embb_queue;
        // Who fills the queue until it overflows does so at another pace after each loss.
        let alone = if overflowed > 0 && fills_queues(&multipath.controller) { delay.max } else { delay.p95 };
        multipath.embb_queue.delay.p95 > (alone * FORGIVEN.0).max(alone + FORGIVEN.1)
    });
    match (slow, queueing) {
        (false, false) => ControllerVerdict::Met,
        (true, false) => ControllerVerdict::Slow,
        (false, true) => ControllerVerdict::Queueing,
        (true, true) => ControllerVerdict::SlowAndQueueing,
    }
}
