use super::*;
use crate::receive_queue;
use hvq_transport::connection::{Datagram, Dscp, Ecn};
use std::future::poll_fn;

fn loopback() -> Socket {
    bound([127, 0, 0, 1], Source::Routed)
}

fn bound(address: [u8; 4], source: Source) -> Socket {
    let runtime = crate::runtime::current().unwrap();
    Socket::bind(&*runtime, (address, 0).into(), None, (source, Port::Own)).expect("binds")
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
    let mut arrivals = Arrivals::default();
    while arrivals.datagrams.len() < wanted {
        poll_fn(|context| socket.poll_receive(context, &mut arrivals)).await;
    }
    arrivals.datagrams
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
    let (mut arrivals, mut calls) = (Arrivals::default(), Vec::new());
    arrivals.buffers.set_senders(senders);
    loop {
        let call = poll_fn(|context| b.poll_receive(context, &mut arrivals));
        if tokio::time::timeout(std::time::Duration::from_secs(1), call).await.is_err() {
            return calls;
        }
        calls.push(arrivals.datagrams.drain(..).map(|datagram| datagram.ecn).collect());
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
    let server = bound([0, 0, 0, 0], Source::Pinned);
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
    let client = bound([0, 0, 0, 0], Source::Routed);
    assert_eq!(client.source_for(([127, 0, 0, 1], 9).into()), client.local());
    let server = loopback();
    send(&server, &transmit(&server, &client, b"x".to_vec(), None)).await;
    assert_eq!(receive(&client, 1).await[0].local, client.local());
    let pinned = bound([0, 0, 0, 0], Source::Pinned);
    assert_eq!(pinned.source_for(([127, 0, 0, 1], 9).into()).ip(), IpAddr::from([127, 0, 0, 1]));
}

#[tokio::test]
async fn a_codepoint_shares_the_traffic_class_with_the_ecn_mark() {
    let bound = UdpSocket::bind("127.0.0.1:0").unwrap();
    let kernel = bound.try_clone().unwrap();
    let runtime = crate::runtime::current().unwrap();
    let (a, b) = (Socket::adopt(&*runtime, bound, Source::Routed).unwrap(), loopback());
    let features = quinn_udp::UdpSocketState::new((&kernel).into()).unwrap();
    let marked = Transmit { dscp: Dscp::EXPEDITED, ..transmit(&a, &b, vec![7; 2_500], Some(1_000)) };
    let stats = send(&a, &marked).await;
    assert_eq!((stats.datagrams_sent, stats.send_errors), (3, 0));
    let batches = if cfg!(target_os = "linux") && features.max_gso_segments() > 1 { 1 } else { 3 };
    assert_eq!(stats.send_calls, batches, "one call sends the batch where the system cuts it up");
    let sizes: Vec<_> = receive(&b, 3).await.iter().map(|one| (one.bytes.len(), one.ecn)).collect();
    assert_eq!(sizes, [(1_000, Ecn::Ect0), (1_000, Ecn::Ect0), (500, Ecn::Ect0)]);
    let class = socket2::SockRef::from(&kernel).tos_v4().expect("the kernel tells");
    assert_eq!(class, u32::from(Dscp::EXPEDITED.traffic_class(Ecn::Ect0.bits())));
    // Another path of the same socket is not marked.
    send(&a, &transmit(&a, &b, b"plain".to_vec(), None)).await;
    assert_eq!(receive(&b, 1).await[0].ecn, Ecn::Ect0);
}
