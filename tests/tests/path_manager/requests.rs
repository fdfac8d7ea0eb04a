//! A stream of small requests that must not stand still.

use crate::network::within;
use hvq::Connection;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Between two requests.
const PACE: Duration = Duration::from_millis(10);
/// Bytes of a request and of its answer.
const SIZE: usize = 500;
/// Answers that show that requests go on.
const MORE: u64 = 50;

/// Requests, one after the other.
pub(crate) struct Requests {
    answers: watch::Receiver<u64>,
    task: JoinHandle<Duration>,
    stop: watch::Sender<bool>,
}

impl Requests {
    pub(crate) fn begin(connection: &Connection) -> Self {
        let (count, answers) = watch::channel(0);
        let (stop, stopped) = watch::channel(false);
        let task = tokio::spawn(ask(connection.clone(), count, stopped));
        Self { answers, task, stop }
    }

    /// Waits for fifty more answers.
    pub(crate) async fn go_on(&self) {
        let mut answers = self.answers.clone();
        let wanted = *answers.borrow() + MORE;
        within(answers.wait_for(|count| *count >= wanted)).await.expect("requests are answered");
    }

    /// Ends them: each was answered, and the longest time between two answers is told.
    pub(crate) async fn end(self) {
        self.stop.send_replace(true);
        let longest = within(self.task).await.expect("every request is answered");
        println!("{} answers, {longest:.1?} between two at most", *self.answers.borrow());
    }
}

async fn ask(connection: Connection, count: watch::Sender<u64>, stopped: watch::Receiver<bool>) -> Duration {
    let (mut last, mut longest) = (Instant::now(), Duration::ZERO);
    while !*stopped.borrow() {
        let (mut send, mut receive) = connection.open_bi().await.unwrap();
        send.write_all(&[7; SIZE]).await.unwrap();
        send.finish().unwrap();
        assert_eq!(within(receive.read_to_end(SIZE)).await.unwrap(), [7; SIZE]);
        longest = longest.max(last.elapsed());
        last = Instant::now();
        count.send_modify(|count| *count += 1);
        tokio::time::sleep(PACE).await;
    }
    longest
}
