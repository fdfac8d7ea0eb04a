//! Transport parameters: round trips, and every way to get them wrong.

use super::*;
use crate::error::ErrorCode;
use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::StdRng;

const INTEGERS: [u64; 13] = [0x01, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0e, 0x20, 0x3e];
const KNOWN: [u64; 24] = [
    0x00,
    0x01,
    0x02,
    0x03,
    0x04,
    0x05,
    0x06,
    0x07,
    0x08,
    0x09,
    0x0a,
    0x0b,
    0x0c,
    0x0d,
    0x0e,
    0x0f,
    0x10,
    0x11,
    0x1d,
    0x20,
    0x3e,
    0xff04_de1b,
    0x2ab2,
    0x1d6b_52e4,
];

fn parameter_of(id: u64, value: &[u8]) -> Vec<u8> {
    let mut buf = Vec::new();
    put_bytes(&mut buf, id, value);
    buf
}

fn integer_of(id: u64, value: u64) -> Vec<u8> {
    let mut buf = Vec::new();
    put_integer(&mut buf, id, value);
    buf
}

fn from_server(bytes: &[u8]) -> Result<TransportParameters, ErrorCode> {
    TransportParameters::decode(Role::Server, bytes).map_err(|error| error.code)
}

const REFUSED: Result<TransportParameters, ErrorCode> = Err(ErrorCode::TRANSPORT_PARAMETER_ERROR);

prop_compose! {
    fn connection_id()(bytes in proptest::collection::vec(any::<u8>(), 0..=20)) -> ConnectionId {
        ConnectionId::new(&bytes).unwrap()
    }
}

prop_compose! {
    fn preferred_address()(
        ipv4 in proptest::option::of((any::<[u8; 4]>(), 1..u16::MAX)),
        ipv6 in proptest::option::of((any::<[u8; 16]>(), 1..u16::MAX)),
        id in proptest::collection::vec(any::<u8>(), 1..=20),
        token: [u8; 16],
    ) -> PreferredAddress {
        PreferredAddress {
            ipv4: ipv4.map(|(ip, port)| SocketAddrV4::new(ip.into(), port)),
            ipv6: ipv6.map(|(ip, port)| SocketAddrV6::new(ip.into(), port, 0, 0)),
            connection_id: ConnectionId::new(&id).unwrap(),
            stateless_reset_token: ResetToken(token),
        }
    }
}

prop_compose! {
    /// Parameters that either role may send.
    fn common()(
        limits in proptest::array::uniform4(0..=varint::MAX),
        streams in proptest::array::uniform2(0..=MAX_STREAMS),
        idle in 0..=varint::MAX,
        payload in MIN_UDP_PAYLOAD_SIZE..=varint::MAX,
        exponent in 0..=20_u8,
        delay in 0..MAX_ACK_DELAY_LIMIT,
        disable: bool,
        ids in 2..=varint::MAX,
        source in proptest::option::of(connection_id()),
        datagram in 0..=varint::MAX,
        path in proptest::option::of(any::<u32>()),
        flags: [bool; 4],
    ) -> TransportParameters {
        TransportParameters {
            max_idle_timeout: Duration::from_millis(idle),
            max_udp_payload_size: payload,
            initial_max_data: limits[0],
            initial_max_stream_data_bidi_local: limits[1],
            initial_max_stream_data_bidi_remote: limits[2],
            initial_max_stream_data_uni: limits[3],
            initial_max_streams_bidi: streams[0],
            initial_max_streams_uni: streams[1],
            ack_delay_exponent: exponent,
            max_ack_delay: Duration::from_millis(delay),
            disable_active_migration: disable,
            active_connection_id_limit: ids,
            initial_source_connection_id: source,
            max_datagram_frame_size: datagram,
            initial_max_path_id: path.map(PathId),
            min_ack_delay: flags[0].then_some(Duration::from_millis(delay) / 2),
            quic_bit: if flags[1] { QuicBit::Free } else { QuicBit::Fixed },
            path_hints: if flags[2] { HintExchange::On } else { HintExchange::Off },
            partial_delivery: if flags[3] { PartialDelivery::On } else { PartialDelivery::Off },
            ..TransportParameters::default()
        }
    }
}

