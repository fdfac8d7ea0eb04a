//! Going through the gateway.

use crate::operation::ask_admin;
use crate::setup::{Client, Fixture, Origin, Stream, TOKEN, body, bytes, code, get, through, within};
use bytes::{Buf, Bytes};
use h3::ext::Protocol;
use http::{Method, Request};
use hvq_h3::Datagrams;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UdpSocket;

/// Lets those with a token reach loopback.
const OPEN: &str = "[proxy]\nallow = ['127.0.0.1:*']\ntokens = 'DIR/tokens'\nreach = ['127.0.0.0/8']\n";

/// A gateway that does so.
async fn open() -> Fixture {
    Fixture::new(OPEN).await
}

#[tokio::test]
async fn nobody_goes_through_a_gateway_that_does_not_say_so() {
    let origin = Origin::plain().await;
    let place = Fixture::before(origin.address).await;
    let (status, _) = place.client().await.tunnel(&origin.address.to_string(), TOKEN).await;
    assert_eq!(status, 403);
}

#[tokio::test]
async fn a_token_and_an_allowed_destination_are_needed() {
    let origin = Origin::plain().await;
    let place = open().await;
    let client = place.client().await;
    let ask = |token: Option<&str>, to: &str| {
        let mut request = Request::builder().method(Method::CONNECT).uri(to);
        if let Some(token) = token {
            request = request.header("proxy-authorization", format!("Bearer {token}"));
        }
        request.body(Bytes::new()).unwrap()
    };
    let to = origin.address.to_string();
    for token in [None, Some(""), Some("0123456789abcdeX"), Some("0123456789abcde")] {
        let (response, _) = client.ask(ask(token, &to)).await.unwrap();
        assert_eq!(response.status().as_u16(), 407, "{token:?}");
        assert_eq!(response.headers()["proxy-authenticate"], "Bearer");
    }
    assert_eq!(client.status(ask(Some(TOKEN), "example.org:443")).await, 403);
    assert_eq!(client.status(ask(Some(TOKEN), "127.0.0.1")).await, 400, "RFC 9110 §9.3.6: a port is needed");
    assert_eq!(origin.seen().len(), 0);
}

#[tokio::test]
async fn loopback_and_private_addresses_are_out_of_reach_unless_they_are_named() {
    // I11, with every host allowed, and names that lead there.
    let origin = Origin::plain().await;
    let port = origin.address.port();
    let place = Fixture::new("[proxy]\nallow = ['*:*']\ntokens = 'DIR/tokens'\n").await;
    let client = place.client().await;
    for host in [
        "127.0.0.1",
        "localhost",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "0.0.0.0",
        "169.254.169.254",
        "10.0.0.1",
        "[fe80::1]",
    ] {
        assert_eq!(client.tunnel(&format!("{host}:{port}"), TOKEN).await.0, 403, "{host}");
        let plain = through(Method::GET, &format!("http://{host}:{port}/"));
        assert_eq!(client.status(plain).await, 403, "{host}");
    }
    assert_eq!(origin.seen().len(), 0);
}

#[tokio::test]
async fn bytes_go_both_ways_and_each_direction_ends_by_itself() {
    // An origin that answers only when all was said.
    let origin = Origin::new(|mut visit| async move {
        let mut all = Vec::new();
        visit.stream.read_to_end(&mut all).await.unwrap();
        all.reverse();
        visit.stream.write_all(&all).await.unwrap();
    })
    .await;
    let place = open().await;
    let client = place.client_of_two_paths().await;
    let (status, mut stream) = client.tunnel(&origin.address.to_string(), TOKEN).await;
    assert_eq!(status, 200);
    let content = bytes(1_000_000);
    within(async {
        stream.send_data(content.clone()).await.unwrap();
        stream.finish().await.unwrap();
        let mut back = body(&mut stream).await.unwrap();
        back.reverse();
        assert!(back == content, "{} bytes came back", back.len());
    })
    .await;
}

