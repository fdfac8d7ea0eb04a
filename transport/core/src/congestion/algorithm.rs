//! The built-in controllers, by name.

use super::controller::Controller;
use super::{balia, bbr, copa, cubic, lia, new_reno, olia, vegas, vivace};
use std::fmt;
use std::str::FromStr;

/// The controllers that there are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Algorithm {
    /// RFC 9002 §7.
    NewReno,
    /// RFC 9438, with HyStart++ (RFC 9406).
    #[default]
    Cubic,
    /// RFC 9438, with a slow start that only loss ends (RFC 9002 §7.3.1): for paths on which a longer round trip is no
    /// sign of a queue, as where packets are steered over two channels below the transport.
    PlainCubic,
    /// draft-ietf-ccwg-bbr (version 3).
    Bbr,
    /// Brakmo and Peterson 1995, as published.
    Vegas,
    /// [`Vegas`](Self::Vegas) that tolerates what the delay of a radio varies by.
    VegasRadio,
    /// Arun and Balakrishnan 2018, as published.
    Copa,
    /// [`Copa`](Self::Copa) that tolerates what the delay of a radio varies by.
    CopaRadio,
    /// Dong et al. 2018, as published, with the latency utility.
    Vivace,
    /// [`Vivace`](Self::Vivace) that tolerates what the delay of a radio varies by.
    VivaceRadio,
    /// RFC 6356, coupled.
    Lia,
    /// Khalili et al. 2012, coupled.
    Olia,
    /// Peng et al. 2016, coupled.
    Balia,
}

impl Algorithm {
    /// All of them, but for [`Self::PlainCubic`], which differs in its slow start only.
    pub const ALL: [Self; 12] = [
        Self::NewReno,
        Self::Cubic,
        Self::Bbr,
        Self::Vegas,
        Self::VegasRadio,
        Self::Copa,
        Self::CopaRadio,
        Self::Vivace,
        Self::VivaceRadio,
        Self::Lia,
        Self::Olia,
        Self::Balia,
    ];

    /// All that have a name.
    fn known() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().chain([Self::PlainCubic])
    }

    /// A controller in its initial state for datagrams of `datagram_size` bytes.
    pub fn build(self, datagram_size: usize) -> Box<dyn Controller> {
        match self {
            Self::NewReno => Box::new(new_reno::NewReno::new(datagram_size)),
            Self::Cubic => Box::new(cubic::Cubic::new(datagram_size)),
            Self::PlainCubic => Box::new(cubic::Cubic::new(datagram_size).without_hystart()),
            Self::Bbr => Box::new(bbr::Bbr::new(datagram_size)),
            Self::Vegas => Box::new(vegas::Vegas::new(datagram_size)),
            Self::VegasRadio => Box::new(vegas::Vegas::for_radios(datagram_size)),
            Self::Copa => Box::new(copa::Copa::new(datagram_size)),
            Self::CopaRadio => Box::new(copa::Copa::for_radios(datagram_size)),
            Self::Vivace => Box::new(vivace::Vivace::<vivace::Published>::new(datagram_size)),
            Self::VivaceRadio => Box::new(vivace::VivaceRadio::new(datagram_size)),
            Self::Lia => Box::new(lia::LiaController::new(datagram_size)),
            Self::Olia => Box::new(olia::OliaController::new(datagram_size)),
            Self::Balia => Box::new(balia::BaliaController::new(datagram_size)),
        }
    }

    /// The name that [`FromStr`] takes.
    pub fn name(self) -> &'static str {
        match self {
            Self::NewReno => "newreno",
            Self::Cubic => "cubic",
            Self::PlainCubic => "plain-cubic",
            Self::Bbr => "bbr",
            Self::Vegas => "vegas",
            Self::VegasRadio => "vegas-radio",
            Self::Copa => "copa",
            Self::CopaRadio => "copa-radio",
            Self::Vivace => "vivace",
            Self::VivaceRadio => "vivace-radio",
            Self::Lia => "lia",
            Self::Olia => "olia",
            Self::Balia => "balia",
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// No controller has this name.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("unknown congestion control algorithm {0:?}: choose from {names}", names = names())]
pub struct UnknownAlgorithm(pub String);

/// All names, separated by commas.
fn names() -> String {
    Algorithm::known().map(Algorithm::name).collect::<Vec<_>>().join(", ")
}

impl FromStr for Algorithm {
    type Err = UnknownAlgorithm;

    /// Takes the names as [`Display`](fmt::Display) writes them, also `reno`, `new-reno`, `bbr3` and `bbrv3`, in any
    /// case.
    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let lower = name.to_ascii_lowercase();
        let known = match lower.as_str() {
            "new-reno" | "reno" => "newreno",
            "bbr3" | "bbrv3" => "bbr",
            other => other,
        };
        let found = Self::known().find(|algorithm| algorithm.name() == known);
        found.ok_or_else(|| UnknownAlgorithm(name.to_owned()))
    }
}
