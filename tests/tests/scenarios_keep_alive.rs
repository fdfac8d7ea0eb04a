//! Tests of paths that are kept warm over NATs that forget: the silence that they remember is learned.

use hvq_scheduler::{PathId, Policy};
use hvq_tests::net::Net;
use hvq_transport::connection::{Event, Multipath, PathEvent, TransportConfig};
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
const HOUR: u32 = 3_600;
/// The marks around the table in the guide.
const MARKS: [&str; 2] = ["<!-- keep-alive: begin -->\n", "<!-- keep-alive: end -->\n"];

fn config() -> TransportConfig {
    let mut config = TransportConfig::new(Arc::new(|| Policy::MinRtt.scheduler()));
    config.set_multipath(Multipath::Off).set_idle_timeout(Duration::ZERO);
    config
}

/// A client that sends a PING after 25 s of silence, or after up to `limit`.
fn client(limit: Option<Duration>) -> TransportConfig {
    config().set_path_keep_alive(Some(25 * SECOND)).set_path_keep_alive_limit(limit).clone()
}

/// An idle connection over a NAT that forgets its client after `timeout` without a packet of it.
struct Idle {
    net: Net,
    timeout: Option<Duration>,
    sent: u64,
    silence: Duration,
    port: u16,
}

/// The events of some time.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
struct Log {
    /// Seconds in which the client sent.
    wakes: u32,
    /// Times that the NAT forgot it.
    forgotten: u32,
}

impl Idle {
    fn new(client: TransportConfig, server: TransportConfig, timeout: Option<Duration>) -> Self {
        let mut net = Net::new(client, server, 1);
        let tuple = net.wire("rtt=40ms,rate=20mbit");
        net.connect(tuple);
        net.run_for(5 * SECOND);
        let sent = net.wires[0].up.sent;
        Self { net, timeout, sent, silence: Duration::ZERO, port: 20_000 }
    }

    fn run(&mut self, seconds: u32) -> Log {
        let mut log = Log::default();
        for _ in 0..seconds {
            self.net.run_for(SECOND);
            let sent = self.net.wires[0].up.sent;
            if sent != self.sent {
                (self.sent, self.silence) = (sent, Duration::ZERO);
                log.wakes += 1;
            } else {
                self.silence += SECOND;
                if self.timeout == Some(self.silence) {
                    self.port += 1;
                    self.net.wires[0].outside.set_port(self.port);
                    log.forgotten += 1;
                }
            }
        }
        log
    }

    fn is_open(&self) -> bool {
        let over = |(_, event): &(_, Event)| matches!(event, Event::Closed(_));
        !self.net.client.events.iter().chain(&self.net.server.events).any(over)
    }
}

/// The table of the guide.
fn table() -> String {
    let mut table = String::from(
        "| the NAT forgets after | PINGs in the first hour | in the second | times forgotten | PINGs an hour every 25 s |\n\
         | --- | --- | --- | --- | --- |\n",
    );
    let timeouts = [Some(30), Some(60), Some(120), Some(300), None];
    for seconds in timeouts {
        let timeout = seconds.map(|seconds| SECOND * seconds);
        let mut idle = Idle::new(client(Some(SECOND * 900)), config(), timeout);
        let (first, second) = (idle.run(HOUR), idle.run(HOUR));
        assert!(idle.is_open(), "{}", idle.net.describe());
        assert_eq!(second.forgotten, 0, "{seconds:?}: it is known by then");
        let fixed = Idle::new(client(None), config(), timeout).run(HOUR);
        assert_eq!(fixed.forgotten, 0, "{seconds:?}");
        let name = seconds.map_or("never".to_owned(), |seconds| format!("{seconds} s"));
        let row = (first.wakes, second.wakes, first.forgotten, fixed.wakes);
        writeln!(table, "| {name} | {} | {} | {} | {} |", row.0, row.1, row.2, row.3).expect("memory");
    }
    table
}

#[test]
fn wakes_of_an_idle_client_are_those_of_the_guide() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/rust.md");
    let text = std::fs::read_to_string(&file).expect("the guide is there");
    let [begin, end] = MARKS.map(|mark| text.find(mark).expect("the guide has marks"));
    let (from, table) = (begin + MARKS[0].len(), table());
    if std::env::var_os("HVQ_WRITE_KEEP_ALIVE").is_some() {
        std::fs::write(&file, format!("{}{table}{}", &text[..from], &text[end..]))
            .expect("it can be written");
    } else {
        assert_eq!(&text[from..end], table, "HVQ_WRITE_KEEP_ALIVE=1 writes what the test sees");
    }
}

#[test]
fn no_silence_is_so_long_that_the_connection_ends() {
    let server = config().set_idle_timeout(SECOND * 100).clone();
    let mut idle = Idle::new(client(Some(SECOND * 900)), server, None);
    let first = idle.run(HOUR);
    assert!(idle.is_open(), "{}", idle.net.describe());
    assert!((72..80).contains(&first.wakes), "half of the peer's timeout: {first:?}");
}

#[test]
fn a_server_that_pings_its_clients_learns_nothing() {
    let server = client(Some(SECOND * 900));
    let mut idle = Idle::new(config(), server, None);
    let first = idle.run(HOUR);
    assert!((140..=146).contains(&first.wakes), "answers to a PING each 25 s: {first:?}");
}

#[test]
fn a_path_that_moves_is_learned_anew() {
    let mut idle = Idle::new(client(Some(SECOND * 900)), config(), Some(SECOND * 300));
    idle.run(2 * HOUR);
    assert!(idle.run(600).wakes <= 3);
    let moved = idle.net.wire("rtt=40ms,rate=20mbit");
    let now = idle.net.now;
    let connection = idle.net.client.connection();
    connection
        .migrate(PathId::ZERO, moved, hvq_transport::connection::Moving::Validated, now)
        .expect("a client may move");
    idle.net.run_for(SECOND);
    assert!(idle.net.server.saw(&Event::Path(PathEvent::Migrated(PathId::ZERO))), "{}", idle.net.describe());
    let sent =
        idle.net.client.connection().path_stats(PathId::ZERO).expect("it is open").counters.datagrams_sent;
    idle.net.run_for(SECOND * 70);
    let later =
        idle.net.client.connection().path_stats(PathId::ZERO).expect("it is open").counters.datagrams_sent;
    assert!(later >= sent + 2, "after 25 s and 37.5 s: {sent}, {later}");
}
