//! Tests of a program's choices: versions, admission of clients, the first way, the addresses of paths; and of their
//! readers.

use crate::pair::c::{address, filled};
use crate::talk::{Talk, route};
use hvq_ffi::address::{hvq_address, hvq_route};
use hvq_ffi::admission::*;
use hvq_ffi::config::*;
use hvq_ffi::connection::*;
use hvq_ffi::counters::*;
use hvq_ffi::endpoint::*;
use hvq_ffi::error::*;
use hvq_ffi::output::*;
use hvq_ffi::path::*;
use hvq_ffi::scheduler::*;
use hvq_ffi::stream::*;
use hvq_ffi::tls::*;
use std::ffi::{CStr, c_char, c_void};
use std::mem::{MaybeUninit, size_of};
use std::ptr;

fn text(array: &[c_char]) -> String {
    array.iter().take_while(|byte| **byte != 0).map(|byte| char::from(*byte as u8)).collect()
}

#[test]
fn both_versions_of_quic_are_spoken_as_the_ends_prefer() {
    let (second, both) = ([HVQ_QUIC_2], [HVQ_QUIC_2, HVQ_QUIC_1]);
    let set = |transport: &mut hvq_transport_config, list: &[u32]| {
        (transport.versions, transport.version_count) = (list.as_ptr(), list.len());
    };
    // The client's choice; the server's; a client that must begin again (RFC 9000 §6.2); one that begins with the second.
    for case in 0..4 {
        let mut talk = Talk::with(|choices| {
            let mut server = choices.transport;
            match case {
                0 => set(&mut choices.transport, &second),
                1 => {
                    set(&mut server, &both);
                    server.choose_version = 1;
                }
                2 => set(&mut server, &second),
                _ => choices.transport.first_version = HVQ_QUIC_2,
            }
            choices.server_transport = Some(server);
        });
        talk.exchange(50);
        assert_eq!(talk.infos().map(|info| info.version), [HVQ_QUIC_2; 2], "{case}");
        let mut counters = hvq_endpoint_statistics::default();
        // SAFETY: the endpoint is ours, and so is the struct.
        assert_eq!(unsafe { hvq_endpoint_get_statistics(talk.server, &mut counters) }, HVQ_OK);
        assert_eq!(counters.version_negotiations > 0, case == 2);
    }
}

/// Returns the result of making a client's configuration with this transport.
fn made_with(change: impl FnOnce(&mut hvq_transport_config)) -> hvq_result {
    let mut transport: hvq_transport_config = filled(hvq_transport_config_init);
    change(&mut transport);
    let mut options: hvq_client_options = filled(hvq_client_options_init);
    let protocols = [c"test".as_ptr()];
    (options.alpn, options.alpn_count, options.insecure) = (protocols.as_ptr(), 1, 1);
    options.transport = &transport;
    let mut config = ptr::null_mut();
    // SAFETY: everything that is pointed to is above.
    unsafe {
        let result = hvq_client_config_new(&options, &mut config);
        assert_eq!(result == HVQ_OK, !config.is_null());
        hvq_client_config_free(config);
        result
    }
}

