//! Hints about paths, told by peers that mean well and by others: attacks.md K14; docs/spec/path-hints.md.

use super::network::{Network, transport};
use crate::PathId;
use crate::connection::lifecycle::Lifecycle;
use crate::connection::{
    ChannelHint, Connection, Event, FourTuple, HintExchange, PathEvent, TransportConfig,
};
use crate::endpoint::ConnectionHandle;
use crate::error::ErrorCode;
use crate::stream::{Direction, ReadOutcome};
use crate::wire::frame::samples::all_hints;
use crate::wire::frame::{Frame, PathHints};
use crate::wire::level::Level;
use hvq_scheduler::{Bandwidth, Hints, Sharing};
use std::time::Duration;

const RTT: Duration = Duration::from_millis(40);
const ZERO: PathId = PathId::ZERO;
const ONE: PathId = PathId(1);

/// A client and a server, whose second link the client knows by `hints`.
struct World {
    network: Network,
    handle: ConnectionHandle,
    second: FourTuple,
}

impl World {
    fn between(client: TransportConfig, server: TransportConfig) -> Self {
        let mut network = Network::new(client, server);
        let first = network.link(RTT / 2);
        let second = network.link(RTT / 2);
        let handle = network.connect(first);
        network.run_for(RTT * 4);
        Self { network, handle, second }
    }

    fn new() -> Self {
        Self::between(transport(), transport())
    }

    fn client(&mut self) -> &mut Connection {
        self.network.client(self.handle)
    }

    fn open(&mut self) -> PathId {
        let (tuple, now) = (self.second, self.network.now);
        self.client().open_path(tuple, now).expect("a path is left")
    }

    /// The client sends `hints` about `path` under `sequence`, as if it saw the channel so.
    fn tell(&mut self, path: PathId, sequence: u64, hints: Hints) {
        let now = self.network.now;
        let frame = Frame::PathHints(PathHints { path, sequence, hints });
        self.client().force_on(ZERO, &[frame], now);
    }

    fn known(&mut self, path: PathId) -> Option<Hints> {
        // The frame before has to be acknowledged first.
        self.network.run_for(RTT * 3);
        self.network.server().known_hints(path)
    }

    fn told(&self) -> usize {
        let is_it = |event: &Event| matches!(event, Event::Path(PathEvent::PeerHints(_)));
        self.network.server_events.iter().filter(|(_, event)| is_it(event)).count()
    }

    fn frames_of_client(&mut self) -> u64 {
        let stats = self.client().stats();
        stats.frames.iter().filter(|counter| counter.kind == "path_hints").map(|counter| counter.sent).sum()
    }
}

fn mbit(megabits: u64) -> Hints {
    Hints { rate: Some(Bandwidth::from_mbit(megabits)), ..Hints::NONE }
}

/// `hints` of one rate, as the end sees them that is told.
fn as_told(hints: Hints) -> Hints {
    Hints { rate_back: hints.rate, ..hints }
}

#[test]
fn what_a_client_knows_of_its_channels_holds_at_the_server_from_the_first_flight_on() {
    let mut network = Network::new(transport(), transport());
    let (first, second) = (network.link(RTT / 2), network.link(RTT / 2));
    let hints = all_hints();
    let mut config = transport();
    config.channels = vec![ChannelHint::new(first.local, mbit(60)), ChannelHint::new(second.local, hints)];
    drop(network);
    let mut world = World::between(config, transport());
    assert_eq!((world.second, world.network.server().known_hints(ZERO)), (second, Some(as_told(mbit(60)))));
    assert_eq!(world.open(), ONE);
    // With the packet that opens the path, not after its validation.
    world.network.run_for(RTT / 2 + Duration::from_millis(1));
    assert_eq!(world.network.server().known_hints(ONE), Some(hints.mirrored()));
    assert_eq!(world.network.server().peer_hints(ONE), Some(hints.mirrored()));
    assert_eq!((world.told(), world.frames_of_client()), (2, 2));
}

#[test]
fn hints_that_change_are_told_and_those_of_the_receiver_win_but_for_a_lower_rate() {
    let mut world = World::new();
    assert_eq!(world.frames_of_client(), 0, "nothing is known");
    world.client().set_hints(ZERO, mbit(2)).expect("the path is open");
    assert_eq!(world.known(ZERO), Some(as_told(mbit(2))));
    let own = Hints { shared: Sharing::Dedicated, ..mbit(7) };
    world.network.server().set_hints(ZERO, own).expect("the path is open");
    world.client().set_hints(ZERO, Hints { delay: Some(RTT), ..mbit(3) }).expect("the path is open");
    let both = Hints { delay: Some(RTT), rate: mbit(3).rate, rate_back: mbit(3).rate, ..own };
    assert_eq!(world.known(ZERO), Some(both));
    world.client().set_hints(ZERO, Hints::NONE).expect("the path is open");
    assert_eq!(world.known(ZERO), Some(own), "taken back");
}

#[test]
fn hints_of_a_path_end_with_it() {
    let mut world = World::new();
    assert_eq!(world.open(), ONE);
    world.client().set_hints(ONE, mbit(2)).expect("the path is open");
    assert_eq!(world.known(ONE), Some(as_told(mbit(2))));
    let now = world.network.now;
    world.client().abandon_path(ONE, 0x3e, now).expect("it is not the last");
    assert_eq!(world.known(ONE), None);
    assert_eq!(world.network.server().peer_hints(ONE), None);
    world.tell(ONE, 100, mbit(9));
    assert_eq!((world.known(ONE), world.network.verdict()), (None, None));
}

