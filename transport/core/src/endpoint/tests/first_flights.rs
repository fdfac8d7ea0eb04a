//! The first flights of a connection: the connection IDs that they go to, and what each end says when.

use super::event_log::{EventLog, Note, protected};
use super::network::{Network, transport};
use crate::connection::{Event, Role};
use crate::error::Dropped;
use crate::stream::Direction;
use crate::wire::connection_id::ConnectionId;
use crate::wire::frame::Frame;
use crate::wire::header::{PacketKind, ProtectedPacket, destination_of};
use crate::wire::level::Level;
use std::time::Duration;

const RTT: Duration = Duration::from_millis(40);
const MILLISECOND: Duration = Duration::from_millis(1);

fn is_crypto(frame: &Frame) -> bool {
    matches!(frame, Frame::Crypto(_))
}

fn is_done(frame: &Frame) -> bool {
    *frame == Frame::HandshakeDone
}

fn goes_to(packets: &[ProtectedPacket], id: ConnectionId) -> bool {
    packets.iter().all(|packet| packet.destination == id)
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-7.2
//= type=test
//# This Destination Connection ID MUST be at least 8 bytes in length
//= https://www.rfc-editor.org/rfc/rfc9000#section-7.2
//= type=test
//# Until a packet is received from the server, the client MUST use the same Destination Connection ID value
//# on all packets in this connection.
//= https://www.rfc-editor.org/rfc/rfc9000#section-7.2
//= type=test
//# A server MUST set the Destination Connection ID it uses for sending packets based on the first received
//# Initial packet
//= https://www.rfc-editor.org/rfc/rfc9000#section-12.2
//= type=test
//# Receivers MUST be able to process coalesced packets.
#[test]
fn a_client_keeps_its_first_destination_until_the_server_names_its_own() {
    // A round trip that is longer than the first probe timeout, so that the client repeats itself before the answer.
    let event_log = EventLog::new();
    let mut network = Network::new(event_log.keep(transport()), transport());
    let tuple = network.link(Duration::from_millis(750));
    let sent = network.record(0);
    let client = network.connect(tuple);
    let mut until = |milliseconds: u64| {
        network.run_for(Duration::from_millis(milliseconds));
        std::mem::take(&mut *sent.borrow_mut())
    };
    let (hello, answer, probe) = (until(740), until(20), until(730));
    let (hello, probe) = (protected(&hello), protected(&probe));
    let (chosen, own) = (hello[0].destination, hello[0].source);
    assert!(chosen.len() >= 8 && hello.len() > 1, "{hello:?}");
    assert!(!probe.is_empty() && goes_to(&hello, chosen) && goes_to(&probe, chosen), "{probe:?}");

    let answered = protected(&answer);
    assert!(answered.len() > answer.len(), "packets are coalesced");
    assert!(goes_to(&answered, own));
    let next = protected(&until(20));
    let named = answered[0].source;
    assert!(named != chosen && !next.is_empty() && goes_to(&next, named), "{named:?} {next:?}");
    // What is coalesced is taken apart: every packet of the answer was read.
    assert_eq!(event_log.received(Role::Client).len(), answered.len());
    assert!(network.client_events.contains(&(client, Event::Connected)));
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-19.20
//= type=test
//# Servers MUST NOT send a HANDSHAKE_DONE frame before completing the handshake
//= https://www.rfc-editor.org/rfc/rfc9001#section-4.1.2
//= type=test
//# The server MUST send a HANDSHAKE_DONE frame as soon as the handshake is complete
//= https://www.rfc-editor.org/rfc/rfc9001#section-4.9
//= type=test
//# Though an endpoint might retain older keys, new data MUST be sent at the highest currently available
//# encryption level
#[test]
fn the_server_says_that_it_is_done_when_it_is_and_new_data_takes_the_newest_keys() {
    let event_log = EventLog::new();
    let mut network = Network::new(event_log.keep(transport()), event_log.keep(transport()));
    let tuple = network.link(RTT / 2);
    let client = network.connect(tuple);
    network.run_for(RTT + MILLISECOND);
    let id = network.client(client).open(Direction::Unidirectional).unwrap();
    assert_eq!(network.client(client).write(id, &[7; 500]), Ok(500));
    network.run_for(RTT * 3);
    let notes = event_log.notes(Role::Server);
    // The client's Finished completes the handshake (RFC 9001 §4.1.1).
    let finished =
        |note: &Note| matches!(note, Note::Received(of) if of.level == Level::Handshake && of.has(is_crypto));
    let done = |note: &Note| matches!(note, Note::Sent(packet) if packet.has(is_done));
    let complete = notes.iter().position(finished).unwrap();
    let said = notes.iter().position(done).unwrap();
    let at = |index: usize| match &notes[index] {
        Note::Sent(packet) | Note::Received(packet) => packet.at,
        _ => panic!("it is a packet"),
    };
    assert!(complete < said && at(complete) == at(said), "{notes:?}");
    // From then on whatever is new has the newest keys, tickets among it.
    let later = notes[complete..].iter().filter_map(|note| match note {
        Note::Sent(packet) if packet.is_ack_eliciting() => Some(packet),
        _ => None,
    });
    let later: Vec<_> = later.collect();
    assert!(later.iter().all(|packet| packet.level == Level::OneRtt), "{later:?}");
    assert!(later.iter().any(|packet| packet.has(is_crypto)));
    let is_stream = |frame: &Frame| matches!(frame, Frame::Stream(_));
    let data: Vec<_> =
        event_log.sent(Role::Client).into_iter().filter(|packet| packet.has(is_stream)).collect();
    assert!(!data.is_empty() && data.iter().all(|packet| packet.level == Level::OneRtt), "{data:?}");
}

//= https://www.rfc-editor.org/rfc/rfc9001#section-4.9.2
//= type=test
//# An endpoint MUST discard its Handshake keys when the TLS handshake is confirmed (Section 4.1.2).
#[test]
fn keys_of_the_handshake_are_gone_when_it_is_confirmed() {
    let event_log = EventLog::new();
    let mut network = Network::new(event_log.keep(transport()), event_log.keep(transport()));
    let tuple = network.link(RTT / 2);
    let sent = network.record(0);
    let client = network.connect(tuple);
    network.run_for(RTT + MILLISECOND);
    let own = protected(&sent.borrow()[..1])[0].source;
    let packets = protected(&sent.borrow());
    let handshake = |packet: &&ProtectedPacket| packet.kind == PacketKind::Handshake;
    let copy = |to_client: bool| {
        let found = packets.iter().filter(handshake).find(|packet| (packet.destination == own) == to_client);
        found.unwrap().bytes.to_vec()
    };
    let show = |network: &mut Network, role: Role| {
        let before = event_log.dropped(role).len();
        match role {
            Role::Client => network.forge_back(&copy(true)),
            Role::Server => network.forge(tuple.local, &copy(false)),
        }
        event_log.dropped(role)[before..].to_vec()
    };
    assert_eq!(show(&mut network, Role::Client), [Dropped::Duplicate], "the key is there");
    network.run_for(RTT);
    assert!(network.client_events.contains(&(client, Event::Confirmed)));
    for role in [Role::Client, Role::Server] {
        assert_eq!(show(&mut network, role), [Dropped::NoKeys], "{role:?}");
    }
}

//= https://www.rfc-editor.org/rfc/rfc9002#section-6.2.2
//= type=test
//# When Initial or Handshake keys are discarded, the PTO and loss detection timers MUST be reset, because
//# discarding keys indicates forward progress and the loss detection timer might have been set for
#[test]
fn keys_that_go_take_the_backoff_of_the_probe_timeout_with_them() {
    let event_log = EventLog::new();
    let mut network = Network::new(event_log.keep(transport()), transport());
    let tuple = network.link(RTT / 2);
    let sent = network.record(0);
    let client = network.connect(tuple);
    network.run_for(MILLISECOND);
    let chosen = protected(&sent.borrow())[0].destination;
    // No answer arrives for two probe timeouts.
    let deaf = network.now + Duration::from_millis(2_500);
    network.links[0].drop =
        Box::new(move |now, bytes| now < deaf && destination_of(bytes, 8) != Some(chosen));
    while !network.client_events.contains(&(client, Event::Connected)) {
        network.run_for(MILLISECOND);
    }
    let path = network.client(client).stats().paths[0].clone();
    assert_eq!(path.counters.probe_timeouts, 2);
    // The client's Finished discards its Initial keys, and is lost.
    network.links[0].drop = Box::new(|_, _| true);
    network.run_for(path.rtt * 5);
    let sent = event_log.sent(Role::Client);
    let times: Vec<_> =
        sent.iter().filter(|packet| packet.level == Level::Handshake && packet.is_ack_eliciting()).collect();
    let gap = times.iter().map(|packet| packet.at.since(times[0].at)).find(|gap| !gap.is_zero());
    // One round trip was measured: its variation is half of it (RFC 9002 §5.3, §6.2.1).
    assert_eq!(gap, Some(path.rtt * 3), "{times:?}");
}
