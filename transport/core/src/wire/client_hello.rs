//! The one thing that a server has to read in a ClientHello before TLS does: the client's transport parameters, which say
//! which versions of QUIC it could speak (RFC 8446 §4.1.2, RFC 9001 §8.2, RFC 9368 §2.3).

use super::cursor::{SliceReader, Truncated};

/// The handshake type of a ClientHello (RFC 8446 §4).
const CLIENT_HELLO: u8 = 1;
/// The extension quic_transport_parameters (RFC 9001 §8.2).
const QUIC_TRANSPORT_PARAMETERS: u16 = 0x39;
/// The longest ClientHello that is waited for, in bytes: what TLS accepts at most.
const LONGEST: usize = 16 * 1024;

/// The extent of a ClientHello: a part, or the whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extent {
    /// There is more to come.
    Partial,
    /// All of it, or something else, which TLS refuses.
    Whole,
}

/// Returns the extent of the ClientHello that starts with `bytes`.
pub fn extent(bytes: &[u8]) -> Extent {
    let Some((&kind, rest)) = bytes.split_first() else { return Extent::Partial };
    let Some(length) = rest.first_chunk::<3>() else { return Extent::Partial };
    let length = length.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
    if kind == CLIENT_HELLO && length <= LONGEST && rest.len() < 3 + length {
        Extent::Partial
    } else {
        Extent::Whole
    }
}

/// The client's transport parameters as it encoded them; `None` if it sent none or the message is damaged.
pub fn transport_parameters(hello: &[u8]) -> Option<&[u8]> {
    find(hello).ok().flatten()
}

fn find(hello: &[u8]) -> Result<Option<&[u8]>, Truncated> {
    let mut reader = SliceReader::new(hello);
    // Type and length of the message, legacy_version, random.
    reader.bytes(4 + 2 + 32)?;
    // legacy_session_id, cipher_suites, legacy_compression_methods.
    let session_id = reader.u8()?;
    reader.bytes(usize::from(session_id))?;
    let cipher_suites = reader.u16()?;
    reader.bytes(usize::from(cipher_suites))?;
    let compression_methods = reader.u8()?;
    reader.bytes(usize::from(compression_methods))?;
    let extensions = reader.u16()?;
    let mut reader = SliceReader::new(reader.bytes(usize::from(extensions))?);
    while !reader.is_empty() {
        let kind = reader.u16()?;
        let length = reader.u16()?;
        let data = reader.bytes(usize::from(length))?;
        if kind == QUIC_TRANSPORT_PARAMETERS {
            return Ok(Some(data));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crypto::vectors::hex;

    /// The ClientHello of RFC 9001 §A.2.
    fn hello() -> Vec<u8> {
        hex("010000ed0303ebf8fa56f12939b9584a3896472ec40bb863cfd3e86804fe3a47
             f06a2b69484c00000413011302010000c000000010000e00000b6578616d706c
             652e636f6dff01000100000a00080006001d0017001800100007000504616c70
             6e000500050100000000003300260024001d00209370b2c9caa47fbabaf4559f
             edba753de171fa71f50f1ce15d43e994ec74d748002b0003020304000d001000
             0e0403050306030203080408050806002d00020101001c000240010039003204
             08ffffffffffffffff05048000ffff07048000ffff0801100104800075300901
             100f088394c8f03e51570806048000ffff")
    }

    #[test]
    fn the_parameters_of_the_rfcs_example_are_found() {
        let found = transport_parameters(&hello()).unwrap().to_vec();
        assert_eq!((found.len(), &found[..4]), (0x32, &[0x04, 0x08, 0xff, 0xff][..]));
    }

    #[test]
    fn a_hello_is_partial_until_its_last_byte() {
        let hello = hello();
        for length in 0..hello.len() {
            assert_eq!(extent(&hello[..length]), Extent::Partial, "{length} bytes");
        }
        assert_eq!(extent(&hello), Extent::Whole);
    }

    #[test]
    fn what_tls_will_refuse_is_not_waited_for() {
        assert_eq!(extent(&[2, 0, 1, 0]), Extent::Whole);
        assert_eq!(extent(&[1, 0xff, 0xff, 0xff]), Extent::Whole);
    }

    #[test]
    fn damage_yields_nothing_and_no_panic() {
        let hello = hello();
        for length in 0..hello.len() - 10 {
            assert_eq!(transport_parameters(&hello[..length]), None, "{length} bytes");
        }
        for index in 0..hello.len() {
            let mut damaged = hello.clone();
            damaged[index] ^= 0xff;
            let _found = transport_parameters(&damaged);
        }
    }
}
