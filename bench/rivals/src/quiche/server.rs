//! The server: all connections at one socket.

use super::outbox::Outbox;
use super::{BATCH, ID, Ids, config, text};
use crate::arguments::Arguments;
use crate::loads::{ENDLESS, REQUEST, WRITE};
use crate::news;
use crate::record::{Counter, Said, say};
use anyhow::Result;
use quiche::{Config, Connection, ConnectionId, Header, RecvInfo, Type};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::net::UdpSocket;
use tokio::time::sleep_until;

/// A server that waits for nothing looks at its connections after this time.
const REST: Duration = Duration::from_secs(1);

/// Serves until it is given up; `sent` is kept at the UDP payload that was sent for the download.
pub async fn serve(arguments: &Arguments, sent: &Counter) -> Result<()> {
    let mut config = config()?;
    config.load_cert_chain_from_pem_file(text(&arguments.chain)?)?;
    config.load_priv_key_from_pem_file(text(&arguments.key)?)?;
    let socket = UdpSocket::from_std(news::udp(arguments.server, None)?)?;
    let mut server = Server {
        local: arguments.server,
        config,
        ids: Ids::default(),
        names: BTreeMap::new(),
        peers: Vec::new(),
    };
    let (mut outbox, mut buffer) = (Outbox::default(), vec![0; BATCH]);
    say(&Said::Ready)?;
    loop {
        server.receive(&socket, &mut buffer)?;
        let due = server.work(&mut outbox, sent);
        while let Some((packet, info)) = outbox.due(Instant::now()) {
            // One that the network has no room for is lost, as others are.
            let _sent = socket.try_send_to(&packet, info.to);
        }
        let next = [due, outbox.next()].into_iter().flatten().min();
        let next = next.unwrap_or_else(|| Instant::now() + REST);
        tokio::select! {
            ready = socket.readable() => ready?,
            () = sleep_until(next.into()) => {}
        }
    }
}

struct Server {
    local: SocketAddr,
    config: Config,
    ids: Ids,
    /// The index of the peer that a connection ID is for.
    names: BTreeMap<Vec<u8>, usize>,
    peers: Vec<Peer>,
}

impl Server {
    /// Gives the connections what has arrived.
    fn receive(&mut self, socket: &UdpSocket, buffer: &mut [u8]) -> Result<()> {
        loop {
            let (length, from) = match socket.try_recv_from(buffer) {
                Ok(received) => received,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            let packet = &mut buffer[..length];
            let Ok(header) = Header::from_slice(packet, ID) else { continue };
            let Some(index) = self.peer(&header, from) else { continue };
            // What it cannot understand it drops.
            let _taken = self.peers[index].connection.recv(packet, RecvInfo { from, to: self.local });
        }
    }

    /// The index of the peer that a packet is for, which is new if it begins a connection.
    fn peer(&mut self, header: &Header<'_>, from: SocketAddr) -> Option<usize> {
        let name = header.dcid.to_vec();
        if let Some(index) = self.names.get(&name) {
            return Some(*index);
        }
        if header.ty != Type::Initial {
            return None;
        }
        let id = self.ids.next();
        let source = ConnectionId::from_ref(&id);
        let connection = quiche::accept(&source, None, self.local, from, &mut self.config).ok()?;
        let index = self.peers.len();
        self.peers.push(Peer { connection, requests: BTreeMap::new(), answers: Vec::new(), endless: None });
        self.names.extend([(name, index), (id.to_vec(), index)]);
        Some(index)
    }

    /// Has every connection work; the time at which the next is to.
    fn work(&mut self, outbox: &mut Outbox, sent: &Counter) -> Option<Instant> {
        for (index, peer) in self.peers.iter_mut().enumerate() {
            peer.connection.on_timeout();
            self.ids.give(&mut peer.connection, |id| {
                self.names.insert(id.to_vec(), index);
            });
            while let Some(id) = peer.connection.retired_scid_next() {
                self.names.remove(id.as_ref());
            }
            while peer.connection.path_event_next().is_some() {}
            peer.answer();
            outbox.fill(&mut peer.connection);
            if peer.endless.is_some() {
                sent.set(peer.connection.stats().sent_bytes);
            }
        }
        self.peers.iter().filter_map(|peer| peer.connection.timeout_instant()).min()
    }
}

struct Peer {
    connection: Connection,
    /// The bytes of requests that have arrived so far.
    requests: BTreeMap<u64, Vec<u8>>,
    /// The rest of answers.
    answers: Vec<(u64, Vec<u8>)>,
    /// The stream of the download.
    endless: Option<u64>,
}

impl Peer {
    /// Sends back datagrams and requests, and endless bytes to those who ask for them.
    fn answer(&mut self) {
        let mut datagram = [0; REQUEST];
        while let Ok(length) = self.connection.dgram_recv(&mut datagram) {
            // One that there is no room for is lost, as others are.
            let _sent = self.connection.dgram_send(&datagram[..length]);
        }
        for id in self.connection.readable() {
            self.read(id);
        }
        self.answers.retain_mut(|(id, answer)| {
            // The client may be gone meanwhile.
            let written = self.connection.stream_send(*id, answer, true).unwrap_or(0);
            answer.drain(..written);
            !answer.is_empty()
        });
        if let Some(id) = self.endless {
            while self.connection.stream_send(id, &[0; WRITE], false).is_ok_and(|written| written == WRITE) {}
        }
    }

    /// Reads what has arrived of a request.
    fn read(&mut self, id: u64) {
        let mut part = [0; REQUEST];
        while let Ok((length, is_end)) = self.connection.stream_recv(id, &mut part) {
            let request = self.requests.entry(id).or_default();
            request.extend_from_slice(&part[..length]);
            if !is_end {
                continue;
            }
            let request = self.requests.remove(&id).unwrap_or_default();
            if request.first() == Some(&ENDLESS) {
                self.endless = Some(id);
            } else {
                self.answers.push((id, request));
            }
        }
    }
}
