//! The file that browsers configure themselves with (proxy auto-config).

use std::net::SocketAddr;

/// Tells whether the proxy is asked over TLS too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Offer {
    /// It is.
    Tls,
    /// It is not.
    Plain,
}

/// The file for a proxy at `address`.
pub(crate) fn file(address: SocketAddr, offer: Offer) -> String {
    let proxies = match offer {
        Offer::Tls => format!("HTTPS {address}; PROXY {address}; SOCKS5 {address}"),
        Offer::Plain => format!("PROXY {address}; SOCKS5 {address}"),
    };
    // What is on this machine is not on the gateway's.
    format!(
        "function FindProxyForURL(url, host) {{\n  \
           if (isPlainHostName(host) || host === \"localhost\" || shExpMatch(host, \"127.*\") || host === \"[::1]\")\n    \
             return \"DIRECT\";\n  \
           return \"{proxies}\";\n}}\n"
    )
}
