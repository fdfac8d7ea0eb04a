//! The sockets of a server, and which channel each belongs to.

use crate::failure::{Exit, Failure, OrFail};
use crate::output;
use hvq::config::{ChannelHint, Dscp, PreferredAddresses};
use hvq::{ChannelOptions, Endpoint, EndpointOptions, LocalAddress, ServerConfig};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// The address on which a server listens by default.
const DEFAULT: SocketAddr = SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 4433);

/// The facts about the channels of a server's sockets.
#[derive(Clone, Debug, Default)]
pub struct SocketFacts {
    /// Hints about channels.
    pub hints: Vec<ChannelHint>,
    /// The codepoints of packets (RFC 2474) by local address.
    pub codepoints: Vec<(SocketAddr, Dscp)>,
}

impl SocketFacts {
    /// The facts about those of `channels` that the sockets on `bound` belong to.
    fn of(channels: &[ChannelOptions], bound: &[SocketAddr]) -> Self {
        let hint = |bound: &SocketAddr| channels.iter().find_map(|channel| channel.hint_for(*bound));
        let codepoint =
            |bound: &SocketAddr| channels.iter().find_map(|channel| channel.codepoint_for(*bound));
        Self {
            hints: bound.iter().filter_map(hint).collect(),
            codepoints: bound.iter().filter_map(codepoint).collect(),
        }
    }
}

/// Binds a server to the addresses `listen` and to those of `channels`, by default to port 4433 of all addresses. `config`
/// returns its configuration for what is known of its sockets: nothing at first, since the system may choose ports.
///
/// # Errors
/// An address or a channel stands there twice or cannot be listened on ([`Exit::Usage`]).
pub fn bind(
    listen: &[SocketAddr],
    channels: &[ChannelOptions],
    config: impl Fn(SocketFacts) -> ServerConfig,
) -> Result<Endpoint, Failure> {
    let local = addresses(listen, channels)?;
    let options = EndpointOptions {
        server: Some(config(SocketFacts::default())),
        local: local.clone(),
        ..EndpointOptions::default()
    };
    let endpoint = Endpoint::new(options).or_fail(Exit::Usage, || {
        let local = local.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        format!("cannot listen on {local}")
    })?;
    // Only now are the ports known that the system chose.
    let facts = SocketFacts::of(channels, &endpoint.local_addrs());
    if !facts.hints.is_empty() {
        endpoint.set_server(Some(config(facts)))?;
    }
    Ok(endpoint)
}

/// The preferred addresses of a server (RFC 9000 §9.6): the last of `addresses` of each IP version.
pub fn preferred(addresses: &[SocketAddr]) -> PreferredAddresses {
    let mut preferred = PreferredAddresses::default();
    for address in addresses {
        match address {
            SocketAddr::V4(v4) => preferred.ipv4 = Some(*v4),
            SocketAddr::V6(v6) => preferred.ipv6 = Some(*v6),
        }
    }
    preferred
}

/// Returns the addresses to bind: `listen`, and the addresses of channels that are not among them.
fn addresses(listen: &[SocketAddr], channels: &[ChannelOptions]) -> Result<Vec<LocalAddress>, Failure> {
    let names: Vec<_> = channels.iter().map(|channel| &channel.name).collect();
    output::check_distinct("--channel", &names)?;
    // The system chooses another port each time that it is asked to.
    let chosen: Vec<_> = listen.iter().filter(|address| address.port() != 0).collect();
    output::check_distinct("--listen", &chosen)?;
    let mut local: Vec<LocalAddress> = listen.iter().copied().map(LocalAddress::Socket).collect();
    for channel in channels {
        if listen.iter().any(|bound| channel.hint_for(*bound).is_some()) {
            continue;
        }
        match &channel.local {
            LocalAddress::Ip(address) => {
                local.push(LocalAddress::Socket(SocketAddr::new(*address, DEFAULT.port())));
            }
            LocalAddress::Socket(_) => local.push(channel.local.clone()),
            LocalAddress::Link(link) => {
                local.push(LocalAddress::Socket(SocketAddr::new(link.address, DEFAULT.port())));
            }
            LocalAddress::Interface(name) => {
                let text =
                    format!("--channel {}: {name} is an interface; a server needs an address", channel.name);
                return Err(Failure::new(Exit::Usage, text));
            }
        }
    }
    if local.is_empty() {
        local.push(LocalAddress::Socket(DEFAULT));
    }
    Ok(local)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_are_bound_unless_a_listening_address_is_theirs() {
        let listen = ["127.0.0.1:4433".parse().unwrap()];
        let channels: Vec<ChannelOptions> =
            ["embb=127.0.0.1:4433,rate=60mbit", "urllc=127.0.0.2"].map(|text| text.parse().unwrap()).into();
        let bound = addresses(&listen, &channels).unwrap();
        let wanted = ["127.0.0.1:4433", "127.0.0.2:4433"].map(|text| text.parse::<LocalAddress>().unwrap());
        assert_eq!(bound, wanted);
        let sockets = ["127.0.0.1:4433", "127.0.0.2:4433"].map(|text| text.parse().unwrap());
        assert_eq!(SocketFacts::of(&channels, &sockets).hints.len(), 2);
        assert_eq!(addresses(&[], &[]).unwrap(), [LocalAddress::Socket(DEFAULT)]);
    }

    #[test]
    fn nothing_stands_there_twice() {
        let socket = |text: &str| text.parse::<SocketAddr>().unwrap();
        let failure = addresses(&[socket("127.0.0.1:1"), socket("127.0.0.1:1")], &[]).unwrap_err();
        assert!(failure.line().contains("--listen: 127.0.0.1:1 stands there twice"), "{}", failure.line());
        assert_eq!(addresses(&[socket("127.0.0.1:0"), socket("127.0.0.1:0")], &[]).unwrap().len(), 2);
        let channels: Vec<ChannelOptions> =
            ["a=127.0.0.1", "a=127.0.0.2"].map(|text| text.parse().unwrap()).into();
        let failure = addresses(&[], &channels).unwrap_err();
        assert!(failure.line().contains("--channel: a stands there twice"), "{}", failure.line());
    }

    #[test]
    fn an_interface_is_no_listening_address() {
        let channel: ChannelOptions = "wifi=wlan0".parse().unwrap();
        let failure = addresses(&[], &[channel]).unwrap_err();
        assert!(failure.line().contains("wlan0 is an interface"), "{}", failure.line());
    }
}
