//! The ranges of settings, which are checked before a connection has them.

use super::TransportConfig;
use crate::path::mtu::DatagramSizing;
use crate::wire::transport_parameters::{MAX_ACK_DELAY_LIMIT, MAX_STREAMS, MIN_UDP_PAYLOAD_SIZE};
use crate::wire::varint;
use std::ops::RangeInclusive;
use std::time::Duration;

/// Streams of a kind that a peer may open in all (RFC 9000 §4.6).
const STREAMS: RangeInclusive<u64> = 0..=MAX_STREAMS;
/// The values of a variable-length integer (RFC 9000 §16).
const VARINT: RangeInclusive<u64> = 0..=varint::MAX;
/// UDP payloads in bytes: the smallest that QUIC works with (RFC 9000 §14) and the largest (§18.2).
const PAYLOAD: RangeInclusive<u64> = MIN_UDP_PAYLOAD_SIZE..=65_527;
/// Segments of a batch.
const SEGMENTS: RangeInclusive<u64> = 1..=64;
/// Milliseconds that an acknowledgement may wait (RFC 9000 §18.2).
const ACK_DELAY: RangeInclusive<u64> = 0..=MAX_ACK_DELAY_LIMIT - 1;
/// Nanoseconds of timeouts and intervals, which are not zero.
const TIMER: RangeInclusive<u64> = 1..=u64::MAX;

/// A setting of a [`TransportConfig`] that is out of its range.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{setting} is {given} {unit}, which is not from {} to {}", range.start(), range.end())]
pub struct TransportConfigError {
    /// The name of the setting, such as `max_udp_payload`.
    pub setting: &'static str,
    /// Its value.
    pub given: u64,
    /// The values that make sense.
    pub range: RangeInclusive<u64>,
    /// The unit of the value and of the range, such as `bytes`.
    pub unit: &'static str,
}

/// A setting, its value, its range and the unit of both.
type Row = (&'static str, u64, RangeInclusive<u64>, &'static str);

impl TransportConfig {
    /// Checks that every setting is in its range. Connections are not begun otherwise, and servers not started.
    ///
    /// # Errors
    /// The first setting that is not.
    pub fn check(&self) -> Result<(), TransportConfigError> {
        let wrong = self.rows().into_iter().find(|(_, given, range, _)| !range.contains(given));
        wrong.map_or(Ok(()), |(setting, given, range, unit)| {
            Err(TransportConfigError { setting, given, range, unit })
        })
    }

    fn rows(&self) -> Vec<Row> {
        let streams = &self.streams;
        let size = match self.datagram_size {
            DatagramSizing::Fixed(size) => size,
            DatagramSizing::Discover { most } => most,
        };
        // A keep-alive that is off is like one that is in range.
        let keep_alive = |time: Option<Duration>| time.map_or(1, nanoseconds);
        // Whole milliseconds, rounded up: what is a little longer than the limit is beyond it.
        let ack_delay = nanoseconds(self.acknowledge.max_delay).div_ceil(1_000_000);
        vec![
            ("handshake_timeout", nanoseconds(self.handshake_timeout), TIMER, "ns"),
            ("validation_timeout", nanoseconds(self.validation_timeout), TIMER, "ns"),
            ("keep_alive", keep_alive(self.keep_alive), TIMER, "ns"),
            ("path_keep_alive", keep_alive(self.path_keep_alive), TIMER, "ns"),
            ("path_keep_alive_limit", keep_alive(self.path_keep_alive_limit), TIMER, "ns"),
            ("acknowledge.max_delay", ack_delay, ACK_DELAY, "ms"),
            ("streams.max_streams_bidi", streams.max_streams_bidi, STREAMS, "streams"),
            ("streams.max_streams_uni", streams.max_streams_uni, STREAMS, "streams"),
            ("streams.max_data", streams.max_data, VARINT, "bytes"),
            ("streams.stream_data_bidi_local", streams.stream_data_bidi_local, VARINT, "bytes"),
            ("streams.stream_data_bidi_remote", streams.stream_data_bidi_remote, VARINT, "bytes"),
            ("streams.stream_data_uni", streams.stream_data_uni, VARINT, "bytes"),
            ("streams.max_window", streams.max_window, VARINT, "bytes"),
            ("max_datagram_frame", self.max_datagram_frame, VARINT, "bytes"),
            ("max_udp_payload", self.max_udp_payload, PAYLOAD, "bytes"),
            ("datagram_size", size as u64, PAYLOAD, "bytes"),
            ("segments", self.segments as u64, SEGMENTS, "segments"),
        ]
    }
}

