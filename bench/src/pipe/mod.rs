//! Both ends in one thread with nothing between them: what the protocol itself costs, without sockets and the kernel.

mod hvq;
mod peer_pair;
mod quiche;

use crate::contender::hvq::KeyExchange;
use crate::contender::{Contender, Material};
use crate::meter::Meter;
use anyhow::{Context, Result, ensure};
use bytes::BytesMut;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Bytes that the sender has ready for its stream at a time.
const BLOCK: usize = 64 << 10;
/// The time that one exchange of datagrams takes on the clock that the ends are given: half a round trip.
const STEP: Duration = Duration::from_micros(50);
/// Requests that are under way at a time.
pub const AT_ONCE: usize = 100;
/// Exchanges without progress after which a transfer counts as stuck.
const PATIENCE: u32 = 100_000;

/// The datagrams of `size` bytes in `batch`, as a socket with receive offload hands them over: one copy of all.
fn received(batch: &[u8], size: usize) -> impl Iterator<Item = BytesMut> {
    let mut left = BytesMut::from(batch);
    std::iter::from_fn(move || (!left.is_empty()).then(|| left.split_to(size.min(left.len()))))
}

/// A client and a server, and the datagrams that go between them.
pub trait Pair {
    /// Completes a new handshake, with certificate verification and without resumption.
    fn handshake(&mut self) -> Result<()>;

    /// Sends `bytes` from the server to the client over one stream, and returns the number of datagrams that it took.
    fn transfer(&mut self, bytes: u64) -> Result<u64>;

    /// The client sends a small request on a stream of its own, whose ID is returned; `None` while the server permits no
    /// more streams.
    fn ask(&mut self) -> Result<Option<u64>>;

    /// The server answers all requests that have arrived.
    fn answer(&mut self) -> Result<()>;

    /// Returns true if the whole answer on stream `id` has arrived, which the client reads.
    fn is_answered(&mut self, id: u64) -> Result<bool>;

    /// Each end says to the other all that it has to say.
    fn carry(&mut self) -> Result<()>;
}

/// A pair of `contender` that sends full datagrams of `datagram` bytes; `None` for a library that does not come without
/// its sockets.
pub fn pair(contender: Contender, material: &Material, datagram: u16) -> Result<Option<Box<dyn Pair>>> {
    let hvq = |paths| hvq::Pair::new(material, datagram, paths, KeyExchange::Classical);
    Ok(Some(match contender {
        Contender::Hvq => Box::new(hvq(hvq::Paths::One)?),
        Contender::HvqTwoPaths => Box::new(hvq(hvq::Paths::Two)?),
        Contender::Quinn => Box::new(peer_pair::quinn::Pair::new(material, datagram)?),
        Contender::Noq => Box::new(peer_pair::noq::Pair::new(material, datagram)?),
        Contender::Quiche => Box::new(quiche::Pair::new(material, datagram)?),
        Contender::S2nQuic | Contender::TcpTls | Contender::Floor => return Ok(None),
    }))
}

/// The cost of one pair.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Cost {
    /// The contender.
    pub contender: Contender,
    /// CPU seconds of both ends for a GiB.
    pub transfer: Option<f64>,
    /// CPU seconds of both ends for a full handshake with X25519.
    pub handshake: Option<f64>,
    /// The same with the key exchange that hvq offers by default.
    pub handshake_post_quantum: Option<f64>,
    /// Small requests and their answers for a CPU second of both ends.
    pub requests: Option<f64>,
}

/// The amount of work for one [`Cost`]; a part that is zero is not measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Effort {
    /// Bytes of a transfer.
    pub bytes: u64,
    /// Handshakes.
    pub handshakes: u32,
    /// Requests.
    pub requests: u32,
}

impl Effort {
    /// Returns true if nothing is to be measured.
    pub fn is_nothing(self) -> bool {
        self.bytes == 0 && self.handshakes == 0 && self.requests == 0
    }
}

/// Measures one pair once; `None` if there is no such pair.
pub fn measure(
    contender: Contender,
    material: &Material,
    datagram: u16,
    effort: Effort,
) -> Result<Option<Cost>> {
    let Some(mut pair) = pair(contender, material, datagram)? else { return Ok(None) };
    let mut cost =
        Cost { contender, transfer: None, handshake: None, handshake_post_quantum: None, requests: None };
    if effort.bytes > 0 {
        pair.handshake()?;
        // Windows grow to their full size before the clock runs.
        pair.transfer(effort.bytes / 8)?;
        let meter = Meter::start()?;
        pair.transfer(effort.bytes)?;
        cost.transfer = Some(meter.stop()?.cpu() / effort.bytes as f64 * (1u64 << 30) as f64);
    }
    if effort.handshakes > 0 {
        cost.handshake = Some(handshakes(pair.as_mut(), effort.handshakes)?);
        if contender == Contender::Hvq {
            let mut pair = hvq::Pair::new(material, datagram, hvq::Paths::One, KeyExchange::PostQuantum)?;
            cost.handshake_post_quantum = Some(handshakes(&mut pair, effort.handshakes)?);
        }
    }
    if effort.requests > 0 {
        pair.handshake()?;
        requests(pair.as_mut(), effort.requests / 8, AT_ONCE)?;
        let meter = Meter::start()?;
        requests(pair.as_mut(), effort.requests, AT_ONCE)?;
        cost.requests = Some(f64::from(effort.requests) / meter.stop()?.cpu());
    }
    Ok(Some(cost))
}

/// CPU seconds of a handshake.
fn handshakes(pair: &mut dyn Pair, count: u32) -> Result<f64> {
    pair.handshake()?;
    let meter = Meter::start()?;
    for _ in 0..count {
        pair.handshake()?;
    }
    Ok(meter.stop()?.cpu() / f64::from(count))
}

/// Sends `count` requests, always `at_once` of them if the server permits it.
pub fn requests(pair: &mut dyn Pair, count: u32, at_once: usize) -> Result<()> {
    let mut under_way = Vec::with_capacity(at_once);
    let (mut left, mut idle) = (count, 0);
    while left > 0 || !under_way.is_empty() {
        while left > 0
            && under_way.len() < at_once
            && let Some(id) = pair.ask()?
        {
            under_way.push(id);
            left -= 1;
        }
        pair.carry()?;
        pair.answer()?;
        pair.carry()?;
        let before = under_way.len();
        let mut error = None;
        under_way.retain(|id| {
            pair.is_answered(*id).map(|answered| !answered).unwrap_or_else(|failure| {
                error = Some(failure);
                false
            })
        });
        error.map_or(Ok(()), Err).context("an answer cannot be read")?;
        idle = if under_way.len() == before { idle + 1 } else { 0 };
        ensure!(idle < PATIENCE, "stuck with {left} of {count} requests to send");
    }
    Ok(())
}
