//! The TLS 1.3 handshake over CRYPTO frames (RFC 9001 §4), done by BoringSSL. This module and those below it are the only
//! ones that know BoringSSL.
#![expect(unsafe_code, reason = "BoringSSL's QUIC interface has no safe binding")]

mod alert;
mod callbacks;
mod certificate;
mod client;
mod early_data;
mod foreign;
mod post_handshake;
mod provided;
mod selection;
mod server;
mod server_names;
mod store;
mod tickets;
mod verifier;

pub use alert::alert_name;
pub use certificate::CertificateHolder;
pub use client::{ClientTls, ClientTlsBuilder, NameCheck, Verify};
pub use early_data::{EarlyData, EarlyDataState};
pub use foreign::keep_session;
pub(crate) use post_handshake::{PostHandshake, Stage};
pub use provided::{Session, TlsSession};
pub use server::{Identity, ServerCredential, ServerTls, ServerTlsBuilder};
pub use server_names::ServerNames;
pub use store::{SessionStore, SessionTicket};
pub use tickets::TicketKeys;
pub use verifier::{CertificateVerdict, Presented, Verifier};

use crate::Role;
use crate::crypto::keys::{Secret, Suite};
use crate::error::TransportError;
use crate::wire::level::Level;
use crate::wire::version::Version;
use boring::error::ErrorStack;
use boring::ssl::{
    NameType, Ssl, SslContextBuilder, SslContextRef, SslMethod, SslRef, SslSession, SslVersion,
};
use boring_sys as ffi;
use bytes::Bytes;
use callbacks::{CallbackState, METHOD, STATE, to_ffi};
use foreign_types::ForeignTypeRef;
use std::ffi::c_int;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// Session tickets that are kept; older ones are dropped.
pub(crate) const MAX_TICKETS: usize = 8;

/// Called with each line of a key log (the format of NSS), without its line break.
pub type KeyLog = Box<dyn Fn(&str) + Send + Sync>;

/// An action that TLS wants done. Outputs are to be taken in order.
#[derive(Debug)]
pub enum SessionOutput {
    /// Send `data` in CRYPTO frames of `level`.
    Send {
        /// The level.
        level: Level,
        /// The bytes, continuing the earlier ones of the level.
        data: Bytes,
    },
    /// The secret for packets of `level` that the peer sends.
    ReadSecret {
        /// The level.
        level: Level,
        /// The cipher suite.
        suite: Suite,
        /// The secret.
        secret: Secret,
    },
    /// The secret for packets of `level` that this endpoint sends.
    WriteSecret {
        /// The level.
        level: Level,
        /// The cipher suite.
        suite: Suite,
        /// The secret.
        secret: Secret,
    },
    /// A session ticket arrived: see [`Session::take_tickets`].
    Ticket,
    /// The server rejected 0-RTT, and the handshake goes on without it.
    EarlyDataRejected,
}

/// A session ticket, with which a client resumes a session: opaque, and as secret as the session was.
#[derive(Clone, PartialEq, Eq)]
pub struct Ticket(pub Vec<u8>);

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ticket({} bytes)", self.0.len())
    }
}

/// The reason for which TLS cannot be set up as configured.
#[derive(Debug, thiserror::Error)]
pub enum TlsConfigError {
    /// A file cannot be read.
    #[error("cannot read {path}: {source}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The data is not the PEM that it should be.
    #[error("{what} is not valid PEM: {reason}")]
    Pem {
        /// A description of the PEM data, with the name of its file.
        what: String,
        /// The message of BoringSSL.
        reason: String,
    },
    /// PEM without a certificate in it.
    #[error("{0} contains no certificate")]
    NoCertificate(String),
    /// The private key belongs to another certificate.
    #[error("the private key does not belong to the certificate")]
    KeyMismatch,
    /// An application protocol is empty or has more than 255 bytes, or there is none (RFC 9001 §8.1 requires one).
    #[error("application protocols (ALPN) have 1 to 255 bytes, and there must be at least one")]
    Alpn,
    /// Groups for the key exchange that BoringSSL does not know.
    #[error("unknown key exchange groups {list:?}: {reason}")]
    Curves {
        /// The list as configured.
        list: String,
        /// The message of BoringSSL.
        reason: String,
    },
    /// The server's name can be neither a host name nor an address.
    #[error("{0:?} is neither a host name nor an IP address")]
    ServerName(String),
    /// The system has no root certificates where they usually are.
    #[error("no root certificates of the system found; name a file with CA certificates")]
    NoSystemRoots,
    /// A session ticket that cannot be read.
    #[error("the session ticket cannot be read")]
    Ticket,
    /// Another failure.
    #[error("TLS: {0}")]
    Tls(String),
}

impl From<ErrorStack> for TlsConfigError {
    fn from(stack: ErrorStack) -> Self {
        Self::Tls(alert::describe(&stack))
    }
}

