//! The frames of one message, a request or a response, without I/O (RFC 9114 §4.1, §7).

use super::control::{Peer, Violation};
use super::response::Asked;
use crate::Code;
use bytes::{Buf, Bytes, BytesMut};
use hvq::transport::wire::varint;

/// A field section is no more than so many times as large as it is in the form of the limit: the longest Huffman codes have
/// 30 bits.
const LONGEST_CODE: u64 = 4;

/// An event on the stream of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Event {
    /// A field section.
    Fields(Bytes),
    /// A piece of the body.
    Data(Bytes),
    /// Its end.
    End,
}

/// The reason for which a message is not read further.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fault {
    /// The connection ends.
    Violation(Violation),
    /// A field section is larger than what was offered.
    TooLarge,
    /// The body has another length than the header section says: H3_MESSAGE_ERROR (RFC 9114 §4.1.2).
    WrongLength { announced: u64, received: u64 },
}

/// The part of the message at which the stream stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// Before the header section.
    Head,
    /// Behind it.
    Body,
    /// Behind the trailers.
    Trailers,
    /// At its end.
    End,
}

/// Within which frame it is, and how much of that is left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Inside {
    None,
    Data(u64),
    Fields(u64),
    /// One that is not known.
    Other(u64),
}

/// Takes the stream of a message apart.
#[derive(Debug)]
pub(super) struct MessageReader {
    sender: Peer,
    /// The bytes that came and were not parsed.
    buffer: Bytes,
    stage: Stage,
    inside: Inside,
    /// The length of the body, if that was said.
    length: Option<Box<Length>>,
    /// The content that a response may have, at a client.
    pub(super) asked: Asked,
    /// Bytes of a field section here that count as not read yet; here, because it costs no memory here.
    pub(super) counted: u32,
}

/// A length in bytes that was said, and the progress towards it.
#[derive(Debug)]
struct Length {
    announced: u64,
    /// Bytes in the frames of the body that began.
    received: u64,
}

impl MessageReader {
    /// Makes a reader of a message of `sender`.
    pub(super) fn new(sender: Peer) -> Self {
        let (buffer, stage, inside) = (Bytes::new(), Stage::Head, Inside::None);
        Self { sender, buffer, stage, inside, length: None, asked: Asked::default(), counted: 0 }
    }

    /// Another header section follows: what came was an interim response (RFC 9114 §4.1).
    pub(super) fn expect_head(&mut self) {
        self.stage = Stage::Head;
    }

    /// The body has to have so many bytes.
    pub(super) fn expect_length(&mut self, length: u64) {
        self.length = Some(Box::new(Length { announced: length, received: 0 }));
    }

    /// Nothing more is read.
    pub(super) fn close(&mut self) {
        self.stage = Stage::End;
    }

    /// Returns true if nothing more is to come.
    pub(super) fn is_over(&self) -> bool {
        self.stage == Stage::End
    }

    /// Returns true before the header section, or between an interim response and what follows.
    pub(super) fn awaits_head(&self) -> bool {
        self.stage == Stage::Head
    }

    /// Bytes of a field section that came and is not whole.
    pub(super) fn unread(&self) -> Option<usize> {
        matches!(self.inside, Inside::Fields(_)).then_some(self.buffer.len())
    }

    /// The next bytes of the stream came.
    pub(super) fn push(&mut self, chunk: Bytes) {
        self.buffer = joined(std::mem::take(&mut self.buffer), chunk);
    }

    /// The stream ended.
    pub(super) fn end(&mut self) -> Result<Event, Fault> {
        //= https://www.rfc-editor.org/rfc/rfc9114#section-7.1
        //# When a stream terminates cleanly, if the last frame on the stream was truncated, this MUST be
        //# treated as a connection error of type H3_FRAME_ERROR.
        if self.inside != Inside::None || !self.buffer.is_empty() {
            // RFC 9114 §7.1.
            return Err(violation(Code::H3_FRAME_ERROR, "the stream ended within a frame"));
        }
        if self.stage != Stage::Head {
            self.check_length()?;
            self.stage = Stage::End;
        }
        Ok(Event::End)
    }

