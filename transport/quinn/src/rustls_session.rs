//! Handshakes by rustls, from configurations of that library.
//!
//! rustls drives the handshake and says when keys change; the secrets that hvq derives its keys from are those that it gives a key log.

use crate::rustls::NO_PROTOCOL;
use hvq::transport::crypto::keys::{Level, Secret, Suite};
use hvq::transport::crypto::session::{SessionOutput, TlsSession};
use hvq::{ClientTls, ErrorCode, ServerTls, TlsConfigError, TransportError};
use rustls::pki_types::ServerName;
use rustls::quic::{ClientConnection, Connection, KeyChange, ServerConnection, Version};
use rustls::{ClientConfig, HandshakeKind, KeyLog, ServerConfig};
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// CRYPTO bytes that the peer may send after the handshake, over the whole connection: some hundred session tickets.
const POST_HANDSHAKE_LIMIT: usize = 128 * 1024;

/// TLS's alert where no other fits (RFC 8446 §6.2).
const INTERNAL_ERROR: u8 = 80;

/// A client's TLS.
pub(crate) fn client(config: &Arc<ClientConfig>) -> ClientTls {
    let config = Arc::clone(config);
    ClientTls::provided(move |server_name, parameters| {
        let mut config = ClientConfig::clone(&config);
        let recorder = Recorder::instead_of(&config.key_log);
        config.key_log = Arc::clone(&recorder) as Arc<dyn KeyLog>;
        config.enable_early_data = false;
        name_protocol(&mut config.alpn_protocols);
        let bare = server_name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
        let name = ServerName::try_from(bare.unwrap_or(server_name).to_owned())
            .map_err(|_| TlsConfigError::ServerName(server_name.to_owned()))?;
        let connection = ClientConnection::new(Arc::new(config), Version::V1, name, parameters.to_vec());
        let connection = Connection::Client(connection.map_err(unusable)?);
        Ok(Box::new(RustlsSession::new(Progress::Begun(Box::new(connection)), recorder)))
    })
}

/// A server's TLS.
pub(crate) fn server(config: &Arc<ServerConfig>) -> ServerTls {
    let config = Arc::clone(config);
    ServerTls::provided(move |parameters| {
        let mut config = ServerConfig::clone(&config);
        let recorder = Recorder::instead_of(&config.key_log);
        config.key_log = Arc::clone(&recorder) as Arc<dyn KeyLog>;
        config.max_early_data_size = 0;
        name_protocol(&mut config.alpn_protocols);
        let progress = Progress::Waiting { config: Arc::new(config), parameters: parameters.to_vec() };
        Ok(Box::new(RustlsSession::new(progress, recorder)))
    })
}

/// Has programs that name no protocol agree on one: QUIC needs it (RFC 9001 §8.1).
fn name_protocol(protocols: &mut Vec<Vec<u8>>) {
    if protocols.is_empty() {
        protocols.push(NO_PROTOCOL.to_vec());
    }
}

fn unusable(error: rustls::Error) -> TlsConfigError {
    TlsConfigError::Tls(error.to_string())
}

/// A key log that keeps the secrets of a handshake until they are asked for.
struct Recorder {
    secrets: Mutex<Vec<(&'static str, Secret)>>,
    /// The key log of the program.
    outer: Arc<dyn KeyLog>,
}

/// The labels of a client's secret and of a server's, for the levels that have both.
const HANDSHAKE: [&str; 2] = ["CLIENT_HANDSHAKE_TRAFFIC_SECRET", "SERVER_HANDSHAKE_TRAFFIC_SECRET"];
const ONE_RTT: [&str; 2] = ["CLIENT_TRAFFIC_SECRET_0", "SERVER_TRAFFIC_SECRET_0"];

fn known(label: &str) -> Option<&'static str> {
    HANDSHAKE.into_iter().chain(ONE_RTT).find(|name| *name == label)
}

impl Recorder {
    fn instead_of(outer: &Arc<dyn KeyLog>) -> Arc<Self> {
        Arc::new(Self { secrets: Mutex::default(), outer: Arc::clone(outer) })
    }

    /// Takes the secret with this label.
    fn take(&self, label: &str) -> Option<Secret> {
        let mut secrets = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        let index = secrets.iter().position(|(name, _)| *name == label)?;
        Some(secrets.swap_remove(index).1)
    }
}

