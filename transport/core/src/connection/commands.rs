//! Commands of the application to a connection. After any command, poll until idle.

use crate::PathId;
use crate::congestion::Congestion;
use crate::connection::paths::migration::is_bound_to;
use crate::connection::{Connection, Role};
use crate::crypto::session::TlsConfigError;
use crate::datagram::DatagramError;
use crate::path::paths::Paths;
use crate::path::route::FourTuple;
use crate::stream::streams::{ReadError, ReadOutcome, WriteError};
use crate::stream::{Direction, MeteredHalf, StreamId, StreamLimits, StreamMeter};
use crate::time::Instant;
use crate::wire::frame::Status;
use bytes::Bytes;
use hvq_scheduler::{Hints, Priority, StreamPriority};

/// The reason for which a path cannot be opened now.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OpenPathError {
    /// Only a client opens paths (RFC 10069 §3.1).
    #[error("only a client opens paths")]
    NotClient,
    /// The handshake is not complete, or the connection is closing.
    #[error("the connection is not established")]
    NotConnected,
    /// One of the endpoints did not announce the multipath extension.
    #[error("multipath was not negotiated")]
    NotNegotiated,
    /// No unused path ID within both limits; [`PathEvent::Available`](crate::connection::PathEvent::Available) tells
    /// when to try again.
    #[error("the path limit is reached")]
    LimitReached,
    /// The server asked its clients not to use other local addresses (`disable_active_migration`, RFC 10069 §2.1).
    #[error("the server permits no other local address")]
    Disabled,
    /// The peer has issued no connection ID for the next path yet.
    #[error("the peer has issued no connection ID for another path yet")]
    NoConnectionId,
}

/// The reason for which a command about a path failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PathCommandError {
    /// No open path has this ID.
    #[error("no such path")]
    UnknownPath,
    /// One of the endpoints did not announce the multipath extension.
    #[error("multipath was not negotiated")]
    NotNegotiated,
    /// The peer has issued no spare connection ID for the path.
    #[error("the peer has issued no other connection ID for the path")]
    NoConnectionId,
    /// The last path can only go with the connection.
    #[error("the last path cannot be abandoned; close the connection instead")]
    LastPath,
}

impl Connection {
    /// Opens a stream, if the peer's limit permits one more (RFC 9000 §4.6).
    pub fn open(&mut self, direction: Direction) -> Option<StreamId> {
        self.streams.open(direction)
    }

    /// The next stream that the peer opened.
    pub fn accept(&mut self, direction: Direction) -> Option<StreamId> {
        self.streams.accept(direction)
    }

    /// Appends bytes to a stream and returns how many were taken.
    ///
    /// # Errors
    /// The stream is not open for sending, is finished or was reset, or the peer stopped it; [`WriteError::Blocked`] if it takes nothing now.
    pub fn write(&mut self, id: StreamId, data: &[u8]) -> Result<usize, WriteError> {
        self.memory.within(&mut self.streams, &self.datagrams, |streams| streams.write(id, data))
    }

    /// Appends bytes to a stream without copying them, and returns how many were taken.
    ///
    /// # Errors
    /// The stream is not open for sending, is finished or was reset, or the peer stopped it; [`WriteError::Blocked`] if it takes nothing now.
    pub fn write_bytes(&mut self, id: StreamId, data: Bytes) -> Result<usize, WriteError> {
        self.memory.within(&mut self.streams, &self.datagrams, |streams| streams.write_bytes(id, data))
    }

    /// Returns the number of bytes that a write would take now, at most `wanted`: within the send buffer, the peer's
    /// flow control limit and a little more, and the free memory. Applications that read from a file or another
    /// connection ask first. If it is less than `wanted`, [`Writable`](crate::stream::StreamEvent::Writable) follows
    /// when there is more.
    ///
    /// # Errors
    /// Returns the errors of [`Self::write`]; [`WriteError::Blocked`] if it is none.
    pub fn writable(&mut self, id: StreamId, wanted: usize) -> Result<usize, WriteError> {
        self.memory.within(&mut self.streams, &self.datagrams, |streams| streams.writable(id, wanted))
    }

    /// Marks what was written so far as the end of a message, which is of use only if it arrives by `deadline`, if any.
    ///
    /// # Errors
    /// The stream is not open for sending ([`WriteError`]).
    pub fn end_message(&mut self, id: StreamId, deadline: Option<Instant>) -> Result<(), WriteError> {
        self.streams.end_message(id, deadline)
    }

