//! Recordings of the traffic on either side of the network, and captures of it.

use bytes::Bytes;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// The sender of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sender {
    /// The client.
    Client,
    /// The server.
    Server,
}

/// Mark of a packet (RFC 3168 §5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mark {
    /// Not ECN-capable.
    None,
    /// ECT(1).
    Ect1,
    /// ECT(0).
    Ect0,
    /// Congestion was experienced.
    Ce,
}

/// A datagram as one side saw it.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    /// The time, since the first datagram of the client.
    pub(crate) at: Duration,
    /// The sender.
    pub(crate) sender: Sender,
    /// The address that it came from.
    pub(crate) source: SocketAddr,
    /// The address that it went to.
    pub(crate) destination: SocketAddr,
    /// The client's own address, which a NAT hides on the server's side.
    pub(crate) client: SocketAddr,
    /// The ECN mark.
    pub(crate) mark: Mark,
    /// The bytes that it carries.
    pub(crate) payload: Bytes,
}

/// The datagrams that both sides saw.
#[derive(Clone, Debug, Default)]
pub(crate) struct RelayRecords {
    /// The datagrams seen at the client: before the network, or behind it.
    pub(crate) left: Vec<Record>,
    /// The datagrams seen at the server.
    pub(crate) right: Vec<Record>,
}

/// The link type of records that begin with an IP header.
const RAW_IP: u32 = 101;
/// The protocol number of UDP.
const UDP: u8 = 17;

/// Writes `records` as a pcap file (draft-ietf-opsawg-pcap), without checksums.
///
/// # Errors
/// Those of `output`.
pub(crate) fn write_capture(records: &[Record], output: &mut impl Write) -> io::Result<()> {
    for number in [0xa1b2_c3d4_u32, 4 << 16 | 2, 0, 0, 65_535, RAW_IP] {
        output.write_all(&number.to_le_bytes())?;
    }
    for record in records {
        let packet = packet(record);
        let length = u32::try_from(packet.len()).unwrap_or(u32::MAX);
        let seconds = u32::try_from(record.at.as_secs()).unwrap_or(u32::MAX);
        for number in [seconds, record.at.subsec_micros(), length, length] {
            output.write_all(&number.to_le_bytes())?;
        }
        output.write_all(&packet)?;
    }
    Ok(())
}

/// The datagram with IP and UDP headers.
fn packet(record: &Record) -> Vec<u8> {
    let size = |more: usize| u16::try_from(record.payload.len() + more).unwrap_or(u16::MAX).to_be_bytes();
    let mark = match record.mark {
        Mark::None => 0,
        Mark::Ect1 => 1,
        Mark::Ect0 => 2,
        Mark::Ce => 3,
    };
    let mut packet = match (record.source.ip(), record.destination.ip()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let [high, low] = size(28);
            let head = [0x45, mark, high, low, 0, 0, 0x40, 0, 64, UDP, 0, 0];
            [&head[..], &source.octets(), &destination.octets()].concat()
        }
        (source, destination) => {
            let wide = |address: IpAddr| match address {
                IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
                IpAddr::V6(v6) => v6.octets(),
            };
            let [high, low] = size(8);
            let head = [0x60, mark << 4, 0, 0, high, low, UDP, 64];
            [&head[..], &wide(source), &wide(destination)].concat()
        }
    };
    packet.extend_from_slice(&record.source.port().to_be_bytes());
    packet.extend_from_slice(&record.destination.port().to_be_bytes());
    packet.extend_from_slice(&size(8));
    packet.extend_from_slice(&[0, 0]);
    packet.extend_from_slice(&record.payload);
    packet
}

#[cfg(test)]
mod tests {
    use super::*;
    use hvq_decode::Capture;

    #[test]
    fn captures_can_be_read_again() {
        let record = |source: &str, destination: &str| Record {
            at: Duration::from_millis(1500),
            sender: Sender::Client,
            source: source.parse().unwrap(),
            destination: destination.parse().unwrap(),
            client: source.parse().unwrap(),
            mark: Mark::Ect0,
            payload: Bytes::from_static(b"payload"),
        };
        let records = [record("10.0.0.1:1000", "10.0.0.2:443"), record("[::1]:1000", "[::2]:443")];
        let mut file = Vec::new();
        write_capture(&records, &mut file).unwrap();
        let mut capture = Capture::open(file.as_slice()).unwrap();
        for record in &records {
            let datagram = capture.next_datagram().unwrap().unwrap();
            assert_eq!((datagram.at, datagram.source), (record.at, record.source));
            assert_eq!((datagram.destination, &datagram.payload[..]), (record.destination, &b"payload"[..]));
        }
        assert_eq!(capture.next_datagram().unwrap(), None);
    }
}
