//! Clients whose certificates open the gateway.

use crate::setup::{Client, Fixture, Origin, TOKEN, within};
use bytes::Bytes;
use h3::ext::Protocol;
use http::{Method, Request};
use hvq::Identity;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    date_time_ymd,
};

/// An authority for clients.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn pem(&self) -> String {
        AsRef::<rcgen::Certificate>::as_ref(&self.0).pem()
    }

    /// A client called `name`, until the end of `year`.
    fn client(&self, name: &str, year: i32) -> Identity {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(year, 12, 31);
        let leaf = params.signed_by(&key, &self.0).unwrap();
        Identity::Pem { chain: leaf.pem().into_bytes(), key: key.serialize_pem().into_bytes() }
    }
}

async fn connect(client: &Client, to: &str, token: Option<&str>, protocol: Option<Protocol>) -> u16 {
    let mut request = Request::builder().method(Method::CONNECT).uri(to);
    if let Some(token) = token {
        request = request.header("proxy-authorization", format!("Bearer {token}"));
    }
    let mut request = request.body(()).unwrap();
    if let Some(protocol) = protocol {
        request.extensions_mut().insert(protocol);
    }
    client.open(request).await.0
}

#[tokio::test]
async fn a_certificate_opens_the_gateway_for_the_names_that_are_allowed() {
    let (origin, ours, others) = (Origin::plain().await, Authority::new("ours"), Authority::new("others"));
    let text = "[log]\nfile = 'DIR/access.log'\n[proxy]\nallow = ['127.0.0.1:*']\nreach = ['127.0.0.0/8']\n\
                client_ca = 'DIR/clients.pem'\nclients = ['*.people.example']\n";
    let place = Fixture::with(text, &[("clients.pem", &ours.pem())]).await;
    let to = origin.address.to_string();
    let ann = place.client_as(&ours.client("ann.people.example", 2099)).await;
    assert_eq!(connect(&ann, &to, None, None).await, 200);
    let udp = format!("https://localhost/.well-known/masque/udp/127.0.0.1/{}/", origin.address.port());
    assert_eq!(connect(&ann, &udp, None, Some(Protocol::CONNECT_UDP)).await, 200);
    let url = format!("http://{to}/plain");
    assert_eq!(ann.status(Request::get(&url).body(Bytes::new()).unwrap()).await, 200);
    // Nobody else: no certificate, one of another name, of another authority, one that has expired.
    let stranger = place.client().await;
    assert_eq!(connect(&stranger, &to, None, None).await, 407);
    assert_eq!(connect(&stranger, &to, Some(TOKEN), None).await, 407, "there are no tokens here");
    let bob = place.client_as(&ours.client("bob.elsewhere.example", 2099)).await;
    assert_eq!(connect(&bob, &to, None, None).await, 407);
    let other = place.end_of(&others.client("ann.people.example", 2099)).await.to_string();
    assert!(other.contains("alert 48)"), "unknown_ca (RFC 8446 §6.2): {other}");
    let late = place.end_of(&ours.client("ann.people.example", 2020)).await.to_string();
    assert!(late.contains("alert 45)"), "certificate_expired (RFC 8446 §6.2): {late}");
    let log = place.file("access.log");
    within(async {
        while !std::fs::read_to_string(&log).unwrap().contains("- ann.people.example [") {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn tokens_and_certificates_go_together_and_a_gateway_that_does_not_ask_gets_none() {
    let (origin, ours) = (Origin::plain().await, Authority::new("ours"));
    let both = "[proxy]\nallow = ['127.0.0.1:*']\nreach = ['127.0.0.0/8']\ntokens = 'DIR/tokens'\n";
    let text = format!("{both}client_ca = 'DIR/clients.pem'\n");
    let mut place = Fixture::with(&text, &[("clients.pem", &ours.pem())]).await;
    let (to, ann) = (origin.address.to_string(), ours.client("ann", 2099));
    let holder = place.client_as(&ann).await;
    assert_eq!(connect(&holder, &to, None, None).await, 200);
    assert_eq!(connect(&place.client().await, &to, Some(TOKEN), None).await, 200);
    // The authority is taken away: what was shown before does not count any more either.
    place.reload(both).unwrap();
    assert_eq!(connect(&holder, &to, None, None).await, 407);
    let again = place.client_as(&ann).await;
    assert_eq!(connect(&again, &to, None, None).await, 407);
    assert_eq!(connect(&again, &to, Some(TOKEN), None).await, 200);
}