#[test]
fn nothing_is_told_unless_both_ends_take_part() {
    let off = || TransportConfig { path_hints: HintExchange::Off, ..transport() };
    for (client, server) in [(off(), transport()), (transport(), off()), (off(), off())] {
        let mut world = World::between(client, server);
        world.client().set_hints(ZERO, mbit(2)).expect("the path is open");
        assert_eq!(world.known(ZERO), Some(Hints::NONE));
        assert_eq!((world.frames_of_client(), world.told()), (0, 0));
    }
}

#[test]
fn hints_that_were_not_agreed_on_close_the_connection() {
    // attacks.md K14: to who does not offer them the frame is unknown (RFC 9000 §12.4).
    let off = || TransportConfig { path_hints: HintExchange::Off, ..transport() };
    for (client, server, code) in [
        (off(), transport(), Some(ErrorCode::PROTOCOL_VIOLATION)),
        (transport(), off(), Some(ErrorCode::FRAME_ENCODING_ERROR)),
        (transport(), transport(), None),
    ] {
        let mut world = World::between(client, server);
        world.tell(ZERO, 0, mbit(2));
        world.network.run_for(RTT);
        assert_eq!(world.network.verdict(), code);
    }
}

#[test]
fn hints_that_overtake_the_opening_of_a_path_wait_for_it() {
    // attacks.md K14
    let mut world = World::new();
    world.tell(ONE, 4, mbit(2));
    world.tell(ONE, 3, mbit(3));
    assert_eq!((world.known(ONE), world.told()), (None, 0));
    assert_eq!(world.open(), ONE);
    assert_eq!((world.known(ONE), world.told()), (Some(mbit(2).mirrored()), 1));
}

#[test]
fn hints_that_a_server_tells_before_the_handshake_is_confirmed_hold() {
    // attacks.md K14: the packet that says so may be lost.
    let mut network = Network::new(transport(), transport());
    let first = network.link(RTT / 2);
    let handle = network.connect(first);
    network.run_for(RTT + Duration::from_millis(1));
    let hints = Hints { rate_back: mbit(5).rate, ..Hints::NONE };
    let mut payload = Vec::new();
    Frame::PathHints(PathHints { path: ZERO, sequence: 0, hints }).put(&mut payload);
    let now = network.now;
    let client = network.client(handle);
    assert_eq!(client.lifecycle(), Lifecycle::Connected);
    assert!(client.inject(Level::OneRtt, &payload, now));
    assert_eq!(client.known_hints(ZERO), Some(hints.mirrored()));
}

#[test]
fn a_flood_of_hints_leaves_the_newest_and_one_event_a_path() {
    // attacks.md K14
    let mut world = World::new();
    let before = world.network.server().bookkeeping();
    for round in 0..200 {
        let frames: Vec<_> = (0..40)
            .map(|index| {
                let sequence = 40 * round + index;
                Frame::PathHints(PathHints { path: ZERO, sequence, hints: mbit(1 + sequence).mirrored() })
            })
            .collect();
        let now = world.network.now;
        world.client().force_on(ZERO, &frames, now);
    }
    assert_eq!(world.known(ZERO), Some(mbit(8000)));
    assert_eq!((world.told(), world.network.verdict()), (1, None), "all came before the application looked");
    assert_eq!(world.network.server().bookkeeping(), before);
}

#[test]
fn lies_about_a_rate_neither_stall_nor_hasten_what_is_sent() {
    // attacks.md K14: a window holds whatever is promised, and some datagrams may fly whatever is not.
    let rates = [0, 1, 8_000, 1 << 61, (1 << 62) - 1];
    for bits in rates {
        for shared in [Sharing::Unknown, Sharing::Shared, Sharing::Endpoint, Sharing::Dedicated] {
            let mut world = World::new();
            let window = world.network.server().path_stats(ZERO).expect("it is open").window;
            let rate_back = Some(Bandwidth::from_bits_per_second(bits));
            let delay = Some(Duration::from_micros((1 << 62) - 1));
            world.tell(
                ZERO,
                0,
                Hints { rate_back, delay, shared, price_per_byte: Some(u64::MAX), ..Hints::NONE },
            );
            world.network.run_for(RTT);
            let stats = world.network.server().path_stats(ZERO).expect("it is open");
            assert!(stats.window <= window, "{bits} {shared:?}: {} of {window}", stats.window);
            assert!(stats.window >= 2 * stats.datagram_size, "{bits} {shared:?}: {}", stats.window);
            let id = world.network.server().open(Direction::Unidirectional).expect("one is allowed");
            world.network.server().write(id, &[7; 5000]).expect("there is room");
            world.network.run_for(Duration::from_secs(30));
            assert_eq!(world.client().accept(Direction::Unidirectional), Some(id));
            let mut arrived = 0;
            while let Ok(ReadOutcome::Data(data)) = world.client().read(id, usize::MAX) {
                arrived += data.len();
            }
            assert_eq!(arrived, 5000, "{bits} {shared:?}");
            assert_eq!(world.network.verdict(), None);
        }
    }
}
