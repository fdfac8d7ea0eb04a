//! Both ends in one thread with nothing between them: what the protocol itself costs, without sockets and the kernel.

mod hvq;
mod noq;
mod quiche;
mod quinn;

use crate::contender::{Contender, Material};
use crate::meter::Meter;
use anyhow::Result;
use bytes::BytesMut;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Bytes that the sender has ready for its stream at a time.
const BLOCK: usize = 64 << 10;
/// The time that one exchange of datagrams takes on the clock that the ends are given: half a round trip.
const STEP: Duration = Duration::from_micros(50);
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
}

/// A pair of `contender` that sends full datagrams of `datagram` bytes.
pub fn pair(contender: Contender, material: &Material, datagram: u16) -> Result<Box<dyn Pair>> {
    Ok(match contender {
        Contender::Hvq => Box::new(hvq::Pair::new(material, datagram, hvq::Paths::One)?),
        Contender::HvqTwoPaths => Box::new(hvq::Pair::new(material, datagram, hvq::Paths::Two)?),
        Contender::Quinn => Box::new(quinn::Pair::new(material, datagram)?),
        Contender::Noq => Box::new(noq::Pair::new(material, datagram)?),
        Contender::Quiche => Box::new(quiche::Pair::new(material, datagram)?),
    })
}

/// What one pair cost.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Cost {
    /// Who.
    pub contender: Contender,
    /// CPU seconds of both ends for a GiB.
    pub transfer: f64,
    /// CPU seconds of both ends for a full handshake.
    pub handshake: f64,
}

/// How much is done for one [`Cost`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Effort {
    /// Bytes of a transfer.
    pub bytes: u64,
    /// Handshakes.
    pub handshakes: u32,
}

/// Measures one pair once.
pub fn measure(contender: Contender, material: &Material, datagram: u16, effort: Effort) -> Result<Cost> {
    let mut pair = pair(contender, material, datagram)?;
    pair.handshake()?;
    // Windows grow to their full size before the clock runs.
    pair.transfer(effort.bytes / 8)?;
    let meter = Meter::start()?;
    pair.transfer(effort.bytes)?;
    let transfer = meter.stop()?.cpu() / effort.bytes as f64 * (1u64 << 30) as f64;
    let meter = Meter::start()?;
    for _ in 0..effort.handshakes {
        pair.handshake()?;
    }
    let handshake = meter.stop()?.cpu() / f64::from(effort.handshakes.max(1));
    Ok(Cost { contender, transfer, handshake })
}
