//! The clients that may go through the gateway: those who show a token, and those who hold a certificate of an
//! authority.

use crate::tokens::Tokens;
use http::HeaderValue;
use hvq::tls::CertificateHolder;
use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

/// The tokens and certificates that open the gateway. A token that is shown counts before a certificate.
#[derive(Clone, Default)]
pub struct Clients {
    /// Tokens that may be shown.
    pub tokens: Option<Tokens>,
    /// The authorities whose certificates count, in PEM: clients are asked for one during the handshake (RFC 8446 §4.3.2).
    /// One counts for as long as the connection lasts that began while its authority was here.
    pub authority: Option<Vec<u8>>,
    /// Names that certificates have to have, `*.example.org` for all below one; all certificates count if there is none.
    pub names: Vec<String>,
}

impl Clients {
    /// The name of whoever shows `token` or, if that is none of ours, comes with the certificates that `chain` tells.
    pub(crate) fn name(
        &self,
        token: Option<&HeaderValue>,
        chain: impl FnOnce() -> Vec<Vec<u8>>,
    ) -> Option<String> {
        if let Some(name) = self.tokens.as_ref().and_then(|tokens| tokens.name(token)) {
            return Some(name.to_owned());
        }
        // Without an authority nobody verified what a client came with.
        self.authority.as_ref()?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        // A session that is resumed has the certificate of the one before, which may have expired since.
        let holder = CertificateHolder::of(chain().first()?).filter(|holder| holder.expires > now)?;
        let counts = |name: &&String| self.names.is_empty() || self.names.iter().any(|known| is(known, name));
        holder.names.iter().find(counts).map(|name| word(name))
    }
}

impl fmt::Debug for Clients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let authority = self.authority.is_some();
        f.debug_struct("Clients")
            .field("tokens", &self.tokens)
            .field("authority", &authority)
            .finish_non_exhaustive()
    }
}

/// Returns true if `name` is one that `known` means.
fn is(known: &str, name: &str) -> bool {
    match known.strip_prefix('*').filter(|suffix| suffix.starts_with('.')) {
        Some(suffix) => {
            let split = name.len().checked_sub(suffix.len()).and_then(|at| name.split_at_checked(at));
            split.is_some_and(|(front, end)| !front.is_empty() && end.eq_ignore_ascii_case(suffix))
        }
        None => known.eq_ignore_ascii_case(name),
    }
}

/// The name as one word, for the access log.
fn word(name: &str) -> String {
    let plain = |sign: char| if sign.is_ascii_graphic() && sign != '"' { sign } else { '_' };
    name.chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DnType, KeyPair, date_time_ymd};

    /// A certificate for these names that is good until `year`.
    fn certificate(names: &[&str], year: i32) -> Vec<Vec<u8>> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name.push(DnType::CommonName, "Ann \"the\" First");
        params.not_after = date_time_ymd(year, 1, 1);
        vec![params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()]
    }

    fn clients(names: &[&str]) -> Clients {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        Clients { tokens: None, authority: Some(Vec::new()), names }
    }

    #[test]
    fn certificates_count_by_the_names_that_are_allowed() {
        let ann = certificate(&["ann.example.org", "other.example"], 2099);
        let name = |clients: Clients| clients.name(None, || ann.clone());
        assert_eq!(name(clients(&["*.Example.org"])).as_deref(), Some("ann.example.org"));
        assert_eq!(name(clients(&["other.example"])).as_deref(), Some("other.example"));
        assert_eq!(name(clients(&[])).as_deref(), Some("ann.example.org"));
        assert_eq!(name(clients(&["ann \"the\" first"])).as_deref(), Some("Ann__the__First"));
        for nobody in ["bob.example.org", "*.ann.example.org", "example.org", "*", "*.", ""] {
            assert_eq!(name(clients(&[nobody])), None, "{nobody}");
        }
    }

    #[test]
    fn certificates_do_not_count_without_an_authority_or_after_their_time() {
        let ann = certificate(&["ann.example.org"], 2099);
        assert_eq!(Clients::default().name(None, || ann), None);
        assert_eq!(clients(&[]).name(None, || certificate(&["ann.example.org"], 2001)), None);
        assert_eq!(clients(&[]).name(None, Vec::new), None);
        assert_eq!(clients(&[]).name(None, || vec![b"nonsense".to_vec()]), None);
    }

    #[test]
    fn a_token_counts_before_a_certificate() {
        let tokens = Tokens::parse("tom 0123456789abcdef").unwrap();
        let clients = Clients { tokens: Some(tokens), ..clients(&[]) };
        let shown = HeaderValue::from_static("Bearer 0123456789abcdef");
        let ann = || certificate(&["ann.example.org"], 2099);
        assert_eq!(clients.name(Some(&shown), ann).as_deref(), Some("tom"));
        let wrong = HeaderValue::from_static("Bearer 0000000000000000");
        assert_eq!(clients.name(Some(&wrong), ann).as_deref(), Some("ann.example.org"));
    }
}
