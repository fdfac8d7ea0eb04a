//! The packet builder: the datagrams under construction for one path, with at most one open packet.

use crate::PathId;
use crate::recovery::ecn::Ecn;
use crate::recovery_token::{RecoveryToken, RecoveryTokens};
use crate::wire::connection_id::ConnectionId;
use crate::wire::frame::{Frame, Recovery};
use crate::wire::header::{HeaderLayout, KeyPhase, LongHeader, LongKind, ShortHeader};
use crate::wire::overhead::TAG;
use crate::wire::packet_number;
use crate::wire::version::Version;

/// Bytes of a batch at most: what fits into one IP packet before the kernel or the network card cuts it up.
pub(in crate::connection) const LARGEST_BATCH: usize = 65_000;
/// Datagrams that room is made for when a batch of bulk data begins.
const USUAL_SEGMENTS: usize = 40;
/// Datagrams that several messages share each, in the first batch of a round at most; each that follows may have twice as many.
/// All of a batch arrive at once, and the peer waits for the last of them: two ends that ask and answer in large batches take
/// turns where they could work at the same time.
const FIRST_SHARED: usize = 4;
/// Recovery tokens that room is made for when a packet has more than usual.
const MANY_TOKENS: usize = 14;
/// A packet number and payload of at least this many bytes leave room for the header-protection sample (RFC 9001 §5.4.2).
const SAMPLE_GUARD: usize = 4;

/// Tells whether a packet asks for an acknowledgement (RFC 9000 §13.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Elicits {
    /// Only ACK, PADDING and CONNECTION_CLOSE frames: not congestion controlled unless padded.
    Nothing,
    /// It has at least one other frame.
    Acknowledgement,
}

/// The purpose of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DatagramPurpose {
    /// Its frames.
    #[default]
    Content,
    /// Its size. Its loss is likely and no reason for a probe timeout (RFC 9000 §14.4).
    SizeProbe,
    /// The answer of a path that is silent: it does not put the probe timeout off.
    LivenessProbe,
}

/// The number, destination and form of the next packet of a path.
#[derive(Clone, Copy, Debug)]
pub struct PacketStart {
    /// Its number.
    pub number: u64,
    /// The largest number of the path that the peer acknowledged.
    pub largest_acknowledged: Option<u64>,
    /// The connection ID that names the connection and path to the peer.
    pub destination: ConnectionId,
    /// The form of its header.
    pub form: PacketForm,
    /// The ECN codepoint that the route wants.
    pub marking: Ecn,
}

/// The header of a packet with application data.
#[derive(Clone, Copy, Debug)]
pub enum PacketForm {
    /// 1-RTT.
    OneRtt {
        /// The generation of keys.
        phase: KeyPhase,
        /// The spin bit (RFC 9000 §17.4).
        spin: bool,
    },
    /// 0-RTT.
    ZeroRtt {
        /// The version of the client's first flight (RFC 9369 §4.1).
        version: Version,
        /// This endpoint's connection ID.
        source: ConnectionId,
    },
}

/// A packet that still takes frames.
#[derive(Debug)]
pub struct OpenPacket {
    /// The offset of its start in the builder's bytes.
    pub start: usize,
    /// The offsets of its header fields.
    pub layout: HeaderLayout,
    /// Its number.
    pub number: u64,
    /// The tokens by which the owners of its frames learn of its fate.
    pub tokens: RecoveryTokens,
    /// Tells whether it asks for an acknowledgement.
    pub elicits: Elicits,
    /// True if padding makes it count as in flight even if it elicits nothing.
    pub padded: bool,
    /// STREAM and DATAGRAM frames in it.
    pub messages: usize,
}

/// Datagrams for one path, back to back, all but the last of `segment` bytes.
#[derive(Debug)]
pub struct PacketBuilder {
    /// The path.
    pub path: PathId,
    /// Sealed packets, then the open one.
    pub bytes: Vec<u8>,
    /// The size of each datagram but the last.
    pub segment: usize,
    /// The ECN codepoint of all of them: one batch has one (RFC 9000 §13.4.2 validates per packet).
    pub ecn: Ecn,
    /// The purpose of its datagrams.
    pub purpose: DatagramPurpose,
    /// Sealed datagrams in `bytes`.
    pub segments: usize,
    /// Those of them that several messages share.
    pub shared: usize,
    /// The number of these that ends the batch.
    most_shared: usize,
    /// The packet that takes frames.
    pub open: Option<OpenPacket>,
}

impl PacketBuilder {
    /// A builder without datagrams for `path` with datagrams of `segment` bytes.
    pub fn new(path: PathId, segment: usize) -> Self {
        Self {
            path,
            bytes: Vec::new(),
            segment,
            ecn: Ecn::NotEct,
            purpose: DatagramPurpose::Content,
            segments: 0,
            shared: 0,
            most_shared: FIRST_SHARED,
            open: None,
        }
    }

    /// Takes the batch that is complete, and leaves a builder without datagrams for the next of the same round.
    pub fn take_batch(&mut self) -> Self {
        let most_shared = self.most_shared.saturating_mul(if self.shared > 0 { 2 } else { 1 });
        let next = Self { most_shared, ..Self::new(self.path, self.segment) };
        std::mem::replace(self, next)
    }

