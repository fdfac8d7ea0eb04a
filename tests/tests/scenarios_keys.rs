//! Keys wear out and are renewed while data flows on paths of very different delays (RFC 9001 §6, RFC 10069 §2.4, §2.5).

use hvq_emulation::Direction;
use hvq_scheduler::Policy;
use hvq_tests::net::{Fate, Net, Side};
use hvq_tests::transfer::Transfer;
use hvq_transport::connection::{Event, TransportConfig};
use hvq_transport::crypto::one_rtt::{AeadLimits, UpdateNotPermitted};
use hvq_transport::error::{ConnectionError, ErrorCode};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

const SLOW: &str = "rtt=60ms,rate=6mbit";
const FAST: &str = "rtt=6ms,rate=4mbit";
/// A channel so fast that keys wear out before they may be updated, if the limit is low.
const RAPID: &str = "rtt=60ms,rate=100mbit";

/// Datagrams, each with the number of its wire.
type Recording = Rc<RefCell<Vec<(usize, Vec<u8>)>>>;

fn config(limits: Option<AeadLimits>) -> TransportConfig {
    let mut config = TransportConfig::new(Arc::new(|| Policy::MinRtt.scheduler()));
    // Packets are counted below.
    config.set_aead_limits(limits).set_datagram_size(1200.into());
    config
}

/// Two paths, the second ten times slower than the first.
fn network(limits: Option<AeadLimits>, seed: u64) -> (Net, Transfer) {
    let mut net = Net::new(config(limits), config(limits), seed);
    let fast = net.wire(FAST);
    let slow = net.wire(SLOW);
    net.connect(fast);
    (net, Transfer::new(seed, 4, 2_000_000, vec![slow]))
}

fn limits(confidentiality: u64, integrity: u64) -> Option<AeadLimits> {
    Some(AeadLimits { confidentiality, integrity })
}

fn closed_by(net: &mut Net, side: Side, code: ErrorCode) -> bool {
    net.end(side).saw_any(|event| match event {
        Event::Closed(ConnectionError::Transport(error) | ConnectionError::PeerTransport(error)) => {
            error.code == code
        }
        _ => false,
    })
}

#[test]
fn key_updates_lose_no_packet_though_one_path_is_ten_times_slower() {
    // attacks G32.
    for seed in 0..8 {
        let (mut net, mut transfer) = network(None, seed);
        let mut updated = [0_u64; 2];
        while !net.run(&mut transfer, net.now + Duration::from_millis(15)) {
            assert!(net.elapsed() < Duration::from_secs(20), "{}\n{}", transfer.describe(), net.describe());
            let now = net.now;
            for side in Side::BOTH {
                let updater = if seed % 3 == 2 { side } else { Side::BOTH[(seed % 3) as usize] };
                if side == updater && net.end(side).get().is_some() {
                    updated[usize::from(side == Side::Server)] +=
                        u64::from(net.end(side).connection().update_keys(now).is_ok());
                }
            }
        }
        assert!(transfer.failure.is_none(), "{:?}", transfer.failure);
        assert!(updated.iter().sum::<u64>() >= 2, "updates {updated:?}");
        for side in Side::BOTH {
            let end = net.end(side).get().expect("it is open");
            assert!(end.key_updates() >= 2, "{side:?}: {}", end.key_updates());
            assert_eq!(end.stats().dropped, 0, "{side:?}, seed {seed}: {}", net.describe());
        }
    }
}

//= https://www.rfc-editor.org/rfc/rfc9001#section-6.1
//= type=test
//# An endpoint MUST NOT initiate a key update prior to having confirmed the handshake (Section 4.1.2)
#[test]
fn an_update_waits_for_the_handshake_and_for_the_one_before() {
    // RFC 9001 §6.1, §6.5; attacks F1.
    let (mut net, mut transfer) = network(None, 1);
    let now = net.now;
    assert_eq!(net.client.connection().update_keys(now), Err(UpdateNotPermitted::Unconfirmed));
    let now = now + Duration::from_millis(300);
    net.run(&mut transfer, now);
    assert_eq!(net.client.connection().update_keys(now), Ok(()));
    assert_eq!(net.client.connection().update_keys(now), Err(UpdateNotPermitted::Unacknowledged));
    let later = net.now + Duration::from_millis(250);
    net.run(&mut transfer, later);
    assert_eq!(net.client.connection().update_keys(later), Err(UpdateNotPermitted::TooSoon));
    assert_eq!(net.server.connection().key_updates(), 1);
}

//= https://www.rfc-editor.org/rfc/rfc9001#section-5.3
//= type=test
//# An endpoint MUST initiate a key update (Section 6) prior to exceeding any limit set for the AEAD that is
//# in use.
//= https://www.rfc-editor.org/rfc/rfc9001#section-6.6
//= type=test
//# Endpoints MUST initiate a key update before sending more protected packets than the confidentiality limit
//# for the selected AEAD permits
#[test]
fn keys_are_updated_before_the_packets_of_all_paths_together_reach_the_limit() {
    // RFC 9001 §6.6, attacks F3, G33.
    let (mut net, mut transfer) = network(limits(2400, 1 << 20), 3);
    let until = net.now + Duration::from_secs(20);
    assert!(net.run(&mut transfer, until) && transfer.failure.is_none(), "{}", net.describe());
    let end = net.server.get().expect("it is open");
    let paths = end.stats().paths;
    let sent: u64 = paths.iter().map(|path| path.counters.datagrams_sent).sum();
    assert!(paths.len() == 2 && paths.iter().all(|path| path.counters.datagrams_sent > 100));
    assert!(sent > 2000 && end.key_updates() >= 2, "{sent} packets, {} updates", end.key_updates());
}

