//! Links of this network namespace, told by the kernel (rtnetlink(7)).
//!
//! Messages say that something changed; the links are then read anew, so that nothing depends on a message that the
//! kernel had no room for.

mod watched;

use self::watched::Watched;
use super::snapshot::Snapshot;
use super::{Link, publish};
use crate::runtime;
use crate::runtime::Runtime;
use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_DUMP_INTR, NLM_F_REQUEST, NetlinkBuffer, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::AddressMessage;
use netlink_packet_route::link::LinkMessage;
use netlink_packet_route::route::RouteMessage;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, send, socket,
};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// The multicast groups of links, addresses and routes.
const GROUPS: u32 = (libc::RTMGRP_LINK
    | libc::RTMGRP_IPV4_IFADDR
    | libc::RTMGRP_IPV4_ROUTE
    | libc::RTMGRP_IPV6_IFADDR
    | libc::RTMGRP_IPV6_ROUTE) as u32;
/// Bytes of the largest datagram that the kernel sends for a dump.
const LARGEST: usize = 1 << 16;
/// The time for which further changes are waited for.
const DEBOUNCE: Duration = Duration::from_millis(20);
/// The time after which a reading that was disturbed or failed is repeated.
const AGAIN: Duration = Duration::from_millis(100);
/// The longest time that the kernel may take for a reading.
const PATIENCE: Duration = Duration::from_secs(5);
/// Reading takes one of so many parts of the time at most, however large the tables and however often they change.
const SHARE: u32 = 10;
/// Readings that are repeated at once, at the beginning.
const ATTEMPTS: u32 = 5;

/// A subscription to changes, and a connection for questions.
#[derive(Debug)]
pub(super) struct Monitor {
    runtime: Arc<dyn Runtime>,
    changes: Watched,
    questions: Watched,
    sequence: u32,
}