impl KeyLog for Recorder {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        if let (Some(name), Some(secret)) = (known(label), Secret::new(secret)) {
            self.secrets.lock().unwrap_or_else(PoisonError::into_inner).push((name, secret));
        }
        if self.outer.will_log(label) {
            self.outer.log(label, client_random, secret);
        }
    }

    fn will_log(&self, label: &str) -> bool {
        known(label).is_some() || self.outer.will_log(label)
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").finish_non_exhaustive()
    }
}

/// A session that has begun, or a server's that waits for the first bytes.
#[derive(Debug)]
enum Progress {
    Waiting { config: Arc<ServerConfig>, parameters: Vec<u8> },
    Begun(Box<Connection>),
}

/// A handshake by rustls.
#[derive(Debug)]
struct RustlsSession {
    progress: Progress,
    recorder: Arc<Recorder>,
    outputs: VecDeque<SessionOutput>,
    /// The level at which the peer's bytes are due.
    read: Level,
    /// The level of what is written next.
    write: Level,
    /// The secret for reading 1-RTT packets, until the handshake is complete (RFC 9001 §5.7).
    withheld: Option<(Suite, Secret)>,
    post_handshake_bytes: usize,
    /// The error that ended the session, repeated to whoever goes on.
    failure: Option<TransportError>,
}

impl RustlsSession {
    fn new(progress: Progress, recorder: Arc<Recorder>) -> Self {
        Self {
            progress,
            recorder,
            outputs: VecDeque::new(),
            read: Level::Initial,
            write: Level::Initial,
            withheld: None,
            post_handshake_bytes: 0,
            failure: None,
        }
    }

    fn connection(&self) -> Option<&Connection> {
        match &self.progress {
            Progress::Waiting { .. } => None,
            Progress::Begun(connection) => Some(connection),
        }
    }

    /// The connection of rustls, which begins with this if it has not.
    fn begin(&mut self) -> Result<&mut Connection, TransportError> {
        if let Progress::Waiting { config, parameters } = &mut self.progress {
            let parameters = std::mem::take(parameters);
            let connection = ServerConnection::new(Arc::clone(config), Version::V1, parameters);
            let connection =
                connection.map_err(|error| ErrorCode::crypto(INTERNAL_ERROR).because(error.to_string()))?;
            self.progress = Progress::Begun(Box::new(Connection::Server(connection)));
        }
        match &mut self.progress {
            Progress::Begun(connection) => Ok(connection),
            Progress::Waiting { .. } => unreachable!("it has begun above"),
        }
    }

    fn take_in(&mut self, level: Level, data: &[u8]) -> Result<(), TransportError> {
        //= https://www.rfc-editor.org/rfc/rfc9001#section-4.1.3
        //# If the packet is from a previously installed encryption level, it MUST NOT contain data that extends
        //# past the end of previously received data in that flow
        if level != self.read {
            let reason = "CRYPTO data at an encryption level that is over or not begun";
            return Err(ErrorCode::PROTOCOL_VIOLATION.because(reason));
        }
        if !self.is_handshaking() {
            self.post_handshake_bytes = self.post_handshake_bytes.saturating_add(data.len());
            if self.post_handshake_bytes > POST_HANDSHAKE_LIMIT {
                let reason = "too much CRYPTO data after the handshake";
                return Err(ErrorCode::CRYPTO_BUFFER_EXCEEDED.because(reason));
            }
        }
        let connection = self.begin()?;
        if let Err(error) = connection.read_hs(data) {
            //= https://www.rfc-editor.org/rfc/rfc9001#section-4.8
            //# a QUIC endpoint MUST treat any alert from TLS as if it were at the "fatal" level.
            let alert = connection.alert().map_or(INTERNAL_ERROR, u8::from);
            return Err(ErrorCode::crypto(alert).because(error.to_string()));
        }
        self.advance()
    }

