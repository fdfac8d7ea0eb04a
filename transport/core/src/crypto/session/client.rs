//! TLS of clients: whom they trust and what they offer.

use super::callbacks::keep_ticket;
use super::foreign::{self, Imposed};
use super::provided::{ClientEngine, TlsSession};
use super::server::{Identity, identify};
use super::verifier::{self, Verifier};
use super::{
    EarlyData, KeyLog, Retention, SessionStore, TlsConfigError, alert, context_builder, encode_alpn, read,
    restrict_suites,
};
use crate::crypto::keys::Suite;
use boring::asn1::Asn1Time;
use boring::ssl::{Ssl, SslContextBuilder, SslSessionCacheMode, SslVerifyMode};
use boring::x509::verify::X509CheckFlags;
use boring::x509::{X509, X509Ref, X509VerifyError};
use std::ffi::c_void;
use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::Arc;

/// The files in which systems keep their root certificates: Debian, Fedora, openSUSE, Alpine and the BSDs.
const BUNDLES: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Environment variables that name other root certificates.
const OVERRIDES: [&str; 2] = ["SSL_CERT_FILE", "SSL_CERT_DIR"];

/// The way in which a client verifies the server.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub enum Verify {
    /// Its certificate goes back to one of the system's roots, or to those that the environment variables SSL_CERT_FILE
    /// and SSL_CERT_DIR name instead.
    #[default]
    SystemRoots,
    /// Its certificate goes back to one in this PEM file.
    CaFile(PathBuf),
    /// Its certificate goes back to one in this PEM.
    CaPem(Vec<u8>),
    /// The server is not verified at all: whoever is on the network path can read and change everything. For tests.
    Insecure,
}

/// A client's TLS configuration. Cheap to clone; one serves many connections.
#[derive(Clone)]
pub struct ClientTls {
    engine: ClientEngine,
    check: NameCheck,
    alpn: Arc<[Vec<u8>]>,
    sessions: Option<Arc<dyn SessionStore>>,
    early_data: EarlyData,
    retention: Retention,
    /// The settings that sessions need of a context that was not made here.
    imposed: Option<Imposed>,
}

/// Tells whether BoringSSL checks that the certificate is for the server's name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NameCheck {
    /// It does.
    Required,
    /// It does not: nobody does, or the application.
    None,
}

impl ClientTls {
    /// Begins a configuration that verifies against the system's roots.
    pub fn builder() -> ClientTlsBuilder {
        ClientTlsBuilder::default()
    }

    /// A configuration from a context of BoringSSL that the program made, for programs that have their own ideas of
    /// certificates and sessions. The context is not changed: each session speaks TLS 1.3 only and offers `alpn`, unless
    /// that is empty. Key logs, groups and cipher suites are the context's business. `check` must be [`NameCheck::None`] for contexts of
    /// `TLS_with_buffers_method`, which cannot check names.
    ///
    /// # Errors
    /// An application protocol has no byte or more than 255.
    ///
    /// # Safety
    /// `context` is a valid `SSL_CTX` of the BoringSSL that this crate is linked with. A reference to it is kept.
    pub unsafe fn from_context(
        context: NonNull<c_void>,
        alpn: &[Vec<u8>],
        check: NameCheck,
    ) -> Result<Self, TlsConfigError> {
        Ok(Self {
            imposed: Some(Imposed::new(alpn)?),
            // SAFETY: the caller says the same.
            engine: ClientEngine::BoringSsl(unsafe { foreign::adopt(context) }),
            check,
            alpn: alpn.into(),
            sessions: None,
            early_data: EarlyData::Off,
            // The program's callbacks may want what comes after the handshake.
            retention: Retention::Connection,
        })
    }

