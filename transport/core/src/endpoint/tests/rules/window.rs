//! The congestion window binds the handshake, too.

use super::RTT;
use crate::connection::Event;
use crate::crypto::session::{ClientTls, Identity, ServerTls, Verify};
use crate::endpoint::RetryPolicy;
use crate::endpoint::tests::network::{Network, transport};

/// A server whose certificate is longer than its initial window, and which knows its clients' addresses from Retry.
fn with_a_long_certificate() -> Network {
    let mut network = Network::new(transport(), transport());
    let names: Vec<String> = (0..600).map(|number| format!("{number:04}.a-long-name.server.test")).collect();
    let made = rcgen::generate_simple_self_signed(names).expect("the names are valid");
    let (chain, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let identity = Identity::Pem { chain: chain.into(), key: key.into() };
    network.configure_server(|server| {
        server.tls = ServerTls::builder(identity).alpn(["hvq"]).build().expect("the certificate is valid");
        server.retry = RetryPolicy::Always;
    });
    network.client_config.tls =
        ClientTls::builder().alpn(["hvq"]).verify(Verify::Insecure).build().expect("nothing to read");
    network
}

//= https://www.rfc-editor.org/rfc/rfc9002#section-7
//= type=test
//# An endpoint MUST NOT send a packet if it would cause bytes_in_flight (see Appendix B.2) to be larger than the
//# congestion window, unless the packet is sent on a PTO timer expiration
#[test]
fn a_handshake_that_exceeds_the_initial_window_waits_for_acknowledgements() {
    let mut network = with_a_long_certificate();
    let tuple = network.link(RTT / 2);
    let client = network.connect(tuple);
    // One round trip for Retry, half of one for the first packets with its token.
    network.run_for(RTT * 3 / 2 - RTT / 10);
    let flight = network.record(0);
    network.run_for(RTT / 5);
    let sent: usize = flight.borrow().iter().map(Vec::len).sum();
    let window = network.server().stats().paths[0].window;
    // More than three times what came, but no more than the window.
    assert!(sent > 3 * 2400 && sent <= window, "{sent} bytes in flight, a window of {window}");
    network.run_for(RTT * 5);
    assert!(network.client_events.contains(&(client, Event::Confirmed)), "{:?}", network.client_events);
}
