//! Encoder and decoder against each other, and against bytes of anybody.

use super::*;
use bytes::{Bytes, BytesMut};
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};

mod hostile;
mod round_trip;

const LIMIT: u64 = 1 << 20;

fn limits(max_table_capacity: u64, max_blocked_streams: u64) -> Limits {
    Limits { max_table_capacity, max_blocked_streams }
}

fn field(name: &str, value: &str) -> Field {
    Field { name: name.to_owned().into(), value: value.to_owned().into() }
}

/// The lines of `fields`.
fn lines(fields: &[Field]) -> impl Iterator<Item = Line<'_>> {
    fields.iter().map(|field| Line::new(std::str::from_utf8(&field.name).unwrap(), &field.value))
}

/// Carries the instructions of the encoder to the decoder, and returns the streams that they unblock.
fn instruct(encoder: &mut Encoder, decoder: &mut Decoder) -> Vec<u64> {
    let said = encoder.pending().to_vec();
    encoder.on_sent(said.len());
    decoder.receive(&said).unwrap()
}

/// Carries the instructions of the decoder to the encoder.
fn acknowledge(decoder: &mut Decoder, encoder: &mut Encoder) {
    let said = decoder.pending().to_vec();
    decoder.on_sent(said.len());
    encoder.receive(&said).unwrap();
}

fn section(encoder: &mut Encoder, stream: u64, fields: &[Field]) -> Bytes {
    let mut block = BytesMut::new();
    encoder.section(stream, lines(fields), &mut block);
    block.freeze()
}
