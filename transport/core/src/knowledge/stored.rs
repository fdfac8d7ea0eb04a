//! Knowledge as bytes, so that a client keeps it beside its session tickets.

use super::{Knowledge, Link, PathKey, PathKnowledge, Remote, WindowExtent};
use crate::Bandwidth;
use crate::slots::Prefix;
use crate::time::Instant;
use hvq_scheduler::PerMille;
use std::net::IpAddr;
use std::time::Duration;

/// The form of [`Knowledge::to_bytes`].
const FORMAT: u8 = 1;
/// Paths that are stored at most: those used last.
const MOST: usize = 64;
/// Round trips and windows beyond these are not believed.
const LONGEST_RTT: Duration = Duration::from_secs(60);
const LARGEST_WINDOW: u64 = 1 << 32;

impl Knowledge {
    /// The knowledge of the 64 paths used last, as bytes with a version of their own.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![FORMAT];
        let (first, entries) = (self.len().saturating_sub(MOST), self.entries());
        for (key, knowledge) in entries.skip(first) {
            write_entry(&mut bytes, key, knowledge);
        }
        bytes
    }

    /// Adds what [`Self::to_bytes`] made `bytes` of, unless it is of the future at `now` or makes no sense. Returns the number of
    /// paths that were added; `None` if `bytes` are damaged or of another version: then none is.
    pub fn add_bytes(&mut self, bytes: &[u8], now: Instant) -> Option<usize> {
        let (format, mut rest) = bytes.split_first()?;
        let mut entries = Vec::new();
        while !rest.is_empty() {
            entries.push(read_entry(&mut rest)?);
        }
        if *format != FORMAT || entries.len() > MOST {
            return None;
        }
        let sensible = entries.into_iter().filter_map(|(key, knowledge)| Some((key, knowledge?)));
        let past = sensible.filter(|(_, knowledge)| knowledge.measured_at <= now);
        Some(past.map(|(key, knowledge)| self.put(&key, knowledge)).count())
    }
}

fn write_entry(bytes: &mut Vec<u8>, key: &PathKey, knowledge: &PathKnowledge) {
    match &key.link {
        Link::Named(name) => {
            bytes.extend([0, u8::try_from(name.len()).unwrap_or(0)]);
            bytes.extend_from_slice(name.as_bytes());
        }
        Link::Address(address) => write_address(bytes, *address),
    }
    match key.remote {
        Remote::Network(Prefix::V4(prefix)) => {
            bytes.push(1);
            bytes.extend(prefix);
        }
        Remote::Network(Prefix::V6(prefix)) => {
            bytes.push(2);
            bytes.extend(prefix);
        }
        Remote::Host(address) => write_address(bytes, address),
    }
    for value in [
        knowledge.rate.map_or(0, Bandwidth::bits_per_second),
        nanos(knowledge.min_rtt),
        nanos(knowledge.smoothed_rtt),
        knowledge.window,
        knowledge.measured_at.as_nanos(),
    ] {
        bytes.extend(value.to_be_bytes());
    }
    bytes.extend(knowledge.loss.get().to_be_bytes());
    bytes.extend([knowledge.bursts, u8::from(knowledge.extent == WindowExtent::Whole)]);
}

fn write_address(bytes: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V4(address) => {
            bytes.push(4);
            bytes.extend(address.octets());
        }
        IpAddr::V6(address) => {
            bytes.push(6);
            bytes.extend(address.octets());
        }
    }
}

/// Reads one path and what is known of it; nothing of that if it makes no sense.
fn read_entry(rest: &mut &[u8]) -> Option<(PathKey, Option<PathKnowledge>)> {
    let link = match take::<1>(rest)? {
        [0] => {
            let [length] = take::<1>(rest)?;
            let (name, after) = rest.split_at_checked(usize::from(length))?;
            *rest = after;
            Link::Named(std::str::from_utf8(name).ok()?.into())
        }
        [family] => Link::Address(read_address(family, rest)?),
    };
    let remote = match take::<1>(rest)? {
        [1] => Remote::Network(Prefix::V4(take(rest)?)),
        [2] => Remote::Network(Prefix::V6(take(rest)?)),
        [family] => Remote::Host(read_address(family, rest)?),
    };
    let mut number = || take::<8>(rest).map(u64::from_be_bytes);
    let (rate, min_rtt, smoothed_rtt) = (number()?, number()?, number()?);
    let (window, measured) = (number()?, number()?);
    let loss = PerMille::new(u16::from_be_bytes(take(rest)?));
    let [bursts, extent] = take(rest)?;
    let extent = if extent == 1 { WindowExtent::Whole } else { WindowExtent::AtLeast };
    let rate = Some(rate).filter(|rate| *rate > 0).map(Bandwidth::from_bits_per_second);
    let [min_rtt, smoothed_rtt] = [min_rtt, smoothed_rtt].map(Duration::from_nanos);
    let is_plausible = !min_rtt.is_zero()
        && min_rtt <= smoothed_rtt
        && smoothed_rtt <= LONGEST_RTT
        && window <= LARGEST_WINDOW;
    let measured_at = Instant::from_nanos(measured);
    let knowledge = PathKnowledge { rate, bursts, min_rtt, smoothed_rtt, window, loss, extent, measured_at };
    Some((PathKey { link, remote }, is_plausible.then_some(knowledge)))
}

fn read_address(family: u8, rest: &mut &[u8]) -> Option<IpAddr> {
    match family {
        4 => Some(IpAddr::from(take::<4>(rest)?)),
        6 => Some(IpAddr::from(take::<16>(rest)?)),
        _ => None,
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, after) = rest.split_first_chunk::<N>()?;
    *rest = after;
    Some(*taken)
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
