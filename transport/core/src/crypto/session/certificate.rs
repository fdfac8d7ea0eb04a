//! The holders of certificates.

use boring::asn1::Asn1Time;
use boring::nid::Nid;
use boring::x509::X509;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

/// Names that are read of one certificate at most.
const MOST_NAMES: usize = 64;
const SECONDS_A_DAY: u64 = 86_400;

/// The holder of a certificate, and its expiry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CertificateHolder {
    /// Subject alternative names (RFC 5280 §4.2.1.6: hosts, addresses, e-mail addresses and URIs), then the common name of
    /// the subject; a few dozen at most.
    pub names: Vec<String>,
    /// The time of expiry, since the Unix epoch.
    pub expires: Duration,
}

impl CertificateHolder {
    /// Reads the holder of the certificate `der`; `None` if it is none. This tells nothing of whether it is genuine:
    /// whoever asks knows that it was verified, by its connection.
    pub fn of(der: &[u8]) -> Option<Self> {
        let certificate = X509::from_der(der).ok()?;
        let mut names = Vec::new();
        for name in certificate.subject_alt_names().iter().flatten() {
            let text = name.dnsname().or_else(|| name.email()).or_else(|| name.uri());
            names.extend(text.map(str::to_owned));
            names.extend(name.ipaddress().and_then(address).map(|address| address.to_string()));
        }
        for entry in certificate.subject_name().entries_by_nid(Nid::COMMONNAME) {
            names.extend(entry.data().as_utf8().ok().map(|name| name.to_string()));
        }
        names.truncate(MOST_NAMES);
        let lifetime = Asn1Time::from_unix(0).ok()?.diff(certificate.not_after()).ok()?;
        // What expired before the epoch has expired.
        let part = |count: i32| u64::try_from(count).unwrap_or(0);
        let expires = Duration::from_secs(part(lifetime.days) * SECONDS_A_DAY + part(lifetime.secs));
        Some(Self { names, expires })
    }
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(v4) = <[u8; 4]>::try_from(bytes) {
        return Some(Ipv4Addr::from(v4).into());
    }
    <[u8; 16]>::try_from(bytes).ok().map(|v6| Ipv6Addr::from(v6).into())
}
