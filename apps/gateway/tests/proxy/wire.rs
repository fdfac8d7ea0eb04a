//! Tests of the proxy's answers to whoever speaks to it by hand.

use crate::setup::{Fixture, within};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};

async fn say(place: &Fixture, text: impl AsRef<[u8]>) -> String {
    within(async {
        let mut stream = TcpStream::connect(place.address()).await.unwrap();
        stream.write_all(text.as_ref()).await.unwrap();
        let mut answer = Vec::new();
        // A connection that is refused may be reset.
        let _end = stream.read_to_end(&mut answer).await;
        String::from_utf8_lossy(&answer).into_owned()
    })
    .await
}

#[tokio::test]
async fn browsers_configure_themselves_and_pages_of_other_names_learn_nothing() {
    // I12: DNS rebinding.
    let place = Fixture::new().await;
    let address = place.address();
    let ask =
        |path: &str, host: &str| format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    for host in [address.to_string(), format!("localhost:{}", address.port())] {
        let answer = say(&place, ask("/proxy.pac", &host)).await;
        assert!(answer.contains("application/x-ns-proxy-autoconfig"), "{answer}");
        assert!(answer.contains(&format!("HTTPS {address}; PROXY {address}; SOCKS5 {address}")), "{answer}");
    }
    for host in ["evil.example", "127.0.0.1", &format!("evil.example:{}", address.port())] {
        assert!(say(&place, ask("/proxy.pac", host)).await.starts_with("HTTP/1.1 403"), "{host}");
    }
    let whole = format!("http://{address}/elsewhere");
    assert!(
        say(&place, ask(&whole, &address.to_string())).await.starts_with("HTTP/1.1 404"),
        "not through the gateway"
    );
}

#[tokio::test]
async fn nonsense_ends_the_connection_and_nothing_else() {
    let place = Fixture::new().await;
    for text in [
        &b"\x05\x01\x02"[..],
        b"\x05\x00",
        b"\x16\x03\x01\x00\x05hello",
        b"CONNECT nowhere HTTP/1.1\r\nhost: nowhere\r\nconnection: close\r\n\r\n",
        b"GET http:// HTTP/1.1\r\nhost: a\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"GET / HTTP/1.1\r\nconnection: close\r\n\r\n",
    ] {
        let answer = say(&place, text).await;
        assert!(!answer.starts_with("HTTP/1.1 2"), "{text:?}: {answer}");
    }
    let answer = say(
        &place,
        format!("GET /proxy.pac HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", place.address()),
    )
    .await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[tokio::test]
async fn packets_go_through_by_socks_and_come_back_from_where_they_went() {
    let echo = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let port = echo.local_addr().unwrap().port();
    tokio::spawn(async move {
        let mut packet = [0; 2048];
        while let Ok((length, from)) = echo.recv_from(&mut packet).await {
            packet[..length].reverse();
            echo.send_to(&packet[..length], from).await.unwrap();
        }
    });
    let place = Fixture::new().await;
    within(async {
        let mut control = TcpStream::connect(place.address()).await.unwrap();
        control.write_all(&[5, 1, 0, 5, 3, 0, 1, 0, 0, 0, 0, 0, 0]).await.unwrap();
        let mut reply = [0; 12];
        control.read_exact(&mut reply).await.unwrap();
        assert_eq!(reply[..6], [5, 0, 5, 0, 0, 1]);
        let relay = std::net::SocketAddr::from(([127, 0, 0, 1], u16::from_be_bytes([reply[10], reply[11]])));
        let program = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let stranger = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let mut head = vec![0, 0, 0, 3, 9];
        head.extend_from_slice(b"127.0.0.1");
        head.extend(port.to_be_bytes());
        for text in [&b"one"[..], b"two"] {
            program.send_to(&[&head, text].concat(), relay).await.unwrap();
            stranger.send_to(&[&head, &b"not mine"[..]].concat(), relay).await.unwrap();
            let mut answer = [0; 2048];
            let (length, from) = program.recv_from(&mut answer).await.unwrap();
            let turned: Vec<u8> = text.iter().rev().copied().collect();
            assert_eq!((from, &answer[..length]), (relay, &[&head[..], &turned].concat()[..]));
        }
        // Packets end with the connection.
        drop(control);
        while UdpSocket::bind(relay).await.is_err() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    })
    .await;
}
