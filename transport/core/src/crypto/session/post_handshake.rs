//! Where messages of TLS begin in the bytes that come after the handshake.

/// CertificateRequest (RFC 8446 §4).
pub(super) const CERTIFICATE_REQUEST: u8 = 13;
/// The type of a message and three bytes of length.
const HEADER: u8 = 4;

/// How far the messages have come: each may be cut anywhere.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Messages {
    /// Bytes of the header that are known.
    known: u8,
    /// The length, as far as it is known.
    length: u32,
    /// Bytes of the body that are missing.
    left: u32,
}

impl Messages {
    /// Takes the next bytes, and says whether a message of type `kind` begins in them.
    pub(super) fn begin(&mut self, data: &[u8], kind: u8) -> bool {
        let mut found = false;
        for &byte in data {
            if self.left > 0 {
                self.left -= 1;
                continue;
            }
            if self.known == 0 {
                found |= byte == kind;
                self.length = 0;
            } else {
                self.length = self.length << 8 | u32::from(byte);
            }
            self.known += 1;
            if self.known == HEADER {
                (self.known, self.left) = (0, self.length);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_found_at_its_start_only_wherever_the_bytes_are_cut() {
        let bytes = [4, 0, 0, 3, 13, 13, 13, 13, 0, 0, 0];
        for cut in 0..bytes.len() {
            let mut messages = Messages::default();
            let (first, second) = bytes.split_at(cut);
            let found = [first, second].map(|part| messages.begin(part, CERTIFICATE_REQUEST));
            assert_eq!(found, [cut > 7, cut <= 7], "{cut}");
        }
    }
}
