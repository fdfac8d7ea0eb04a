//! The clients that may go through the gateway, and their destinations: nobody and nowhere by default.

use super::certificates::{authorities, authorities_in};
use super::file::{Proxy, Source, Tunnel};
use super::resolve::instead;
use super::{ConfigError, Overrides, ProxyConfig, TunnelConfig};
use crate::clients::Clients;
use crate::destination_policy::DestinationPolicy;
use crate::tokens::Tokens;
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
/// The network of tunnels that nobody asked for another of: not one of those of `hvq run`.
const NETWORK: u8 = 200;

/// The proxy is closed unless somebody says where it leads, and then only for those who know a token or hold a certificate.
pub(super) fn proxy(
    source: &Source,
    file: Option<Spanned<Proxy>>,
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
    source: &Source,
    file: Option<&Spanned<Proxy>>,
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
    source: &Source,
    file: Option<Spanned<Tunnel>>,
    proxy: Option<&ProxyConfig>,
    overrides: &Overrides,
) -> Result<Option<TunnelConfig>, ConfigError> {
    if file.is_none() && overrides.routes.is_empty() {
        return Ok(None);
    }
    let wrong = |problem: &str| match &file {
        Some(tunnel) => source.wrong(tunnel, problem),
        None => ConfigError::Missing(format!("--tunnel-route: {problem}")),
    };
    if proxy.is_none() {
        return Err(wrong("[proxy] says who may have a tunnel: name tokens or client_ca there"));
    }
    if !cfg!(target_os = "linux") {
        return Err(wrong("only Linux has the devices that tunnels need"));
    }
    let written = file.as_ref().map(Spanned::get_ref);
    let routes = instead(&overrides.routes, written.map(|tunnel| tunnel.routes.clone()).unwrap_or_default());
    if routes.is_empty() {
        return Err(wrong("a tunnel leads nowhere without routes, such as \"10.0.0.0/8\""));
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
        network: written.and_then(|tunnel| tunnel.network).unwrap_or(NETWORK),
        addresses_per_client: per_client.map_or(ADDRESSES, NonZeroUsize::get),
        rest: written.and_then(|tunnel| tunnel.rest.as_ref()).map_or(REST, |rest| rest.0.0),
    }))
}
