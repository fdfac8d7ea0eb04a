//! Tests of what an endpoint remembers of paths.

use super::*;
use proptest::prelude::*;

const HOUR: Duration = Duration::from_secs(3600);

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

fn key(remote: [u8; 4], role: Role) -> PathKey {
    PathKey::new(None, [192, 0, 2, 1].into(), remote.into(), role)
}

fn measured(window: u64, extent: WindowExtent, measured_at: Instant) -> PathKnowledge {
    PathKnowledge {
        rate: Some(Bandwidth::from_mbit(8)),
        bursts: 3,
        min_rtt: Duration::from_millis(40),
        smoothed_rtt: Duration::from_millis(45),
        window,
        loss: PerMille::new(7),
        extent,
        measured_at,
    }
}

#[test]
fn a_client_knows_servers_by_their_network_and_a_server_knows_clients_one_by_one() {
    assert_eq!(key([10, 0, 0, 1], Role::Client), key([10, 0, 0, 9], Role::Client));
    assert_ne!(key([10, 0, 0, 1], Role::Client), key([10, 0, 1, 1], Role::Client));
    assert_ne!(key([10, 0, 0, 1], Role::Server), key([10, 0, 0, 9], Role::Server));
    let six = |last: u16, role| {
        PathKey::new(None, [192, 0, 2, 1].into(), IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, last]), role)
    };
    assert_eq!(six(1, Role::Server), six(2, Role::Server), "a host has as many addresses as it likes");
}

#[test]
fn a_link_with_a_name_is_known_by_that_wherever_its_address_moves() {
    let of = |name: &str, local: u8| {
        PathKey::new(Some(&name.into()), [192, 0, 2, local].into(), [10, 0, 0, 1].into(), Role::Client)
    };
    assert_eq!(of("5g", 1), of("5g", 2));
    assert_ne!(of("5g", 1), of("wifi", 1));
    assert_eq!(of(&"é".repeat(40), 1), of(&"é".repeat(50), 1), "64 bytes of a name count");
}

#[test]
fn what_is_older_than_its_lifetime_is_forgotten() {
    let mut knowledge = Knowledge::default();
    let key = key([10, 0, 0, 1], Role::Client);
    knowledge.learn(&key, measured(100, WindowExtent::Whole, at(10)), HOUR);
    assert!(knowledge.get(&key, HOUR, at(10 + 3600)).is_some());
    assert_eq!(knowledge.get(&key, HOUR, at(11 + 3600)), None);
    assert_eq!(knowledge.len(), 0);
}

#[test]
fn a_connection_with_little_to_send_does_not_refute_a_larger_window_nor_make_it_younger() {
    let mut knowledge = Knowledge::default();
    let key = key([10, 0, 0, 1], Role::Client);
    let mut window = |newer: PathKnowledge| {
        knowledge.learn(&key, newer, HOUR);
        knowledge.get(&key, HOUR, newer.measured_at).map(|known| (known.window, known.measured_at))
    };
    assert_eq!(window(measured(100, WindowExtent::Whole, at(1))), Some((100, at(1))));
    assert_eq!(window(measured(50, WindowExtent::AtLeast, at(2))), Some((100, at(1))));
    assert_eq!(window(measured(120, WindowExtent::AtLeast, at(3))), Some((120, at(3))));
    assert_eq!(window(measured(60, WindowExtent::Whole, at(4))), Some((60, at(4))));
    assert_eq!(
        window(measured(30, WindowExtent::AtLeast, at(4000))),
        Some((30, at(4000))),
        "that is too old to count"
    );
}

#[test]
fn as_many_paths_as_peers_like_take_bounded_memory_and_the_least_used_gives_way() {
    let mut knowledge = Knowledge::default();
    let of = |n: u32| key((0x0a00_0000 + n).to_be_bytes(), Role::Server);
    for n in 0..4096 {
        knowledge.learn(&of(n), measured(100, WindowExtent::Whole, at(1)), HOUR);
    }
    knowledge.get(&of(0), HOUR, at(1));
    for n in 4096..6000 {
        knowledge.learn(&of(n), measured(100, WindowExtent::Whole, at(1)), HOUR);
    }
    assert_eq!((knowledge.len(), knowledge.uses.len()), (4096, 4096));
    assert!(knowledge.get(&of(0), HOUR, at(1)).is_some(), "it was used since");
    assert_eq!(knowledge.get(&of(1), HOUR, at(1)), None);
}

