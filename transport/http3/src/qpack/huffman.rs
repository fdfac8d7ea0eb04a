//! The Huffman code of strings (RFC 7541 Appendix B).
//!
//! The code is canonical: codes of equal length are successive, in the order of their symbols, so that lengths tell all.

use bytes::{BufMut, BytesMut};

/// Lengths of the codes of all bytes and, last, of the end of a string.
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28,
    28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6,
    6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7,
    8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7,
    15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24,
    23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23,
    23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26,
    26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20,
    21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27,
    27, 27, 26, 30,
];
/// The longest code, in bits.
const LONGEST: usize = 30;
/// The symbol that stands for the end of a string, and is in none (RFC 7541 §5.2).
const END: u16 = 256;

/// The Huffman code that strings are read and written with (RFC 7541, Appendix B).
static CODE: Code = Code::new();

/// The code, by lengths.
struct Code {
    /// The first code beyond those of each length.
    beyond: [u32; LONGEST + 1],
    /// The offset that is added to a code of each length to find its symbol.
    shift: [i32; LONGEST + 1],
    /// Symbols in the order of their codes.
    symbols: [u16; 257],
    /// The code of each symbol.
    codes: [u32; 257],
    /// For the next eight bits the symbol and the length of its code, which is 0 if it has more than eight bits.
    quick: [(u8, u8); 256],
}

impl Code {
    const fn new() -> Self {
        let mut code = Self {
            beyond: [0; LONGEST + 1],
            shift: [0; LONGEST + 1],
            symbols: [0; 257],
            codes: [0; 257],
            quick: [(0, 0); 256],
        };
        let (mut length, mut next, mut placed) = (1, 0u32, 0usize);
        while length <= LONGEST {
            next <<= 1;
            code.shift[length] = placed as i32 - next as i32;
            let mut symbol = 0;
            while symbol < LENGTHS.len() {
                if LENGTHS[symbol] as usize == length {
                    code.symbols[placed] = symbol as u16;
                    code.codes[symbol] = next;
                    code.fill(symbol as u8, next as usize, length);
                    next += 1;
                    placed += 1;
                }
                symbol += 1;
            }
            code.beyond[length] = next;
            length += 1;
        }
        code
    }

    /// Every byte that begins with `next`, a code of `length` bits, means `symbol`.
    const fn fill(&mut self, symbol: u8, next: usize, length: usize) {
        let mut at = 0;
        while length <= 8 && at < 1 << (8 - length) {
            self.quick[(next << (8 - length)) + at] = (symbol, length as u8);
            at += 1;
        }
    }

    /// The symbol that `bits`, the next ones from the highest bit on, begin with, and the length of its code.
    fn symbol(&self, bits: u64) -> (u16, usize) {
        match self.quick.get((bits >> 56) as usize) {
            Some((symbol, length)) if *length > 0 => (u16::from(*symbol), usize::from(*length)),
            _ => self.long(bits).unwrap_or((END, LONGEST)),
        }
    }

    fn long(&self, bits: u64) -> Option<(u16, usize)> {
        let length = (9..=LONGEST).find(|length| {
            let beyond = self.beyond.get(*length);
            beyond.is_some_and(|beyond| bits >> (64 - length) < u64::from(*beyond))
        })?;
        let code = i64::try_from(bits >> (64 - length)).ok()?;
        let at = usize::try_from(code + i64::from(*self.shift.get(length)?)).ok()?;
        Some((*self.symbols.get(at)?, length))
    }
}

/// The number of bytes that the code of `text` has.
pub(super) fn length(text: &[u8]) -> usize {
    let lengths = text.iter().filter_map(|byte| LENGTHS.get(usize::from(*byte)));
    lengths.map(|length| usize::from(*length)).sum::<usize>().div_ceil(8)
}

