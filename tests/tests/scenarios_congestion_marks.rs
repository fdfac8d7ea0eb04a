//! Explicit congestion notification over queues that mark (RFC 9000 §13.4, RFC 9002 §7.1).

use hvq_emulation::{Direction as Way, DropReason};
use hvq_scheduler::{Hints, PathId, Policy};
use hvq_tests::bulk::Download;
use hvq_tests::net::Net;
use hvq_tests::net::wire::Marks;
use hvq_transport::connection::{EcnMarking, PathStats, TransportConfig};
use std::sync::Arc;
use std::time::Duration;

/// A bottleneck whose queue holds three times the product of its rate and delay.
const CHANNEL: &str = "rtt=20ms,rate=20mbit,queue=120p";
const SPAN: Duration = Duration::from_secs(10);

fn config(ecn: EcnMarking) -> TransportConfig {
    TransportConfig::new(Arc::new(|| Policy::MinRtt.scheduler())).set_ecn(ecn).clone()
}

/// A download over `channel`: the network, goodput in Mbit/s, and the server's view of its path.
fn run(ecn: EcnMarking, channel: &str, marks: Marks) -> (Net, f64, PathStats) {
    let mut net = Net::new(config(ecn), config(ecn), 1);
    let tuple = net.wire(channel);
    net.wires[0].marks = marks;
    net.connect(tuple);
    let mut download = Download::new(None);
    net.run(&mut download, Net::START + SPAN);
    let stats = net.server.connection().path_stats(PathId::ZERO).expect("path 0 is open");
    (net, download.goodput(SPAN) / 1e6, stats)
}

#[test]
fn a_queue_that_marks_loses_nothing_and_stays_short() {
    let marking = format!("{CHANNEL},ecn=30p");
    let (deaf_net, deaf, deaf_stats) = run(EcnMarking::Off, &marking, Marks::Kept);
    let (net, goodput, stats) = run(EcnMarking::Ect0, &marking, Marks::Kept);
    let dropped =
        |net: &Net| net.wires[0].channel.link(Way::Down).statistics().dropped(DropReason::Queue).packets;
    assert!(dropped(&deaf_net) > 0 && deaf_stats.counters.packets_lost > 0, "{}", deaf_net.describe());
    assert_eq!(deaf_stats.counters.marked, 0);
    assert_eq!(dropped(&net), 0, "{}", net.describe());
    assert_eq!(stats.counters.packets_lost, 0, "{}", net.describe());
    assert!(stats.counters.marked > 0);
    let most = net.wires[0].channel.link(Way::Down).statistics().most_queued_packets;
    assert!(most < 120, "{most} packets queued");
    assert!(goodput > 0.9 * deaf, "{goodput:.1} against {deaf:.1} Mbit/s");
}

#[test]
fn marks_work_in_every_packet_number_space_of_the_handshake() {
    // RFC 9000 §13.4.2: counts are per space; one that is judged against another's would fail the validation.
    let (mut net, _, stats) = run(EcnMarking::Ect0, "rtt=20ms,rate=20mbit,ecn=1p", Marks::Kept);
    assert!(stats.counters.marked > 100, "{}", net.describe());
    let client = net.client.connection().path_stats(PathId::ZERO).expect("path 0 is open");
    assert_eq!(client.counters.packets_lost, 0);
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-13.4.2.2
//= type=test
//# If validation fails, then the endpoint MUST disable ECN
#[test]
fn a_network_that_drops_or_clears_marks_is_used_without_them() {
    // RFC 9000 §13.4.2.
    for marks in [Marks::Dropped, Marks::Cleared] {
        let (net, goodput, stats) = run(EcnMarking::Ect0, CHANNEL, marks);
        assert!(goodput > 12.0, "{goodput:.1} Mbit/s with {marks:?}\n{}", net.describe());
        let marked = net.wires[0].marked;
        assert!((1..60).contains(&marked), "{marked} marked packets with {marks:?}");
        assert_eq!(stats.counters.marked, 0);
    }
}

#[test]
fn a_path_that_clears_marks_keeps_no_other_from_being_told_of_congestion() {
    let channel = format!("{CHANNEL},ecn=30p");
    let mut net = Net::new(config(EcnMarking::Ect0), config(EcnMarking::Ect0), 1);
    let (first, second) = (net.wire(&channel), net.wire(&channel));
    net.wires[1].marks = Marks::Cleared;
    net.connect(first);
    let mut download = Download::new(Some((second, Hints::NONE)));
    net.run(&mut download, Net::START + SPAN);
    let stats = [PathId(0), PathId(1)].map(|path| {
        let stats = net.server.connection().path_stats(path);
        stats.expect("the path is open").counters
    });
    // Path 0 is marked to the end, and slows down before anything is lost; path 1 gives marks up, and learns from losses.
    assert!(stats[0].marked > 0 && stats[0].packets_lost == 0, "{}", net.describe());
    assert!(net.wires[0].marked * 2 > stats[0].datagrams_sent, "{}", net.describe());
    assert_eq!(stats[1].marked, 0);
    assert!((1..60).contains(&net.wires[1].marked) && stats[1].packets_lost > 0, "{}", net.describe());
    assert!(download.goodput(SPAN) > 32e6, "{}", net.describe());
}
