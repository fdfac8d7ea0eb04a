//! A connection of a client with its sockets.

use super::{BATCH, Ids, outbox::Outbox};
use crate::loads::{Acknowledged, BLOCK, ENDLESS, Line, REQUEST};
use crate::news::Way;
use anyhow::{Result, bail};
use quiche::{Connection, Error, PathEvent, RecvInfo};
use std::cell::{Cell, RefCell, RefMut};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::net::UdpSocket;
use tokio::sync::Notify;
use tokio::task::{JoinHandle, spawn_local};
use tokio::time::{sleep, sleep_until};

/// From one bidirectional stream of the client to the next (RFC 9000 §2.1).
const NEXT_STREAM: u64 = 4;
/// Sockets at most, each with a connection ID.
const ENDS: usize = 4;
/// A socket that failed is tried again after this time.
const AGAIN: Duration = Duration::from_millis(5);
/// A connection that waits for nothing is looked at after this time.
const REST: Duration = Duration::from_secs(1);

/// A connection. Clones share it.
#[derive(Clone)]
pub struct QuicheLine(Rc<Shared>);

struct Shared {
    remote: SocketAddr,
    connection: RefCell<Connection>,
    ids: RefCell<Ids>,
    ends: RefCell<Vec<End>>,
    next_stream: Cell<u64>,
    /// Rings when there may be something to send.
    work: Notify,
    /// Rings when something may have arrived, and when there may be room for more.
    changed: Notify,
}

/// A socket, and what reads from it.
pub struct End {
    way: Way,
    local: SocketAddr,
    socket: Rc<UdpSocket>,
    /// The sequence number of the peer's connection ID that packets from here bear.
    id: u64,
    reader: Option<JoinHandle<()>>,
}

impl Drop for End {
    fn drop(&mut self) {
        self.reader.iter().for_each(JoinHandle::abort);
    }
}

impl End {
    /// Opens a socket on `way`.
    pub fn open(way: &Way) -> Result<Self> {
        let socket = UdpSocket::from_std(way.socket()?)?;
        Ok(Self {
            way: way.clone(),
            local: socket.local_addr()?,
            socket: Rc::new(socket),
            id: 0,
            reader: None,
        })
    }

    /// The address of the socket.
    pub const fn local(&self) -> SocketAddr {
        self.local
    }
}

impl QuicheLine {
    /// Completes the handshake of `connection` to `remote`, which begins at `end`.
    pub async fn establish(
        connection: Connection,
        remote: SocketAddr,
        (ids, end): (Ids, End),
    ) -> Result<Self> {
        let line = Self(Rc::new(Shared {
            remote,
            connection: RefCell::new(connection),
            ids: RefCell::new(ids),
            ends: RefCell::default(),
            next_stream: Cell::new(0),
            work: Notify::new(),
            changed: Notify::new(),
        }));
        line.0.ends.borrow_mut().push(line.listen(end));
        spawn_local(line.clone().drive());
        while !line.connection().is_established() {
            line.change().await?;
        }
        Ok(line)
    }

