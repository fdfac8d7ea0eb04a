//! The end of a client's interest in a response.

use hvq::StreamId;
use hvq_h3::Priorities;
use tokio::sync::watch;

/// Tells when the client of a request wants its response no more. Clones tell of the same request.
#[derive(Clone)]
pub(crate) enum Gone {
    /// A stream of HTTP/3, which the client stops.
    Http3(Priorities, StreamId),
    /// A response over TCP, whose body hyper drops; the sender is dropped with it.
    Tcp(watch::Receiver<()>),
}

impl Gone {
    /// Waits until the client wants the response no more.
    pub(crate) async fn wait(&self) {
        match self {
            Self::Http3(priorities, id) => priorities.unwanted(*id).await,
            Self::Tcp(body) => {
                let mut body = body.clone();
                // Nothing is ever sent: the only news is the end of the sender.
                while body.changed().await.is_ok() {}
            }
        }
    }
}