    /// Parses the event at the start of the buffer, where field sections have up to `limit` bytes; `None` if more has to come
    /// first.
    pub(super) fn next_event(&mut self, limit: u64) -> Result<Option<Event>, Fault> {
        loop {
            match self.inside {
                Inside::None => match self.header(limit)? {
                    Some(inside) => self.inside = inside,
                    None => return Ok(None),
                },
                Inside::Data(0) | Inside::Other(0) => self.inside = Inside::None,
                Inside::Data(left) => {
                    let data = self.take(left);
                    self.inside = Inside::Data(left - data.len() as u64);
                    return Ok((!data.is_empty()).then_some(Event::Data(data)));
                }
                Inside::Other(left) => {
                    let passed = self.take(left).len() as u64;
                    self.inside = Inside::Other(left - passed);
                    if passed == 0 {
                        return Ok(None);
                    }
                }
                Inside::Fields(length) => {
                    if (self.buffer.len() as u64) < length {
                        return Ok(None);
                    }
                    self.inside = Inside::None;
                    return Ok(Some(Event::Fields(self.take(length))));
                }
            }
        }
    }

    /// Takes at most `most` bytes of the buffer.
    fn take(&mut self, most: u64) -> Bytes {
        let length = usize::try_from(most).unwrap_or(usize::MAX).min(self.buffer.len());
        self.buffer.split_to(length)
    }

    /// The frame that begins now; `None` if more has to come first.
    fn header(&mut self, limit: u64) -> Result<Option<Inside>, Fault> {
        let Some((kind, first)) = varint::get(&self.buffer) else { return Ok(None) };
        let Some((length, second)) = varint::get(self.buffer.get(first..).unwrap_or_default()) else {
            return Ok(None);
        };
        self.buffer.advance(first + second);
        let inside = match (kind, self.stage) {
            (0x00, Stage::Head) => {
                return Err(violation(Code::H3_FRAME_UNEXPECTED, "DATA before HEADERS"));
            }
            (0x00, Stage::Body) => {
                if let Some(body) = &mut self.length {
                    body.received = body.received.saturating_add(length);
                    if body.received > body.announced {
                        self.check_length()?;
                    }
                }
                Inside::Data(length)
            }
            (0x01, Stage::Head | Stage::Body) => {
                if self.stage == Stage::Body {
                    self.check_length()?;
                }
                self.stage = if self.stage == Stage::Head { Stage::Body } else { Stage::Trailers };
                if length > limit.saturating_mul(LONGEST_CODE) {
                    return Err(Fault::TooLarge);
                }
                Inside::Fields(length)
            }
            // RFC 9114 §7.2.5: nobody permitted a push.
            //= https://www.rfc-editor.org/rfc/rfc9114#section-7.2.5
            //# A client MUST treat receipt of a PUSH_PROMISE frame that contains a larger push ID than the client
            //# has advertised as a connection error of H3_ID_ERROR.
            (0x05, _) if self.sender == Peer::Server => {
                return Err(violation(Code::H3_ID_ERROR, "a promise of a push that nobody permitted"));
            }
            // §4.1: nothing of the message behind the trailers; §7.2: frames of other streams, and of HTTP/2.
            //= https://www.rfc-editor.org/rfc/rfc9218#section-7.2
            //# Receiving a PRIORITY_UPDATE frame on a stream other than the client control stream MUST be treated
            //# as a connection error of type H3_FRAME_UNEXPECTED.
            //= https://www.rfc-editor.org/rfc/rfc9114#section-4.1
            //# Receipt of an invalid sequence of frames MUST be treated as a connection error of type
            //# H3_FRAME_UNEXPECTED.
            //= https://www.rfc-editor.org/rfc/rfc9114#section-4.4
            //# Receipt of any other known frame type MUST be treated as a connection error of type
            //# H3_FRAME_UNEXPECTED.
            //= https://www.rfc-editor.org/rfc/rfc9114#section-7.2.3
            //# Receiving a CANCEL_PUSH frame on a stream other than the control stream MUST be treated as a
            //# connection error of type H3_FRAME_UNEXPECTED.
            //= https://www.rfc-editor.org/rfc/rfc9114#section-7.2.4
            //# If an endpoint receives a SETTINGS frame on a different stream, the endpoint MUST respond with a
            //# connection error of type H3_FRAME_UNEXPECTED.
            //= https://www.rfc-editor.org/rfc/rfc9114#section-7.2.5
            //# A server MUST treat the receipt of a PUSH_PROMISE frame as a connection error of type
            //# H3_FRAME_UNEXPECTED.
            //= https://www.rfc-editor.org/rfc/rfc9114#section-7.2.6
            //# A client MUST treat a GOAWAY frame on a stream other than the control stream as a connection error
            //# of type H3_FRAME_UNEXPECTED.
            //= https://www.rfc-editor.org/rfc/rfc9114#section-7.2.7
            //# Receipt of a MAX_PUSH_ID frame on any other stream MUST be treated as a connection error of type
            //# H3_FRAME_UNEXPECTED.
            //= https://www.rfc-editor.org/rfc/rfc9114#section-7.2.8
            //# These frame types MUST NOT be sent, and their receipt MUST be treated as a connection error of type
            //# H3_FRAME_UNEXPECTED.
            (0x00..=0x09 | 0x0d | 0xf0700 | 0xf0701, _) => {
                return Err(violation(Code::H3_FRAME_UNEXPECTED, "not a frame of a message, or not here"));
            }
            // §9: what is not known is passed over.
            //= https://www.rfc-editor.org/rfc/rfc8336#section-2.2
            //# The ORIGIN frame MUST be sent on stream 0; an ORIGIN frame on any other stream is invalid and MUST be
            //# ignored.
            //= https://www.rfc-editor.org/rfc/rfc9114#section-7.2.8
            //# Endpoints MUST NOT consider these frames to have any meaning upon receipt.
            //= https://www.rfc-editor.org/rfc/rfc9114#section-9
            //# Implementations MUST ignore unknown or unsupported values in all extensible protocol elements.
            _ => Inside::Other(length),
        };
        Ok(Some(inside))
    }

