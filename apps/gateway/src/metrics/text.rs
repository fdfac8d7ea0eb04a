//! The text format of Prometheus, version 0.0.4.

use super::{CLASSES, Histogram, Metrics};
use crate::origin::OriginState;
use hvq::config::MemoryUse;
use hvq_program::quota::Shortage;
use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

/// One text of metrics.
struct Text(String);

impl Text {
    /// Begins a metric called `hvq_gateway_{name}`.
    fn begin(&mut self, name: &str, kind: &str, help: &str) {
        self.put(format_args!("# HELP hvq_gateway_{name} {help}\n# TYPE hvq_gateway_{name} {kind}\n"));
    }

    fn put(&mut self, text: fmt::Arguments<'_>) {
        self.0.write_fmt(text).expect("writing to a string does not fail");
    }

    fn single(&mut self, name: &str, kind: &str, help: &str, value: impl fmt::Display) {
        self.begin(name, kind, help);
        self.put(format_args!("hvq_gateway_{name} {value}\n"));
    }

    fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram) {
        self.begin(name, "histogram", help);
        let mut below = 0;
        for (end, count) in CLASSES.iter().zip(&histogram.classes) {
            below += count.load(Ordering::Relaxed);
            self.put(format_args!("hvq_gateway_{name}_bucket{{le=\"{end}\"}} {below}\n"));
        }
        let count = histogram.count.load(Ordering::Relaxed).max(below);
        let seconds = histogram.microseconds.load(Ordering::Relaxed) as f64 / 1e6;
        self.put(format_args!("hvq_gateway_{name}_bucket{{le=\"+Inf\"}} {count}\n"));
        self.put(format_args!("hvq_gateway_{name}_sum {seconds}\nhvq_gateway_{name}_count {count}\n"));
    }
}

impl Metrics {
    /// All of it as text, with the number of log lines that were dropped, who got no place or lost one, by what for, the memory that
    /// connections hold, and how origins do.
    pub(crate) fn text(
        &self,
        dropped_lines: u64,
        shortages: &[(&str, Shortage)],
        memory: &MemoryUse,
        origins: &BTreeMap<String, OriginState>,
    ) -> String {
        let mut text = Text(String::new());
        self.requests(&mut text);
        self.certificates_of(&mut text);
        self.failures(&mut text);
        text.single(
            "retries_total",
            "counter",
            "Requests that were tried again, mostly at another origin.",
            self.retries.load(Ordering::Relaxed),
        );
        standing(&mut text, origins);
        short(&mut text, shortages);
        self.traffic_of(&mut text);
        held(memory, &mut text);
        text.single(
            "log_lines_dropped_total",
            "counter",
            "Lines of the access log that the disk was too slow for.",
            dropped_lines,
        );
        text.0
    }

    fn requests(&self, text: &mut Text) {
        let load = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
        let gauge = |count: &std::sync::atomic::AtomicI64| count.load(Ordering::Relaxed);
        text.single("connections_total", "counter", "Connections accepted.", load(&self.connections));
        text.single("connections", "gauge", "Connections that exist.", gauge(&self.open_connections));
        text.single("requests", "gauge", "Requests under way.", gauge(&self.open_requests));
        text.single("tunnels", "gauge", "Tunnels that are open.", gauge(&self.open_tunnels));
        text.single("websockets_total", "counter", "WebSockets that were opened.", load(&self.websockets));
        text.single("websockets", "gauge", "WebSockets that are open.", gauge(&self.open_websockets));
        text.begin("requests_total", "counter", "Requests by the class of their status; none was answered.");
        for (class, count) in self.statuses.iter().enumerate().filter(|(class, _)| *class != 1) {
            let class = if class == 0 { "none".to_owned() } else { format!("{class}xx") };
            text.put(format_args!("hvq_gateway_requests_total{{status=\"{class}\"}} {}\n", load(count)));
        }
        text.begin("requests_by_protocol_total", "counter", "Requests by the protocol that they came by.");
        for (protocol, count) in ["http/1.1", "h2", "h3"].iter().zip(&self.protocols) {
            let count = load(count);
            text.put(format_args!(
                "hvq_gateway_requests_by_protocol_total{{protocol=\"{protocol}\"}} {count}\n"
            ));
        }
        text.begin("tcp_connections_total", "counter", "Connections over TCP by protocol.");
        for (protocol, count) in ["http/1.1", "h2"].iter().zip(&self.tcp) {
            let count = load(count);
            text.put(format_args!("hvq_gateway_tcp_connections_total{{protocol=\"{protocol}\"}} {count}\n"));
        }
        text.single("tcp_connections", "gauge", "Connections over TCP that exist.", gauge(&self.open_tcp));
        text.single(
            "tls_failures_total",
            "counter",
            "Handshakes over TCP that failed or took too long.",
            load(&self.tls_failed),
        );
        text.single("malformed_total", "counter", "Requests that were malformed.", load(&self.malformed));
        text.single(
            "denied_total",
            "counter",
            "Requests to go through the gateway that were denied.",
            load(&self.denied),
        );
        text.single(
            "body_sent_bytes_total",
            "counter",
            "Bytes of response bodies sent to clients.",
            load(&self.sent),
        );
        text.single(
            "body_received_bytes_total",
            "counter",
            "Bytes of request bodies that went on.",
            load(&self.received),
        );
        text.histogram("request_seconds", "From a request to the end of its response.", &self.total);
        text.histogram(
            "origin_seconds",
            "From a request to the head of the origin's response.",
            &self.origin,
        );
    }

