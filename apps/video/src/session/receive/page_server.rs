//! A page with the live picture and how it is: plain HTTP/1.1, pictures as a replaced image, figures as server-sent events.

use crate::session::screen::{self, Screen};
use crate::y4m::Format;
use bytes::Bytes;
use hvq_program::failure::{Exit, Failure, OrFail};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

/// Viewers at a time; each takes two connections.
const MOST_CONNECTIONS: usize = 32;
/// A request is not longer than this, and not slower.
const LONGEST_REQUEST: usize = 8 << 10;
const SLOWEST_REQUEST: Duration = Duration::from_secs(5);
/// A viewer that takes nothing for so long has left.
const SLOWEST_VIEWER: Duration = Duration::from_secs(10);

const PAGE: &str = include_str!("page.html");

/// The contents of a viewer's page: the latest picture as a JPEG file, and the latest figures as JSON.
#[derive(Clone, Debug)]
pub struct PageServer {
    picture: Arc<watch::Sender<Bytes>>,
    figures: Arc<watch::Sender<String>>,
}

impl PageServer {
    /// Checks that there is ffmpeg, which makes JPEG files of pictures.
    ///
    /// # Errors
    /// It cannot be started ([`Exit::Usage`]).
    pub fn check() -> Result<(), Failure> {
        screen::check_program("ffmpeg")
    }

    /// Serves viewers at `address` from now on; returns the address that it really is, too.
    ///
    /// # Errors
    /// Nobody can listen there ([`Exit::Usage`]).
    pub async fn open(address: SocketAddr) -> Result<(Self, SocketAddr), Failure> {
        let listener = TcpListener::bind(address).await;
        let said = || format!("cannot show a page at {address}");
        let listener = listener.or_fail(Exit::Usage, said)?;
        let local = listener.local_addr().or_fail(Exit::Usage, said)?;
        let server =
            Self { picture: Arc::new(watch::Sender::default()), figures: Arc::new(watch::Sender::default()) };
        tokio::spawn(server.clone().serve(listener));
        Ok((server, local))
    }

    /// The figures of now.
    pub(super) fn tell(&self, figures: String) {
        self.figures.send_replace(figures);
    }

    /// A screen whose pictures viewers see.
    pub(super) fn screen(&self, format: Format) -> Result<Screen, Failure> {
        let picture = self.picture.clone();
        Screen::jpegs(format, move |file| drop(picture.send_replace(file.into())))
    }

    async fn serve(self, listener: TcpListener) {
        let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
        while let Ok(place) = places.clone().acquire_owned().await {
            let Ok((stream, _)) = listener.accept().await else { continue };
            let server = self.clone();
            tokio::spawn(async move {
                // Whoever leaves is gone, and nobody else is concerned.
                let _left = server.answer(stream).await;
                drop(place);
            });
        }
    }

    async fn answer(&self, mut stream: TcpStream) -> io::Result<()> {
        let request = timeout(SLOWEST_REQUEST, head(&mut stream)).await??;
        let mut words = request.split(' ');
        match (words.next(), words.next()) {
            (Some("GET"), Some("/")) => whole(&mut stream, "200 OK", "text/html; charset=utf-8", PAGE).await,
            (Some("GET"), Some("/picture")) => self.pictures(stream).await,
            (Some("GET"), Some("/figures")) => self.events(stream).await,
            (Some("GET"), _) => whole(&mut stream, "404 Not Found", "text/plain", "no such page\n").await,
            _ => whole(&mut stream, "405 Method Not Allowed", "text/plain", "only GET\n").await,
        }
    }

    async fn pictures(&self, mut stream: TcpStream) -> io::Result<()> {
        let mut latest = self.picture.subscribe();
        begin(&mut stream, "multipart/x-mixed-replace; boundary=picture").await?;
        loop {
            let file = latest.borrow_and_update().clone();
            if !file.is_empty() {
                let head = format!(
                    "--picture\r\nContent-Type: image/jpeg\r\nContent-Length: {}\r\n\r\n",
                    file.len()
                );
                put(&mut stream, &[head.as_bytes(), &file, b"\r\n"].concat()).await?;
            }
            if latest.changed().await.is_err() {
                return Ok(());
            }
        }
    }

