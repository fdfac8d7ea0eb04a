//! The two channels of the demo, and what their ends are told of them.

use hvq::path::Sharing;
use hvq::{Bandwidth, Hints};
use hvq_emulation::{ChannelSpec, Direction, TraceName};
use std::time::Duration;

/// eMBB by a trace, and URLLC.
#[derive(Clone, Debug)]
pub(super) struct Channels {
    /// The trace that eMBB follows.
    pub(super) trace: TraceName,
    /// eMBB at offset zero.
    pub(super) embb: ChannelSpec,
    /// URLLC: RTT 5 ms, 2 Mbit/s each way.
    pub(super) urllc: ChannelSpec,
}

impl Channels {
    /// eMBB follows `trace`; both have the default queue of 800 packets.
    pub(super) fn new(trace: TraceName) -> Self {
        Self { trace, embb: ChannelSpec::trace(trace), urllc: ChannelSpec::urllc() }
    }

    /// Returns the time after which the trace repeats.
    pub(super) fn trace_length(&self) -> Duration {
        self.trace.delay().period()
    }

    /// Returns the hints about eMBB for the end that sends in `direction`: typical values of the trace, as a modem
    /// would know them, and nothing of the future.
    pub(super) fn embb_hints(&self, direction: Direction) -> Hints {
        let typical = self.embb.typical(direction).expect("named traces are compiled in");
        Hints {
            rate: typical.rate.map(|rate| Bandwidth::from_bits_per_second(rate.bits_per_second())),
            delay: Some(typical.delay),
            shared: Sharing::Shared,
            ..Hints::NONE
        }
    }

    /// Returns the hints about URLLC for both ends: its guarantees.
    pub(super) fn urllc_hints(&self) -> Hints {
        Hints {
            rate: Some(Bandwidth::from_bits_per_second(2_000_000)),
            delay: Some(Duration::from_micros(2_500)),
            shared: Sharing::Dedicated,
            ..Hints::NONE
        }
    }
}

/// Hints in words.
pub(super) fn describe(hints: Hints) -> String {
    let rate = hints.rate.map(|rate| format!("{:.1} Mbit/s", rate.bits_per_second() as f64 / 1e6));
    let delay = hints.delay.map(|delay| format!("{:.1} ms one way", delay.as_secs_f64() * 1e3));
    let said: Vec<String> = [rate, delay].into_iter().flatten().collect();
    if said.is_empty() { "nothing".to_owned() } else { said.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_of_embb_are_typical_of_its_trace() {
        // NSDI 2023, Table 1: low-band driving has a median RTT of 54 ms and 15/57 Mbit/s up and down.
        let channels = Channels::new("LB-D".parse().unwrap());
        let down = channels.embb_hints(Direction::Down);
        let delay = down.delay.unwrap().as_secs_f64() * 1e3;
        assert!((20.0..35.0).contains(&delay), "{delay}");
        let rate = down.rate.unwrap().bits_per_second() as f64 / 1e6;
        assert!((45.0..70.0).contains(&rate), "{rate}");
        let up = channels.embb_hints(Direction::Up).rate.unwrap();
        assert!(up < down.rate.unwrap());
        assert_eq!(describe(channels.urllc_hints()), "2.0 Mbit/s, 2.5 ms one way");
    }
}
