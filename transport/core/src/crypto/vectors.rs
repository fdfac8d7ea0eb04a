//! Test vectors of the RFCs.

/// The bytes of `text` in hexadecimal; white space does not count.
pub(crate) fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<_> = text.chars().filter_map(|digit| digit.to_digit(16)).collect();
    assert_eq!(digits.len() % 2, 0, "half a byte");
    digits.chunks(2).map(|byte| (byte[0] << 4 | byte[1]) as u8).collect()
}
