//! Certificates and key logs.

use crate::certificate_key::CertificateKey;
use crate::failure::{Exit, Failure, OrFail};
use crate::sessions::FileSessions;
use hvq::tls::{KeyLog, Suite};
use hvq::{ClientTls, EarlyData, Identity, ServerTls, TlsConfigError, Verify};
use rcgen::{CertificateParams, PublicKeyData as _, SerialNumber};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// A fresh certificate that vouches for itself, with its key.
#[derive(Clone, Debug)]
pub struct SelfSigned {
    /// In PEM.
    pub certificate: String,
    /// The key in PEM.
    pub key: String,
    /// The public key as in the certificate (SubjectPublicKeyInfo, RFC 5280 §4.1.2.7).
    pub public_key: Vec<u8>,
}

impl SelfSigned {
    /// For the host names or addresses `names`.
    pub fn new(names: &[String]) -> Result<Self, Failure> {
        if names.iter().any(String::is_empty) {
            return Err(Failure::new(Exit::Usage, "a certificate is for a name or an address, not for \"\""));
        }
        let key = CertificateKey::generate();
        let certificate = parameters(names)
            .and_then(|parameters| parameters.self_signed(&key))
            .or_fail(Exit::Usage, || format!("cannot make a certificate for {}", names.join(", ")))?;
        let public_key = key.subject_public_key_info();
        Ok(Self { certificate: certificate.pem(), key: key.pem(), public_key })
    }

    /// Returns a handle that has the certificate written to `path`, if that is a file, for those who are to believe it.
    pub fn published_at(&self, path: Option<&Path>) -> Publication {
        Publication(path.map(|path| (path.to_owned(), self.certificate.clone())))
    }

    /// Certificate and key in PEM.
    pub fn pem(&self) -> (Vec<u8>, Vec<u8>) {
        (self.certificate.clone().into_bytes(), self.key.clone().into_bytes())
    }

    /// The identity of a server that has it.
    pub fn identity(&self) -> Identity {
        let (chain, key) = self.pem();
        Identity::Pem { chain, key }
    }
}

/// Parameters of a certificate for the host names or addresses `names`, with a serial number of its own (RFC 5280 §4.1.2.2).
///
/// # Errors
/// A name is none that a certificate can have.
pub fn parameters(names: &[String]) -> Result<CertificateParams, rcgen::Error> {
    let mut parameters = CertificateParams::new(names)?;
    let mut serial = [0; 16];
    boring::rand::rand_bytes(&mut serial).expect("BoringSSL has random bytes");
    // Neither negative nor zero.
    serial[0] = serial[0] & 0x7f | 0x40;
    parameters.serial_number = Some(SerialNumber::from_slice(&serial));
    Ok(parameters)
}

/// A certificate for a file, which it is written to once somebody listens who has it: the one that is there may be that of
/// a server which runs.
#[derive(Debug, Default)]
#[must_use]
pub struct Publication(Option<(PathBuf, String)>);

impl Publication {
    /// Writes it.
    pub fn publish(&self) -> Result<(), Failure> {
        let Some((path, certificate)) = &self.0 else { return Ok(()) };
        std::fs::write(path, certificate).or_fail(Exit::Usage, || format!("cannot write {}", path.display()))
    }
}

/// The encryption of packets, and the key log for those who may read them all the same.
#[derive(Clone, Debug, Default)]
pub struct Secrecy {
    /// The only cipher suites, the preferred one first; none means all.
    pub suites: Vec<Suite>,
    /// The file that TLS secrets are appended to.
    pub keylog: Option<PathBuf>,
}

/// The certificates that a client trusts, and its own.
#[derive(Clone, Debug)]
pub struct Trust {
    verify: Verify,
    identity: Option<Identity>,
}

impl Trust {
    /// A client that believes what `verify` says and, if it is asked, says that it is `identity`.
    pub const fn new(verify: Verify, identity: Option<Identity>) -> Self {
        Self { verify, identity }
    }
}

impl From<Verify> for Trust {
    fn from(verify: Verify) -> Self {
        Self::new(verify, None)
    }
}

