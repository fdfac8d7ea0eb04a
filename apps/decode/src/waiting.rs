//! Captures of several interfaces are slightly out of order: what nobody knows yet is tried again.

use crate::capture::Datagram;
use crate::decoder::Decoder;
use crate::keylog::KeyLog;
use crate::packet::{Packet, Problem};
use std::collections::VecDeque;
use std::time::Duration;

/// The time for which a datagram waits, in the time of the capture.
const PATIENCE: Duration = Duration::from_secs(1);
/// Datagrams that wait at most.
const MOST: usize = 1024;
/// Bytes of them at most.
const MOST_BYTES: usize = 4 << 20;
/// The maximum number of times that one is tried again.
const TRIES: u32 = 32;

/// A decoder of captures whose datagrams may come a second too early: of a connection whose first packet, or to a connection
/// ID whose frame, another interface saw.
#[derive(Debug)]
pub struct PatientDecoder {
    decoder: Decoder,
    waiting: VecDeque<Waiting>,
    /// Bytes that wait.
    held: usize,
}

/// A datagram with a packet of an unknown connection, or of one whose secrets cannot be looked up yet.
#[derive(Debug)]
struct Waiting {
    datagram: Datagram,
    tries: u32,
}

impl PatientDecoder {
    /// A decoder that knows the secrets in `keys`; Initial packets need none.
    pub fn new(keys: KeyLog) -> Self {
        Self { decoder: Decoder::new(keys), waiting: VecDeque::new(), held: 0 }
    }

    /// The packets in `datagram`, which is the next of the capture, and in earlier ones of which it tells whose they are. A
    /// datagram with a packet that cannot be read yet gives all of its packets when it can, or a second later.
    pub fn decode(&mut self, datagram: Datagram) -> Vec<Packet> {
        let mut packets = Vec::new();
        while let Some(overdue) = self.overdue(datagram.at) {
            packets.extend(self.decoder.decode(&overdue));
        }
        let before = self.decoder.learnt();
        let own = self.decoder.decode(&datagram);
        if may_tell_more(&own) {
            self.wait(Waiting { datagram, tries: 0 });
        } else {
            packets.extend(own);
        }
        if self.decoder.learnt() != before {
            self.try_again(&mut packets);
        }
        packets
    }

    /// The packets that still waited: nothing follows in the capture.
    pub fn finish(&mut self) -> Vec<Packet> {
        self.held = 0;
        let left = std::mem::take(&mut self.waiting);
        left.iter().flat_map(|waiting| self.decoder.decode(&waiting.datagram)).collect()
    }

    fn wait(&mut self, waiting: Waiting) {
        self.held += waiting.datagram.payload.len();
        self.waiting.push_back(waiting);
    }

    /// The oldest datagram, if at `now` it waited too long, was tried too often, or is one too many.
    fn overdue(&mut self, now: Duration) -> Option<Datagram> {
        let is_full = self.waiting.len() > MOST || self.held > MOST_BYTES;
        let oldest = self.waiting.front()?;
        let is_late = oldest.tries >= TRIES || now.saturating_sub(oldest.datagram.at) > PATIENCE;
        let Waiting { datagram, .. } = (is_full || is_late).then(|| self.waiting.pop_front())??;
        self.held -= datagram.payload.len();
        Some(datagram)
    }

    /// Looks at what waits again, until nothing more is learnt from it.
    fn try_again(&mut self, packets: &mut Vec<Packet>) {
        loop {
            let before = self.decoder.learnt();
            self.held = 0;
            for Waiting { datagram, tries } in std::mem::take(&mut self.waiting) {
                let own = self.decoder.decode(&datagram);
                if may_tell_more(&own) {
                    self.wait(Waiting { datagram, tries: tries.saturating_add(1) });
                } else {
                    packets.extend(own);
                }
            }
            if self.decoder.learnt() == before {
                return;
            }
        }
    }
}

/// Returns true if later datagrams may tell more of `packets`, which are all of one datagram: whose one of them is, or its
/// secrets. A datagram that gave none may lack the QUIC bit.
fn may_tell_more(packets: &[Packet]) -> bool {
    let is_unknown = |packet: &Packet| match packet.contents.problem {
        Some(Problem::UnknownConnection) => true,
        // Retry and Version Negotiation need no secrets.
        None => packet.connection.is_none(),
        Some(_) => false,
    };
    packets.is_empty() || packets.iter().any(is_unknown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    fn unknown(at_ms: u64) -> Datagram {
        let address = |port| SocketAddr::from(([10, 0, 0, 1], port));
        let payload = [&[0x41][..], &[7; 60]].concat();
        Datagram { at: Duration::from_millis(at_ms), source: address(1), destination: address(2), payload }
    }

    #[test]
    fn what_nobody_knows_waits_for_a_second_and_not_without_bound() {
        let mut decoder = PatientDecoder::new(KeyLog::default());
        assert!(decoder.decode(unknown(0)).is_empty());
        assert!(decoder.decode(unknown(1_000)).is_empty());
        let late = decoder.decode(unknown(1_001));
        assert_eq!(late.iter().map(|packet| packet.at).collect::<Vec<_>>(), [Duration::ZERO]);
        let shown: usize = (0..5_000).map(|_| decoder.decode(unknown(1_100)).len()).sum();
        assert_eq!(shown + decoder.finish().len(), 5_002);
        assert!(shown > 3_000, "{shown}");
    }
}
