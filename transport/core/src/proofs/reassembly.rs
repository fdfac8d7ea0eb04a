//! Reassembly of a stream against an array: every order of every few pieces of a short stream, with reads in between.

use super::sequences;
use crate::stream::assembler::Assembler;
use crate::stream::blocks::Blocks;
use bytes::Bytes;

/// The bytes of the stream.
const SIZE: usize = 5;

/// Every piece of the stream, as where it begins and ends; the empty one reads a byte instead.
fn pieces() -> Vec<(usize, usize)> {
    let mut all = vec![(0, 0)];
    for first in 0..SIZE {
        all.extend((first + 1..=SIZE).map(|end| (first, end)));
    }
    all
}

/// An assembler beside an array.
#[derive(Default)]
struct Pair {
    assembler: Assembler,
    blocks: Blocks,
    array: [Option<u8>; SIZE + 1],
    read: usize,
}

impl Pair {
    /// Takes the piece `number`, whose bytes say so: of what overlaps the first to arrive counts.
    fn insert(&mut self, number: u8, first: usize, end: usize) {
        let data = Bytes::from(vec![number; end - first]);
        if !self.assembler.insert_next(first as u64, &data, &mut self.blocks) {
            self.assembler.insert(first as u64, data, 1 << 20).expect("few pieces");
        }
        for byte in &mut self.array[first..end] {
            byte.get_or_insert(number);
        }
    }

    fn read(&mut self, most: usize) {
        let bytes = self.assembler.read(most);
        assert_eq!(bytes.is_some(), self.array[self.read].is_some(), "at {}", self.read);
        for byte in bytes.unwrap_or_default() {
            assert_eq!(Some(byte), self.array[self.read]);
            self.read += 1;
        }
    }

    fn finish(mut self) {
        assert_eq!(self.assembler.total(), self.array.iter().flatten().count() as u64);
        while self.assembler.is_readable() {
            self.read(SIZE);
        }
        assert_eq!(self.assembler.read_offset(), self.read as u64);
        assert!(self.array[self.read].is_none(), "stopped at {}", self.read);
    }
}

fn try_all(length: usize) {
    let pieces = pieces();
    sequences(pieces.len(), length, |sequence| {
        let mut pair = Pair::default();
        for (number, piece) in (1..).zip(sequence) {
            match pieces[*piece] {
                (0, 0) => pair.read(1),
                (first, end) => pair.insert(number, first, end),
            }
        }
        pair.finish();
    });
}

#[test]
fn every_order_of_three_pieces_of_a_stream_reads_like_an_array() {
    (0..=3).for_each(try_all);
}

#[test]
#[ignore = "takes long: make prove"]
fn every_order_of_six_pieces_of_a_stream_reads_like_an_array() {
    (4..=6).for_each(try_all);
}
