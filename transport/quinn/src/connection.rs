//! Connections.

use crate::crypto::ExportKeyingMaterialError;
use crate::crypto::rustls::HandshakeData;
use crate::rustls::pki_types::CertificateDer;
use crate::{ConnectionError, ConnectionStats, RecvStream, SendDatagramError, SendStream, Side, VarInt};
use bytes::Bytes;
use std::any::Any;
use std::fmt;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// A connection whose handshake is under way; a future of the connection.
#[derive(Debug)]
#[must_use = "the attempt ends when this is dropped"]
pub struct Connecting(hvq::Connecting);

impl Connecting {
    pub(crate) fn new(connecting: hvq::Connecting) -> Self {
        Self(connecting)
    }

    /// The connection as hvq has it, before its handshake is complete.
    pub fn hvq(&self) -> &hvq::Connection {
        self.0.connection()
    }

    /// The connection at once: a client's with a ticket that permits 0-RTT, and a server's, which sends in its first flight.
    ///
    /// # Errors
    /// A client has no such ticket; the handshake goes on.
    pub fn into_0rtt(self) -> Result<(Connection, ZeroRttAccepted), Self> {
        let (connection, accepted) = self.0.into_0rtt().map_err(Self)?;
        Ok((Connection(connection), ZeroRttAccepted(accepted)))
    }

    /// The facts that the handshake settled, once it is complete: a [`HandshakeData`].
    ///
    /// # Errors
    /// The connection ended.
    pub async fn handshake_data(&mut self) -> Result<Box<dyn Any>, ConnectionError> {
        let connection = self.0.connection().clone();
        connection.handshake_complete().await?;
        let data = HandshakeData::of(&connection).ok_or(ConnectionError::LocallyClosed)?;
        Ok(Box::new(data))
    }

    /// The peer's address.
    pub fn remote_address(&self) -> SocketAddr {
        self.0.connection().remote_address()
    }

    /// The address of this machine.
    pub fn local_ip(&self) -> Option<IpAddr> {
        local_ip(self.0.connection())
    }
}

impl Future for Connecting {
    type Output = Result<Connection, ConnectionError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let connected = Pin::new(&mut self.0).poll(context);
        connected.map(|connected| connected.map(Connection).map_err(ConnectionError::from))
    }
}

/// Tells whether 0-RTT was accepted, once the handshake is complete.
#[derive(Debug)]
pub struct ZeroRttAccepted(hvq::EarlyDataAccepted);

impl Future for ZeroRttAccepted {
    type Output = bool;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<bool> {
        Pin::new(&mut self.0).poll(context)
    }
}

/// A connection. Clones are handles on the same one; it is closed with code 0 when the last handle and stream are dropped.
#[derive(Clone)]
pub struct Connection(hvq::Connection);

impl Connection {
    /// The connection as hvq has it: paths are opened and watched there.
    pub fn hvq(&self) -> &hvq::Connection {
        &self.0
    }

    /// Opens a stream on which this end sends, once the peer permits one more.
    ///
    /// # Errors
    /// The connection ended.
    pub async fn open_uni(&self) -> Result<SendStream, ConnectionError> {
        Ok(SendStream::new(self.0.open_uni().await?))
    }

    /// Opens a stream on which both ends send, once the peer permits one more.
    ///
    /// # Errors
    /// The connection ended.
    pub async fn open_bi(&self) -> Result<(SendStream, RecvStream), ConnectionError> {
        let (send, receive) = self.0.open_bi().await?;
        Ok((SendStream::new(send), RecvStream::new(receive)))
    }

    /// The next stream on which the peer sends.
    ///
    /// # Errors
    /// The connection ended.
    pub async fn accept_uni(&self) -> Result<RecvStream, ConnectionError> {
        Ok(RecvStream::new(self.0.accept_uni().await?))
    }

    /// The next stream of the peer on which both ends send.
    ///
    /// # Errors
    /// The connection ended.
    pub async fn accept_bi(&self) -> Result<(SendStream, RecvStream), ConnectionError> {
        let (send, receive) = self.0.accept_bi().await?;
        Ok((SendStream::new(send), RecvStream::new(receive)))
    }

    /// The next datagram of the peer.
    ///
    /// # Errors
    /// The connection ended.
    pub async fn read_datagram(&self) -> Result<Bytes, ConnectionError> {
        Ok(self.0.read_datagram().await?)
    }

    /// Queues a datagram; the oldest gives way if the queue is full.
    ///
    /// # Errors
    /// See [`SendDatagramError`].
    pub fn send_datagram(&self, data: Bytes) -> Result<(), SendDatagramError> {
        Ok(self.0.send_datagram(data)?)
    }