    /// Takes what rustls has to say.
    fn advance(&mut self) -> Result<(), TransportError> {
        loop {
            let mut data = Vec::new();
            let change = self.begin()?.write_hs(&mut data);
            if !data.is_empty() {
                self.outputs.push_back(SessionOutput::Send { level: self.write, data: data.into() });
            }
            match change {
                Some(KeyChange::Handshake { .. }) => {
                    let (suite, read, write) = self.secrets(HANDSHAKE)?;
                    let level = Level::Handshake;
                    self.outputs.push_back(SessionOutput::ReadSecret { level, suite, secret: read });
                    self.outputs.push_back(SessionOutput::WriteSecret { level, suite, secret: write });
                    (self.read, self.write) = (level, level);
                }
                Some(KeyChange::OneRtt { .. }) => {
                    let (suite, read, write) = self.secrets(ONE_RTT)?;
                    let level = Level::OneRtt;
                    self.outputs.push_back(SessionOutput::WriteSecret { level, suite, secret: write });
                    self.withheld = Some((suite, read));
                    self.write = level;
                }
                None => break,
            }
        }
        if !self.is_handshaking()
            && let Some((suite, secret)) = self.withheld.take()
        {
            self.read = Level::OneRtt;
            self.outputs.push_back(SessionOutput::ReadSecret { level: Level::OneRtt, suite, secret });
        }
        Ok(())
    }

    /// The suite, and the secrets for reading and for writing, of the level with these labels.
    fn secrets(&self, [client, server]: [&str; 2]) -> Result<(Suite, Secret, Secret), TransportError> {
        let missing = || ErrorCode::crypto(INTERNAL_ERROR).because("rustls kept a secret to itself");
        let connection = self.connection().ok_or_else(missing)?;
        let suite = connection.negotiated_cipher_suite().map(|suite| u16::from(suite.suite()));
        let suite = suite.and_then(Suite::from_code_point).ok_or_else(missing)?;
        let (read, write) = match connection {
            Connection::Client(_) => (server, client),
            Connection::Server(_) => (client, server),
        };
        let take = |label| self.recorder.take(label).ok_or_else(missing);
        Ok((suite, take(read)?, take(write)?))
    }

    /// Remembers how it ended, if it did.
    fn ending(&mut self, outcome: Result<(), TransportError>) -> Result<(), TransportError> {
        self.failure = outcome.as_ref().err().cloned();
        outcome
    }
}

impl TlsSession for RustlsSession {
    fn start(&mut self) -> Result<(), TransportError> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let outcome = self.advance();
        self.ending(outcome)
    }

    fn provide(&mut self, level: Level, data: &[u8]) -> Result<(), TransportError> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let outcome = self.take_in(level, data);
        self.ending(outcome)
    }

    fn poll(&mut self) -> Option<SessionOutput> {
        self.outputs.pop_front()
    }

    fn set_transport_parameters(&mut self, encoded: &[u8]) -> Result<(), TlsConfigError> {
        match &mut self.progress {
            Progress::Waiting { parameters, .. } => {
                *parameters = encoded.to_vec();
                Ok(())
            }
            Progress::Begun(_) => Err(TlsConfigError::Tls("the handshake has begun".to_owned())),
        }
    }

    fn is_handshaking(&self) -> bool {
        self.connection().is_none_or(|connection| connection.is_handshaking())
    }

    fn peer_transport_parameters(&self) -> Option<Vec<u8>> {
        let connection = self.connection()?;
        // A client that resumes a session is told the server's parameters of that one until the server answers.
        let is_remembered = matches!(connection, Connection::Client(_)) && connection.is_handshaking();
        connection.quic_transport_parameters().filter(|_| !is_remembered).map(<[u8]>::to_vec)
    }

    fn alpn(&self) -> Option<Vec<u8>> {
        self.connection()?.alpn_protocol().map(<[u8]>::to_vec)
    }

    fn server_name(&self) -> Option<String> {
        match self.connection()? {
            Connection::Client(_) => None,
            Connection::Server(connection) => connection.server_name().map(str::to_owned),
        }
    }

    fn peer_certificates(&self) -> Vec<Vec<u8>> {
        let chain = self.connection().and_then(|connection| connection.peer_certificates());
        chain.unwrap_or_default().iter().map(|certificate| certificate.to_vec()).collect()
    }

    fn is_resumed(&self) -> bool {
        let kind = self.connection().and_then(|connection| connection.handshake_kind());
        kind == Some(HandshakeKind::Resumed)
    }

    fn export_keying_material(
        &self,
        out: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), TlsConfigError> {
        let connection = self.connection().ok_or_else(|| TlsConfigError::Tls("no handshake".to_owned()))?;
        connection.export_keying_material(out, label, Some(context)).map(|_| ()).map_err(unusable)
    }
}

#[cfg(test)]
mod tests;
