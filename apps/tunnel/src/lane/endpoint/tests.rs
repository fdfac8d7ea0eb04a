//! The endpoint against a program's own stack, in virtual time.

use super::*;
use hvq_emulation::tun::packet::Header;
use std::net::SocketAddr;

fn tuple(six: bool) -> Tuple {
    let [source, destination] = match six {
        false => ["100.64.200.2:40000", "192.0.2.1:443"],
        true => ["[fd68::2]:40000", "[2001:db8::1]:443"],
    };
    Tuple { source: source.parse().unwrap(), destination: destination.parse().unwrap() }
}

/// A program that connects, with its stack.
pub(in crate::lane) struct Program {
    interface: Interface,
    sockets: SocketSet<'static>,
    handle: SocketHandle,
    packets: Packets,
}

impl Program {
    /// A packet comes for it.
    pub(in crate::lane) fn receive(&mut self, packet: Vec<u8>) {
        self.packets.arrived.push_back(packet);
    }

    /// The packets that it has sent.
    pub(in crate::lane) fn sent(&mut self) -> Vec<Vec<u8>> {
        self.packets.leaving.drain(..).map(|outgoing| outgoing.packet).collect()
    }

    pub(in crate::lane) fn new(tuple: Tuple) -> Self {
        Self::behind(tuple, Offload::Nothing)
    }

    /// A program behind a device that works as `offload` says.
    fn behind(tuple: Tuple, offload: Offload) -> Self {
        let mut packets = Packets::new(offload);
        let mut interface = interface(tuple.source.ip(), &mut packets);
        let buffer = || SocketBuffer::new(vec![0; 256 << 10]);
        let mut socket = Socket::new(buffer(), buffer());
        let remote: SocketAddr = tuple.destination;
        socket.connect(interface.context(), remote, tuple.source.port()).unwrap();
        let mut sockets = SocketSet::new(Vec::new());
        let handle = sockets.add(socket);
        Self { interface, sockets, handle, packets }
    }

    pub(in crate::lane) fn socket(&mut self) -> &mut Socket<'static> {
        self.sockets.get_mut::<Socket<'_>>(self.handle)
    }

    pub(in crate::lane) fn poll(&mut self, now: Duration) {
        self.interface.poll(instant(now), &mut self.packets, &mut self.sockets);
    }
}

/// A program and the endpoint of its flow.
struct Pair {
    now: Duration,
    /// The longest packet that the endpoint sent.
    longest: usize,
    program: Program,
    endpoint: Endpoint,
}

impl Pair {
    fn new(six: bool) -> Self {
        Self::behind(six, Offload::Nothing)
    }

    fn behind(six: bool, offload: Offload) -> Self {
        let tuple = tuple(six);
        let program = Program::behind(tuple, offload);
        let mut pair =
            Self { now: Duration::ZERO, longest: 0, program, endpoint: Endpoint::new(tuple, offload) };
        pair.step();
        assert_eq!(pair.program.socket().state(), State::Established);
        pair
    }

    /// Exchanges packets until none is left, acknowledgements that are put off among them.
    fn step(&mut self) {
        for _ in 0..3 {
            self.now += Duration::from_millis(20);
            self.exchange();
        }
    }

    fn exchange(&mut self) {
        loop {
            self.now += Duration::from_millis(1);
            self.program.poll(self.now);
            let sent = self.program.sent();
            let mut moved = !sent.is_empty();
            sent.into_iter().for_each(|packet| self.endpoint.receive(packet));
            self.endpoint.poll(self.now);
            while let Some(Outgoing { packet, piece }) = self.endpoint.transmit() {
                let headers = if packet[0] >> 4 == 6 { 60 } else { 40 };
                let carried = piece.map_or(packet.len() - headers, |piece| piece.get().into());
                assert!(headers + carried <= 1360, "{piece:?}");
                self.longest = self.longest.max(packet.len());
                self.program.packets.arrived.push_back(packet);
                moved = true;
            }
            if !moved {
                return;
            }
        }
    }
}

#[test]
fn bytes_go_both_ways_in_order_and_no_more_wait_than_the_buffers_hold() {
    let offloads = [Offload::Nothing, Offload::Segments];
    for (six, offload) in [false, true].into_iter().flat_map(|six| offloads.map(|offload| (six, offload))) {
        let mut pair = Pair::behind(six, offload);
        let body: Vec<u8> = (0..1_000_000_u32).map(|at| (at % 251) as u8).collect();
        let (mut sent, mut received) = (0, Vec::new());
        while received.len() < body.len() {
            sent += pair.program.socket().send_slice(&body[sent..]).unwrap();
            pair.step();
            // Nobody reads meanwhile: what waits here is bounded, and the rest is with the program.
            assert!(pair.endpoint.socket().recv_queue() <= BUFFER);
            while let Read::Data(data) = pair.endpoint.read(10_000) {
                received.extend_from_slice(&data);
            }
        }
        assert!(received == body, "up");
        let (mut written, mut received) = (0, Vec::new());
        while received.len() < body.len() {
            let taken = pair.endpoint.write(&body[written..]).unwrap();
            assert!(pair.endpoint.socket().send_queue() <= BUFFER);
            written += taken;
            pair.step();
            while let Ok(Some(data)) =
                pair.program.socket().recv(|data| (data.len(), (!data.is_empty()).then(|| data.to_vec())))
            {
                received.extend(data);
            }
        }
        assert!(received == body, "down");
        assert_eq!(pair.longest > 1360, offload == Offload::Segments && !six, "{}", pair.longest);
    }
}

