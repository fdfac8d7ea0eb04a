//! Arguments about certificates: those that a client trusts, its own, and a server's.

use crate::tls::Trust;
use clap::Args;
use hvq::{Identity, Verify};
use std::path::PathBuf;

/// The certificates to trust.
#[derive(Debug, Args)]
pub struct TrustArguments {
    /// Accept any certificate: whoever is on the way can read and change everything
    #[arg(short = 'k', long, conflicts_with = "cacert")]
    insecure: bool,
    /// Accept certificates that go back to one in this file (PEM), instead of the system's
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,
    #[command(flatten)]
    own: ClientIdentityArguments,
}

impl TrustArguments {
    /// Returns the certificates that are accepted, and the client's own.
    pub fn trust(&self) -> Trust {
        Trust::new(self.verify(), self.own.identity())
    }

    /// Returns true if the client has a certificate of its own.
    pub fn has_identity(&self) -> bool {
        self.own.identity().is_some()
    }

    /// Returns the certificates that are accepted.
    pub fn verify(&self) -> Verify {
        match (&self.cacert, self.insecure) {
            (Some(file), _) => Verify::CaFile(file.clone()),
            (None, true) => Verify::Insecure,
            (None, false) => Verify::SystemRoots,
        }
    }
}

/// The identity of a client.
#[derive(Debug, Default, Args)]
pub struct ClientIdentityArguments {
    /// Say who you are with this certificate chain (PEM), where you are asked
    #[arg(long, value_name = "FILE", requires = "client_key")]
    client_cert: Option<PathBuf>,
    /// The private key of --client-cert (PEM)
    #[arg(long, value_name = "FILE", requires = "client_cert")]
    client_key: Option<PathBuf>,
}

impl ClientIdentityArguments {
    /// Certificates and key, if they are named.
    pub fn identity(&self) -> Option<Identity> {
        let (chain, key) = (self.client_cert.clone()?, self.client_key.clone()?);
        Some(Identity::Files { chain, key })
    }
}
