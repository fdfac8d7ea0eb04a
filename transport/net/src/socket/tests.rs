use super::*;
use std::future::poll_fn;

fn loopback() -> Socket {
    Socket::bind(([127, 0, 0, 1], 0).into(), None, Source::Routed, Port::Own).expect("binds")
}

fn transmit(from: &Socket, to: &Socket, bytes: Vec<u8>, segment: Option<usize>) -> Transmit {
    let remote = SocketAddr::new([127, 0, 0, 1].into(), to.local().port());
    Transmit { local: from.local(), remote, ecn: Ecn::Ect0, dscp: Dscp::DEFAULT, bytes, segment }
}

async fn send(socket: &Socket, transmit: &Transmit) -> IoStats {
    let (mut stats, mut offset) = (IoStats::default(), 0);
    while let Err(reached) = socket.send(transmit, offset, &mut stats) {
        offset = reached;
        poll_fn(|context| socket.poll_send_ready(context)).await;
    }
    stats
}

async fn receive(socket: &Socket, wanted: usize) -> Vec<Datagram> {
    let (mut buffers, mut datagrams) = (Buffers::new(), Vec::new());
    while datagrams.len() < wanted {
        poll_fn(|context| socket.poll_receive(context, &mut buffers, &mut datagrams)).await;
    }
    datagrams
}

#[tokio::test]
async fn a_batch_arrives_as_its_segments_with_their_ecn_mark() {
    let (a, b) = (loopback(), loopback());
    let bytes: Vec<u8> = (0..2500u32).map(|i| (i / 1000) as u8).collect();
    let stats = send(&a, &transmit(&a, &b, bytes, Some(1000))).await;
    assert_eq!((stats.datagrams_sent, stats.bytes_sent), (3, 2500));
    let datagrams = receive(&b, 3).await;
    let sizes: Vec<_> = datagrams.iter().map(|datagram| datagram.bytes.len()).collect();
    assert_eq!(sizes, [1000, 1000, 500]);
    for (i, datagram) in datagrams.iter().enumerate() {
        assert!(datagram.bytes.iter().all(|byte| usize::from(*byte) == i));
        assert_eq!((datagram.local, datagram.remote, datagram.ecn), (b.local(), a.local(), Ecn::Ect0));
    }
}

