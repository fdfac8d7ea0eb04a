//! The metrics of a gateway, for Prometheus: over all connections together, so that labels are few (J8).

mod text;
mod traffic;

use crate::access::Record;
use http::Version;
use hvq::tls::CertificateHolder;
use hvq::{ChannelOptions, Connection};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use traffic::Traffic;

/// Upper ends of the classes of durations, in seconds.
const CLASSES: [f64; 11] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0];

/// The metrics of a gateway.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    connections: AtomicU64,
    open_connections: AtomicI64,
    open_requests: AtomicI64,
    open_tunnels: AtomicI64,
    websockets: AtomicU64,
    open_websockets: AtomicI64,
    /// Connections over TCP: of HTTP/1.1, and of HTTP/2.
    tcp: [AtomicU64; 2],
    open_tcp: AtomicI64,
    /// Handshakes over TCP that failed.
    tls_failed: AtomicU64,
    /// Requests by protocol: HTTP/1.x, HTTP/2, HTTP/3.
    protocols: [AtomicU64; 3],
    retries: AtomicU64,
    malformed: AtomicU64,
    denied: AtomicU64,
    sent: AtomicU64,
    received: AtomicU64,
    /// HTTP datagrams that nobody took in time.
    unread: Arc<AtomicU64>,
    /// Requests by the first digit of their status; 0 counts those without a response.
    statuses: [AtomicU64; 6],
    total: Histogram,
    origin: Histogram,
    /// The certificates by their first names, and their expiry in seconds since the Unix epoch.
    certificates: Mutex<BTreeMap<String, u64>>,
    failures: Mutex<BTreeMap<&'static str, u64>>,
    traffic: Mutex<Traffic>,
}

/// Durations by class.
#[derive(Debug, Default)]
struct Histogram {
    classes: [AtomicU64; CLASSES.len()],
    count: AtomicU64,
    microseconds: AtomicU64,
}

impl Histogram {
    fn add(&self, duration: Duration) {
        if let Some(class) = CLASSES.iter().position(|end| duration.as_secs_f64() <= *end) {
            self.classes[class].fetch_add(1, Ordering::Relaxed);
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        let microseconds = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        self.microseconds.fetch_add(microseconds, Ordering::Relaxed);
    }
}

/// Something that is counted for as long as it lasts.
pub(crate) struct Lasting<'a>(&'a AtomicI64);

impl<'a> Lasting<'a> {
    fn new(gauge: &'a AtomicI64) -> Self {
        gauge.fetch_add(1, Ordering::Relaxed);
        Self(gauge)
    }
}

impl Drop for Lasting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A connection whose frames are counted, and stay counted once this is dropped.
pub(crate) struct Watched {
    metrics: Arc<Metrics>,
    number: u64,
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.metrics.open_connections.fetch_sub(1, Ordering::Relaxed);
        self.metrics.traffic().ended(self.number);
    }
}

impl Metrics {
    /// The channels whose names frames are counted by, in place of addresses.
    pub(crate) fn channels(&self, channels: &[ChannelOptions]) {
        self.traffic().name(channels);
    }

    /// The certificates that new connections are shown. Of several with the same first name, the one that expires first is told.
    pub(crate) fn certificates(&self, holders: &[CertificateHolder]) {
        let mut told = BTreeMap::new();
        for holder in holders {
            let name = holder.names.first().cloned().unwrap_or_default();
            let expires = told.entry(name).or_insert(u64::MAX);
            *expires = holder.expires.as_secs().min(*expires);
        }
        *self.certificates.lock().unwrap_or_else(PoisonError::into_inner) = told;
    }

    /// A connection begins, and lasts as long as the result.
    pub(crate) fn connection(self: &Arc<Self>, connection: &Connection) -> Watched {
        self.connections.fetch_add(1, Ordering::Relaxed);
        self.open_connections.fetch_add(1, Ordering::Relaxed);
        let number = self.traffic().begun(connection);
        Watched { metrics: self.clone(), number }
    }

    /// A connection over TCP begins, and lasts as long as the result.
    pub(crate) fn tcp_connection(&self, is_http2: bool) -> Lasting<'_> {
        self.tcp[usize::from(is_http2)].fetch_add(1, Ordering::Relaxed);
        Lasting::new(&self.open_tcp)
    }

    /// A handshake over TCP failed.
    pub(crate) fn tls_failed(&self) {
        self.tls_failed.fetch_add(1, Ordering::Relaxed);
    }

    /// A tunnel is open for as long as the result lasts.
    pub(crate) fn tunnel(&self) -> Lasting<'_> {
        Lasting::new(&self.open_tunnels)
    }

    /// A WebSocket is open for as long as the result lasts.
    pub(crate) fn websocket(&self) -> Lasting<'_> {
        self.websockets.fetch_add(1, Ordering::Relaxed);
        Lasting::new(&self.open_websockets)
    }

    /// A request begins.
    pub(crate) fn begun(&self) {
        self.open_requests.fetch_add(1, Ordering::Relaxed);
    }

    /// A request is over.
    pub(crate) fn ended(&self, record: &Record) {
        self.open_requests.fetch_sub(1, Ordering::Relaxed);
        let class = record.status.map_or(0, |status| usize::from(status.as_u16() / 100));
        if let Some(count) = self.statuses.get(class) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        let protocol = match record.version {
            Version::HTTP_3 => 2,
            Version::HTTP_2 => 1,
            _ => 0,
        };
        self.protocols[protocol].fetch_add(1, Ordering::Relaxed);
        self.sent.fetch_add(record.sent, Ordering::Relaxed);
        self.received.fetch_add(record.received, Ordering::Relaxed);
        self.total.add(record.total);
        if let Some(first_byte) = record.first_byte {
            self.origin.add(first_byte);
        }
    }

    /// The count of datagrams that requests did not take in time.
    pub(crate) fn unread(&self) -> Arc<AtomicU64> {
        self.unread.clone()
    }

    /// A request is tried again, mostly at another origin.
    pub(crate) fn retried(&self) {
        self.retries.fetch_add(1, Ordering::Relaxed);
    }

    /// A request was malformed.
    pub(crate) fn malformed(&self) {
        self.malformed.fetch_add(1, Ordering::Relaxed);
    }

    /// Somebody was not let through.
    pub(crate) fn denied(&self) {
        self.denied.fetch_add(1, Ordering::Relaxed);
    }

    /// An origin failed.
    pub(crate) fn origin_failed(&self, kind: &'static str) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        *failures.entry(kind).or_default() += 1;
    }

    fn traffic(&self) -> MutexGuard<'_, Traffic> {
        self.traffic.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
