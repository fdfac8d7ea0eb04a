//! Tests of the packets that may carry each frame.

use super::*;

/// RFC 9000 §12.4 table 3 (I, H, 0, 1), RFC 9221 §4 and RFC 10069 §4.
fn permitted_levels(frame_type: u64) -> &'static str {
    match frame_type {
        0x00 | 0x01 | 0x1c => "IH01",
        0x02 | 0x03 | 0x06 => "IH1",
        0x07 | 0x1b | 0x1e => "1",
        // Draft-ietf-quic-ack-frequency-14 §3.
        0x1f | 0xaf => "1",
        0x3e | 0x3f | 0x3e75..=0x3e7c | 0x2c9f_13a7 => "1",
        _ => "01",
    }
}

//= https://www.rfc-editor.org/rfc/rfc10069#section-4
//= type=test
//# If an endpoint receives a multipath-specific frame in a different packet type, it MUST close the
//# connection with an error of type PROTOCOL_VIOLATION.
//= https://www.rfc-editor.org/rfc/rfc9000#section-12.4
//= type=test
//# An endpoint MUST treat receipt of a frame in a packet type that is not permitted as a connection error of
//# type PROTOCOL_VIOLATION.
//= https://www.rfc-editor.org/rfc/rfc9000#section-17.2.4
//= type=test
//# Endpoints MUST treat receipt of Handshake packets with other frames as a connection error of type
//# PROTOCOL_VIOLATION.
//= https://www.rfc-editor.org/rfc/rfc9221#section-5
//= type=test
//# Like STREAM frames, DATAGRAM frames contain application data and MUST be protected with either 0-RTT or
//# 1-RTT keys.
//= https://www.rfc-editor.org/rfc/rfc9221#section-6
//= type=test
//# All application data transmitted with the DATAGRAM frame, like the STREAM frame, MUST be protected either
//# by 0-RTT or 1-RTT keys.
#[test]
fn a_frame_is_permitted_exactly_where_the_table_says() {
    let levels =
        [('I', Level::Initial), ('H', Level::Handshake), ('0', Level::ZeroRtt), ('1', Level::OneRtt)];
    let mut cells = 0;
    for (frame_type, frame) in every_frame() {
        for (letter, level) in levels {
            let expected = permitted_levels(frame_type).contains(letter);
            assert_eq!(frame.permitted_in(level), expected, "{} in {level:?}", frame.kind());
            cells += 1;
        }
    }
    assert_eq!(cells, 42 * 4);
}