#[test]
fn the_account_of_a_path_is_that_of_all_who_use_it() {
    let mut knowledge = Knowledge::default();
    let key = key([10, 0, 0, 1], Role::Client);
    let claim = || Claim { key: key.clone(), bytes: 0 };
    let [mut one, mut other] = [claim(), claim()];
    knowledge.enter(&mut one, 100);
    knowledge.enter(&mut other, 30);
    assert_eq!(
        (knowledge.in_flight_beside(&key, one.bytes), knowledge.in_flight_beside(&key, 30)),
        (30, 100)
    );
    knowledge.enter(&mut one, 0);
    knowledge.enter(&mut other, 0);
    assert!(knowledge.in_flight.is_empty(), "nothing stays of connections that are gone");
}

fn filled() -> Knowledge {
    let mut knowledge = Knowledge::default();
    for n in 0..80 {
        let newer =
            PathKnowledge { rate: None, ..measured(1000 + u64::from(n), WindowExtent::AtLeast, at(5)) };
        knowledge.learn(&key([10, 0, n, 1], Role::Client), newer, HOUR);
    }
    let named = PathKey::new(Some(&"5g".into()), [0; 4].into(), IpAddr::from([7u8; 16]), Role::Server);
    knowledge.learn(&named, measured(77, WindowExtent::Whole, at(6)), HOUR);
    let six = PathKey::new(None, IpAddr::from([1u8; 16]), IpAddr::from([7u8; 16]), Role::Client);
    knowledge.learn(&six, measured(78, WindowExtent::Whole, at(6)), HOUR);
    knowledge
}

#[test]
fn the_paths_used_last_survive_storage() {
    let before = filled();
    let mut after = Knowledge::default();
    assert_eq!(after.add_bytes(&before.to_bytes(), at(6)), Some(64));
    let entries = |of: &Knowledge| of.entries().map(|(key, known)| (key.clone(), *known)).collect::<Vec<_>>();
    assert_eq!(entries(&after), entries(&before).split_off(18));
}

#[test]
fn what_is_damaged_of_another_version_of_the_future_or_impossible_is_not_taken() {
    let bytes = filled().to_bytes();
    let add = |bytes: &[u8], now| {
        let mut knowledge = Knowledge::default();
        (knowledge.add_bytes(bytes, now), knowledge.len())
    };
    for length in (0..bytes.len()).filter(|length| *length != 1) {
        let (added, known) = add(&bytes[..length], at(6));
        assert!(added.is_none_or(|added| added == known && known < 64), "{length}: {added:?}");
    }
    let mut other = bytes.clone();
    other[0] += 1;
    assert_eq!(add(&other, at(6)), (None, 0));
    assert_eq!(add(&bytes, at(5)), (Some(62), 62), "two are of the future");
    let mut knowledge = Knowledge::default();
    let absurd = PathKnowledge { min_rtt: Duration::ZERO, ..measured(5, WindowExtent::Whole, at(1)) };
    knowledge.learn(&key([10, 0, 0, 1], Role::Client), absurd, HOUR);
    assert_eq!(add(&knowledge.to_bytes(), at(6)), (Some(0), 0));
    assert_eq!(add(&[bytes.clone(), bytes[1..].to_vec()].concat(), at(6)), (None, 0), "too many");
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..400), now in any::<u64>()) {
        let mut knowledge = Knowledge::default();
        let framed = [&[1], &bytes[..]].concat();
        knowledge.add_bytes(&bytes, Instant::from_nanos(now));
        knowledge.add_bytes(&framed, Instant::from_nanos(now));
        prop_assert!(knowledge.len() <= 64);
    }
}