    /// Ends the sending half of a stream.
    ///
    /// # Errors
    /// The stream is not open for sending, or is finished already ([`WriteError`]).
    pub fn finish(&mut self, id: StreamId) -> Result<(), WriteError> {
        self.streams.finish(id)
    }

    /// Abandons the sending half of a stream with the application's `code` (RFC 9000 §19.4), but for the first `reliable_size`
    /// bytes: the peer gets these all the same (draft-ietf-quic-reliable-stream-reset). Returns the number of bytes that it
    /// gets in any case: not more than was written, and none if it does not support that. A later reset may lower the size,
    /// and changes nothing else.
    ///
    /// # Errors
    /// The stream is not open for sending ([`WriteError`]).
    pub fn reset(&mut self, id: StreamId, code: u64, reliable_size: u64) -> Result<u64, WriteError> {
        self.streams.reset(id, code, reliable_size)
    }

    /// Takes at most `most` bytes that arrived on a stream.
    ///
    /// # Errors
    /// The stream is not open for receiving, or the peer reset it ([`ReadError`]).
    pub fn read(&mut self, id: StreamId, most: usize) -> Result<ReadOutcome, ReadError> {
        self.streams.read(id, most)
    }

    /// Takes at most `most` bytes that arrived on a stream, in the order in which they arrived, with their offset (RFC 9000
    /// §2.2). From the first such read on, [`Self::read`] returns data in that order, too, and does not tell where it belongs.
    ///
    /// # Errors
    /// The stream is not open for receiving, or the peer reset it ([`ReadError`]).
    pub fn read_unordered(&mut self, id: StreamId, most: usize) -> Result<(u64, ReadOutcome), ReadError> {
        self.streams.read_unordered(id, most)
    }

    /// Changes limits of streams: how many the peer may have open at a time, the largest window of the connection, and how much of a
    /// stream may wait before writing blocks. What the peer was granted before holds; first windows of streams stay as they are.
    pub fn change_stream_limits(&mut self, change: impl FnOnce(&mut StreamLimits)) {
        self.streams.change_limits(change);
    }

    /// Fills `out` with keying material that both ends of the connection, and nobody else, can export with the same `label` and
    /// `context` (RFC 8446 §7.5).
    ///
    /// # Errors
    /// The handshake is not complete, or TLS was freed with it
    /// ([`ClientTlsBuilder::exportable`](crate::crypto::session::ClientTlsBuilder::exportable),
    /// [`ServerTlsBuilder::exportable`](crate::crypto::session::ServerTlsBuilder::exportable)).
    pub fn export_keying_material(
        &self,
        out: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), TlsConfigError> {
        self.handshake.session.export_keying_material(out, label, context)
    }

    /// Asks the peer to stop sending on a stream (RFC 9000 §19.5).
    ///
    /// # Errors
    /// The stream is not open for receiving ([`ReadError`]).
    pub fn stop(&mut self, id: StreamId, code: u64) -> Result<(), ReadError> {
        self.streams.stop(id, code)
    }

    /// Has `meter` count the bytes of a half of a stream as flow control does, but for the first `header` of them, from now on and so
    /// far. Returns false if the half is gone.
    pub fn meter(&mut self, id: StreamId, half: MeteredHalf, meter: &StreamMeter, header: u64) -> bool {
        self.streams.meter(id, half, meter, header)
    }

    /// Sets the priority of what this endpoint sends on a stream (RFC 9218), with its order among streams of one urgency if that
    /// is a [`StreamPriority`].
    pub fn set_priority(&mut self, id: StreamId, priority: impl Into<StreamPriority>) {
        self.streams.set_priority(id, priority);
    }

    /// Queues a datagram, which is dropped if it is not sent by `deadline` (RFC 9221). Returns its number.
    ///
    /// # Errors
    /// The peer takes no datagrams, or none of this length ([`DatagramError`]).
    pub fn send_datagram(
        &mut self,
        data: Bytes,
        priority: Priority,
        deadline: Option<Instant>,
    ) -> Result<u64, DatagramError> {
        if let Some(max) = self.max_datagram_size().filter(|max| data.len() > *max) {
            // RFC 8899 §5.2: what the application has to send is a reason to search, and nothing else may come.
            self.datagrams.refuse(data.len());
            return Err(DatagramError::TooLarge {
                max,
                later: self.later_max_datagram_size().unwrap_or(max),
            });
        }
        self.memory.bound_datagrams(&self.streams, &mut self.datagrams);
        let sent = self.datagrams.send(data, priority, deadline);
        self.memory.note(&self.streams, &self.datagrams);
        sent
    }

