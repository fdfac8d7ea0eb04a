//! The hosts that a server announces: those that its clients may ask for over their connection, beside the one that it was made for (ORIGIN
//! frame, RFC 9412).

use hvq::tls::ServerNames;
use hvq_h3::Origin;
use std::collections::BTreeSet;

/// Hosts that are announced on a connection, at most: clients keep some hundreds.
const MOST_HOSTS: usize = 100;

/// Tells whether the ORIGIN frame is sent (RFC 9412): to clients of HTTP/3 whose certificate is for several hosts that are served, and for
/// none of those that no list could name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OriginFrame {
    /// It is.
    #[default]
    Sent,
    /// It is not.
    Omitted,
}

/// Returns the hosts that a server announces which serves all `names` of its certificate: none if a wildcard is among them.
pub fn of_all(names: &ServerNames) -> Vec<String> {
    match names.parents(ServerNames::DEFAULT).next() {
        Some(_) => Vec::new(),
        None => worth(names.listed(ServerNames::DEFAULT).collect()),
    }
}

/// Returns `hosts` if they are worth announcing: one alone tells a client nothing, and more than a hundred are too many.
pub fn worth(hosts: BTreeSet<&str>) -> Vec<String> {
    match (2..=MOST_HOSTS).contains(&hosts.len()) {
        true => hosts.into_iter().map(str::to_owned).collect(),
        false => Vec::new(),
    }
}

/// Returns the origins of `hosts` at each of `ports`.
pub fn origins(hosts: &[String], ports: impl IntoIterator<Item = u16>) -> Vec<Origin> {
    let ports: BTreeSet<u16> = ports.into_iter().collect();
    let at =
        |host: &String| ports.iter().filter_map(|port| Origin::new(host, *port).ok()).collect::<Vec<_>>();
    hosts.iter().flat_map(at).collect()
}

/// Returns the port at which the client of `connection` came.
pub fn port(connection: &hvq::Connection) -> Option<u16> {
    connection.paths().first().map(|path| path.stats.tuple.local.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn announced(names: &[&str]) -> Vec<String> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let made = rcgen::generate_simple_self_signed(names).unwrap();
        of_all(&ServerNames::of_certificate(made.cert.der()).unwrap())
    }

    #[test]
    fn all_names_of_a_certificate_are_announced_if_there_are_several_and_no_wildcard() {
        assert_eq!(announced(&["b.test", "a.test"]), ["a.test", "b.test"]);
        assert_eq!(announced(&["a.test"]), [""; 0]);
        assert_eq!(announced(&["a.test", "b.test", "*.b.test"]), [""; 0]);
        assert_eq!(of_all(&ServerNames::default()), [""; 0]);
        let many: Vec<String> = (0..101).map(|number| format!("{number}.test")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!((announced(&many).len(), announced(&many[1..]).len()), (0, 100));
    }

    #[test]
    fn each_host_is_an_origin_at_each_port_once() {
        let hosts = ["a.test".to_owned(), "b.test".to_owned()];
        let said: Vec<String> = origins(&hosts, [443, 8443, 443]).iter().map(Origin::to_string).collect();
        assert_eq!(said, ["https://a.test", "https://a.test:8443", "https://b.test", "https://b.test:8443"]);
    }
}
