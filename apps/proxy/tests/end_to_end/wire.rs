//! What the proxy says to whoever speaks to it by hand.

use crate::setup::{Place, within};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

async fn say(place: &Place, text: impl AsRef<[u8]>) -> String {
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
    let place = Place::new().await;
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
    let place = Place::new().await;
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