    /// Holds the body that came to the length that was announced.
    fn check_length(&self) -> Result<(), Fault> {
        match self.length.as_deref() {
            Some(&Length { announced, received }) if announced != received => {
                Err(Fault::WrongLength { announced, received })
            }
            _ => Ok(()),
        }
    }
}

fn violation(code: Code, reason: &'static str) -> Fault {
    Fault::Violation(Violation(code, reason))
}

/// `before` with `chunk` behind it. Chunks may be of a byte each, so that what is there is not copied for every one.
fn joined(before: Bytes, chunk: Bytes) -> Bytes {
    if before.is_empty() {
        return chunk;
    }
    let mut whole = before.try_into_mut().unwrap_or_else(|shared| BytesMut::from(shared.as_ref()));
    whole.extend_from_slice(&chunk);
    whole.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_that_comes_byte_by_byte_is_copied_a_few_times_only() {
        let (mut whole, mut moves) = (Bytes::new(), 0);
        for byte in 0..100_000u32 {
            let before = whole.as_ptr();
            whole = joined(whole, Bytes::copy_from_slice(&byte.to_le_bytes()[..1]));
            moves += u32::from(whole.as_ptr() != before);
        }
        assert_eq!(whole.len(), 100_000);
        assert!(whole.iter().enumerate().all(|(at, byte)| *byte == at as u8));
        assert!(moves <= 40, "{moves} copies");
    }

    /// Reads a message whose body has `announced` bytes, in pieces of `size` bytes: the body, or the fault.
    fn read(bytes: &[u8], announced: Option<u64>, size: usize) -> Result<Vec<u8>, Fault> {
        let mut reader = MessageReader::new(Peer::Server);
        let mut body = Vec::new();
        announced.into_iter().for_each(|length| reader.expect_length(length));
        for piece in bytes.chunks(size) {
            reader.push(Bytes::copy_from_slice(piece));
            while let Some(event) = reader.next_event(1000)? {
                if let Event::Data(data) = event {
                    body.extend_from_slice(&data);
                }
            }
        }
        reader.end().map(|_| body)
    }

    #[test]
    fn a_body_has_the_length_that_was_announced() {
        // RFC 9114 §4.1.2; HEADERS of two bytes, DATA, a frame of the unknown, DATA, trailers.
        let message = [1, 2, 0, 0, 0, 2, 7, 8, 0x21, 3, 0, 0, 0, 0, 1, 9, 1, 2, 0, 0];
        for size in 1..=message.len() {
            assert_eq!(read(&message, None, size), Ok(vec![7, 8, 9]));
            assert_eq!(read(&message, Some(3), size), Ok(vec![7, 8, 9]));
            assert_eq!(read(&message, Some(4), size), Err(Fault::WrongLength { announced: 4, received: 3 }));
            assert_eq!(
                read(&message[..16], Some(4), size),
                Err(Fault::WrongLength { announced: 4, received: 3 })
            );
            assert_eq!(read(&message, Some(2), size), Err(Fault::WrongLength { announced: 2, received: 3 }));
        }
        assert!(
            matches!(read(&[1, 2, 0, 0, 0, 2, 7], Some(2), 9), Err(Fault::Violation(_))),
            "within a frame"
        );
    }
}
