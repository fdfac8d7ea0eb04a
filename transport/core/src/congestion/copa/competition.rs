//! Detection of flows that fill the queue, and δ beside them (§2.2 of the paper).

use crate::congestion::queueing::Round;
use std::time::Duration;

/// 1/δ of the default mode: datagrams that the flow wants in the queue.
const DATAGRAMS: f64 = 2.0;
/// Round trips in which the queue must have been nearly empty once, or another flow fills it.
const DETECTION_ROUNDS: usize = 5;
/// Round trips of which the largest queueing delay counts.
const LARGEST_ROUNDS: usize = 4;
/// The share of the largest queueing delay below which the queue is nearly empty.
const NEARLY_EMPTY: f64 = 0.1;
/// 1/δ does not grow beyond this.
const MOST: f64 = (1u64 << 48) as f64;

/// The mode of the controller, by the competition that seems to be at the bottleneck.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(in crate::congestion) enum Mode {
    /// Flows that keep the queue short.
    Default,
    /// A flow that fills it: this one is a little like it, with `datagrams` (1/δ) growing by one each round trip and
    /// halving with each loss.
    Competitive {
        /// 1/δ.
        datagrams: f64,
    },
}

/// The mode, and the queueing delays that it follows from.
#[derive(Clone, Debug)]
pub(in crate::congestion) struct Competition {
    mode: Mode,
    /// The last round trips, the newest last.
    history: Vec<Round>,
}

impl Default for Competition {
    fn default() -> Self {
        Self { mode: Mode::Default, history: Vec::with_capacity(DETECTION_ROUNDS) }
    }
}

impl Competition {
    /// 1/δ: datagrams that the flow wants in the queue.
    pub(in crate::congestion) fn datagrams(&self) -> f64 {
        match self.mode {
            Mode::Default => DATAGRAMS,
            Mode::Competitive { datagrams } => datagrams,
        }
    }

    /// The mode.
    pub(in crate::congestion) fn mode(&self) -> Mode {
        self.mode
    }

    /// Takes a round trip in congestion avoidance.
    pub(in crate::congestion) fn on_round(&mut self, round: Round) {
        self.note(round);
        let newest = self.history.iter().rev().take(LARGEST_ROUNDS);
        let most = newest.map(|round| round.most).max().unwrap_or_default();
        let least = self.history.iter().map(|round| round.least).min().unwrap_or(Duration::ZERO);
        let crowded = self.history.len() == DETECTION_ROUNDS && least > most.mul_f64(NEARLY_EMPTY);
        self.mode = match self.mode {
            _ if !crowded => Mode::Default,
            Mode::Default => Mode::Competitive { datagrams: DATAGRAMS },
            Mode::Competitive { datagrams } => Mode::Competitive { datagrams: (datagrams + 1.0).min(MOST) },
        };
    }

    /// Takes a round trip in slow start, which fills the queue itself.
    pub(in crate::congestion) fn on_slow_start_round(&mut self, round: Round) {
        self.note(round);
        self.mode = Mode::Default;
    }

    fn note(&mut self, round: Round) {
        if self.history.len() >= DETECTION_ROUNDS {
            self.history.remove(0);
        }
        self.history.push(round);
    }

    /// The losses of a round trip halve 1/δ in the competitive mode.
    pub(in crate::congestion) fn on_loss(&mut self) {
        if let Mode::Competitive { datagrams } = &mut self.mode {
            *datagrams = (*datagrams / 2.0).max(DATAGRAMS);
        }
    }

    /// Losses in mode `before` were none.
    pub(in crate::congestion) fn on_spurious(&mut self, before: Mode) {
        if let (Mode::Competitive { datagrams }, Mode::Competitive { datagrams: had }) =
            (&mut self.mode, before)
        {
            *datagrams = datagrams.max(had);
        }
    }

    #[cfg(test)]
    pub(in crate::congestion) fn set_mode(&mut self, mode: Mode) {
        self.mode = mode;
    }
}