    fn certificates_of(&self, text: &mut Text) {
        let help = "When a certificate expires, in seconds since the Unix epoch.";
        text.begin("certificate_expiry_timestamp_seconds", "gauge", help);
        for (name, expires) in self.certificates.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let name = escaped(name);
            text.put(format_args!(
                "hvq_gateway_certificate_expiry_timestamp_seconds{{name=\"{name}\"}} {expires}\n"
            ));
        }
    }

    fn failures(&self, text: &mut Text) {
        text.begin("origin_failures_total", "counter", "Origins that failed, by what went wrong.");
        for (kind, count) in self.failures.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            text.put(format_args!("hvq_gateway_origin_failures_total{{kind=\"{kind}\"}} {count}\n"));
        }
    }

    fn traffic_of(&self, text: &mut Text) {
        let sums = self.traffic().sums();
        text.begin("paths", "gauge", "Open paths by channel.");
        for (channel, count) in &sums.paths {
            text.put(format_args!("hvq_gateway_paths{{channel=\"{}\"}} {count}\n", escaped(channel)));
        }
        text.begin("channel_bytes_total", "counter", "Bytes of UDP payload by channel and direction.");
        for (channel, volume) in &sums.volumes {
            for (direction, bytes) in [("sent", volume.sent), ("received", volume.received)] {
                let channel = escaped(channel);
                text.put(format_args!(
                    "hvq_gateway_channel_bytes_total{{channel=\"{channel}\",direction=\"{direction}\"}} {bytes}\n"
                ));
            }
        }
        text.begin("packets_lost_total", "counter", "Packets declared lost by channel.");
        for (channel, volume) in &sums.volumes {
            let (channel, lost) = (escaped(channel), volume.lost);
            text.put(format_args!("hvq_gateway_packets_lost_total{{channel=\"{channel}\"}} {lost}\n"));
        }
        text.begin(
            "datagrams_dropped_total",
            "counter",
            "Datagrams that were not sent, or not taken, by why.",
        );
        let (datagrams, unread) = (&sums.datagrams, self.unread.load(Ordering::Relaxed));
        for (reason, count) in [
            ("too_large", datagrams.too_large),
            ("queue_full", datagrams.displaced),
            ("expired", datagrams.expired),
            ("lost", datagrams.lost),
            ("unread", datagrams.unread + unread),
        ] {
            text.put(format_args!("hvq_gateway_datagrams_dropped_total{{reason=\"{reason}\"}} {count}\n"));
        }
        text.begin("frames_total", "counter", "Frames by channel, kind and direction.");
        for ((channel, kind), frames) in &sums.frames {
            for (direction, count) in [("sent", frames.sent), ("received", frames.received)] {
                let channel = escaped(channel);
                text.put(format_args!(
                    "hvq_gateway_frames_total{{channel=\"{channel}\",kind=\"{kind}\",direction=\"{direction}\"}} {count}\n"
                ));
            }
        }
        text.begin("frame_bytes_total", "counter", "Bytes of frames sent by channel and kind.");
        for ((channel, kind), frames) in &sums.frames {
            let (channel, bytes) = (escaped(channel), frames.sent_bytes);
            text.put(format_args!(
                "hvq_gateway_frame_bytes_total{{channel=\"{channel}\",kind=\"{kind}\"}} {bytes}\n"
            ));
        }
    }
}