/// Tells whether a session is of use once a handshake is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Retention {
    /// It is not: its memory is freed.
    #[default]
    Handshake,
    /// The application may export keying material, or a client keeps tickets.
    Connection,
}

/// One TLS handshake of BoringSSL, and what comes after it.
pub(crate) struct BoringSession {
    ssl: Ssl,
    messages: PostHandshake,
    retention: Retention,
    /// The error that ended the session, repeated to whoever goes on.
    failure: Option<TransportError>,
}

impl BoringSession {
    /// A client's session with the server of this name: a host name, which is also sent (RFC 6066 §3), or an IP address.
    fn client(
        tls: &ClientTls,
        context: &SslContextRef,
        server_name: &str,
        transport_parameters: &[u8],
    ) -> Result<Self, TlsConfigError> {
        let mut session = Self::new(context, Role::Client, transport_parameters)?;
        tls.expect_name(&mut session.ssl, server_name)?;
        session.state().tickets = tls.sessions().map(|_| Default::default());
        session.retention = tls.retention();
        Ok(session)
    }

    /// A server's session.
    fn server(
        tls: &ServerTls,
        context: &SslContextRef,
        transport_parameters: &[u8],
    ) -> Result<Self, TlsConfigError> {
        let mut session = Self::new(context, Role::Server, transport_parameters)?;
        tls.prepare(&mut session.ssl)?;
        session.retention = tls.retention();
        Ok(session)
    }

    fn new(context: &SslContextRef, role: Role, transport_parameters: &[u8]) -> Result<Self, TlsConfigError> {
        let mut ssl = Ssl::new(context)?;
        ssl.set_ex_data(*STATE, CallbackState::default());
        let (pointer, parameters) = (ssl.as_ptr(), transport_parameters);
        // SAFETY: `ssl` is valid and not shared yet, the method table is static, and BoringSSL copies the parameters.
        let result = unsafe {
            match role {
                Role::Client => ffi::SSL_set_connect_state(pointer),
                Role::Server => ffi::SSL_set_accept_state(pointer),
            }
            // What only the handshake needs is freed at its end.
            ffi::SSL_set_shed_handshake_config(pointer, 1);
            //= https://www.rfc-editor.org/rfc/rfc9001#section-8.2
            //= type=implication
            //= reason=Every session is one of QUIC.
            //# Endpoints MUST NOT send this extension in a TLS connection that does not use QUIC (such as the
            //# use of TLS with TCP defined in [TLS13])
            //= https://www.rfc-editor.org/rfc/rfc9001#section-8.3
            //= type=implication
            //= reason=BoringSSL leaves the message out over QUIC.
            //# Clients MUST NOT send the EndOfEarlyData message
            //= https://www.rfc-editor.org/rfc/rfc9001#section-8.4
            //= type=implication
            //= reason=BoringSSL leaves the compatibility mode out over QUIC.
            //# A client MUST NOT request the use of the TLS 1.3 compatibility mode
            ffi::SSL_set_quic_method(pointer, &METHOD)
                & ffi::SSL_set_quic_transport_params(pointer, parameters.as_ptr(), parameters.len())
        };
        check(result)?;
        Ok(Self { ssl, messages: Default::default(), retention: Retention::default(), failure: None })
    }

    /// Replaces the transport parameters of a server that has not answered yet.
    fn set_transport_parameters(&mut self, parameters: &[u8]) -> Result<(), TlsConfigError> {
        // SAFETY: `ssl` is valid, and BoringSSL copies the parameters before it returns.
        let result = unsafe {
            ffi::SSL_set_quic_transport_params(self.ssl.as_ptr(), parameters.as_ptr(), parameters.len())
        };
        check(result)
    }

    /// Has a server issue and accept session tickets of `version` only (RFC 9369 §5). To be called before it answers.
    fn bind_tickets(&mut self, version: Version) -> Result<(), TlsConfigError> {
        bind_tickets(&mut self.ssl, &version.0.to_be_bytes())
    }

    /// Has a client offer to resume the session of `ticket`. To be called before [`Session::start`].
    fn resume(&mut self, ticket: &Ticket) -> Result<(), TlsConfigError> {
        let session = SslSession::from_der(&ticket.0).map_err(|_| TlsConfigError::Ticket)?;
        // SAFETY: a session read from its bytes belongs to no other context.
        unsafe { self.ssl.set_session(&session) }.map_err(|_| TlsConfigError::Ticket)
    }

    /// Begins a client's handshake: the ClientHello is the first output. Later on, goes on where a verifier had it wait.
    fn start(&mut self) -> Result<(), TransportError> {
        self.advance()
    }

