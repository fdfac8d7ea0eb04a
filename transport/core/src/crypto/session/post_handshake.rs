//! The TLS messages that may come once a handshake is complete, and their bounds.

use super::alert::UNEXPECTED_MESSAGE;
use crate::Role;
use crate::error::{ErrorCode, TransportError};

/// CRYPTO bytes that the peer may send after the handshake, over the whole connection: some hundred session tickets.
pub(super) const POST_HANDSHAKE_LIMIT: usize = 128 * 1024;
/// NewSessionTicket (RFC 8446 §4).
const NEW_SESSION_TICKET: u8 = 4;
/// CertificateRequest (RFC 8446 §4).
const CERTIFICATE_REQUEST: u8 = 13;
/// KeyUpdate (RFC 8446 §4).
const KEY_UPDATE: u8 = 24;
/// The type of a message and three bytes of length.
const HEADER: u8 = 4;

/// The progress of a session with its peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// The handshake is under way.
    Handshake,
    /// It is complete, and TLS reads what comes.
    Complete,
    /// It is complete, and TLS is gone: tickets are skipped, and nothing else is expected.
    Freed,
}

/// The messages of the peer, at all levels one after the other, seen from outside of TLS.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PostHandshake {
    messages: Messages,
    /// Bytes that came after the handshake.
    bytes: usize,
}

impl PostHandshake {
    /// Takes the next bytes that come to an endpoint of `role`.
    ///
    /// # Errors
    /// A message that QUIC forbids, or too much after the handshake.
    pub(crate) fn take(&mut self, data: &[u8], role: Role, stage: Stage) -> Result<(), TransportError> {
        if stage != Stage::Handshake {
            self.bytes = self.bytes.saturating_add(data.len());
            if self.bytes > POST_HANDSHAKE_LIMIT {
                let reason = "too much CRYPTO data after the handshake";
                return Err(ErrorCode::CRYPTO_BUFFER_EXCEEDED.because(reason));
            }
        }
        let mut outcome = Ok(());
        self.messages.take(data, |kind| {
            if outcome.is_ok() {
                outcome = check(kind, role, stage);
            }
        });
        outcome
    }
}

/// Checks that a message of `kind` may come.
fn check(kind: u8, role: Role, stage: Stage) -> Result<(), TransportError> {
    let unexpected = |reason| Err(ErrorCode::crypto(UNEXPECTED_MESSAGE).because(reason));
    match (kind, role, stage) {
        //= https://www.rfc-editor.org/rfc/rfc9001#section-6
        //# Endpoints MUST treat the receipt of a TLS KeyUpdate message as a connection error of type
        //# 0x010a, equivalent to a fatal TLS alert of unexpected_message; see Section 4.8.
        (KEY_UPDATE, _, _) => unexpected("unexpected message: KeyUpdate"),
        //= https://www.rfc-editor.org/rfc/rfc9001#section-4.4
        //# More specifically, servers MUST NOT send post- handshake TLS CertificateRequest messages, and
        //# clients MUST treat receipt of such messages as a connection error of type PROTOCOL_VIOLATION.
        (CERTIFICATE_REQUEST, Role::Client, Stage::Complete | Stage::Freed) => {
            let reason = "the server asked for a certificate after the handshake";
            Err(ErrorCode::PROTOCOL_VIOLATION.because(reason))
        }
        (_, _, Stage::Handshake | Stage::Complete) => Ok(()),
        (NEW_SESSION_TICKET, Role::Client, Stage::Freed) => Ok(()),
        (_, _, Stage::Freed) => unexpected("a TLS message after the handshake"),
    }
}

/// The progress of the messages: each may be cut anywhere.
#[derive(Clone, Copy, Debug, Default)]
struct Messages {
    /// Bytes of the header that are known.
    known: u8,
    /// The length, as far as it is known.
    length: u32,
    /// Bytes of the body that are missing.
    left: u32,
}

impl Messages {
    /// Takes the next bytes, and tells `begins` the type of each message that begins in them.
    fn take(&mut self, data: &[u8], mut begins: impl FnMut(u8)) {
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
            let mut messages = Messages::default();
            let (first, second) = bytes.split_at(cut);
            let found = [first, second].map(|part| {
                let mut kinds = Vec::new();
                messages.take(part, |kind| kinds.push(kind));
                kinds.contains(&CERTIFICATE_REQUEST)
            });
            assert_eq!(found, [cut > 7, cut <= 7], "{cut}");
        }
    }

    /// The code of the error that a message of `kind` is answered with.
    fn answer(kind: u8, role: Role, stage: Stage) -> Option<ErrorCode> {
        let message = [kind, 0, 0, 1, 7];
        PostHandshake::default().take(&message, role, stage).err().map(|error| error.code)
    }

    #[test]
    fn once_tls_is_gone_a_client_skips_tickets_and_expects_nothing_else() {
        let unexpected = Some(ErrorCode::crypto(UNEXPECTED_MESSAGE));
        let violation = Some(ErrorCode::PROTOCOL_VIOLATION);
        for stage in [Stage::Complete, Stage::Freed] {
            assert_eq!(answer(NEW_SESSION_TICKET, Role::Client, stage), None);
            assert_eq!(answer(CERTIFICATE_REQUEST, Role::Client, stage), violation);
            assert_eq!(answer(KEY_UPDATE, Role::Client, stage), unexpected);
        }
        assert_eq!(answer(CERTIFICATE_REQUEST, Role::Client, Stage::Handshake), None);
        assert_eq!(answer(11, Role::Client, Stage::Complete), None, "TLS itself refuses it");
        assert_eq!(answer(11, Role::Client, Stage::Freed), unexpected);
        assert_eq!(answer(NEW_SESSION_TICKET, Role::Server, Stage::Freed), unexpected);
    }

    #[test]
    fn bytes_after_the_handshake_are_bounded_together_and_those_of_it_are_not_counted() {
        let ticket = [&[NEW_SESSION_TICKET, 0, 1, 0][..], &[7; 256]].concat();
        for stage in [Stage::Complete, Stage::Freed] {
            let mut it = PostHandshake::default();
            for _ in 0..2 * POST_HANDSHAKE_LIMIT / ticket.len() {
                it.take(&ticket, Role::Client, Stage::Handshake).expect("not counted");
            }
            for _ in 0..POST_HANDSHAKE_LIMIT / ticket.len() {
                it.take(&ticket, Role::Client, stage).expect("within the limit");
            }
            let error = it.take(&ticket, Role::Client, stage).expect_err("more than the limit");
            assert_eq!(error.code, ErrorCode::CRYPTO_BUFFER_EXCEEDED);
        }
    }
}
