//! IP packets through the gateway, out of a device of this machine.

use crate::setup::{Client, Fixture, TOKEN, body, within};
use bytes::Buf;
use h3::ext::Protocol;
use http::{Method, Request};
use hvq_gateway::{Gateway, StartError};
use hvq_h3::Datagrams;
use std::net::Ipv4Addr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::time::Duration;

/// A network for tunnels that no other test uses, of this process or of another, for as long as this lives. A second device
/// with the same addresses would get the packets of the first.
struct Network {
    number: u8,
    _claim: UnixListener,
}

impl Network {
    /// Claims one of those that `hvq run` and gateways without a number use none of.
    fn claim() -> Self {
        // Names of this kind are of one network namespace, as devices are, and go with the process.
        let claim = |number: u8| {
            let name = SocketAddr::from_abstract_name(format!("hvq-test-tunnels-{number}")).unwrap();
            Some(Self { number, _claim: UnixListener::bind_addr(&name).ok()? })
        };
        (201..=250).find_map(claim).expect("all networks are taken")
    }

    /// The gateway's address.
    fn gateway(&self) -> Ipv4Addr {
        Ipv4Addr::new(100, 64, self.number, 1)
    }

    /// The address of the first client.
    fn client(&self) -> Ipv4Addr {
        Ipv4Addr::new(100, 64, self.number, 2)
    }

    /// The name of a device for it.
    fn device(&self) -> String {
        format!("hvqtest{}", self.number)
    }
}

type Stream = crate::setup::Stream;

async fn ask(client: &Client, token: Option<(&str, &str)>) -> (u16, Stream) {
    let uri = "https://localhost/.well-known/masque/ip/*/*/";
    let mut request = Request::builder().method(Method::CONNECT).uri(uri);
    if let Some((field, token)) = token {
        request = request.header(field, format!("Bearer {token}"));
    }
    let mut request = request.extension(Protocol::CONNECT_UDP).body(()).unwrap();
    request.headers_mut().insert("capsule-protocol", "?1".parse().unwrap());
    client.open(request).await
}

/// The sum of RFC 1071.
fn checksum(bytes: &[u8]) -> [u8; 2] {
    let sum: u32 =
        bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    (!(folded as u16)).to_be_bytes()
}

/// An ICMP echo request (RFC 792) between these addresses.
fn echo(from: Ipv4Addr, to: Ipv4Addr) -> Vec<u8> {
    ping(from, to, b"hello, far side!")
}

/// One that has `size` bytes with its headers.
fn echo_of(from: Ipv4Addr, to: Ipv4Addr, size: usize) -> Vec<u8> {
    ping(from, to, &vec![0x55; size - 28])
}

fn ping(from: Ipv4Addr, to: Ipv4Addr, data: &[u8]) -> Vec<u8> {
    let mut message = vec![8, 0, 0, 0, 0x12, 0x34, 0, 1];
    message.extend_from_slice(data);
    let sum = checksum(&message);
    message[2..4].copy_from_slice(&sum);
    packet((from, to), 1, &message)
}

/// A UDP packet without a checksum (RFC 768).
fn udp(from: (Ipv4Addr, u16), to: (Ipv4Addr, u16), data: &[u8]) -> Vec<u8> {
    let length = (8 + data.len()) as u16;
    let words = [from.1, to.1, length, 0].map(u16::to_be_bytes).concat();
    packet((from.0, to.0), 17, &[&words, data].concat())
}

fn packet((from, to): (Ipv4Addr, Ipv4Addr), protocol: u8, message: &[u8]) -> Vec<u8> {
    let length = (20 + message.len()) as u16;
    let mut header = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, protocol, 0, 0];
    header[2..4].copy_from_slice(&length.to_be_bytes());
    header.extend_from_slice(&from.octets());
    header.extend_from_slice(&to.octets());
    let sum = checksum(&header);
    header[10..12].copy_from_slice(&sum);
    [&header, message].concat()
}