#[test]
fn settings_without_a_meaning_are_refused() {
    assert_eq!(made_with(|_| {}), HVQ_OK);
    let numbers = [HVQ_QUIC_1, HVQ_QUIC_1, 7];
    let ipv6 = hvq_address { family: 6, port: 1, ..hvq_address::default() };
    let wrong: [fn(&mut hvq_transport_config); 23] = [
        |config| config.first_version = 7,
        |config| config.choose_version = 2,
        |config| config.version_count = 1 << 40,
        |config| config.preferred_ipv6 = address(1),
        |config| config.preferred_ipv4.family = 5,
        |config| config.follow_preferred = 2,
        |config| config.spin_bit = 2,
        |config| config.ack_requests = 2,
        |config| config.path_hints = 2,
        |config| config.opening_datagrams = 256,
        |config| config.ack_delay = (1 << 14) * 1_000_000,
        |config| config.max_udp_payload = 1199,
        |config| config.max_udp_payload = 65_528,
        |config| config.paths = 65,
        |config| config.fixed_datagram_size = 1199,
        |config| config.max_datagram_size = 1199,
        |config| config.segments = 0,
        |config| config.segments = 65,
        |config| config.ecn = 2,
        |config| config.grease = 2,
        |config| config.migration = 2,
        |config| config.max_data = 1 << 62,
        |config| config.max_streams_uni = (1 << 60) + 1,
    ];
    for (index, change) in wrong.into_iter().enumerate() {
        let expected = if index == 2 { HVQ_ERR_NULL } else { HVQ_ERR_ARGUMENT };
        assert_eq!(made_with(change), expected, "{index}");
    }
    for count in [2, 3] {
        let twice = |config: &mut hvq_transport_config| {
            (config.versions, config.version_count) = (numbers.as_ptr(), count);
        };
        assert_eq!(made_with(twice), HVQ_ERR_ARGUMENT);
    }
    assert_eq!(made_with(|config| config.preferred_ipv4 = ipv6), HVQ_ERR_ARGUMENT);
    assert_eq!(made_with(|config| config.scheduler = c"none".as_ptr()), HVQ_ERR_UNKNOWN_NAME);
    assert_eq!(made_with(|config| config.congestion = c"none".as_ptr()), HVQ_ERR_UNKNOWN_NAME);
}

#[test]
fn the_finer_settings_hold() {
    let mut talk = Talk::new(|transport, client, server| {
        (transport.ack_delay, transport.ack_requests) = (7_000_000, 0);
        (transport.max_udp_payload, transport.idle_timeout) = (1500, 4_000_000_000);
        (transport.paths, transport.migration) = (2, 0);
        (transport.rotation_packets, transport.aead_confidentiality) = (100, 10_000);
        transport.preferred_ipv4 = address(3000);
        transport.follow_preferred = 0;
        let suites: &'static [u16] = &[0x1303];
        (client.suites, client.suite_count) = (suites.as_ptr(), 1);
        (server.suites, server.suite_count) = (suites.as_ptr(), 1);
    });
    talk.exchange(50);
    assert!(talk.client_said(HVQ_EVENT_CONFIRMED));
    let mut peer = hvq_peer::default();
    // SAFETY: the endpoint is ours, and so is the struct.
    assert_eq!(unsafe { hvq_connection_get_peer(talk.client, talk.connection, &mut peer) }, HVQ_OK);
    let said = (peer.ack_delay, peer.least_ack_delay, peer.max_udp_payload, peer.idle_timeout);
    assert_eq!(said, (7_000_000, 0, 1500, 4_000_000_000));
    assert_eq!((peer.paths, peer.migration), (2, 0));
    // Keys are updated at half of what one may seal.
    let (mut stream, mut count) = (hvq_stream::default(), 0);
    let block = vec![1u8; 1 << 16];
    // SAFETY: the endpoints are ours, and everything that is pointed to is above.
    unsafe {
        assert_eq!(hvq_stream_open(talk.client, talk.connection, HVQ_UNIDIRECTIONAL, &mut stream), HVQ_OK);
        let mut theirs = hvq_stream::default();
        let mut chunk = hvq_ffi::address::hvq_bytes { data: ptr::null(), length: 0 };
        for _ in 0..600 {
            hvq_stream_write(talk.client, stream, block.as_ptr().cast(), block.len(), &mut count);
            talk.exchange(1);
            hvq_stream_accept(talk.server, talk.accepted.unwrap(), HVQ_UNIDIRECTIONAL, &mut theirs);
            let theirs = hvq_stream { connection: talk.accepted.unwrap(), id: stream.id };
            while hvq_stream_read_chunk(talk.server, theirs, usize::MAX, &mut chunk) == HVQ_OK {}
        }
    }
    let [client, server] = talk.infos();
    assert!(client.key_updates >= 1 && server.key_updates >= 1, "{}", client.key_updates);
}

