//! The life of a server's connection: requests in, each answered by a task of its own, and an orderly end.

use super::settled::settled;
use super::{Incoming, Server};
use std::future::{Future, pending, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::timeout;

impl Server {
    /// Serves requests by `answer` until the connection ends or `stop` is ready. The client is told then that no more are
    /// accepted (GOAWAY, RFC 9114 §5.2), which refuses what comes later, and requests under way may take as long as `patience`
    /// says. Returns when the connection is closed.
    ///
    /// The future that `answer` returns is polled once where it is, and becomes a task if it has to wait: a response
    /// that is there needs none.
    pub async fn run<A>(
        mut self,
        stop: impl Future<Output = ()>,
        patience: impl FnOnce() -> Duration,
        mut answer: impl FnMut(Incoming) -> A,
    ) where
        A: Future<Output = ()> + Send + 'static,
    {
        // It ends with the connection.
        tokio::spawn(self.watch());
        let mut requests = JoinSet::new();
        let mut stop = pin!(stop);
        loop {
            let accepted = tokio::select! {
                accepted = self.accept() => accepted,
                () = &mut stop => break,
                Some(_) = requests.join_next() => continue,
            };
            match accepted {
                Ok(incoming) => begin(&mut requests, Box::pin(answer(incoming))).await,
                Err(error) => {
                    tracing::debug!(%error, "connection ended");
                    break;
                }
            }
        }
        self.go_away();
        let connection = self.shared.connection.clone();
        let finished = async {
            while requests.join_next().await.is_some() {}
            settled(&connection).await;
        };
        let ended = async {
            tokio::select! {
                () = finished => {}
                () = self.reject_all() => {}
            }
        };
        if timeout(patience(), ended).await.is_err() {
            tracing::debug!("requests under way are abandoned");
        }
    }

    /// Refuses all requests. It never ends: requests under way end by themselves with their connection.
    async fn reject_all(&mut self) {
        while let Ok(incoming) = self.accept().await {
            incoming.reject();
        }
        pending().await
    }
}

/// Answers a request here if that takes no waiting, as of a file that is in memory: a task of its own costs more than that.
async fn begin<A>(requests: &mut JoinSet<()>, mut answer: Pin<Box<A>>)
where
    A: Future<Output = ()> + Send + 'static,
{
    // Many such requests in a row let others have their turn.
    tokio::task::consume_budget().await;
    let answered = poll_fn(|context| Poll::Ready(answer.as_mut().poll(context).is_ready())).await;
    if !answered {
        requests.spawn(answer);
    }
}
