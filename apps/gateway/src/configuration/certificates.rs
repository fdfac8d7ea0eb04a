//! Certificates and keys, read and tried now, so that what is wrong with them is found before anything starts.

use super::file::{File, IdentityTable, SourceText};
use super::{ConfigError, Overrides};
use boring::x509::X509;
use hvq::tls::ServerCredential;
use hvq::{Identity, ServerTls, TlsConfigError};
use std::path::{Path, PathBuf};
use toml::Spanned;

/// Returns the certificates of the gateway with their keys, the default first: that of flags or of `certificate`, then each `[[identity]]`.
pub(super) fn credentials(
    source: &SourceText,
    file: &File,
    overrides: &Overrides,
) -> Result<Vec<ServerCredential>, ConfigError> {
    let default = default(source, file, overrides)?;
    let further = file.identity.iter().map(|table| {
        let IdentityTable { certificate, key, ocsp } = table.get_ref();
        credential(source, certificate, key, ocsp.as_ref())
    });
    let credentials: Vec<_> = default.map(Ok).into_iter().chain(further).collect::<Result<_, _>>()?;
    if credentials.is_empty() {
        return Err(ConfigError::Missing(
            "there is no certificate: name certificate and key (--cert and --key), or ask for one (--self-signed)".to_owned(),
        ));
    }
    Ok(credentials)
}

/// The certificate that flags name, or else the file beside its tables.
fn default(
    source: &SourceText,
    file: &File,
    overrides: &Overrides,
) -> Result<Option<ServerCredential>, ConfigError> {
    match &overrides.identity {
        Some(Identity::Files { chain, key }) => {
            let identity = Identity::Pem { chain: contents(chain)?, key: contents(key)? };
            tried(&identity, |error| {
                unreadable(if is_of_key(error) { key } else { chain }, error.to_string())
            })?;
            return Ok(Some(identity.into()));
        }
        Some(made) => return Ok(Some(made.clone().into())),
        None => {}
    }
    match (&file.certificate, &file.key) {
        (Some(chain), Some(key)) => credential(source, chain, key, file.ocsp.as_ref()).map(Some),
        (Some(certificate), None) => Err(source.wrong(certificate, "a certificate needs its key")),
        (None, Some(key)) => Err(source.wrong(key, "a key needs its certificate")),
        (None, None) => match &file.ocsp {
            Some(ocsp) => Err(source.wrong(ocsp, "an OCSP response needs its certificate")),
            None => Ok(None),
        },
    }
}

/// Reads a certificate, its key, and the OCSP response about it, and tries them.
fn credential(
    source: &SourceText,
    chain: &Spanned<PathBuf>,
    key: &Spanned<PathBuf>,
    ocsp: Option<&Spanned<PathBuf>>,
) -> Result<ServerCredential, ConfigError> {
    let identity = Identity::Pem { chain: read(source, chain)?, key: read(source, key)? };
    tried(&identity, |error| {
        let at = if is_of_key(error) { key } else { chain };
        source.wrong(at, format!("{}: {error}", at.get_ref().display()))
    })?;
    let ocsp = ocsp.map(|path| response(source, path)).transpose()?;
    Ok(ServerCredential { identity, ocsp })
}

/// The OCSP response in the file that a field names. Whether the authority signed it is for clients to see.
fn response(source: &SourceText, path: &Spanned<PathBuf>) -> Result<Vec<u8>, ConfigError> {
    let response = read(source, path)?;
    match is_successful(&response) {
        true => Ok(response),
        false => {
            Err(source
                .wrong(path, format!("{} is no successful OCSP response in DER", path.get_ref().display())))
        }
    }
}

/// Returns true if `response` is one in DER that says `successful` (RFC 6960 §4.2.1): a SEQUENCE of just this length, whose first element
/// is the ENUMERATED 0.
fn is_successful(response: &[u8]) -> bool {
    const SEQUENCE: u8 = 0x30;
    const SUCCESSFUL: [u8; 3] = [0x0a, 0x01, 0x00];
    let Some(content) = response.strip_prefix(&[SEQUENCE]) else { return false };
    let (length, content) = match content.split_first() {
        Some((short @ 0..=0x7f, content)) => (usize::from(*short), content),
        Some((long @ 0x81..=0x83, content)) => match content.split_at_checked(usize::from(long & 0x0f)) {
            Some((length, content)) => {
                (length.iter().fold(0, |sum, byte| (sum << 8) | usize::from(*byte)), content)
            }
            None => return false,
        },
        _ => return false,
    };
    content.len() == length && content.starts_with(&SUCCESSFUL)
}

/// The certificates of authorities in the file that a field names.
pub(super) fn authorities(source: &SourceText, path: &Spanned<PathBuf>) -> Result<Vec<u8>, ConfigError> {
    let pem = read(source, path)?;
    match holds_certificates(&pem) {
        true => Ok(pem),
        false => Err(source.wrong(path, format!("{} contains no certificate", path.get_ref().display()))),
    }
}

/// The certificates of authorities in the file that a flag names.
pub(super) fn authorities_in(path: &Path) -> Result<Vec<u8>, ConfigError> {
    let pem = contents(path)?;
    match holds_certificates(&pem) {
        true => Ok(pem),
        false => Err(unreadable(path, "it contains no certificate".to_owned())),
    }
}

fn holds_certificates(pem: &[u8]) -> bool {
    X509::stack_from_pem(pem).is_ok_and(|found| !found.is_empty())
}

/// Fails with what `blame` makes of it if TLS does not take `identity`.
fn tried(identity: &Identity, blame: impl Fn(&TlsConfigError) -> ConfigError) -> Result<(), ConfigError> {
    let built = ServerTls::builder(identity.clone()).alpn([hvq_h3::ALPN]).build();
    built.map(drop).map_err(|error| blame(&error))
}

/// Returns true if the key is to blame, and not the certificate.
fn is_of_key(error: &TlsConfigError) -> bool {
    match error {
        TlsConfigError::Pem { what, .. } => what.contains("key"),
        TlsConfigError::KeyMismatch => true,
        _ => false,
    }
}

fn read(source: &SourceText, path: &Spanned<PathBuf>) -> Result<Vec<u8>, ConfigError> {
    std::fs::read(path.get_ref())
        .map_err(|error| source.wrong(path, format!("cannot read {}: {error}", path.get_ref().display())))
}

fn contents(path: &Path) -> Result<Vec<u8>, ConfigError> {
    std::fs::read(path).map_err(|error| unreadable(path, error.to_string()))
}

/// `problem` with a file that a flag names.
fn unreadable(path: &Path, problem: String) -> ConfigError {
    ConfigError::Unreadable { file: path.display().to_string(), problem }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ocsp_response_is_whole_and_successful() {
        assert!(is_successful(&[0x30, 3, 0x0a, 1, 0]));
        let long = [&[0x30, 0x82, 0x01, 0x03, 0x0a, 1, 0][..], &[0; 256]].concat();
        assert!(is_successful(&long));
        for end in 0..long.len() {
            assert!(!is_successful(&long[..end]), "{end} bytes");
        }
        for wrong in
            [&[0x30, 3, 0x0a, 1, 6][..], &[0x31, 3, 0x0a, 1, 0], &[0x30, 4, 0x0a, 1, 0], b"-----BEGIN"]
        {
            assert!(!is_successful(wrong), "{wrong:?}");
        }
    }
}