/// The answer of the callback, and the arguments that it saw.
struct AdmissionCallback {
    answer: u32,
    seen: Vec<hvq_candidate>,
}

unsafe extern "C" fn decide(user: *mut c_void, candidate: *const hvq_candidate) -> u32 {
    // SAFETY: the test passes a admission, and the library what its documentation says.
    let (admission, candidate) = unsafe { (&mut *user.cast::<AdmissionCallback>(), *candidate) };
    admission.seen.push(candidate);
    admission.answer
}

#[test]
fn a_server_admits_refuses_and_ignores_clients_as_its_callback_says() {
    let cases = [
        (HVQ_ADMISSION_ACCEPT, None, 1),
        (HVQ_ADMISSION_RETRY, None, 2),
        // RFC 9000 §20.1: CONNECTION_REFUSED is 2.
        (HVQ_ADMISSION_REFUSE, Some((HVQ_CLOSED_BY_PEER_ERROR, 2)), 1),
        (HVQ_ADMISSION_IGNORE, Some((HVQ_CLOSED_HANDSHAKE_TIMEOUT, 0)), 2),
        (99, Some((HVQ_CLOSED_HANDSHAKE_TIMEOUT, 0)), 2),
    ];
    for (answer, end, asked) in cases {
        let mut admission = AdmissionCallback { answer, seen: Vec::new() };
        let user = ptr::from_mut(&mut admission);
        let mut talk = Talk::new(|transport, _, server| {
            transport.handshake_timeout = 5_000_000_000;
            server.admission = Some(decide);
            server.admission_user = user.cast();
        });
        talk.exchange(3000);
        assert_eq!(talk.client_end().is_some(), end.is_some(), "{answer}");
        assert!(end.is_none() || talk.client_end() == end, "{answer}: {:?}", talk.client_end());
        let (mut counters, mut count) = (hvq_endpoint_statistics::default(), 0);
        let mut dropped: [MaybeUninit<hvq_dropped>; 32] = [MaybeUninit::uninit(); 32];
        // SAFETY: the endpoint is ours, and there is room.
        let reasons = unsafe {
            assert_eq!(hvq_endpoint_get_statistics(talk.server, &mut counters), HVQ_OK);
            let place = dropped.as_mut_ptr().cast();
            assert_eq!(hvq_endpoint_list_dropped(talk.server, place, 32, &mut count), HVQ_OK);
            dropped[..count].iter().map(|one| one.assume_init()).collect::<Vec<_>>()
        };
        assert_eq!(counters.datagrams_dropped, reasons.iter().map(|one| one.count).sum::<u64>());
        assert_eq!((counters.retries, counters.refusals > 0), (u64::from(answer == 1), answer == 2));
        let unwanted = reasons.iter().any(|one| text(&one.reason).contains("wants no connection"));
        assert_eq!(unwanted, answer >= 2, "{answer}");
        drop(talk);
        assert!(admission.seen.len() >= asked, "{answer}: {}", admission.seen.len());
        let first = admission.seen[0];
        assert_eq!(
            (first.route, first.is_proven, first.version),
            (hvq_route { local: address(2000), remote: address(1000) }, 0, HVQ_QUIC_1)
        );
        assert_eq!((first.connections, first.handshaking, first.proposal), (0, 0, HVQ_ADMISSION_ACCEPT));
        assert_eq!(admission.seen.iter().any(|one| one.is_proven == 1), answer == 1);
    }
}

unsafe extern "C" fn place_first(
    _: *mut c_void,
    item: *const hvq_item,
    paths: *const hvq_path_view,
    _: usize,
    placement: *mut hvq_placement,
) {
    // SAFETY: the library passes what its documentation says.
    unsafe {
        (*placement).kind = HVQ_PLACE_ON;
        (*placement).path = (*paths).id;
        (*placement).bytes = (*item).bytes;
    }
}

