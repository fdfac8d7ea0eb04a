//! TLS alerts as errors of the connection, with a reason for people (RFC 9001 §4.8).

use crate::error::{ErrorCode, TransportError};
use boring::error::ErrorStack;
use boring::x509::X509VerifyError;
use boring_sys as ffi;
use std::borrow::Cow;

pub(super) const UNEXPECTED_MESSAGE: u8 = 10;
const ILLEGAL_PARAMETER: u8 = 47;
const INTERNAL_ERROR: u8 = 80;
const NO_APPLICATION_PROTOCOL: u8 = 120;

/// The name of a TLS alert (RFC 8446 §6), for the codes in CONNECTION_CLOSE frames too.
pub const fn alert_name(alert: u8) -> &'static str {
    match alert {
        0 => "close notify",
        UNEXPECTED_MESSAGE => "unexpected message",
        20 => "bad record MAC",
        22 => "record overflow",
        40 => "handshake failure",
        42 => "bad certificate",
        43 => "unsupported certificate",
        44 => "certificate revoked",
        45 => "certificate expired",
        46 => "certificate unknown",
        ILLEGAL_PARAMETER => "illegal parameter",
        48 => "unknown certificate authority",
        49 => "access denied",
        50 => "decode error",
        51 => "decrypt error",
        70 => "protocol version",
        71 => "insufficient security",
        INTERNAL_ERROR => "internal error",
        86 => "inappropriate fallback",
        90 => "user canceled",
        109 => "missing extension",
        110 => "unsupported extension",
        112 => "unrecognized name",
        113 => "bad certificate status response",
        115 => "unknown PSK identity",
        116 => "certificate required",
        NO_APPLICATION_PROTOCOL => "no application protocol",
        121 => "ECH required",
        _ => "unknown alert",
    }
}

/// The error of a handshake that failed with `alert`, `stack` being what BoringSSL says about it.
pub(super) fn failure(
    alert: Option<u8>,
    stack: &ErrorStack,
    verification: Result<(), X509VerifyError>,
) -> TransportError {
    if has_reason(stack, ffi::SSL_R_EXCESS_HANDSHAKE_DATA) {
        //= https://www.rfc-editor.org/rfc/rfc9001#section-4.1.3
        //# if there is data from a previous encryption level that TLS has not consumed, this MUST be treated as
        //# a connection error of type PROTOCOL_VIOLATION.
        return ErrorCode::PROTOCOL_VIOLATION.because("CRYPTO data behind the last message of its level");
    }
    if alert == Some(ILLEGAL_PARAMETER) && has_reason(stack, ffi::SSL_R_DECODE_ERROR) {
        // BoringSSL says both of a ticket whose max_early_data_size is not 0xffffffff.
        //= https://www.rfc-editor.org/rfc/rfc9001#section-4.6.1
        //# A client MUST treat receipt of a NewSessionTicket that contains an early_data extension with any
        //# other value as a connection error of type PROTOCOL_VIOLATION.
        return ErrorCode::PROTOCOL_VIOLATION.because("a ticket limits early data");
    }
    let alert = alert.unwrap_or(INTERNAL_ERROR);
    let reason = match verification {
        Err(error) if has_reason(stack, ffi::SSL_R_CERTIFICATE_VERIFY_FAILED) => {
            Cow::from(format!("certificate verify failed: {}", error.error_string()))
        }
        _ if alert == NO_APPLICATION_PROTOCOL || stack.errors().is_empty() => Cow::from(alert_name(alert)),
        _ => Cow::from(format!("{}: {}", alert_name(alert), describe(stack))),
    };
    ErrorCode::crypto(alert).because(reason)
}

/// The error of CRYPTO data that BoringSSL did not even take.
pub(super) fn refused(stack: &ErrorStack) -> TransportError {
    //= https://www.rfc-editor.org/rfc/rfc9001#section-4.1.3
    //# If the packet is from a previously installed encryption level, it MUST NOT contain data that extends
    //# past the end of previously received data in that flow
    //= https://www.rfc-editor.org/rfc/rfc9001#section-4.1.3
    //# Implementations MUST treat any violations of this requirement as a connection error of type
    //# PROTOCOL_VIOLATION.
    if has_reason(stack, ffi::SSL_R_WRONG_ENCRYPTION_LEVEL_RECEIVED) {
        // RFC 9001 §4.1.3.
        return ErrorCode::PROTOCOL_VIOLATION
            .because("CRYPTO data at an encryption level that is over or not begun");
    }
    if has_reason(stack, ffi::SSL_R_EXCESSIVE_MESSAGE_SIZE) {
        return ErrorCode::CRYPTO_BUFFER_EXCEEDED.because("a handshake message is too long");
    }
    ErrorCode::INTERNAL_ERROR.because(describe(stack))
}

/// BoringSSL's reasons in words.
pub(super) fn describe(stack: &ErrorStack) -> String {
    let words = |error: &boring::error::Error| {
        let reason = error.reason().or_else(|| error.library()).unwrap_or("unknown error");
        // Reasons are names of constants, such as NO_SHARED_CIPHER.
        if reason.contains(' ') { reason.to_owned() } else { reason.to_lowercase().replace('_', " ") }
    };
    let reasons: Vec<_> = stack.errors().iter().map(words).collect();
    if reasons.is_empty() { "unknown error".to_owned() } else { reasons.join(", ") }
}

fn has_reason(stack: &ErrorStack, reason: i32) -> bool {
    stack.errors().iter().any(|error| error.library_reason(ffi::ERR_LIB_SSL) == Some(reason))
}
