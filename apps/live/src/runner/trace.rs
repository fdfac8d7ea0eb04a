//! The traffic that one side saw, as packets and frames.

use crate::network::record::{Mark, Record, Sender};
use hvq_decode::{Datagram, Decoder, KeyLog, Kind, Messages, Packet};
use hvq_transport::wire::frame::Frame;
use std::collections::BTreeSet;
use std::net::SocketAddr;

/// A packet with what the network knows of its datagram.
#[derive(Debug)]
pub(crate) struct Seen {
    /// The sender.
    pub(crate) sender: Sender,
    /// The addresses that it came from and went to, as this side sees them.
    pub(crate) tuple: (SocketAddr, SocketAddr),
    /// The mark of its datagram.
    pub(crate) mark: Mark,
    /// Its datagram's place among those that this side saw.
    pub(crate) datagram: usize,
    /// The packet.
    pub(crate) packet: Packet,
}

/// Everything that one side saw, in its order.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    /// The packets.
    pub(crate) packets: Vec<Seen>,
    /// Sender and bytes of each datagram.
    pub(crate) datagrams: Vec<(Sender, usize)>,
}

impl Trace {
    /// Opens what is in `records` with the secrets in `keys`.
    pub(crate) fn read(records: &[Record], keys: KeyLog) -> Self {
        let mut decoder = Decoder::new(keys);
        let mut trace = Self::default();
        let Some(first) = records.iter().find(|record| record.sender == Sender::Client) else {
            return trace;
        };
        for (index, record) in records.iter().enumerate() {
            // NATs and preferred addresses change what belongs together: the decoder sees one address of each end.
            let server = first.destination;
            let (source, destination) = match record.sender {
                Sender::Client => (record.client, server),
                Sender::Server => (server, record.client),
            };
            let payload = record.payload.to_vec();
            let packets = decoder.decode(&Datagram { at: record.at, source, destination, payload });
            trace.datagrams.push((record.sender, record.payload.len()));
            trace.packets.extend(packets.into_iter().map(|packet| Seen {
                sender: record.sender,
                tuple: (record.source, record.destination),
                mark: record.mark,
                datagram: index,
                packet,
            }));
        }
        trace
    }

    /// The packets of `sender`.
    pub(crate) fn from(&self, sender: Sender) -> impl Iterator<Item = &Seen> {
        self.packets.iter().filter(move |seen| seen.sender == sender)
    }

    /// The packets of this kind from `sender`.
    pub(crate) fn of(&self, sender: Sender, kind: Kind) -> impl Iterator<Item = &Seen> {
        self.from(sender).filter(move |seen| seen.packet.kind == kind)
    }

    /// The handshake messages that `sender` sends in packets of `kind`, by connection, in the order of the connections.
    pub(crate) fn messages(&self, sender: Sender, kind: Kind) -> Vec<Messages> {
        let connections: BTreeSet<_> =
            self.of(sender, kind).filter_map(|seen| seen.packet.connection).collect();
        let of = |connection: usize| {
            let mut messages = Messages::default();
            let packets = self.of(sender, kind).filter(|seen| seen.packet.connection == Some(connection));
            for frame in packets.flat_map(|seen| &seen.packet.contents.frames) {
                if let Frame::Crypto(crypto) = frame {
                    messages.add(crypto);
                }
            }
            messages
        };
        connections.into_iter().map(of).collect()
    }
}

impl Seen {
    /// Its frames.
    pub(crate) fn frames(&self) -> &[Frame] {
        &self.packet.contents.frames
    }
}
