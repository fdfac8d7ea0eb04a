//! quiche: a QUIC and HTTP/3 implementation without I/O, here on a blocking socket.

use crate::identity::{Identity, NAME};
use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use quiche::h3::{self, Header, NameValue};
use quiche::{Config, ConnectionId, RecvInfo};
use ring::rand::{SecureRandom, SystemRandom};
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// The longest datagram, in bytes of UDP payload.
const DATAGRAM: usize = 1350;
/// Bytes that the peer may send ahead of reading.
const WINDOW: u64 = 4 << 20;
/// The code with which the client closes when it has all that it wanted: H3_NO_ERROR (RFC 9114 §8.1).
const NO_ERROR: u64 = 0x100;

/// A connection and its socket.
struct Link {
    socket: UdpSocket,
    local: SocketAddr,
    connection: quiche::Connection,
    deadline: Instant,
    buffer: Vec<u8>,
}

fn config() -> Result<Config> {
    let mut config = Config::new(quiche::PROTOCOL_VERSION)?;
    config.set_application_protos(h3::APPLICATION_PROTOCOL)?;
    config.set_max_idle_timeout(10_000);
    config.set_max_recv_udp_payload_size(65_527);
    config.set_max_send_udp_payload_size(DATAGRAM);
    config.set_initial_max_data(WINDOW);
    config.set_initial_max_stream_data_bidi_local(WINDOW);
    config.set_initial_max_stream_data_bidi_remote(WINDOW);
    config.set_initial_max_stream_data_uni(WINDOW);
    config.set_initial_max_streams_bidi(100);
    config.set_initial_max_streams_uni(100);
    config.set_disable_active_migration(true);
    Ok(config)
}

fn new_connection_id() -> Result<ConnectionId<'static>> {
    let mut bytes = vec![0; quiche::MAX_CONN_ID_LEN];
    SystemRandom::new().fill(&mut bytes).ok().context("the system gives no random numbers")?;
    Ok(ConnectionId::from_vec(bytes))
}

/// Fetches `path` from the HTTP/3 server at `remote`, within `patience`. Blocks.
///
/// # Errors
/// The connection or the request failed.
pub fn get(certificate: &str, remote: SocketAddr, path: &str, patience: Duration) -> Result<Vec<u8>> {
    let mut config = config()?;
    config.verify_peer(true);
    config.load_verify_locations_from_file(certificate)?;
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    let local = socket.local_addr()?;
    let connection = quiche::connect(Some(NAME), &new_connection_id()?, local, remote, &mut config)?;
    let mut link = Link::new(socket, connection, Instant::now() + patience)?;
    let mut session: Option<h3::Connection> = None;
    let mut body = Vec::new();
    loop {
        link.turn()?;
        if link.connection.is_closed() {
            bail!("the connection ended: {}", link.reason());
        }
        if !link.connection.is_established() {
            continue;
        }
        if session.is_none() {
            let mut fresh = h3::Connection::with_transport(&mut link.connection, &h3::Config::new()?)?;
            fresh.send_request(&mut link.connection, &request(path), true)?;
            session = Some(fresh);
        }
        if let Some(session) = &mut session
            && receive(session, &mut link, &mut body)? == Progress::Complete
        {
            link.connection.close(true, NO_ERROR, b"done")?;
            link.flush()?;
            return Ok(body);
        }
    }
}

/// Tells whether there is more to come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    Underway,
    Complete,
}

fn request(path: &str) -> [Header; 5] {
    [
        Header::new(b":method", b"GET"),
        Header::new(b":scheme", b"https"),
        Header::new(b":authority", NAME.as_bytes()),
        Header::new(b":path", path.as_bytes()),
        Header::new(b"user-agent", b"quiche"),
    ]
}

/// Takes what has arrived of a response.
fn receive(session: &mut h3::Connection, link: &mut Link, body: &mut Vec<u8>) -> Result<Progress> {
    loop {
        match session.poll(&mut link.connection) {
            Ok((_, h3::Event::Headers { list, .. })) => {
                let status = list.iter().find(|header| header.name() == b":status");
                let status = status.map(|header| String::from_utf8_lossy(header.value()).into_owned());
                ensure!(status.as_deref() == Some("200"), "the server answers {status:?}");
            }
            Ok((stream, h3::Event::Data)) => {
                let Link { connection, buffer, .. } = &mut *link;
                while let Ok(read) = session.recv_body(connection, stream, buffer) {
                    body.extend_from_slice(&buffer[..read]);
                }
            }
            Ok((_, h3::Event::Finished)) => return Ok(Progress::Complete),
            Ok((_, h3::Event::Reset(code))) => bail!("the server reset the response with {code:#x}"),
            Ok((_, h3::Event::GoAway | h3::Event::PriorityUpdate)) => {}
            Err(h3::Error::Done) => return Ok(Progress::Underway),
            Err(error) => return Err(error).context("HTTP/3 of quiche"),
        }
    }
}

/// A server with its socket bound, for one connection.
pub struct Server {
    config: Config,
    socket: UdpSocket,
}

impl Server {
    /// A server on a port of 127.0.0.1.
    ///
    /// # Errors
    /// It cannot be bound, or the certificate is refused.
    pub fn bind(identity: &Identity) -> Result<Self> {
        let mut config = config()?;
        let (certificate, key) = (identity.certificate_file(), identity.key_file());
        config.load_cert_chain_from_pem_file(certificate.to_str().context("a path in UTF-8")?)?;
        config.load_priv_key_from_pem_file(key.to_str().context("a path in UTF-8")?)?;
        Ok(Self { config, socket: UdpSocket::bind("127.0.0.1:0")? })
    }