/// Writes the code of `text`, with ones behind it up to a whole byte (RFC 7541 §5.2).
pub(super) fn write(text: &[u8], to: &mut BytesMut) {
    let (mut bits, mut count) = (0u64, 0u32);
    for symbol in text.iter().map(|byte| usize::from(*byte)) {
        let (Some(code), Some(length)) = (CODE.codes.get(symbol), LENGTHS.get(symbol)) else { continue };
        bits = bits << length | u64::from(*code);
        count += u32::from(*length);
        while count >= 8 {
            count -= 8;
            to.put_u8((bits >> count) as u8);
        }
    }
    if count > 0 {
        to.put_u8((bits << (8 - count)) as u8 | 0xff >> count);
    }
}

/// Reads `text` onto `to`; `None` if it is no text, or longer than `limit` bytes.
pub(super) fn read(text: &[u8], limit: usize, to: &mut Vec<u8>) -> Option<()> {
    let (mut bits, mut count, mut rest) = (0u64, 0usize, text.iter());
    let end = to.len().saturating_add(limit);
    loop {
        while count <= 56
            && let Some(byte) = rest.next()
        {
            bits |= u64::from(*byte) << (56 - count);
            count += 8;
        }
        let (symbol, length) = CODE.symbol(bits);
        if length > count || symbol == END {
            break;
        }
        if to.len() >= end {
            return None;
        }
        to.push(u8::try_from(symbol).ok()?);
        bits <<= length;
        count -= length;
    }
    // RFC 7541 §5.2: less than a byte of padding, all ones.
    let is_padding = count < 8 && bits.leading_ones() as usize == count;
    is_padding.then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &[u8]) -> Option<String> {
        let mut bytes = Vec::new();
        read(text, 1000, &mut bytes)?;
        String::from_utf8(bytes).ok()
    }

    /// The code of `text`, padded.
    fn written(text: &[u8]) -> BytesMut {
        let mut code = BytesMut::new();
        write(text, &mut code);
        assert_eq!(code.len(), length(text));
        code
    }

    #[test]
    fn the_examples_of_the_rfc_are_read_and_written() {
        // RFC 7541 §C.4.1, §C.4.3, §C.6.1.
        let host = [0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff];
        assert_eq!(all(&host).unwrap(), "www.example.com");
        assert_eq!(written(b"www.example.com"), &host[..]);
        let value = [0x25, 0xa8, 0x49, 0xe9, 0x5b, 0xb8, 0xe8, 0xb4, 0xbf];
        assert_eq!(all(&value).unwrap(), "custom-value");
        let date = [
            0xd0, 0x7a, 0xbe, 0x94, 0x10, 0x54, 0xd4, 0x44, 0xa8, 0x20, 0x05, 0x95, 0x04, 0x0b, 0x81, 0x66,
            0xe0, 0x82, 0xa6, 0x2d, 0x1b, 0xff,
        ];
        assert_eq!(all(&date).unwrap(), "Mon, 21 Oct 2013 20:13:21 GMT");
        assert_eq!(written(b"Mon, 21 Oct 2013 20:13:21 GMT"), &date[..]);
        assert_eq!(all(&[]).unwrap(), "");
    }

    #[test]
    fn every_byte_is_read_behind_every_other() {
        for first in 0..=255u8 {
            let text: Vec<u8> = (0..=255u8).flat_map(|second| [first, second]).collect();
            let mut read_back = Vec::new();
            read(&written(&text), text.len(), &mut read_back).unwrap();
            assert_eq!(read_back, text);
        }
    }

    #[test]
    fn an_end_within_wrong_padding_and_too_much_are_refused() {
        // attacks.md H11: RFC 7541 §5.2.
        assert_eq!(all(&[0xff, 0xff, 0xff, 0xff]), None, "the symbol of the end");
        assert_eq!(all(&[0xff]), None, "a byte of padding");
        assert_eq!(all(&[0x1f, 0xff]), None, "more than seven bits of padding");
        assert_eq!(all(&[0x18]), None, "padding of zeros");
        assert_eq!(all(&[0x1f]).unwrap(), "a");
        let mut short = Vec::new();
        assert_eq!(read(&written(b"abc"), 2, &mut short), None);
    }
}
