//! Meters: both ends count the same, however a stream ends.

use super::*;
use crate::stream::meter::{MeteredHalf, StreamMeter};

#[test]
fn both_ends_count_a_stream_that_is_stopped_and_one_that_is_reset_up_to_their_final_sizes() {
    let (mut client, mut server) = pair(limits());
    let (sent, received) = (StreamMeter::default(), StreamMeter::default());
    let ids = [client.open(UNI).expect("within the limit"), client.open(UNI).expect("within the limit")];
    for id in ids {
        client.write(id, &[0; 200]).expect("room");
        assert!(client.meter(id, MeteredHalf::Send, &sent, 4));
    }
    assert_eq!(sent.passed(), 0, "nothing was sent yet");
    flush(&mut client, &mut server);
    assert_eq!(sent.passed(), 392);
    for id in ids {
        server.accept(UNI);
        server.read(id, 4).expect("the header");
        assert!(server.meter(id, MeteredHalf::Receive, &received, 4));
    }
    assert_eq!((received.passed(), received.consumed()), (392, 0));
    server.read(ids[0], 50).expect("data");
    assert_eq!((received.passed(), received.consumed()), (392, 50));
    server.stop(ids[0], 1).expect("open");
    assert_eq!(received.consumed(), 196, "the rest is discarded");
    client.write(ids[0], &[0; 100]).expect("room");
    client.write(ids[1], &[0; 100]).expect("room");
    let (_, _lost) = taken(&mut client, ids[0], 200, 30).expect("data");
    client.reset(ids[1], 2, 0).expect("open");
    flush(&mut server, &mut client);
    flush(&mut client, &mut server);
    assert_eq!(
        (sent.passed(), received.passed()),
        (422, 422),
        "what was lost counts, what was not sent does not"
    );
    assert_eq!(received.consumed(), 422);
    assert!(!server.meter(ids[0], MeteredHalf::Receive, &received, 4), "it is gone");
    assert!(!client.meter(ids[1], MeteredHalf::Receive, &received, 4), "it has no such half");
}

#[test]
fn a_meter_counts_what_was_sent_before_it_and_is_detached_once_its_streams_are_gone() {
    let (mut client, mut server) = pair(limits());
    let (sent, received) = (StreamMeter::default(), StreamMeter::default());
    let id = client.open(UNI).expect("within the limit");
    client.write(id, &[0; 200]).expect("room");
    client.finish(id).expect("open");
    let (frame, token) = taken(&mut client, id, 1200, 300).expect("data");
    deliver(&mut server, frame);
    server.accept(UNI);
    assert!(client.meter(id, MeteredHalf::Send, &sent, 4));
    assert!(server.meter(id, MeteredHalf::Receive, &received, 4));
    assert_eq!((sent.passed(), received.passed()), (196, 196));
    assert!(!sent.is_detached() && !received.is_detached());
    client.on_acknowledged(&token);
    assert_eq!(read_all(&mut server, id).0.len(), 200);
    assert!(sent.is_detached() && received.is_detached());
    let clone = sent.clone();
    assert!(!sent.is_detached(), "a clone counts, too");
    clone.add_whole(7);
    assert_eq!((sent.passed(), sent.consumed()), (203, 7), "a stream that nobody could be attached to");
}
