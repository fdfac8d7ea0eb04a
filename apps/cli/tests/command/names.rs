//! `hvq get` of names that a DNS server of the test knows, with HTTPS records (RFC 9460).

use crate::support::{Running, code, hvq, run, said};
use hickory_resolver::proto::op::{Message, OpCode};
use hickory_resolver::proto::rr::rdata::svcb::{Alpn, SvcParamKey, SvcParamValue};
use hickory_resolver::proto::rr::rdata::{A, HTTPS, SVCB};
use hickory_resolver::proto::rr::{Name, RData, Record, RecordType};
use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::thread;

const HOST: &str = "www.hvq.example";

/// A DNS server in which names that begin with `elsewhere` are at 127.0.0.2, and all others at 127.0.0.1; [`HOST`] offers HTTP/3 at `port`
/// of a host of another name.
pub fn dns_server(port: u16) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    thread::spawn(move || {
        let mut buffer = [0; 2048];
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            let question = Message::from_vec(&buffer[..length]).unwrap();
            let query = question.queries[0].clone();
            let mut answer = Message::response(question.id, OpCode::Query);
            answer.add_query(query.clone());
            let record = |data| Record::from_rdata(query.name().clone(), 60, data);
            match query.query_type() {
                RecordType::A => {
                    let last = if query.name().to_string().starts_with("elsewhere") { 2 } else { 1 };
                    answer.add_answer(record(RData::A(A::new(127, 0, 0, last))));
                }
                RecordType::HTTPS if query.name().to_string() == format!("{HOST}.") => {
                    answer.add_answer(record(RData::HTTPS(HTTPS(service(port)))));
                }
                _ => {}
            }
            socket.send_to(&answer.to_vec().unwrap(), from).unwrap();
        }
    });
    address
}

fn service(port: u16) -> SVCB {
    let target: Name = "edge.hvq.example.".parse().unwrap();
    let params = vec![
        (SvcParamKey::Alpn, SvcParamValue::Alpn(Alpn(vec!["h2".to_owned(), "h3".to_owned()]))),
        (SvcParamKey::Port, SvcParamValue::Port(port)),
    ];
    SVCB::new(1, target, params)
}

#[test]
fn an_https_record_leads_to_the_port_that_offers_http3() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("hello.txt"), "hello world").unwrap();
    let certificate = folder.path().join("certificate.pem");
    let (root, authority) = (folder.path().to_str().unwrap(), certificate.to_str().unwrap());
    let serve = ["serve", "--json", "--self-signed", HOST, "--write-cert", authority];
    let server = Running::start(serve.into_iter().chain(["--root", root, "--listen", "127.0.0.1:0"]));
    let port = server.address(0).port();
    let (dns, url) = (dns_server(port).to_string(), format!("https://{HOST}/hello.txt"));
    let output = run(["get", &url, "--cacert", authority, "--dns-server", &dns]);
    assert_eq!((code(&output), output.stdout.as_slice()), (0, &b"hello world"[..]), "{}", said(&output));
    let told = hvq().args(["get", "-v", &url, "--cacert", authority, "--dns-server", &dns]).output().unwrap();
    let expected = format!("connecting to 127.0.0.1:{port} as {HOST}");
    assert!(said(&told).contains(&expected), "{}", said(&told));
}

#[test]
fn dns_servers_are_addresses_and_one_that_is_silent_is_an_error_soon() {
    let wrong = run(["get", "https://www.hvq.example/", "--dns-server", "dns.example"]);
    assert_eq!(code(&wrong), 2);
    assert!(said(&wrong).contains("expected ADDRESS or ADDRESS:PORT"), "{}", said(&wrong));
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let dns = silent.local_addr().unwrap().to_string();
    let late = run(["get", "https://www.hvq.example/", "--dns-server", &dns, "--max-time", "30s"]);
    assert_eq!(code(&late), 3, "{}", said(&late));
    assert!(said(&late).contains("cannot resolve www.hvq.example"), "{}", said(&late));
}
