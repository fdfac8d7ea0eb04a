//! The clients that may go through the gateway, and their destinations: nobody and nowhere by default.

use super::certificates::{authorities, authorities_in};
use super::file::{ProxyTable, SourceText, TunnelTable};
use super::resolve::instead;
use super::{ConfigError, Overrides, ProxyConfig, TunnelConfig};
use crate::clients::Clients;
use crate::destination_policy::{Coverage, DestinationPolicy};
use crate::tokens::Tokens;
use ipnet::IpNet;
use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroUsize;
use std::time::Duration;
use toml::Spanned;

/// The default name of the device of tunnels.
const DEVICE: &str = "hvq0";
/// Tunnels of a client.
const ADDRESSES: usize = 16;
/// The time for which what is under way to an address may still come.
const REST: Duration = Duration::from_secs(60);
/// The longest name of a device.
const LONGEST_DEVICE: usize = 15;
/// The beginning of what is said about routes.
const ROUTES: &str = "[tunnel] routes (--tunnel-route): ";
/// Networks that a warning names.
const NAMED: usize = 4;
/// The network of tunnels that nobody asked for another of: not one of those of `hvq run`.
const NETWORK: u8 = 200;

/// The proxy is closed unless somebody says where it leads, and then only for those who know a token or hold a certificate.
pub(super) fn proxy(
    source: &SourceText,
    file: Option<Spanned<ProxyTable>>,
    overrides: &Overrides,
) -> Result<Option<ProxyConfig>, ConfigError> {
    if file.is_none() && overrides.allow.is_empty() && overrides.routes.is_empty() {
        let Overrides { tokens, client_ca, clients, reach, .. } = overrides;
        if tokens.is_some() || client_ca.is_some() || !clients.is_empty() || !reach.is_empty() {
            return Err(ConfigError::Missing(
                "--tokens, --client-ca, --client and --reach are for what leads through the gateway to other hosts, and \
                 protect nothing else: say where it leads (--allow, --tunnel-route or [proxy])"
                    .to_owned(),
            ));
        }
        return Ok(None);
    }
    let clients = clients(source, file.as_ref(), overrides)?;
    let (allow, reach, underscores) = match file.map(Spanned::into_inner) {
        Some(proxy) => {
            (proxy.allow.into_iter().map(|text| text.0).collect::<Vec<_>>(), proxy.reach, proxy.underscores)
        }
        None => Default::default(),
    };
    Ok(Some(ProxyConfig {
        allow: instead(&overrides.allow, allow),
        clients,
        reach: DestinationPolicy::new(instead(&overrides.reach, reach)),
        underscores,
    }))
}

fn clients(
    source: &SourceText,
    file: Option<&Spanned<ProxyTable>>,
    overrides: &Overrides,
) -> Result<Clients, ConfigError> {
    let written = file.map(Spanned::get_ref);
    let tokens = match (&overrides.tokens, written.and_then(|proxy| proxy.tokens.as_ref())) {
        (Some(path), _) => Some(Tokens::read(path).map_err(ConfigError::Missing)?),
        (None, Some(path)) => {
            Some(Tokens::read(path.get_ref()).map_err(|problem| source.wrong(path, problem))?)
        }
        (None, None) => None,
    };
    let authority = match (&overrides.client_ca, written.and_then(|proxy| proxy.client_ca.as_ref())) {
        (Some(path), _) => Some(authorities_in(path)?),
        (None, Some(path)) => Some(authorities(source, path)?),
        (None, None) => None,
    };
    let names = instead(&overrides.clients, written.map(|proxy| proxy.clients.clone()).unwrap_or_default());
    let problem = if tokens.is_none() && authority.is_none() {
        "who may go through the gateway has to know a token or to hold a certificate: name the file of tokens (tokens, \
         --tokens) or of the certificates' authority (client_ca, --client-ca)"
    } else if authority.is_none() && !names.is_empty() {
        "names of clients are those in certificates: name the file of their authority (client_ca, --client-ca)"
    } else {
        return Ok(Clients { tokens, authority, names });
    };
    Err(match file {
        Some(proxy) => source.wrong(proxy, problem),
        None => ConfigError::Missing(problem.to_owned()),
    })
}

