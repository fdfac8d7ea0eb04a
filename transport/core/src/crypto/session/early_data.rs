//! 0-RTT in TLS: offering it, accepting it, and refusing what was sent before (RFC 8446 §8, RFC 9001 §4.6).

use super::callbacks::STATE;
use super::{BoringSession, TlsConfigError, check};
use crate::crypto::replay::ReplayGuard;
use crate::time::Instant;
use boring::ssl::{ClientHello, ExtensionType, SslRef};
use boring_sys as ffi;
use foreign_types::ForeignTypeRef;
use std::sync::Arc;

/// The setting of 0-RTT: tells whether data is sent or accepted before the handshake is complete. An attacker can
/// repeat it, on the network and at other servers, so that only what does no harm twice should be sent so (RFC 8446 §8,
/// RFC 9001 §9.2).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum EarlyData {
    /// Not.
    #[default]
    Off,
    /// Data goes early if a ticket permits it.
    On,
}

/// The state of 0-RTT.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum EarlyDataState {
    /// It was not offered, or the server has not decided to accept it.
    #[default]
    Unused,
    /// A client sends it and does not know whether the server accepts it.
    Offered,
    /// The server accepted it.
    Accepted,
    /// The server rejected it: the client sends everything again when the handshake is complete.
    Rejected,
}

impl BoringSession {
    /// Has a server accept 0-RTT, each ticket once. To be called before the first [`BoringSession::provide`].
    ///
    /// `context` stands for the limits that 0-RTT data relies on: tickets that were issued under other ones, or by
    /// another guard's server, do not open 0-RTT (RFC 9001 §4.6.1).
    pub(super) fn accept_early_data(
        &mut self,
        context: &[u8],
        guard: &Arc<ReplayGuard>,
        now: Instant,
    ) -> Result<(), TlsConfigError> {
        self.state().replay = Some((guard.clone(), now));
        let context = [&guard.identity()[..], context].concat();
        let pointer = self.ssl.as_ptr();
        // SAFETY: `ssl` is valid and has read nothing yet, and BoringSSL copies the context before it returns.
        check(unsafe {
            //= https://www.rfc-editor.org/rfc/rfc9001#section-4.6.1
            //= type=implication
            //= reason=BoringSSL writes 0xffffffff into the tickets of connections over QUIC.
            //# Servers MUST NOT send the early_data extension with a max_early_data_size field set to any
            //# value other than 0xffffffff
            ffi::SSL_set_early_data_enabled(pointer, 1);
            ffi::SSL_set_quic_early_data_context(pointer, context.as_ptr(), context.len())
        })
    }

    /// Has a client send 0-RTT if the ticket that it resumes permits it. To be called before [`BoringSession::start`].
    pub(super) fn offer_early_data(&mut self) {
        // SAFETY: `ssl` is valid.
        unsafe { ffi::SSL_set_early_data_enabled(self.ssl.as_ptr(), 1) };
    }

    /// Returns true if the server accepted 0-RTT. On a client only known once the server's flight arrived.
    pub(super) fn is_early_data_accepted(&self) -> bool {
        // SAFETY: `ssl` is valid.
        unsafe { ffi::SSL_early_data_accepted(self.ssl.as_ptr()) == 1 }
    }

    /// Goes on with a handshake whose 0-RTT the server rejected. Only after SSL_ERROR_EARLY_DATA_REJECTED.
    pub(super) fn forget_early_data(&mut self) {
        // SAFETY: `ssl` is valid, and the caller saw the error without which BoringSSL would abort here.
        unsafe { ffi::SSL_reset_early_data_reject(self.ssl.as_ptr()) };
    }
}

/// Before a server looks at a ClientHello: 0-RTT with a ticket that was used already, or of which that cannot be told, is
/// refused (RFC 8446 §8.1). The handshake goes on without it.
pub(super) fn refuse_replay(mut hello: ClientHello<'_>) {
    if hello.get_extension(ExtensionType::EARLY_DATA).is_none() {
        return;
    }
    let identity = hello.get_extension(ExtensionType::PRE_SHARED_KEY).and_then(first_identity);
    let guard = hello.ssl().ex_data(*STATE).and_then(|state| state.replay.as_ref());
    //= https://www.rfc-editor.org/rfc/rfc9001#section-9.2
    //# Endpoints MUST implement and use the replay protections described in [TLS13], however it is recognized
    //# that these protections are imperfect
    let admitted = identity.zip(guard).is_some_and(|(identity, (guard, now))| guard.admit(identity, *now));
    if !admitted {
        disable(hello.ssl_mut());
    }
}

fn disable(ssl: &mut SslRef) {
    // SAFETY: `ssl` is valid; BoringSSL permits this setting in the callback that it was passed to.
    unsafe { ffi::SSL_set_early_data_enabled(ssl.as_ptr(), 0) };
}

/// Permits 0-RTT again, whose setting a context took away in the callback that `ssl` was passed to.
pub(super) fn permit(ssl: &mut SslRef) {
    // SAFETY: `ssl` is valid; BoringSSL permits this setting in the callback that it was passed to.
    unsafe { ffi::SSL_set_early_data_enabled(ssl.as_ptr(), 1) };
}

/// The ticket in a pre_shared_key extension that 0-RTT belongs to: the first one (RFC 8446 §4.2.10, §4.2.11).
fn first_identity(extension: &[u8]) -> Option<&[u8]> {
    let (_, identities) = extension.split_first_chunk::<2>()?;
    let (length, rest) = identities.split_first_chunk::<2>()?;
    rest.get(..usize::from(u16::from_be_bytes(*length)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_identity_is_found_and_truncated_extensions_have_none() {
        let extension = [0, 9, 0, 3, b'a', b'b', b'c', 1, 2, 3, 4, 0, 33];
        assert_eq!(first_identity(&extension), Some(&b"abc"[..]));
        for length in 0..7 {
            assert_eq!(first_identity(&extension[..length]), None);
        }
    }
}
