//! TLS of servers: who they are and which protocols they speak.

use super::client::add_roots;
use super::foreign::{self, Imposed};
use super::provided::{ServerEngine, TlsSession};
use super::selection::{self, Selection};
use super::server_names::ServerNames;
use super::tickets::TicketKeys;
use super::{
    EarlyData, KeyLog, Retention, TlsConfigError, alert, check, context_builder, encode_alpn, read,
    restrict_suites,
};
use crate::crypto::keys::Suite;
use boring::pkey::{PKey, Private};
use boring::ssl::{AlpnError, Ssl, SslContextBuilder, SslVerifyMode};
use boring::x509::X509;
use boring_sys as ffi;
use std::ffi::c_void;
use std::fmt;
use std::path::PathBuf;
use std::ptr::NonNull;
use std::sync::Arc;

/// Session tickets of a connection: over several paths there is one to a server at a time, which takes one ticket.
const TICKETS: u8 = 1;

/// A certificate chain, the own certificate first, with the private key of that one, in PEM.
#[derive(Clone, PartialEq, Eq)]
pub enum Identity {
    /// In files.
    Files {
        /// The chain.
        chain: PathBuf,
        /// The key.
        key: PathBuf,
    },
    /// In memory.
    Pem {
        /// The chain.
        chain: Vec<u8>,
        /// The key.
        key: Vec<u8>,
    },
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Files { chain, key } => {
                f.debug_struct("Files").field("chain", chain).field("key", key).finish()
            }
            Self::Pem { .. } => f.debug_struct("Pem").finish_non_exhaustive(),
        }
    }
}

/// A certificate with its key, and the proof that it was not revoked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerCredential {
    /// The certificate chain and its key.
    pub identity: Identity,
    /// The response of the authority's OCSP responder (RFC 6960, DER), which clients that ask for it are shown with the certificate
    /// (RFC 6066 §8); `None` shows nothing. Its age is not checked here: clients refuse one that has expired.
    pub ocsp: Option<Vec<u8>>,
}

impl From<Identity> for ServerCredential {
    fn from(identity: Identity) -> Self {
        Self { identity, ocsp: None }
    }
}

/// A server's TLS configuration. Cheap to clone; one serves many connections.
#[derive(Clone)]
pub struct ServerTls {
    engine: ServerEngine,
    early_data: EarlyData,
    early_data_context: Vec<u8>,
    retention: Retention,
    /// The settings that sessions need of a context that was not made here.
    imposed: Option<Imposed>,
    names: Arc<ServerNames>,
}

impl ServerTls {
    /// Begins a configuration for the server of `credential`, which is an [`Identity`] or has more to it.
    pub fn builder(credential: impl Into<ServerCredential>) -> ServerTlsBuilder {
        ServerTlsBuilder {
            credentials: vec![credential.into()],
            clients: None,
            alpn: Vec::new(),
            suites: Vec::new(),
            keylog: None,
            tickets: TICKETS,
            ticket_keys: None,
            early_data: EarlyData::Off,
            early_data_context: b"hvq".to_vec(),
            retention: Retention::default(),
        }
    }

    /// A configuration from a context of BoringSSL that the program made, with certificate, key and a callback that selects
    /// the application protocol (RFC 9001 §8.1 requires one). The context is not changed; each session speaks TLS 1.3 only,
    /// and 0-RTT is refused.
    ///
    /// # Safety
    /// `context` is a valid `SSL_CTX` of the BoringSSL that this crate is linked with. A reference to it is kept.
    pub unsafe fn from_context(context: NonNull<c_void>) -> Result<Self, TlsConfigError> {
        Ok(Self {
            imposed: Some(Imposed::new(&[])?),
            // SAFETY: the caller says the same.
            engine: ServerEngine::BoringSsl(unsafe { foreign::adopt(context) }),
            early_data: EarlyData::Off,
            early_data_context: Vec::new(),
            names: Arc::default(),
            retention: Retention::default(),
        })
    }

    /// Gives `ssl` what its context may lack.
    pub(super) fn prepare(&self, ssl: &mut Ssl) -> Result<(), TlsConfigError> {
        self.imposed.as_ref().map_or(Ok(()), |imposed| imposed.apply(ssl))
    }

    pub(super) fn retention(&self) -> Retention {
        self.retention
    }

    /// A configuration whose sessions `begin` makes: TLS of another library. It is given the encoded transport parameters, and does all
    /// that BoringSSL would: certificates, application protocols, key logs. There is no 0-RTT.
    pub fn provided<B>(begin: B) -> Self
    where
        B: Fn(&[u8]) -> Result<Box<dyn TlsSession>, TlsConfigError> + Send + Sync + 'static,
    {
        Self {
            engine: ServerEngine::Provided(Arc::new(begin)),
            early_data: EarlyData::Off,
            early_data_context: Vec::new(),
            retention: Retention::Connection,
            imposed: None,
            names: Arc::default(),
        }
    }

    pub(super) fn engine(&self) -> &ServerEngine {
        &self.engine
    }

