//! The certificate of a run, which is its own authority.

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// A certificate and its key, in PEM files that both processes read.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Material {
    /// The certificate.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

impl Material {
    /// The name that the certificate is for.
    pub const NAME: &'static str = "bench.test";

    /// Makes both and writes them into `folder`.
    pub fn create(folder: &Path) -> Result<Self> {
        let made = rcgen::generate_simple_self_signed([Self::NAME.to_owned()])?;
        let material = Self { certificate: folder.join("certificate.pem"), key: folder.join("key.pem") };
        fs::write(&material.certificate, made.cert.pem())?;
        fs::write(&material.key, made.signing_key.serialize_pem())?;
        Ok(material)
    }

    /// The certificate's PEM.
    pub fn certificate_pem(&self) -> Result<Vec<u8>> {
        read(&self.certificate)
    }

    /// The key's PEM.
    pub fn key_pem(&self) -> Result<Vec<u8>> {
        read(&self.key)
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}
