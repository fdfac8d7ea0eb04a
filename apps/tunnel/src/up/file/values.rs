//! Values that a file of `hvq up` writes as text.

use crate::prefix::Prefix;
use crate::up::netlink::Protocol;
use std::fmt;
use std::str::FromStr;

/// A token, which no log shows.
#[derive(Clone, PartialEq, Eq)]
pub(in crate::up) struct Token(pub(in crate::up) String);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

/// Something that is reached through the tunnel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::up) enum Route {
    /// Everything.
    All,
    /// A network.
    Network(Prefix),
    /// The addresses that a host has when the tunnel goes up.
    Host(String),
}

impl FromStr for Route {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_name = |text: &str| {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
            !text.is_empty() && text.bytes().all(plain) && text.bytes().any(|byte| byte.is_ascii_alphabetic())
        };
        match text.parse() {
            _ if text == "all" => Ok(Self::All),
            Ok(network) => Ok(Self::Network(network)),
            Err(_) if is_name(text) => Ok(Self::Host(text.to_owned())),
            Err(_) => Err(format!(
                "{text:?} is no route: expected \"all\", a network such as \"10.0.0.0/8\", or the name of a host"
            )),
        }
    }
}

/// A port of a protocol, such as `tcp/443`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::up) struct Port(pub(in crate::up) Protocol, pub(in crate::up) u16);

impl FromStr for Port {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted =
            || format!("{text:?} is no port of a protocol: expected such as \"tcp/443\" or \"udp/53\"");
        let (protocol, port) = text.split_once('/').ok_or_else(wanted)?;
        let protocol = match protocol {
            "tcp" => Protocol::Tcp,
            "udp" => Protocol::Udp,
            _ => return Err(wanted()),
        };
        let port = port.parse().ok().filter(|port| *port != 0).ok_or_else(wanted)?;
        Ok(Self(protocol, port))
    }
}

/// A control group (cgroup v2) by its path below `/sys/fs/cgroup`, such as `user.slice/work.scope`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::up) struct ControlGroup(pub(in crate::up) String);

impl FromStr for ControlGroup {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.@:".contains(&byte);
        let sound = |part: &str| !matches!(part, "" | "." | "..") && part.bytes().all(plain);
        match text.split('/').all(sound) {
            true => Ok(Self(text.to_owned())),
            false => Err(format!(
                "{text:?} is no control group: expected a path below /sys/fs/cgroup such as \"work.slice\""
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_ports_and_control_groups_are_read_and_others_refused() {
        assert_eq!("all".parse(), Ok(Route::All));
        assert_eq!("10.0.0.0/8".parse(), Ok(Route::Network("10.0.0.0/8".parse().unwrap())));
        assert_eq!("fd00::1".parse(), Ok(Route::Network("fd00::1/128".parse().unwrap())));
        assert_eq!("git.example".parse(), Ok(Route::Host("git.example".to_owned())));
        assert_eq!("udp/53".parse(), Ok(Port(Protocol::Udp, 53)));
        assert_eq!("a.slice/b@1.scope".parse(), Ok(ControlGroup("a.slice/b@1.scope".to_owned())));
        for text in ["", "10.0.0.0/33", "10.0.0", "a b", "a;b"] {
            assert!(text.parse::<Route>().is_err(), "{text}");
        }
        for text in ["53", "udp/0", "udp/65536", "icmp/1", "tcp/"] {
            assert!(text.parse::<Port>().is_err(), "{text}");
        }
        // These end up in a script for nftables.
        for text in ["", "/a", "a/../b", "a\" accept; x", "a b", "a//b"] {
            assert!(text.parse::<ControlGroup>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_token_is_not_shown() {
        assert_eq!(format!("{:?}", Token("a-token-of-some-length".to_owned())), "Token");
    }
}