    /// Bytes of the largest datagram for which no other one would give way in the queue: at most
    /// [`Self::max_datagram_size`], which an empty queue takes.
    pub fn datagram_space(&self) -> usize {
        self.datagrams.space().min(self.max_datagram_size().unwrap_or(0))
    }

    /// The next datagram that arrived.
    pub fn receive_datagram(&mut self) -> Option<Bytes> {
        self.datagrams.receive()
    }

    /// Opens a path over `tuple` (RFC 10069 §3.1). Data flows on it at once; its validation goes on meanwhile.
    ///
    /// # Errors
    /// This is a server, the connection is not established, one end has no multipath, a limit is reached, or the peer has issued no
    /// connection ID for it yet ([`OpenPathError`]).
    pub fn open_path(&mut self, tuple: FourTuple, now: Instant) -> Result<PathId, OpenPathError> {
        if self.role != Role::Client {
            return Err(OpenPathError::NotClient);
        }
        if !self.lifecycle.is_connected() {
            return Err(OpenPathError::NotConnected);
        }
        if !self.is_multipath() {
            return Err(OpenPathError::NotNegotiated);
        }
        if is_bound_to(self.peer.parameters(), &self.paths, tuple) {
            return Err(OpenPathError::Disabled);
        }
        self.path_maintenance().start_path(tuple, now)
    }

    /// Gives up path `id`, telling the peer why (RFC 10069 §3.4). Data in flight on it is sent on others.
    ///
    /// # Errors
    /// There is no such path, one end has no multipath, or it is the last path ([`PathCommandError`]).
    pub fn abandon_path(&mut self, id: PathId, code: u64, now: Instant) -> Result<(), PathCommandError> {
        check_path(self.is_multipath(), &self.paths, id)?;
        if self.paths.open().count() == 1 {
            return Err(PathCommandError::LastPath);
        }
        self.path_maintenance().abandon(id, code, now);
        Ok(())
    }

    /// Tells the peer whether it should use path `id`, or only while no other works (RFC 10069 §3.3); this endpoint does the
    /// same.
    ///
    /// # Errors
    /// There is no such path, or one end has no multipath ([`PathCommandError`]).
    pub fn set_path_status(&mut self, id: PathId, status: Status) -> Result<(), PathCommandError> {
        check_path(self.is_multipath(), &self.paths, id)?;
        if let Some(path) = self.paths.get_mut(id) {
            path.on_own_status(status);
        }
        self.paths.advise(id);
        Ok(())
    }

    /// Says what is known about the channel of path `id`. The path is paced to a rate that it does not share with others,
    /// whatever its controller believes.
    ///
    /// # Errors
    /// There is no such path ([`PathCommandError::UnknownPath`]).
    pub fn set_hints(&mut self, id: PathId, hints: Hints) -> Result<(), PathCommandError> {
        let path = self.paths.get_mut(id).ok_or(PathCommandError::UnknownPath)?;
        path.set_hints(hints);
        Ok(())
    }

    /// Puts path `id` under another congestion controller, which begins in its initial state.
    ///
    /// # Errors
    /// There is no such path ([`PathCommandError::UnknownPath`]).
    pub fn set_congestion(
        &mut self,
        id: PathId,
        congestion: impl Into<Congestion>,
    ) -> Result<(), PathCommandError> {
        let path = self.paths.get_mut(id).ok_or(PathCommandError::UnknownPath)?;
        path.route.set_congestion(congestion.into());
        Ok(())
    }

    /// IDs of the open paths.
    pub fn path_ids(&self) -> Vec<PathId> {
        self.paths.open().map(|path| path.id).collect()
    }
}

/// A command about path `id` needs multipath and the path.
fn check_path(is_multipath: bool, paths: &Paths, id: PathId) -> Result<(), PathCommandError> {
    if !is_multipath {
        return Err(PathCommandError::NotNegotiated);
    }
    paths.get(id).map(|_| ()).ok_or(PathCommandError::UnknownPath)
}
