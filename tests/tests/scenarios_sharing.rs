//! A narrow channel that many connections share.

use hvq_emulation::Direction;
use hvq_scheduler::{Bandwidth, Hints, Policy, Sharing};
use hvq_tests::net::Net;
use hvq_tests::net::wire::Wire;
use hvq_transport::connection::{ChannelHint, TransportConfig};
use hvq_transport::endpoint::{ConnectionHandle, NetworkPath};
use hvq_transport::stream::Direction::Bidirectional;
use std::sync::Arc;
use std::time::Duration;

const EMBB: &str = "rtt=40ms,rate=60mbit,queue=800p";
const URLLC: &str = "rtt=5ms,rate=2mbit,queue=800p";

fn config(local: std::net::SocketAddr, hints: Hints) -> Arc<TransportConfig> {
    let mut config = TransportConfig::new(Arc::new(|| Policy::Hvc.scheduler()));
    config.set_datagram_size(1452.into());
    config.add_channel(ChannelHint::new(local, hints));
    Arc::new(config)
}

/// Bytes that the client sends over URLLC to open a second path there.
fn bytes_to_open(hints: Hints) -> u64 {
    let urllc = Wire::addresses(1);
    let told = |local| TransportConfig::clone(&config(local, hints));
    let mut net = Net::new(told(urllc.local), told(urllc.remote), 1);
    let first = net.wire(EMBB);
    net.wire(URLLC);
    net.connect(first);
    net.run_for(Duration::from_secs(1));
    let now = net.now;
    net.client.connection().open_path(urllc, now).expect("the server has issued connection IDs");
    net.run_for(Duration::from_secs(1));
    net.wires[1].up.sent
}

#[test]
fn a_narrow_channel_is_opened_without_padding_but_what_the_rules_ask_for() {
    let promised = Hints { rate: Some(Bandwidth::from_mbit(2)), shared: Sharing::Endpoint, ..Hints::NONE };
    let (told, untold) = (bytes_to_open(promised), bytes_to_open(Hints::NONE));
    println!("{told} bytes, {untold} if nothing is known of the channel");
    // RFC 9000 §8.2.1, §8.2.2: a challenge and a response, 1200 bytes each; acknowledgements beside.
    assert!((2400..3000).contains(&told), "{told} bytes");
    assert!(untold >= 6000, "{untold} bytes");
}

/// The client's first addresses of connections that begin at the same time, beside one that knows both channels.
fn begun(embb: &str, connections: usize) -> [usize; 2] {
    let urllc = Wire::addresses(1);
    let promised = (Some(Bandwidth::from_mbit(2)), Some(Duration::from_micros(2500)));
    let hints = Hints { rate: promised.0, delay: promised.1, shared: Sharing::Endpoint, ..Hints::NONE };
    let told = |local| TransportConfig::clone(&config(local, hints));
    let mut net = Net::new(told(urllc.local), told(urllc.remote), 1);
    let first = net.wire(embb);
    net.wire(URLLC);
    net.connect(first);
    net.run_for(Duration::from_secs(1));
    let now = net.now;
    net.client.connection().open_path(urllc, now).expect("the server has issued connection IDs");
    net.run_for(Duration::from_secs(1));
    let mut begun = [0; 2];
    for _ in 0..connections {
        let hints = |local| net.client_config.transport().hints_for(local);
        let ways = [first, urllc].map(|tuple| NetworkPath { tuple, hints: hints(tuple.local) });
        let chosen = net.client.endpoint.first_network_path(&net.client_config, &ways, net.now);
        net.connect(ways[chosen].tuple);
        begun[chosen] += 1;
    }
    begun
}

#[test]
fn connections_begin_on_the_narrow_channel_as_long_as_that_is_quicker() {
    // There are keys after 25 ms over URLLC, and each handshake that is under way adds 32 ms. Five quarters of a delay are to spare.
    assert_eq!(begun("rtt=30ms,rate=60mbit", 10), [10, 0], "a packet crosses eMBB in 15 ms");
    assert_eq!(begun("rtt=60ms,rate=60mbit", 10), [9, 1], "in 30 ms");
    assert_eq!(begun("rtt=120ms,rate=60mbit", 10), [8, 2], "in 60 ms");
}

/// Returns the length of URLLC's queue when this number of connections of one client have each begun a request of 600
/// bytes at once.
fn queue_of_requests(connections: usize, shared: Sharing) -> Duration {
    let urllc = Wire::addresses(1);
    let promised = (Some(Bandwidth::from_mbit(2)), Some(Duration::from_micros(2500)));
    let hints = Hints { rate: promised.0, delay: promised.1, shared, ..Hints::NONE };
    let told = |local| TransportConfig::clone(&config(local, hints));
    let mut net = Net::new(told(urllc.local), told(urllc.remote), 1);
    let embb = net.wire(EMBB);
    net.wire(URLLC);
    let begin = |_| {
        let handle = net.connect(embb);
        net.run_for(Duration::from_millis(250));
        let now = net.now;
        net.client.connection().open_path(urllc, now).expect("the server has issued connection IDs");
        net.run_for(Duration::from_millis(250));
        handle
    };
    let handles: Vec<ConnectionHandle> = (0..connections).map(begin).collect();
    for handle in handles {
        let connection = net.client.endpoint.connection(handle).expect("it is still there");
        let id = connection.open(Bidirectional).expect("streams may be opened");
        assert_eq!(connection.write(id, &[7; 600]), Ok(600));
        connection.finish(id).expect("it was just opened");
    }
    net.run_for(Duration::ZERO);
    net.wires[1].channel.link(Direction::Up).queueing(net.elapsed())
}

#[test]
fn connections_of_one_endpoint_see_what_the_others_queue() {
    // Each takes URLLC 2.5 ms, and is worth that if it is alone there: a packet crosses eMBB in 20 ms.
    let apart = queue_of_requests(24, Sharing::Dedicated);
    let together = queue_of_requests(24, Sharing::Endpoint);
    println!("{apart:?} of requests queue on URLLC, {together:?} where connections share an account");
    assert!(apart > Duration::from_millis(55), "{apart:?}");
    // The bound of `Hvc`: what URLLC saves, over 1 + α. After a handshake eMBB is believed to have up to twice its delay.
    assert!((5..25).contains(&together.as_millis()), "{together:?}");
}