    /// Has connections keep their tickets in `sessions`, resume what they find there, and use 0-RTT as `early_data` says. For
    /// contexts of the program: their cache mode must include clients, and their callback for new sessions call
    /// [`keep_session`](super::keep_session). Tickets are looked for by protocol, so that there must be some.
    ///
    /// # Errors
    /// No application protocol is named.
    pub fn with_sessions(
        mut self,
        sessions: Arc<dyn SessionStore>,
        early_data: EarlyData,
    ) -> Result<Self, TlsConfigError> {
        if self.alpn.is_empty() {
            return Err(TlsConfigError::Alpn);
        }
        (self.sessions, self.early_data) = (Some(sessions), early_data);
        Ok(self)
    }

    /// Returns the store of tickets, if there is one.
    pub fn sessions(&self) -> Option<&Arc<dyn SessionStore>> {
        self.sessions.as_ref()
    }

    /// Returns the setting of 0-RTT: tells whether it is used with tickets that permit it.
    pub fn early_data(&self) -> EarlyData {
        self.early_data
    }

    /// The application protocols to offer.
    pub fn protocols(&self) -> &[Vec<u8>] {
        &self.alpn
    }

    /// A configuration whose sessions `begin` makes: TLS of another library. It is given the server's name and the encoded transport
    /// parameters, and does all that BoringSSL would: certificates, application protocols, key logs. There is no 0-RTT.
    pub fn provided<B>(begin: B) -> Self
    where
        B: Fn(&str, &[u8]) -> Result<Box<dyn TlsSession>, TlsConfigError> + Send + Sync + 'static,
    {
        Self {
            engine: ClientEngine::Provided(Arc::new(begin)),
            check: NameCheck::None,
            alpn: Arc::default(),
            sessions: None,
            early_data: EarlyData::Off,
            retention: Retention::Connection,
            imposed: None,
        }
    }

    pub(super) fn retention(&self) -> Retention {
        self.retention
    }

    pub(super) fn engine(&self) -> &ClientEngine {
        &self.engine
    }

    /// Has `ssl` ask for `name`, and accept no certificate of another.
    pub(super) fn expect_name(&self, ssl: &mut Ssl, name: &str) -> Result<(), TlsConfigError> {
        if let Some(imposed) = &self.imposed {
            imposed.apply(ssl)?;
        }
        verifier::remember_name(ssl, name);
        let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        if let Ok(address) = bare.parse::<IpAddr>() {
            // RFC 6066 §3: addresses are not sent as server name.
            if self.check == NameCheck::Required {
                ssl.verify_param_mut().set_ip(address)?;
            }
            return Ok(());
        }
        let host = name.strip_suffix('.').unwrap_or(name);
        if host.is_empty() || host.len() > 253 || !host.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(TlsConfigError::ServerName(name.to_owned()));
        }
        let invalid = |_| TlsConfigError::ServerName(name.to_owned());
        ssl.set_hostname(host).map_err(invalid)?;
        if self.check == NameCheck::Required {
            let parameters = ssl.verify_param_mut();
            parameters.set_hostflags(X509CheckFlags::NO_PARTIAL_WILDCARDS);
            parameters.set_host(host).map_err(invalid)?;
        }
        Ok(())
    }
}

impl fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientTls").field("check", &self.check).finish_non_exhaustive()
    }
}

/// Collects what a client decides about TLS.
#[derive(Default)]
pub struct ClientTlsBuilder {
    alpn: Vec<Vec<u8>>,
    verify: Verify,
    verifier: Option<Verifier>,
    identity: Option<Identity>,
    curves: Option<String>,
    suites: Vec<Suite>,
    keylog: Option<KeyLog>,
    sessions: Option<Arc<dyn SessionStore>>,
    early_data: EarlyData,
    retention: Retention,
}

impl ClientTlsBuilder {
    /// Application protocols to offer, the preferred one first (RFC 7301). At least one is needed.
    pub fn alpn<P: AsRef<[u8]>>(mut self, protocols: impl IntoIterator<Item = P>) -> Self {
        self.alpn = protocols.into_iter().map(|protocol| protocol.as_ref().to_vec()).collect();
        self
    }

