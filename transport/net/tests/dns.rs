//! Names with HTTPS records (RFC 9460), from a DNS server on loopback.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use common::{NAME, Pki, local, transport, within};
use hickory_resolver::proto::op::{Message, OpCode, ResponseCode};
use hickory_resolver::proto::rr::rdata::svcb::{Alpn, IpHint, SvcParamKey, SvcParamValue};
use hickory_resolver::proto::rr::rdata::{A, AAAA, HTTPS, SVCB};
use hickory_resolver::proto::rr::{Name, RData, Record, RecordType};
use hvq::dns::Resolver;
use hvq::{Destination, Dialer, Endpoint, PathOptions};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::net::UdpSocket;

/// A DNS server: what it answers, and what it was asked.
#[derive(Clone, Default)]
struct Zone {
    records: BTreeMap<(String, RecordType), Vec<RData>>,
    /// Questions of this type are answered late.
    late: Option<(RecordType, Duration)>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Zone {
    fn with(mut self, name: &str, data: RData) -> Self {
        self.records.entry((name.to_owned(), data.record_type())).or_default().push(data);
        self
    }

    fn address(self, name: &str, address: &str) -> Self {
        let data = match address.parse().unwrap() {
            IpAddr::V4(four) => RData::A(A(four)),
            IpAddr::V6(six) => RData::AAAA(AAAA(six)),
        };
        self.with(name, data)
    }

    fn alias(self, name: &str, target: &str) -> Self {
        self.with(name, RData::HTTPS(HTTPS(SVCB::new(0, target.parse().unwrap(), Vec::new()))))
    }

    /// A record with a protocol, a port (0: none) and perhaps a hint.
    fn service(
        self,
        name: &str,
        (priority, target): (u16, &str),
        protocol: &str,
        (port, hint): (u16, &str),
    ) -> Self {
        let mut params = vec![(SvcParamKey::Alpn, SvcParamValue::Alpn(Alpn(vec![protocol.to_owned()])))];
        if port > 0 {
            params.push((SvcParamKey::Port, SvcParamValue::Port(port)));
        }
        if !hint.is_empty() {
            let hint = IpHint(vec![A(hint.parse().unwrap())]);
            params.push((SvcParamKey::Ipv4Hint, SvcParamValue::Ipv4Hint(hint)));
        }
        self.with(name, RData::HTTPS(HTTPS(SVCB::new(priority, target.parse().unwrap(), params))))
    }

    async fn serve(self) -> Resolver {
        let socket = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
        let address = socket.local_addr().unwrap();
        tokio::spawn(async move {
            let mut buffer = [0; 2048];
            while let Ok((length, from)) = socket.recv_from(&mut buffer).await {
                let question = Message::from_vec(&buffer[..length]).unwrap();
                tokio::spawn(self.clone().answer(question, socket.clone(), from));
            }
        });
        Resolver::with_servers(&[address]).unwrap()
    }

    async fn answer(self, question: Message, socket: Arc<UdpSocket>, to: SocketAddr) {
        let query = question.queries[0].clone();
        let (name, kind) = (query.name().to_ascii(), query.query_type());
        self.asked.lock().unwrap().push(format!("{name} {kind}"));
        if let Some((_, delay)) = self.late.filter(|(late, _)| *late == kind) {
            tokio::time::sleep(delay).await;
        }
        let mut answer = Message::response(question.id, OpCode::Query);
        answer.add_query(query.clone());
        let records = self.records.get(&(name.clone(), kind)).cloned().unwrap_or_default();
        if records.is_empty() && !self.records.keys().any(|(known, _)| *known == name) {
            answer.metadata.response_code = ResponseCode::NXDomain;
        }
        for data in records {
            answer.add_answer(Record::from_rdata(Name::from_ascii(&name).unwrap(), 60, data));
        }
        let _gone = socket.send_to(&answer.to_vec().unwrap(), to).await;
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

async fn found(resolver: &Resolver, host: &str, port: u16) -> Vec<String> {
    let found = within(Destination::resolve_https(resolver, host, port, &[])).await.unwrap();
    found.iter().map(|found| found.address.to_string()).collect()
}

#[tokio::test]
async fn services_come_before_the_addresses_of_the_host() {
    let zone = Zone::default()
        .address("host.example.", "192.0.2.1")
        .address("host.example.", "2001:db8::1")
        .service("host.example.", (2, "far.example."), "h3", (0, ""))
        .service("host.example.", (1, "."), "h3", (8443, ""))
        .service("host.example.", (3, "old.example."), "h2", (0, ""))
        .address("far.example.", "192.0.2.9");
    let resolver = zone.serve().await;
    let expected =
        ["[2001:db8::1]:8443", "192.0.2.1:8443", "192.0.2.9:443", "[2001:db8::1]:443", "192.0.2.1:443"];
    assert_eq!(found(&resolver, "host.example", 443).await, expected);
}

#[tokio::test]
async fn an_alias_leads_to_records_or_to_addresses_and_a_circle_ends() {
    let zone = Zone::default()
        .address("host.example.", "192.0.2.1")
        .alias("host.example.", "pool.example.")
        .service("pool.example.", (1, "."), "h3", (444, ""))
        .address("pool.example.", "192.0.2.2")
        .alias("bare.example.", "plain.example.")
        .address("plain.example.", "192.0.2.3")
        .alias("circle.example.", "circle.example.")
        .address("circle.example.", "192.0.2.4");
    let resolver = zone.serve().await;
    assert_eq!(found(&resolver, "host.example", 443).await, ["192.0.2.2:444", "192.0.2.1:443"]);
    assert_eq!(found(&resolver, "bare.example", 443).await, ["192.0.2.3:443"]);
    assert_eq!(found(&resolver, "circle.example", 443).await, ["192.0.2.4:443"]);
}

#[tokio::test]
async fn another_port_is_part_of_the_question() {
    let zone = Zone::default()
        .address("host.example.", "192.0.2.1")
        .service("host.example.", (1, "."), "h3", (1, ""))
        .service("_8443._https.host.example.", (1, "host.example."), "h3", (0, "192.0.2.7"));
    let resolver = zone.clone().serve().await;
    assert_eq!(found(&resolver, "host.example", 8443).await, ["192.0.2.1:8443"]);
    assert!(zone.asked().contains(&"_8443._https.host.example. HTTPS".to_owned()), "{:?}", zone.asked());
}

#[tokio::test]
async fn hints_stand_in_for_addresses_that_do_not_come() {
    let zone = Zone::default().address("host.example.", "192.0.2.1").service(
        "host.example.",
        (1, "dark.example."),
        "h3",
        (0, "192.0.2.7"),
    );
    let resolver = zone.serve().await;
    assert_eq!(found(&resolver, "host.example", 443).await, ["192.0.2.7:443", "192.0.2.1:443"]);
}

#[tokio::test]
async fn a_server_that_does_not_answer_about_records_costs_little() {
    let mut zone = Zone::default().address("host.example.", "192.0.2.1");
    zone.late = Some((RecordType::HTTPS, Duration::from_secs(20)));
    let resolver = zone.clone().serve().await;
    let begun = Instant::now();
    assert_eq!(found(&resolver, "host.example", 443).await, ["192.0.2.1:443"]);
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    assert!(zone.asked().contains(&"host.example. HTTPS".to_owned()));
}

#[tokio::test]
async fn local_names_and_addresses_have_no_records_and_an_unknown_name_is_an_error() {
    let zone = Zone::default();
    let resolver = zone.clone().serve().await;
    assert_eq!(found(&resolver, "192.0.2.1", 443).await, ["192.0.2.1:443"]);
    for name in ["printer.local", "box"] {
        let _nothing = within(Destination::resolve_https(&resolver, name, 443, &[])).await;
    }
    assert!(!zone.asked().iter().any(|asked| asked.ends_with("HTTPS")), "{:?}", zone.asked());
    let unknown = within(Destination::resolve_https(&resolver, "no.example", 443, &[])).await;
    let text = unknown.unwrap_err().to_string();
    assert!(text.starts_with("cannot resolve no.example: "), "{text}");
    assert!(Resolver::with_servers(&[]).is_err());
}

#[tokio::test]
async fn a_dialer_reaches_the_service_with_the_certificate_of_the_host() {
    let pki = Pki::new();
    let server = Endpoint::server(pki.server(transport()), &[local("127.0.0.1:0")]).unwrap();
    let alive = server.local_addrs()[0];
    let host = format!("{NAME}.");
    let resolver = Zone::default()
        .address(&host, "127.0.0.1")
        .service(&host, (1, "elsewhere.example."), "h3", (alive.port(), "127.0.0.1"))
        .serve()
        .await;
    let client = Endpoint::client(&[]).unwrap();
    let dialer = Dialer::new(client.clone(), pki.client(transport()));
    let paths = [PathOptions::new("wifi", local("127.0.0.2")), PathOptions::new("cell", local("127.0.0.3"))];
    let destinations = within(Destination::resolve_https(&resolver, NAME, 443, &paths)).await.unwrap();
    let dialed = within(dialer.dial_resolved(NAME, &destinations)).await.unwrap();
    assert_eq!(dialed.connection.remote_address(), alive);
    assert_eq!(dialed.others[0].remote, Some(alive), "the other path goes to the same service");
}
