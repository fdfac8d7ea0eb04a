//! The names and the expiry of the gateway's certificates, and what is to be said about them.

use super::{Config, Pattern};
use boring::x509::X509;
use hvq::Identity;
use hvq::tls::CertificateHolder;
use std::time::Duration;

/// The time before the end of a certificate from which on that is said: authorities renew theirs earlier.
const SOON: Duration = Duration::from_secs(7 * 86_400);

impl Config {
    /// Returns the holders of the certificates, the default first: their names, and when they expire. One that cannot be read is left out.
    pub fn certificates(&self) -> Vec<CertificateHolder> {
        self.credentials.iter().filter_map(|credential| holder(&credential.identity)).collect()
    }
}

fn holder(identity: &Identity) -> Option<CertificateHolder> {
    let own = match identity {
        Identity::Pem { chain, .. } => X509::from_pem(chain).ok()?,
        Identity::Files { chain, .. } => X509::from_pem(&std::fs::read(chain).ok()?).ok()?,
    };
    CertificateHolder::of(&own.to_der().ok()?)
}

/// Returns sentences about what clients will mind of the certificates of `holders` by the time `now`, since the Unix epoch: one has expired,
/// or will soon, or none is for a host of these names.
pub(super) fn warnings<'a>(
    holders: &[CertificateHolder],
    hosts: impl Iterator<Item = &'a Pattern>,
    now: Duration,
) -> Vec<String> {
    let days = |time: Duration| time.as_secs() / 86_400;
    let mut said = Vec::new();
    for holder in holders {
        let certificate = match (holders.len(), holder.names.first()) {
            (2.., Some(name)) => format!("the certificate of {name}"),
            _ => "the certificate".to_owned(),
        };
        match holder.expires.checked_sub(now) {
            None => said.push(format!(
                "{certificate} has expired {} days ago: clients will refuse it",
                days(now.saturating_sub(holder.expires))
            )),
            Some(left) if left < SOON => said.push(format!("{certificate} expires in {} days", days(left))),
            Some(_) => {}
        }
    }
    let (none, it) = match holders {
        [] => return said,
        [_] => ("the certificate is not", "it"),
        _ => ("no certificate is", "the default"),
    };
    let missing = hosts.filter(|name| !holders.iter().any(|holder| covers(&holder.names, name)));
    said.extend(missing.map(|name| {
        let name = match name {
            Pattern::Below(parent) => format!("*.{parent}"),
            Pattern::Exactly(name) => name.clone(),
            Pattern::Any => "*".to_owned(),
        };
        format!("{none} for the host {name}: clients will refuse {it} there")
    }));
    said
}

/// Returns true if a certificate of these names is for all hosts that `host` means, as far as that can be said. A wildcard stands for one
/// label (RFC 9525 §6.3).
fn covers(names: &[String], host: &Pattern) -> bool {
    let has = |wanted: &str| names.iter().any(|name| name.eq_ignore_ascii_case(wanted));
    match host {
        Pattern::Any => true,
        Pattern::Below(parent) => has(&format!("*.{parent}")),
        Pattern::Exactly(name) => {
            has(name) || name.split_once('.').is_some_and(|(_, parent)| has(&format!("*.{parent}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(names: &[&str], expires: u64, hosts: &[&str]) -> Vec<String> {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        let holder = CertificateHolder { names, expires: Duration::from_secs(expires * 86_400) };
        let hosts: Vec<Pattern> = hosts.iter().map(|host| host.parse().unwrap()).collect();
        warnings(&[holder], hosts.iter(), Duration::from_secs(100 * 86_400))
    }

    #[test]
    fn nothing_is_said_of_a_certificate_that_fits() {
        let names = ["Example.org", "*.example.org"];
        let none: Vec<String> = Vec::new();
        assert_eq!(said(&names, 190, &["example.org", "a.example.org", "*.example.org", "*"]), none);
    }

    #[test]
    fn what_clients_will_mind_is_said() {
        assert!(said(&["a.org"], 97, &[])[0].contains("has expired 3 days ago"));
        assert!(said(&["a.org"], 103, &[])[0].contains("expires in 3 days"));
        for (name, host) in
            [("a.org", "b.org"), ("a.org", "*.a.org"), ("*.a.org", "a.org"), ("*.a.org", "x.y.a.org")]
        {
            let said = said(&[name], 190, &[host]);
            assert_eq!(
                said,
                [format!("the certificate is not for the host {host}: clients will refuse it there")]
            );
        }
    }
    #[test]
    fn of_several_certificates_each_expires_and_one_covers_a_host() {
        let holder = |name: &str, days: u64| CertificateHolder {
            names: vec![name.to_owned()],
            expires: Duration::from_secs(days * 86_400),
        };
        let holders = [holder("a.org", 190), holder("*.b.org", 103)];
        let hosts: Vec<Pattern> = ["a.org", "x.b.org", "c.org"].map(|host| host.parse().unwrap()).into();
        assert_eq!(
            warnings(&holders, hosts.iter(), Duration::from_secs(100 * 86_400)),
            [
                "the certificate of *.b.org expires in 3 days",
                "no certificate is for the host c.org: clients will refuse the default there"
            ]
        );
    }
}
