//! The QUIC bit varies exactly where both ends have it vary (RFC 9287).

use super::network::{Network, transport};
use crate::connection::{Event, Greasing, TransportConfig};
use crate::endpoint::tests::basics::read_all;
use crate::stream::Direction;
use crate::wire::header::FIXED;
use std::collections::HashMap;
use std::time::Duration;

const RTT: Duration = Duration::from_millis(40);

fn config(greasing: Greasing) -> TransportConfig {
    TransportConfig { greasing, ..transport() }
}

/// The counts of bits that were 0, and 1.
#[derive(Clone, Copy, Default, Debug)]
struct Count {
    clear: usize,
    set: usize,
}

/// The QUIC bits of a transfer's packets: of long headers, and of short ones by their first bytes of connection ID.
fn transfer(client: Greasing, server: Greasing) -> (Count, Vec<Count>) {
    let mut network = Network::new(config(client), config(server));
    let tuple = network.link(RTT / 2);
    let sent = network.record(0);
    let handle = network.connect(tuple);
    network.run_for(RTT * 3);
    assert!(network.client_events.contains(&(handle, Event::Confirmed)), "{:?}", network.client_events);
    let id = network.client(handle).open(Direction::Unidirectional).unwrap();
    let mut received = 0;
    for _ in 0..30 {
        network.client(handle).write(id, &[7; 10_000]).unwrap();
        network.run_for(RTT);
        received += read_all(&mut network, id).len();
    }
    assert_eq!(received, 300_000);
    let (mut long, mut short) = (Count::default(), HashMap::<Vec<u8>, Count>::new());
    for bytes in sent.borrow().iter() {
        let is_long = bytes[0] & 0x80 != 0;
        let count = if is_long { &mut long } else { short.entry(bytes[1..5].to_vec()).or_default() };
        match bytes[0] & FIXED {
            0 => count.clear += 1,
            _ => count.set += 1,
        }
    }
    (long, short.into_values().filter(|count| count.clear + count.set > 20).collect())
}

#[test]
fn the_bit_varies_in_both_directions_if_both_ends_have_it_vary() {
    let (_, short) = transfer(Greasing::On, Greasing::On);
    assert_eq!(short.len(), 2, "two connection IDs, one for each direction: {short:?}");
    for Count { clear, set } in short {
        assert!(clear * 4 > set && set * 4 > clear, "{clear} of {}", clear + set);
    }
}

#[test]
fn the_bit_is_set_unless_both_ends_have_it_vary() {
    for (client, server) in
        [(Greasing::On, Greasing::Off), (Greasing::Off, Greasing::On), (Greasing::Off, Greasing::Off)]
    {
        let (long, short) = transfer(client, server);
        assert_eq!(long.clear, 0, "{client:?} {server:?}");
        assert!(short.iter().all(|count| count.clear == 0), "{client:?} {server:?}: {short:?}");
    }
}

#[test]
fn a_client_sets_the_bit_until_it_heard_of_the_server() {
    // RFC 9287 §3.1: nothing is remembered of servers here, and a server cannot know before.
    for _ in 0..8 {
        let mut network = Network::new(transport(), transport());
        let tuple = network.link(RTT / 2);
        let sent = network.record(0);
        network.connect(tuple);
        network.run_for(RTT / 4);
        assert!(sent.borrow().iter().all(|bytes| bytes[0] & FIXED != 0));
    }
}

#[test]
fn the_first_packet_of_a_client_may_lack_the_bit_only_where_the_server_greases() {
    // RFC 9287 §3.1: a client may know from before that the server has the bit vary.
    for (greasing, connections) in [(Greasing::On, 1), (Greasing::Off, 0)] {
        let mut network = Network::new(transport(), config(greasing));
        let tuple = network.link(RTT / 2);
        let initial = super::forged::initial(&[1; 8], &[1]);
        let bytes = super::forged::sealed(&initial, |first| first & !FIXED);
        network.forge(tuple.local, &bytes);
        assert_eq!(network.server.handles().count(), connections, "{greasing:?}");
    }
}

#[test]
fn without_greasing_no_reserved_version_is_named() {
    for (greasing, reserved) in [(Greasing::On, 1), (Greasing::Off, 0)] {
        let mut network = Network::new(transport(), config(greasing));
        let tuple = network.link(RTT / 2);
        let sent = network.record(0);
        let mut unknown = vec![0xc0, 0x1a, 0x2a, 0x3a, 0x4a, 0, 0];
        unknown.resize(1200, 0);
        network.forge(tuple.local, &unknown);
        network.run_for(RTT);
        let answer = sent.borrow()[0].clone();
        let is_reserved = |version: &&[u8]| version.iter().all(|byte| byte & 0x0f == 0x0a);
        assert_eq!(answer[7..].chunks(4).filter(is_reserved).count(), reserved);
    }
}