#[tokio::test]
async fn a_host_that_ends_first_can_still_be_written_to() {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let sender = std::sync::Mutex::new(Some(sender));
    let origin = Origin::new(move |mut visit| {
        let sender = sender.lock().unwrap().take().unwrap();
        async move {
            visit.stream.write_all(b"bye").await.unwrap();
            visit.stream.shutdown().await.unwrap();
            let mut all = Vec::new();
            visit.stream.read_to_end(&mut all).await.unwrap();
            sender.send(all).unwrap();
        }
    })
    .await;
    let place = open().await;
    let client = place.client().await;
    let (_, mut stream) = client.tunnel(&origin.address.to_string(), TOKEN).await;
    within(async {
        assert_eq!(body(&mut stream).await.unwrap(), b"bye");
        tokio::time::sleep(Duration::from_millis(100)).await;
        stream.send_data(Bytes::from_static(b"still here")).await.unwrap();
        stream.finish().await.unwrap();
        assert_eq!(receiver.await.unwrap(), b"still here");
    })
    .await;
}

#[tokio::test]
async fn what_breaks_off_on_one_side_breaks_off_on_the_other() {
    // RFC 9114 §4.4: a reset TCP connection is H3_CONNECT_ERROR, and a reset stream a reset TCP connection.
    let origin = Origin::new(|mut visit| async move {
        let mut first = [0; 1];
        visit.stream.read_exact(&mut first).await.unwrap();
        if first == *b"r" {
            visit.stream.set_zero_linger().unwrap();
        } else {
            let error = visit.stream.read_exact(&mut first).await.unwrap_err();
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
        }
    })
    .await;
    let place = open().await;
    let client = place.client().await;
    within(async {
        let (_, mut stream) = client.tunnel(&origin.address.to_string(), TOKEN).await;
        stream.send_data(Bytes::from_static(b"r")).await.unwrap();
        assert_eq!(code(body(&mut stream).await), 0x10f);
        let (_, mut stream) = client.tunnel(&origin.address.to_string(), TOKEN).await;
        stream.send_data(Bytes::from_static(b"s")).await.unwrap();
        stream.stop_stream(h3::error::Code::H3_REQUEST_CANCELLED);
        let ended = stream.recv_data().await.map(|data| data.map(|data| data.remaining()));
        assert_eq!(code(ended), 0x10c);
    })
    .await;
}

#[tokio::test]
async fn tunnels_are_counted_and_end_when_nothing_moves() {
    let origin = Origin::new(|mut visit| async move {
        visit.body(usize::MAX).await;
    })
    .await;
    let place = Fixture::new(
        "[limits]\ntunnels = 1\n[timeouts]\ntunnel = '500ms'\n\
         [proxy]\nallow = ['127.0.0.1:*']\ntokens = 'DIR/tokens'\nreach = ['127.0.0.0/8']\n",
    )
    .await;
    let client = place.client().await;
    let to = origin.address.to_string();
    let (status, mut first) = client.tunnel(&to, TOKEN).await;
    assert_eq!(status, 200);
    assert_eq!(client.tunnel(&to, TOKEN).await.0, 503);
    assert_eq!(code(within(body(&mut first)).await), 0x10f);
    assert_eq!(client.tunnel(&to, TOKEN).await.0, 200);
}

#[tokio::test]
async fn plain_requests_for_other_hosts_are_carried_for_those_who_may() {
    let origin = Origin::plain().await;
    let place = open().await;
    let client = place.client().await;
    let url = format!("http://{}/a?b", origin.address);
    let (response, content) = client.ask(through(Method::GET, &url)).await.unwrap();
    assert_eq!((response.status().as_u16(), content.as_slice()), (200, &b"/a?b"[..]));
    let seen = origin.seen();
    assert!(
        seen[0].contains(&format!("host: {}", origin.address)) && !seen[0].contains(TOKEN),
        "{}",
        seen[0]
    );
    let stranger = Request::get(&url).body(Bytes::new()).unwrap();
    assert_eq!(client.status(stranger).await, 407);
    let hidden = through(Method::GET, &url.replace("http:", "https:"));
    assert_eq!(client.status(hidden).await, 421, "whoever wants TLS to a host opens a tunnel");
}

/// Asks for packets to `path`.
async fn connect_udp(client: &Client, path: &str) -> (u16, Stream) {
    extended(client, path, Protocol::CONNECT_UDP).await
}