impl Monitor {
    /// Subscribes, and reads the links.
    ///
    /// # Errors
    /// The system does not permit it.
    pub(super) async fn new(runtime: Arc<dyn Runtime>) -> io::Result<(Self, Vec<Link>)> {
        let (changes, questions) = (open(GROUPS)?, open(0)?);
        let mut monitor = Self { runtime, changes, questions, sequence: 0 };
        let mut last = monitor.read().await;
        for _ in 1..ATTEMPTS {
            if last.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::Interrupted) {
                last = monitor.read().await;
            }
        }
        Ok((monitor, last?))
    }

    /// Publishes the links each time that they have changed, for ever.
    pub(super) async fn follow(mut self, sender: watch::Sender<Arc<[Link]>>) {
        loop {
            let told = self.wait().await;
            self.sleep(DEBOUNCE).await;
            self.drain();
            let begun = self.runtime.now();
            let read = if told.is_ok() { self.read().await } else { self.reopen().await };
            match read {
                Ok(links) => publish(&sender, links),
                Err(error) => {
                    tracing::debug!(%error, "the links cannot be read");
                    self.sleep(AGAIN).await;
                    // Nobody tells again.
                    let again = self.read().await;
                    again.map(|links| publish(&sender, links)).unwrap_or_default();
                }
            }
            let took = self.runtime.now().saturating_duration_since(begun);
            self.sleep(took * (SHARE - 1)).await;
        }
    }

    async fn sleep(&self, pause: Duration) {
        runtime::sleep(&*self.runtime, pause).await;
    }

    /// Waits for a change, or for the news that the kernel had no room for one.
    async fn wait(&self) -> io::Result<()> {
        let received = self.changes.receive().await;
        match received {
            Err(error) if error.raw_os_error() != Some(Errno::NOBUFS.raw_os_error()) => Err(error),
            _ => Ok(()),
        }
    }

    /// Takes what was told so far: all of it is in what is read from now on.
    fn drain(&self) {
        let mut buffer = vec![0; LARGEST];
        // An error empties the socket as well, or shows again at the next wait.
        while hear(self.changes.get_ref(), &mut buffer).is_ok_and(|length| length > 0) {}
    }

    /// Subscribes anew after an error that is none of memory.
    async fn reopen(&mut self) -> io::Result<Vec<Link>> {
        self.sleep(AGAIN).await;
        (self.changes, self.questions) = (open(GROUPS)?, open(0)?);
        self.read().await
    }

    async fn read(&mut self) -> io::Result<Vec<Link>> {
        let runtime = self.runtime.clone();
        let read = runtime::within(&*runtime, PATIENCE, self.snapshot()).await;
        let read = read.unwrap_or_else(|| Err(io::ErrorKind::TimedOut.into()));
        if read.is_err() {
            // Rests of an answer must not be taken for the next one.
            self.questions = open(0)?;
        }
        read.map(Snapshot::into_links)
    }

    async fn snapshot(&mut self) -> io::Result<Snapshot> {
        let mut snapshot = Snapshot::default();
        for question in [
            RouteNetlinkMessage::GetLink(LinkMessage::default()),
            RouteNetlinkMessage::GetAddress(AddressMessage::default()),
            RouteNetlinkMessage::GetRoute(RouteMessage::default()),
        ] {
            self.sequence = self.sequence.wrapping_add(1);
            self.dump(question, &mut snapshot).await?;
        }
        Ok(snapshot)
    }

    /// Asks for all objects of a kind, and takes them in.
    async fn dump(&self, question: RouteNetlinkMessage, snapshot: &mut Snapshot) -> io::Result<()> {
        let mut message = NetlinkMessage::new(NetlinkHeader::default(), NetlinkPayload::from(question));
        message.header.flags = NLM_F_REQUEST | NLM_F_DUMP;
        message.header.sequence_number = self.sequence;
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        send(self.questions.get_ref().as_raw_fd(), &bytes, MsgFlags::empty())?;
        loop {
            let datagram = self.questions.receive().await?;
            if self.take(&datagram, snapshot)? == Answer::Complete {
                return Ok(());
            }
        }
    }

    /// Takes in the messages of a datagram.
    fn take(&self, datagram: &[u8], snapshot: &mut Snapshot) -> io::Result<Answer> {
        let mut rest = datagram;
        while !rest.is_empty() {
            let length = NetlinkBuffer::new_checked(rest).map_err(io::Error::other)?.length() as usize;
            // Messages are padded to four bytes.
            let padded = length.next_multiple_of(4).min(rest.len());
            let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest);
            rest = rest.get(padded.max(1)..).unwrap_or_default();
            let message = match message {
                Ok(message) if message.header.sequence_number == self.sequence => message,
                Ok(_) => continue,
                Err(error) => {
                    // Kernels learn new words: one link that cannot be read is no reason to see none.
                    tracing::debug!(%error, "a message of the kernel is not understood");
                    continue;
                }
            };
            if message.header.flags & NLM_F_DUMP_INTR != 0 {
                return Err(io::ErrorKind::Interrupted.into());
            }
            match message.payload {
                NetlinkPayload::Done(_) => return Ok(Answer::Complete),
                NetlinkPayload::Error(error) => return Err(error.to_io()),
                NetlinkPayload::InnerMessage(message) => snapshot.take(&message),
                _ => {}
            }
        }
        Ok(Answer::Partial)
    }
}

/// The extent of an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Answer {
    /// More follows.
    Partial,
    /// It was the last.
    Complete,
}

/// A socket that hears of `groups`.
fn open(groups: u32) -> io::Result<Watched> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let socket = socket(AddressFamily::Netlink, SockType::Raw, flags, SockProtocol::NetlinkRoute)?;
    bind(socket.as_raw_fd(), &NetlinkAddr::new(0, groups))?;
    Watched::new(socket)
}

/// Takes a datagram that is there.
fn hear(socket: &OwnedFd, buffer: &mut [u8]) -> io::Result<usize> {
    Ok(recv(socket.as_raw_fd(), buffer, MsgFlags::empty())?)
}
