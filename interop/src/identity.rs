//! One certificate for all servers, in the forms that they want it in.

use anyhow::{Context, Result};
use rcgen::PublicKeyData;
use std::path::PathBuf;
use tempfile::TempDir;

/// The name that clients ask for.
pub const NAME: &str = "localhost";

/// A certificate for [`NAME`] and 127.0.0.1 that is its own authority, in memory and in a folder that lasts as long.
#[derive(Debug)]
pub struct Identity {
    /// The certificate, in PEM.
    pub certificate: String,
    /// The private key, in PEM.
    pub key: String,
    /// The certificate, in DER.
    pub certificate_der: Vec<u8>,
    /// The private key (PKCS #8), in DER.
    pub key_der: Vec<u8>,
    /// The public key (SubjectPublicKeyInfo), in DER.
    pub public_key_der: Vec<u8>,
    folder: TempDir,
}

impl Identity {
    /// A new one.
    ///
    /// # Errors
    /// The files cannot be written.
    pub fn new() -> Result<Self> {
        let made = rcgen::generate_simple_self_signed([NAME.to_owned(), "127.0.0.1".to_owned()])?;
        let folder = tempfile::tempdir().context("cannot make a folder for the certificate")?;
        let identity = Self {
            certificate: made.cert.pem(),
            key: made.signing_key.serialize_pem(),
            certificate_der: made.cert.der().to_vec(),
            key_der: made.signing_key.serialize_der(),
            public_key_der: made.signing_key.subject_public_key_info(),
            folder,
        };
        std::fs::write(identity.certificate_file(), &identity.certificate)?;
        std::fs::write(identity.key_file(), &identity.key)?;
        Ok(identity)
    }

    /// The file with the certificate, in PEM.
    pub fn certificate_file(&self) -> PathBuf {
        self.folder.path().join("cert.pem")
    }

    /// The file with the private key, in PEM.
    pub fn key_file(&self) -> PathBuf {
        self.folder.path().join("key.pem")
    }
}
