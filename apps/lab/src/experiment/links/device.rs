//! The links of one device.

use super::link::Link;
use super::variation::varied;
use crate::experiment::pages::seed_of;
use hvq_emulation::ChannelSpec;
use std::str::FromStr;

/// The links of one device: the channels eMBB and URLLC, or two ordinary links.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Links(Vec<Link>);

impl Links {
    /// Returns true if the device has eMBB and URLLC.
    pub fn is_channels(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the channels in the order in which the links are named, each varied as `seed` says: equal seeds give
    /// equal channels, whatever stands beside them and in which order. Empty for eMBB and URLLC.
    pub fn drawn(&self, seed: u64) -> Vec<ChannelSpec> {
        let draw = |(index, link): (usize, &Link)| {
            let before = self.0[..index].iter().filter(|other| *other == link).count();
            let turn = u32::try_from(before).expect("there are two links");
            varied(*link, seed_of(seed, link.name(), turn))
        };
        self.0.iter().enumerate().map(draw).collect()
    }
}

/// Reads `channels`, or names of links with plus signs between them, as in `wifi+lte`.
impl FromStr for Links {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "channels" {
            return Ok(Self::default());
        }
        let links: Vec<Link> = text.split('+').map(str::parse).collect::<Result<_, _>>()?;
        match links.len() {
            2 => Ok(Self(links)),
            _ => Err(format!("{text:?} is not two links, as in wifi+lte, nor channels")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_the_same_whatever_stands_beside_it() {
        let drawn = |text: &str, seed| text.parse::<Links>().expect("links").drawn(seed);
        let (one, other) = (drawn("wifi+lte", 5), drawn("lte+wifi", 5));
        assert_eq!((&one[0], &one[1]), (&other[1], &other[0]));
        assert_ne!(drawn("wifi+lte", 6)[0], one[0]);
        let twice = drawn("wifi+wifi", 5);
        assert_ne!(twice[0], twice[1]);
    }

    #[test]
    fn links_are_two() {
        for text in ["", "wifi", "wifi+", "wifi+lte+dsl", "wifi+modem"] {
            assert!(text.parse::<Links>().is_err(), "{text}");
        }
        assert!("channels".parse::<Links>().expect("the channels").is_channels());
        assert_eq!("wifi+lte".parse::<Links>().expect("links").drawn(1).len(), 2);
    }
}