async fn extended(client: &Client, path: &str, protocol: Protocol) -> (u16, Stream) {
    let mut request = through(Method::CONNECT, &format!("https://localhost{path}")).map(|_| ());
    request.extensions_mut().insert(protocol);
    client.open(request).await
}

#[tokio::test]
async fn packets_go_through_in_datagrams_and_in_capsules() {
    // An echo that turns packets round.
    let echo = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let port = echo.local_addr().unwrap().port();
    tokio::spawn(async move {
        let mut packet = [0; 2048];
        while let Ok((length, from)) = echo.recv_from(&mut packet).await {
            packet[..length].reverse();
            echo.send_to(&packet[..length], from).await.unwrap();
        }
    });
    let place = open().await;
    let client = place.client().await;
    let (status, mut stream) =
        connect_udp(&client, &format!("/.well-known/masque/udp/127.0.0.1/{port}/")).await;
    assert_eq!(status, 200);
    let datagrams = Datagrams::new(client.connection.clone());
    let mut flow = datagrams.flow(hvq::StreamId(stream.id().into_inner())).unwrap();
    assert!(datagrams.flow(hvq::StreamId(stream.id().into_inner())).is_none());
    let run = datagrams.clone();
    tokio::spawn(async move { run.run().await });
    within(async {
        flow.send(&[&[0], b"abc"], hvq::Priority::DEFAULT).unwrap();
        assert_eq!(flow.receive().await, &b"\0cba"[..]);
        // Another context, and then a packet in a capsule behind one that nobody knows.
        flow.send(&[&[1], b"ignored"], hvq::Priority::DEFAULT).unwrap();
        stream.send_data(Bytes::from_static(&[0x17, 2, 9, 9, 0, 4, 0, b'x', b'y', b'z'])).await.unwrap();
        assert_eq!(flow.receive().await, &b"\0zyx"[..]);
        stream.finish().await.unwrap();
        assert!(body(&mut stream).await.unwrap().is_empty(), "the end of one side is the end of the other");
    })
    .await;
    // H22: datagrams of requests that there are not change nothing; one that cannot belong to any ends the connection.
    client.connection.send_datagram(Bytes::from_static(&[0x3f, 1, 2])).unwrap();
    let (status, _) = connect_udp(&client, "/.well-known/masque/udp/169.254.169.254/53/").await;
    assert_eq!(status, 403);
    assert_eq!(connect_udp(&client, "/elsewhere").await.0, 400);
    client.connection.send_datagram(Bytes::from_static(&[0xff; 8])).unwrap();
    let closed = within(client.connection.closed()).await.to_string();
    assert!(closed.contains("0x33"), "{closed}");
}

/// The number that the metrics have under this name.
async fn counted(place: &Fixture, name: &str) -> u64 {
    let text = ask_admin(place.gateway.admin_addr().unwrap(), "/metrics", "localhost").await;
    let value = text.lines().find_map(|line| line.strip_prefix(&format!("hvq_gateway_{name} ")));
    value.unwrap().parse().unwrap()
}

/// The number of datagrams that were dropped for this reason.
async fn dropped(place: &Fixture, reason: &str) -> u64 {
    counted(place, &format!("datagrams_dropped_total{{reason=\"{reason}\"}}")).await
}

#[tokio::test]
async fn datagrams_that_a_tunnel_does_not_take_are_counted_while_the_connection_lasts() {
    let text = format!(
        "admin = '127.0.0.1:0'\n[limits]\nmemory = '1MiB'\n{OPEN}[[host]]\nnames = ['localhost']\nfiles = 'DIR'\n"
    );
    let place = Fixture::with(&text, &[("large", &"x".repeat(1 << 20))]).await;
    // A tunnel takes nothing before its response has left, for which there is neither credit nor room beside the other.
    let client = place.client_without_credit().await;
    let _other = client.send(get("/large")).await.unwrap();
    while counted(&place, "memory_held_bytes").await == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let path = "https://localhost/.well-known/masque/udp/127.0.0.1/9/";
    let mut request = through(Method::CONNECT, path).map(|_| ());
    request.extensions_mut().insert(Protocol::CONNECT_UDP);
    let _stream = within(client.requests.clone().send_request(request)).await.unwrap();
    within(async {
        while dropped(&place, "unread").await == 0 {
            for _ in 0..20 {
                // Quarter stream ID 1 and context 0.
                client.connection.send_datagram([&[1][..], &[0; 1_000]].concat().into()).unwrap();
                tokio::time::sleep(Duration::from_micros(200)).await;
            }
        }
    })
    .await;
    assert_eq!(client.connection.close_reason(), None);
}