unsafe extern "C" fn fastest(
    state: *mut c_void,
    flights: *const hvq_flights,
    paths: *const hvq_path_view,
    count: usize,
) -> usize {
    // SAFETY: as above, and the test passes what to add to the answer.
    unsafe {
        assert!((*flights).sent > 1000 && (*flights).received > 1000);
        let paths = std::slice::from_raw_parts(paths, count);
        let delay = |index: &usize| paths[*index].delay;
        (0..count).min_by_key(delay).map_or(0, |index| index + *state.cast::<usize>())
    }
}

#[test]
fn a_scheduler_says_over_which_way_a_connection_begins() {
    let mut added = 0usize;
    let user = ptr::from_mut(&mut added);
    let mut table = hvq_scheduler {
        size: size_of::<hvq_scheduler>(),
        user: user.cast(),
        create: None,
        destroy: None,
        place: Some(place_first),
        observe: None,
        repeats: None,
        first: Some(fastest),
    };
    let way = |path, delay| hvq_network_path {
        route: route(path),
        hints: hvq_hints { known: HVQ_HINT_DELAY, delay, ..hvq_hints::default() },
    };
    let ways = [way(0, 25_000_000), way(1, 5_000_000), way(2, 9_000_000)];
    let ask = |talk: &Talk, count| {
        let mut index = 77;
        // SAFETY: the endpoint is ours, and everything that is pointed to is above.
        let result = unsafe {
            hvq_endpoint_first_network_path(
                talk.client,
                talk.config,
                ways.as_ptr(),
                count,
                talk.now,
                &mut index,
            )
        };
        (result, index)
    };
    let talk = Talk::new(|transport, _, _| transport.custom_scheduler = &table);
    assert_eq!(ask(&talk, 3), (HVQ_OK, 1));
    assert_eq!(ask(&talk, 1), (HVQ_OK, 0));
    assert_eq!(ask(&talk, 0), (HVQ_ERR_ARGUMENT, 77));
    // SAFETY: no call is under way.
    unsafe { *user = 7 };
    assert_eq!(ask(&talk, 3), (HVQ_OK, 0), "there is no such way");
    table.first = None;
    let talk = Talk::new(|transport, _, _| transport.custom_scheduler = &table);
    assert_eq!(ask(&talk, 3), (HVQ_OK, 0));
    // A table of before the function was there.
    table.first = Some(fastest);
    table.size -= size_of::<usize>();
    let talk = Talk::new(|transport, _, _| transport.custom_scheduler = &table);
    assert_eq!(ask(&talk, 3), (HVQ_OK, 0));
    // A built-in policy answers, too.
    let index = ask(&Talk::new(|transport, _, _| transport.scheduler = c"hvc".as_ptr()), 3);
    assert!(index.0 == HVQ_OK && index.1 < 3);
}

/// Returns the route of the client's next datagram.
fn next_route(talk: &Talk) -> hvq_route {
    let mut output = MaybeUninit::uninit();
    // SAFETY: the endpoint is ours, and a poll that succeeds fills the output.
    let output: hvq_output = unsafe {
        assert_eq!(hvq_endpoint_poll(talk.client, talk.now, output.as_mut_ptr()), HVQ_OK);
        output.assume_init()
    };
    assert_eq!(output.kind, HVQ_OUTPUT_TRANSMIT);
    output.transmit.route
}

fn say(talk: &Talk, stream: &mut hvq_stream) {
    let mut count = 0;
    // SAFETY: the endpoint is ours, and everything that is pointed to is above.
    unsafe {
        if stream.connection == u64::MAX {
            assert_eq!(hvq_stream_open(talk.client, talk.connection, HVQ_UNIDIRECTIONAL, stream), HVQ_OK);
        }
        assert_eq!(hvq_stream_write(talk.client, *stream, b"on".as_ptr().cast(), 2, &mut count), HVQ_OK);
    }
}

