//! The origins that a server says its connection is for, without I/O (RFC 9412, RFC 8336 §2).

use super::control::{LARGEST_FRAME, Violation};
use crate::{Code, Origin};
use std::collections::BTreeSet;

/// The type of an ORIGIN frame (RFC 9412 §2.1).
pub(super) const ORIGIN: u64 = 0x0c;

/// Origins that are kept of a server.
const MOST_ORIGINS: usize = 256;

/// The origins that a server named (RFC 8336 §2.3), beside the one that the connection was made for. A client that was not told any asks
/// for none.
#[derive(Debug, Default)]
pub(crate) struct OriginSet(BTreeSet<Origin>);

impl OriginSet {
    /// Adds the origins in the `payload` of an ORIGIN frame, as far as there is room.
    pub(super) fn add(&mut self, mut payload: &[u8]) -> Result<(), Violation> {
        while !payload.is_empty() {
            let entry = payload
                .split_first_chunk()
                .and_then(|(length, rest)| rest.split_at_checked(usize::from(u16::from_be_bytes(*length))));
            // RFC 9114 §7.1.
            let Some((origin, rest)) = entry else {
                return Err(Violation(Code::H3_FRAME_ERROR, "an ORIGIN frame that ends within an origin"));
            };
            payload = rest;
            if self.0.len() >= MOST_ORIGINS {
                continue;
            }
            //= https://www.rfc-editor.org/rfc/rfc8336#section-2.2
            //# Each ASCII-Origin field in the frame's payload MUST be parsed as an ASCII serialization of an origin
            //# ([RFC6454], Section 6.2).
            let parsed = std::str::from_utf8(origin).ok().and_then(|origin| origin.parse().ok());
            //= https://www.rfc-editor.org/rfc/rfc8336#section-2.2
            //# If parsing fails, the field MUST be ignored.
            self.0.extend(parsed);
        }
        Ok(())
    }

    /// Moves all of `other` here, as far as there is room.
    pub(super) fn take(&mut self, other: &mut Self) {
        let room = MOST_ORIGINS.saturating_sub(self.0.len());
        self.0.extend(std::mem::take(&mut other.0).into_iter().take(room));
    }

    /// Returns true if nothing is there.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if `origin` is there.
    pub(crate) fn contains(&self, origin: &Origin) -> bool {
        self.0.contains(origin)
    }

    /// Takes `origin` out.
    pub(crate) fn remove(&mut self, origin: &Origin) {
        self.0.remove(origin);
    }
}

//= https://www.rfc-editor.org/rfc/rfc8336#section-2.2
//= type=implication
//= reason=What is said is what the program says, and nothing that came.
//# An intermediary MUST NOT forward ORIGIN frames.
/// The payloads of the frames that name `origins`: one, unless there are hundreds.
pub(super) fn payloads(origins: &[Origin]) -> Vec<Vec<u8>> {
    let mut payloads = vec![Vec::new()];
    for origin in origins {
        let text = origin.to_string();
        let length = u16::try_from(text.len()).expect("a host has 253 bytes at most");
        let entry = [&length.to_be_bytes(), text.as_bytes()].concat();
        match payloads.last_mut() {
            Some(last) if ((last.len() + entry.len()) as u64) <= LARGEST_FRAME => last.extend(entry),
            _ => payloads.push(entry),
        }
    }
    payloads
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(host: &str) -> Origin {
        Origin::new(host, 443).unwrap()
    }

    fn entry(text: &[u8]) -> Vec<u8> {
        [&(text.len() as u16).to_be_bytes(), text].concat()
    }

    #[test]
    fn what_is_said_is_understood_in_as_few_frames_as_it_takes() {
        assert_eq!(payloads(&[]), [[0; 0]]);
        assert_eq!(payloads(&[origin("a.test")]), [b"\x00\x0ehttps://a.test".to_vec()]);
        let many: Vec<_> = (0..200).map(|number| origin(&format!("{number}.{}", "a".repeat(200)))).collect();
        let said = payloads(&many);
        assert!(said.len() == 3 && said.iter().all(|payload| payload.len() as u64 <= LARGEST_FRAME));
        let mut set = OriginSet::default();
        said.iter().for_each(|payload| set.add(payload).unwrap());
        assert!(many.iter().all(|origin| set.contains(origin)));
    }

    //= https://www.rfc-editor.org/rfc/rfc8336#section-2.2
    //= type=test
    //# Each ASCII-Origin field in the frame's payload MUST be parsed as an ASCII serialization of an origin
    //# ([RFC6454], Section 6.2).
    //= https://www.rfc-editor.org/rfc/rfc8336#section-2.2
    //= type=test
    //# If parsing fails, the field MUST be ignored.
    #[test]
    fn entries_that_are_no_origins_are_passed_over() {
        let mut set = OriginSet::default();
        let strange = [&b""[..], b"https://", b"null", b"\xff\xfe", b"https://*.test", b"http://a.test"];
        let payload = [strange.map(entry).concat(), entry(b"https://b.test:8443")].concat();
        set.add(&payload).unwrap();
        assert_eq!(set.0.into_iter().collect::<Vec<_>>(), [Origin::new("b.test", 8443).unwrap()]);
    }

    #[test]
    fn a_frame_that_ends_within_an_entry_is_an_error_wherever_it_ends() {
        // attacks.md H35.
        let payload = entry(b"https://a.test");
        for length in 1..payload.len() {
            let cut = OriginSet::default().add(&payload[..length]);
            assert_eq!(cut.unwrap_err().0, Code::H3_FRAME_ERROR, "{length}");
        }
    }

    #[test]
    fn origins_without_end_are_kept_up_to_a_few() {
        // attacks.md H35.
        let (mut set, mut known) = (OriginSet::default(), OriginSet::default());
        for number in 0..10_000 {
            set.add(&entry(format!("https://{number}.test").as_bytes())).unwrap();
        }
        assert_eq!(set.0.len(), MOST_ORIGINS);
        known.add(&entry(b"https://first.test")).unwrap();
        known.take(&mut set);
        assert_eq!((known.0.len(), set.is_empty()), (MOST_ORIGINS, true));
        assert!(known.contains(&origin("first.test")));
        known.remove(&origin("first.test"));
        assert!(!known.contains(&origin("first.test")));
    }
}
