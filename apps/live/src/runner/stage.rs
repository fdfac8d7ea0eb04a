//! The files of a case: certificates, content, and room for the output.

use crate::case::{Arrangement, Case};
use anyhow::{Context, Result, anyhow};
use hvq_program::certificate_key::CertificateKey;
use hvq_program::tls::{self, SelfSigned};
use rand::distr::{Alphanumeric, SampleString};
use rand::rngs::StdRng;
use rand::{Rng, RngCore, SeedableRng};
use rcgen::{BasicConstraints, CertifiedIssuer, DnType, IsCa, KeyIdMethod, PublicKeyData as _, SanType};
use ring::digest::{SHA256, digest};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Certificates between the root and the end of the longest chain.
const LONG_CHAIN: usize = 8;
/// Names in the certificate that makes it so long, and the letters of each.
const NAMES: usize = 20;
const NAME: usize = 250;

/// The folders of a case.
#[derive(Debug)]
pub(crate) struct Stage {
    folder: TempDir,
    /// The names of the files to ask for.
    pub(crate) files: Vec<String>,
}

impl Stage {
    /// Folders with everything for `case`, whose content depends on `seed`.
    ///
    /// # Errors
    /// Something cannot be written.
    pub(crate) fn set(case: &Case, seed: u64) -> Result<Self> {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut stage = Self::folders()?;
        for (index, size) in case.files.iter().enumerate() {
            let length = if case.arrangement == Arrangement::LongNames { NAME } else { 12 };
            let name = format!("{}{index:03}", Alphanumeric.sample_string(&mut rng, length - 3));
            let mut content = vec![0; *size];
            rng.fill_bytes(&mut content);
            std::fs::write(stage.path("www").join(&name), content)?;
            stage.files.push(name);
        }
        let is_long = case.arrangement == Arrangement::LongChain;
        write_certificates(&stage.path("certs"), if is_long { LONG_CHAIN } else { 0 }, &mut rng)?;
        Ok(stage)
    }

    /// Folders with a certificate that is its own authority, and no files yet.
    ///
    /// # Errors
    /// Something cannot be written.
    pub(crate) fn empty() -> Result<Self> {
        let stage = Self::folders()?;
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let made = SelfSigned::new(&names).map_err(|failure| anyhow!(failure.line()))?;
        std::fs::write(stage.path("certs/cert.pem"), made.certificate)?;
        std::fs::write(stage.path("certs/priv.key"), made.key)?;
        Ok(stage)
    }

    fn folders() -> Result<Self> {
        let folder = tempfile::tempdir().context("cannot make a folder")?;
        let stage = Self { folder, files: Vec::new() };
        for name in ["www", "downloads", "certs", "client", "server"] {
            std::fs::create_dir(stage.path(name))?;
        }
        Ok(stage)
    }

    /// A file or folder in it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Keeps everything, and tells where.
    pub(crate) fn keep(self) -> PathBuf {
        self.folder.keep()
    }
}

/// Writes `ca.pem`, `cert.pem` and `priv.key`, with so many certificates in between.
fn write_certificates(folder: &Path, between: usize, rng: &mut StdRng) -> Result<()> {
    let authority = |name: String, key: &CertificateKey| {
        let mut parameters = tls::parameters(&[])?;
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        // RFC 7093 §2, method 1.
        let id = digest(&SHA256, key.der_bytes()).as_ref()[..20].to_vec();
        parameters.key_identifier_method = KeyIdMethod::PreSpecified(id);
        parameters.distinguished_name.push(DnType::CommonName, name);
        anyhow::Ok(parameters)
    };
    let key = CertificateKey::generate();
    let mut issuer = CertifiedIssuer::self_signed(authority("root".to_owned(), &key)?, key)?;
    std::fs::write(folder.join("ca.pem"), AsRef::<rcgen::Certificate>::as_ref(&issuer).pem())?;
    let mut chain = String::new();
    for index in 0..between {
        let key = CertificateKey::generate();
        issuer = CertifiedIssuer::signed_by(authority(format!("intermediate {index}"), &key)?, key, &issuer)?;
        chain.insert_str(0, &AsRef::<rcgen::Certificate>::as_ref(&issuer).pem());
    }
    let mut names: Vec<String> =
        ["server", "server4", "server6", "server46", "localhost"].map(str::to_owned).into();
    if between > 0 {
        names.extend((0..NAMES).map(|_| long_name(rng)));
    }
    let mut parameters = tls::parameters(&names)?;
    for address in ["127.0.0.1", "::1"] {
        parameters.subject_alt_names.push(SanType::IpAddress(address.parse::<IpAddr>()?));
    }
    parameters.distinguished_name.push(DnType::CommonName, "leaf");
    let key = CertificateKey::generate();
    let leaf = parameters.signed_by(&key, &issuer)?;
    std::fs::write(folder.join("cert.pem"), format!("{}{chain}", leaf.pem()))?;
    std::fs::write(folder.join("priv.key"), key.pem())?;
    Ok(())
}

/// A host name of 250 letters, in labels of legal length (RFC 1035 §2.3.4).
fn long_name(rng: &mut StdRng) -> String {
    let letters: Vec<u8> = (0..NAME).map(|_| rng.random_range(b'a'..=b'z')).collect();
    let labels: Vec<_> = letters.chunks(50).map(String::from_utf8_lossy).collect();
    labels.join(".")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::CASES;

    #[test]
    fn the_longest_chain_has_more_than_fits_three_datagrams() {
        let case = CASES.iter().find(|case| case.arrangement == Arrangement::LongChain).unwrap();
        let stage = Stage::set(case, 1).unwrap();
        let chain = std::fs::read_to_string(stage.path("certs/cert.pem")).unwrap();
        assert_eq!(chain.matches("BEGIN CERTIFICATE").count(), LONG_CHAIN + 1);
        assert!(chain.len() * 3 / 4 > 7500, "{}", chain.len());
        assert_eq!(std::fs::metadata(stage.path("www").join(&stage.files[0])).unwrap().len(), 5 << 10);
    }
}
