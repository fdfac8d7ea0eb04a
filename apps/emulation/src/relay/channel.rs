//! An emulated channel between two addresses, as people write it.

use crate::ChannelSpec;
use std::net::SocketAddr;
use std::str::FromStr;

/// A channel between two addresses. Text form: `NAME:LISTEN=UPSTREAM[,SPEC…]`, as in
/// `urllc:127.0.0.1:4434=127.0.0.1:4433,rtt=5ms,rate=2mbit`.
#[derive(Clone, PartialEq, Debug)]
pub struct EmulatedChannel {
    /// The name of the channel, for people.
    pub name: String,
    /// The address that programs send to.
    pub listen: SocketAddr,
    /// The remote end of the channel.
    pub upstream: SocketAddr,
    /// The specification of the channel.
    pub spec: ChannelSpec,
}

impl FromStr for EmulatedChannel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let shape = || format!("{text:?} is not NAME:LISTEN=UPSTREAM[,SPEC…]");
        let address = |text: &str| {
            text.parse()
                .map_err(|_| format!("{text:?} is not an address with a port, such as 127.0.0.1:4434"))
        };
        let (addresses, spec) = text.split_once(',').unwrap_or((text, ""));
        let (name, addresses) = addresses.split_once(':').ok_or_else(shape)?;
        let (listen, upstream) = addresses.split_once('=').ok_or_else(shape)?;
        if name.is_empty() {
            return Err(shape());
        }
        let spec = spec.parse().map_err(|error: crate::SpecError| error.to_string())?;
        Ok(Self { name: name.to_owned(), listen: address(listen)?, upstream: address(upstream)?, spec })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_is_read_with_its_spec() {
        let channel: EmulatedChannel = "urllc:127.0.0.1:0=[::1]:4433,rtt=5ms,rate=2mbit".parse().unwrap();
        assert_eq!((channel.name.as_str(), channel.listen.port()), ("urllc", 0));
        assert_eq!(channel.upstream, "[::1]:4433".parse().unwrap());
        assert_eq!(channel.spec, ChannelSpec::urllc());
        let bare: EmulatedChannel = "a:[::1]:1=[::1]:2".parse().unwrap();
        assert_eq!(bare.spec, ChannelSpec::default());
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, part) in [
            ("", "NAME:LISTEN"),
            (":127.0.0.1:1=127.0.0.1:2", "NAME:LISTEN"),
            ("a:127.0.0.1:1", "NAME:LISTEN"),
            ("a:127.0.0.1=127.0.0.1:2", "\"127.0.0.1\" is not an address"),
            ("a:127.0.0.1:1=host:2", "\"host:2\" is not an address"),
            ("a:127.0.0.1:1=127.0.0.1:2,speed=2", "speed"),
        ] {
            let error = text.parse::<EmulatedChannel>().unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
