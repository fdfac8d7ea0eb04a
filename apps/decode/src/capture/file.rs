//! The two file formats: pcap (draft-ietf-opsawg-pcap) and pcapng (draft-ietf-opsawg-pcapng), in either byte order.

use std::io::{self, Read};
use std::time::Duration;

/// The largest record that is read; the largest IP packet is far smaller.
const MOST_BYTES: u32 = 1 << 20;
/// Interfaces of a pcapng section at most.
const MOST_INTERFACES: usize = 1 << 12;

/// The reason for which a capture cannot be read on.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The system failed.
    #[error("it cannot be read")]
    Io(#[source] io::Error),
    /// The file is no capture at all.
    #[error("it is neither a pcap nor a pcapng file")]
    NotACapture,
    /// The file ends within a record.
    #[error("it ends in the middle of a record")]
    Truncated,
    /// A length in it is impossible.
    #[error("it is damaged: {0}")]
    Damaged(&'static str),
}

/// The record of one packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Record {
    /// The time of its capture, since 1970.
    pub(super) at: Duration,
    /// The type of its link-layer header.
    pub(super) link: u32,
    /// The part of the packet that was captured.
    pub(super) bytes: Vec<u8>,
    /// True if that is not all of it.
    pub(super) is_cut: bool,
}

/// The records of a file.
#[derive(Debug)]
pub(super) struct Records<R> {
    input: R,
    order: Order,
    format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Order {
    Big,
    Little,
}

#[derive(Debug)]
enum Format {
    /// The link type of all records, and how many fractions a second has in them.
    Classic { link: u32, fractions: u32 },
    /// The interfaces of the current section.
    NextGeneration { interfaces: Vec<Interface> },
}

/// An interface of a pcapng section.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Interface {
    link: u32,
    /// Units of time in a second.
    units: u64,
    /// Seconds to add.
    offset: u64,
}

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER_MAGIC: [u8; 4] = [0x1a, 0x2b, 0x3c, 0x4d];

impl<R: Read> Records<R> {
    /// Reads the beginning of the file.
    pub(super) fn open(mut input: R) -> Result<Self, CaptureError> {
        let magic: [u8; 4] = match array(&mut input) {
            Ok(magic) => magic,
            Err(CaptureError::Truncated) => return Err(CaptureError::NotACapture),
            Err(error) => return Err(error),
        };
        if u32::from_be_bytes(magic) == SECTION_HEADER {
            let format = Format::NextGeneration { interfaces: Vec::new() };
            let mut records = Self { input, order: Order::Big, format };
            records.section()?;
            return Ok(records);
        }
        let (order, fractions) = match magic {
            [0xa1, 0xb2, 0xc3, 0xd4] => (Order::Big, 1_000_000),
            [0xd4, 0xc3, 0xb2, 0xa1] => (Order::Little, 1_000_000),
            [0xa1, 0xb2, 0x3c, 0x4d] => (Order::Big, 1_000_000_000),
            [0x4d, 0x3c, 0xb2, 0xa1] => (Order::Little, 1_000_000_000),
            _ => return Err(CaptureError::NotACapture),
        };
        let mut records = Self { input, order, format: Format::Classic { link: 0, fractions } };
        // Version, time zone, accuracy and snapshot length say nothing that a record does not.
        let _unused: [u8; 16] = array(&mut records.input)?;
        // The high bits tell of a frame check sequence.
        let link = records.u32()? & 0xffff;
        records.format = Format::Classic { link, fractions };
        Ok(records)
    }

    /// The next record of a packet, `None` at the end.
    pub(super) fn next_record(&mut self) -> Result<Option<Record>, CaptureError> {
        match self.format {
            Format::Classic { link, fractions } => self.classic(link, fractions),
            Format::NextGeneration { .. } => self.next_generation(),
        }
    }

    fn classic(&mut self, link: u32, fractions: u32) -> Result<Option<Record>, CaptureError> {
        let Some(seconds) = self.first_u32()? else { return Ok(None) };
        let fraction = self.u32()?;
        let (captured, original) = (self.u32()?, self.u32()?);
        let bytes = self.bytes(captured)?;
        let nanos = u64::from(fraction) * u64::from(1_000_000_000 / fractions);
        let at = Duration::from_secs(seconds.into()) + Duration::from_nanos(nanos);
        Ok(Some(Record { at, link, bytes, is_cut: captured < original }))
    }

    fn next_generation(&mut self) -> Result<Option<Record>, CaptureError> {
        loop {
            let Some(kind) = self.first_u32()? else { return Ok(None) };
            if kind == SECTION_HEADER {
                self.section()?;
                continue;
            }
            let length = self.u32()?;
            // Type, and the length twice, are not part of the body.
            let body = length.checked_sub(12).ok_or(CaptureError::Damaged("a block is too short"))?;
            let body = self.bytes(body)?;
            self.u32()?;
            let record = match kind {
                INTERFACE_DESCRIPTION => {
                    self.interface(&body)?;
                    None
                }
                ENHANCED_PACKET => self.enhanced(&body),
                SIMPLE_PACKET => self.simple(&body),
                _ => None,
            };
            if record.is_some() {
                return Ok(record);
            }
        }
    }