/// A client's use of session tickets.
#[derive(Debug, Default)]
pub struct Resumption {
    /// Those that there are, and the file that they are kept in.
    pub sessions: Option<Arc<FileSessions>>,
    /// Tells whether requests are sent in 0-RTT.
    pub early_data: EarlyData,
}

/// TLS of an HTTP/3 server.
pub fn server(identity: Identity, secrecy: &Secrecy, early_data: EarlyData) -> Result<ServerTls, Failure> {
    server_of(hvq_h3::ALPN, identity, secrecy, early_data)
}

/// TLS of a server of the application protocol `alpn`.
pub fn server_of(
    alpn: &[u8],
    identity: Identity,
    secrecy: &Secrecy,
    early_data: EarlyData,
) -> Result<ServerTls, Failure> {
    let suites = secrecy.suites.iter().copied();
    let mut builder = ServerTls::builder(identity).alpn([alpn]).early_data(early_data).suites(suites);
    if let Some(path) = &secrecy.keylog {
        builder = builder.keylog(open_keylog(path)?);
    }
    builder.build().map_err(refused)
}

/// TLS of an HTTP/3 client.
pub fn client(
    trust: impl Into<Trust>,
    secrecy: &Secrecy,
    resumption: &Resumption,
) -> Result<ClientTls, Failure> {
    client_of(hvq_h3::ALPN, trust, secrecy, resumption)
}

/// TLS of a client of the application protocol `alpn`.
pub fn client_of(
    alpn: &[u8],
    trust: impl Into<Trust>,
    secrecy: &Secrecy,
    resumption: &Resumption,
) -> Result<ClientTls, Failure> {
    let suites = secrecy.suites.iter().copied();
    let Trust { verify, identity } = trust.into();
    let mut builder = ClientTls::builder().alpn([alpn]).verify(verify).suites(suites);
    if let Some(identity) = identity {
        builder = builder.identity(identity);
    }
    if let Some(sessions) = &resumption.sessions {
        builder = builder.sessions(sessions.clone()).early_data(resumption.early_data);
    }
    if let Some(path) = &secrecy.keylog {
        builder = builder.keylog(open_keylog(path)?);
    }
    builder.build().map_err(refused)
}

/// Files and names that do not work are the fault of the arguments.
fn refused(error: TlsConfigError) -> Failure {
    let failed: Result<(), _> = Err(error);
    failed.or_fail(Exit::Usage, || "TLS".to_owned()).expect_err("it is an error")
}

/// A key log that is appended to the file at `path`, for tools that decrypt captures.
///
/// # Errors
/// The file cannot be opened ([`Exit::Usage`]).
pub fn open_keylog(path: &Path) -> Result<KeyLog, Failure> {
    let opened = OpenOptions::new().create(true).append(true).open(path);
    let file = opened.or_fail(Exit::Usage, || format!("cannot open the key log {}", path.display()))?;
    let file = Mutex::new(file);
    Ok(Box::new(move |line| write_line(&file, line)))
}

fn write_line(file: &Mutex<File>, line: &str) {
    let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
    // One call for the line and its end, so that programs that share the file do not mix their lines.
    if let Err(error) = file.write_all(format!("{line}\n").as_bytes()) {
        tracing::warn!(%error, "cannot write the key log");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_self_signed_certificate_is_accepted_as_a_servers_and_as_an_authority() {
        let made = SelfSigned::new(&["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
        server(made.identity(), &Secrecy::default(), EarlyData::Off).unwrap();
        let authority = Verify::CaPem(made.certificate.into_bytes());
        client(authority, &Secrecy::default(), &Resumption::default()).unwrap();
    }

    #[test]
    fn files_that_are_missing_are_faults_of_the_arguments() {
        let missing = Path::new("/nonexistent/file.pem").to_owned();
        let authority = Verify::CaFile(missing.clone());
        let failure = client(authority, &Secrecy::default(), &Resumption::default()).unwrap_err();
        assert_eq!(failure.exit(), Exit::Usage);
        assert!(failure.line().contains("/nonexistent/file.pem"), "{}", failure.line());
        let secrecy = Secrecy { keylog: Some(missing), ..Secrecy::default() };
        let failure = client(Verify::Insecure, &secrecy, &Resumption::default()).unwrap_err();
        assert!(failure.line().starts_with("cannot open the key log /nonexistent"));
    }
}