prop_compose! {
    fn of_a_server()(
        common in common(),
        original in proptest::option::of(connection_id()),
        retry in proptest::option::of(connection_id()),
        token in proptest::option::of(any::<[u8; 16]>()),
        address in proptest::option::of(preferred_address()),
    ) -> TransportParameters {
        TransportParameters {
            original_destination_connection_id: original,
            retry_source_connection_id: retry,
            stateless_reset_token: token.map(ResetToken),
            preferred_address: address.map(Box::new),
            ..common
        }
    }
}

proptest! {
    //= https://www.rfc-editor.org/rfc/rfc9000#section-18.2
    //= type=test
    //# The value of the active_connection_id_limit parameter MUST be at least 2
    #[test]
    fn parameters_survive_encoding(parameters in of_a_server(), seed: u64) {
        let mut rng = StdRng::seed_from_u64(seed);
        let bytes = parameters.encode(Role::Server, Greasing::On, &mut rng);
        prop_assert_eq!(from_server(&bytes), Ok(parameters));
    }

    //= https://www.rfc-editor.org/rfc/rfc9000#section-18.2
    //= type=test
    //# This transport parameter MUST NOT be sent by a client but MAY be sent by a server
    //= https://www.rfc-editor.org/rfc/rfc9000#section-18.2
    //= type=test
    //# A client MUST NOT include any server-only transport parameter: original_destination_connection_id,
    //# preferred_address, retry_source_connection_id, or stateless_reset_token
    #[test]
    fn a_client_sends_nothing_that_is_the_servers(parameters in of_a_server(), seed: u64) {
        let mut rng = StdRng::seed_from_u64(seed);
        let bytes = parameters.encode(Role::Client, Greasing::On, &mut rng);
        let expected = TransportParameters {
            original_destination_connection_id: None,
            retry_source_connection_id: None,
            stateless_reset_token: None,
            preferred_address: None,
            ..parameters
        };
        prop_assert_eq!(TransportParameters::decode(Role::Client, &bytes), Ok(expected));
    }

    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        for sender in [Role::Client, Role::Server] {
            if let Err(error) = TransportParameters::decode(sender, &bytes) {
                prop_assert_eq!(error.code, ErrorCode::TRANSPORT_PARAMETER_ERROR);
            }
        }
    }

    #[test]
    fn random_values_of_known_parameters_never_panic(
        parameters in proptest::collection::vec(
            (proptest::sample::select(&KNOWN[..]), proptest::collection::vec(any::<u8>(), 0..70)),
            0..6,
        ),
    ) {
        let bytes: Vec<u8> = parameters.iter().flat_map(|(id, value)| parameter_of(*id, value)).collect();
        if let Err(code) = from_server(&bytes) {
            prop_assert_eq!(code, ErrorCode::TRANSPORT_PARAMETER_ERROR);
        }
    }

    #[test]
    fn truncated_parameters_are_refused_or_fewer(parameters in of_a_server()) {
        let bytes = parameters.encode(Role::Server, Greasing::On, &mut StdRng::seed_from_u64(1));
        let complete = (0..=bytes.len()).filter(|&end| from_server(&bytes[..end]).is_ok()).count();
        // Only a cut between two parameters can be read.
        prop_assert!(complete <= KNOWN.len() + 2);
    }
}

#[test]
fn a_least_delay_above_the_most_is_an_error() {
    // Draft-ietf-quic-ack-frequency-14 §3; the default of max_ack_delay counts where it is absent.
    let mut bytes = parameter_of(0xff04_de1b, &[0x80, 0, 0x61, 0xa8]);
    assert_eq!(from_server(&bytes).map(|it| it.min_ack_delay), Ok(Some(Duration::from_millis(25))));
    bytes = parameter_of(0xff04_de1b, &[0x80, 0, 0x61, 0xa9]);
    assert_eq!(from_server(&bytes).unwrap_err(), ErrorCode::TRANSPORT_PARAMETER_ERROR);
}