    fn connection(&self) -> RefMut<'_, Connection> {
        self.0.connection.borrow_mut()
    }

    fn listen(&self, mut end: End) -> End {
        end.reader = Some(spawn_local(self.clone().hear(Rc::clone(&end.socket), end.local)));
        end
    }

    /// Gives the connection what arrives at a socket.
    async fn hear(self, socket: Rc<UdpSocket>, to: SocketAddr) {
        let mut buffer = vec![0; BATCH];
        loop {
            let Ok((length, from)) = socket.recv_from(&mut buffer).await else {
                sleep(AGAIN).await;
                continue;
            };
            // What it cannot understand it drops.
            let _taken = self.connection().recv(&mut buffer[..length], RecvInfo { from, to });
            self.0.work.notify_one();
        }
    }

    /// Has the connection work until it ends.
    async fn drive(self) {
        let mut outbox = Outbox::default();
        loop {
            let due = {
                let mut connection = self.connection();
                connection.on_timeout();
                self.0.ids.borrow_mut().give(&mut connection, |_| {});
                while connection.retired_scid_next().is_some() {}
                while let Some(event) = connection.path_event_next() {
                    if let PathEvent::Validated(local, remote) = event
                        && self.0.ends.borrow().last().is_some_and(|end| end.local == local)
                    {
                        migrate(&mut connection, (local, remote));
                    }
                }
                outbox.fill(&mut connection);
                connection.timeout_instant()
            };
            while let Some((packet, info)) = outbox.due(Instant::now()) {
                let ends = self.0.ends.borrow();
                let end = ends.iter().find(|end| end.local == info.from);
                // One that the network has no room for is lost, as others are.
                let _sent = end.map(|end| end.socket.try_send_to(&packet, info.to));
            }
            self.0.changed.notify_waiters();
            if self.connection().is_closed() {
                return;
            }
            let next = [due, outbox.next()].into_iter().flatten().min();
            let next = next.unwrap_or_else(|| Instant::now() + REST);
            tokio::select! {
                () = self.0.work.notified() => {}
                () = sleep_until(next.into()) => {}
            }
        }
    }

    /// Waits until something may have changed.
    ///
    /// # Errors
    /// The connection has ended.
    async fn change(&self) -> Result<()> {
        let changed = self.0.changed.notified();
        if self.connection().is_closed() {
            bail!("the connection has ended");
        }
        changed.await;
        Ok(())
    }

    /// Goes to the first of `ways`.
    pub fn follow(&self, ways: &[Way]) {
        let Some(best) = ways.first() else { return };
        if self.0.ends.borrow().last().is_some_and(|end| end.way == *best) {
            return;
        }
        // An address that is gone again is news that comes again.
        let Some(mut end) = self.end(best) else { return };
        let mut connection = self.connection();
        let way = (end.local, self.0.remote);
        let Ok(id) = connection.probe_path(way.0, way.1) else { return };
        end.id = id;
        let active = connection.path_stats().find(|path| path.active).map(|path| path.local_addr);
        let stays = |end: &End| Some(end.local) == active && ways.contains(&end.way);
        if !self.0.ends.borrow().iter().any(stays) {
            migrate(&mut connection, way);
        }
        if self.0.ends.borrow().len() >= ENDS {
            let oldest = self.0.ends.borrow_mut().remove(0);
            // It is in use if the connection could not move.
            let _retired = connection.retire_dcid(oldest.id);
        }
        drop(connection);
        self.0.ends.borrow_mut().push(end);
        self.0.work.notify_one();
    }

    /// The socket on `way`, which is opened unless it is there.
    fn end(&self, way: &Way) -> Option<End> {
        let mut ends = self.0.ends.borrow_mut();
        match ends.iter().position(|end| end.way == *way) {
            Some(index) => Some(ends.remove(index)),
            None => Some(self.listen(End::open(way).ok()?)),
        }
    }

    /// Writes all of `data` to stream `id`, and its end.
    async fn write(&self, id: u64, mut data: &[u8]) -> Result<()> {
        loop {
            let written = self.connection().stream_send(id, data, true);
            match written {
                Ok(written) => {
                    data = &data[written..];
                    self.0.work.notify_one();
                }
                Err(Error::Done | Error::StreamLimit) => {}
                Err(error) => return Err(error.into()),
            }
            if data.is_empty() {
                return Ok(());
            }
            self.change().await?;
        }
    }

    /// Waits for bytes of stream `id`; how many there were, and true at the end.
    async fn read(&self, id: u64, buffer: &mut [u8]) -> Result<(usize, bool)> {
        loop {
            let read = self.connection().stream_recv(id, buffer);
            match read {
                Ok(read) => {
                    // The peer may be waiting for credit.
                    self.0.work.notify_one();
                    return Ok(read);
                }
                Err(Error::Done) => self.change().await?,
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn stream(&self) -> u64 {
        self.0.next_stream.replace(self.0.next_stream.get() + NEXT_STREAM)
    }
}

/// Moves `connection` to a way. It stays where it is if that fails.
fn migrate(connection: &mut Connection, (local, remote): (SocketAddr, SocketAddr)) {
    if connection.migrate(local, remote).is_ok() {
        // A client that only receives has nothing else to send that moves the server, too: a challenge does not.
        let _pinged = connection.send_ack_eliciting_on_path(local, remote);
    }
}

/// A download.
pub struct Download {
    line: QuicheLine,
    id: u64,
    buffer: Vec<u8>,
}

impl Line for QuicheLine {
    type Download = Download;

    async fn ask(&self, request: &[u8]) -> Result<usize> {
        let id = self.stream();
        self.write(id, request).await?;
        let mut answer = [0; REQUEST];
        let mut length = 0;
        loop {
            let (more, is_end) = self.read(id, &mut answer).await?;
            length += more;
            if is_end {
                return Ok(length);
            }
        }
    }

    async fn begin(&self) -> Result<Download> {
        let id = self.stream();
        self.write(id, &[ENDLESS]).await?;
        Ok(Download { line: self.clone(), id, buffer: vec![0; BLOCK] })
    }

    async fn read(download: &mut Download) -> Result<usize> {
        let (length, _) = download.line.read(download.id, &mut download.buffer).await?;
        Ok(length)
    }

    fn send(&self, datagram: &[u8]) {
        // One that there is no room for is lost, as others are.
        let _sent = self.connection().dgram_send(datagram);
        self.0.work.notify_one();
    }

    async fn receive(&self) -> Result<()> {
        let mut datagram = [0; REQUEST];
        loop {
            let received = self.connection().dgram_recv(&mut datagram);
            match received {
                Ok(_) => return Ok(()),
                Err(Error::Done) => self.change().await?,
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn acknowledged(&self) -> Vec<Acknowledged> {
        let ends = self.0.ends.borrow();
        let connection = self.connection();
        let known = connection.path_stats().filter_map(|path| {
            let end = ends.iter().find(|end| end.local == path.local_addr)?;
            // The shortest is known from the first on.
            let mark = path.min_rtt.map_or(0, |_| path.rtt.as_nanos());
            Some(Acknowledged { path: path.local_addr.to_string(), link: end.way.link.clone(), mark })
        });
        known.collect()
    }
}
