//! Peers that abuse WebTransport: attacks.md, section H.

use crate::setup::*;
use crate::web_transport::{served, served_through};
use hvq::ConnectionError;
use hvq::transport::wire::varint;
use hvq_h3::client::Client;
use hvq_h3::web_transport::{SessionEnd, Terms};
use hvq_h3::{Code, ReceiveError};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// Opens a unidirectional stream of `session`.
async fn stream_of(client: &Client, session: u64) -> hvq::SendStream {
    let mut header = vec![0x40, 0x54];
    varint::put(&mut header, session);
    let mut stream = within(client.connection().open_uni()).await.unwrap();
    stream.write_all(&header).await.unwrap();
    stream
}

/// The number of `streams` that were refused, once nothing changes any more.
async fn refused(streams: &[hvq::SendStream]) -> usize {
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut refused = 0;
    for stream in streams {
        if let Ok(stopped) = tokio::time::timeout(Duration::from_millis(10), stream.stopped()).await {
            assert_eq!(stopped, Ok(Some(Code::WT_BUFFERED_STREAM_REJECTED.value())));
            refused += 1;
        }
    }
    refused
}

#[tokio::test]
async fn streams_of_unknown_sessions_are_kept_up_to_a_few_and_the_oldest_refused() {
    // attacks.md H29, draft-ietf-webtrans-http3 §4.6.
    let (client, mut sessions) = served(Terms::default()).await;
    let mut streams = Vec::new();
    for _ in 0..100 {
        streams.push(stream_of(&client, 400).await);
    }
    assert_eq!(refused(&streams).await, 84);
    // Bidirectional ones share the places.
    let (mut send, _receive) = within(client.connection().open_bi()).await.unwrap();
    send.write_all(&[0x40, 0x41, 0x41, 0x90]).await.unwrap();
    assert_eq!(refused(&streams).await, 85);
    within(client.web_transport(&get("/"), &[])).await.unwrap();
    within(sessions.recv()).await.unwrap().unwrap();
}

#[tokio::test]
async fn datagrams_of_unknown_sessions_are_kept_up_to_a_few() {
    // attacks.md H30.
    let gate = Arc::new(Semaphore::new(0));
    let (client, mut sessions) = served_through(Terms::default(), gate.clone()).await;
    let request = get("/");
    let flood = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        for number in 0..1000_u16 {
            let datagram = [&[0][..], &number.to_be_bytes(), &[7; 500]].concat();
            client.connection().send_datagram(datagram.into()).unwrap();
            if number % 50 == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        // Few of them are still on their way then.
        tokio::time::sleep(Duration::from_secs(1)).await;
        gate.add_permits(1);
    };
    let (near, ()) = within(async { tokio::join!(client.web_transport(&request, &[]), flood) }).await;
    let (_near, far) = (near.unwrap(), within(sessions.recv()).await.unwrap().unwrap());
    let mut kept = 0;
    while tokio::time::timeout(Duration::from_millis(200), far.read_datagram()).await.is_ok() {
        kept += 1;
    }
    assert!((1..=64).contains(&kept), "{kept} datagrams");
}

#[tokio::test]
async fn a_session_that_is_no_request_ends_the_connection() {
    // attacks.md H31, draft-ietf-webtrans-http3 §4.
    let (client, _sessions) = served(Terms::default()).await;
    let _stream = stream_of(&client, 5).await;
    let closed = within(client.connection().closed()).await;
    let code = Code::H3_ID_ERROR.value();
    assert!(
        matches!(closed, ConnectionError::PeerApplication { code: said, .. } if said == code),
        "{closed}"
    );
}

#[tokio::test]
async fn capsules_without_end_and_those_that_may_not_come_end_the_session_alone() {
    // attacks.md H32, draft-ietf-webtrans-http3 §5.4, §6.
    let capsule = |kind: u64, length: u64, value: &[u8]| {
        let mut bytes = Vec::new();
        varint::put(&mut bytes, kind);
        varint::put(&mut bytes, length);
        [&bytes[..], value].concat()
    };
    let hostile = [
        capsule(0x2843, 1 << 40, b""),
        capsule(0x2843, 4 + 1025, &[0x20; 1029]),
        capsule(0x2843, 3, &[0; 3]),
        capsule(0x2843, 5, &[0, 0, 0, 0, 0xff]),
        capsule(0x78ae, 1 << 40, b""),
        capsule(0x190b_4d3e, 2, &[0, 9]),
    ];
    let (client, mut sessions) = served(Terms::default()).await;
    for bytes in hostile {
        let (_, mut sending, mut receiving) =
            within(client.tunnel(&get("/"), "webtransport-h3")).await.unwrap();
        let far = within(sessions.recv()).await.unwrap().unwrap();
        // One that is not known is skipped however long it is.
        sending.data(capsule(0x17, 3, b"???").into()).await.unwrap();
        sending.data(bytes.clone().into()).await.unwrap();
        assert!(matches!(within(far.closed()).await, SessionEnd::Broken(_)), "{bytes:?}");
        let reset = ReceiveError::Lost(hvq::ReadError::Reset(Code::H3_MESSAGE_ERROR.value()));
        assert_eq!(within(receiving.data()).await, Err(reset));
    }
    // Nothing may follow the end.
    let (_, mut sending, mut receiving) = within(client.tunnel(&get("/"), "webtransport")).await.unwrap();
    let far = within(sessions.recv()).await.unwrap().unwrap();
    let close = [capsule(0x2843, 5, &[0, 0, 0, 9, b'x']), vec![0x17]].concat();
    sending.data(close.into()).await.unwrap();
    let end = SessionEnd::ClosedByPeer { code: 9, reason: "x".to_owned() };
    assert_eq!(within(far.closed()).await, end);
    let reset = ReceiveError::Lost(hvq::ReadError::Reset(Code::H3_MESSAGE_ERROR.value()));
    assert_eq!(within(receiving.data()).await, Err(reset));
    within(client.web_transport(&get("/"), &[])).await.unwrap();
}