#[test]
fn a_path_moves_at_once_or_once_the_peer_answered() {
    for (moving, first) in [(HVQ_MOVE_AT_ONCE, route(3)), (HVQ_MOVE_VALIDATED, route(0))] {
        let mut talk = Talk::connected();
        let path = hvq_path { connection: talk.connection, id: 0, reserved: 0 };
        let mut stream = hvq_stream { connection: u64::MAX, id: 0 };
        // SAFETY: the endpoint is ours, and so is the route.
        unsafe {
            assert_eq!(hvq_path_migrate(talk.client, path, &route(3), 2, talk.now), HVQ_ERR_ARGUMENT);
            assert_eq!(hvq_path_migrate(talk.client, path, &route(3), moving, talk.now), HVQ_OK);
        }
        assert_eq!(talk.infos()[0].pending_validations, 1);
        assert_eq!(talk.infos()[0].route, first);
        say(&talk, &mut stream);
        let goes = next_route(&talk);
        assert!(goes == route(3) || moving == HVQ_MOVE_VALIDATED, "{goes:?}");
        // That datagram was lost; what matters in it is sent again.
        talk.exchange(1000);
        assert!(talk.client_said(HVQ_EVENT_PATH_MIGRATED));
        assert_eq!(talk.infos().map(|info| info.route.local.port), [1003, 2003]);
        say(&talk, &mut stream);
        assert_eq!(next_route(&talk), route(3));
    }
}

/// Returns the number of frames of a kind that the client sent.
fn frames(talk: &Talk, kind: &str) -> u64 {
    let mut counters: [MaybeUninit<hvq_frame_counter>; 64] = [MaybeUninit::uninit(); 64];
    let mut count = 0;
    // SAFETY: the endpoint is ours, and there is room.
    let counters = unsafe {
        let few = counters.as_mut_ptr().cast();
        let (client, connection) = (talk.client, talk.connection);
        assert_eq!(hvq_connection_list_frames(client, connection, few, 1, &mut count), HVQ_ERR_TOO_SMALL);
        assert!(count > 3);
        assert_eq!(hvq_connection_list_frames(client, connection, few, 64, &mut count), HVQ_OK);
        counters[..count].iter().map(|counter| counter.assume_init()).collect::<Vec<_>>()
    };
    counters.iter().filter(|counter| text(&counter.kind) == kind).map(|counter| counter.sent).sum()
}

#[test]
fn connection_ids_change_on_command_and_frames_are_counted() {
    let mut talk = Talk::connected();
    let path = hvq_path { connection: talk.connection, id: 0, reserved: 0 };
    let retired =
        |talk: &Talk| frames(talk, "retire_connection_id") + frames(talk, "path_retire_connection_id");
    assert!(frames(&talk, "crypto") > 0 && frames(&talk, "no_such") == 0);
    let before = retired(&talk);
    let mut statistics = hvq_path_statistics::default();
    // SAFETY: the endpoint is ours, and so is the struct.
    unsafe {
        assert_eq!(hvq_path_rotate_connection_id(talk.client, path, talk.now), HVQ_OK);
        talk.exchange(10);
        assert_eq!(retired(&talk), before + 1);
        let issued = |talk: &Talk| frames(talk, "new_connection_id") + frames(talk, "path_new_connection_id");
        let spares = issued(&talk);
        for _ in 0..2 {
            assert_eq!(hvq_path_retire_connection_ids(talk.client, path), HVQ_OK);
        }
        talk.exchange(10);
        assert!(issued(&talk) > spares);
        assert_eq!(hvq_path_set_congestion(talk.client, path, c"bbr".as_ptr()), HVQ_OK);
        assert_eq!(hvq_path_get_statistics(talk.client, path, &mut statistics), HVQ_OK);
    }
    assert_eq!(text(&statistics.congestion), "bbr");
    // SAFETY: the text is static.
    assert!(unsafe { CStr::from_ptr(hvq_ffi::version::hvq_version()) }.to_bytes().starts_with(b"0.1"));
}

