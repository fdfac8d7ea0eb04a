//! A relay on the loopback interface: real time, so lower bounds are strict and upper ones generous.

use std::net::{Ipv4Addr, UdpSocket};
use std::sync::mpsc;

use quinn_udp::EcnCodepoint;

use super::*;
use crate::link::DropReason;
use crate::statistics::Count;

fn local() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

fn ms(value: u64) -> Duration {
    Duration::from_millis(value)
}

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind(local()).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    socket
}

/// A server that sends everything back, until it receives a datagram that says `stop`.
struct Echo {
    address: SocketAddr,
    thread: Option<JoinHandle<()>>,
}

impl Echo {
    fn start() -> Self {
        let socket = socket();
        let address = socket.local_addr().unwrap();
        let thread = std::thread::spawn(move || {
            let mut buffer = [0; 2048];
            while let Ok((length, from)) = socket.recv_from(&mut buffer) {
                if &buffer[..length] == b"stop" {
                    return;
                }
                socket.send_to(&buffer[..length], from).unwrap();
            }
        });
        Self { address, thread: Some(thread) }
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        socket().send_to(b"stop", self.address).unwrap();
        self.thread.take().unwrap().join().unwrap();
    }
}

fn relay(spec: &str, upstream: SocketAddr) -> RelayHandle {
    Relay::start(local(), upstream, spec.parse().unwrap(), 1).unwrap()
}

fn round_trip(client: &UdpSocket, relay: &RelayHandle, payload: &[u8]) -> Duration {
    let start = Instant::now();
    client.send_to(payload, relay.local_addr()).unwrap();
    let mut buffer = [0; 2048];
    let (length, from) = client.recv_from(&mut buffer).unwrap();
    assert_eq!((&buffer[..length], from), (payload, relay.local_addr()));
    start.elapsed()
}

#[test]
fn echoes_come_back_after_the_round_trip_of_the_channel() {
    let (echo, client) = (Echo::start(), socket());
    // 1250 bytes at 2 Mbit/s take 5 ms each way, and the round trip 20 ms.
    let relay = relay("rtt=20ms,rate=2mbit", echo.address);
    for _ in 0..10 {
        let took = round_trip(&client, &relay, &[7; 1250]);
        assert!((ms(30)..ms(500)).contains(&took), "{took:?}");
    }
    let statistics = relay.stop();
    let ten = Count { packets: 10, bytes: 12_500 };
    assert_eq!((statistics.up.entered, statistics.up.left), (ten, ten));
    assert_eq!((statistics.down.entered, statistics.down.left), (ten, ten));
    assert_eq!((statistics.clients, statistics.lateness.count), (1, 20));
    assert_eq!((statistics.refused, statistics.unsent), (Count::default(), Count::default()));
}

#[test]
fn every_client_gets_its_own_answers() {
    let echo = Echo::start();
    let relay = relay("rtt=10ms", echo.address);
    let clients: Vec<_> = (0..5).map(|_| socket()).collect();
    for (number, client) in (0u8..).zip(&clients) {
        client.send_to(&[number; 9], relay.local_addr()).unwrap();
    }
    for (number, client) in (0u8..).zip(&clients) {
        let mut buffer = [0; 64];
        let (length, _) = client.recv_from(&mut buffer).unwrap();
        assert_eq!(buffer[..length], [number; 9]);
    }
    assert_eq!(relay.stats().clients, 5);
}

#[test]
fn ecn_marks_pass_both_ways() {
    let (client, server) = (RelaySocket::bind(local()).unwrap(), RelaySocket::bind(local()).unwrap());
    let relay = relay("rtt=2ms", server.local_addr().unwrap());
    let mut buffers = socket::Buffers::new();
    let mut receive = |socket: &RelaySocket| {
        let deadline = Instant::now() + Duration::from_secs(5);
        let mut received = None;
        while received.is_none() && Instant::now() < deadline {
            std::thread::sleep(ms(1));
            let _ = socket.receive(&mut buffers, |datagram| received = Some(datagram));
        }
        received.unwrap()
    };
    client.send(relay.local_addr(), None, Some(EcnCodepoint::Ect0), b"question").unwrap();
    let question = receive(&server);
    assert_eq!((question.ecn, &question.payload[..]), (Some(EcnCodepoint::Ect0), &b"question"[..]));
    server.send(question.source, None, Some(EcnCodepoint::Ce), b"answer").unwrap();
    let answer = receive(&client);
    assert_eq!((answer.ecn, &answer.payload[..]), (Some(EcnCodepoint::Ce), &b"answer"[..]));
}

