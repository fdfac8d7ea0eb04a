//! Streams and datagrams over loopback.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use bytes::Bytes;
use common::{Pair, echo, pattern, transport, within};
use hvq::config::PartialDelivery;
use hvq::{ConnectionError, Priority, ReadError, ReadToEndError, SendDatagramError, WriteError};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[tokio::test]
async fn what_is_sent_comes_back() {
    let pair = Pair::new().await;
    assert_eq!((pair.near.alpn(), pair.far.alpn()), (Some(b"hq-test".to_vec()), Some(b"hq-test".to_vec())));
    assert_eq!(pair.far.server_name().as_deref(), Some(common::NAME));
    assert_eq!((pair.near.peer_certificates().len(), pair.near.remote_address()), (1, pair.server_addr()));
    let _echo = echo(pair.far.clone());
    let data = pattern(3_000_000);
    let (mut send, mut receive) = within(pair.near.open_bi()).await.unwrap();
    let write = async {
        send.write_all(&data).await.unwrap();
        send.finish().unwrap();
        send.stopped().await.unwrap()
    };
    let (stopped, back) = within(async { tokio::join!(write, receive.read_to_end(1 << 30)) }).await;
    assert_eq!(stopped, None);
    assert!(back.unwrap() == data);
    assert!(pair.near.rtt() > Duration::ZERO);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_streams_of_several_tasks_do_not_mix() {
    let pair = Pair::new().await;
    let _echo = echo(pair.far.clone());
    let tasks: Vec<_> = (0..50usize)
        .map(|i| {
            let connection = pair.near.clone();
            tokio::spawn(async move {
                let data: Vec<u8> = pattern(20_000 + 997 * i).iter().map(|byte| byte ^ i as u8).collect();
                let (mut send, mut receive) = connection.open_bi().await.unwrap();
                send.write_all(&data).await.unwrap();
                send.finish().unwrap();
                receive.read_to_end(1 << 20).await.unwrap() == data
            })
        })
        .collect();
    for task in tasks {
        assert!(within(task).await.unwrap());
    }
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-4.6
//= type=test
//# Endpoints MUST NOT exceed the limit set by their peer
//= https://www.rfc-editor.org/rfc/rfc9000#section-19.11
//= type=test
//# An endpoint MUST NOT open more streams than permitted by the current stream limit set by its peer
#[tokio::test]
async fn opening_waits_while_the_peer_permits_no_more_streams() {
    let mut limited = transport();
    limited.streams_mut().max_streams_uni = 2;
    let pair = Pair::with(transport(), limited).await;
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut stream = within(pair.near.open_uni()).await.unwrap();
        stream.write_all(b"hello").await.unwrap();
        held.push(stream);
    }
    let third = tokio::time::timeout(Duration::from_millis(100), pair.near.open_uni()).await;
    assert!(third.is_err());
    held.clear();
    let mut first = within(pair.far.accept_uni()).await.unwrap();
    assert_eq!(within(first.read_to_end(100)).await.unwrap(), b"hello");
    within(pair.near.open_uni()).await.unwrap();
}

#[tokio::test]
async fn a_writer_is_held_back_until_the_reader_reads() {
    let mut small = transport();
    small.streams_mut().stream_data_uni = 10_000;
    small.streams_mut().max_window = 10_000;
    let mut near = transport();
    near.streams_mut().send_buffer = 20_000;
    let pair = Pair::with(near, small).await;
    let mut stream = within(pair.near.open_uni()).await.unwrap();
    let data = pattern(200_000);
    let copy = data.clone();
    let writer = tokio::spawn(async move {
        stream.write_all(&copy).await.unwrap();
        stream.finish().unwrap();
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!writer.is_finished());
    let mut stream = within(pair.far.accept_uni()).await.unwrap();
    assert!(within(stream.read_to_end(1 << 20)).await.unwrap() == data);
    within(writer).await.unwrap();
}

#[tokio::test]
async fn codes_of_reset_and_stop_reach_the_other_side() {
    let pair = Pair::new().await;
    let (mut send, mut receive) = within(pair.near.open_bi()).await.unwrap();
    send.write_all(b"begin").await.unwrap();
    let (mut far_send, mut far_receive) = within(pair.far.accept_bi()).await.unwrap();
    assert_eq!(within(far_receive.read_chunk(100)).await.unwrap(), Some(Bytes::from_static(b"begin")));
    send.reset(0x123).unwrap();
    assert_eq!(within(far_receive.read_chunk(100)).await, Err(ReadError::Reset(0x123)));
    assert_eq!(within(far_receive.read_chunk(100)).await, Err(ReadError::Reset(0x123)));
    assert_eq!(send.write(b"more").await, Err(WriteError::Closed));
    receive.stop(0x456);
    assert_eq!(within(far_send.stopped()).await, Ok(Some(0x456)));
    assert_eq!(within(far_send.write(b"x")).await, Err(WriteError::Stopped(0x456)));
    assert_eq!(within(receive.read_chunk(1)).await, Err(ReadError::Stopped));
}

#[tokio::test]
async fn the_first_bytes_of_a_stream_outlive_its_reset_if_the_peer_supports_that() {
    // Draft-ietf-quic-reliable-stream-reset §5.
    for (supports, promised) in [(PartialDelivery::On, 5), (PartialDelivery::Off, 0)] {
        let mut config = transport();
        config.set_partial_delivery(supports);
        let pair = Pair::with(transport(), config).await;
        let mut send = within(pair.near.open_uni()).await.unwrap();
        send.write_all(b"begin and the rest").await.unwrap();
        assert_eq!(send.reset_at(0x123, 5), Ok(promised));
        assert_eq!(send.write(b"more").await, Err(WriteError::Closed));
        drop(send);
        let mut receive = within(pair.far.accept_uni()).await.unwrap();
        if promised > 0 {
            assert_eq!(within(receive.read_chunk(100)).await.unwrap(), Some(Bytes::from_static(b"begin")));
        }
        assert_eq!(within(receive.read_chunk(100)).await, Err(ReadError::Reset(0x123)));
    }
}

#[tokio::test]
async fn a_stop_before_the_stream_is_accepted_is_not_lost() {
    let pair = Pair::new().await;
    let (mut send, mut receive) = within(pair.near.open_bi()).await.unwrap();
    send.write_all(b"?").await.unwrap();
    receive.stop(7);
    // A stream that is opened later and accepted on the other side shows that the stop has arrived too.
    let mut other = within(pair.near.open_uni()).await.unwrap();
    other.write_all(b"later").await.unwrap();
    within(pair.far.accept_uni()).await.unwrap();
    let (far_send, _far_receive) = within(pair.far.accept_bi()).await.unwrap();
    assert_eq!(within(far_send.stopped()).await, Ok(Some(7)));
}

#[tokio::test]
async fn dropped_halves_finish_and_stop() {
    let pair = Pair::new().await;
    let (mut send, receive) = within(pair.near.open_bi()).await.unwrap();
    send.write_all(b"all of it").await.unwrap();
    drop(send);
    let (far_send, mut far_receive) = within(pair.far.accept_bi()).await.unwrap();
    assert_eq!(within(far_receive.read_to_end(100)).await.unwrap(), b"all of it");
    drop(receive);
    assert_eq!(within(far_send.stopped()).await, Ok(Some(0)));
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-10.3
//= type=test
//# An endpoint that wishes to communicate a fatal connection error MUST use a CONNECTION_CLOSE frame if it is
//# able.
#[tokio::test]
async fn a_stream_beyond_the_limit_of_the_reader_is_an_error() {
    let pair = Pair::new().await;
    let mut send = within(pair.near.open_uni()).await.unwrap();
    send.write_all(&[1; 101]).await.unwrap();
    send.finish().unwrap();
    let mut receive = within(pair.far.accept_uni()).await.unwrap();
    assert_eq!(within(receive.read_to_end(100)).await, Err(ReadToEndError::TooLong(100)));
}

#[tokio::test]
async fn streams_are_readers_and_writers_of_tokio() {
    let pair = Pair::new().await;
    let _echo = echo(pair.far.clone());
    let (mut send, mut receive) = within(pair.near.open_bi()).await.unwrap();
    let talk = async {
        AsyncWriteExt::write_all(&mut send, b"line one\nline two").await.unwrap();
        send.flush().await.unwrap();
        send.shutdown().await.unwrap();
        send.shutdown().await.unwrap();
        let mut text = String::new();
        receive.read_to_string(&mut text).await.unwrap();
        text
    };
    assert_eq!(within(talk).await, "line one\nline two");
}

#[tokio::test]
async fn messages_and_priorities_are_accepted_and_do_not_change_the_bytes() {
    let pair = Pair::new().await;
    let mut send = within(pair.near.open_uni()).await.unwrap();
    let urgent = Priority { urgency: 0, incremental: true };
    send.set_priority(urgent);
    assert_eq!(send.priority(), urgent);
    for i in 0..10u8 {
        send.write_chunk(Bytes::from(vec![i; 5000])).await.unwrap();
        send.end_message((i % 2 == 0).then_some(Duration::from_millis(50))).unwrap();
    }
    send.finish().unwrap();
    let mut receive = within(pair.far.accept_uni()).await.unwrap();
    let data = within(receive.read_to_end(1 << 20)).await.unwrap();
    assert!(data == (0..10u8).flat_map(|i| [i; 5000]).collect::<Vec<_>>());
}

#[tokio::test]
async fn who_waits_for_a_reset_loses_nothing_that_arrives_meanwhile() {
    let pair = Pair::new().await;
    let data = pattern(40_000);
    let mut send = within(pair.near.open_uni()).await.unwrap();
    send.write_all(&data).await.unwrap();
    let mut receive = within(pair.far.accept_uni()).await.unwrap();
    let waiting = tokio::time::timeout(Duration::from_millis(50), receive.received_reset());
    assert!(waiting.await.is_err(), "neither reset nor ended");
    send.finish().unwrap();
    assert_eq!(within(receive.received_reset()).await.unwrap(), None);
    assert!(within(receive.read_to_end(1 << 20)).await.unwrap() == data);
}

#[tokio::test]
async fn a_reset_is_seen_by_who_leaves_data_unread() {
    let pair = Pair::new().await;
    let mut send = within(pair.near.open_uni()).await.unwrap();
    send.write_all(&pattern(300_000)).await.unwrap();
    let mut receive = within(pair.far.accept_uni()).await.unwrap();
    let waiting = tokio::time::timeout(Duration::from_millis(100), receive.received_reset());
    assert!(waiting.await.is_err(), "not reset");
    let reset = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        send.reset(9).unwrap();
    };
    let ((), seen) = within(async { tokio::join!(reset, receive.received_reset()) }).await;
    assert_eq!(seen.unwrap(), Some(9));
}

#[tokio::test]
async fn datagrams_arrive_both_ways_and_large_ones_are_refused() {
    let pair = Pair::new().await;
    let most = pair.near.max_datagram_size().unwrap();
    assert!(most > 1000, "{most}");
    pair.near.send_datagram(Bytes::from(vec![7; most])).unwrap();
    assert_eq!(within(pair.far.read_datagram()).await.unwrap(), vec![7; most]);
    let deadline = Some(Duration::from_secs(5));
    pair.far
        .send_datagram_with(
            Bytes::from_static(b"back"),
            Priority { urgency: 1, incremental: false },
            deadline,
        )
        .unwrap();
    assert_eq!(within(pair.near.read_datagram()).await.unwrap(), "back");
    let error = pair.near.send_datagram(Bytes::from(vec![7; 70_000])).unwrap_err();
    assert!(matches!(error, SendDatagramError::Refused(_)), "{error}");
    let mut silent = transport();
    silent.set_max_datagram_frame(0);
    let pair = Pair::with(transport(), silent).await;
    assert_eq!(pair.near.max_datagram_size(), None);
    assert!(pair.near.send_datagram(Bytes::from_static(b"x")).is_err());
}

#[tokio::test]
async fn a_future_that_is_dropped_loses_nothing() {
    let pair = Pair::new().await;
    let mut send = within(pair.near.open_uni()).await.unwrap();
    send.write_all(b"a").await.unwrap();
    let mut receive = within(pair.far.accept_uni()).await.unwrap();
    assert_eq!(within(receive.read_chunk(9)).await.unwrap().unwrap(), "a");
    for i in 0..20u8 {
        let cut = tokio::time::timeout(Duration::from_micros(200), receive.read_chunk(9)).await;
        assert!(cut.is_err());
        send.write_all(&[i]).await.unwrap();
        assert_eq!(within(receive.read_chunk(9)).await.unwrap().unwrap(), [i][..]);
    }
    let early = tokio::time::timeout(Duration::from_micros(200), pair.far.accept_uni()).await;
    assert!(early.is_err());
    let mut second = within(pair.near.open_uni()).await.unwrap();
    second.write_all(b"b").await.unwrap();
    assert_eq!(within(pair.far.accept_uni()).await.unwrap().id(), second.id());
}

#[tokio::test]
async fn closing_ends_every_operation_with_the_code() {
    let pair = Pair::new().await;
    let (mut send, mut receive) = within(pair.near.open_bi()).await.unwrap();
    send.write_all(b"x").await.unwrap();
    let (far_send, mut far_receive) = within(pair.far.accept_bi()).await.unwrap();
    within(far_receive.read_chunk(9)).await.unwrap();
    let far = pair.far.clone();
    let waiting = tokio::spawn(async move {
        let _held = far_send;
        tokio::join!(far_receive.read_chunk(9), far.accept_uni(), far.read_datagram(), far.closed())
    });
    tokio::time::sleep(Duration::from_millis(20)).await;
    pair.near.close(0x77, b"done here");
    let error = ConnectionError::PeerApplication { code: 0x77, reason: "done here".to_owned() };
    let (read, accepted, datagram, closed) = within(waiting).await.unwrap();
    assert_eq!(read, Err(ReadError::ConnectionLost(error.clone())));
    assert_eq!(accepted.map(|stream| stream.id()), Err(error.clone()));
    assert_eq!((datagram, closed), (Err(error.clone()), error.clone()));
    assert_eq!(pair.far.close_reason(), Some(error));
    let local = ConnectionError::LocallyClosed { code: 0x77 };
    assert_eq!(within(pair.near.closed()).await, local);
    assert_eq!(send.write(b"x").await, Err(WriteError::ConnectionLost(local.clone())));
    assert_eq!(within(receive.read_chunk(9)).await, Err(ReadError::ConnectionLost(local)));
    assert!(!pair.near.stats().paths.is_empty());
}

#[tokio::test]
async fn data_that_arrived_before_the_peer_closed_is_read_however_late() {
    let pair = Pair::new().await;
    let mut send = pair.far.open_uni().await.unwrap();
    send.write_all(b"goodbye").await.unwrap();
    send.finish().unwrap();
    within(send.stopped()).await.unwrap();
    pair.far.close(1, b"");
    within(pair.near.closed()).await;
    // The protocol has nothing left of the connection then.
    within(pair.client.wait_idle()).await;
    let mut receive = within(pair.near.accept_uni()).await.unwrap();
    assert_eq!(within(receive.read_to_end(100)).await.unwrap(), b"goodbye");
    within(pair.near.accept_uni()).await.expect_err("there is no more");
}
