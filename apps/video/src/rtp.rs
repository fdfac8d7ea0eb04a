//! RTP packets of VP9 pictures (RFC 3550, RFC 9628), as players and servers of others read them.
//!
//! A picture is one frame here, all its layers in a superframe: players that are in use know nothing of layers in RTP, and
//! ask for a marker where a frame ends (FFmpeg 5.1). A layer that was left out is missing from its picture, not from
//! the stream.

use std::time::Duration;

/// Bytes of the header without sources that contribute (RFC 3550, §5.1).
pub const HEADER: usize = 12;
/// Ticks of the timestamp in a second (RFC 9628, §4.1).
pub const CLOCK: u32 = 90_000;
/// The payload type: the first of the dynamic ones (RFC 3551, §6).
pub const PAYLOAD_TYPE: u8 = 96;

/// Version 2 without padding, extension and contributing sources.
const VERSION: u8 = 0x80;
/// The marker: the last packet of a picture.
const MARKER: u8 = 0x80;

/// Bits of the first byte of the payload descriptor (RFC 9628, §4.2): the number of the picture follows, it refers to
/// pictures before, it begins here, it ends here.
const NUMBERED: u8 = 0x80;
const REFERS: u8 = 0x40;
const BEGINS: u8 = 0x08;
const ENDS: u8 = 0x04;
/// Its bytes: the flags, and a number of 15 bits.
const DESCRIPTOR: usize = 3;

/// Makes packets of pictures.
#[derive(Clone, Debug)]
pub struct Packetizer {
    source: u32,
    sequence: u16,
    origin: u32,
    most: usize,
}

impl Packetizer {
    /// For packets of at most `most` bytes, header and all, but at least of one byte of picture. `source`, and the first
    /// sequence number and timestamp, are to be random (RFC 3550, §5.1).
    pub fn new(source: u32, (sequence, origin): (u16, u32), most: usize) -> Self {
        Self { source, sequence, origin, most: most.max(HEADER + DESCRIPTOR + 1) }
    }

    /// The packets of picture `number`, taken `since` the start; a key picture refers to none before it.
    pub fn packets(&mut self, number: u32, since: Duration, picture: (&[u8], PictureKind)) -> Vec<Vec<u8>> {
        let (data, kind) = picture;
        let ticks = since.as_nanos() * u128::from(CLOCK) / 1_000_000_000;
        let timestamp = self.origin.wrapping_add(ticks as u32);
        let refers = if kind == PictureKind::Key { 0 } else { REFERS };
        let parts = data.chunks(self.most - HEADER - DESCRIPTOR);
        let last = parts.len().saturating_sub(1);
        let mut packets = Vec::with_capacity(parts.len());
        for (index, part) in parts.enumerate() {
            let begins = if index == 0 { BEGINS } else { 0 };
            let (ends, marker) = if index == last { (ENDS, MARKER) } else { (0, 0) };
            let mut packet = Vec::with_capacity(HEADER + DESCRIPTOR + part.len());
            packet.extend([VERSION, marker | PAYLOAD_TYPE]);
            packet.extend(self.sequence.to_be_bytes());
            packet.extend(timestamp.to_be_bytes());
            packet.extend(self.source.to_be_bytes());
            packet.push(NUMBERED | refers | begins | ends);
            // The extended number of 15 bits has its first bit set.
            packet.extend((0x8000 | number as u16).to_be_bytes());
            packet.extend(part);
            packets.push(packet);
            self.sequence = self.sequence.wrapping_add(1);
        }
        packets
    }
}

/// The kind of a picture, by its references.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PictureKind {
    /// To nothing before it.
    Key,
    /// To pictures before it.
    Inter,
}

/// Returns true if bytes from the network can be an RTP packet: version 2, and not RTCP, which shares its flow (RFC
/// 5761, §4).
pub fn is_packet(bytes: &[u8]) -> bool {
    let Some([first, second, ..]) = bytes.first_chunk::<HEADER>() else { return false };
    first & 0xc0 == VERSION && !(64..=95).contains(&(second & !MARKER))
}

/// Returns the session description that a player must know before it can play the packets to `host`:`port` (RFC 8866,
/// RFC 9628, §7).
pub fn description(host: std::net::IpAddr, port: u16) -> String {
    let family = if host.is_ipv4() { "IP4" } else { "IP6" };
    format!(
        "v=0\r\no=- 0 0 IN {family} {host}\r\ns=hvq\r\nc=IN {family} {host}\r\nt=0 0\r\n\
         m=video {port} RTP/AVP {PAYLOAD_TYPE}\r\na=rtpmap:{PAYLOAD_TYPE} VP9/{CLOCK}\r\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packetizer(most: usize) -> Packetizer {
        Packetizer::new(0x0102_0304, (0xffff, 0xffff_fff0), most)
    }

    #[test]
    fn a_picture_is_cut_into_packets_that_say_where_it_begins_and_ends() {
        let picture: Vec<u8> = (0..25).collect();
        let packets = packetizer(HEADER + 3 + 10).packets(
            0x1_8005,
            Duration::from_millis(100),
            (&picture, PictureKind::Inter),
        );
        let bytes: Vec<u8> = packets.iter().flat_map(|packet| packet[HEADER + 3..].to_vec()).collect();
        assert_eq!((packets.len(), bytes), (3, picture));
        // RFC 3550, §5.1: version 2, the marker on the last, sequence numbers and a timestamp that wrap around.
        let firsts: Vec<[u8; 4]> = packets.iter().map(|packet| *packet.first_chunk().unwrap()).collect();
        assert_eq!(firsts, [[0x80, 96, 0xff, 0xff], [0x80, 96, 0, 0], [0x80, 0x80 | 96, 0, 1]]);
        assert!(packets.iter().all(|packet| packet[4..12] == [0, 0, 0x23, 0x18, 1, 2, 3, 4]));
        // RFC 9628, §4.2: I and P on all, B on the first, E on the last; a number of 15 bits.
        let flags: Vec<[u8; 3]> = packets.iter().map(|packet| packet[12..15].try_into().unwrap()).collect();
        assert_eq!(flags, [[0xc8, 0x80, 5], [0xc0, 0x80, 5], [0xc4, 0x80, 5]]);
    }

    #[test]
    fn a_key_picture_refers_to_nothing() {
        let packets = packetizer(1200).packets(0, Duration::ZERO, (&[1], PictureKind::Key));
        assert_eq!((packets.len(), packets[0][12]), (1, 0x8c));
        assert!(packetizer(0).packets(0, Duration::ZERO, (&[], PictureKind::Key)).is_empty());
        assert_eq!(packetizer(0).packets(0, Duration::ZERO, (&[1, 2], PictureKind::Key)).len(), 2);
    }

    #[test]
    fn other_bytes_are_no_packet() {
        let packets = packetizer(1200).packets(0, Duration::ZERO, (&[1], PictureKind::Key));
        assert!(is_packet(&packets[0]));
        assert!(!is_packet(&packets[0][..11]));
        // RFC 5761, §4: a sender report has the type 200, whose lower seven bits are 72.
        assert!(!is_packet(&[0x80, 200, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0]));
        assert!(!is_packet(&[0x40; 20]));
    }

    #[test]
    fn a_description_names_where_packets_go() {
        let text = description("::1".parse().unwrap(), 5004);
        assert!(text.contains("c=IN IP6 ::1\r\n") && text.contains("m=video 5004 RTP/AVP 96\r\n"), "{text}");
    }
}
