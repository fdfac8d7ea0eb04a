//! The Internet checksum.

/// The checksum after a word changed from `old` to `new` (RFC 1624 §3).
pub(super) fn adjust(sum: u16, old: u16, new: u16) -> u16 {
    let mut all = u32::from(!sum) + u32::from(!old) + u32::from(new);
    all = (all & 0xffff) + (all >> 16);
    all = (all & 0xffff) + (all >> 16);
    !(all as u16)
}
