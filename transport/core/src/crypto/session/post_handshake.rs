//! The boundaries of TLS messages in the bytes that come, at all levels one after the other.

/// CertificateRequest (RFC 8446 §4).
pub(super) const CERTIFICATE_REQUEST: u8 = 13;
/// KeyUpdate (RFC 8446 §4).
pub(super) const KEY_UPDATE: u8 = 24;
/// The type of a message and three bytes of length.
const HEADER: u8 = 4;

/// The progress of the messages: each may be cut anywhere.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PostHandshakeMessages {
    /// Bytes of the header that are known.
    known: u8,
    /// The length, as far as it is known.
    length: u32,
    /// Bytes of the body that are missing.
    left: u32,
}

impl PostHandshakeMessages {
    /// Takes the next bytes, and tells `begins` the type of each message that begins in them.
    pub(super) fn take(&mut self, data: &[u8], mut begins: impl FnMut(u8)) {
        let mut rest = data;
        while let Some((&byte, after)) = rest.split_first() {
            if self.left > 0 {
                let passed = rest.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
                rest = rest.get(passed..).unwrap_or_default();
                self.left -= u32::try_from(passed).unwrap_or(self.left);
                continue;
            }
            if self.known == 0 {
                begins(byte);
                self.length = 0;
            } else {
                self.length = self.length << 8 | u32::from(byte);
            }
            self.known += 1;
            if self.known == HEADER {
                (self.known, self.left) = (0, self.length);
            }
            rest = after;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_found_at_its_start_only_wherever_the_bytes_are_cut() {
        let bytes = [4, 0, 0, 3, 13, 13, 13, 13, 0, 0, 0];
        for cut in 0..bytes.len() {
            let mut messages = PostHandshakeMessages::default();
            let (first, second) = bytes.split_at(cut);
            let found = [first, second].map(|part| {
                let mut kinds = Vec::new();
                messages.take(part, |kind| kinds.push(kind));
                kinds.contains(&CERTIFICATE_REQUEST)
            });
            assert_eq!(found, [cut > 7, cut <= 7], "{cut}");
        }
    }
}
