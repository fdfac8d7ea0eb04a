//! Captures and key logs.

use hvq_decode::{Capture, Decoder, KeyLog, Summary, describe, json};
use std::time::Duration;

/// The first piece is the key log, the second the capture.
pub(crate) fn run(bytes: &[u8]) {
    let mut pieces = super::pieces(bytes);
    let (keys, file) = (pieces.next().unwrap_or_default(), pieces.next().unwrap_or_default());
    let keys = KeyLog::read(&String::from_utf8_lossy(keys));
    let Ok(mut capture) = Capture::open(file) else { return };
    let (mut decoder, mut summary) = (Decoder::new(keys), Summary::default());
    while let Ok(Some(datagram)) = capture.next_datagram() {
        for packet in decoder.decode(&datagram) {
            summary.add(&packet);
            let _ = (describe(&packet, Duration::ZERO), json(&packet));
        }
    }
    let _ = (summary.text(), summary.json(), capture.skipped());
}
