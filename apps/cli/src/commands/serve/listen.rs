//! The sockets of the server, and which channel each belongs to.

use super::ServeArguments;
use crate::failure::{Exit, Failure, OrFail};
use crate::output;
use crate::qlog::Logs;
use hvq::transport::connection::ChannelHint;
use hvq::{
    ChannelOptions, Dscp, Endpoint, EndpointOptions, LocalAddress, PreferredAddresses, ServerConfig,
    ServerTls, TransportConfig,
};
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;

/// The address on which a server listens by default.
const DEFAULT: SocketAddr = SocketAddr::new(std::net::IpAddr::V6(Ipv6Addr::UNSPECIFIED), 4433);

/// Binds the sockets that the arguments name.
pub(super) fn bind(arguments: &ServeArguments, tls: ServerTls, logs: &Logs) -> Result<Endpoint, Failure> {
    let local = addresses(&arguments.listen, &arguments.channel)?;
    let server = |channels, codepoints| {
        let transport = logs.watch(TransportConfig {
            channels,
            codepoints,
            migration: arguments.migration,
            preferred_addresses: preferred(&arguments.preferred_address),
            ..arguments.transport.config()
        });
        ServerConfig { retry: arguments.retry, ..ServerConfig::new(tls.clone(), Arc::new(transport)) }
    };
    let options = EndpointOptions {
        server: Some(server(Vec::new(), Vec::new())),
        local: local.clone(),
        ..EndpointOptions::default()
    };
    let endpoint = Endpoint::new(options).or_fail(Exit::Usage, || {
        let local = local.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        format!("cannot listen on {local}")
    })?;
    // Only now are the ports known that the system chose.
    let bound = endpoint.local_addrs();
    let hints = hints(&arguments.channel, &bound);
    if !hints.is_empty() {
        endpoint.set_server(Some(server(hints, codepoints(&arguments.channel, &bound))));
    }
    Ok(endpoint)
}

/// Returns the addresses to bind: `listen`, and the addresses of channels that are not among them.
pub(crate) fn addresses(
    listen: &[SocketAddr],
    channels: &[ChannelOptions],
) -> Result<Vec<LocalAddress>, Failure> {
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

/// The last preferred address of each IP version.
fn preferred(addresses: &[SocketAddr]) -> PreferredAddresses {
    let mut preferred = PreferredAddresses::default();
    for address in addresses {
        match address {
            SocketAddr::V4(v4) => preferred.ipv4 = Some(*v4),
            SocketAddr::V6(v6) => preferred.ipv6 = Some(*v6),
        }
    }
    preferred
}

/// The codepoints of the sockets that are bound to `bound`.
fn codepoints(channels: &[ChannelOptions], bound: &[SocketAddr]) -> Vec<(SocketAddr, Dscp)> {
    let of = |bound: &SocketAddr| channels.iter().find_map(|channel| channel.codepoint_for(*bound));
    bound.iter().filter_map(of).collect()
}

/// Returns the hints about the sockets that are bound to `bound`.
pub(crate) fn hints(channels: &[ChannelOptions], bound: &[SocketAddr]) -> Vec<ChannelHint> {
    let of = |bound: &SocketAddr| channels.iter().find_map(|channel| channel.hint_for(*bound));
    bound.iter().filter_map(of).collect()
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
        assert_eq!(hints(&channels, &sockets).len(), 2);
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