//= https://www.rfc-editor.org/rfc/rfc9001#section-6.6
//= type=test
//# If the total number of encrypted packets with the same key exceeds the confidentiality limit for the
//# selected AEAD, the endpoint MUST stop using those keys
//= https://www.rfc-editor.org/rfc/rfc9001#section-6.6
//= type=test
//# If a key update is not possible or integrity limits are reached, the endpoint MUST stop using the
//# connection and only send stateless resets in response to receiving packets
#[test]
fn a_connection_whose_keys_wear_out_faster_than_they_may_be_updated_closes() {
    // RFC 9001 §6.6.
    let limits = limits(2048, 1 << 20);
    let mut net = Net::new(config(limits), config(limits), 4);
    let rapid = net.wire(RAPID);
    net.connect(rapid);
    let mut transfer = Transfer::new(4, 4, 2_000_000, Vec::new());
    let until = net.now + Duration::from_secs(20);
    net.run(&mut transfer, until);
    net.run_for(Duration::from_millis(500));
    let closed = Side::BOTH.map(|side| closed_by(&mut net, side, ErrorCode::AEAD_LIMIT_REACHED));
    assert_eq!(closed, [true; 2], "{}", net.describe());
}

/// Damaged copies of what the client sends over both paths reach the server.
fn forge(net: &mut Net, transfer: &mut Transfer, copies: usize) {
    let recording = Recording::default();
    let copy = Rc::clone(&recording);
    net.tap = Some(Box::new(move |wire, direction, bytes| {
        if direction == Direction::Up && bytes.first().is_some_and(|first| first & 0x80 == 0) {
            copy.borrow_mut().push((wire, bytes.to_vec()));
        }
        Fate::Pass
    }));
    let until = net.now + Duration::from_millis(300);
    net.run(transfer, until);
    for wire in 0..2 {
        let mut recorded =
            recording.borrow().iter().rev().find(|(on, _)| *on == wire).expect("it is used").1.clone();
        *recorded.last_mut().expect("it is not empty") ^= 1;
        for _ in 0..copies {
            let datagram = net.arriving(wire, Direction::Up, &recorded);
            net.inject(Side::Server, datagram);
        }
    }
    net.run_for(Duration::from_millis(200));
}

//= https://www.rfc-editor.org/rfc/rfc9001#section-6.6
//= type=test
//# across all keys, exceeds the integrity limit for the selected AEAD, the endpoint MUST immediately close
//# the connection with a connection error of type AEAD_LIMIT_REACHED and not process any more
#[test]
fn forged_packets_of_all_paths_together_end_the_connection_at_the_limit_and_not_before() {
    // RFC 9001 §6.6, attacks F3, G33.
    for (copies, ends) in [(49, false), (50, true)] {
        let (mut net, mut transfer) = network(limits(1 << 20, 100), 5);
        forge(&mut net, &mut transfer, copies);
        assert_eq!(closed_by(&mut net, Side::Server, ErrorCode::AEAD_LIMIT_REACHED), ends, "{copies}");
        assert_eq!(closed_by(&mut net, Side::Client, ErrorCode::AEAD_LIMIT_REACHED), ends, "{copies}");
    }
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-12.3
//= type=test
//# If the packet number for sending reaches 2^62-1, the sender MUST close the connection without sending a
//# CONNECTION_CLOSE frame or any further packets; an endpoint MAY send a Stateless Reset
#[test]
fn a_path_that_runs_out_of_packet_numbers_ends_the_connection_without_a_word() {
    // RFC 9000 §12.3, attacks F10.
    let client = config(None).set_last_packet_number(600).clone();
    let mut net = Net::new(client, config(None), 6);
    let tuple = net.wire(FAST);
    net.connect(tuple);
    let mut transfer = Transfer::new(6, 4, 2_000_000, Vec::new());
    let until = net.now + Duration::from_secs(5);
    net.run(&mut transfer, until);
    assert!(closed_by(&mut net, Side::Client, ErrorCode::AEAD_LIMIT_REACHED), "{}", net.describe());
    assert!(!net.server.saw_any(|event| matches!(event, Event::Closed(ConnectionError::PeerTransport(_)))));
    // RFC 9000 §12.3: no packet any more, but stateless resets to those that still arrive.
    let resets = net.client.endpoint.stats().stateless_resets;
    let sent = Rc::new(RefCell::new(0));
    let count = Rc::clone(&sent);
    net.tap = Some(Box::new(move |_, direction, _| {
        *count.borrow_mut() += u64::from(direction == Direction::Up);
        Fate::Pass
    }));
    net.run_for(Duration::from_secs(1));
    assert_eq!(*sent.borrow(), net.client.endpoint.stats().stateless_resets - resets);
}