/// Writes how origins do.
fn standing(text: &mut Text, origins: &BTreeMap<String, OriginState>) {
    type Value = fn(&OriginState) -> u64;
    let rows: [(&str, &str, &str, Value); 3] = [
        ("origin_up", "gauge", "1 for an origin that gets requests, 0 for one that is ejected.", |state| {
            u64::from(state.is_up)
        }),
        ("origin_requests", "gauge", "Requests that an origin has under way.", |state| state.load as u64),
        ("origin_ejections_total", "counter", "Times that an origin was ejected.", |state| state.ejections),
    ];
    for (name, kind, help, value) in rows {
        text.begin(name, kind, help);
        for (origin, state) in origins {
            let (origin, value) = (escaped(origin), value(state));
            text.put(format_args!("hvq_gateway_{name}{{origin=\"{origin}\"}} {value}\n"));
        }
    }
}

/// Writes the counts of clients that got no place, and of those that lost one, while there were not enough.
fn short(text: &mut Text, shortages: &[(&str, Shortage)]) {
    let help =
        "What clients were refused because there were as many as there may be, and they held the most.";
    text.begin("refused_total", "counter", help);
    for (what, shortage) in shortages {
        text.put(format_args!("hvq_gateway_refused_total{{what=\"{what}\"}} {}\n", shortage.refused));
    }
    let help = "What clients that held the most lost to others.";
    text.begin("displaced_total", "counter", help);
    for (what, shortage) in shortages {
        text.put(format_args!("hvq_gateway_displaced_total{{what=\"{what}\"}} {}\n", shortage.displaced));
    }
}

/// Writes the memory that connections hold for their clients and origins.
fn held(memory: &MemoryUse, text: &mut Text) {
    let limit = "Bytes that connections may hold of what was not sent, acknowledged or read.";
    text.single("memory_limit_bytes", "gauge", limit, memory.limit);
    text.single("memory_held_bytes", "gauge", "Bytes that they hold of that.", memory.used);
    text.single("memory_holders", "gauge", "Connections that hold any.", memory.holders);
    let held_back = "Writes that were held back because memory was short.";
    text.single("memory_held_back_total", "counter", held_back, memory.held_back);
    let dropped = "Packets of clients that were dropped because memory was short.";
    text.single("memory_dropped_total", "counter", dropped, memory.dropped);
    let refused = "Connections closed because what they received lay unread while memory was short.";
    text.single("memory_refused_total", "counter", refused, memory.refused);
}

/// `text` as the value of a label.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn classes_of_durations_add_up() {
        let metrics = Metrics::default();
        for milliseconds in [1, 3, 3, 700, 60_000] {
            metrics.total.add(Duration::from_millis(milliseconds));
        }
        let memory = MemoryUse {
            limit: 100,
            used: 60,
            holders: 2,
            held_back: 5,
            dropped: 6,
            refused: 1,
            ..MemoryUse::default()
        };
        let text =
            metrics.text(7, &[("tunnel", Shortage { refused: 3, displaced: 4 })], &memory, &BTreeMap::new());
        for line in [
            "hvq_gateway_request_seconds_bucket{le=\"0.001\"} 1",
            "hvq_gateway_request_seconds_bucket{le=\"0.005\"} 3",
            "hvq_gateway_request_seconds_bucket{le=\"5\"} 4",
            "hvq_gateway_request_seconds_bucket{le=\"+Inf\"} 5",
            "hvq_gateway_request_seconds_sum 60.707",
            "hvq_gateway_log_lines_dropped_total 7",
            "hvq_gateway_refused_total{what=\"tunnel\"} 3",
            "hvq_gateway_displaced_total{what=\"tunnel\"} 4",
            "hvq_gateway_memory_limit_bytes 100",
            "hvq_gateway_memory_held_bytes 60",
            "hvq_gateway_memory_holders 2",
            "hvq_gateway_memory_held_back_total 5",
            "hvq_gateway_memory_dropped_total 6",
            "hvq_gateway_memory_refused_total 1",
        ] {
            assert!(text.lines().any(|present| present == line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn names_of_channels_cannot_end_a_label() {
        assert_eq!(escaped("a\"b\\c\nd"), "a\\\"b\\\\c\\nd");
    }
}