    /// Queues a datagram once there is room for it.
    ///
    /// # Errors
    /// See [`SendDatagramError`].
    pub async fn send_datagram_wait(&self, data: Bytes) -> Result<(), SendDatagramError> {
        Ok(self.0.send_datagram_wait(data).await?)
    }

    /// Bytes of the largest datagram that can be sent now; `None` if the peer takes none.
    pub fn max_datagram_size(&self) -> Option<usize> {
        self.0.max_datagram_size()
    }

    /// Bytes of the largest datagram that can be queued without an older one giving way, at most
    /// [`Self::max_datagram_size`].
    pub fn datagram_send_buffer_space(&self) -> usize {
        self.0.datagram_space()
    }

    /// Ends the connection with the application's code and an explanation.
    pub fn close(&self, error_code: VarInt, reason: &[u8]) {
        self.0.close(error_code.into_inner(), reason);
    }

    /// Waits for the end of the connection, and tells why it ended.
    pub async fn closed(&self) -> ConnectionError {
        self.0.closed().await.into()
    }

    /// The reason for which the connection ended, if it did.
    pub fn close_reason(&self) -> Option<ConnectionError> {
        self.0.close_reason().map(ConnectionError::from)
    }

    /// This end: client or server.
    pub fn side(&self) -> Side {
        self.0.role().into()
    }

    /// The peer's address, on the first of its paths.
    pub fn remote_address(&self) -> SocketAddr {
        self.0.remote_address()
    }

    /// The address of this machine, on the first path.
    pub fn local_ip(&self) -> Option<IpAddr> {
        local_ip(&self.0)
    }

    /// The smallest smoothed round-trip time of all paths.
    pub fn rtt(&self) -> Duration {
        self.0.rtt()
    }

    /// The smallest round-trip time of all paths.
    pub fn min_rtt(&self) -> Duration {
        self.0.stats().paths.iter().map(|path| path.min_rtt).min().unwrap_or_default()
    }

    /// Figures over all paths.
    pub fn stats(&self) -> ConnectionStats {
        self.0.stats().into()
    }

    /// The facts that the handshake settled, once it is complete: a [`HandshakeData`].
    pub fn handshake_data(&self) -> Option<Box<dyn Any>> {
        HandshakeData::of(&self.0).map(|data| Box::new(data) as Box<dyn Any>)
    }

    /// The peer's certificates, if it has any, its own first: a `Vec<CertificateDer<'static>>`.
    pub fn peer_identity(&self) -> Option<Box<dyn Any>> {
        let chain: Vec<CertificateDer<'static>> =
            self.0.peer_certificates().into_iter().map(CertificateDer::from).collect();
        (!chain.is_empty()).then(|| Box::new(chain) as Box<dyn Any>)
    }

    /// A number that no other connection of the endpoint has.
    pub fn stable_id(&self) -> usize {
        usize::try_from(self.0.stable_id()).unwrap_or(usize::MAX)
    }

    /// Updates the keys of packets, unless it is too early for that.
    pub fn force_key_update(&self) {
        // It is too early: the next update comes by itself.
        let _updated = self.0.update_keys();
    }

    /// Fills `output` with keying material that both ends can export (RFC 8446 §7.5).
    ///
    /// # Errors
    /// The handshake is not complete, or the connection is gone.
    pub fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        self.0.export_keying_material(output, label, context).map_err(|_| ExportKeyingMaterialError)
    }

    /// Unidirectional streams that the peer may have open at a time from now on.
    pub fn set_max_concurrent_uni_streams(&self, count: VarInt) {
        self.0.change_stream_limits(|limits| limits.max_streams_uni = count.into_inner());
    }

    /// Bidirectional streams that the peer may have open at a time from now on.
    pub fn set_max_concurrent_bi_streams(&self, count: VarInt) {
        self.0.change_stream_limits(|limits| limits.max_streams_bidi = count.into_inner());
    }

    /// Bytes that a stream holds for sending at most from now on.
    pub fn set_send_window(&self, send_window: u64) {
        let bytes = usize::try_from(send_window).unwrap_or(usize::MAX);
        self.0.change_stream_limits(|limits| limits.send_buffer = bytes);
    }

    /// Bytes that the peer may send ahead of reading, over all streams, from now on.
    pub fn set_receive_window(&self, receive_window: VarInt) {
        self.0.change_stream_limits(|limits| limits.max_window = receive_window.into_inner());
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

fn local_ip(connection: &hvq::Connection) -> Option<IpAddr> {
    let stats = connection.stats();
    let first = stats.paths.iter().min_by_key(|path| path.id)?;
    Some(first.tuple.local.ip()).filter(|address| !address.is_unspecified())
}
