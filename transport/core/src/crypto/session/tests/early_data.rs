//! 0-RTT is accepted once with each ticket, and under the settings that the ticket was issued under only.

use super::*;
use crate::crypto::replay::ReplayGuard;
use crate::time::Instant;
use std::sync::Arc;

struct World {
    client: ClientTls,
    server: ServerTls,
    guard: Arc<ReplayGuard>,
}

impl World {
    fn new() -> Self {
        let pki = pki();
        let guard = Arc::new(ReplayGuard::new(&[5; 32]));
        Self { client: pki.client(), server: pki.server(), guard }
    }

    fn server(&self, context: &[u8], guard: &Arc<ReplayGuard>) -> Session {
        let mut server = Session::server(&self.server, b"server parameters").unwrap();
        server.accept_early_data(context, guard, Instant::ZERO).unwrap();
        server
    }

    fn ticket(&self) -> Ticket {
        let (mut client, _) = sessions(&self.client, &self.server, "example.test");
        let mut server = self.server(b"limits", &self.guard);
        shake(&mut client, &mut server, 4096).unwrap();
        client.take_tickets().pop().unwrap()
    }

    fn client(&self, ticket: &Ticket) -> Session {
        let mut client = Session::client(&self.client, "example.test", b"client parameters").unwrap();
        client.resume(ticket).unwrap();
        client.offer_early_data();
        client
    }
}

//= https://www.rfc-editor.org/rfc/rfc9001#section-5.6
//= type=test
//# A server MUST NOT use 0-RTT keys to protect packets; it uses 1-RTT keys to protect acknowledgments of
//# 0-RTT packets
#[test]
fn both_sides_have_the_key_for_early_data_and_the_server_can_answer_at_once() {
    let world = World::new();
    let ticket = world.ticket();
    let (mut client, mut server) = (world.client(&ticket), world.server(b"limits", &world.guard));
    client.start().unwrap();
    let hello = take(&mut client);
    let sent: Vec<_> = hello.secrets.iter().filter(|(_, level, _)| *level == Level::ZeroRtt).collect();
    assert_eq!(sent.len(), 1);
    carry(&mut server, &hello.data, 4096).unwrap();
    let answer = take(&mut server);
    assert!(answer.secrets.contains(&(true, Level::ZeroRtt, sent[0].2.clone())));
    let opens_next = |(reads, level, _): &Given| *reads && *level == Level::Handshake;
    assert!(answer.secrets.iter().any(opens_next), "the end of the client's handshake comes next");
    // RFC 9001 §5.7: the server may send 1-RTT packets, and opens none before the handshake is complete.
    let one_rtt: Vec<_> = answer.secrets.iter().filter(|(_, level, _)| *level == Level::OneRtt).collect();
    assert!(one_rtt.len() == 1 && !one_rtt[0].0);
    carry(&mut client, &answer.data, 4096).unwrap();
    let finished = take(&mut client);
    carry(&mut server, &finished.data, 4096).unwrap();
    assert!(client.is_early_data_accepted() && server.is_early_data_accepted());
    assert!(!client.is_handshaking() && !server.is_handshaking() && !finished.rejected);
}

#[test]
fn a_used_ticket_another_context_and_another_guard_reject_early_data_and_nothing_else() {
    // RFC 8446 §8.1, RFC 9001 §4.6.1, attacks F12.
    let world = World::new();
    let used = world.ticket();
    shake(&mut world.client(&used), &mut world.server(b"limits", &world.guard), 4096).unwrap();
    let stranger = Arc::new(ReplayGuard::new(&[6; 32]));
    let cases = [
        (used, b"limits", &world.guard),
        (world.ticket(), b"others", &world.guard),
        (world.ticket(), b"limits", &stranger),
    ];
    for (number, (ticket, context, guard)) in cases.into_iter().enumerate() {
        let (mut client, mut server) = (world.client(&ticket), world.server(context, guard));
        client.start().unwrap();
        let hello = take(&mut client);
        carry(&mut server, &hello.data, 4096).unwrap();
        let answer = take(&mut server);
        assert!(answer.secrets.iter().all(|(_, level, _)| *level != Level::ZeroRtt), "case {number}");
        carry(&mut client, &answer.data, 4096).unwrap();
        let finished = take(&mut client);
        assert!(finished.rejected, "case {number}");
        carry(&mut server, &finished.data, 4096).unwrap();
        assert!(!client.is_early_data_accepted() && !server.is_early_data_accepted());
        assert!(client.is_resumed() && !client.is_handshaking() && !server.is_handshaking());
    }
}

#[test]
fn a_server_that_accepts_none_issues_tickets_that_permit_none() {
    let world = World::new();
    let (mut client, mut server) = sessions(&world.client, &world.server, "example.test");
    shake(&mut client, &mut server, 4096).unwrap();
    let mut client = world.client(&client.take_tickets().pop().unwrap());
    client.start().unwrap();
    assert!(take(&mut client).secrets.is_empty());
}
