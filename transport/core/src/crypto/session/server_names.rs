//! The names of a server's certificates, and the certificate for each name that clients ask for.

use boring::x509::X509;
use std::collections::HashMap;

/// The host names of a server's certificates, by which one is chosen for each client (RFC 6066 §3). Names are the subject alternative
/// names of the type dNSName alone, as browsers read them (RFC 9525 §6.3), without regard to case; a wildcard is the whole of the
/// leftmost label and stands for one label.
#[derive(Clone, Debug, Default)]
pub struct ServerNames {
    /// The certificates that have this very name, by their numbers.
    exact: HashMap<String, Vec<usize>>,
    /// The certificates of all names one label below this one.
    below: HashMap<String, Vec<usize>>,
}

impl ServerNames {
    /// The number of the certificate for clients that name no host, and for hosts that no certificate names.
    pub const DEFAULT: usize = 0;

    /// Returns the names of the certificate `der` alone, as number [`ServerNames::DEFAULT`]; `None` if it is none. This tells nothing of
    /// whether it is genuine.
    pub fn of_certificate(der: &[u8]) -> Option<Self> {
        let certificate = X509::from_der(der).ok()?;
        let mut names = Self::default();
        names.add(Self::DEFAULT, &certificate);
        Some(names)
    }

    /// Adds the names of the certificate of this number.
    pub(super) fn add(&mut self, number: usize, certificate: &X509) {
        for name in certificate.subject_alt_names().iter().flatten().filter_map(|name| name.dnsname()) {
            self.add_name(number, name);
        }
    }

    fn add_name(&mut self, number: usize, name: &str) {
        let name = canonical(name);
        let (names, key) = match name.strip_prefix("*.") {
            Some(parent) => (&mut self.below, parent.to_owned()),
            None => (&mut self.exact, name),
        };
        let numbers = names.entry(key).or_default();
        if numbers.last() != Some(&number) {
            numbers.push(number);
        }
    }

    /// Returns the number of the certificate for clients that ask for `host`: the first with this very name, or else the first with a
    /// wildcard for it, or else [`ServerNames::DEFAULT`].
    pub fn choose(&self, host: Option<&str>) -> usize {
        host.and_then(|host| self.of(&canonical(host)).next()).unwrap_or(Self::DEFAULT)
    }

    /// Returns true if a client that was shown the certificate of this number may ask for `host` there: the certificate is for the
    /// host, or a new connection to the host would be shown the same one.
    pub fn serves(&self, number: usize, host: &str) -> bool {
        let host = canonical(host);
        self.of(&host).any(|known| known == number) || self.choose(Some(&host)) == number
    }

    /// Returns true if the certificate of this number is for `host`.
    pub fn covers(&self, number: usize, host: &str) -> bool {
        self.of(&canonical(host)).any(|known| known == number)
    }

    /// The names that the certificate of this number has itself, in no order: those without a wildcard.
    pub fn listed(&self, number: usize) -> impl Iterator<Item = &str> {
        of_number(&self.exact, number)
    }

    /// The parents of the names that the certificate of this number is for by a wildcard, in no order.
    pub fn parents(&self, number: usize) -> impl Iterator<Item = &str> {
        of_number(&self.below, number)
    }

    /// The certificates for `host`, those with its very name first.
    fn of(&self, host: &str) -> impl Iterator<Item = usize> {
        let exact = self.exact.get(host);
        let below = host.split_once('.').and_then(|(_, parent)| self.below.get(parent));
        exact.into_iter().chain(below).flatten().copied()
    }
}

/// The names that the certificate of this number is among the certificates of.
fn of_number(names: &HashMap<String, Vec<usize>>, number: usize) -> impl Iterator<Item = &str> {
    names.iter().filter(move |(_, numbers)| numbers.contains(&number)).map(|(name, _)| name.as_str())
}

/// `name` in lower case, without the dot of the root.
fn canonical(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(certificates: &[&[&str]]) -> ServerNames {
        let mut names = ServerNames::default();
        for (number, listed) in certificates.iter().enumerate() {
            listed.iter().for_each(|name| names.add_name(number, name));
        }
        names
    }

    #[test]
    fn the_very_name_goes_before_a_wildcard_and_the_first_certificate_before_others() {
        let names = names(&[
            &["main.test"],
            &["*.wild.test", "Upper.Test"],
            &["www.wild.test"],
            &["www.wild.test", "*.wild.test"],
        ]);
        for (host, number) in [
            ("www.wild.test", 2),
            ("WWW.Wild.Test.", 2),
            ("other.wild.test", 1),
            ("upper.test", 1),
            ("main.test", 0),
        ] {
            assert_eq!(names.choose(Some(host)), number, "{host}");
        }
    }

    #[test]
    fn a_wildcard_is_one_whole_label_and_everything_else_has_the_default() {
        let names = names(&[&["main.test"], &["*.wild.test", "f*.part.test", "*"]]);
        for host in ["wild.test", ".wild.test.evil", "a.b.wild.test", "foo.part.test", "anything", "", "."] {
            assert_eq!(names.choose(Some(host)), ServerNames::DEFAULT, "{host}");
        }
        assert_eq!(names.choose(None), ServerNames::DEFAULT);
    }

    #[test]
    fn a_connection_serves_the_names_of_its_certificate_and_the_default_those_of_none() {
        let names = names(&[&["main.test"], &["a.test", "shared.test"], &["b.test", "shared.test"]]);
        assert!(names.serves(1, "a.test") && names.serves(2, "b.test") && names.serves(0, "main.test"));
        assert!(names.serves(1, "shared.test") && names.serves(2, "Shared.Test"), "both are for it");
        assert!(!names.serves(1, "b.test") && !names.serves(0, "a.test") && !names.serves(1, "main.test"));
        assert!(names.serves(0, "unknown.test") && !names.serves(1, "unknown.test"));
        assert!(names.covers(1, "A.Test.") && !names.covers(1, "b.test"));
        assert!(!names.covers(0, "unknown.test"), "it would be shown, and is not for it");
    }

    #[test]
    fn a_certificate_lists_its_names_and_the_parents_of_its_wildcards() {
        let names = names(&[&["main.test", "*.wild.test"], &["Other.Test", "main.test"]]);
        let sorted = |names: Vec<&str>| {
            let mut names: Vec<String> = names.into_iter().map(str::to_owned).collect();
            names.sort();
            names
        };
        assert_eq!(sorted(names.listed(0).collect()), ["main.test"]);
        assert_eq!(sorted(names.listed(1).collect()), ["main.test", "other.test"]);
        assert_eq!(names.parents(0).collect::<Vec<_>>(), ["wild.test"]);
        assert_eq!(names.parents(1).count() + names.listed(2).count(), 0);
    }

    #[test]
    fn the_names_of_one_certificate_are_read_from_it() {
        let names = ["a.test".to_owned(), "*.b.test".to_owned()];
        let made = rcgen::generate_simple_self_signed(names).unwrap();
        let names = ServerNames::of_certificate(made.cert.der()).unwrap();
        assert!(
            names.covers(ServerNames::DEFAULT, "a.test") && names.covers(ServerNames::DEFAULT, "x.b.test")
        );
        assert!(!names.covers(ServerNames::DEFAULT, "b.test"));
        assert!(ServerNames::of_certificate(b"nonsense").is_none());
    }
}
