//! attacks.md J12: what clients cost that are there and want nothing. HVQ_IDLE_CLIENTS sets how many there are.

use crate::setup::{Client, Fixture, Trust, get, within};
use allocation_counter::measure;
use futures::future::join_all;
use std::net::SocketAddr;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::sleep;

/// Clients, unless the environment says how many.
const CLIENTS: usize = 1_000;
/// Bytes on the heap that a client may cost which has been idle for a moment: connection, streams and tasks.
const BOUND: i64 = (23 << 10) + 128;
/// Bytes that may stay of a client that is gone: buffers that the next ones take, however many come and go.
const REST: i64 = 512;
/// Times that clients come and go.
const WAVES: usize = 3;
/// Times that they wake up and rest again.
const ROUNDS: usize = 3;
/// Handshakes at a time.
const AT_A_TIME: usize = 20;
/// Connections rest after a quarter of a second (`hvq_transport`).
const PAUSE: Duration = Duration::from_millis(600);

/// A gateway in a thread of its own, whose memory on the heap is counted.
pub struct Counted {
    pub address: SocketAddr,
    pub trust: Trust,
    asked: UnboundedSender<()>,
    bytes: mpsc::Receiver<i64>,
    thread: JoinHandle<()>,
}

pub fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

impl Counted {
    /// A gateway whose file says `text`, with these files in its folder, by name.
    pub fn new(text: String, files: Vec<(&'static str, String)>) -> Self {
        let (started, place) = mpsc::channel();
        let (asked, mut questions) = unbounded_channel();
        let (counted, bytes) = mpsc::channel();
        let thread = thread::spawn(move || {
            let runtime = runtime();
            let named: Vec<_> = files.iter().map(|(name, content)| (*name, content.as_str())).collect();
            let place = runtime.block_on(Fixture::with(&text, &named));
            started.send((place.gateway.local_addrs()[0], place.trust())).unwrap();
            let mut held = 0;
            loop {
                let mut goes_on = false;
                let wait = || goes_on = runtime.block_on(questions.recv()).is_some();
                held += measure(wait).bytes_current;
                if !goes_on || counted.send(held).is_err() {
                    break;
                }
            }
            runtime.block_on(place.gateway.stop());
        });
        let (address, trust) = place.recv().unwrap();
        Self { address, trust, asked, bytes, thread }
    }

    /// Bytes on its heap beyond what it began with.
    pub fn bytes(&self) -> i64 {
        self.asked.send(()).unwrap();
        self.bytes.recv().unwrap()
    }

    /// Waits until it has stopped.
    pub fn stop(self) {
        let Self { asked, bytes, thread, .. } = self;
        drop((asked, bytes));
        thread.join().unwrap();
    }
}

/// Opens `count` clients, each of which has asked for a file.
async fn open(endpoint: &hvq::Endpoint, gateway: &Counted, count: usize) -> Vec<Client> {
    let mut all = Vec::new();
    while all.len() < count {
        let some = AT_A_TIME.min(count - all.len());
        let begun = (0..some).map(|_| Client::of(endpoint, gateway.address, &gateway.trust));
        let begun: Vec<_> = join_all(begun).await.into_iter().map(Result::unwrap).collect();
        ask(&begun).await;
        all.extend(begun);
    }
    all
}

/// Each asks for a file.
async fn ask(clients: &[Client]) {
    for some in clients.chunks(AT_A_TIME) {
        let asked = some.iter().map(|client| client.status(get("/file")));
        assert!(join_all(asked).await.iter().all(|status| *status == 200));
    }
}

/// Measures the cost of clients that come and go, each: once they rest, every time that they woke up, and once they are
/// gone.
async fn wave(endpoint: &hvq::Endpoint, gateway: &Counted, count: usize, before: i64) -> (Vec<i64>, i64) {
    let each = || (gateway.bytes() - before) / count as i64;
    let clients = open(endpoint, gateway, count).await;
    let mut resting = Vec::new();
    for _ in 0..ROUNDS {
        ask(&clients).await;
        sleep(PAUSE).await;
        resting.push(each());
    }
    drop(clients);
    within(async {
        while each() > REST {
            sleep(PAUSE).await;
        }
    })
    .await;
    (resting, each())
}

#[test]
fn idle_clients_cost_what_is_stated_however_often_they_wake() {
    let count = std::env::var("HVQ_IDLE_CLIENTS").map_or(CLIENTS, |count| count.parse().unwrap());
    let text = "[[host]]\nnames = ['localhost']\nfiles = 'DIR'\n".to_owned();
    let gateway = Counted::new(text, vec![("file", "a few bytes".to_owned())]);
    runtime().block_on(async {
        let endpoint = hvq::Endpoint::client(&[]).unwrap();
        // What one client brings about and all share.
        let _first = open(&endpoint, &gateway, 1).await;
        sleep(PAUSE).await;
        let before = gateway.bytes();
        for _ in 0..WAVES {
            let (resting, gone) = wave(&endpoint, &gateway, count, before).await;
            println!("bytes of an idle client, each time: {resting:?}, and once it is gone: {gone}");
            assert!(resting.iter().all(|bytes| *bytes <= BOUND), "{resting:?}");
            assert!(
                resting.iter().all(|bytes| *bytes <= resting[0] + resting[0] / 50),
                "it grows: {resting:?}"
            );
        }
    });
    gateway.stop();
}
