//! The local end of a path: an address, an address with a port, or a network interface.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// Bytes of an interface's name at most (IFNAMSIZ of Linux, without the final zero).
const NAME_LIMIT: usize = 15;

/// A local address as people write it. Text forms: `10.0.0.1`, `::1`, `10.0.0.1:4433`, `[::1]:4433`, `eth0`,
/// `10.0.0.1%eth0`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum LocalAddress {
    /// This address, and any port: a socket that the endpoint has there, or else a new one.
    Ip(IpAddr),
    /// This address and port; port 0 is always a new socket.
    Socket(SocketAddr),
    /// A network interface, through which the path leaves (SO_BINDTODEVICE, Linux only).
    Interface(String),
    /// An address of an interface, through which the path leaves: always a new socket with any port. Linux binds it to both;
    /// elsewhere the address alone counts.
    Link(LinkAddress),
}

/// An address of a network interface. Text form: `10.0.0.1%eth0`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct LinkAddress {
    /// The address.
    pub address: IpAddr,
    /// The name of the interface.
    pub interface: String,
}

impl LinkAddress {
    /// The address alone, with any port: for users whom the system does not let bind to interfaces.
    pub(crate) fn without_interface(&self) -> LocalAddress {
        LocalAddress::Socket(SocketAddr::new(self.address, 0))
    }
}

impl fmt::Display for LinkAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%{}", self.address, self.interface)
    }
}

impl From<LinkAddress> for LocalAddress {
    fn from(address: LinkAddress) -> Self {
        Self::Link(address)
    }
}

/// Text that names no local address.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0:?} is neither an IP address, nor an address with a port, nor the name of a network interface")]
pub struct LocalAddressError(pub String);

impl FromStr for LocalAddress {
    type Err = LocalAddressError;

    fn from_str(text: &str) -> Result<Self, LocalAddressError> {
        if let Ok(address) = text.parse() {
            return Ok(Self::Socket(address));
        }
        let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
        if let Ok(address) = bare.parse() {
            return Ok(Self::Ip(address));
        }
        if let Some((address, interface)) = text.split_once('%')
            && let Ok(address) = address.parse()
            && is_interface_name(interface)
        {
            return Ok(Self::Link(LinkAddress { address, interface: interface.to_owned() }));
        }
        if is_interface_name(text) {
            return Ok(Self::Interface(text.to_owned()));
        }
        Err(LocalAddressError(text.to_owned()))
    }
}

impl fmt::Display for LocalAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(address) => address.fmt(f),
            Self::Socket(address) => address.fmt(f),
            Self::Interface(name) => name.fmt(f),
            Self::Link(address) => address.fmt(f),
        }
    }
}

impl From<IpAddr> for LocalAddress {
    fn from(address: IpAddr) -> Self {
        Self::Ip(address)
    }
}

impl From<SocketAddr> for LocalAddress {
    fn from(address: SocketAddr) -> Self {
        Self::Socket(address)
    }
}

/// A name that Linux permits, and that cannot be a mistyped address.
fn is_interface_name(text: &str) -> bool {
    let fits = (1..=NAME_LIMIT).contains(&text.len()) && text != "." && text != "..";
    let plain =
        |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'/' | b':' | b'[' | b']' | b'>' | b',' | b'=');
    fits && text.bytes().all(plain) && text.bytes().any(|byte| byte.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read_and_printed_back() {
        for (text, wanted) in [
            ("127.0.0.1", LocalAddress::Ip([127, 0, 0, 1].into())),
            ("127.0.0.1:0", LocalAddress::Socket(([127, 0, 0, 1], 0).into())),
            ("::1", LocalAddress::Ip("::1".parse().unwrap())),
            ("[::1]:443", LocalAddress::Socket("[::1]:443".parse().unwrap())),
            ("wlan0", LocalAddress::Interface("wlan0".to_owned())),
            ("veth-a.100", LocalAddress::Interface("veth-a.100".to_owned())),
            (
                "10.0.0.1%wlan0",
                LocalAddress::Link(LinkAddress {
                    address: [10, 0, 0, 1].into(),
                    interface: "wlan0".to_owned(),
                }),
            ),
        ] {
            let address: LocalAddress = text.parse().unwrap();
            assert_eq!(address, wanted);
            assert_eq!(address.to_string(), text);
        }
        assert_eq!("[::1]".parse(), Ok(LocalAddress::Ip("::1".parse().unwrap())));
    }

    #[test]
    fn mistyped_addresses_are_not_taken_for_interfaces() {
        for text in
            ["", "127.0.0.300", "127.0.0.1:99999", "::1:x:", "a/b", "..", "two words", "sixteen-letters-"]
        {
            assert_eq!(text.parse::<LocalAddress>(), Err(LocalAddressError(text.to_owned())));
        }
    }
}
