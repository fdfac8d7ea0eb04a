//! The metrics of the proxy, in the text format of Prometheus, version 0.0.4.

use hvq::stats::DatagramStats;
use std::fmt::Write;

/// The text about the `datagrams` of all connections to the gateway, the one that exists included.
pub(crate) fn text(datagrams: &DatagramStats) -> String {
    let mut text = String::from(
        "# HELP hvq_proxy_datagrams_dropped_total Datagrams that were not sent, or not taken, by why.\n\
         # TYPE hvq_proxy_datagrams_dropped_total counter\n",
    );
    for (reason, count) in [
        ("too_large", datagrams.too_large),
        ("queue_full", datagrams.displaced),
        ("expired", datagrams.expired),
        ("lost", datagrams.lost),
        ("unread", datagrams.unread),
    ] {
        writeln!(text, "hvq_proxy_datagrams_dropped_total{{reason=\"{reason}\"}} {count}")
            .expect("writing to a string does not fail");
    }
    text.push_str("# HELP hvq_proxy_datagrams_total Datagrams by direction.\n# TYPE hvq_proxy_datagrams_total counter\n");
    for (direction, count) in [("sent", datagrams.sent), ("received", datagrams.received)] {
        writeln!(text, "hvq_proxy_datagrams_total{{direction=\"{direction}\"}} {count}")
            .expect("writing to a string does not fail");
    }
    text
}
