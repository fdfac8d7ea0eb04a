//! The sending rate, and the flight that it permits.

use crate::congestion::{Sample, initial_window, minimum_window};
use std::time::Duration;

/// Rates stay within these, in bits per second, so that arithmetic on them cannot overflow.
const LEAST_RATE: f64 = 8_000.0;
const MOST_RATE: f64 = 1e12;
/// Windows do not grow beyond this.
const LARGEST_WINDOW: f64 = (1u64 << 48) as f64;
/// Round trips' worth of data that may be in flight: only a path that stops answering reaches this.
const FLIGHT: f64 = 2.0;
/// Intervals last at least as long as so many packets take, or they would measure nothing; and no longer than this.
const LEAST_PACKETS: f64 = 10.0;
const LONGEST: f64 = 10.0;

/// The rate of a sender that has no window of its own.
#[derive(Clone, Debug)]
pub(super) struct SendingRate {
    datagram_size: usize,
    /// Bits per second, once a round trip was measured.
    rate: Option<f64>,
    window: usize,
    /// The smoothed round-trip time, but no more than the latest: after an outage it would be that of the outage for long.
    rtt: Duration,
    /// The average over all return paths, in proportion to what they carry: this bounds what is in flight.
    mixed_rtt: Duration,
    /// The round trip in seconds beyond which nothing more may be in flight, if there is one.
    longest: Option<f64>,
}

impl SendingRate {
    /// The initial window, and no rate yet.
    pub(super) fn new(datagram_size: usize) -> Self {
        Self {
            datagram_size,
            rate: None,
            window: initial_window(datagram_size),
            rtt: Duration::ZERO,
            mixed_rtt: Duration::ZERO,
            longest: None,
        }
    }

    /// Two datagrams and no rate, as after persistent congestion (RFC 9002 §7.6.2).
    pub(super) fn collapsed(&self) -> Self {
        let fresh = Self { rtt: self.rtt, ..Self::new(self.datagram_size) };
        Self { window: minimum_window(self.datagram_size), ..fresh }
    }

    /// The rate in bits per second, once a round trip was measured.
    pub(super) fn get(&self) -> Option<f64> {
        self.rate
    }

    /// Bytes that may be in flight.
    pub(super) fn window(&self) -> usize {
        self.window
    }

    /// The smoothed round-trip time, or the latest if that is shorter.
    pub(super) fn rtt(&self) -> Duration {
        self.rtt
    }

    /// The size of datagrams in bytes.
    pub(super) fn datagram_size(&self) -> usize {
        self.datagram_size
    }

    /// The length of an interval at `rate`: a round trip, and at least ten packets (§4.1).
    pub(super) fn interval(&self, rate: f64) -> Duration {
        let packets = self.datagram_size as f64 * 8.0 * LEAST_PACKETS / rate;
        Duration::from_secs_f64(self.seconds().max(packets).min(LONGEST))
    }

    /// Sends at `rate` bits per second, and at least two datagrams a round trip.
    pub(super) fn set(&mut self, rate: f64) {
        let least = minimum_window(self.datagram_size) as f64 * 8.0 / self.seconds();
        let rate = rate.max(least.min(MOST_RATE)).clamp(LEAST_RATE, MOST_RATE);
        self.rate = Some(rate);
        self.bound_flight(rate);
    }

    /// A round trip beyond `longest` seconds does not count for what may be in flight.
    pub(super) fn limit_flight(&mut self, longest: Option<f64>) {
        self.longest = longest;
    }

    /// Takes the round trip of `sample`; returns true once there is a rate.
    ///
    /// The first rate is an initial window for each round trip: of fewer packets an interval would last for many, and learn
    /// little. The rest of the window after persistent congestion grows until then as in slow start (RFC 9002 §7.3.1). The
    /// latest round trip counts, for the smoothed one may still be that of an outage.
    pub(super) fn on_sample(&mut self, sample: &Sample) -> bool {
        self.rtt = sample.rtt.map_or(sample.smoothed_rtt, |latest| latest.min(sample.smoothed_rtt));
        let rtt = sample.rtt.unwrap_or(self.mixed_rtt);
        self.mixed_rtt = self.mixed_rtt.mul_f64(0.875).saturating_add(rtt / 8);
        match (self.rate, sample.rtt) {
            (None, Some(rtt)) => self.find_first(rtt, sample.bytes),
            (None, None) => return false,
            (Some(rate), _) => self.bound_flight(rate),
        }
        true
    }

    /// Datagrams have `datagram_size` bytes from now on.
    pub(super) fn set_datagram_size(&mut self, datagram_size: usize) {
        self.datagram_size = datagram_size;
        self.set_window(self.window as f64);
    }

    fn seconds(&self) -> f64 {
        self.rtt.as_secs_f64().max(1e-6)
    }

    fn find_first(&mut self, rtt: Duration, acknowledged: usize) {
        let initial = initial_window(self.datagram_size);
        if self.window < initial {
            self.window = self.window.saturating_add(acknowledged).min(initial);
        }
        if self.window >= initial {
            self.set(initial as f64 * 8.0 / rtt.as_secs_f64().max(1e-6));
        }
    }

    fn bound_flight(&mut self, rate: f64) {
        let seconds = self.mixed_rtt.as_secs_f64().max(self.seconds());
        let seconds = self.longest.map_or(seconds, |longest| longest.min(seconds));
        self.set_window(rate * seconds / 8.0 * FLIGHT);
    }

    fn set_window(&mut self, window: f64) {
        let smallest = minimum_window(self.datagram_size);
        self.window = (window.min(LARGEST_WINDOW) as usize).max(smallest);
    }
}