    /// A section header, after its type: the byte order may change, and interfaces are counted anew.
    fn section(&mut self) -> Result<(), CaptureError> {
        let length: [u8; 4] = array(&mut self.input)?;
        let magic: [u8; 4] = array(&mut self.input)?;
        let mut reversed = magic;
        reversed.reverse();
        self.order = match (magic, reversed) {
            (BYTE_ORDER_MAGIC, _) => Order::Big,
            (_, BYTE_ORDER_MAGIC) => Order::Little,
            _ => return Err(CaptureError::Damaged("a section without a byte order")),
        };
        let rest = self.order.u32(length).checked_sub(12);
        self.bytes(rest.ok_or(CaptureError::Damaged("a section is too short"))?)?;
        self.format = Format::NextGeneration { interfaces: Vec::new() };
        Ok(())
    }

    fn interface(&mut self, body: &[u8]) -> Result<(), CaptureError> {
        let order = self.order;
        let Format::NextGeneration { interfaces } = &mut self.format else { return Ok(()) };
        if interfaces.len() >= MOST_INTERFACES {
            return Err(CaptureError::Damaged("too many interfaces"));
        }
        let damaged = CaptureError::Damaged("an interface is too short");
        let link = body.first_chunk().map(|bytes| order.u16(*bytes)).ok_or(damaged)?;
        let mut interface = Interface { link: link.into(), units: 1_000_000, offset: 0 };
        let mut options = body.get(8..).unwrap_or_default();
        while let Some((head, rest)) = options.split_first_chunk::<4>() {
            let [a, b, c, d] = *head;
            let length = usize::from(order.u16([c, d]));
            let Some(value) = rest.get(..length) else { break };
            match (order.u16([a, b]), value) {
                (0, _) => break,
                (9, [resolution]) => interface.units = units(*resolution),
                (14, value) => interface.offset = value.try_into().map_or(0, |bytes| order.u64(bytes)),
                _ => {}
            }
            options = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        }
        interfaces.push(interface);
        Ok(())
    }

    fn enhanced(&self, body: &[u8]) -> Option<Record> {
        let Format::NextGeneration { interfaces } = &self.format else { return None };
        let (head, data) = body.split_first_chunk::<20>()?;
        let mut words = head.as_chunks::<4>().0.iter().map(|word| self.order.u32(*word));
        let interface = interfaces.get(usize::try_from(words.next()?).ok()?)?;
        let ticks = u64::from(words.next()?) << 32 | u64::from(words.next()?);
        let (captured, original) = (words.next()?, words.next()?);
        let bytes = data.get(..usize::try_from(captured).ok()?)?.to_vec();
        Some(Record { at: interface.time(ticks), link: interface.link, bytes, is_cut: captured < original })
    }

    /// A packet without a time, on the first interface.
    fn simple(&self, body: &[u8]) -> Option<Record> {
        let Format::NextGeneration { interfaces } = &self.format else { return None };
        let (head, data) = body.split_first_chunk::<4>()?;
        let original = usize::try_from(self.order.u32(*head)).ok()?;
        let bytes = data.get(..original).unwrap_or(data).to_vec();
        let is_cut = bytes.len() < original;
        Some(Record { at: Duration::ZERO, link: interfaces.first()?.link, bytes, is_cut })
    }

    fn u32(&mut self) -> Result<u32, CaptureError> {
        array(&mut self.input).map(|bytes| self.order.u32(bytes))
    }

    /// A word that may be the end of the file instead.
    fn first_u32(&mut self) -> Result<Option<u32>, CaptureError> {
        let mut bytes = [0; 4];
        let mut filled = 0;
        while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.input.read(rest) {
                Ok(0) if filled == 0 => return Ok(None),
                Ok(0) => return Err(CaptureError::Truncated),
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(CaptureError::Io(error)),
            }
        }
        Ok(Some(self.order.u32(bytes)))
    }

    fn bytes(&mut self, length: u32) -> Result<Vec<u8>, CaptureError> {
        if length > MOST_BYTES {
            return Err(CaptureError::Damaged("a record of more than a mebibyte"));
        }
        let mut bytes = Vec::new();
        let read = (&mut self.input).take(length.into()).read_to_end(&mut bytes).map_err(CaptureError::Io)?;
        if read as u64 == u64::from(length) { Ok(bytes) } else { Err(CaptureError::Truncated) }
    }
}

impl Interface {
    fn time(&self, ticks: u64) -> Duration {
        let (seconds, rest) = (ticks / self.units, ticks % self.units);
        let nanos = u128::from(rest) * 1_000_000_000 / u128::from(self.units);
        let nanos = u64::try_from(nanos).unwrap_or_default();
        Duration::from_secs(seconds.saturating_add(self.offset)).saturating_add(Duration::from_nanos(nanos))
    }
}

/// Units of time in a second, as the option `if_tsresol` says them: a power of 10, or with the high bit of 2.
fn units(resolution: u8) -> u64 {
    let (base, exponent) = if resolution & 0x80 == 0 { (10, resolution) } else { (2, resolution & 0x7f) };
    u64::checked_pow(base, exponent.into()).unwrap_or(u64::MAX)
}

impl Order {
    fn u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            Self::Big => u16::from_be_bytes(bytes),
            Self::Little => u16::from_le_bytes(bytes),
        }
    }

    fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Self::Big => u32::from_be_bytes(bytes),
            Self::Little => u32::from_le_bytes(bytes),
        }
    }

    fn u64(self, bytes: [u8; 8]) -> u64 {
        match self {
            Self::Big => u64::from_be_bytes(bytes),
            Self::Little => u64::from_le_bytes(bytes),
        }
    }
}

fn array<const N: usize>(input: &mut impl Read) -> Result<[u8; N], CaptureError> {
    let mut bytes = [0; N];
    input.read_exact(&mut bytes).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => CaptureError::Truncated,
        _ => CaptureError::Io(error),
    })?;
    Ok(bytes)
}
