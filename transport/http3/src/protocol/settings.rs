//! The settings that an endpoint announces (RFC 9114 §7.2.4).

use crate::qpack;
use crate::web_transport::SessionLimits;
use hvq::transport::wire::varint;

/// The setting of WebTransport as it is in the current draft (draft-ietf-webtrans-http3-15 §9.2).
pub(super) const WT_ENABLED: u64 = 0x2c7c_f000;
/// The setting of drafts 7 to 12: the sessions that a connection may have at a time.
pub(super) const WT_MAX_SESSIONS: u64 = 0xc671_706a;
/// The setting of drafts 2 to 6.
pub(super) const ENABLE_WEBTRANSPORT: u64 = 0x2b60_3742;

/// The limits that each session has at its beginning (draft-ietf-webtrans-http3 §9.2).
pub(super) const WT_INITIAL_MAX_DATA: u64 = 0x2b61;
pub(super) const WT_INITIAL_MAX_STREAMS_UNI: u64 = 0x2b64;
pub(super) const WT_INITIAL_MAX_STREAMS_BIDI: u64 = 0x2b65;

/// Tells whether tunnels are taken: extended CONNECT (RFC 9220) and HTTP datagrams (RFC 9297).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Tunnels {
    /// No.
    #[default]
    None,
    /// Extended CONNECT alone, for protocols on its stream such as WebSocket.
    Streams,
    /// Yes.
    Taken,
    /// Yes, and WebTransport sessions ([`web_transport`](crate::web_transport)), whose streams and datagrams are handed to them:
    /// there is nothing to run beside.
    WebTransport,
}

/// The settings that an endpoint announces (RFC 9114 §7.2.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// The largest field section that is accepted, in bytes: names, values and 32 for each field (RFC 9114 §4.2.2).
    /// Default: 32 KiB.
    pub max_field_section_size: u64,
    /// The maximum number of encoded bytes that a connection may have sent of field sections that are not whole or not
    /// read yet, over all its requests. A request that goes beyond is reset with H3_REQUEST_REJECTED. Default: 512 KiB.
    pub max_unread_fields: u64,
    /// Acceptance of tunnels: extended CONNECT and HTTP datagrams. Default: none.
    pub tunnels: Tunnels,
    /// The limits of the peer in WebTransport sessions, if they are taken. Default: 16 of them, each with 16 MiB and 100 streams of each
    /// kind.
    pub sessions: SessionLimits,
    /// The dynamic table that the peer may fill, and the streams that it may block (RFC 9204 §5). Default: 4096 bytes, which take
    /// up to 16 KiB of the connection's account of memory once the peer sets a capacity, and 16 streams.
    pub qpack: qpack::Limits,
    /// The use of the table that the peer offers. Default: up to 4096 bytes, with no reference that could block a stream.
    pub encoder: qpack::Policy,
}

impl Default for Settings {
    /// Field sections of 32 KiB, 512 KiB of them unread, no tunnels, and dynamic tables of 4096 bytes.
    fn default() -> Self {
        Self {
            max_field_section_size: 32 << 10,
            max_unread_fields: 512 << 10,
            tunnels: Tunnels::None,
            sessions: SessionLimits::default(),
            qpack: qpack::Limits { max_table_capacity: 4096, max_blocked_streams: 16 },
            encoder: qpack::Policy::default(),
        }
    }
}

