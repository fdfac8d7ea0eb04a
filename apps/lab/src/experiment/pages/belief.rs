//! Knowledge of the channels, which may be wrong (NSDI 2023, §A.3.4).

use crate::world::Side;
use hvq_emulation::Typical;
use hvq_scheduler::{Bandwidth, Hints};
use std::str::FromStr;

/// The ends of a connection whose applications are told of the channels.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Informed {
    /// Neither: paths have no name, no class and no promised rate, as with most people's links.
    Nobody,
    /// The client alone, as a phone knows its interfaces and a server with one public address knows nothing.
    Client,
    /// Both ends, as with a gateway that its operator configures.
    #[default]
    Both,
}

impl Informed {
    /// Returns true if the applications of `side` are told.
    pub fn includes(self, side: Side) -> bool {
        match (self, side) {
            (Self::Both, _) | (Self::Client, Side::Client) => true,
            (Self::Nobody, _) | (Self::Client, Side::Server) => false,
        }
    }
}

/// Knowledge of the channels, right or wrong, as factors on their typical values. The default is the truth about URLLC,
/// which its operator guarantees, and nothing about eMBB, at both ends.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Belief {
    /// The ends that believe it.
    pub informed: Informed,
    /// The delay of eMBB that schedulers are told, as a factor; `None` for nothing.
    pub embb_delay: Option<f64>,
    /// The rate of URLLC.
    pub urllc_rate: f64,
}

impl Default for Belief {
    fn default() -> Self {
        Self { informed: Informed::Both, embb_delay: None, urllc_rate: 1.0 }
    }
}

impl Belief {
    /// The rate of URLLC as it is believed, `rate` being the true one.
    pub(super) fn rate(self, rate: hvq_emulation::Bandwidth) -> hvq_emulation::Bandwidth {
        let bits = rate.bits_per_second() as f64 * self.urllc_rate;
        hvq_emulation::Bandwidth::from_bits_per_second(bits as u64)
    }

    /// `hints` about URLLC as they are believed.
    pub(super) fn of_urllc(self, hints: Hints) -> Hints {
        let believed = |rate: Bandwidth| {
            Bandwidth::from_bits_per_second((rate.bits_per_second() as f64 * self.urllc_rate) as u64)
        };
        Hints { rate: hints.rate.map(believed), ..hints }
    }

    /// The hints about eMBB, whose truth is `typical`, if there are any.
    pub(super) fn of_embb(self, typical: Typical) -> Option<Hints> {
        let delay = typical.delay.mul_f64(self.embb_delay?);
        Some(Hints { delay: Some(delay), ..Hints::NONE })
    }
}

/// Reads `none`, `client`, `both` or `true`, or a mistake: `embb-delay` or `urllc-rate` with `*` or `/` and a factor from
/// 0.01 to 100, after `client:` if it is the client's alone.
impl FromStr for Belief {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "{text:?} is no belief: choose none, client, both, true, or embb-delay or urllc-rate with * or / and a \
                 factor, as in embb-delay*5, after client: if the client alone believes it"
            )
        };
        let of = |informed| Self { informed, ..Self::default() };
        match (text, text.strip_prefix("client:")) {
            ("none", _) => return Ok(of(Informed::Nobody)),
            ("client", _) => return Ok(of(Informed::Client)),
            ("both" | "true", _) => return Ok(of(Informed::Both)),
            (_, Some(mistake)) if !mistake.contains(':') && mistake.contains(['*', '/']) => {
                let believed: Self = mistake.parse().map_err(|_| wrong())?;
                return Ok(Self { informed: Informed::Client, ..believed });
            }
            _ => {}
        }
        let at = text.find(['*', '/']).ok_or_else(wrong)?;
        let (what, factor) = (&text[..at], &text[at + 1..]);
        let factor = factor.parse::<f64>().ok().filter(|factor| (0.01..=100.0).contains(factor));
        let factor = factor.ok_or_else(wrong)?;
        let factor = if text[at..].starts_with('/') { 1.0 / factor } else { factor };
        match what {
            "embb-delay" => Ok(Self { embb_delay: Some(factor), ..Self::default() }),
            "urllc-rate" => Ok(Self { urllc_rate: factor, ..Self::default() }),
            _ => Err(wrong()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_belief_is_the_truth_times_a_factor() {
        let typical = Typical { delay: Duration::from_millis(20), rate: None };
        let wrong: Belief = "embb-delay*5".parse().expect("a belief");
        let delay = wrong.of_embb(typical).and_then(|hints| hints.delay);
        assert_eq!((delay, wrong.urllc_rate), (Some(Duration::from_millis(100)), 1.0));
        let wrong: Belief = "urllc-rate/4".parse().expect("a belief");
        let rate = Bandwidth::from_bits_per_second(2_000_000);
        let believed = wrong.of_urllc(Hints { rate: Some(rate), ..Hints::NONE });
        assert_eq!(believed.rate, Some(Bandwidth::from_bits_per_second(500_000)));
        assert_eq!(wrong.of_embb(typical), None);
        assert_eq!("true".parse(), Ok(Belief::default()));
    }

    #[test]
    fn a_belief_is_that_of_nobody_of_the_client_or_of_both_ends() {
        let informed = |text: &str| {
            let belief: Belief = text.parse().expect("a belief");
            [Side::Client, Side::Server].map(|side| belief.informed.includes(side))
        };
        assert_eq!(["none", "client", "both"].map(informed), [[false, false], [true, false], [true, true]]);
        assert_eq!(informed("client:urllc-rate*5"), [true, false]);
        assert_eq!("client:urllc-rate*5".parse::<Belief>().expect("a belief").urllc_rate, 5.0);
    }

    #[test]
    fn other_texts_are_no_beliefs() {
        for text in [
            "",
            "client:",
            "client:true",
            "client:client:urllc-rate*5",
            "false",
            "embb-delay",
            "embb-delay*0",
            "embb-delay*x",
            "embb-delay*1000",
            "moon/2",
        ] {
            assert!(text.parse::<Belief>().is_err(), "{text}");
        }
    }
}