/// `time` in nanoseconds, at most 584 years.
fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::received::AckPolicy;
    use hvq_scheduler::Policy;
    use std::sync::Arc;

    type Change = fn(&mut TransportConfig);

    fn checked(change: Change) -> Result<(), TransportConfigError> {
        let mut config = TransportConfig::new(Arc::new(|| Policy::MinRtt.scheduler()));
        change(&mut config);
        config.check()
    }

    fn ack_delay(config: &mut TransportConfig, max_delay: Duration) {
        config.set_acknowledge(AckPolicy { max_delay, ..AckPolicy::default() });
    }

    #[test]
    fn the_defaults_and_the_ends_of_ranges_are_taken() {
        let cases: [Change; 7] = [
            |_| {},
            |config| _ = config.set_max_udp_payload(1_200).set_datagram_size(1_200.into()),
            |config| _ = config.set_max_udp_payload(65_527).set_datagram_size(65_527.into()),
            |config| _ = config.set_segments(1).set_max_datagram_frame(0),
            |config| ack_delay(config, Duration::from_millis((1 << 14) - 1)),
            |config| config.streams_mut().max_streams_uni = 1 << 60,
            |config| _ = config.set_idle_timeout(Duration::ZERO).set_keep_alive(Some(Duration::MAX)),
        ];
        for (number, change) in cases.into_iter().enumerate() {
            assert_eq!(checked(change), Ok(()), "case {number}");
        }
    }

    #[test]
    fn a_setting_that_makes_no_sense_is_named() {
        let cases: [(&str, Change); 17] = [
            ("handshake_timeout", |config| _ = config.set_handshake_timeout(Duration::ZERO)),
            ("validation_timeout", |config| _ = config.set_validation_timeout(Duration::ZERO)),
            ("keep_alive", |config| _ = config.set_keep_alive(Some(Duration::ZERO))),
            ("path_keep_alive", |config| _ = config.set_path_keep_alive(Some(Duration::ZERO))),
            ("path_keep_alive_limit", |config| _ = config.set_path_keep_alive_limit(Some(Duration::ZERO))),
            ("acknowledge.max_delay", |config| ack_delay(config, Duration::from_micros(16_383_001))),
            ("streams.max_streams_bidi", |config| config.streams_mut().max_streams_bidi = (1 << 60) + 1),
            ("streams.max_streams_uni", |config| config.streams_mut().max_streams_uni = u64::MAX),
            ("streams.max_data", |config| config.streams_mut().max_data = 1 << 62),
            ("streams.stream_data_bidi_local", |config| {
                config.streams_mut().stream_data_bidi_local = 1 << 62
            }),
            ("streams.stream_data_bidi_remote", |config| {
                config.streams_mut().stream_data_bidi_remote = 1 << 62
            }),
            ("streams.stream_data_uni", |config| config.streams_mut().stream_data_uni = 1 << 62),
            ("streams.max_window", |config| config.streams_mut().max_window = 1 << 62),
            ("max_datagram_frame", |config| _ = config.set_max_datagram_frame(1 << 62)),
            ("max_udp_payload", |config| _ = config.set_max_udp_payload(1_199)),
            ("datagram_size", |config| {
                config.set_datagram_size(DatagramSizing::Discover { most: 65_528 });
            }),
            ("segments", |config| _ = config.set_segments(65)),
        ];
        for (setting, change) in cases {
            assert_eq!(checked(change).map_err(|error| error.setting), Err(setting));
        }
        let error = checked(|config| _ = config.set_max_udp_payload(100)).unwrap_err();
        assert_eq!(error.to_string(), "max_udp_payload is 100 bytes, which is not from 1200 to 65527");
    }
}
