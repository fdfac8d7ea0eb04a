//! QPACK with dynamic tables (RFC 9204): a decoder and an encoder whose peer says anything.

use super::pieces;
use bytes::{Bytes, BytesMut};
use hvq_h3::qpack::{Blocking, Decoder, Encoder, Limits, Line, Policy, Section};

/// Bytes that a field section may have.
const LIMIT: u64 = 4096;
const LIMITS: Limits = Limits { max_table_capacity: 256, max_blocked_streams: 3 };

/// Each piece is for the decoder's table, a section, for the encoder, or a value that the encoder writes, by its first byte.
/// Sections are within the limit, and both ends agree as long as they hear each other.
pub(crate) fn run(bytes: &[u8]) {
    let mut decoder = Decoder::new(LIMITS);
    let mut encoder = Encoder::new(Policy { blocking: Blocking::Permitted, ..Policy::default() });
    encoder.set_peer_limits(LIMITS);
    let (mut peer, mut stream) = (Decoder::new(LIMITS), 0);
    for piece in pieces(bytes) {
        let Some((kind, piece)) = piece.split_first() else { continue };
        stream += 4;
        match kind % 4 {
            0 if decoder.receive(piece).is_err() => return,
            1 => match decoder.section(stream, Bytes::copy_from_slice(piece), LIMIT) {
                Ok(Section::Fields(fields)) => {
                    let sizes = fields.iter().map(|field| field.name.len() + field.value.len() + 32);
                    assert!(sizes.sum::<usize>() as u64 <= LIMIT);
                }
                Ok(Section::Blocked) | Err(_) => {}
            },
            2 if encoder.receive(piece).is_err() => return,
            3 => {
                let mut section = BytesMut::new();
                let lines = [Line::new("x-own", piece), Line::new("user-agent", b"a browser")];
                encoder.section(stream, lines, &mut section);
                peer.receive(encoder.pending()).expect("instructions that can be followed");
                encoder.on_sent(encoder.pending().len());
                match peer.section(stream, section.freeze(), 1 << 20) {
                    Ok(Section::Fields(fields)) => assert_eq!(fields[0].value, piece),
                    // Somebody else may have said that sections were read, which then make room.
                    Ok(Section::Blocked) => panic!("all insertions are there"),
                    Err(error) => panic!("{error}"),
                }
            }
            _ => {}
        }
        assert!(decoder.capacity() <= LIMITS.max_table_capacity);
        assert!(decoder.pending().len() <= 16 * bytes.len() + 64);
    }
}