#[test]
fn an_empty_datagram_passes() {
    let (echo, client) = (Echo::start(), socket());
    let relay = relay("rtt=1ms", echo.address);
    round_trip(&client, &relay, b"");
}

#[test]
fn clients_beyond_the_limit_are_refused_until_one_expires() {
    let (echo, first, second) = (Echo::start(), socket(), socket());
    let spec = "rtt=1ms".parse().unwrap();
    let mut options = RelayOptions::new(local(), echo.address, spec, 1);
    options.most_clients = 1;
    options.idle_expiry = ms(300);
    let relay = Relay::start_with(options).unwrap();
    round_trip(&first, &relay, b"one");
    second.send_to(b"two", relay.local_addr()).unwrap();
    let deadline = Instant::now() + Duration::from_secs(5);
    while relay.stats().refused.packets == 0 && Instant::now() < deadline {
        std::thread::sleep(ms(5));
    }
    assert_eq!(relay.stats().refused, Count { packets: 1, bytes: 3 });
    while relay.stats().clients > 0 && Instant::now() < deadline {
        std::thread::sleep(ms(20));
    }
    round_trip(&second, &relay, b"two");
}

#[test]
fn a_cut_relay_drops_until_it_is_restored() {
    let (echo, client) = (Echo::start(), socket());
    let relay = relay("rtt=4ms", echo.address);
    round_trip(&client, &relay, b"before");
    relay.cut();
    client.send_to(b"lost", relay.local_addr()).unwrap();
    let deadline = Instant::now() + Duration::from_secs(5);
    while relay.stats().up.dropped(DropReason::Blackout).packets == 0 && Instant::now() < deadline {
        std::thread::sleep(ms(5));
    }
    assert_eq!(relay.stats().up.dropped(DropReason::Blackout), Count { packets: 1, bytes: 4 });
    relay.restore();
    round_trip(&client, &relay, b"after");
    relay.cut_for(ms(200));
    client.send_to(b"lost too", relay.local_addr()).unwrap();
    std::thread::sleep(ms(250));
    round_trip(&client, &relay, b"later");
    assert_eq!(relay.stats().up.dropped(DropReason::Blackout).packets, 2);
}

#[test]
fn the_tap_sees_every_packet_enter_and_leave() {
    let (echo, client) = (Echo::start(), socket());
    let (sender, events) = mpsc::channel();
    let mut options = RelayOptions::new(local(), echo.address, "rtt=10ms".parse().unwrap(), 1);
    options.tap = Some(Box::new(move |event| sender.send(event).unwrap()));
    options.series = Some(ms(100));
    let relay = Relay::start_with(options).unwrap();
    round_trip(&client, &relay, &[0; 100]);
    let statistics = relay.stop();
    let events: Vec<TapEvent> = events.iter().collect();
    let moments: Vec<_> = events.iter().map(|event| (event.direction, event.moment)).collect();
    let entered = TapMoment::Entered(Admission::Accepted);
    let left = |moment| matches!(moment, TapMoment::Left { delay, .. } if delay == ms(5));
    assert_eq!([moments[0], moments[2]], [(Direction::Up, entered), (Direction::Down, entered)]);
    assert!(moments[1].0 == Direction::Up && left(moments[1].1), "{moments:?}");
    assert!(moments[3].0 == Direction::Down && left(moments[3].1), "{moments:?}");
    assert!(events[1].at - events[0].at >= ms(5) && events[3].at - events[2].at >= ms(5));
    let bytes: u64 = statistics.up_series.unwrap().buckets().iter().map(|bucket| bucket.left).sum();
    assert_eq!(bytes, 100);
}

#[test]
fn stopping_frees_the_address_and_ends_the_thread() {
    let echo = Echo::start();
    let relay = relay("urllc", echo.address);
    let (address, shared) = (relay.local_addr(), Arc::clone(&relay.shared));
    let start = Instant::now();
    relay.stop();
    assert!(start.elapsed() < Duration::from_secs(5));
    assert_eq!(Arc::strong_count(&shared), 1, "the thread has let go of what it shared");
    UdpSocket::bind(address).unwrap();
}

#[test]
fn a_relay_says_why_it_cannot_start() {
    let wrong = "rtt=file:no/such.csv".parse().unwrap();
    assert!(matches!(Relay::start(local(), local(), wrong, 1), Err(RelayError::Trace(_))));
    let taken = socket().local_addr().unwrap();
    let _holder = UdpSocket::bind(taken).unwrap();
    assert!(matches!(Relay::start(taken, local(), ChannelSpec::urllc(), 1), Err(RelayError::Io(_))));
}
