//! The hosts that a connection is announced to be for, beside the one that its client asked for (ORIGIN frame, RFC 9412).

use crate::configuration::Pattern;
use hvq::tls::ServerNames;
use hvq_program::announced::worth;
use std::collections::BTreeSet;

/// Returns the hosts among `served` that the certificate of this number is for: the names that either of both lists. There are none if it
/// is for less than two, since nothing is to be told then, and none if one cannot list them all, since wildcards have no place in the
/// frame and clients may leave out what it does not name (RFC 8336 §2.2).
pub(crate) fn hosts<'a>(
    names: &ServerNames,
    number: usize,
    served: impl Iterator<Item = &'a Pattern> + Clone,
) -> Vec<String> {
    if names.parents(number).any(|parent| served.clone().any(|pattern| is_open(pattern, parent))) {
        return Vec::new();
    }
    let is_served = |name: &&str| served.clone().any(|pattern| pattern.matches(name));
    let mut hosts: BTreeSet<&str> = names.listed(number).filter(is_served).collect();
    hosts.extend(served.clone().filter_map(|pattern| match pattern {
        Pattern::Exactly(name) if names.covers(number, name) => Some(name.as_str()),
        Pattern::Exactly(_) | Pattern::Below(_) | Pattern::Any => None,
    }));
    worth(hosts)
}

/// Returns true if `pattern` is for more names one label below `parent` than can be listed.
fn is_open(pattern: &Pattern, parent: &str) -> bool {
    match pattern {
        Pattern::Any => true,
        Pattern::Below(name) => name == parent || pattern.matches(parent),
        Pattern::Exactly(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hosts that are announced with a certificate for `names` where `served` are.
    fn announced(names: &[&str], served: &[&str]) -> Vec<String> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let made = rcgen::generate_simple_self_signed(names).unwrap();
        let names = ServerNames::of_certificate(made.cert.der()).unwrap();
        let served: Vec<Pattern> = served.iter().map(|text| text.parse().unwrap()).collect();
        hosts(&names, ServerNames::DEFAULT, served.iter())
    }

    #[test]
    fn hosts_are_announced_that_are_served_and_that_the_certificate_is_for() {
        assert_eq!(
            announced(&["b.test", "a.test", "c.test"], &["a.test", "B.test", "d.test"]),
            ["a.test", "b.test"]
        );
        assert_eq!(announced(&["a.test", "b.test"], &["*"]), ["a.test", "b.test"]);
        assert_eq!(announced(&["a.x.test", "b.x.test", "c.test"], &["*.x.test"]), ["a.x.test", "b.x.test"]);
        assert_eq!(
            announced(&["*.x.test"], &["a.x.test", "b.x.test", "x.test", "a.b.x.test"]),
            ["a.x.test", "b.x.test"]
        );
    }

    #[test]
    fn nothing_is_announced_that_would_be_the_only_host_or_not_all() {
        assert_eq!(announced(&["a.test"], &["a.test", "b.test"]), [""; 0]);
        assert_eq!(announced(&["a.test", "b.test"], &["c.test"]), [""; 0]);
        // Names that cannot be listed.
        assert_eq!(announced(&["a.test", "b.test", "*.x.test"], &["a.test", "b.test", "*.x.test"]), [""; 0]);
        assert_eq!(
            announced(&["a.test", "b.test", "*.y.x.test"], &["a.test", "b.test", "*.x.test"]),
            [""; 0]
        );
        assert_eq!(announced(&["a.test", "b.test", "*.x.test"], &["*"]), [""; 0]);
        assert_eq!(announced(&["a.test", "b.test", "*.x.test"], &["a.test", "b.test"]), ["a.test", "b.test"]);
        let many: Vec<String> = (0..101).map(|number| format!("{number}.test")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(announced(&many, &["*"]), [""; 0]);
        assert_eq!(announced(&many[1..], &["*"]).len(), 100);
    }
}
