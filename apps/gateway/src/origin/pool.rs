//! Connections over HTTP/1.1 to one origin, kept and used again.

use super::connector::Direct;
use super::failure::Failure;
use super::{BUFFER, KEPT, SPARE};
use crate::request::Upload;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::time::{Instant, sleep};

/// Connections to one origin.
pub(super) struct Pool {
    connector: Direct,
    kept: Arc<Mutex<Kept>>,
}

/// Connections that nobody uses, the one that was used last at the end: the others get old, and are closed.
#[derive(Default)]
struct Kept {
    connections: VecDeque<(Instant, SendRequest<Upload>)>,
    /// True if a task closes those that are old.
    watched: bool,
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pool({:?})", self.connector)
    }
}

impl Pool {
    /// Makes a pool of connections to the origin that `connector` leads to.
    pub(super) fn new(connector: Direct) -> Self {
        Self { connector, kept: Arc::default() }
    }

    /// Sends the request, whose target is a path, and waits for the head of the response.
    pub(super) async fn send(&self, mut request: Request<Upload>) -> Result<Response<Incoming>, Failure> {
        loop {
            let kept = self.take();
            let fresh = kept.is_none();
            let mut connection = match kept {
                Some(connection) => connection,
                None => self.connect().await?,
            };
            match connection.try_send_request(request).await {
                Ok(response) => {
                    keep(&self.kept, connection);
                    return Ok(response);
                }
                Err(mut error) => match error.take_message() {
                    // The origin had closed the connection: nothing of the request left.
                    Some(unsent) if !fresh => request = unsent,
                    _ => return Err(Failure::of_exchange(&error.into_error())),
                },
            }
        }
    }

    fn take(&self) -> Option<SendRequest<Upload>> {
        let mut kept = lock(&self.kept);
        loop {
            let (_, connection) = kept.connections.pop_back()?;
            if connection.is_ready() {
                return Some(connection);
            }
        }
    }

    async fn connect(&self) -> Result<SendRequest<Upload>, Failure> {
        let wire = self.connector.connect().await.map_err(|error| Failure::of_connecting(&error))?;
        let made = http1::Builder::new().max_buf_size(BUFFER).handshake(wire).await;
        let (mut sender, connection) = made.map_err(|error| Failure::of_exchange(&error))?;
        // Who waits for a response learns how it ends.
        tokio::spawn(async move { drop(connection.await) });
        sender.ready().await.map_err(|error| Failure::of_exchange(&error))?;
        Ok(sender)
    }
}

/// Keeps a connection, once its response was taken.
fn keep(kept: &Arc<Mutex<Kept>>, mut connection: SendRequest<Upload>) {
    if connection.is_ready() {
        return put(kept, connection);
    }
    if !connection.is_closed() {
        let kept = Arc::downgrade(kept);
        tokio::spawn(async move {
            if let (Ok(()), Some(kept)) = (connection.ready().await, kept.upgrade()) {
                put(&kept, connection);
            }
        });
    }
}

fn put(kept: &Arc<Mutex<Kept>>, connection: SendRequest<Upload>) {
    let mut state = lock(kept);
    if state.connections.len() < SPARE {
        state.connections.push_back((Instant::now(), connection));
    }
    if !std::mem::replace(&mut state.watched, true) {
        tokio::spawn(watch(Arc::downgrade(kept)));
    }
}

/// Closes connections that nobody used for long, until there is none.
async fn watch(kept: Weak<Mutex<Kept>>) {
    loop {
        sleep(KEPT).await;
        let Some(kept) = kept.upgrade() else { return };
        let mut kept = lock(&kept);
        kept.connections.retain(|(since, connection)| since.elapsed() < KEPT && !connection.is_closed());
        if kept.connections.is_empty() {
            kept.watched = false;
            return;
        }
    }
}

fn lock(kept: &Mutex<Kept>) -> MutexGuard<'_, Kept> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configuration::OriginUrl;
    use http_body_util::BodyExt;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::sync::mpsc;
    use std::time::Duration;

    /// An answer with this body.
    fn answer(body: &str) -> String {
        format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())
    }

    /// Reads the head of a request.
    fn asked(stream: &mut TcpStream) {
        let (mut seen, mut part) = (Vec::new(), [0; 1024]);
        while !seen.ends_with(b"\r\n\r\n") {
            let length = stream.read(&mut part).unwrap();
            assert!(length > 0, "the connection ended before a request");
            seen.extend_from_slice(&part[..length]);
        }
    }

    async fn ask(pool: &Pool) -> String {
        let response = pool.send(Request::get("/").body(Upload::empty()).unwrap()).await.unwrap();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        String::from_utf8(body.to_vec()).unwrap()
    }

    /// A pool before an origin whose first connection is dealt with by `first`, and whose second answers "two".
    fn before(first: impl FnOnce(TcpStream) + Send + 'static) -> Pool {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url: OriginUrl = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
        std::thread::spawn(move || {
            first(listener.accept().unwrap().0);
            let (mut second, _) = listener.accept().unwrap();
            asked(&mut second);
            second.write_all(answer("two").as_bytes()).unwrap();
            asked(&mut second);
        });
        Pool::new(Direct::new(&url, None, Duration::from_secs(5)).unwrap())
    }

    #[tokio::test]
    async fn what_follows_an_answer_unasked_is_nobody_s_answer() {
        // K9, in one piece with the answer.
        let pool = before(|mut stream| {
            asked(&mut stream);
            stream.write_all([answer("one"), answer("of another")].concat().as_bytes()).unwrap();
        });
        assert_eq!((ask(&pool).await.as_str(), ask(&pool).await.as_str()), ("one", "two"));
    }

    #[tokio::test]
    async fn a_connection_that_had_bytes_unasked_is_not_used_again_however_late_they_came() {
        // K9: they come while the connection is kept, and the runtime has not waited since, so that only the system knows.
        let ((go, wait), (done, came)) = (mpsc::channel(), mpsc::channel());
        let pool = before(move |mut stream| {
            asked(&mut stream);
            stream.write_all(answer("one").as_bytes()).unwrap();
            wait.recv().unwrap();
            stream.write_all(answer("of another").as_bytes()).unwrap();
            done.send(stream).unwrap();
        });
        assert_eq!(ask(&pool).await, "one");
        while lock(&pool.kept).connections.is_empty() {
            tokio::task::yield_now().await;
        }
        go.send(()).unwrap();
        // It stays open, so that nothing but the bytes tells.
        let _open = came.recv().unwrap();
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(ask(&pool).await, "two");
    }
}