/// A gateway with tunnels on `network`, where the system permits the device, with `more` in front of its file.
async fn open(network: &Network, more: &str) -> Option<Fixture> {
    let (Network { number, .. }, gateway, device) = (network, network.gateway(), network.device());
    let text = format!(
        "{more}[proxy]\nallow = []\ntokens = 'DIR/tokens'\nreach = ['{gateway}/32']\n\
         [tunnel]\nroutes = ['{gateway}/32']\ndevice = '{device}'\nnetwork = {number}\naddresses_per_client = 2\n"
    );
    match Fixture::try_new(&text).await {
        Ok(place) => Some(place),
        Err(StartError::Device { source, .. }) => {
            eprintln!("not tried: this system permits no TUN device: {source}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn packets_of_those_who_may_come_out_of_the_device_and_their_answers_come_back() {
    let network = Network::claim();
    let Some(place) = open(&network, "").await else { return };
    let (from, to) = (network.client(), network.gateway());
    let client = place.client().await;
    assert_eq!(ask(&client, None).await.0, 407);
    assert_eq!(ask(&client, Some(("authorization", "0000000000000000"))).await.0, 407);
    let (status, mut stream) = ask(&client, Some(("authorization", TOKEN))).await;
    assert_eq!(status, 200);
    // ADDRESS_ASSIGN (RFC 9484 §4.7.1) is the first: type 1, its length, then no request, version 4 and the address.
    let first = within(stream.recv_data()).await.unwrap().unwrap().copy_to_bytes(8);
    assert_eq!((first[0], &first[2..8]), (1, &[0, 4, 100, 64, network.number, 2][..]));
    let datagrams = Datagrams::new(client.connection.clone());
    let mut flow = datagrams.flow(hvq::StreamId(stream.id().into_inner())).unwrap();
    tokio::spawn(async move { datagrams.run().await });
    // Packets with other sources or towards what is no route are dropped (RFC 9484 §11).
    for lost in [echo(Ipv4Addr::new(10, 9, 8, 7), to), echo(from, Ipv4Addr::LOCALHOST), vec![0x45; 7]] {
        flow.send(&[&[0], &lost], hvq::Priority::DEFAULT).unwrap();
    }
    let ours = echo(from, to);
    flow.send(&[&[0], &ours], hvq::Priority::DEFAULT).unwrap();
    let answer = within(async {
        loop {
            let answer = flow.receive().await;
            // The kernel may have other things to say on a new device.
            if answer.get(1..2) == Some(&[0x45][..]) && answer.get(10) == Some(&1) {
                return answer;
            }
        }
    })
    .await;
    assert_eq!((&answer[13..17], &answer[17..21]), (&to.octets()[..], &from.octets()[..]));
    assert_eq!((answer[21], &answer[29..]), (0, &b"hello, far side!"[..]), "an echo reply");
    // A second tunnel has another address, and the end of the first frees its own.
    let (_, mut second) = ask(&client, Some(("proxy-authorization", TOKEN))).await;
    let first = within(second.recv_data()).await.unwrap().unwrap().copy_to_bytes(8);
    assert_eq!(first[7], 3);
    assert_eq!(ask(&client, Some(("authorization", TOKEN))).await.0, 429, "as many as one may have");
    within(stream.finish()).await.unwrap();
    assert!(within(body(&mut stream)).await.is_ok());
    let Fixture { gateway, folder, .. } = place;
    within(Gateway::stop(gateway)).await;
    drop((client, folder));
    within(async {
        // Nothing is left behind.
        while std::path::Path::new("/sys/class/net").join(network.device()).exists() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

/// A client's tunnel over `place`: the datagrams of its request, once the path is known to carry `most` bytes in one.
async fn tunnel(client: &Client, most: usize) -> (hvq_h3::Flow, Stream) {
    let (status, stream) = ask(client, Some(("authorization", TOKEN))).await;
    assert_eq!(status, 200);
    let datagrams = Datagrams::new(client.connection.clone());
    let flow = datagrams.flow(hvq::StreamId(stream.id().into_inner())).unwrap();
    tokio::spawn(async move { datagrams.run().await });
    within(async {
        while client.connection.max_datagram_size() < Some(most) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    (flow, stream)
}

/// The next packet of IPv4 and `protocol` that comes in a datagram.
async fn next(flow: &mut hvq_h3::Flow, protocol: u8) -> bytes::Bytes {
    within(async {
        loop {
            let packet = flow.receive().await;
            if packet.get(1) == Some(&0x45) && packet.get(10) == Some(&protocol) {
                return packet.slice(1..);
            }
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn packets_of_every_size_go_both_ways_in_datagrams() {
    // attacks.md K13.
    let network = Network::claim();
    let Some(place) = open(&network, "").await else { return };
    let client = place.client().await;
    let (mut flow, _stream) = tunnel(&client, 1418).await;
    let (from, to) = (network.client(), network.gateway());
    for size in 28..=1500 {
        let ours = echo_of(from, to, size);
        let outcome = flow.send(&[&[0], &ours], hvq::Priority::DEFAULT).unwrap();
        assert_eq!(outcome == hvq_h3::Outcome::Sent, size <= 1418, "{size}");
        // Larger answers leave the device of the gateway in fragments.
        if size <= hvq_tunnel::MTU.into() {
            let answer = next(&mut flow, 1).await;
            assert_eq!((answer.len(), answer[20]), (size, 0), "an echo reply");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_sends_packets_that_fit_in_no_datagram_is_told_the_size_that_does() {
    // RFC 1191: the system of the gateway, which sends through the device, believes the tunnel and divides from then on.
    let network = Network::claim();
    let Some(place) = open(&network, "[transport]\nlargest_datagram = '1252B'\n").await else { return };
    let client = place.client().await;
    let (mut flow, _stream) = tunnel(&client, 1418).await;
    let (from, to) = (network.client(), network.gateway());
    let host = tokio::net::UdpSocket::bind((to, 0)).await.unwrap();
    let port = host.local_addr().unwrap().port();
    // Something comes through first, so that the gateway's end knows the size.
    within(async {
        loop {
            flow.send(&[&[0], &udp((from, 1234), (to, port), b"hello")], hvq::Priority::DEFAULT).unwrap();
            let (_, peer) = host.recv_from(&mut [0; 64]).await.unwrap();
            assert_eq!(peer, (from, 1234).into());
            // 1200 bytes of IP go where 1252 are carried, and 1300 do not.
            host.send_to(&[1; 1200 - 28], peer).await.unwrap();
            let whole = tokio::time::timeout(Duration::from_millis(200), next(&mut flow, 17)).await;
            if whole.is_ok_and(|packet| packet.len() == 1200) {
                break;
            }
        }
        let mut fragments = Vec::new();
        while fragments.iter().sum::<usize>() < 1300 {
            host.send_to(&[2; 1300 - 28], (from, 1234)).await.unwrap();
            while let Ok(packet) = tokio::time::timeout(Duration::from_millis(100), next(&mut flow, 17)).await
            {
                fragments.push(packet.len());
            }
        }
        assert_eq!(fragments.len(), 2, "{fragments:?}");
        assert!(fragments[0] > 1200 && fragments[0] <= 1252 - 32, "{fragments:?}");
    })
    .await;
}

#[tokio::test]
async fn a_gateway_without_tunnels_has_none_for_anybody() {
    let place = Fixture::new("[proxy]\nallow = ['*:*']\ntokens = 'DIR/tokens'\n").await;
    let client = place.client().await;
    assert_eq!(ask(&client, Some(("authorization", TOKEN))).await.0, 403);
}