impl Settings {
    /// The beginning of the control stream: its type and SETTINGS. `chance` selects what is said only so that peers stay used
    /// to what they do not know (RFC 9114 §7.2.4.1, §7.2.8): a reserved setting, and a reserved frame behind.
    pub(super) fn stream(self, chance: u64) -> Vec<u8> {
        let [setting, value, kind, ..] = chance.to_be_bytes().map(u64::from);
        let mut payload = Vec::new();
        //= https://www.rfc-editor.org/rfc/rfc9114#section-7.2.4
        //= type=implication
        //= reason=Each is said once, and the reserved one is none of them.
        //# The same setting identifier MUST NOT occur more than once in the SETTINGS frame.
        let mut say = |identifier: u64, value: u64| {
            varint::put(&mut payload, identifier);
            varint::put(&mut payload, value);
        };
        //= https://www.rfc-editor.org/rfc/rfc9114#section-7.2.4.2
        //# The server MUST include all settings that differ from their default values.
        say(0x06, self.max_field_section_size.min(varint::MAX));
        if self.qpack.max_table_capacity > 0 {
            say(0x01, self.qpack.max_table_capacity.min(varint::MAX));
            say(0x07, self.qpack.max_blocked_streams.min(varint::MAX));
        }
        if self.tunnels != Tunnels::None {
            say(0x08, 1);
        }
        if matches!(self.tunnels, Tunnels::Taken | Tunnels::WebTransport) {
            say(0x33, 1);
        }
        if self.tunnels == Tunnels::WebTransport {
            // Draft-ietf-webtrans-http3 §7.1: each version that is spoken has an identifier.
            [WT_ENABLED, WT_MAX_SESSIONS, ENABLE_WEBTRANSPORT]
                .into_iter()
                .for_each(|version| say(version, 1));
            let SessionLimits { data, uni, bidi, .. } = self.sessions;
            let limits = [
                (WT_INITIAL_MAX_DATA, data),
                (WT_INITIAL_MAX_STREAMS_UNI, uni),
                (WT_INITIAL_MAX_STREAMS_BIDI, bidi),
            ];
            limits
                .into_iter()
                .filter(|(_, limit)| *limit > 0)
                .for_each(|(identifier, limit)| say(identifier, limit.min(varint::MAX)));
        }
        say(reserved(setting), value);
        let mut stream = vec![0x00, 0x04];
        varint::put(&mut stream, payload.len() as u64);
        stream.append(&mut payload);
        varint::put(&mut stream, reserved(kind));
        varint::put(&mut stream, 0);
        stream
    }
}

/// An identifier without a meaning.
const fn reserved(number: u64) -> u64 {
    0x1f * number + 0x21
}

#[cfg(test)]
mod tests {
    use super::*;

    //= https://www.rfc-editor.org/rfc/rfc9114#section-3.2
    //= type=test
    //# After the QUIC connection is established, a SETTINGS frame MUST be sent by each endpoint as the
    //# initial frame of their respective HTTP control stream.
    //= https://www.rfc-editor.org/rfc/rfc9114#section-6.2.1
    //= type=test
    //# Each side MUST initiate a single control stream at the beginning of the connection and send its
    //# SETTINGS frame as the first frame on this stream.
    //= https://www.rfc-editor.org/rfc/rfc9114#section-7.2.4.2
    //= type=test
    //# The server MUST include all settings that differ from their default values.
    //= https://www.rfc-editor.org/rfc/rfc9114#section-7.2.4
    //= type=test
    //# A SETTINGS frame MUST be sent as the first frame of each control stream (see Section 6.2.1) by each
    //# peer, and it MUST NOT be sent subsequently.
    #[test]
    fn settings_name_reserved_ones_and_a_reserved_frame_follows() {
        for (chance, said) in [
            (0, &[0x00, 0x04, 12, 0x06, 0x80, 0, 0x80, 0, 0x01, 0x50, 0, 0x07, 16, 0x21, 0][..]),
            (
                0x01_02_03 << 40,
                &[0x00, 0x04, 13, 0x06, 0x80, 0, 0x80, 0, 0x01, 0x50, 0, 0x07, 16, 0x40, 0x40, 2],
            ),
        ] {
            let frame: &[u8] = if chance == 0 { &[0x21, 0] } else { &[0x40, 0x7e, 0] };
            assert_eq!(Settings::default().stream(chance), [said, frame].concat());
        }
    }
}
