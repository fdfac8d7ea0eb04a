//! ORIGIN frames between our ends (RFC 9412).

use crate::setup::{pair_for, within};
use hvq_h3::client::Client;
use hvq_h3::serving::Server;
use hvq_h3::{Origin, Settings};
use std::time::Duration;

fn origin(host: &str, port: u16) -> Origin {
    Origin::new(host, port).unwrap()
}

//= https://www.rfc-editor.org/rfc/rfc8336#section-2.4
//= type=test
//# Specifically, such clients MUST NOT consider a connection to be authoritative for an origin not
//# present in the Origin Set
//= https://www.rfc-editor.org/rfc/rfc8336#section-2.3
//= type=test
//# Upon receipt of a response with this status code, implementing clients MUST create the ASCII
//# serialization of the corresponding request's origin (as per [RFC6454], Section 6.2) and remove it from
//# the connection's Origin Set, if present.
//= https://www.rfc-editor.org/rfc/rfc8336#section-2.2
//= type=test
//# The ORIGIN frame MUST be sent on stream 0; an ORIGIN frame on any other stream is invalid and MUST be
//# ignored.
#[tokio::test]
async fn a_connection_serves_the_origins_that_the_server_named_and_its_certificate_is_for() {
    let pair = pair_for(&["localhost", "a.test", "b.test", "*.wild.test"]).await;
    let client = Client::new(pair.client.clone(), Settings::default()).await.unwrap();
    tokio::spawn(client.watch());
    let server = Server::new(pair.server.clone(), Settings::default()).await.unwrap();
    assert!(!client.serves(&origin("a.test", 443)), "nobody said so yet");
    server.announce(&[origin("a.test", 443), origin("elsewhere.test", 443)]);
    server.announce(&[origin("b.test", 8443), origin("one.wild.test", 443)]);
    within(async {
        while !client.serves(&origin("one.wild.test", 443)) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    assert!(client.serves(&origin("A.Test", 443)) && client.serves(&origin("b.test", 8443)));
    assert!(!client.serves(&origin("b.test", 443)), "another port is another origin");
    assert!(!client.serves(&origin("two.wild.test", 443)), "the certificate alone does not do");
    assert!(!client.serves(&origin("elsewhere.test", 443)), "the frame alone does not do");
    client.misdirected(&origin("a.test", 443));
    assert!(!client.serves(&origin("a.test", 443)) && client.serves(&origin("b.test", 8443)));
    assert_eq!(pair.client.close_reason(), None);
}