/// The largest UDP payload in a QUIC datagram of 1,452 bytes: without 29 bytes around frames, 3 around the datagram, the quarter
/// stream ID and the context ID.
const LARGEST: usize = 1452 - 29 - 3 - 1 - 1;

#[tokio::test]
async fn udp_of_every_size_goes_through_both_ways_or_is_dropped_and_counted() {
    // attacks.md K13. The host answers each packet with one of the size that its last two bytes ask for.
    let host = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let port = host.local_addr().unwrap().port();
    let (heard, mut sizes) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut packet = [0; 2048];
        while let Ok((length, from)) = host.recv_from(&mut packet).await {
            heard.send(length).unwrap();
            let answer = u16::from_be_bytes([packet[length - 2], packet[length - 1]]);
            host.send_to(&vec![1; answer.into()], from).await.unwrap();
        }
    });
    let text = "admin = '127.0.0.1:0'\n[transport]\nlargest_datagram = '1452B'\n[proxy]\nallow = ['127.0.0.1:*']\ntokens = 'DIR/tokens'\nreach = ['127.0.0.0/8']\n";
    let place = Fixture::new(text).await;
    let client = place.client().await;
    let (status, stream) = connect_udp(&client, &format!("/.well-known/masque/udp/127.0.0.1/{port}/")).await;
    assert_eq!(status, 200);
    let datagrams = Datagrams::new(client.connection.clone());
    let mut flow = datagrams.flow(hvq::StreamId(stream.id().into_inner())).unwrap();
    tokio::spawn(async move { datagrams.run().await });
    // The tunnel itself was the reason to find out what the path carries.
    within(async {
        while client.connection.max_datagram_size() < Some(LARGEST + 2) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let send = |flow: &hvq_h3::Flow, size: usize, answer: usize| {
        let mut payload = vec![0; size];
        payload[size - 2..].copy_from_slice(&(answer as u16).to_be_bytes());
        flow.send(&[&[0], &payload], hvq::Priority::DEFAULT).unwrap()
    };
    within(async {
        // Up: all that fit arrive, and the others are refused here.
        for size in 2..=1500 {
            let outcome = send(&flow, size, 2);
            assert_eq!(outcome == hvq_h3::Outcome::Sent, size <= LARGEST, "{size}");
            if size <= LARGEST {
                assert_eq!(sizes.recv().await, Some(size));
                assert_eq!(flow.receive().await.len(), 1 + 2, "{size}");
            }
        }
        assert_eq!(client.connection.stats().datagrams.too_large, (1500 - LARGEST) as u64);
        // Down: the answer to the one after shows that one did not come.
        let before = dropped(&place, "too_large").await;
        for size in 0..=1500 {
            send(&flow, 2, size);
            if size <= LARGEST {
                assert_eq!(flow.receive().await.len(), 1 + size);
            }
        }
        send(&flow, 2, 7);
        assert_eq!(flow.receive().await.len(), 1 + 7);
        assert_eq!(dropped(&place, "too_large").await - before, (1500 - LARGEST) as u64);
    })
    .await;
}

#[tokio::test]
async fn a_session_of_webtransport_is_not_to_be_had() {
    // attacks.md H24, RFC 9220 §3.
    let place = open().await;
    let client = place.client().await;
    assert_eq!(extended(&client, "/session", Protocol::WEB_TRANSPORT).await.0, 501);
    let (status, _) = connect_udp(&client, "/.well-known/masque/udp/169.254.169.254/53/").await;
    assert_eq!(status, 403, "the connection goes on");
}