/// Fills a socket for so many `senders` and empties it; the datagrams of each call, ECN-capable and not in turns.
#[cfg(target_os = "linux")]
async fn fill_and_empty(senders: usize) -> Vec<Vec<Ecn>> {
    let (a, b) = (loopback(), loopback());
    // More than any buffer takes, one by one: what comes in a batch is one to the kernel.
    for n in 0..20_000 {
        let ecn = if n % 2 == 0 { Ecn::Ect0 } else { Ecn::NotEct };
        send(&a, &Transmit { ecn, ..transmit(&a, &b, vec![1; 1_200], None) }).await;
    }
    let (mut buffers, mut calls) = (Buffers::new(), Vec::new());
    buffers.set_senders(senders);
    loop {
        let mut datagrams = Vec::new();
        let call = poll_fn(|context| b.poll_receive(context, &mut buffers, &mut datagrams));
        if tokio::time::timeout(std::time::Duration::from_secs(1), call).await.is_err() {
            return calls;
        }
        calls.push(datagrams.iter().map(|datagram| datagram.ecn).collect());
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn batches_that_leave_a_long_queue_are_marked_if_their_senders_are_many_and_take_part() {
    let count = |call: &[Ecn], of: Ecn| call.iter().filter(|ecn| **ecn == of).count();
    let calls = fill_and_empty(receive_queue::CROWD).await;
    assert!(calls.len() > 2, "{calls:?}");
    let (first, last) = (&calls[0], &calls[calls.len() - 1]);
    assert_eq!((count(first, Ecn::Ce), count(first, Ecn::NotEct)), (16, 16), "the queue is full");
    assert_eq!(count(last, Ecn::Ce), 0, "the queue is nearly empty");
    let few = fill_and_empty(receive_queue::CROWD - 1).await;
    assert!(few.len() > 2 && few.iter().all(|call| count(call, Ecn::Ce) == 0));
}

#[tokio::test]
async fn what_the_system_refuses_is_counted_and_dropped() {
    let (a, b) = (loopback(), loopback());
    let stats = send(&a, &transmit(&a, &b, vec![0; 65_535], None)).await;
    assert_eq!((stats.send_errors, stats.datagrams_sent), (1, 0));
    let stats = send(&a, &transmit(&a, &b, b"still works".to_vec(), None)).await;
    assert_eq!((stats.send_errors, stats.datagrams_sent), (0, 1));
    assert_eq!(&receive(&b, 1).await[0].bytes[..], b"still works");
}

#[tokio::test]
async fn a_server_bound_to_all_addresses_answers_from_the_one_it_was_asked_at() {
    let server = Socket::bind(([0, 0, 0, 0], 0).into(), None, Source::Pinned, Port::Own).expect("binds");
    let client = loopback();
    let asked = SocketAddr::new([127, 0, 0, 5].into(), server.local().port());
    let question = Transmit { remote: asked, ..transmit(&client, &server, b"?".to_vec(), None) };
    send(&client, &question).await;
    let question = receive(&server, 1).await.remove(0);
    assert_eq!(question.local, asked);
    assert!(server.sends_from(asked));
    let answer = Transmit {
        local: question.local,
        remote: question.remote,
        ecn: Ecn::NotEct,
        dscp: Dscp::DEFAULT,
        bytes: b"!".to_vec(),
        segment: None,
    };
    send(&server, &answer).await;
    assert_eq!(receive(&client, 1).await[0].remote, asked);
}

#[tokio::test]
async fn a_client_bound_to_all_addresses_keeps_one_name_for_its_end() {
    let client = Socket::bind(([0, 0, 0, 0], 0).into(), None, Source::Routed, Port::Own).expect("binds");
    assert_eq!(client.source_for(([127, 0, 0, 1], 9).into()), client.local());
    let server = loopback();
    send(&server, &transmit(&server, &client, b"x".to_vec(), None)).await;
    assert_eq!(receive(&client, 1).await[0].local, client.local());
    let pinned = Socket::bind(([0, 0, 0, 0], 0).into(), None, Source::Pinned, Port::Own).expect("binds");
    assert_eq!(pinned.source_for(([127, 0, 0, 1], 9).into()).ip(), IpAddr::from([127, 0, 0, 1]));
}

#[tokio::test]
async fn a_codepoint_shares_the_traffic_class_with_the_ecn_mark() {
    let (a, b) = (loopback(), loopback());
    let marked = Transmit { dscp: Dscp::EXPEDITED, ..transmit(&a, &b, vec![7; 2_500], Some(1_000)) };
    let stats = send(&a, &marked).await;
    assert_eq!((stats.datagrams_sent, stats.send_errors), (3, 0));
    let batches = if cfg!(target_os = "linux") && a.features.max_gso_segments() > 1 { 1 } else { 3 };
    assert_eq!(stats.send_calls, batches, "one call sends the batch where the system cuts it up");
    let sizes: Vec<_> = receive(&b, 3).await.iter().map(|one| (one.bytes.len(), one.ecn)).collect();
    assert_eq!(sizes, [(1_000, Ecn::Ect0), (1_000, Ecn::Ect0), (500, Ecn::Ect0)]);
    let class = socket2::SockRef::from(a.io.socket()).tos_v4().expect("the kernel tells");
    assert_eq!(class, u32::from(Dscp::EXPEDITED.traffic_class(Ecn::Ect0.bits())));
    // Another path of the same socket is not marked.
    send(&a, &transmit(&a, &b, b"plain".to_vec(), None)).await;
    assert_eq!(receive(&b, 1).await[0].ecn, Ecn::Ect0);
}

#[test]
fn memory_of_large_batches_is_used_again_once_nobody_holds_a_part_of_it() {
    let mut pool = Pool::default();
    let copy = |pool: &mut Pool, batch: &[u8]| pool.copy(batch).expect("there is room");
    let (first, second) = (copy(&mut pool, &[1; 30_000]), copy(&mut pool, &[2; 60_000]));
    let place = first.as_ptr();
    assert_ne!(second.as_ptr(), place);
    let (kept, rest) = (first.clone().split_to(10), first);
    drop(rest);
    assert_eq!(kept, [1; 10][..]);
    drop(kept);
    let third = copy(&mut pool, &[3; 40_000]);
    assert_eq!((third.as_ptr(), &third[..], &second[..]), (place, &[3; 40_000][..], &[2; 60_000][..]));
    assert!(pool.copy(&[4; 100]).is_none());
    assert_eq!(pool.buffers.len(), 2, "a single datagram has memory of its own");
}

#[test]
fn small_parts_of_many_large_batches_hold_no_more_than_the_pool() {
    // attacks.md E6: a peer chooses what it sends together, and which part of it this end has to keep.
    let mut buffers = Buffers::new();
    let (mut datagrams, mut kept) = (Vec::new(), Vec::new());
    for batch in 0..2 * MOST_POOLED {
        buffers.bytes[..40_000].fill(batch as u8);
        buffers.metas[0] = RecvMeta { len: 40_000, stride: 1_000, ..RecvMeta::default() };
        buffers.split(1, Queue::Short, |_| ([127, 0, 0, 1], 1).into(), &mut datagrams);
        assert_eq!(datagrams.len(), 40);
        kept.extend(datagrams.drain(..).take(1));
    }
    assert_eq!(buffers.pool.buffers.len(), MOST_POOLED);
    for (batch, datagram) in kept.iter().enumerate() {
        assert_eq!(datagram.bytes, [batch as u8; 1_000][..]);
    }
    // Those beyond the pool are not in its memory. A buffer begins behind the batch that it gave away.
    let pooled = |datagram: &Datagram| {
        let at = datagram.bytes.as_ptr() as usize;
        buffers.pool.buffers.iter().any(|buffer| {
            let end = buffer.as_ptr() as usize;
            (end - 40_000..end).contains(&at)
        })
    };
    assert!(kept[..MOST_POOLED].iter().all(pooled) && !kept[MOST_POOLED..].iter().all(pooled));
}
