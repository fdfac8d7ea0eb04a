//! Handshakes that lose packets: what is said again, when and how often (RFC 9002 §6.2.3, §6.2.4).

use super::network::{Network, transport};
use crate::connection::Event;
use crate::time::Instant;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

const RTT: Duration = Duration::from_millis(40);

/// Has the network lose what is sent between these times after now, and tells when what was sent, in bytes.
fn lose(network: &mut Network, from: Duration, to: Duration) -> Rc<RefCell<Vec<(Duration, usize)>>> {
    let (start, sent) = (network.now, Rc::new(RefCell::new(Vec::new())));
    let log = Rc::clone(&sent);
    network.links[0].drop = Box::new(move |now: Instant, bytes| {
        let at = now.since(start);
        log.borrow_mut().push((at, bytes.len()));
        (from..to).contains(&at)
    });
    sent
}

/// Returns the time that it takes until the server's handshake is complete.
fn time_to_connect(network: &mut Network) -> Option<Duration> {
    let start = network.now;
    for _ in 0..5_000 {
        if network.server_events.iter().any(|(_, event)| *event == Event::Connected) {
            return Some(network.now.since(start));
        }
        network.run_for(Duration::from_millis(1));
    }
    None
}

#[test]
fn a_client_that_hears_the_server_again_says_its_last_words_again_at_once() {
    let mut network = Network::new(transport(), transport());
    let tuple = network.link(RTT / 2);
    // Lost are the client's last flight and all its probes up to the server's first timeout, which is after a second,
    // for the server knows no round-trip time.
    lose(&mut network, RTT, Duration::from_secs(1));
    network.connect(tuple);
    let took = time_to_connect(&mut network);
    let (least, most) = (Duration::from_secs(1), Duration::from_millis(1_150));
    assert!(
        took.is_some_and(|took| (least..most).contains(&took)),
        "{took:?}: the client waited for its timeout"
    );
}

#[test]
fn a_probe_timeout_of_the_handshake_says_everything_twice() {
    let mut network = Network::new(transport(), transport());
    let tuple = network.link(RTT / 2);
    let sent = lose(&mut network, RTT, RTT * 2);
    network.connect(tuple);
    assert!(time_to_connect(&mut network).is_some_and(|took| took < RTT * 6));
    let (first, _) = *sent.borrow().iter().find(|(at, _)| *at >= RTT * 2).expect("a probe");
    let probes: Vec<usize> =
        sent.borrow().iter().filter(|(at, _)| *at == first).map(|(_, length)| *length).collect();
    assert!(matches!(probes.as_slice(), [one, other] if one == other), "{probes:?}");
}
