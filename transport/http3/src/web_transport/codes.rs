//! Error codes of WebTransport applications among those of HTTP/3 (draft-ietf-webtrans-http3 §4.4).

/// The HTTP/3 code of application code 0.
const FIRST: u64 = 0x52e4_a40f_a8db;
/// The HTTP/3 code of the largest application code.
const LAST: u64 = 0x52e5_ac98_3162;

/// The HTTP/3 code of an application's `code`.
pub(super) const fn to_http(code: u32) -> u64 {
    let code = code as u64;
    FIRST + code + code / 0x1e
}

/// The application's code that an HTTP/3 code stands for; `None` if it stands for none.
pub(super) fn from_http(code: u64) -> Option<u32> {
    // RFC 9114 §8.1: reserved codes lie in between.
    if !(FIRST..=LAST).contains(&code) || (code - 0x21).is_multiple_of(0x1f) {
        return None;
    }
    let shifted = code - FIRST;
    u32::try_from(shifted - shifted / 0x1f).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_applications_pass_over_those_that_are_reserved() {
        assert_eq!((to_http(0), to_http(u32::MAX)), (FIRST, LAST));
        for code in (0..1000).chain([0x7fff_ffff, u32::MAX - 1, u32::MAX]) {
            let http = to_http(code);
            assert_ne!((http - 0x21) % 0x1f, 0, "{code} would be reserved");
            assert_eq!(from_http(http), Some(code));
        }
        let codes = [FIRST - 1, LAST + 1, 0, 0x10c, u64::MAX];
        assert!(
            codes
                .into_iter()
                .chain((FIRST..FIRST + 100).filter(|code| (code - 0x21) % 0x1f == 0))
                .all(|code| from_http(code).is_none())
        );
    }
}
