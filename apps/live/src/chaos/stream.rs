//! A stream of small requests, each after the answer to the one before, and the gaps between answers.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

/// From an answer to the next request.
const PAUSE: Duration = Duration::from_millis(20);
/// The interval at which a request that waits looks at the clock.
const LOOK: Duration = Duration::from_millis(50);
/// The time without an answer at the end from which on none is expected any more.
const SILENT: Duration = Duration::from_millis(2_000);
/// The name that is asked for; the gateway has its files for every name.
const HOST: &str = "chaos.test";

/// The gaps of a stream of requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Gaps {
    /// The longest time between two answers; `None` if none came at the end any more.
    pub(super) longest: Option<Duration>,
    /// Answers.
    pub(super) answers: u64,
    /// Requests that ended without one.
    pub(super) failures: u64,
}

impl Gaps {
    /// The gaps of `answers` that came until `end`, in order.
    pub(super) fn of(answers: &[Duration], failures: u64, end: Duration) -> Self {
        let gaps = answers.windows(2).map(|pair| pair[1].saturating_sub(pair[0]));
        let alive = answers.last().is_some_and(|last| end.saturating_sub(*last) < SILENT);
        Self { longest: gaps.max().filter(|_| alive), answers: answers.len() as u64, failures }
    }
}

/// Asks the proxy at `proxy` from the first answer on for `time`, of which `begun` is told the beginning. For the first answer it waits for
/// as long.
pub(super) fn ask(proxy: SocketAddr, time: Duration, begun: &SyncSender<Instant>) -> Gaps {
    let mut deadline = Instant::now() + time;
    let mut begin = None;
    let (mut answers, mut failures, mut line) = (Vec::new(), 0, None);
    while Instant::now() < deadline {
        let mut connection = match line.take() {
            Some(connection) => connection,
            None => match Connection::open(proxy) {
                Ok(connection) => connection,
                Err(_) => {
                    failures += 1;
                    std::thread::sleep(PAUSE);
                    continue;
                }
            },
        };
        match connection.request(deadline) {
            Ok(()) => {
                let now = Instant::now();
                let begin = *begin.get_or_insert_with(|| {
                    deadline = now + time;
                    // Nobody waits for it any more if the try has failed.
                    let _told = begun.send(now);
                    now
                });
                answers.push(now - begin);
                line = Some(connection);
            }
            Err(_) => failures += 1,
        }
        std::thread::sleep(PAUSE);
    }
    Gaps::of(&answers, failures, time)
}

/// A connection to the proxy.
struct Connection {
    stream: BufReader<TcpStream>,
}

impl Connection {
    fn open(proxy: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(proxy)?;
        stream.set_read_timeout(Some(LOOK))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// A request and its answer, which must be a whole one with status 200 and come before `deadline`.
    fn request(&mut self, deadline: Instant) -> io::Result<()> {
        let head = format!("GET http://{HOST}/small HTTP/1.1\r\nHost: {HOST}\r\n\r\n");
        self.stream.get_mut().write_all(head.as_bytes())?;
        let status = self.line(deadline)?;
        let mut length = 0;
        loop {
            let field = self.line(deadline)?.to_ascii_lowercase();
            if field.is_empty() {
                break;
            }
            if let Some(value) = field.strip_prefix("content-length:") {
                length = value.trim().parse().map_err(io::Error::other)?;
            }
        }
        let mut body = vec![0; length];
        let mut read = 0;
        while read < length {
            read += again(deadline, || self.stream.read(&mut body[read..]))?;
        }
        if status.contains(" 200 ") { Ok(()) } else { Err(io::Error::other(status)) }
    }

    fn line(&mut self, deadline: Instant) -> io::Result<String> {
        let mut text = String::new();
        // What was read before the time was up stays in `text`.
        again(deadline, || self.stream.read_line(&mut text))?;
        Ok(text.trim_end().to_owned())
    }
}

/// Reads until something came, the end or `deadline`.
fn again(deadline: Instant, mut read: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match read() {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                if Instant::now() > deadline {
                    return Err(error);
                }
            }
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::sync::mpsc::sync_channel;

    fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn a_gap_is_between_two_answers_and_none_where_they_ceased() {
        let answers = [0, 20, 1_000, 1_030, 9_000].map(ms);
        assert_eq!(Gaps::of(&answers, 2, ms(10_000)).longest, Some(ms(7_970)));
        let ceased = Gaps::of(&answers[..4], 0, ms(10_000));
        assert_eq!((ceased.longest, ceased.answers), (None, 4));
        assert_eq!(Gaps::of(&[], 0, ms(10_000)).longest, None);
    }

    #[test]
    fn answers_are_counted_and_a_pause_of_the_server_is_seen() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut requests = 0;
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            while let Some(Ok(line)) = lines.next() {
                if line.is_empty() {
                    requests += 1;
                    std::thread::sleep(ms(if requests == 3 { 300 } else { 0 }));
                    if stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").is_err() {
                        break;
                    }
                }
            }
            requests
        });
        let (begun, told) = sync_channel(1);
        let gaps = ask(address, ms(700), &begun);
        assert!(told.try_recv().is_ok());
        assert!(gaps.longest.is_some_and(|gap| gap >= ms(300)) && gaps.answers >= 3, "{gaps:?}");
        assert!(server.join().unwrap() >= gaps.answers);
    }
}