    /// Takes in the next CRYPTO bytes of `level` and drives the handshake with them.
    ///
    /// TLS alerts come back as CRYPTO_ERROR codes with a reason that people can read (RFC 9001 §4.8).
    fn provide(&mut self, level: Level, data: &[u8]) -> Result<(), TransportError> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let role = if self.ssl.is_server() { Role::Server } else { Role::Client };
        let stage = if self.is_handshaking() { Stage::Handshake } else { Stage::Complete };
        if let Err(error) = self.messages.take(data, role, stage) {
            return Err(self.end(error));
        }
        // SAFETY: `ssl` is valid, and BoringSSL copies `data`.
        let taken = unsafe {
            ffi::SSL_provide_quic_data(self.ssl.as_ptr(), to_ffi(level), data.as_ptr(), data.len())
        };
        if taken != 1 {
            let error = alert::refused(&ErrorStack::get());
            return Err(self.end(error));
        }
        self.advance()
    }

    /// The next thing that TLS wants done.
    fn poll(&mut self) -> Option<SessionOutput> {
        self.state().outputs.pop_front()
    }

    /// Frees room that only the handshake needed.
    fn settle(&mut self) {
        self.state().outputs.shrink_to_fit();
    }

    /// Returns true if the handshake is not complete yet (RFC 9001 §4.1.1).
    fn is_handshaking(&self) -> bool {
        !self.ssl.is_init_finished()
    }

    /// The peer's transport parameters as it encoded them, once they arrived: not authenticated before the handshake is
    /// complete (RFC 9001 §8.2). Empty ones count as none.
    fn peer_transport_parameters(&self) -> Option<Vec<u8>> {
        let (mut bytes, mut length) = (std::ptr::null(), 0);
        // SAFETY: `ssl` is valid, and both places are written before they are read.
        unsafe { ffi::SSL_get_peer_quic_transport_params(self.ssl.as_ptr(), &mut bytes, &mut length) };
        if bytes.is_null() || length == 0 {
            return None;
        }
        // SAFETY: BoringSSL gave out that many bytes, and nothing changes them while `self` is borrowed.
        Some(unsafe { std::slice::from_raw_parts(bytes, length) }.to_vec())
    }

    /// The application protocol agreed on (RFC 7301).
    fn alpn(&self) -> Option<Vec<u8>> {
        self.ssl.selected_alpn_protocol().map(<[u8]>::to_vec)
    }

    /// The host name that the client asked for (RFC 6066 §3).
    fn server_name(&self) -> Option<String> {
        self.ssl.servername(NameType::HOST_NAME).map(str::to_owned)
    }

    /// The peer's certificates, its own first, each in DER.
    fn peer_certificates(&self) -> Vec<Vec<u8>> {
        verifier::certificates(&self.ssl)
    }

    /// Returns how long the session is of use.
    fn retention(&self) -> Retention {
        self.retention
    }

    /// Returns how far the peer's messages are.
    fn messages(&self) -> PostHandshake {
        self.messages
    }

    /// Fills `out` with keying material (RFC 8446 §7.5).
    fn export_keying_material(
        &self,
        out: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), TlsConfigError> {
        // SAFETY: `ssl` is valid, and BoringSSL reads and writes no more than the lengths say.
        check(unsafe {
            ffi::SSL_export_keying_material(
                self.ssl.as_ptr(),
                out.as_mut_ptr(),
                out.len(),
                label.as_ptr().cast(),
                label.len(),
                context.as_ptr(),
                context.len(),
                1,
            )
        })
    }

    /// The cipher suite agreed on.
    fn cipher_suite(&self) -> Option<Suite> {
        self.ssl.current_cipher().and_then(|cipher| Suite::from_code_point(cipher.protocol_id()))
    }

    /// Returns true if the handshake resumed an earlier session.
    fn is_resumed(&self) -> bool {
        self.ssl.session_reused()
    }

    /// Takes the session tickets that arrived, at most eight, oldest first; none if the configuration has no store
    /// for them.
    fn take_tickets(&mut self) -> Vec<Ticket> {
        self.state().tickets.as_mut().map(std::mem::take).unwrap_or_default().into()
    }

    fn advance(&mut self) -> Result<(), TransportError> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let mut result = self.drive();
        if result != 1 && self.is_error(result, ffi::SSL_ERROR_EARLY_DATA_REJECTED) {
            self.forget_early_data();
            self.state().outputs.push_back(SessionOutput::EarlyDataRejected);
            result = self.drive();
        }
        if result == 1 && self.is_handshaking() {
            // BoringSSL returns early when 0-RTT may begin; the keys of the next level only come with another call.
            result = self.drive();
        }
        let waits = [ffi::SSL_ERROR_WANT_READ, ffi::SSL_ERROR_WANT_CERTIFICATE_VERIFY];
        if result == 1 || waits.into_iter().any(|reason| self.is_error(result, reason)) {
            return Ok(());
        }
        let stack = ErrorStack::get();
        let alert = self.state().alert.take();
        //= https://www.rfc-editor.org/rfc/rfc9001#section-4.8
        //# a QUIC endpoint MUST treat any alert from TLS as if it were at the "fatal" level.
        let error = alert::failure(alert, &stack, self.ssl.verify_result());
        Err(self.end(error))
    }

    /// Has BoringSSL go on with what it has.
    fn drive(&mut self) -> c_int {
        let pointer = self.ssl.as_ptr();
        if self.is_handshaking() {
            // SAFETY: `ssl` is valid and nothing borrows its state; its callbacks touch nothing else.
            unsafe { ffi::SSL_do_handshake(pointer) }
        } else {
            // SAFETY: as above.
            unsafe { ffi::SSL_process_quic_post_handshake(pointer) }
        }
    }

    /// Returns true if a call during the handshake that returned `result` did so because of `error`.
    fn is_error(&self, result: c_int, error: c_int) -> bool {
        // SAFETY: `ssl` is valid, and `result` comes from the last call on it.
        self.is_handshaking() && unsafe { ffi::SSL_get_error(self.ssl.as_ptr(), result) } == error
    }

    fn end(&mut self, error: TransportError) -> TransportError {
        self.failure = Some(error.clone());
        error
    }

    fn state(&mut self) -> &mut CallbackState {
        self.ssl.ex_data_mut(*STATE).expect("the state is set when the session is made and lives as long")
    }
}

