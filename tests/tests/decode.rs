//! A capture of two paths in virtual time, decoded, says what the connections themselves counted.

use hvq_decode::{Datagram, Decoder, KeyLog, Kind, Packet, PatientDecoder, Problem, Summary};
use hvq_scheduler::{PathId, Policy};
use hvq_tests::bulk::Download;
use hvq_tests::net::capture::Capture;
use hvq_tests::net::{Net, Side};
use hvq_transport::connection::{ConnectionStats, Role, TransportConfig};
use hvq_transport::crypto::session::{ClientTls, Verify};
use hvq_transport::wire::frame::Frame;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A capture and the secrets for it.
struct Recorded {
    pcap: Vec<u8>,
    keys: String,
    client: ConnectionStats,
    server: ConnectionStats,
}

/// Returns a recording of a client and a server that talk over two paths.
fn recorded() -> Recorded {
    let config = || TransportConfig::new(Arc::new(|| Policy::RoundRobin.scheduler()));
    let mut net = Net::new(config(), config(), 5);
    let keys = Arc::new(Mutex::new(String::new()));
    let log = keys.clone();
    let keylog = move |line: &str| {
        let mut log = log.lock().expect("nobody panicked");
        log.push_str(line);
        log.push('\n');
    };
    let tls = ClientTls::builder().alpn(["hvq"]).verify(Verify::Insecure).keylog(Box::new(keylog));
    // With such a key the ClientHello takes two datagrams.
    let tls = tls.curves("X25519MLKEM768:X25519");
    net.client_config.set_tls(tls.build().expect("the configuration is usable"));
    let first = net.wire("rtt=10ms,rate=20mbit");
    let second = net.wire("rtt=30ms,rate=20mbit");
    let pcap = Capture::of(&mut net, vec![first, second]);
    let mut download = Download::new(Some((second, hvq_scheduler::Hints::NONE)));
    net.connect(first);
    let until = net.now + Duration::from_secs(1);
    net.run(&mut download, until);
    let stats = |net: &mut Net, side| net.end(side).connection().stats();
    let (client, server) = (stats(&mut net, Side::Client), stats(&mut net, Side::Server));
    let keys = keys.lock().expect("nobody panicked").clone();
    Recorded { pcap: pcap.bytes(), keys, client, server }
}

fn datagrams(pcap: &[u8]) -> Vec<Datagram> {
    let mut capture = hvq_decode::Capture::open(pcap).expect("the header is right");
    std::iter::from_fn(|| capture.next_datagram().expect("every record is whole")).collect()
}

fn decode(pcap: &[u8], keys: &str) -> Vec<Packet> {
    let mut decoder = Decoder::new(KeyLog::read(keys));
    datagrams(pcap).iter().flat_map(|datagram| decoder.decode(datagram)).collect()
}

/// The same of a capture whose datagrams come out of order.
fn decode_patiently(datagrams: Vec<Datagram>, keys: &str) -> Vec<Packet> {
    let mut decoder = PatientDecoder::new(KeyLog::read(keys));
    let mut packets: Vec<_> = datagrams.into_iter().flat_map(|datagram| decoder.decode(datagram)).collect();
    packets.extend(decoder.finish());
    packets
}

/// Packets in the order of a capture that is in order: as they were captured, and as they lie in their datagram.
fn sorted(mut packets: Vec<Packet>) -> Vec<Packet> {
    packets.sort_by_key(|packet| {
        (packet.at, packet.sender != Some(Role::Client), packet.path, packet.kind, packet.number)
    });
    packets
}

