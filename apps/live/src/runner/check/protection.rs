//! Cipher suites, keys, limits and marks.

use super::{Evidence, transfer};
use crate::network::record::{Mark, Sender};
use anyhow::{Context, Result, ensure};
use hvq_decode::Kind;
use hvq_transport::wire::frame::Frame;

/// TLS_CHACHA20_POLY1305_SHA256 (RFC 8446 §B.4).
const CHACHA20: u16 = 0x1303;
/// Streams that the server may permit at first.
const MOST_STREAMS: u64 = 1000;

/// The client offers one suite.
pub(crate) fn chacha20(evidence: &Evidence) -> Result<()> {
    transfer(evidence)?;
    let hellos = evidence.left.messages(Sender::Client, Kind::Initial);
    ensure!(!hellos.is_empty(), "there is no ClientHello");
    for hello in hellos {
        let suites = hello.cipher_suites().context("a ClientHello cannot be read")?;
        ensure!(suites == [CHACHA20], "the client offers {suites:#x?}");
    }
    Ok(())
}

/// Both sides send packets with updated keys (RFC 9001 §6).
pub(crate) fn key_update(evidence: &Evidence) -> Result<()> {
    transfer(evidence)?;
    for (sender, trace) in [(Sender::Client, &evidence.left), (Sender::Server, &evidence.right)] {
        let phases: Vec<_> = trace.of(sender, Kind::OneRtt).map(|seen| seen.packet.key_updates).collect();
        ensure!(phases.iter().any(|updates| *updates > 0), "{sender:?} never used updated keys");
        ensure!(phases.contains(&0), "{sender:?} never used the first keys");
    }
    Ok(())
}

/// The server permits few streams at first, and more later.
pub(crate) fn multiplexing(evidence: &Evidence) -> Result<()> {
    transfer(evidence)?;
    let flights = evidence.left.messages(Sender::Server, Kind::Handshake);
    let parameters = flights.first().and_then(hvq_decode::Messages::server_parameters);
    let limit = parameters.context("the server's parameters cannot be read")?.initial_max_streams_bidi;
    ensure!(limit <= MOST_STREAMS, "the server permits {limit} streams from the start");
    Ok(())
}

/// Both sides mark packets, and report the marks of the other (RFC 9000 §13.4).
pub(crate) fn ecn(evidence: &Evidence) -> Result<()> {
    transfer(evidence)?;
    let counts = |frame: &Frame| matches!(frame, Frame::Ack(ack) if ack.ecn.is_some());
    for (sender, trace) in [(Sender::Client, &evidence.left), (Sender::Server, &evidence.right)] {
        let marked = trace.from(sender).filter(|seen| matches!(seen.mark, Mark::Ect0 | Mark::Ect1)).count();
        ensure!(marked > 0, "{sender:?} marks no packet");
        let congested = trace.from(sender).filter(|seen| seen.mark == Mark::Ce).count();
        ensure!(congested == 0, "{sender:?} marks packets as congested");
        let reports = trace.from(sender).filter(|seen| seen.frames().iter().any(counts)).count();
        ensure!(reports > 0, "{sender:?} reports no marks");
    }
    Ok(())
}
