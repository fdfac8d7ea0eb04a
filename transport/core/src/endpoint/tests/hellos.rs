//! ClientHellos of clients that do not play by the rules, and what goes over the wire then: attacks.md, sections B and G.

use super::forged::{Forged, SOURCE, answer, initial, sealed};
use super::network::{Network, transport};
use crate::connection::{Event, Role};
use crate::crypto::session::{ClientTls, Session, SessionOutput, Verify};
use crate::error::ErrorCode;
use crate::wire::connection_id::ConnectionId;
use crate::wire::frame::{Crypto, Frame};
use crate::wire::grease::Greasing;
use crate::wire::transport_parameters::TransportParameters;
use crate::wire::varint;
use rand::SeedableRng;
use rand::rngs::StdRng;
use std::time::Duration;

const TP: Option<ErrorCode> = Some(ErrorCode::TRANSPORT_PARAMETER_ERROR);
const DESTINATION: [u8; 8] = [1; 8];
/// Transport parameters whose value is an integer (RFC 9000 §18.2, RFC 9221 §3, RFC 10069 §2.1).
const INTEGERS: [u64; 13] = [0x01, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0e, 0x20, 0x3e];

/// A client that begins with whatever it likes.
struct Opener {
    protocol: &'static str,
    source: Vec<u8>,
}

const HONEST: fn() -> Opener = || Opener { protocol: "hvq", source: SOURCE.to_vec() };

impl Opener {
    /// A ClientHello with these transport parameters.
    fn hello(&self, parameters: &[u8]) -> Vec<u8> {
        let tls = ClientTls::builder().alpn([self.protocol]).verify(Verify::Insecure).build().unwrap();
        let mut session = Session::client(&tls, "server.test", parameters).unwrap();
        session.start().unwrap();
        let mut hello = Vec::new();
        while let Some(output) = session.poll() {
            if let SessionOutput::Send { data, .. } = output {
                hello.extend_from_slice(&data);
            }
        }
        hello
    }

    /// Returns the code with which the server closes when `hello` arrives in one datagram. It says so to the client and
    /// to its application, keeps nothing, and still serves others.
    fn begin(&self, hello: Vec<u8>) -> Option<ErrorCode> {
        let mut payload = Vec::new();
        Frame::Crypto(Crypto { offset: 0, data: hello.into() }).put(&mut payload);
        let packet = Forged { source: self.source.clone(), ..initial(&DESTINATION, &payload) };
        let mut network = Network::new(transport(), transport());
        let tuple = network.link(Duration::from_millis(20));
        let told = answer(&mut network, &DESTINATION, &sealed(&packet, |first| first));
        let closed = network.verdict();
        assert_eq!(told, closed, "the client is told what the application is told");
        network.links[0].drop = Box::new(|_, _| false);
        let honest = network.connect(tuple);
        network.run_for(Duration::from_secs(20));
        assert!(network.client_events.contains(&(honest, Event::Confirmed)), "others are served");
        assert_eq!(network.server.handles().count(), 1, "nothing is left of it");
        closed
    }

    /// Returns the code with which the server closes when these transport parameters arrive.
    fn verdict(&self, parameters: &[u8]) -> Option<ErrorCode> {
        self.begin(self.hello(parameters))
    }
}

fn parameter(id: u64, value: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    varint::put(&mut bytes, id);
    varint::put(&mut bytes, value.len() as u64);
    bytes.extend(value);
    bytes
}

fn integer(id: u64, value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    varint::put(&mut bytes, value);
    parameter(id, &bytes)
}

/// Returns the transport parameters of an honest client with the connection ID `source`, and `more`.
fn with(source: &[u8], more: &[u8]) -> Vec<u8> {
    let parameters = TransportParameters {
        initial_source_connection_id: ConnectionId::new(source),
        ..TransportParameters::default()
    };
    let mut bytes = parameters.encode(Role::Client, Greasing::Off, &mut StdRng::seed_from_u64(1));
    bytes.extend(more);
    bytes
}

fn honest_with(more: &[u8]) -> Vec<u8> {
    with(&SOURCE, more)
}

/// The ClientHello of an honest client.
pub(super) fn honest_hello() -> Vec<u8> {
    HONEST().hello(&honest_with(&[]))
}

#[test]
fn an_honest_client_hello_in_one_datagram_is_answered() {
    for more in [Vec::new(), integer(0x3e, 3), integer(0x04, 100_000)] {
        assert_eq!(HONEST().verdict(&honest_with(&more)), None);
    }
}

#[test]
fn transport_parameters_that_no_client_may_send_close_with_their_code() {
    // attacks.md B1, B3, B4, G3, RFC 9000 §7.4, §18.2, RFC 10069 §2.1.
    let twice = [integer(0x04, 9), integer(0x01, 9), integer(0x04, 9)].concat();
    let unknown_twice = [parameter(0x1234, b"a"), parameter(0x1234, b"a")].concat();
    let of_servers = [(0x00, vec![1; 8]), (0x02, vec![1; 16]), (0x0d, vec![1; 49]), (0x10, vec![1; 8])];
    let out_of_range = [
        (0x03, 1199),
        (0x0a, 21),
        (0x0b, 1 << 14),
        (0x0e, 1),
        (0x08, (1 << 60) + 1),
        (0x09, (1 << 60) + 1),
        (0x3e, 1 << 32),
    ];
    let cases = [twice, unknown_twice]
        .into_iter()
        .chain(of_servers.map(|(id, value)| parameter(id, &value)))
        .chain(out_of_range.map(|(id, value)| integer(id, value)));
    for bytes in cases {
        assert_eq!(HONEST().verdict(&honest_with(&bytes)), TP, "{bytes:x?}");
    }
}

