//! Flow control of WebTransport sessions (draft-ietf-webtrans-http3 §5).

use crate::setup::*;
use crate::web_transport::{Ends, served_within, session_within};
use hvq::transport::wire::varint;
use hvq_h3::client::{Client, RequestError};
use hvq_h3::web_transport::{
    Session, SessionCapsule, SessionEnd, SessionError, SessionLimits, SessionStreams, StreamError, Terms,
};
use hvq_h3::{Code, ReceiveError};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::timeout;

const LIMITS: SessionLimits = SessionLimits { sessions: 2, data: 1000, uni: 2, bidi: 2 };
/// Longer than anything here takes that happens at all.
const LONG: Duration = Duration::from_millis(400);

#[tokio::test]
async fn a_connection_has_as_many_sessions_as_both_ends_permit() {
    // §5.1, §5.2.
    let gate = Arc::new(Semaphore::new(100));
    let (client, mut sessions) = served_within(Terms::default(), gate, LIMITS).await;
    let mut pairs = Vec::new();
    for _ in 0..2 {
        let near = within(client.web_transport(&get("/"), &[])).await.unwrap();
        pairs.push((near, within(sessions.recv()).await.unwrap().unwrap()));
    }
    assert_eq!(within(client.web_transport(&get("/"), &[])).await.unwrap_err(), SessionError::TooMany);
    let asked = within(client.tunnel(&get("/"), "webtransport-h3")).await.map(|(head, ..)| head.status());
    assert_eq!(asked, Err(RequestError::Reset(Code::H3_REQUEST_REJECTED.value())));
    for (number, (near, far)) in pairs.iter().enumerate() {
        let mut send = within(near.open_uni()).await.unwrap();
        send.write_all(&[u8::try_from(number).unwrap()]).await.unwrap();
        send.finish().unwrap();
        let mut receive = within(far.accept_uni()).await.unwrap();
        assert_eq!(usize::from(within(receive.read_to_end(9)).await.unwrap()[0]), number);
    }
}

/// Bytes that `near` gets rid of, with nobody who reads them.
async fn accepted(near: &Session) -> (hvq_h3::web_transport::SendHalf, usize) {
    let (mut send, mut written) = (within(near.open_uni()).await.unwrap(), 0);
    while let Ok(bytes) = timeout(LONG, send.write(&[7; 300])).await {
        written += bytes.unwrap();
    }
    (send, written)
}

#[tokio::test]
async fn data_is_sent_as_far_as_the_session_permits_and_further_as_it_is_read() {
    // §5.4: the limit is that of all streams together.
    let Ends { near, far, client: _client, .. } = session_within(LIMITS).await;
    for (near, far) in [(&near, &far), (&far, &near)] {
        let (mut first, written) = accepted(near).await;
        let (mut second, more) = accepted(near).await;
        assert_eq!((written, more), (1000, 0));
        let mut receive = within(far.accept_uni()).await.unwrap();
        let sending = async {
            first.write_all(&[8; 20_000]).await.unwrap();
            first.finish().unwrap();
        };
        let (read, ()) = within(async { tokio::join!(receive.read_to_end(30_000), sending) }).await;
        assert_eq!(read.unwrap().len(), 21_000);
        within(second.write_all(b"x")).await.unwrap();
        second.finish().unwrap();
        within(within(far.accept_uni()).await.unwrap().read_to_end(9)).await.unwrap();
    }
}

#[tokio::test]
async fn one_session_that_is_not_read_holds_up_no_other() {
    let gate = Arc::new(Semaphore::new(100));
    let (client, mut sessions) = served_within(Terms::default(), gate, LIMITS).await;
    let greedy = within(client.web_transport(&get("/"), &[])).await.unwrap();
    let _unread = within(sessions.recv()).await.unwrap().unwrap();
    let other = within(client.web_transport(&get("/"), &[])).await.unwrap();
    let far = within(sessions.recv()).await.unwrap().unwrap();
    let (_send, written) = accepted(&greedy).await;
    assert_eq!(written, 1000);
    let mut send = within(other.open_uni()).await.unwrap();
    within(send.write_all(&[1; 1000])).await.unwrap();
    send.finish().unwrap();
    let mut receive = within(far.accept_uni()).await.unwrap();
    assert_eq!(within(receive.read_to_end(1000)).await.unwrap().len(), 1000);
}

#[tokio::test]
async fn a_stream_more_is_opened_once_one_is_over() {
    // §5.3.
    let Ends { near, far, client: _client, .. } = session_within(LIMITS).await;
    for (near, far) in [(&near, &far), (&far, &near)] {
        let mut open = Vec::new();
        for _ in 0..2 {
            let (mut send, receive) = within(near.open_bi()).await.unwrap();
            send.write_all(b"?").await.unwrap();
            open.push((send, receive));
        }
        assert!(timeout(LONG, near.open_bi()).await.is_err(), "there are two");
        assert!(timeout(LONG, near.open_bi()).await.is_err(), "one that was given up counts for nothing");
        within(near.open_uni()).await.unwrap();
        let (mut answer, mut question) = within(far.accept_bi()).await.unwrap();
        let (mut send, mut receive) = open.remove(0);
        send.finish().unwrap();
        within(question.read_to_end(9)).await.unwrap();
        answer.finish().unwrap();
        drop((answer, question));
        within(receive.read_to_end(9)).await.unwrap();
        drop((send, receive));
        within(near.open_bi()).await.unwrap();
    }
}