#[test]
fn a_decoded_capture_holds_every_frame_that_the_connections_counted_on_every_path() {
    let recorded = recorded();
    let mut summary = Summary::default();
    let packets = decode(&recorded.pcap, &recorded.keys);
    packets.iter().for_each(|packet| summary.add(packet));
    assert_eq!(summary.problems(), []);
    assert!(packets.len() > 500, "{}", packets.len());
    let mut compared = 0;
    for (stats, role) in [(&recorded.client, Role::Client), (&recorded.server, Role::Server)] {
        for counter in stats.frames.iter().filter(|counter| counter.sent > 0 && counter.kind != "padding") {
            let row = summary.row(0, counter.path, role).unwrap_or_else(|| panic!("{counter:?}"));
            let found = row.frames.get(counter.kind).copied().unwrap_or_default();
            assert_eq!(found, (counter.sent, counter.sent_bytes), "{role:?} {counter:?}");
            compared += 1;
        }
        for path in &stats.paths {
            let row = summary.row(0, path.id, role).unwrap();
            assert_eq!(row.closed, 0);
            // A datagram of the handshake counts its bytes once, whatever packets are in it.
            assert_eq!(row.bytes, path.counters.bytes_sent, "{role:?} path {}", path.id);
        }
    }
    assert!(compared > 12, "{compared}");
    let on_second = |packet: &&Packet| packet.path == Some(PathId(1)) && packet.sender == Some(Role::Server);
    let streams = packets.iter().filter(on_second).flat_map(|packet| &packet.contents.frames);
    assert!(streams.filter(|frame| matches!(frame, Frame::Stream(_))).count() > 100);
}

#[test]
fn a_capture_whose_datagrams_are_shuffled_within_a_window_gives_the_same_packets() {
    let recorded = recorded();
    let expected = sorted(decode(&recorded.pcap, &recorded.keys));
    assert!(expected.iter().all(|packet| packet.contents.problem.is_none()));
    for (seed, window) in (0..5).flat_map(|seed| [3, 10, 40, 200].map(|window| (seed, window))) {
        let mut random = StdRng::seed_from_u64(seed);
        let mut shuffled: Vec<_> = datagrams(&recorded.pcap).into_iter().enumerate().collect();
        shuffled.sort_by_cached_key(|(index, _)| index + random.random_range(0..window));
        let shuffled = shuffled.into_iter().map(|(_, datagram)| datagram).collect();
        let packets = sorted(decode_patiently(shuffled, &recorded.keys));
        let differs = packets.iter().zip(&expected).find(|(one, other)| one != other);
        assert_eq!(differs, None, "seed {seed}, {window} datagrams");
        assert_eq!(packets.len(), expected.len(), "seed {seed}, {window} datagrams");
    }
}

#[test]
fn without_secrets_only_initial_packets_are_opened_and_the_reason_is_given() {
    let recorded = recorded();
    let packets = decode(&recorded.pcap, "");
    for packet in &packets {
        match packet.kind {
            Kind::Initial => assert_eq!(packet.contents.problem, None),
            Kind::Handshake => assert_eq!(packet.contents.problem, Some(Problem::NoSecrets)),
            _ => assert_eq!(packet.number, None),
        }
    }
    let lacks = recorded.keys.lines().filter(|line| !line.starts_with("SERVER_TRAFFIC_SECRET_0"));
    let packets = decode(&recorded.pcap, &lacks.collect::<Vec<_>>().join("\n"));
    let from_server = |packet: &&Packet| packet.kind == Kind::OneRtt && packet.sender == Some(Role::Server);
    let first = packets.iter().find(from_server).expect("the server sends");
    assert_eq!(first.contents.problem, Some(Problem::NoSecret));
}

#[test]
fn a_damaged_capture_is_decoded_as_far_as_it_goes_and_never_panics() {
    // attacks.md G: tools read what attackers wrote.
    let recorded = recorded();
    for seed in 0..40_usize {
        let mut pcap = recorded.pcap[..40_000.min(recorded.pcap.len())].to_vec();
        for step in 1..200 {
            let at = 24 + (seed * 7919 + step * 104_729) % (pcap.len() - 24);
            pcap[at] ^= u8::try_from(1 + (seed + step) % 255).unwrap();
        }
        let mut capture = hvq_decode::Capture::open(&pcap[..]).unwrap();
        let mut decoder = Decoder::new(KeyLog::read(&recorded.keys));
        while let Ok(Some(datagram)) = capture.next_datagram() {
            for packet in decoder.decode(&datagram) {
                let _line = hvq_decode::describe(&packet, Duration::ZERO);
                let _json = hvq_decode::json(&packet);
            }
        }
    }
}
