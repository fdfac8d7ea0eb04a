//! Error codes of HTTP/3, of QPACK and of HTTP datagrams.

use std::fmt;

/// An error code, by which a stream is reset or a connection is closed (RFC 9114 §8.1, RFC 9204 §8.3, RFC 9297 §5.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Code(u64);

/// Each code with its name in the RFC, and the name as a text.
macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $value:literal,)*) => {
        impl Code {
            $($(#[$doc])* pub const $name: Self = Self($value);)*

            /// The code's name in the RFC; `None` for one that has none here.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some(stringify!($name)),)*
                    _ => None,
                }
            }
        }
    };
}

codes! {
    /// A datagram or capsule cannot be parsed (RFC 9297 §5.2).
    H3_DATAGRAM_ERROR = 0x33,
    /// No error: the stream or the connection is not needed any more.
    H3_NO_ERROR = 0x100,
    /// The peer violates the protocol in a way that has no code of its own.
    H3_GENERAL_PROTOCOL_ERROR = 0x101,
    /// An error within the HTTP stack.
    H3_INTERNAL_ERROR = 0x102,
    /// The peer opened a stream that is not accepted.
    H3_STREAM_CREATION_ERROR = 0x103,
    /// A stream ended that the connection needs.
    H3_CLOSED_CRITICAL_STREAM = 0x104,
    /// A frame is not permitted in this state or on this stream.
    H3_FRAME_UNEXPECTED = 0x105,
    /// A frame has a wrong layout or size.
    H3_FRAME_ERROR = 0x106,
    /// The peer may be there to generate load.
    H3_EXCESSIVE_LOAD = 0x107,
    /// An ID is used wrongly.
    H3_ID_ERROR = 0x108,
    /// An error in a SETTINGS frame.
    H3_SETTINGS_ERROR = 0x109,
    /// No SETTINGS frame at the beginning of the control stream.
    H3_MISSING_SETTINGS = 0x10a,
    /// A server refuses a request without having processed any of it.
    H3_REQUEST_REJECTED = 0x10b,
    /// A request or its response is given up.
    H3_REQUEST_CANCELLED = 0x10c,
    /// The stream of a request ended before the request was whole.
    H3_REQUEST_INCOMPLETE = 0x10d,
    /// A message is malformed and cannot be processed.
    H3_MESSAGE_ERROR = 0x10e,
    /// The connection that a CONNECT request asked for was reset or closed.
    H3_CONNECT_ERROR = 0x10f,
    /// The request cannot be served over HTTP/3: it should be made over HTTP/1.1.
    H3_VERSION_FALLBACK = 0x110,
    /// A stream came before its session, and too many did (draft-ietf-webtrans-http3 §4.6).
    WT_BUFFERED_STREAM_REJECTED = 0x3994_bd84,
    /// The WebTransport session of the stream has ended (draft-ietf-webtrans-http3 §6).
    WT_SESSION_GONE = 0x170d_7b68,
    /// A limit of a WebTransport session was not kept, or fell (draft-ietf-webtrans-http3 §5).
    WT_FLOW_CONTROL_ERROR = 0x045d_4487,
    /// The peer lacks what WebTransport needs (draft-ietf-webtrans-http3 §3.1).
    WT_REQUIREMENTS_NOT_MET = 0x212c_0d48,
    /// The application protocol of a WebTransport session is none that was offered (draft-ietf-webtrans-http3 §3.3).
    WT_ALPN_ERROR = 0x0817_b3dd,
    /// A field section cannot be decoded.
    QPACK_DECOMPRESSION_FAILED = 0x200,
    /// An instruction of the peer's encoder cannot be followed.
    QPACK_ENCODER_STREAM_ERROR = 0x201,
    /// An instruction of the peer's decoder cannot be followed.
    QPACK_DECODER_STREAM_ERROR = 0x202,
}

impl Code {
    /// The number on the wire.
    pub const fn value(self) -> u64 {
        self.0
    }
}

impl From<u64> for Code {
    fn from(value: u64) -> Self {
        Self(value)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "code {:#x}", self.0),
        }
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_the_numbers_of_the_registry() {
        // RFC 9114 §11.2.3 numbers its codes without a gap, RFC 9204 §8.3 likewise.
        for (first, last) in [(0x100, 0x110), (0x200, 0x202)] {
            assert!((first..=last).all(|number| Code::from(number).name().is_some()));
            assert_eq!((Code::from(first - 1).name(), Code::from(last + 1).name()), (None, None));
        }
        assert_eq!(Code::H3_VERSION_FALLBACK.value(), 0x110);
        assert_eq!(Code::QPACK_DECODER_STREAM_ERROR.to_string(), "QPACK_DECODER_STREAM_ERROR");
        assert_eq!(Code::from(0x1234).to_string(), "code 0x1234");
        assert_eq!(format!("{:?}", Code::H3_NO_ERROR), "H3_NO_ERROR");
    }
}
