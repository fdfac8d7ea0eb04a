//! Addresses: clients that are seen elsewhere, and clients that move.

use super::{Evidence, transfer};
use crate::network::record::Sender;
use crate::trace::Seen;
use anyhow::{Result, ensure};
use hvq_decode::Kind;
use hvq_transport::wire::frame::Frame;
use std::collections::BTreeSet;
use std::net::SocketAddr;

/// Source and destination.
type Tuple = (SocketAddr, SocketAddr);

/// The server validates each address that the client has after a rebinding, with its first packet there (RFC 9000 §9.3),
/// and the client answers. Unlike the runner, this lets a server answer a probe first: it need not validate an address
/// that only probes came from.
pub(crate) fn port_rebinding(evidence: &Evidence) -> Result<()> {
    transfer(evidence)?;
    let mut challenges: BTreeSet<[u8; 8]> = BTreeSet::new();
    let moves = arrivals(evidence.right.from(Sender::Server).filter(|seen| !only_responds(seen)));
    ensure!(moves.len() >= 2, "the server used one address pair only");
    for seen in &moves[1..] {
        let challenge = seen.frames().iter().find_map(|frame| match frame {
            Frame::PathChallenge(data) => Some(*data),
            _ => None,
        });
        match challenge {
            Some(challenge) => challenges.insert(challenge),
            None => anyhow::bail!(
                "no PATH_CHALLENGE in the first packet from {} to {}",
                seen.tuple.0,
                seen.tuple.1
            ),
        };
    }
    let frames = evidence.left.from(Sender::Client).flat_map(|seen| seen.frames());
    let responses: BTreeSet<[u8; 8]> = frames
        .filter_map(|frame| match frame {
            Frame::PathResponse(data) => Some(*data),
            _ => None,
        })
        .collect();
    let open = challenges.difference(&responses).count();
    ensure!(open == 0, "{open} of {} challenges have no response", challenges.len());
    Ok(())
}

/// The same, and the client's address changes.
pub(crate) fn address_rebinding(evidence: &Evidence) -> Result<()> {
    let addresses: BTreeSet<_> = evidence.right.from(Sender::Server).map(|seen| seen.tuple.1.ip()).collect();
    ensure!(addresses.len() >= 2, "the server saw one address of the client only");
    port_rebinding(evidence)
}

/// The client moves, and shows another connection ID there (RFC 9000 §9.5).
pub(crate) fn migration(evidence: &Evidence) -> Result<()> {
    port_rebinding(evidence)?;
    let packets = || evidence.left.of(Sender::Client, Kind::OneRtt);
    let moves = arrivals(packets());
    ensure!(moves.len() >= 2, "the client did not move");
    for pair in moves.windows(2) {
        let [_, arrival] = pair else { continue };
        let before = packets().take_while(|seen| seen.datagram < arrival.datagram);
        let used: BTreeSet<&[u8]> = before.map(|seen| seen.packet.header.destination.as_slice()).collect();
        let shown = arrival.packet.header.destination.as_slice();
        ensure!(!used.contains(shown), "the client shows its connection ID again at {}", arrival.tuple.1);
    }
    Ok(())
}

/// There is no IPv4 at all.
pub(crate) fn ipv6(evidence: &Evidence) -> Result<()> {
    transfer(evidence)?;
    let packets = evidence.left.packets.iter().chain(&evidence.right.packets);
    let narrow = packets.filter(|seen| seen.tuple.0.is_ipv4() || seen.tuple.1.is_ipv4()).count();
    ensure!(narrow == 0, "{narrow} packets over IPv4");
    Ok(())
}

/// Returns true if a packet answers a challenge and does nothing else.
fn only_responds(seen: &Seen) -> bool {
    let responds = |frame: &Frame| matches!(frame, Frame::PathResponse(_) | Frame::Padding(_));
    !seen.frames().is_empty() && seen.frames().iter().all(responds)
}

/// The first packet between each pair of addresses.
fn arrivals<'a>(packets: impl Iterator<Item = &'a Seen>) -> Vec<&'a Seen> {
    let mut known: BTreeSet<Tuple> = BTreeSet::new();
    packets.filter(|seen| known.insert(seen.tuple)).collect()
}
