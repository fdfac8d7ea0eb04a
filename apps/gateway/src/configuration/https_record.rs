//! HTTPS records (RFC 9460), by which browsers learn of HTTP/3 before their first connection.

use super::{Config, Pattern};
use std::net::SocketAddr;

/// The port that is meant where a record names none (RFC 9110 §4.2.2).
const HTTPS: u16 = 443;

impl Config {
    /// Returns the records for the zones of the hosts that are named, in the form of a zone file: one line for each name, or two where
    /// TCP has another port than UDP. Hosts of all names have none.
    pub fn https_records(&self) -> Vec<String> {
        let http3 = self.listen.first().map_or(HTTPS, SocketAddr::port);
        let tcp = self.tcp.as_ref().and_then(|tcp| tcp.listen.first()).map(SocketAddr::port);
        let owner = |name: &Pattern| match name {
            Pattern::Any => None,
            Pattern::Below(parent) => Some(format!("*.{parent}.")),
            Pattern::Exactly(name) => Some(format!("{name}.")),
        };
        let owners = self.hosts.iter().flat_map(|host| &host.names).filter_map(owner);
        let ways = ways(http3, tcp);
        owners.flat_map(|owner| ways.iter().map(move |way| format!("{owner} HTTPS {way}"))).collect()
    }
}

/// Priority, target and parameters of the records, the preferred one first (RFC 9460 §2.4.1). `http/1.1` counts as spoken unless a record
/// says otherwise (§7.1.2).
fn ways(http3: u16, tcp: Option<u16>) -> Vec<String> {
    let port = |port| if port == HTTPS { String::new() } else { format!(" port={port}") };
    match tcp {
        Some(tcp) if tcp == http3 => vec![format!("1 . alpn=\"h3,h2\"{}", port(tcp))],
        Some(tcp) => vec![
            format!("1 . alpn=\"h3\" no-default-alpn{}", port(http3)),
            format!("2 . alpn=\"h2\"{}", port(tcp)),
        ],
        None => vec![format!("1 . alpn=\"h3\" no-default-alpn{}", port(http3))],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_says_what_is_spoken_and_where_unless_that_is_the_usual_port() {
        assert_eq!(ways(443, Some(443)), ["1 . alpn=\"h3,h2\""]);
        assert_eq!(ways(8443, Some(8443)), ["1 . alpn=\"h3,h2\" port=8443"]);
        assert_eq!(ways(4433, None), ["1 . alpn=\"h3\" no-default-alpn port=4433"]);
        assert_eq!(ways(4433, Some(443)), ["1 . alpn=\"h3\" no-default-alpn port=4433", "2 . alpn=\"h2\""]);
    }
}