#[tokio::test]
async fn credit_comes_back_from_streams_that_are_given_up() {
    // §5.4: both ends count what was sent, by the final size.
    let Ends { near, far, client: _client, .. } = session_within(LIMITS).await;
    for round in 0..100 {
        let mut send = within(near.open_uni()).await.unwrap();
        within(send.write_all(&[1; 480])).await.unwrap();
        if round % 2 == 0 {
            send.reset(1).unwrap();
        }
        let mut receive = within(far.accept_uni()).await.unwrap();
        if round % 4 == 1 {
            receive.stop(2);
            assert_eq!(within(send.delivered()).await, Err(StreamError::GivenUp(Some(2))));
        } else if round % 4 == 3 {
            drop((send, receive));
        } else {
            assert_eq!(within(receive.read_to_end(1000)).await, Err(StreamError::GivenUp(Some(1))));
        }
    }
}

#[tokio::test]
async fn a_server_takes_no_session_of_a_client_whose_settings_do_not_fit() {
    // §3.1.
    let settings = hvq_h3::Settings { tunnels: hvq_h3::Tunnels::Streams, ..Default::default() };
    let pair = pair(Duration::from_secs(20)).await;
    let client = Client::new(pair.client.clone(), settings).await.unwrap();
    tokio::spawn(client.watch());
    let refused = |request, sending, receiving| async move {
        let request = hvq_h3::web_transport::SessionRequest::new(request, sending, receiving);
        assert_eq!(request.accept(&Terms::default()).await.unwrap_err(), SessionError::NotOffered);
    };
    answer(pair, crate::web_transport::with_sessions(), refused).await;
    let asked = within(client.tunnel(&get("/"), "webtransport-h3")).await.map(|(head, ..)| head.status());
    assert_eq!(asked, Err(RequestError::Reset(Code::H3_MESSAGE_ERROR.value())));
}

/// An offence of a client.
enum Wrong {
    Capsules(&'static [SessionCapsule]),
    Streams(usize),
    Data(usize),
}

#[tokio::test]
async fn whoever_keeps_no_limit_of_a_session_loses_it_alone() {
    // attacks.md H33, §5.6.
    use SessionCapsule::{MaxData, MaxStreams, StreamsBlocked};
    let gate = Arc::new(Semaphore::new(100));
    let (client, mut sessions) = served_within(Terms::default(), gate, LIMITS).await;
    for wrong in [
        Wrong::Capsules(&[MaxData(2000), MaxData(2000)]),
        Wrong::Capsules(&[
            MaxStreams(SessionStreams::Unidirectional, 9),
            MaxStreams(SessionStreams::Unidirectional, 8),
        ]),
        Wrong::Capsules(&[MaxStreams(SessionStreams::Bidirectional, (1 << 60) + 1)]),
        Wrong::Capsules(&[StreamsBlocked(SessionStreams::Bidirectional, (1 << 60) + 1)]),
        Wrong::Streams(3),
        Wrong::Data(1001),
    ] {
        let (_, mut sending, mut receiving) =
            within(client.tunnel(&get("/"), "webtransport-h3")).await.unwrap();
        let far = within(sessions.recv()).await.unwrap().unwrap();
        let mut streams = Vec::new();
        let mut header = vec![0x40, 0x54];
        varint::put(&mut header, far.id().0);
        let (capsules, count, data): (&[_], _, _) = match wrong {
            Wrong::Capsules(capsules) => (capsules, 0, 0),
            Wrong::Streams(count) => (&[], count, 0),
            Wrong::Data(data) => (&[], 1, data),
        };
        for capsule in capsules {
            sending.data(capsule.encode()).await.unwrap();
        }
        for _ in 0..count {
            let mut stream = within(client.connection().open_uni()).await.unwrap();
            stream.write_all(&header).await.unwrap();
            stream.write_all(&vec![0; data]).await.unwrap();
            streams.push(stream);
        }
        if data > 0 {
            let mut receive = within(far.accept_uni()).await.unwrap();
            // What is there is looked at when something is read.
            tokio::time::sleep(LONG).await;
            let _first = within(receive.read(1)).await;
        }
        let end = within(far.closed()).await;
        assert!(matches!(end, SessionEnd::Broken(_)), "{end:?}");
        let reset = ReceiveError::Lost(hvq::ReadError::Reset(Code::WT_FLOW_CONTROL_ERROR.value()));
        let mut heard = within(receiving.data()).await;
        while let Ok(Some(_)) = heard {
            heard = within(receiving.data()).await;
        }
        assert_eq!(heard, Err(reset));
    }
    within(client.web_transport(&get("/"), &[])).await.unwrap();
}

#[tokio::test]
async fn capsules_of_flow_control_that_is_not_in_force_are_ignored() {
    // §5.1.
    let gate = Arc::new(Semaphore::new(100));
    let (client, mut sessions) = served_within(Terms::default(), gate, SessionLimits::NONE).await;
    let (_, mut sending, _receiving) = within(client.tunnel(&get("/"), "webtransport-h3")).await.unwrap();
    let far = within(sessions.recv()).await.unwrap().unwrap();
    for _ in 0..2 {
        sending.data(SessionCapsule::MaxData(7).encode()).await.unwrap();
    }
    sending.data(SessionCapsule::Drain.encode()).await.unwrap();
    within(far.draining()).await;
    let mut send = within(far.open_uni()).await.unwrap();
    within(send.write_all(&[0; 100])).await.unwrap();
}
