//! The priorities of browsers' requests, over HTTP/2 to the proxy, on their way to the scheduler.

use crate::setup::{Fixture, Origin, within};
use boring::ssl::{SslConnector, SslMethod};
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hvq::scheduler::{Content, Item, PathView, Placement, Scheduler};
use hvq::{Policy, Priority};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use tokio::net::TcpStream;

/// Priorities of stream data that a scheduler was asked about, with the stream.
type Seen = Arc<Mutex<BTreeSet<(u64, u8, bool)>>>;

/// Writes down what it is asked, and answers as the default policy does.
#[derive(Debug)]
struct Recorder(Seen, Box<dyn Scheduler>);

impl Scheduler for Recorder {
    fn name(&self) -> &'static str {
        "recorder"
    }

    fn place(&mut self, item: &Item, paths: &[PathView]) -> Placement {
        if let Content::Stream { id } = item.content {
            let Priority { urgency, incremental } = item.priority;
            self.0.lock().unwrap().insert((id, urgency, incremental));
        }
        self.1.place(item, paths)
    }
}

/// A connection of a browser to the proxy.
async fn browser(place: &Fixture) -> http2::SendRequest<Full<Bytes>> {
    let mut connector = SslConnector::builder(SslMethod::tls()).unwrap();
    connector.set_ca_file(place.certificate()).unwrap();
    connector.set_alpn_protos(b"\x02h2").unwrap();
    let stream = TcpStream::connect(place.address()).await.unwrap();
    let configuration = connector.build().configure().unwrap();
    let stream = tokio_boring::connect(configuration, "localhost", stream).await.unwrap();
    assert_eq!(stream.ssl().selected_alpn_protocol(), Some(&b"h2"[..]));
    let (requests, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(async move { drop(connection.await) });
    requests
}

#[tokio::test]
async fn priorities_that_a_browser_sends_over_http_2_reach_the_scheduler_and_the_origin() {
    // RFC 9218 §5; Chromium sends documents with `u=0, i`, images with `u=2, i`, and what is lazy with `i` alone.
    let seen = Seen::default();
    let record = seen.clone();
    let place =
        Fixture::asking(Arc::new(move || Box::new(Recorder(record.clone(), Policy::default().scheduler()))))
            .await;
    let origin = Origin::new().await;
    let browser = within(browser(&place)).await;
    let sent = [("u=0, i", (0, true)), ("u=6", (6, false)), ("i", (3, true)), ("", (3, false))];
    let asks = sent.iter().enumerate().map(|(index, (priority, _))| {
        let mut request = Request::post(format!("http://{}/{index}", origin.address));
        if !priority.is_empty() {
            request = request.header("priority", *priority);
        }
        let request = request.body(Full::from(vec![b'x'; 50_000])).unwrap();
        let mut browser = browser.clone();
        tokio::spawn(async move {
            browser.ready().await.unwrap();
            let response = browser.send_request(request).await.unwrap();
            assert_eq!(response.status(), StatusCode::OK);
            response.into_body().collect().await.unwrap().to_bytes()
        })
    });
    for (index, ask) in asks.collect::<Vec<_>>().into_iter().enumerate() {
        assert_eq!(within(ask).await.unwrap(), format!("POST /{index} 50000"));
    }
    let seen: BTreeSet<(u8, bool)> =
        seen.lock().unwrap().iter().map(|(_, urgency, incremental)| (*urgency, *incremental)).collect();
    for (priority, wanted) in sent {
        assert!(seen.contains(&wanted), "{priority:?} is not in {seen:?}");
    }
    let heads = origin.seen();
    let head = |index: usize| heads.iter().find(|head| head.contains(&format!("post /{index} "))).unwrap();
    assert!(head(0).contains("\r\npriority: u=0, i\r\n") && head(1).contains("\r\npriority: u=6\r\n"));
    assert!(!head(3).contains("\r\npriority:"), "{}", head(3));
}
