//! Handshakes: how many, in which version, with which tokens and tickets, and how much before the address is proven.

use super::Evidence;
use crate::network::record::Sender;
use anyhow::{Context, Result, bail, ensure};
use hvq_decode::Kind;
use hvq_transport::wire::frame::Frame;
use hvq_transport::wire::version::Version;
use std::collections::BTreeSet;

/// The message with the server's certificates (RFC 8446 §4).
const CERTIFICATE: u8 = 11;
/// CRYPTO bytes that the server of the longest chain has to send.
const LONG_CHAIN: u64 = 7500;
/// Bytes of the paths that are requested in 0-RTT packets.
const REQUESTED: usize = 40 * 250;

/// One handshake, without Retry.
pub(crate) fn handshake(evidence: &Evidence) -> Result<()> {
    evidence.is_usual(1)?;
    let retries = evidence.left.of(Sender::Server, Kind::Retry).count();
    ensure!(retries == 0, "the server sent a Retry");
    Ok(())
}

/// One handshake, and all files.
pub(crate) fn transfer(evidence: &Evidence) -> Result<()> {
    evidence.is_usual(1)
}

/// A handshake for each file.
pub(crate) fn handshakes(evidence: &Evidence) -> Result<()> {
    evidence.is_usual(evidence.files.len())
}

/// The client repeats its ClientHello before the answer is there.
pub(crate) fn long_round_trip(evidence: &Evidence) -> Result<()> {
    evidence.is_usual(1)?;
    let is_start = |frame: &Frame| matches!(frame, Frame::Crypto(crypto) if crypto.offset == 0);
    let initials = evidence.left.of(Sender::Client, Kind::Initial);
    let hellos = initials.filter(|seen| seen.frames().iter().any(is_start)).count();
    ensure!(hellos >= 2, "{hellos} ClientHello in place of 2 and more");
    Ok(())
}

/// The client returns the token of a Retry, and does not begin its packet numbers anew (RFC 9000 §17.2.5.3).
pub(crate) fn retry(evidence: &Evidence) -> Result<()> {
    evidence.is_usual(1)?;
    let retries = evidence.left.of(Sender::Server, Kind::Retry);
    let tokens: Vec<_> = retries.map(|seen| seen.packet.token.clone()).collect();
    ensure!(!tokens.is_empty(), "there was no Retry");
    let mut before = None;
    for seen in evidence.left.of(Sender::Client, Kind::Initial) {
        let number = seen.packet.number;
        if seen.packet.token.is_empty() {
            before = before.max(number);
            continue;
        }
        ensure!(number > before, "the client began its packet numbers anew");
        if tokens.contains(&seen.packet.token) {
            return Ok(());
        }
    }
    bail!("the client did not return the token")
}

/// The second handshake goes without certificates.
pub(crate) fn resumption(evidence: &Evidence) -> Result<()> {
    evidence.is_usual(2)?;
    let flights = evidence.left.messages(Sender::Server, Kind::Handshake);
    let [first, second] = flights.as_slice() else {
        bail!("{} connections have Handshake packets of the server", flights.len());
    };
    ensure!(first.kinds().contains(&CERTIFICATE), "no Certificate in the first handshake");
    ensure!(!second.kinds().contains(&CERTIFICATE), "a Certificate in the second handshake");
    ensure!(!second.kinds().is_empty(), "the second handshake cannot be read");
    Ok(())
}

/// Most of what is requested goes in 0-RTT packets.
pub(crate) fn zero_rtt(evidence: &Evidence) -> Result<()> {
    evidence.is_usual(2)?;
    let size = |kind| evidence.left.of(Sender::Client, kind).map(|seen| seen.packet.bytes).sum::<usize>();
    let early = size(Kind::ZeroRtt);
    ensure!(early > 0, "nothing in 0-RTT packets");
    let headers = |id: usize| 1 + id;
    let late: usize = evidence
        .left
        .of(Sender::Client, Kind::OneRtt)
        .map(|seen| seen.packet.bytes - headers(seen.packet.header.destination.len()))
        .sum();
    ensure!(late <= REQUESTED / 2, "{late} bytes in 1-RTT packets, {early} in 0-RTT packets");
    Ok(())
}

/// The server keeps to three times what the client sent, until the client's Handshake packets come (RFC 9000 §8.1).
/// Servers that take less than four times pass, as they do with the runner: some send the datagram that crosses the
/// line.
pub(crate) fn amplification(evidence: &Evidence) -> Result<()> {
    evidence.is_usual(1)?;
    let handshake = evidence.right.of(Sender::Server, Kind::Handshake);
    let ends = handshake.flat_map(|seen| seen.frames()).filter_map(|frame| match frame {
        Frame::Crypto(crypto) => Some(crypto.offset + crypto.data.len() as u64),
        _ => None,
    });
    let end = ends.max().context("the server's Handshake packets cannot be read")?;
    ensure!(end >= LONG_CHAIN, "the server sent {end} CRYPTO bytes only");
    // A Handshake packet may come behind an Initial packet in the same datagram.
    let handshakes = evidence.right.of(Sender::Client, Kind::Handshake);
    let proven = handshakes.map(|seen| seen.datagram).min().context("the client sent no Handshake packet")?;
    let (mut received, mut sent) = (0, 0);
    for (sender, bytes) in evidence.right.datagrams.iter().take(proven) {
        match sender {
            Sender::Client => received += bytes,
            Sender::Server => sent += bytes,
        }
        ensure!(sent < 4 * received, "the server sent {sent} bytes for {received}");
    }
    Ok(())
}

/// The client changes over to version 2, which the server chose (RFC 9368 §2.3).
pub(crate) fn version_2(evidence: &Evidence) -> Result<()> {
    evidence.files_arrived()?;
    let versions = |sender, kind| {
        let trace = if sender == Sender::Client { &evidence.left } else { &evidence.right };
        let versions = trace.of(sender, kind).filter_map(|seen| seen.packet.header.version);
        versions.map(|version| version.0).collect::<BTreeSet<u32>>()
    };
    let (one, two) = (Version::V1.0, Version::V2.0);
    ensure!(
        versions(Sender::Client, Kind::Initial).contains(&one),
        "the client did not begin with version 1"
    );
    ensure!(versions(Sender::Server, Kind::Initial).contains(&two), "the server's Initials have version 1");
    for sender in [Sender::Client, Sender::Server] {
        let found = versions(sender, Kind::Handshake);
        ensure!(found == BTreeSet::from([two]), "Handshake packets of {sender:?} have versions {found:?}");
    }
    Ok(())
}