/// Tunnels are for those whom `proxy` lets through, if it is there.
pub(super) fn tunnel(
    source: &SourceText,
    file: Option<Spanned<TunnelTable>>,
    proxy: Option<&ProxyConfig>,
    overrides: &Overrides,
) -> Result<Option<TunnelConfig>, ConfigError> {
    if file.is_none() && overrides.routes.is_empty() {
        return Ok(None);
    }
    let wrong = |problem: &str| match &file {
        Some(tunnel) => source.wrong(tunnel, problem),
        None => ConfigError::Missing(format!("--tunnel-route: {}", problem.trim_start_matches(ROUTES))),
    };
    let Some(proxy) = proxy else {
        return Err(wrong("[proxy] says who may have a tunnel: name tokens or client_ca there"));
    };
    if !cfg!(target_os = "linux") {
        return Err(wrong("only Linux has the devices that tunnels need"));
    }
    let written = file.as_ref().map(Spanned::get_ref);
    let routes = instead(&overrides.routes, written.map(|tunnel| tunnel.routes.clone()).unwrap_or_default());
    if routes.is_empty() {
        return Err(wrong("a tunnel leads nowhere without routes, such as \"10.0.0.0/8\""));
    }
    let network = written.and_then(|tunnel| tunnel.network).unwrap_or(NETWORK);
    if let Some(problem) =
        routes.iter().find_map(|route| leads_nowhere(route, &routes, &proxy.reach, network))
    {
        return Err(wrong(&problem));
    }
    let device = written.and_then(|tunnel| tunnel.device.as_ref());
    if let Some(device) = device {
        let name = device.get_ref();
        let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
        if name.is_empty() || name.len() > LONGEST_DEVICE || !plain {
            return Err(source.wrong(device, "a device's name has 1 to 15 letters, digits, dots and dashes"));
        }
    }
    let per_client = written.and_then(|tunnel| tunnel.addresses_per_client);
    Ok(Some(TunnelConfig {
        device: device.map_or(DEVICE, |device| device.get_ref()).to_owned(),
        routes,
        network,
        addresses_per_client: per_client.map_or(ADDRESSES, NonZeroUsize::get),
        rest: written.and_then(|tunnel| tunnel.rest.as_ref()).map_or(REST, |rest| rest.0.0),
        tcp_lane: written.and_then(|tunnel| tunnel.tcp_lane).unwrap_or(true),
    }))
}

/// Returns the reason why every packet to `route` would be dropped, if it would.
fn leads_nowhere(route: &IpNet, routes: &[IpNet], reach: &DestinationPolicy, network: u8) -> Option<String> {
    let of_tunnels = |host| IpAddr::V4(Ipv4Addr::new(100, 64, network, host));
    let (tunnels, gateway) = (IpNet::new(of_tunnels(0), 24).expect("24 bits are a prefix"), of_tunnels(1));
    let problem = if tunnels.contains(route) && !route.contains(&gateway) {
        format!("{tunnels} is the network of the tunnels themselves, and none leads to another")
    } else if reach.coverage(route, routes) == Coverage::Nothing
        || *route == IpNet::from(gateway) && !reach.names(gateway)
    {
        "it is neither public nor a private network, or of this machine, and has to stand in [proxy] reach (--reach), too"
            .to_owned()
    } else {
        return None;
    };
    Some(format!("{ROUTES}every packet to {route} would be dropped: {problem}"))
}

/// Returns what an operator is told about each route that leads in part to addresses which may not be reached.
pub(super) fn warnings(tunnel: &TunnelConfig, reach: &DestinationPolicy) -> Vec<String> {
    let warning = |route: &IpNet| match reach.coverage(route, &tunnel.routes) {
        Coverage::Without(networks) => {
            let named = networks.iter().take(NAMED).map(ToString::to_string).collect::<Vec<_>>().join(", ");
            let more = if networks.len() > NAMED { ", …" } else { "" };
            Some(format!(
                "{ROUTES}packets to {named}{more} are dropped, though {route} leads there: networks \
                 that are not public have to stand in [proxy] reach (--reach), or be routes of their own"
            ))
        }
        Coverage::Whole | Coverage::Nothing => None,
    };
    tunnel.routes.iter().filter_map(warning).collect()
}