    /// Returns the address on which it listens.
    ///
    /// # Errors
    /// The system does not say.
    pub fn address(&self) -> Result<SocketAddr> {
        Ok(self.socket.local_addr()?)
    }

    /// Answers every request of one client with `body`, until the client closes, within `patience`. Blocks.
    ///
    /// # Errors
    /// The connection ended otherwise.
    pub fn run(mut self, body: &Bytes, patience: Duration) -> Result<()> {
        let deadline = Instant::now() + patience;
        self.socket.set_read_timeout(Some(patience))?;
        let mut first = vec![0; 65_536];
        let (length, client) = self.socket.recv_from(&mut first).context("no client came")?;
        let local = self.socket.local_addr()?;
        let connection = quiche::accept(&new_connection_id()?, None, local, client, &mut self.config)?;
        let mut link = Link::new(self.socket, connection, deadline)?;
        link.connection.recv(&mut first[..length], RecvInfo { from: client, to: local })?;
        let mut session: Option<h3::Connection> = None;
        // The streams to answer, and how much of the body each has been given.
        let mut open: Vec<(u64, usize)> = Vec::new();
        loop {
            link.turn()?;
            if link.connection.is_closed() {
                return link.goodbye();
            }
            if session.is_none() && link.connection.is_established() {
                session = Some(h3::Connection::with_transport(&mut link.connection, &h3::Config::new()?)?);
            }
            if let Some(session) = &mut session {
                accept(session, &mut link.connection, body.len(), &mut open)?;
                for (stream, written) in &mut open {
                    *written += send(session, &mut link.connection, *stream, &body[*written..])?;
                }
                open.retain(|(_, written)| *written < body.len());
            }
        }
    }
}

/// Takes requests, and sends the headers of their responses.
fn accept(
    session: &mut h3::Connection,
    connection: &mut quiche::Connection,
    length: usize,
    open: &mut Vec<(u64, usize)>,
) -> Result<()> {
    loop {
        match session.poll(connection) {
            Ok((stream, h3::Event::Headers { .. })) => {
                let length = length.to_string();
                let head = [
                    Header::new(b":status", b"200"),
                    Header::new(b"server", b"quiche"),
                    Header::new(b"content-length", length.as_bytes()),
                ];
                session.send_response(connection, stream, &head, false)?;
                open.push((stream, 0));
            }
            Ok(_) => {}
            Err(h3::Error::Done) => return Ok(()),
            // The client has all and closed.
            Err(_) if connection.is_draining() || connection.is_closed() => return Ok(()),
            Err(error) => return Err(error).context("HTTP/3 of quiche"),
        }
    }
}

/// Sends what the stream takes of `rest`, the end of the body, and tells how many bytes that were.
fn send(
    session: &mut h3::Connection,
    connection: &mut quiche::Connection,
    stream: u64,
    rest: &[u8],
) -> Result<usize> {
    match session.send_body(connection, stream, rest, true) {
        Ok(written) => Ok(written),
        Err(h3::Error::Done) => Ok(0),
        Err(error) => Err(error).context("quiche sends a body"),
    }
}

impl Link {
    fn new(socket: UdpSocket, connection: quiche::Connection, deadline: Instant) -> Result<Self> {
        let local = socket.local_addr()?;
        Ok(Self { socket, local, connection, deadline, buffer: vec![0; 65_536] })
    }

    /// Sends all that there is to send, waits for a datagram or the next timer, and handles it.
    fn turn(&mut self) -> Result<()> {
        self.flush()?;
        ensure!(Instant::now() < self.deadline, "quiche is not done in time: {:?}", self.connection.stats());
        let wait = self.connection.timeout().unwrap_or(Duration::from_millis(100));
        self.socket.set_read_timeout(Some(wait.clamp(Duration::from_millis(1), Duration::from_secs(1))))?;
        match self.socket.recv_from(&mut self.buffer) {
            Ok((length, from)) => {
                let info = RecvInfo { from, to: self.local };
                match self.connection.recv(&mut self.buffer[..length], info) {
                    Ok(_) | Err(quiche::Error::Done) => {}
                    Err(error) => return Err(error).context("quiche receives a datagram"),
                }
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) => return Err(error).context("quiche's socket"),
        }
        if self.connection.timeout() == Some(Duration::ZERO) {
            self.connection.on_timeout();
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let mut datagram = [0; DATAGRAM];
        loop {
            match self.connection.send(&mut datagram) {
                Ok((length, info)) => {
                    self.socket.send_to(&datagram[..length], info.to)?;
                }
                Err(quiche::Error::Done) => return Ok(()),
                Err(error) => return Err(error).context("quiche sends a datagram"),
            }
        }
    }

    fn reason(&self) -> String {
        format!(
            "by the peer {:?}, by quiche {:?}",
            self.connection.peer_error(),
            self.connection.local_error()
        )
    }

    /// Checks that the client ended the connection, and without an error.
    fn goodbye(&self) -> Result<()> {
        match self.connection.peer_error() {
            Some(error) if error.is_app && error.error_code == NO_ERROR => Ok(()),
            _ => bail!("the connection ended: {}", self.reason()),
        }
    }
}