    /// Starts a 1-RTT packet; there must be no open one.
    pub fn start(&mut self, packet: &PacketStart) {
        debug_assert!(self.open.is_none(), "a builder has one open packet");
        if self.segments == 0 {
            self.ecn = packet.marking;
        }
        if self.bytes.capacity() == 0 {
            self.bytes = Vec::with_capacity(self.segment);
        } else {
            self.bytes.reserve(self.segment);
        }
        let start = self.bytes.len();
        let length = packet_number::length(packet.number, packet.largest_acknowledged);
        let layout = put_header(&mut self.bytes, packet, length);
        self.open = Some(OpenPacket {
            start,
            layout,
            number: packet.number,
            tokens: RecoveryTokens::new(),
            elicits: Elicits::Nothing,
            padded: false,
            messages: 0,
        });
    }

    /// Makes room for a batch of bulk data at once, which saves growing step by step.
    pub fn expect_bulk(&mut self) {
        self.bytes.reserve((self.segment * USUAL_SEGMENTS).min(LARGEST_BATCH));
    }

    /// Goes on in `spare`, and returns the memory that it had before.
    pub fn move_to(&mut self, mut spare: Vec<u8>) -> Vec<u8> {
        spare.clear();
        spare.extend_from_slice(&self.bytes);
        std::mem::replace(&mut self.bytes, spare)
    }

    /// Returns true if one more datagram may join the batch, of which `most` are allowed: bulk fills it, small messages leave
    /// a few datagrams at a time, and more the more of them wait.
    pub fn takes_more(&self, most: usize) -> bool {
        self.segments < most
            && self.shared < self.most_shared
            && self.bytes.len() + self.segment <= LARGEST_BATCH
    }

    /// Takes the open packet, which is sealed now.
    pub fn take_sealed(&mut self) -> Option<OpenPacket> {
        let sealed = self.open.take()?;
        self.segments += 1;
        self.shared += usize::from(sealed.messages > 1);
        Some(sealed)
    }

    /// Bytes that frames may still take in the open packet; 0 if there is none.
    pub fn room(&self) -> usize {
        let left = |open: &OpenPacket| (self.segment - TAG).saturating_sub(self.bytes.len() - open.start);
        self.open.as_ref().map_or(0, left)
    }

    /// Bytes that the open packet would have if it were sealed now.
    pub fn used(&self) -> usize {
        self.open.as_ref().map_or(0, |open| self.bytes.len() - open.start + TAG)
    }

    /// Writes `frame` into the open packet: the one place through which every 1-RTT frame passes.
    #[inline]
    pub fn put(&mut self, frame: &Frame, token: Option<RecoveryToken>) -> usize {
        let Some(open) = self.open.as_mut() else { return 0 };
        let before = self.bytes.len();
        frame.put(&mut self.bytes);
        if frame.is_ack_eliciting() {
            open.elicits = Elicits::Acknowledgement;
        }
        open.messages += usize::from(matches!(frame, Frame::Stream(_) | Frame::Datagram(_)));
        if let Some(token) = token {
            debug_assert_ne!(frame.recovery(), Recovery::Forgotten, "nobody asks for {frame:?}");
            if open.tokens.len() == open.tokens.inline_size() && !open.tokens.spilled() {
                // One more frame than usual means many: small messages of many streams.
                open.tokens.reserve(MANY_TOKENS);
            }
            open.tokens.push(token);
        }
        self.bytes.len() - before
    }

    /// Pads the open packet so that, sealed, it has `size` bytes.
    pub fn pad_to(&mut self, size: usize) {
        let Some(open) = self.open.as_mut() else { return };
        let target = open.start + size.saturating_sub(TAG);
        if self.bytes.len() < target {
            open.padded = true;
            self.bytes.resize(target, 0);
        }
    }

    /// Makes the open packet ready for sealing, padded as far as header protection needs. An empty one is dropped.
    #[inline]
    pub fn finish(&mut self) -> Option<&OpenPacket> {
        let open = self.open.as_ref()?;
        //= https://www.rfc-editor.org/rfc/rfc9000#section-12.4
        //# The payload of a packet that contains frames MUST contain at least one frame, and MAY contain
        //# multiple frames and multiple frame types
        if self.bytes.len() == open.layout.number_offset + open.layout.number_length {
            // Nothing found its way in, and a packet without frames is a violation (RFC 9000 §12.4).
            self.bytes.truncate(open.start);
            self.open = None;
            return None;
        }
        let least = open.layout.number_offset + SAMPLE_GUARD;
        if self.bytes.len() < least {
            self.bytes.resize(least, 0);
        }
        self.open.as_ref()
    }
}

fn put_header(bytes: &mut Vec<u8>, packet: &PacketStart, number_length: usize) -> HeaderLayout {
    let destination = packet.destination;
    match packet.form {
        PacketForm::OneRtt { phase, spin } => {
            ShortHeader { destination, key_phase: phase, spin }.put(bytes, packet.number, number_length)
        }
        PacketForm::ZeroRtt { version, source } => {
            let kind = LongKind::ZeroRtt;
            let header = LongHeader { kind, version, destination, source, token: &[] };
            header.put(bytes, packet.number, number_length)
        }
    }
}
