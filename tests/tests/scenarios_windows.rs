//! Congestion windows grow if they are used, and only then.

use hvq_scheduler::Policy;
use hvq_tests::net::Net;
use hvq_transport::connection::TransportConfig;
use hvq_transport::stream::Direction;
use std::sync::Arc;
use std::time::Duration;

const CHANNEL: &str = "rtt=50ms,rate=60mbit,queue=800p";

fn window(net: &mut Net) -> usize {
    net.client.connection().stats().paths[0].window
}

/// The window before and after the client sends `bytes` on a connection that was idle, once they are acknowledged.
fn after_idling(bytes: usize) -> [usize; 2] {
    let config = || TransportConfig::new(Arc::new(|| Policy::Single(None).scheduler()));
    let mut net = Net::new(config(), config(), 1);
    let tuple = net.wire(CHANNEL);
    net.connect(tuple);
    net.run_for(Duration::from_secs(2));
    let before = window(&mut net);
    let connection = net.client.connection();
    let stream = connection.open(Direction::Bidirectional).expect("the server lets streams be opened");
    let written = connection.write_bytes(stream, vec![7; bytes].into()).expect("the stream is open");
    assert_eq!(written, bytes);
    net.run_for(Duration::from_millis(400));
    [before, window(&mut net)]
}

/// RFC 9002 §7.8: what counts is whether the window was used while the acknowledged packets were in flight.
#[test]
fn the_first_flight_after_an_idle_time_lets_the_window_grow_if_it_fills_it() {
    let [before, after] = after_idling(40_000);
    println!("{before} bytes, then {after}");
    // One window was acknowledged, and what it let go.
    assert!(after >= before + 24_000, "{before} bytes, then {after}");
}

#[test]
fn a_window_that_is_not_filled_stays_as_it_is() {
    for bytes in [1_000, 8_000] {
        let [before, after] = after_idling(bytes);
        assert_eq!(before, after, "{bytes} bytes");
    }
}

#[test]
fn a_window_grows_by_no_more_than_what_was_acknowledged() {
    for bytes in [20_000, 40_000] {
        let [before, after] = after_idling(bytes);
        // Headers beside the data.
        assert!(after <= before + bytes + bytes / 10, "{bytes} bytes: {before} bytes, then {after}");
    }
}
