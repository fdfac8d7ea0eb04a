//! The cost of packet protection with each of the two libraries that hvq can be built with, without a connection around
//! it.

use crate::PIPE_DATAGRAM;
use crate::spread::Spread;
use anyhow::{Context, Result, ensure};
use hvq::tls::Suite;
use hvq::transport::crypto::aead::{boringssl, ring};
use serde::Serialize;
use std::fmt;
use std::time::{Duration, Instant};

/// Bytes of a short header with a connection ID of eight and a packet number of two: authenticated, not encrypted.
const HEADER: usize = 11;
/// Packets that are sealed and then opened: few enough for the first cache.
const PACKETS: usize = 16;

/// Both ways of one library.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Protection {
    /// Its name.
    pub library: &'static str,
    /// Sealing.
    pub seal: Speed,
    /// Opening.
    pub open: Speed,
}

/// The speed at which packets are processed.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Speed {
    /// GB of packets a second.
    pub gigabytes: Spread,
    /// The ratio of the default library's speed to this one's, round by round; `None` for itself.
    pub default_ratio: Option<Spread>,
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.gigabytes.short(2))?;
        self.default_ratio.map_or(Ok(()), |ratio| write!(f, " ×{}", ratio.short(2)))
    }
}

/// Encrypts in place; the tag.
type Seal = dyn Fn(&mut [u8]) -> [u8; Suite::TAG_LENGTH];
/// Decrypts in place; whether it was authentic.
type Open = dyn Fn(&mut [u8]) -> bool;

/// One library with a key.
struct Library {
    name: &'static str,
    seal: Box<Seal>,
    open: Box<Open>,
    /// GB a second, sealed and opened, of each round.
    rounds: Vec<[f64; 2]>,
}

/// The default comes first.
fn libraries() -> [Library; 2] {
    const SUITE: Suite = Suite::Aes128Gcm;
    let (key, nonce, header) = ([0x42; 16], [0x24; 12], [0x40; HEADER]);
    let (default, default_open) =
        (boringssl::BoringKey::new(SUITE, &key), boringssl::BoringKey::new(SUITE, &key));
    let (other, other_open) = (ring::RingKey::new(SUITE, &key), ring::RingKey::new(SUITE, &key));
    [
        Library {
            name: "BoringSSL, the default",
            seal: Box::new(move |text| default.seal(nonce, &header, text)),
            open: Box::new(move |text| default_open.open(nonce, &header, text).is_some()),
            rounds: Vec::new(),
        },
        Library {
            name: "ring, feature ring-aead",
            seal: Box::new(move |text| other.seal(nonce, &header, text)),
            open: Box::new(move |text| other_open.open(nonce, &header, text).is_some()),
            rounds: Vec::new(),
        },
    ]
}

impl Library {
    /// Seals and opens for about `time`.
    fn round(&mut self, time: Duration) -> Result<()> {
        let size = usize::from(PIPE_DATAGRAM) - HEADER;
        let mut packets = vec![vec![0u8; size]; PACKETS];
        let (mut sealing, mut opening, mut batches) = (Duration::ZERO, Duration::ZERO, 0u32);
        while sealing + opening < time {
            let started = Instant::now();
            for packet in &mut packets {
                let text = size - Suite::TAG_LENGTH;
                let tag = (self.seal)(&mut packet[..text]);
                packet[text..].copy_from_slice(&tag);
            }
            let sealed = Instant::now();
            let authentic = packets.iter_mut().all(|packet| (self.open)(packet));
            opening += sealed.elapsed();
            sealing += sealed - started;
            batches += 1;
            ensure!(authentic, "{} does not open what it sealed", self.name);
        }
        let bytes = f64::from(batches) * PACKETS as f64 * f64::from(PIPE_DATAGRAM);
        self.rounds.push([sealing, opening].map(|time| bytes / time.as_secs_f64() / 1e9));
        Ok(())
    }

    fn compared_with(&self, default: &Self) -> Result<Protection> {
        let speed = |way: usize| -> Result<Speed> {
            let gigabytes = Spread::of(self.rounds.iter().map(|round| round[way]));
            let pairs = default.rounds.iter().zip(&self.rounds);
            let ratios = Spread::of(pairs.map(|(default, round)| default[way] / round[way]));
            let default_ratio = ratios.filter(|_| self.name != default.name);
            Ok(Speed { gigabytes: gigabytes.context("there is at least one round")?, default_ratio })
        };
        Ok(Protection { library: self.name, seal: speed(0)?, open: speed(1)? })
    }
}

/// Measures both, by turns, for `time` in each of `rounds` rounds.
pub fn measure(rounds: usize, time: Duration) -> Result<Vec<Protection>> {
    let mut libraries = libraries();
    for _ in 0..rounds {
        for library in &mut libraries {
            library.round(time)?;
        }
    }
    let [default, _] = &libraries;
    libraries.iter().map(|library| library.compared_with(default)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_libraries_are_measured_and_compared_with_the_default() {
        let [default, other] = measure(2, Duration::from_millis(1)).unwrap()[..] else {
            panic!("two libraries")
        };
        assert!(default.seal.gigabytes.min > 0.0 && default.open.gigabytes.min > 0.0);
        assert_eq!(default.seal.default_ratio, None);
        assert!(!default.seal.to_string().contains('×'));
        assert!(other.open.default_ratio.is_some_and(|ratio| ratio.min > 0.0));
        assert!(other.open.to_string().contains(") ×"));
    }
}
