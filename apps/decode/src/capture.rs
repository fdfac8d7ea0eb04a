//! Captures: pcap and pcapng files, from the record of the file to the payload of the UDP datagram.

mod file;
mod link;
mod network;
#[cfg(test)]
mod tests;

pub use file::CaptureError;

use file::Records;
use std::io::Read;
use std::net::SocketAddr;
use std::time::Duration;

/// A UDP datagram that was captured.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Datagram {
    /// The time of its capture, since 1970.
    pub at: Duration,
    /// The address that it came from.
    pub source: SocketAddr,
    /// The address that it went to.
    pub destination: SocketAddr,
    /// Its payload, as far as it was captured.
    pub payload: Vec<u8>,
}

/// Records that held no whole UDP datagram, by reason.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Skipped {
    /// Other protocols.
    pub others: u64,
    /// Fragments of IP packets: QUIC forbids them (RFC 9000 §14), so they are not put together.
    pub fragments: u64,
    /// Datagrams of which only the beginning was captured.
    pub cut: u64,
    /// Records of a link type that is not known here, and the last such type.
    pub unknown_links: u64,
    /// The number of that type in the registry of tcpdump.
    pub unknown_link: u32,
}

/// A capture that is being read.
#[derive(Debug)]
pub struct Capture<R> {
    records: Records<R>,
    skipped: Skipped,
}

impl<R: Read> Capture<R> {
    /// Reads from `input`, which should be buffered.
    ///
    /// # Errors
    /// It cannot be read, or is neither a pcap nor a pcapng file.
    pub fn open(input: R) -> Result<Self, CaptureError> {
        Ok(Self { records: Records::open(input)?, skipped: Skipped::default() })
    }

    /// The next UDP datagram, `None` at the end.
    ///
    /// # Errors
    /// The file cannot be read, ends in the middle of a record, or is damaged. Nothing follows.
    pub fn next_datagram(&mut self) -> Result<Option<Datagram>, CaptureError> {
        while let Some(record) = self.records.next_record()? {
            match network::datagram(&record) {
                Ok(datagram) => {
                    self.skipped.cut += u64::from(record.is_cut);
                    return Ok(Some(datagram));
                }
                Err(network::NoDatagram::Other) => self.skipped.others += 1,
                Err(network::NoDatagram::Fragment) => self.skipped.fragments += 1,
                Err(network::NoDatagram::UnknownLink) => {
                    self.skipped.unknown_links += 1;
                    self.skipped.unknown_link = record.link;
                }
            }
        }
        Ok(None)
    }

    /// Returns the counts of the records that were passed over so far.
    pub fn skipped(&self) -> Skipped {
        self.skipped
    }
}
