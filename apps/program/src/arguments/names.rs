//! Arguments about the names of servers.

use crate::failure::Failure;
use crate::names::Names;
use clap::Args;
use std::net::{IpAddr, SocketAddr};

/// The port of DNS.
const PORT: u16 = 53;

/// The servers that know names.
#[derive(Clone, Debug, Args)]
pub struct NameArguments {
    /// Ask this DNS server for names, not those of the system; may be repeated
    #[arg(long = "dns-server", value_name = "ADDRESS[:PORT]", value_parser = server)]
    servers: Vec<SocketAddr>,
    /// Ask for addresses alone: not for HTTPS records, which say where a host offers HTTP/3
    #[arg(long, conflicts_with = "servers")]
    no_https_records: bool,
}

/// Reads the address of a DNS server.
fn server(text: &str) -> Result<SocketAddr, String> {
    let address = text.trim_matches(['[', ']']).parse::<IpAddr>().map(|ip| SocketAddr::new(ip, PORT));
    address
        .or_else(|_| text.parse())
        .map_err(|_| format!("{text:?} is no address: expected ADDRESS or ADDRESS:PORT"))
}

impl NameArguments {
    /// The way from names to addresses that was asked for.
    ///
    /// # Errors
    /// The servers cannot be asked.
    pub fn names(&self) -> Result<Names, Failure> {
        match (self.servers.is_empty(), self.no_https_records) {
            (false, _) => Names::of_servers(&self.servers),
            (true, false) => Ok(Names::with_records()),
            (true, true) => Ok(Names::default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dns_server_is_an_address_with_or_without_a_port() {
        for (text, expected) in [
            ("192.0.2.1", "192.0.2.1:53"),
            ("192.0.2.1:5353", "192.0.2.1:5353"),
            ("2001:db8::1", "[2001:db8::1]:53"),
            ("[2001:db8::1]", "[2001:db8::1]:53"),
            ("[2001:db8::1]:5353", "[2001:db8::1]:5353"),
        ] {
            assert_eq!(server(text).unwrap(), expected.parse().unwrap(), "{text}");
        }
        for text in ["", "dns.example", "192.0.2.1:0x", "192.0.2.1:99999"] {
            assert!(server(text).unwrap_err().contains("expected ADDRESS"), "{text}");
        }
    }
}