    /// Sets the way in which the server is verified.
    pub fn verify(mut self, verify: Verify) -> Self {
        self.verify = verify;
        self
    }

    /// Has `verifier` judge certificates, names included, in place of what [`Self::verify`] says. Resumed sessions present
    /// none, so that it is not asked again.
    pub fn verifier(mut self, verifier: Verifier) -> Self {
        self.verifier = Some(verifier);
        self
    }

    /// Sets the client's identity, for servers that ask: certificates and key (RFC 8446 §4.4.2). A session that is
    /// resumed is still that of the client which began it.
    pub fn identity(mut self, identity: Identity) -> Self {
        self.identity = Some(identity);
        self
    }

    /// Groups for the key exchange, separated by colons, such as `X25519:P-256`, instead of BoringSSL's choice. Without
    /// post-quantum groups the ClientHello fits in one datagram.
    pub fn curves(mut self, list: impl Into<String>) -> Self {
        self.curves = Some(list.into());
        self
    }

    /// Cipher suites to offer, the preferred one first, each once, instead of all three in the order that suits the
    /// processor.
    pub fn suites(mut self, suites: impl IntoIterator<Item = Suite>) -> Self {
        self.suites = suites.into_iter().collect();
        self
    }

    /// Has `keylog` called with the secrets of each connection, for tools that decrypt captures.
    pub fn keylog(mut self, keylog: KeyLog) -> Self {
        self.keylog = Some(keylog);
        self
    }

    /// Has connections keep their tickets in `sessions`, and resume what they find there.
    pub fn sessions(mut self, sessions: Arc<dyn SessionStore>) -> Self {
        self.sessions = Some(sessions);
        self
    }

    /// Sets whether 0-RTT is used with tickets that permit it. Only of use with [`Self::sessions`].
    pub fn early_data(mut self, early_data: EarlyData) -> Self {
        self.early_data = early_data;
        self
    }

    /// Has connections keep the memory of TLS after the handshake, so that keying material can be exported
    /// ([`Connection::export_keying_material`](crate::connection::Connection::export_keying_material)). Otherwise it is freed with the
    /// handshake, unless [`Self::sessions`] waits for tickets.
    pub fn exportable(mut self) -> Self {
        self.retention = Retention::Connection;
        self
    }

    /// Reads the certificates and makes the configuration.
    pub fn build(self) -> Result<ClientTls, TlsConfigError> {
        let mut context = context_builder(self.keylog.map(std::sync::Arc::new))?;
        restrict_suites(&context, &self.suites)?;
        //= https://www.rfc-editor.org/rfc/rfc9000#section-7
        //# Endpoints MUST explicitly negotiate an application protocol
        //= https://www.rfc-editor.org/rfc/rfc9001#section-8.1
        //# Unless another mechanism is used for agreeing on an application protocol, endpoints MUST use ALPN
        //# for this purpose.
        //= https://www.rfc-editor.org/rfc/rfc9001#section-8.1
        //= type=implication
        //= reason=BoringSSL refuses a protocol that was not offered, and every protocol that is offered here
        //= reason=is fit for QUIC.
        //# Similarly, a client MUST treat the selection of an incompatible application protocol by a server
        //# as a connection error of type 0x0178.
        context.set_alpn_protos(&encode_alpn(&self.alpn)?)?;
        if let Some(identity) = self.identity {
            identify(&mut context, identity)?;
        }
        if let Some(list) = self.curves {
            let unknown =
                |stack| TlsConfigError::Curves { list: list.clone(), reason: alert::describe(&stack) };
            context.set_curves_list(&list).map_err(unknown)?;
        }
        context.set_session_cache_mode(SslSessionCacheMode::CLIENT | SslSessionCacheMode::NO_INTERNAL);
        context.set_new_session_callback(|ssl, session| {
            keep_ticket(ssl, &session);
        });
        let check = match self.verifier {
            Some(verifier) => {
                verifier::install(&mut context, verifier);
                NameCheck::None
            }
            None => trust(&mut context, &self.verify)?,
        };
        Ok(ClientTls {
            engine: ClientEngine::BoringSsl(context.build()),
            check,
            alpn: self.alpn.into(),
            retention: if self.sessions.is_some() { Retention::Connection } else { self.retention },
            sessions: self.sessions,
            early_data: self.early_data,
            imposed: None,
        })
    }
}