#[test]
fn integers_of_every_length_are_read_or_close_with_transport_parameter_error() {
    // attacks.md B2, RUSTSEC-2026-0037: one Initial packet is enough to try it, before anything is known of the client.
    for id in INTEGERS {
        for length in 0..=9_usize {
            // The prefix says eight bytes: the number fits if there are so many, and is out of range for some.
            let value: Vec<u8> = [0xc0, 0, 0, 0, 0, 0, 0, 2, 0].into_iter().take(length).collect();
            let verdict = HONEST().verdict(&honest_with(&parameter(id, &value)));
            let expected = if length == 8 && id != 0x03 { None } else { TP };
            assert_eq!(verdict, expected, "{id:#x} {value:x?}");
        }
    }
    for cut in [&[0x40][..], &[0x04], &[0x04, 0x80], &[0x04, 8, 0xc0], &[0x7f, 0xff, 0xff]] {
        assert_eq!(HONEST().verdict(&honest_with(cut)), TP, "{cut:x?}");
    }
}

#[test]
fn a_client_that_names_another_connection_id_than_its_packets_or_none_is_refused() {
    // attacks.md B5, RFC 9000 §7.3.
    assert_eq!(HONEST().verdict(&with(&[6; 8], &[])), TP);
    assert_eq!(HONEST().verdict(&with(&[], &[])), TP);
    assert_eq!(HONEST().verdict(&integer(0x04, 100_000)), TP);
}

#[test]
fn several_paths_without_connection_ids_are_a_violation() {
    // attacks.md G4, RFC 10069 §2.1.
    let client = Opener { source: Vec::new(), ..HONEST() };
    assert_eq!(client.verdict(&with(&[], &integer(0x3e, 3))), Some(ErrorCode::PROTOCOL_VIOLATION));
    assert_eq!(client.verdict(&with(&[], &[])), None);
}

#[test]
fn twelve_kilobytes_of_unknown_transport_parameters_are_read_and_forgotten() {
    // attacks.md B6. TLS reads no ClientHello of more than 16 KiB.
    let unknown: Vec<u8> = (0..1000).flat_map(|n| parameter(31 * n + 27, &[0xff; 8])).collect();
    assert!(unknown.len() > 11_000);
    assert_eq!(HONEST().verdict(&honest_with(&unknown)), None);
}

#[test]
fn clients_without_a_common_protocol_or_without_parameters_are_told_so() {
    // attacks.md B10, B11, RFC 9001 §8.1, §8.2.
    let other = Opener { protocol: "other", ..HONEST() };
    assert_eq!(other.verdict(&honest_with(&[])), Some(ErrorCode::crypto(120)));
    let parameters = honest_with(&integer(0x04, 123_456));
    let mut hello = HONEST().hello(&parameters);
    let value = hello.windows(parameters.len()).position(|window| window == parameters).unwrap();
    // RFC 8446 §4.2: the type and the length of the extension come before.
    assert_eq!(hello[value - 4..value - 2], [0, 57]);
    hello[value - 4] = 0xff;
    assert_eq!(HONEST().begin(hello), Some(ErrorCode::crypto(109)));
}

#[test]
fn ten_thousand_spoofed_handshakes_keep_no_honest_client_out() {
    // attacks.md B13, quic-go #4248: each address begins and never goes on.
    let mut payload = Vec::new();
    Frame::Crypto(Crypto { offset: 0, data: honest_hello().into() }).put(&mut payload);
    let mut network = Network::new(transport(), transport());
    let tuples: Vec<_> = (0..100).map(|_| network.link(Duration::from_millis(20))).collect();
    let mut honest = Vec::new();
    for n in 0..10_000_u16 {
        let destination = [&n.to_be_bytes()[..], &[7; 8]].concat();
        let bytes = sealed(&initial(&destination, &payload), |first| first);
        network.forge(([192, 0, 2, 1], 2000 + n).into(), &bytes);
        if n % 100 == 50 {
            honest.push(network.connect(tuples[honest.len()]));
        }
        if n % 10 == 0 {
            network.run_for(Duration::from_millis(2));
        }
        assert!(network.server.handles().count() <= 250 + 100);
    }
    network.run_for(Duration::from_secs(2));
    let served = |client| network.client_events.contains(&(client, Event::Confirmed));
    assert_eq!(honest.into_iter().filter(|client| served(*client)).count(), 100);
    assert!(network.server.stats().retries > 9_000, "{:?}", network.server.stats());
    network.run_for(Duration::from_secs(10));
    assert_eq!(network.server.handles().count(), 100, "the others are forgotten");
}

#[test]
fn tls_messages_out_of_place_close_with_unexpected_message() {
    // attacks.md B12, RFC 9001 §8.3: EndOfEarlyData, KeyUpdate, Finished and a ServerHello.
    for message in [&[5, 0, 0, 0][..], &[24, 0, 0, 1, 0], &[20, 0, 0, 1, 0], &[2, 0, 0, 1, 0]] {
        assert_eq!(HONEST().begin(message.to_vec()), Some(ErrorCode::crypto(10)), "{message:x?}");
    }
}