    async fn events(&self, mut stream: TcpStream) -> io::Result<()> {
        let mut latest = self.figures.subscribe();
        begin(&mut stream, "text/event-stream").await?;
        loop {
            let figures = latest.borrow_and_update().clone();
            if !figures.is_empty() {
                put(&mut stream, format!("data: {figures}\n\n").as_bytes()).await?;
            }
            if latest.changed().await.is_err() {
                return Ok(());
            }
        }
    }
}

/// The first line of a request; the rest is of no interest.
async fn head(stream: &mut TcpStream) -> io::Result<String> {
    let mut bytes = Vec::new();
    while !bytes.windows(4).any(|end| end == b"\r\n\r\n") {
        let mut part = [0; 1024];
        match stream.read(&mut part).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => bytes.extend_from_slice(&part[..read]),
        }
        if bytes.len() > LONGEST_REQUEST {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
    let line = bytes.split(|byte| *byte == b'\r').next().unwrap_or_default();
    Ok(String::from_utf8_lossy(line).into_owned())
}

async fn whole(stream: &mut TcpStream, status: &str, kind: &str, body: &str) -> io::Result<()> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    put(stream, &[head.as_bytes(), body.as_bytes()].concat()).await
}

async fn begin(stream: &mut TcpStream, kind: &str) -> io::Result<()> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
    );
    put(stream, head.as_bytes()).await
}

async fn put(stream: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
    timeout(SLOWEST_VIEWER, stream.write_all(bytes)).await?
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn ask(address: SocketAddr, request: &str) -> TcpStream {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    }

    async fn until(stream: &mut TcpStream, wanted: &str) -> String {
        let mut text = String::new();
        while !text.contains(wanted) {
            let mut part = [0; 4096];
            let read = timeout(Duration::from_secs(10), stream.read(&mut part)).await.unwrap().unwrap();
            assert!(read > 0, "{text}");
            text.push_str(&String::from_utf8_lossy(&part[..read]));
        }
        text
    }

    #[tokio::test]
    async fn viewers_get_the_page_the_figures_and_every_picture() {
        let (server, address) = PageServer::open("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let mut page = ask(address, "GET / HTTP/1.1\r\nHost: x\r\n\r\n").await;
        assert!(until(&mut page, "</html>").await.starts_with("HTTP/1.1 200 OK\r\n"));
        let mut events = ask(address, "GET /figures HTTP/1.1\r\n\r\n").await;
        server.tell("{\"frames\":1}".into());
        assert!(until(&mut events, "data: {\"frames\":1}\n\n").await.contains("text/event-stream"));
        let mut pictures = ask(address, "GET /picture HTTP/1.1\r\n\r\n").await;
        server.picture.send_replace(Bytes::from_static(b"first"));
        until(&mut pictures, "Content-Length: 5\r\n\r\nfirst").await;
        server.picture.send_replace(Bytes::from_static(b"second"));
        until(&mut pictures, "Content-Length: 6\r\n\r\nsecond").await;
    }

    #[tokio::test]
    async fn other_requests_are_refused() {
        let (_server, address) = PageServer::open("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let mut missing = ask(address, "GET /etc/passwd HTTP/1.1\r\n\r\n").await;
        until(&mut missing, "404 Not Found").await;
        let mut post = ask(address, "POST / HTTP/1.1\r\n\r\n").await;
        until(&mut post, "405 Method Not Allowed").await;
        let mut endless = ask(address, &"x".repeat(2 * LONGEST_REQUEST)).await;
        let mut rest = Vec::new();
        let _reset = timeout(Duration::from_secs(10), endless.read_to_end(&mut rest)).await.unwrap();
        assert!(rest.is_empty());
    }
}