#[test]
fn either_end_may_finish_first_and_still_receives() {
    // RFC 9293 §3.6.
    let mut pair = Pair::new(false);
    pair.program.socket().send_slice(b"question").unwrap();
    pair.program.socket().close();
    pair.step();
    assert_eq!(pair.endpoint.read(100), Read::Data(Bytes::from_static(b"question")));
    assert_eq!((pair.endpoint.read(100), pair.endpoint.stage()), (Read::End, Stage::Open));
    assert_eq!(pair.endpoint.write(b"answer"), Some(6));
    pair.endpoint.finish();
    pair.step();
    let answer = pair.program.socket().recv(|data| (data.len(), data.to_vec())).unwrap();
    assert_eq!(
        (answer.as_slice(), pair.endpoint.stage(), pair.endpoint.is_broken()),
        (&b"answer"[..], Stage::Over, false)
    );

    let mut pair = Pair::new(false);
    pair.endpoint.finish();
    pair.step();
    assert!(!pair.program.socket().may_recv());
    pair.program.socket().send_slice(b"more").unwrap();
    pair.step();
    assert_eq!(pair.endpoint.read(100), Read::Data(Bytes::from_static(b"more")));
    assert_eq!(pair.endpoint.read(100), Read::Nothing);
    pair.program.socket().close();
    pair.step();
    assert_eq!((pair.endpoint.read(100), pair.endpoint.stage()), (Read::End, Stage::Lingering));
}

#[test]
fn a_reset_is_told_from_an_end_in_both_directions() {
    let mut pair = Pair::new(false);
    pair.program.socket().abort();
    pair.step();
    assert_eq!((pair.endpoint.read(100), pair.endpoint.is_broken()), (Read::Reset, true));
    assert_eq!(pair.endpoint.write(b"x"), None);

    let mut pair = Pair::new(false);
    pair.endpoint.abort();
    pair.step();
    assert_eq!(pair.program.socket().state(), State::Closed);
    assert_eq!(pair.program.socket().recv(|_| (0, ())), Err(RecvError::InvalidState), "no end, but a reset");
}

#[test]
fn a_flow_that_is_refused_is_answered_with_a_reset_to_its_syn() {
    for six in [false, true] {
        let tuple = tuple(six);
        let mut program = Program::new(tuple);
        program.poll(Duration::ZERO);
        let syn = program.sent().remove(0);
        let reset = Endpoint::refuse(tuple, syn, Offload::Nothing).unwrap().packet;
        let (back, flags) = Tuple::of(&Header::read(&reset).unwrap()).unwrap();
        assert_eq!((back.source, back.destination), (tuple.destination, tuple.source));
        assert!(flags.ends() && flags.acknowledges());
        program.packets.arrived.push_back(reset);
        program.poll(Duration::from_millis(1));
        assert_eq!(program.socket().state(), State::Closed, "at once, and not after a timeout");
    }
}

#[test]
fn a_program_that_is_gone_is_noticed() {
    let mut pair = Pair::new(false);
    assert_eq!(pair.endpoint.write(b"hello?"), Some(6));
    let mut passed = 0;
    while pair.endpoint.stage() == Stage::Open {
        assert!(passed < 10_000, "it goes on forever");
        pair.now += pair.endpoint.deadline(pair.now).unwrap().max(Duration::from_millis(1));
        pair.endpoint.poll(pair.now);
        while pair.endpoint.transmit().is_some() {}
        passed += 1;
    }
    assert!(pair.now >= TIMEOUT && pair.now < TIMEOUT * 2 && pair.endpoint.is_broken(), "{:?}", pair.now);
}

#[test]
fn packets_that_are_no_syn_of_the_flow_make_no_connection() {
    let mut endpoint = Endpoint::new(tuple(false), Offload::Nothing);
    for packet in [Vec::new(), vec![0x45], vec![0x45; 40], vec![0xff; 1500], vec![0x60; 60]] {
        endpoint.receive(packet);
        endpoint.poll(Duration::from_millis(1));
    }
    assert_eq!((endpoint.stage(), endpoint.transmit()), (Stage::Over, None));
}
