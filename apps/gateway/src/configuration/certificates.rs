//! Certificates and keys, read and tried now, so that what is wrong with them is found before anything starts.

use super::file::{File, SourceText};
use super::{ConfigError, Overrides};
use boring::x509::X509;
use hvq::{Identity, ServerTls, TlsConfigError};
use std::path::{Path, PathBuf};
use toml::Spanned;

/// Returns the identity of the gateway: its certificate and key.
pub(super) fn identity(
    source: &SourceText,
    file: &File,
    overrides: &Overrides,
) -> Result<Identity, ConfigError> {
    match &overrides.identity {
        Some(Identity::Files { chain, key }) => {
            let identity = Identity::Pem { chain: contents(chain)?, key: contents(key)? };
            tried(&identity, |error| {
                unreadable(if is_of_key(error) { key } else { chain }, error.to_string())
            })?;
            return Ok(identity);
        }
        Some(made) => return Ok(made.clone()),
        None => {}
    }
    match (&file.certificate, &file.key) {
        (Some(chain), Some(key)) => {
            let identity = Identity::Pem { chain: read(source, chain)?, key: read(source, key)? };
            tried(&identity, |error| {
                let at = if is_of_key(error) { key } else { chain };
                source.wrong(at, format!("{}: {error}", at.get_ref().display()))
            })?;
            Ok(identity)
        }
        (Some(certificate), None) => Err(source.wrong(certificate, "a certificate needs its key")),
        (None, Some(key)) => Err(source.wrong(key, "a key needs its certificate")),
        (None, None) => Err(ConfigError::Missing(
            "there is no certificate: name certificate and key (--cert and --key), or ask for one (--self-signed)".to_owned(),
        )),
    }
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