impl fmt::Debug for ClientTlsBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientTlsBuilder")
            .field("alpn", &self.alpn)
            .field("verify", &self.verify)
            .field("curves", &self.curves)
            .finish_non_exhaustive()
    }
}

fn trust(context: &mut SslContextBuilder, verify: &Verify) -> Result<NameCheck, TlsConfigError> {
    //= https://www.rfc-editor.org/rfc/rfc9001#section-4.4
    //# A client MUST authenticate the identity of the server
    context.set_verify(SslVerifyMode::PEER);
    match verify {
        Verify::SystemRoots => trust_system(context)?,
        Verify::CaFile(path) => {
            let pem = read(path)?;
            add_roots(context, &pem, &path.display().to_string())?;
            trust_own(context, &pem)?;
        }
        Verify::CaPem(pem) => {
            add_roots(context, pem, "the CA certificate")?;
            trust_own(context, pem)?;
        }
        Verify::Insecure => {
            context.set_verify(SslVerifyMode::NONE);
            return Ok(NameCheck::None);
        }
    }
    Ok(NameCheck::Required)
}

/// Trusts servers whose own certificate is one of these that vouch for themselves. BoringSSL looks for them by their subject, and
/// takes the first of several with the same one.
fn trust_own(context: &mut SslContextBuilder, pem: &[u8]) -> Result<(), TlsConfigError> {
    let roots: Vec<Vec<u8>> =
        X509::stack_from_pem(pem)?.iter().map(|root| root.to_der()).collect::<Result<_, _>>()?;
    if roots.len() < 2 {
        return Ok(());
    }
    context.set_verify_callback(SslVerifyMode::PEER, move |is_fine, chain| {
        let is_other = chain.verify_result() != Err(X509VerifyError::DEPTH_ZERO_SELF_SIGNED_CERT);
        if is_fine || is_other || chain.error_depth() != 0 {
            return is_fine;
        }
        let is_root = |own: &X509Ref| own.to_der().is_ok_and(|der| roots.contains(&der)) && is_valid_now(own);
        let is_trusted = chain.current_cert().is_some_and(is_root);
        if is_trusted {
            chain.set_error(Ok(()));
        }
        is_trusted
    });
    Ok(())
}

/// Returns true if the time is within the validity of `certificate`, which BoringSSL does not check in a chain that it did not make.
fn is_valid_now(certificate: &X509Ref) -> bool {
    Asn1Time::days_from_now(0)
        .is_ok_and(|now| certificate.not_before() <= now && now <= certificate.not_after())
}

fn trust_system(context: &mut SslContextBuilder) -> Result<(), TlsConfigError> {
    context.set_default_verify_paths()?;
    if OVERRIDES.iter().any(|name| std::env::var_os(name).is_some()) {
        return Ok(());
    }
    let bundle =
        BUNDLES.iter().map(Path::new).find(|path| path.is_file()).ok_or(TlsConfigError::NoSystemRoots)?;
    Ok(context.set_ca_file(bundle)?)
}

pub(super) fn add_roots(
    context: &mut SslContextBuilder,
    pem: &[u8],
    what: &str,
) -> Result<(), TlsConfigError> {
    let certificates = X509::stack_from_pem(pem)
        .map_err(|stack| TlsConfigError::Pem { what: what.to_owned(), reason: alert::describe(&stack) })?;
    if certificates.is_empty() {
        return Err(TlsConfigError::NoCertificate(what.to_owned()));
    }
    for certificate in certificates {
        context.cert_store_mut().add_cert(certificate)?;
    }
    Ok(())
}
