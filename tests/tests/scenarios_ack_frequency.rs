//! Fewer acknowledgements where windows are large (draft-ietf-quic-ack-frequency-14).

use hvq_scheduler::{PathId, Policy};
use hvq_tests::bulk::Download;
use hvq_tests::net::{Net, Side};
use hvq_transport::connection::{AckRequests, TransportConfig};
use std::sync::Arc;
use std::time::Duration;

const SPAN: Duration = Duration::from_secs(5);

fn config(ack_requests: AckRequests) -> TransportConfig {
    TransportConfig::new(Arc::new(|| Policy::MinRtt.scheduler())).set_ack_requests(ack_requests).clone()
}

/// A download over `channel`: goodput in Mbit/s, datagrams of the client, and packets that it received.
fn download(channel: &str, client: AckRequests, server: AckRequests) -> (f64, u64, u64) {
    let mut net = Net::new(config(client), config(server), 1);
    let tuple = net.wire(channel);
    net.connect(tuple);
    let mut download = Download::new(None);
    net.run(&mut download, Net::START + SPAN);
    let asked = net.server.connection().stats().frames.iter().any(|frame| frame.kind == "ack_frequency");
    assert!(!asked || client == AckRequests::Exchanged, "nobody is asked who does not take part");
    let counters =
        net.end(Side::Client).connection().path_stats(PathId::ZERO).expect("path 0 is open").counters;
    (download.goodput(SPAN) / 1e6, counters.datagrams_sent, counters.packets_received)
}

#[test]
fn a_fast_download_takes_less_than_half_of_the_acknowledgements_and_is_as_fast() {
    let channel = "rtt=50ms,rate=60mbit,queue=800p";
    let (usual, many, _) = download(channel, AckRequests::Off, AckRequests::Off);
    let (goodput, few, received) = download(channel, AckRequests::Exchanged, AckRequests::Exchanged);
    println!("{few} instead of {many} datagrams for {received} packets, {goodput:.2} and {usual:.2} Mbit/s");
    assert!(few * 2 < many, "{few} instead of {many}");
    assert!(goodput > 0.98 * usual, "{goodput:.2} instead of {usual:.2} Mbit/s");
}

#[test]
fn a_slow_download_is_acknowledged_as_ever() {
    let channel = "rtt=20ms,rate=2mbit,queue=20p";
    let (usual, many, _) = download(channel, AckRequests::Exchanged, AckRequests::Off);
    let (goodput, few, _) = download(channel, AckRequests::Exchanged, AckRequests::Exchanged);
    assert!(few * 10 > many * 8, "{few} instead of {many} datagrams");
    assert!(goodput > 0.98 * usual, "{goodput:.2} instead of {usual:.2} Mbit/s");
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-19.21
//= type=test
//# An extension to QUIC that wishes to use a new type of frame MUST first ensure that a peer is able to
//# understand the frame
#[test]
fn one_end_alone_changes_nothing() {
    for (client, server) in
        [(AckRequests::Off, AckRequests::Exchanged), (AckRequests::Exchanged, AckRequests::Off)]
    {
        let (goodput, sent, received) = download("rtt=50ms,rate=60mbit,queue=800p", client, server);
        assert!(goodput > 40.0 && sent * 10 > received * 4, "{sent} datagrams for {received} packets");
        assert!(sent <= received + 50, "attacks.md C12: at most one acknowledgement a packet");
    }
}