#[test]
fn options_of_the_first_version_are_understood() {
    // Sizes that the structs had before they grew.
    let mut transport: hvq_transport_config = filled(hvq_transport_config_init);
    let first = std::mem::offset_of!(hvq_transport_config, versions);
    let mut endpoint = ptr::null_mut();
    // SAFETY: the structs are as large as they say, and larger.
    unsafe {
        transport.first_version = 99;
        let before = (ptr::from_ref(&transport).cast::<u8>().add(first)).read();
        assert_eq!(hvq_transport_config_init(&mut transport, first), HVQ_OK);
        assert_eq!(
            (transport.size, transport.first_version),
            (first, 99),
            "nothing is written beyond the size"
        );
        assert_eq!((ptr::from_ref(&transport).cast::<u8>().add(first)).read(), before);
        assert_eq!(hvq_transport_config_init(&mut transport, first - 1), HVQ_ERR_ARGUMENT);
        let mut options: hvq_client_options = filled(hvq_client_options_init);
        let protocols = [c"test".as_ptr()];
        (options.alpn, options.alpn_count, options.insecure) = (protocols.as_ptr(), 1, 1);
        (options.transport, options.early_data) = (&transport, 99);
        let mut config = ptr::null_mut();
        options.size = std::mem::offset_of!(hvq_client_options, sessions) + 4;
        assert_eq!(hvq_client_config_new(&options, &mut config), HVQ_ERR_ARGUMENT, "half of a pointer");
        options.size -= 4;
        assert_eq!(
            hvq_client_config_new(&options, &mut config),
            HVQ_OK,
            "what is beyond the size is not read"
        );
        hvq_client_config_free(config);
        let mut options: hvq_endpoint_options = filled(hvq_endpoint_options_init);
        options.size = std::mem::offset_of!(hvq_endpoint_options, resets_per_second);
        assert_eq!(hvq_endpoint_new(&options, &mut endpoint), HVQ_OK);
        assert_eq!(hvq_endpoint_free(endpoint), HVQ_OK);
    }
}

#[test]
fn hints_of_a_client_are_told_to_its_server_unless_either_end_says_no() {
    let hints = hvq_hints {
        known: HVQ_HINT_RATE | HVQ_HINT_RATE_BACK | HVQ_HINT_DELAY,
        sharing: HVQ_SHARING_DEDICATED,
        rate: 2_000_000,
        rate_back: 60_000_000,
        delay: 2_500_000,
        metering: HVQ_METERING_METERED,
        ..hvq_hints::default()
    };
    for (says, told) in [(1, true), (0, false)] {
        let mut talk = Talk::with(|choices| {
            choices.server_transport = Some(choices.transport);
            choices.transport.path_hints = says;
        });
        talk.exchange(20);
        let path = hvq_path { connection: talk.connection, id: 0, reserved: 0 };
        // SAFETY: the endpoint is ours, and so are the hints.
        assert_eq!(unsafe { hvq_path_set_hints(talk.client, path, &hints) }, HVQ_OK);
        talk.exchange(20);
        assert_eq!(talk.server_said(HVQ_EVENT_PATH_HINTS), told);
        let path = hvq_path { connection: talk.accepted.expect("a server"), id: 0, reserved: 0 };
        let mut seen = hvq_hints::default();
        // SAFETY: as above.
        assert_eq!(unsafe { hvq_path_get_peer_hints(talk.server, path, &mut seen) }, HVQ_OK);
        let mirrored = hvq_hints { rate: hints.rate_back, rate_back: hints.rate, ..hints };
        assert_eq!(seen, if told { mirrored } else { hvq_hints::default() });
    }
}