    /// Returns the setting of 0-RTT: tells whether it is accepted.
    pub fn early_data(&self) -> EarlyData {
        self.early_data
    }

    /// Returns the bytes that stand for the application's settings that 0-RTT relies on.
    pub fn early_data_context(&self) -> &[u8] {
        &self.early_data_context
    }

    /// Returns the names of the certificates, numbered in the order in which the builder was given them; none for a context that the
    /// program made.
    pub fn names(&self) -> &Arc<ServerNames> {
        &self.names
    }
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerTls").finish_non_exhaustive()
    }
}

/// Collects what a server decides about TLS.
pub struct ServerTlsBuilder {
    credentials: Vec<ServerCredential>,
    clients: Option<Vec<u8>>,
    alpn: Vec<Vec<u8>>,
    suites: Vec<Suite>,
    keylog: Option<Arc<KeyLog>>,
    tickets: u8,
    ticket_keys: Option<TicketKeys>,
    early_data: EarlyData,
    early_data_context: Vec<u8>,
    retention: Retention,
}

impl ServerTlsBuilder {
    /// Adds a further certificate, which clients are shown that ask for one of its names (RFC 6066 §3): the first certificate with this
    /// very name, or else the first with a wildcard for it, or else the one that the builder began with ([`ServerNames`]). A ticket
    /// resumes a session only where the certificate that was shown would be shown again, and 0-RTT is accepted only there.
    pub fn credential(mut self, further: impl Into<ServerCredential>) -> Self {
        self.credentials.push(further.into());
        self
    }

    /// Application protocols that the server speaks, the preferred one first (RFC 7301). At least one is needed.
    pub fn alpn<P: AsRef<[u8]>>(mut self, protocols: impl IntoIterator<Item = P>) -> Self {
        self.alpn = protocols.into_iter().map(|protocol| protocol.as_ref().to_vec()).collect();
        self
    }

    /// Asks clients for a certificate that goes back to one in `authorities` (PEM) and is for clients, during the handshake. A
    /// client may have none, which its connection tells; the handshake fails with one that is of somebody else or has
    /// expired.
    pub fn ask_clients(mut self, authorities: impl Into<Vec<u8>>) -> Self {
        self.clients = Some(authorities.into());
        self
    }

    /// Cipher suites to accept, the preferred one first, each once, instead of all three in the order that suits the
    /// processor.
    pub fn suites(mut self, suites: impl IntoIterator<Item = Suite>) -> Self {
        self.suites = suites.into_iter().collect();
        self
    }

    /// Has `keylog` called with the secrets of each connection, for tools that decrypt captures.
    pub fn keylog(mut self, keylog: KeyLog) -> Self {
        self.keylog = Some(Arc::new(keylog));
        self
    }

    /// Sets the number of session tickets that a client gets after its handshake (RFC 8446 §4.6.1), of which each is of
    /// use for one connection; default: one. A client that opens several connections at a time resumes as many of them
    /// as it has tickets. BoringSSL gives 16 at most.
    pub fn tickets(mut self, tickets: u8) -> Self {
        self.tickets = tickets;
        self
    }

    /// The keys of tickets, for servers that resume sessions of others or of before a restart. Unless this is called, each
    /// configuration has keys of its own, which BoringSSL replaces every two days.
    pub fn ticket_keys(mut self, keys: TicketKeys) -> Self {
        self.ticket_keys = Some(keys);
        self
    }

    /// Sets whether 0-RTT is accepted, once with each ticket that the same endpoint issued. The application must not do
    /// on its behalf what does harm when it is done twice (RFC 9001 §9.2).
    pub fn early_data(mut self, early_data: EarlyData) -> Self {
        self.early_data = early_data;
        self
    }

    /// Bytes that stand for the application's settings that 0-RTT data relies on: tickets issued under other bytes do not
    /// open 0-RTT (RFC 9001 §4.6.1). Transport parameters count without being named.
    pub fn early_data_context(mut self, context: impl Into<Vec<u8>>) -> Self {
        self.early_data_context = context.into();
        self
    }

    /// Keeps TLS for as long as a connection lasts, at the cost of a tenth of its memory while it is idle, so that keying material
    /// can be exported ([`Connection::export_keying_material`](crate::connection::Connection::export_keying_material)). Otherwise
    /// servers free it with the handshake.
    pub fn exportable(mut self) -> Self {
        self.retention = Retention::Connection;
        self
    }