#[test]
fn nothing_means_the_defaults() {
    let defaults = from_server(&[]).unwrap();
    assert_eq!(defaults, TransportParameters::default());
    assert_eq!(defaults.max_udp_payload_size, 65527);
    assert_eq!((defaults.ack_delay_exponent, defaults.max_ack_delay), (3, Duration::from_millis(25)));
    assert_eq!((defaults.active_connection_id_limit, defaults.initial_max_path_id), (2, None));
}

#[test]
fn defaults_are_not_sent_but_a_reserved_parameter_is() {
    let bytes =
        TransportParameters::default().encode(Role::Server, Greasing::On, &mut StdRng::seed_from_u64(3));
    let (id, size) = varint::get(&bytes).unwrap();
    assert_eq!(id % 31, 27);
    let (length, _) = varint::get(&bytes[size..]).unwrap();
    assert_eq!(bytes.len() as u64, size as u64 + 1 + length);
}

#[test]
fn without_greasing_nothing_reserved_is_sent() {
    let mut rng = StdRng::seed_from_u64(3);
    assert!(TransportParameters::default().encode(Role::Server, Greasing::Off, &mut rng).is_empty());
}

#[test]
fn the_parameter_of_the_quic_bit_is_empty() {
    // RFC 9287 §3: a value of any length but zero is a TRANSPORT_PARAMETER_ERROR.
    assert_eq!(from_server(&parameter_of(0x2ab2, &[])).unwrap().quic_bit, QuicBit::Free);
    assert_eq!(from_server(&parameter_of(0x2ab2, &[0])), REFUSED);
}

#[test]
fn the_parameter_of_path_hints_is_empty_and_not_remembered() {
    // docs/spec/path-hints.md §3: a value of any length but zero is a TRANSPORT_PARAMETER_ERROR.
    let said = from_server(&parameter_of(0x1d6b_52e4, &[])).unwrap();
    assert_eq!((said.path_hints, said.remembered().path_hints), (HintExchange::On, HintExchange::Off));
    assert_eq!(from_server(&parameter_of(0x1d6b_52e4, &[0])), REFUSED);
}

#[test]
fn path_zero_alone_is_multipath_too() {
    let parameters =
        TransportParameters { initial_max_path_id: Some(PathId::ZERO), ..TransportParameters::default() };
    let bytes = parameters.encode(Role::Client, Greasing::On, &mut StdRng::seed_from_u64(3));
    assert_eq!(bytes[..3], [0x3e, 1, 0]);
}

#[test]
fn a_short_idle_timeout_does_not_become_none() {
    let parameters = TransportParameters {
        max_idle_timeout: Duration::from_micros(1500),
        ..TransportParameters::default()
    };
    let bytes = parameters.encode(Role::Client, Greasing::On, &mut StdRng::seed_from_u64(3));
    assert_eq!(bytes[..3], [0x01, 1, 2]);
}

