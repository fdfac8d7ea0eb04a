//! The six eMBB traces that are compiled in.

use flate2::read::ZlibDecoder;
use std::fmt;
use std::io::Read as _;
use std::str::FromStr;
use std::sync::{Arc, OnceLock};

use super::{DelayTrace, RateTrace};
use crate::drx::Drx;
use crate::quantity::QuantityError;

/// A radio and how its device moved (DChannel, NSDI 2023, Table 1). The delays are synthetic, fitted to that table; the
/// rates are real series scaled to its means (`data/traces/README.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TraceName {
    /// mmWave, stationary: `MM-S`.
    MmwaveStationary,
    /// mmWave, walking: `MM-W`.
    MmwaveWalking,
    /// mmWave, driving: `MM-D`.
    MmwaveDriving,
    /// Low-band, stationary: `LB-S`.
    LowBandStationary,
    /// Low-band, walking: `LB-W`.
    LowBandWalking,
    /// Low-band, driving: `LB-D`.
    LowBandDriving,
}

/// The data of a named trace, compressed by the build script.
struct Files {
    /// Packed.
    delay: &'static [u8],
    /// CSV.
    rate: &'static [u8],
}

macro_rules! files {
    ($($name:literal),*) => {
        [$(Files {
            delay: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".rtt")),
            rate: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".bw")),
        }),*]
    };
}

/// In the order of [`TraceName::ALL`].
static FILES: [Files; 6] = files!["MM-S", "MM-W", "MM-D", "LB-S", "LB-W", "LB-D"];

/// The content of a file of [`FILES`].
fn inflated(file: &[u8]) -> Vec<u8> {
    let mut content = Vec::new();
    ZlibDecoder::new(file).read_to_end(&mut content).expect("the build script wrote the format");
    content
}

impl TraceName {
    /// All six, in the order of the paper's table.
    pub const ALL: [Self; 6] = [
        Self::MmwaveStationary,
        Self::MmwaveWalking,
        Self::MmwaveDriving,
        Self::LowBandStationary,
        Self::LowBandWalking,
        Self::LowBandDriving,
    ];

    /// The paper's name of the trace, such as `MM-D`.
    pub const fn label(self) -> &'static str {
        match self {
            Self::MmwaveStationary => "MM-S",
            Self::MmwaveWalking => "MM-W",
            Self::MmwaveDriving => "MM-D",
            Self::LowBandStationary => "LB-S",
            Self::LowBandWalking => "LB-W",
            Self::LowBandDriving => "LB-D",
        }
    }

    /// The sleep timers of this radio.
    pub const fn drx(self) -> Drx {
        match self {
            Self::MmwaveStationary | Self::MmwaveWalking | Self::MmwaveDriving => Drx::MMWAVE,
            Self::LowBandStationary | Self::LowBandWalking | Self::LowBandDriving => Drx::LOW_BAND,
        }
    }

    /// Round-trip times: 600 s, one every 15 ms.
    pub fn delay(self) -> Arc<DelayTrace> {
        static PARSED: [OnceLock<Arc<DelayTrace>>; 6] = [const { OnceLock::new() }; 6];
        let unpack = || Arc::new(DelayTrace::unpack(&inflated(FILES[self as usize].delay)));
        PARSED[self as usize].get_or_init(unpack).clone()
    }

    /// Rates: 600 s, one a second.
    pub fn rate(self) -> Arc<RateTrace> {
        static PARSED: [OnceLock<Arc<RateTrace>>; 6] = [const { OnceLock::new() }; 6];
        let parse = || {
            let text = String::from_utf8(inflated(FILES[self as usize].rate)).expect("CSV is text");
            let trace = RateTrace::parse(self.label(), &text);
            Arc::new(trace.expect("the traces compiled in are well-formed, as a test shows"))
        };
        PARSED[self as usize].get_or_init(parse).clone()
    }
}

impl fmt::Display for TraceName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.label())
    }
}

impl FromStr for TraceName {
    type Err = QuantityError;

    /// Reads `MM-D`, in upper or lower case.
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        Self::ALL
            .into_iter()
            .find(|name| name.label().eq_ignore_ascii_case(text))
            .ok_or_else(|| QuantityError::new(text, "a trace: MM-S, MM-W, MM-D, LB-S, LB-W or LB-D"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::Direction;
    use crate::trace::TraceEnd;
    use std::time::Duration;

    #[test]
    fn packed_delays_are_those_of_the_files() {
        for name in TraceName::ALL {
            let file = format!("{}/../../data/traces/synth/{name}.rtt.csv", env!("CARGO_MANIFEST_DIR"));
            let text = std::fs::read_to_string(&file).unwrap();
            assert!(*name.delay() == DelayTrace::parse(&file, &text).unwrap(), "{name}");
        }
    }

    #[test]
    fn every_named_trace_loads_and_has_the_mean_of_table_1() {
        // Mean RTT in ms, mean Mbit/s up and down (NSDI Table 1).
        let table = [
            (29.88, 60.0, 140.0),
            (30.32, 60.0, 110.0),
            (56.15, 60.0, 100.0),
            (45.20, 26.0, 93.0),
            (58.94, 21.0, 63.0),
            (68.84, 15.0, 57.0),
        ];
        for (name, (rtt, up, down)) in TraceName::ALL.into_iter().zip(table) {
            assert_eq!(name.label().to_lowercase().parse::<TraceName>().unwrap(), name);
            let (delay, rate) = (name.delay(), name.rate());
            assert_eq!(delay.period(), Duration::from_secs(600));
            assert_eq!(rate.period(), Duration::from_secs(600));
            let samples = (0..40_000).map(|step| delay.at(Duration::from_millis(15 * step), TraceEnd::Loop));
            let mean = samples.map(|rtt| rtt.as_secs_f64() * 1e3).sum::<f64>() / 40_000.0;
            assert!((mean / rtt - 1.0).abs() < 0.02, "{name}: mean RTT {mean}");
            for (direction, target) in [(Direction::Up, up), (Direction::Down, down)] {
                let rates =
                    (0..600).map(|second| rate.at(direction, Duration::from_secs(second), TraceEnd::Loop));
                let mean = rates.map(|rate| rate.bits_per_second() as f64 / 1e6).sum::<f64>() / 600.0;
                assert!((mean / target - 1.0).abs() < 0.02, "{name} {direction:?}: mean {mean} Mbit/s");
            }
        }
    }
}
