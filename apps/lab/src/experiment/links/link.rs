//! The kinds of ordinary access links, each with typical values and their sources.
//!
//! Rates and delays are published medians or limits of a standard where a source says so; what nobody publishes as one
//! number (the depth of queues, the part of the loss that link layers leave) is a choice of this project and is called so.

use hvq_emulation::ChannelSpec;
use std::fmt;
use std::str::FromStr;

/// A kind of access link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Link {
    /// A wireless network at home or at work.
    WiFi,
    /// Mobile access of the fourth generation.
    Lte,
    /// Mobile access of the fifth generation in low and middle bands.
    FiveG,
    /// A telephone line, ADSL2+.
    Dsl,
    /// A cable network.
    Cable,
    /// Satellites in low orbit, which are changed every 15 seconds.
    Starlink,
    /// A satellite in geostationary orbit.
    Geo,
}

/// The typical values of a kind of link.
struct Typical {
    name: &'static str,
    /// The channel, as [`ChannelSpec`] reads it: typical values, which a run varies.
    channel: &'static str,
    /// The publications that the values are from, and those values that are this project's choice.
    source: &'static str,
}

impl Link {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::WiFi, Self::Lte, Self::FiveG, Self::Dsl, Self::Cable, Self::Starlink, Self::Geo];

    const fn typical(self) -> Typical {
        match self {
            Self::WiFi => Typical {
                name: "wifi",
                channel: "rate=60mbit,delay=uniform:5ms:15ms,queue=750kb,loss=0.01%",
                source: "Pei et al., INFOCOM 2016: a hop over Wi-Fi adds a median of 10 ms where it is tuned and more than \
                         20 ms to half of all packets where it is not; Sharma et al., arXiv:2311.05499: the home's Wi-Fi, \
                         not the access network, often limits the rate. Rate, queue (100 ms) and loss are chosen.",
            },
            Self::Lte => Typical {
                name: "lte",
                channel: "up.rate=6.3mbit,down.rate=21.3mbit,delay=uniform:22ms:33ms,up.queue=400kb,down.queue=1300kb",
                source: "Opensignal, State of Mobile: USA, May 2019: 21.3 Mbit/s down, 6.3 Mbit/s up, 44 to 66 ms of latency; \
                         Jiang et al., IMC 2012: queues of mobile networks hold seconds. The queue (500 ms) is chosen; \
                         retransmissions of the link layer leave no loss.",
            },
            Self::FiveG => Typical {
                name: "5g",
                channel: "up.rate=21mbit,down.rate=166mbit,delay=uniform:12ms:18ms,up.queue=500kb,down.queue=4mb",
                source: "Ookla, December 2021: medians of all 5G networks of 166.13 Mbit/s down and 21.08 Mbit/s up; NSDI 2023, \
                         Table 1: round trips of 5G that stands still. The queue (200 ms) is chosen.",
            },
            Self::Dsl => Typical {
                name: "dsl",
                channel: "up.rate=1mbit,down.rate=16mbit,rtt=40ms,up.queue=64kb,down.queue=400kb,loss=0.01%",
                source: "ITU-T G.992.5 (ADSL2+: up to 24 Mbit/s down, about 1 Mbit/s up); Sundaresan et al., SIGCOMM 2011: \
                         the last mile of DSL takes 20 ms and more, and modems queue for hundreds of milliseconds. Rates \
                         within the standard's, queue (500 ms up, 200 ms down) and loss are chosen.",
            },
            Self::Cable => Typical {
                name: "cable",
                channel: "up.rate=10mbit,down.rate=100mbit,delay=uniform:7ms:13ms,up.queue=250kb,down.queue=1500kb,loss=0.01%",
                source: "FCC, Measuring Broadband America, 8th report: cable tiers of 100 Mbit/s; Sundaresan et al., SIGCOMM \
                         2011: the last mile of most cable customers takes less than 10 ms. The rate up, queue (200 ms up, \
                         120 ms down) and loss are chosen.",
            },
            Self::Starlink => Typical {
                name: "starlink",
                channel: "up.rate=17mbit,down.rate=178mbit,delay=uniform:17ms:27ms,up.queue=250kb,down.queue=2500kb,\
                          burst=0.002%/4%",
                source: "Michel et al., A First Look at Starlink Performance, IMC 2022: medians of 178 Mbit/s down, 17 Mbit/s \
                         up and 50 ms (40 to 60 ms), loss in bursts; Mohan et al., WWW 2024 (arXiv:2310.09242): all links \
                         change every 15 s, and with them latency and rate. The extent of a change, of bursts and of the \
                         queue (110 ms) is chosen.",
            },
            Self::Geo => Typical {
                name: "geo",
                channel: "up.rate=4.5mbit,down.rate=82mbit,delay=uniform:295ms:310ms,up.queue=350kb,down.queue=6mb",
                source: "Michel et al., IMC 2022, of a geostationary service of 100/10 Mbit/s: medians of 82 and 4.5 Mbit/s, \
                         600 ms. The queue (a round trip) is chosen.",
            },
        }
    }

    /// Its name in files.
    pub const fn name(self) -> &'static str {
        self.typical().name
    }

    /// The sources of its typical values.
    pub const fn source(self) -> &'static str {
        self.typical().source
    }

    /// A channel with its typical values.
    ///
    /// # Panics
    ///
    /// Never: what is compiled in is well-formed, which a test checks.
    pub fn channel(self) -> ChannelSpec {
        self.typical().channel.parse().expect("the links compiled in are channels")
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Link {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|link| link.name() == name);
        found.ok_or_else(|| format!("{name:?} is no link: choose {}", Self::ALL.map(Self::name).join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hvq_emulation::Direction;

    #[test]
    fn every_link_is_a_channel_with_a_rate_each_way_and_a_source() {
        for link in Link::ALL {
            let channel = link.channel();
            for direction in [Direction::Up, Direction::Down] {
                let typical = channel.typical(direction).expect("there is no trace");
                assert!(typical.rate.is_some() && !typical.delay.is_zero(), "{link}");
            }
            assert!(link.source().contains("20"), "{link} names a publication");
            assert_eq!(link.name().parse(), Ok(link));
        }
        assert!("modem".parse::<Link>().is_err());
    }
}