#[test]
fn a_duplicate_parameter_is_an_error() {
    for id in [0x01, 0x0c, 0x3e, 0x1234] {
        let value: &[u8] = if id == 0x0c { &[] } else { &[5] };
        let once = parameter_of(id, value);
        assert!(from_server(&once).is_ok());
        assert_eq!(from_server(&[once.clone(), integer_of(0x04, 9), once].concat()), REFUSED);
    }
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-7.4
//= type=test
//# An endpoint MUST treat receipt of a transport parameter with an invalid value as a connection error of
//# type TRANSPORT_PARAMETER_ERROR.
#[test]
fn every_integer_with_every_length_is_right_or_an_error() {
    for id in INTEGERS {
        for length in 0..=9 {
            for form in 0..4_u8 {
                // The value 2 in a form of 1, 2, 4 or 8 bytes, cut or padded to `length`.
                let size = 1_usize << form;
                let mut value = vec![0; size];
                value[0] = form << 6;
                value[size - 1] |= 2;
                value.resize(length, 0);
                // 2 is too small for max_udp_payload_size.
                let valid = length == size && id != 0x03;
                assert_eq!(from_server(&parameter_of(id, &value)).is_ok(), valid, "{id:#x} {value:?}");
            }
        }
    }
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-7.4
//= type=test
//# An endpoint MUST treat receipt of a transport parameter with an invalid value as a connection error of
//# type TRANSPORT_PARAMETER_ERROR.
#[test]
fn every_other_parameter_with_every_length_is_right_or_an_error() {
    for length in 0..=70 {
        let bytes = vec![7; length];
        for (id, valid) in [(0x00, 0..=20), (0x0f, 0..=20), (0x10, 0..=20), (0x02, 16..=16), (0x0c, 0..=0)] {
            assert_eq!(
                from_server(&parameter_of(id, &bytes)).is_ok(),
                valid.contains(&length),
                "{id:#x} {length}"
            );
        }
        // The connection ID in here has 7 bytes.
        let valid = length == 4 + 2 + 16 + 2 + 1 + 7 + 16;
        assert_eq!(from_server(&parameter_of(0x0d, &bytes)).is_ok(), valid, "{length}");
    }
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-18.2
//= type=test
//# A client MUST treat a violation of these requirements as a connection error of type
//# TRANSPORT_PARAMETER_ERROR.
#[test]
fn a_preferred_address_needs_a_connection_id_of_one_to_twenty_bytes() {
    for length in 0..=21_u8 {
        let mut value = vec![1; 24];
        value.push(length);
        value.extend(vec![2; usize::from(length) + 16]);
        assert_eq!(from_server(&parameter_of(0x0d, &value)).is_ok(), (1..=20).contains(&length));
    }
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-18.2
//= type=test
//# A server MUST treat receipt of any of these transport parameters as a connection error of type
//# TRANSPORT_PARAMETER_ERROR.
#[test]
fn server_parameters_from_a_client_are_an_error() {
    for (id, value) in [(0x00, vec![1; 8]), (0x02, vec![1; 16]), (0x0d, vec![1; 42]), (0x10, vec![1; 8])] {
        let bytes = parameter_of(id, &value);
        assert!(from_server(&bytes).is_ok(), "{id:#x}");
        let error = TransportParameters::decode(Role::Client, &bytes).unwrap_err();
        assert_eq!(error.code, ErrorCode::TRANSPORT_PARAMETER_ERROR);
        assert!(error.reason.contains(&format!("{id:#x}")));
    }
}

//= https://www.rfc-editor.org/rfc/rfc10069#section-2.1
//= type=test
//# This value MUST NOT exceed 2^32-1, the maximum allowed value for the path ID due to restrictions on the
//# nonce calculation (see Section 2.4).
//= https://www.rfc-editor.org/rfc/rfc10069#section-2.1
//= type=test
//# If an initial_max_path_id transport parameter value higher than 2^32-1 is received, the receiver MUST
//# close the connection with an error of type TRANSPORT_PARAMETER_ERROR.
//= https://www.rfc-editor.org/rfc/rfc9000#section-4.6
//= type=test
//# If either is received, the connection MUST be closed immediately with a connection error of type
//# TRANSPORT_PARAMETER_ERROR
//= https://www.rfc-editor.org/rfc/rfc9000#section-18.2
//= type=test
//# An endpoint that receives a value less than 2 MUST close the connection with an error of type
//# TRANSPORT_PARAMETER_ERROR
#[test]
fn values_out_of_range_are_an_error() {
    let edges = [
        (0x03, 1200, 1199),
        (0x0a, 20, 21),
        (0x0b, (1 << 14) - 1, 1 << 14),
        (0x0e, 2, 1),
        (0x08, 1 << 60, (1 << 60) + 1),
        (0x09, 1 << 60, (1 << 60) + 1),
        (0x3e, u64::from(u32::MAX), 1 << 32),
    ];
    for (id, valid, invalid) in edges {
        assert!(from_server(&integer_of(id, valid)).is_ok(), "{id:#x}");
        assert_eq!(from_server(&integer_of(id, invalid)), REFUSED, "{id:#x}");
    }
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-7.4.2
//= type=test
//# An endpoint MUST ignore transport parameters that it does not support
#[test]
fn unknown_parameters_are_ignored() {
    // attacks.md B6: 16 KiB of them are neither kept nor refused.
    let mut bytes: Vec<u8> = (0..1500).flat_map(|n| parameter_of(31 * n + 27, &[0xff; 8])).collect();
    bytes.extend(parameter_of(0x2ab3, &[]));
    assert!(bytes.len() > 16_000);
    assert_eq!(from_server(&bytes), Ok(TransportParameters::default()));
}

#[test]
fn the_tokens_and_addresses_are_where_the_rfc_puts_them() {
    let mut value = vec![192, 0, 2, 1, 0x11, 0x51];
    value.extend([0; 18]);
    value.extend([2, 0xab, 0xcd]);
    value.extend([6; 16]);
    let address = from_server(&parameter_of(0x0d, &value)).unwrap().preferred_address.unwrap();
    assert_eq!(address.ipv4, Some("192.0.2.1:4433".parse().unwrap()));
    assert_eq!(address.ipv6, None);
    assert_eq!(address.connection_id.as_slice(), [0xab, 0xcd]);
    assert_eq!(address.stateless_reset_token, ResetToken([6; 16]));
}

//= https://www.rfc-editor.org/rfc/rfc10069#section-2.1
//= type=test
//# The initial_max_path_id parameter MUST NOT be remembered for use in a subsequent connection (Section 7.4.1
//# of [QUIC-TRANSPORT]).
//= https://www.rfc-editor.org/rfc/rfc9000#section-7.4.1
//= type=test
//# A client MUST NOT use remembered values for the following parameters: ack_delay_exponent, max_ack_delay,
//# initial_source_connection_id, original_destination_connection_id
//= https://www.rfc-editor.org/rfc/rfc9000#section-7.4.1
//= type=test
//# A client that attempts to send 0-RTT data MUST remember all other transport parameters used by the server
//# that it is able to process
#[test]
fn what_is_remembered_for_0rtt_has_limits_and_nothing_about_this_connection_or_its_paths() {
    // RFC 9000 §7.4.1, RFC 10069 §2.1, attacks G6.
    let parameters = TransportParameters {
        max_idle_timeout: Duration::from_secs(9),
        initial_max_data: 1000,
        initial_max_stream_data_uni: 10,
        initial_max_streams_bidi: 3,
        max_datagram_frame_size: 1200,
        disable_active_migration: true,
        ack_delay_exponent: 7,
        max_ack_delay: Duration::from_millis(99),
        initial_source_connection_id: ConnectionId::new(&[1; 8]),
        stateless_reset_token: Some(ResetToken([6; 16])),
        initial_max_path_id: Some(PathId(3)),
        ..TransportParameters::default()
    };
    let bytes = parameters.encode_remembered();
    assert_eq!(bytes, parameters.encode_remembered(), "no reserved parameters");
    let remembered = from_server(&bytes).unwrap();
    let expected = TransportParameters {
        ack_delay_exponent: 3,
        max_ack_delay: Duration::from_millis(25),
        initial_source_connection_id: None,
        stateless_reset_token: None,
        initial_max_path_id: None,
        ..parameters.clone()
    };
    assert_eq!(remembered, expected);
    assert!(!parameters.lowers(&remembered));
    let fewer = TransportParameters { initial_max_streams_bidi: 2, ..parameters };
    assert!(fewer.lowers(&remembered));
}

//= https://www.rfc-editor.org/rfc/rfc9221#section-3
//= type=test
//# If a client stores the value of the max_datagram_frame_size transport parameter with their 0-RTT state,
//# they MUST validate that the new value of the max_datagram_frame_size transport parameter sent
#[test]
fn lower_limits_are_noticed_and_higher_ones_are_none() {
    let remembered = TransportParameters { max_datagram_frame_size: 1000, ..TransportParameters::default() };
    let now = |max_datagram_frame_size| TransportParameters { max_datagram_frame_size, ..remembered.clone() };
    let lowered = [0, 999, 1000, 1001].map(|size| now(size).lowers(&remembered));
    assert_eq!(lowered, [true, true, false, false]);
}

#[test]
fn reserved_parameters_have_every_length_and_numbers_that_mean_nothing() {
    // RFC 9000 §18.1: of the form 31 * N + 27, from the whole range of integers.
    let mut rng = StdRng::seed_from_u64(1);
    let (mut lengths, mut highest) = ([0; 8], 0);
    for _ in 0..1_000 {
        let mut buf = Vec::new();
        put_reserved(&mut buf, &mut rng);
        let (id, taken) = varint::get(&buf).expect("its number");
        let (length, more) = varint::get(&buf[taken..]).expect("its length");
        assert_eq!((id % 31, buf.len()), (27, taken + more + length as usize));
        lengths[length as usize] += 1;
        highest = highest.max(id);
    }
    assert!(lengths.iter().all(|count| *count > 50), "{lengths:?}");
    assert!(highest > varint::MAX / 2);
}

#[test]
fn an_address_is_missing_only_if_all_of_it_is_zero() {
    // RFC 9000 §18.2: a server that prefers no address of a family sends zeros for it.
    for (v4, v6, known) in [
        ("0.0.0.0:443", "[::]:443", true),
        ("192.0.2.1:0", "[2001:db8::1]:0", true),
        ("0.0.0.0:0", "[::]:0", false),
    ] {
        let (v4, v6) = (v4.parse().expect("an address"), v6.parse().expect("an address"));
        let address = PreferredAddress {
            ipv4: Some(v4),
            ipv6: Some(v6),
            connection_id: ConnectionId::new(&[1; 4]).expect("4 bytes"),
            stateless_reset_token: ResetToken([2; 16]),
        };
        let parameters =
            TransportParameters { preferred_address: Some(Box::new(address)), ..Default::default() };
        let mut rng = StdRng::seed_from_u64(1);
        let bytes = parameters.encode(Role::Server, Greasing::On, &mut rng);
        let read = TransportParameters::decode(Role::Server, &bytes).expect("well-formed").preferred_address;
        let read = read.expect("it was sent");
        assert_eq!((read.ipv4, read.ipv6), (known.then_some(v4), known.then_some(v6)));
    }
}

#[test]
fn the_support_of_reset_stream_at_is_empty_remembered_and_not_taken_back() {
    // Draft-ietf-quic-reliable-stream-reset §3.
    let said = from_server(&parameter_of(0x1d, &[])).unwrap();
    assert_eq!(said.partial_delivery, PartialDelivery::On);
    assert_eq!(from_server(&parameter_of(0x1d, &[0])), REFUSED);
    let kept = from_server(&said.encode_remembered()).unwrap();
    assert_eq!(kept, said.remembered());
    assert_eq!(kept.partial_delivery, PartialDelivery::On);
    let without = TransportParameters { partial_delivery: PartialDelivery::Off, ..said.clone() };
    assert!(without.lowers(&kept) && !said.lowers(&kept) && !said.lowers(&without));
}

#[test]
fn a_client_could_speak_the_version_that_it_chose() {
    // RFC 9368 §4. A server need not list what it speaks with this client.
    let [one, two] = [[0, 0, 0, 1], [0x6b, 0x33, 0x43, 0xcf]];
    for (available, is_listed) in [(vec![two, one], true), (vec![two], false), (vec![], false)] {
        let bytes = parameter_of(0x11, &[vec![one], available].concat().concat());
        assert_eq!(TransportParameters::decode(Role::Client, &bytes).is_ok(), is_listed);
        let read = TransportParameters::decode(Role::Server, &bytes).expect("it is well-formed");
        assert_eq!(
            read.version_information.map(|information| information.chosen),
            Some(crate::wire::Version::V1)
        );
    }
}