impl fmt::Debug for BoringSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoringSession")
            .field("handshaking", &self.is_handshaking())
            .field("suite", &self.cipher_suite())
            .field("failure", &self.failure)
            .finish_non_exhaustive()
    }
}

/// Has a server's session issue and accept tickets of `context` only, which has at most 32 bytes.
fn bind_tickets(ssl: &mut SslRef, context: &[u8]) -> Result<(), TlsConfigError> {
    // SAFETY: `ssl` is valid, and BoringSSL copies the context before it returns.
    check(unsafe { ffi::SSL_set_session_id_context(ssl.as_ptr(), context.as_ptr(), context.len()) })
}

/// A builder of contexts for TLS 1.3 alone (RFC 9001 §4.2).
fn context_builder(keylog: Option<Arc<KeyLog>>) -> Result<SslContextBuilder, TlsConfigError> {
    let mut builder = SslContextBuilder::new(SslMethod::tls())?;
    //= https://www.rfc-editor.org/rfc/rfc9001#section-4.2
    //# Clients MUST NOT offer TLS versions older than 1.3
    //= https://www.rfc-editor.org/rfc/rfc9001#section-4.2
    //# An endpoint MUST terminate the connection if a version of TLS older than 1.3 is negotiated.
    builder.set_min_proto_version(Some(SslVersion::TLS1_3))?;
    builder.set_max_proto_version(Some(SslVersion::TLS1_3))?;
    if let Some(keylog) = keylog {
        builder.set_keylog_callback(move |_, line| keylog(line));
    }
    Ok(builder)
}

/// Has connections offer and accept only `suites`, the preferred one first; BoringSSL's choice if there are none.
fn restrict_suites(builder: &SslContextBuilder, suites: &[Suite]) -> Result<(), TlsConfigError> {
    let code_points: Vec<u16> = suites.iter().map(|suite| suite.code_point()).collect();
    // SAFETY: the context is valid, and BoringSSL copies as many code points as it is told there are; it permits flags to
    // be absent.
    check(unsafe {
        ffi::SSL_CTX_set1_tls13_ciphers(
            builder.as_ptr(),
            code_points.as_ptr(),
            std::ptr::null(),
            code_points.len(),
        )
    })
}

/// Application protocols as TLS encodes them: each after its length in a byte (RFC 7301 §3.1).
fn encode_alpn(protocols: &[Vec<u8>]) -> Result<Vec<u8>, TlsConfigError> {
    let mut encoded = Vec::new();
    for protocol in protocols {
        let length = u8::try_from(protocol.len()).ok().filter(|length| *length > 0);
        encoded.push(length.ok_or(TlsConfigError::Alpn)?);
        encoded.extend_from_slice(protocol);
    }
    if encoded.is_empty() { Err(TlsConfigError::Alpn) } else { Ok(encoded) }
}

/// Reads a file.
fn read(path: &std::path::Path) -> Result<Vec<u8>, TlsConfigError> {
    std::fs::read(path).map_err(|source| TlsConfigError::Read { path: path.to_owned(), source })
}

/// The outcome of a call that returns 1 on success.
fn check(result: c_int) -> Result<(), TlsConfigError> {
    if result == 1 { Ok(()) } else { Err(ErrorStack::get().into()) }
}

#[cfg(test)]
mod tests;
