//! Networks.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A network: all addresses that begin alike. Text form: `10.0.0.0/8`, `2001:db8::/32`, or one address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prefix {
    address: IpAddr,
    bits: u8,
}

/// A text is no network.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0:?} is no network: expected ADDRESS/BITS, such as 10.0.0.0/8 or ::/0")]
pub struct NoPrefix(String);

impl Prefix {
    /// The addresses whose first `bits` are those of `address`; `None` if there are not so many.
    pub fn new(address: IpAddr, bits: u8) -> Option<Self> {
        (bits <= width(address)).then(|| Self { address: first(address, bits), bits })
    }

    /// `address` and no other.
    pub fn only(address: IpAddr) -> Self {
        Self { address, bits: width(address) }
    }

    /// The first address.
    pub const fn address(&self) -> IpAddr {
        self.address
    }

    /// Returns the number of bits that its addresses have in common.
    pub const fn bits(&self) -> u8 {
        self.bits
    }

    /// The last address.
    pub fn last(&self) -> IpAddr {
        match self.address {
            IpAddr::V4(address) => Ipv4Addr::from_bits(address.to_bits() | !mask4(self.bits)).into(),
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() | !mask6(self.bits)).into(),
        }
    }

    /// Returns true if `address` is one of its addresses.
    pub fn contains(&self, address: IpAddr) -> bool {
        address.is_ipv4() == self.address.is_ipv4() && first(address, self.bits) == self.address
    }
}

const fn width(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

fn mask4(bits: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0)
}

fn mask6(bits: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0)
}

fn first(address: IpAddr, bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => Ipv4Addr::from_bits(address.to_bits() & mask4(bits)).into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & mask6(bits)).into(),
    }
}

impl FromStr for Prefix {
    type Err = NoPrefix;

    fn from_str(text: &str) -> Result<Self, NoPrefix> {
        let wrong = || NoPrefix(text.to_owned());
        match text.split_once('/') {
            None => text.parse().map(Self::only).map_err(|_| wrong()),
            Some((address, bits)) => {
                let (address, bits) = (address.parse().ok(), bits.parse().ok());
                address.zip(bits).and_then(|(address, bits)| Self::new(address, bits)).ok_or_else(wrong)
            }
        }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.address, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_knows_its_addresses() {
        let network: Prefix = "10.1.2.3/8".parse().unwrap();
        assert_eq!(
            (network.to_string().as_str(), network.last()),
            ("10.0.0.0/8", [10, 255, 255, 255].into())
        );
        assert!(network.contains([10, 200, 0, 1].into()) && !network.contains([11, 0, 0, 1].into()));
        let all: Prefix = "::/0".parse().unwrap();
        assert!(all.contains("2001:db8::1".parse().unwrap()) && !all.contains([10, 0, 0, 1].into()));
        let one: Prefix = "192.0.2.1".parse().unwrap();
        assert!(one.contains([192, 0, 2, 1].into()) && one.last() == one.address());
        for text in ["", "10.0.0.0/33", "10.0.0/8", "::/129", "a/8", "10.0.0.0/x"] {
            assert_eq!(text.parse::<Prefix>(), Err(NoPrefix(text.to_owned())));
        }
    }
}