    /// Reads certificates and key and makes the configuration.
    pub fn build(self) -> Result<ServerTls, TlsConfigError> {
        //= https://www.rfc-editor.org/rfc/rfc9001#section-4.4
        //= type=implication
        //= reason=The server asks for a certificate in the handshake, if at all: BoringSSL has no
        //= reason=authentication after the handshake.
        //# A server MUST NOT use post-handshake client authentication (as defined in Section 4.6.2 of
        //# [TLS13]) because the multiplexing offered by QUIC prevents clients from correlating the
        //# certificate request
        //= https://www.rfc-editor.org/rfc/rfc9001#section-5.3
        //= type=implication
        //= reason=BoringSSL passes over cipher suites that it does not know.
        //# An endpoint MUST NOT reject a ClientHello that offers a cipher suite that it does not support, or
        //# it would be impossible to deploy a new cipher suite
        let mut names = ServerNames::default();
        let mut made = Vec::new();
        for (number, credential) in self.credentials.iter().enumerate() {
            let (context, own) = self.context(credential)?;
            names.add(number, &own);
            made.push((context, selection::mark(&own)?));
        }
        let names = Arc::new(names);
        let mut made = made.into_iter();
        let (mut context, mark) = made.next().expect("the builder begins with a credential");
        let others = made.map(|(context, mark)| (context.build(), mark)).collect();
        let selection = Selection::new(names.clone(), mark, others);
        context.set_select_certificate_callback(move |hello| selection.apply(hello));
        Ok(ServerTls {
            engine: ServerEngine::BoringSsl(context.build()),
            early_data: self.early_data,
            early_data_context: self.early_data_context,
            retention: self.retention,
            imposed: None,
            names,
        })
    }

    /// Makes a context that presents `credential`, whose certificate it returns, too. In all else those of a server are alike.
    fn context(&self, credential: &ServerCredential) -> Result<(SslContextBuilder, X509), TlsConfigError> {
        let mut context = context_builder(self.keylog.clone())?;
        // SAFETY: the context is valid, and BoringSSL bounds the number.
        check(unsafe { ffi::SSL_CTX_set_num_tickets(context.as_ptr(), usize::from(self.tickets)) })?;
        if let Some(keys) = self.ticket_keys.clone() {
            keys.install(&mut context);
        }
        restrict_suites(&context, &self.suites)?;
        let own = identify(&mut context, credential.identity.clone())?;
        if let Some(response) = &credential.ocsp {
            selection::staple(&context, response)?;
        }
        if let Some(authorities) = &self.clients {
            context.set_verify(SslVerifyMode::PEER);
            add_roots(&mut context, authorities, "the authority of clients")?;
        }
        let preference = encode_alpn(&self.alpn)?;
        context.set_alpn_select_callback(move |_, offered| {
            //= https://www.rfc-editor.org/rfc/rfc9001#section-8.1
            //# When using ALPN, endpoints MUST immediately close a connection (see Section 10.2 of
            //# [QUIC-TRANSPORT]) with a no_application_protocol TLS alert (QUIC error code 0x0178; see
            //# Section 4.8)
            //= https://www.rfc-editor.org/rfc/rfc9001#section-8.1
            //# Servers MUST select an application protocol compatible with the QUIC version that the client
            //# has selected
            //= https://www.rfc-editor.org/rfc/rfc9001#section-8.1
            //# The server MUST treat the inability to select a compatible application protocol as a
            //# connection error of type 0x0178 (no_application_protocol)
            // RFC 9001 §8.1: without a protocol in common the handshake fails with no_application_protocol.
            select_alpn(&preference, offered).ok_or(AlpnError::ALERT_FATAL)
        });
        Ok((context, own))
    }
}

impl fmt::Debug for ServerTlsBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerTlsBuilder")
            .field("credentials", &self.credentials)
            .field("alpn", &self.alpn)
            .finish_non_exhaustive()
    }
}

/// Has sessions of `context` present what `identity` says; returns the certificate.
pub(super) fn identify(context: &mut SslContextBuilder, identity: Identity) -> Result<X509, TlsConfigError> {
    let (chain_name, chain, key_name, key) = match identity {
        Identity::Files { chain, key } => {
            (chain.display().to_string(), read(&chain)?, key.display().to_string(), read(&key)?)
        }
        Identity::Pem { chain, key } => {
            ("the certificate".to_owned(), chain, "the private key".to_owned(), key)
        }
    };
    let certificates = X509::stack_from_pem(&chain)
        .map_err(|stack| TlsConfigError::Pem { what: chain_name.clone(), reason: alert::describe(&stack) })?;
    let mut certificates = certificates.into_iter();
    let own = certificates.next().ok_or(TlsConfigError::NoCertificate(chain_name))?;
    let key = PKey::<Private>::private_key_from_pem_passphrase(&key, b"")
        .map_err(|stack| TlsConfigError::Pem { what: key_name, reason: alert::describe(&stack) })?;
    if !own.public_key()?.public_eq(&key) {
        return Err(TlsConfigError::KeyMismatch);
    }
    context.set_certificate(&own)?;
    for certificate in certificates {
        context.add_extra_chain_cert(certificate)?;
    }
    context.set_private_key(&key)?;
    Ok(own)
}

/// The first of the server's protocols that the client offers, both lists as TLS encodes them.
fn select_alpn<'a>(preference: &[u8], offered: &'a [u8]) -> Option<&'a [u8]> {
    protocols(preference).find_map(|wanted| protocols(offered).find(|offered| *offered == wanted))
}

/// The protocols of a list as TLS encodes it, up to where it breaks off.
fn protocols(mut list: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (length, rest) = list.split_first()?;
        let (protocol, rest) = rest.split_at_checked(usize::from(*length))?;
        list = rest;
        Some(protocol)
    })
}
