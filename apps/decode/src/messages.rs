//! The first messages of a TLS handshake, put together from CRYPTO frames that come in any order (RFC 9000 §19.6).

use hvq_transport::connection::Role;
use hvq_transport::wire::frame::Crypto;
use hvq_transport::wire::transport_parameters::TransportParameters;
use std::collections::BTreeMap;

/// Bytes that are kept at most: ClientHello and EncryptedExtensions are shorter.
const MOST_BYTES: usize = 16 * 1024;
/// Handshake messages (RFC 8446 §4).
const CLIENT_HELLO: u8 = 1;
const ENCRYPTED_EXTENSIONS: u8 = 8;
/// The extension `quic_transport_parameters` (RFC 9001 §8.2).
const PARAMETERS: u16 = 0x39;

/// The beginning of what one end says at one encryption level.
#[derive(Clone, Default, Debug)]
pub struct Messages {
    /// Contiguous from the start.
    bytes: Vec<u8>,
    /// The bytes that came after a gap, by offset.
    ahead: BTreeMap<usize, Vec<u8>>,
}

impl Messages {
    /// Takes note of a frame.
    pub fn add(&mut self, crypto: &Crypto) {
        let Ok(offset) = usize::try_from(crypto.offset) else { return };
        if offset.saturating_add(crypto.data.len()) > MOST_BYTES {
            return;
        }
        let longest = self.ahead.entry(offset).or_default();
        if longest.len() < crypto.data.len() {
            *longest = crypto.data.to_vec();
        }
        while let Some(next) = self.ahead.first_entry().filter(|entry| *entry.key() <= self.bytes.len()) {
            let (offset, data) = next.remove_entry();
            if let Some(fresh) = data.get(self.bytes.len() - offset..) {
                self.bytes.extend_from_slice(fresh);
            }
        }
    }

    /// The cipher suites of a ClientHello that is complete (RFC 8446 §4.1.2).
    pub fn cipher_suites(&self) -> Option<Vec<u16>> {
        let mut body = self.message(CLIENT_HELLO)?;
        // The legacy version, the random bytes, and the legacy session ID.
        take(&mut body, 2 + 32)?;
        let session = number(&mut body, 1)?;
        take(&mut body, session)?;
        let suites = number(&mut body, 2)?;
        let (pairs, _) = take(&mut body, suites)?.as_chunks::<2>();
        Some(pairs.iter().map(|pair| u16::from_be_bytes(*pair)).collect())
    }

    /// The transport parameters of a server whose EncryptedExtensions are complete.
    pub fn server_parameters(&self) -> Option<TransportParameters> {
        let mut body = self.message(ENCRYPTED_EXTENSIONS)?;
        let length = number(&mut body, 2)?;
        let mut extensions = take(&mut body, length)?;
        while !extensions.is_empty() {
            let kind = number(&mut extensions, 2)?;
            let length = number(&mut extensions, 2)?;
            let content = take(&mut extensions, length)?;
            if kind == usize::from(PARAMETERS) {
                return TransportParameters::decode(Role::Server, content).ok();
            }
        }
        None
    }

    /// The types of the messages that are complete, in their order (RFC 8446 §4).
    pub fn kinds(&self) -> Vec<u8> {
        let (mut rest, mut kinds) = (self.bytes.as_slice(), Vec::new());
        while let Some(kind) = next(&mut rest) {
            kinds.push(kind);
        }
        kinds
    }

    /// The first message, if it is of this `kind` and complete.
    fn message(&self, kind: u8) -> Option<&[u8]> {
        let mut rest = self.bytes.as_slice();
        if number(&mut rest, 1)? != usize::from(kind) {
            return None;
        }
        let length = number(&mut rest, 3)?;
        take(&mut rest, length)
    }
}

/// Passes over a message and tells its type.
fn next(bytes: &mut &[u8]) -> Option<u8> {
    let kind = take(bytes, 1)?.first().copied();
    let length = number(bytes, 3)?;
    take(bytes, length)?;
    kind
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

/// A number of `width` bytes.
fn number(bytes: &mut &[u8], width: usize) -> Option<usize> {
    Some(take(bytes, width)?.iter().fold(0, |value, byte| value << 8 | usize::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn crypto(offset: u64, data: &[u8]) -> Crypto {
        Crypto { offset, data: Bytes::copy_from_slice(data) }
    }

    /// A message of `kind` around `body`.
    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        [&[kind, 0, 0, u8::try_from(body.len()).unwrap()], body].concat()
    }

    #[test]
    fn suites_are_read_from_pieces_in_any_order() {
        let body = [&[3, 3][..], &[7; 32], &[0], &[0, 4, 0x13, 0x03, 0x13, 0x01], &[1, 0]].concat();
        let hello = message(CLIENT_HELLO, &body);
        let mut messages = Messages::default();
        messages.add(&crypto(20, &hello[20..]));
        messages.add(&crypto(10, &hello[10..25]));
        assert_eq!(messages.cipher_suites(), None);
        messages.add(&crypto(0, &hello[..12]));
        assert_eq!(messages.cipher_suites(), Some(vec![0x1303, 0x1301]));
        assert_eq!(messages.server_parameters(), None);
    }

    #[test]
    fn parameters_are_found_among_other_extensions() {
        // initial_max_streams_bidi = 5, after an empty extension of another kind.
        let extensions = [&[0, 16, 0, 0][..], &[0, 0x39, 0, 3, 8, 1, 5]].concat();
        let body = [&[0, u8::try_from(extensions.len()).unwrap()][..], &extensions].concat();
        let mut messages = Messages::default();
        messages.add(&crypto(0, &message(ENCRYPTED_EXTENSIONS, &body)));
        assert_eq!(messages.server_parameters().unwrap().initial_max_streams_bidi, 5);
        assert_eq!(messages.kinds(), [ENCRYPTED_EXTENSIONS]);
    }

    #[test]
    fn what_is_cut_short_or_far_away_gives_nothing() {
        let mut messages = Messages::default();
        messages.add(&crypto(u64::MAX >> 2, b"far"));
        messages.add(&crypto(0, &[ENCRYPTED_EXTENSIONS, 0, 0, 2, 0xff, 0xff]));
        assert!(messages.server_parameters().is_none() && messages.ahead.is_empty());
    }
}
