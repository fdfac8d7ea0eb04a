//! Link-layer headers: where the IP packet begins.

/// No header: the first byte tells IPv4 from IPv6 (LINKTYPE_RAW, and what some systems write for it).
const RAW: [u32; 3] = [101, 12, 14];
/// BSD loopback: the address family in four bytes of either order (LINKTYPE_NULL, LINKTYPE_LOOP).
const LOOPBACK: [u32; 2] = [0, 108];
const ETHERNET: u32 = 1;
const LINUX_COOKED: u32 = 113;
const LINUX_COOKED_2: u32 = 276;
const IPV4: u32 = 228;
const IPV6: u32 = 229;

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
/// IEEE 802.1Q and 802.1ad tags.
const TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];
/// Tags in a row that are passed over.
const MOST_TAGS: usize = 4;

/// The content of a link-layer header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Link<'a> {
    /// An IP packet follows.
    Ip(&'a [u8]),
    /// Something else does, or the header is cut off.
    Other,
    /// The link type is not known here.
    Unknown,
}

/// Takes the header of type `link` off `bytes`.
pub(super) fn ip_packet(link: u32, bytes: &[u8]) -> Link<'_> {
    let packet = match link {
        ETHERNET => bytes.split_at_checked(12).and_then(|(_, rest)| after_ethertype(rest)),
        LINUX_COOKED => bytes.split_at_checked(14).and_then(|(_, rest)| after_ethertype(rest)),
        LINUX_COOKED_2 => cooked_2(bytes),
        IPV4 | IPV6 => Some(bytes),
        link if RAW.contains(&link) => Some(bytes),
        // The IP header says the version too, whatever number the system has for the family.
        link if LOOPBACK.contains(&link) => bytes.get(4..),
        _ => return Link::Unknown,
    };
    packet.map_or(Link::Other, Link::Ip)
}

fn after_ethertype(bytes: &[u8]) -> Option<&[u8]> {
    let mut bytes = bytes;
    for _ in 0..MOST_TAGS {
        let (kind, rest) = bytes.split_first_chunk()?;
        match u16::from_be_bytes(*kind) {
            ETHERTYPE_IPV4 | ETHERTYPE_IPV6 => return Some(rest),
            tag if TAGS.contains(&tag) => bytes = rest.get(2..)?,
            _ => return None,
        }
    }
    None
}

/// The EtherType comes first, and the header has 20 bytes.
fn cooked_2(bytes: &[u8]) -> Option<&[u8]> {
    let kind = u16::from_be_bytes(*bytes.first_chunk()?);
    matches!(kind, ETHERTYPE_IPV4 | ETHERTYPE_IPV6).then(|| bytes.get(20..))?
}
