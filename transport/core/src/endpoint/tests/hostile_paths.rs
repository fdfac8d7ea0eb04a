//! Clients that abuse what the multipath extension gives them: attacks.md, section G.

use super::network::{LastWithRoom, Link, Network, transport};
use crate::PathId;
use crate::connection::{Connection, Event, FourTuple, Multipath, PathEvent, TransportConfig};
use crate::endpoint::ConnectionHandle;
use crate::error::{ConnectionError, ErrorCode};
use crate::path::lifecycle::AbandonReason;
use crate::ranges::Ranges;
use crate::stream::Direction;
use crate::wire::connection_id::{ConnectionId, ResetToken};
use crate::wire::frame::samples::all_hints;
use crate::wire::frame::{Ack, Frame, NewConnectionId, PathHints, Status};
use crate::wire::level::Level;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

const RTT: Duration = Duration::from_millis(40);
const ZERO: PathId = PathId::ZERO;
const ONE: PathId = PathId(1);
/// Above the limit that an endpoint announces by default.
const FORBIDDEN: PathId = PathId(4);
const VIOLATION: Option<ErrorCode> = Some(ErrorCode::PROTOCOL_VIOLATION);
/// Paths that a server validates at the same time.
const VALIDATIONS: usize = 8;

fn up_to(highest: u32) -> TransportConfig {
    TransportConfig { multipath: Multipath::UpTo(PathId(highest)), ..transport() }
}

/// Opens each path with a single datagram: three times that is less than a window, which would limit what is sent there, too.
fn terse(highest: u32) -> TransportConfig {
    TransportConfig { opening_datagrams: 0, ..up_to(highest) }
}

/// With a policy that sends to the newest path whenever it may.
fn eager(highest: u32) -> TransportConfig {
    let config = TransportConfig::new(Arc::new(|| Box::new(LastWithRoom)));
    TransportConfig { multipath: Multipath::UpTo(PathId(highest)), ..config }
}

fn single() -> TransportConfig {
    TransportConfig { multipath: Multipath::Off, ..transport() }
}

/// A connection, and a second link beside the one that it uses.
struct Attack {
    network: Network,
    handle: ConnectionHandle,
    second: FourTuple,
}

impl Attack {
    fn new() -> Self {
        Self::between(transport(), transport())
    }

    fn between(client: TransportConfig, server: TransportConfig) -> Self {
        let mut network = Network::new(client, server);
        let first = network.link(RTT / 2);
        let second = network.link(RTT / 2);
        let handle = network.connect(first);
        network.run_for(RTT * 4);
        Self { network, handle, second }
    }

    fn with_two_paths() -> Self {
        let mut attack = Self::new();
        attack.open();
        attack.network.run_for(RTT * 8);
        assert_eq!(attack.network.server().path_ids(), [ZERO, ONE]);
        attack
    }

    /// The client's side, which attacks.
    fn client(&mut self) -> &mut Connection {
        self.network.client(self.handle)
    }

    fn open(&mut self) {
        let (tuple, now) = (self.second, self.network.now);
        self.client().open_path(tuple, now).expect("a path is left");
    }

    /// The client gives up the path whose address was proven, so that the server has none but the others to send to.
    fn leave(&mut self) {
        self.say(ZERO, &[Frame::PathAbandon { path: ZERO, error: 0x3e }]);
        self.network.run_for(RTT / 2);
        assert!(!self.network.server().path_ids().contains(&ZERO));
    }

    fn abandon(&mut self, path: PathId) {
        let now = self.network.now;
        self.client().abandon_path(path, 0x3e, now).expect("it is not the last one");
    }

    /// The client sends a packet with `frames` on `path`.
    fn say(&mut self, path: PathId, frames: &[Frame]) {
        let now = self.network.now;
        self.client().force_on(path, frames, now);
    }

    /// Returns the code with which the server has closed a round trip later, if it has.
    fn verdict(&mut self) -> Option<ErrorCode> {
        self.network.run_for(RTT);
        self.network.server_events.iter().find_map(|(_, event)| match event {
            Event::Closed(ConnectionError::Transport(error)) => Some(error.code),
            Event::Closed(other) => panic!("{other:?}"),
            _ => None,
        })
    }

    fn server_saw(&self, event: PathEvent) -> bool {
        self.network.server_events.iter().any(|(_, seen)| *seen == Event::Path(event.clone()))
    }

    /// Frames that the server sent of which `wanted` holds.
    fn server_sent(&mut self, wanted: impl Fn(&str) -> bool) -> u64 {
        let frames = self.network.server().stats().frames;
        frames.iter().filter(|counter| wanted(counter.kind)).map(|counter| counter.sent).sum()
    }

    /// The client sends one datagram on path 1 that no challenge comes with, and then the link falls silent.
    fn enter(&mut self) {
        let mut first = true;
        self.network.links[1].drop = Box::new(move |_, _| !std::mem::take(&mut first));
        let (tuple, now) = (self.second, self.network.now);
        assert_eq!(self.client().force_open(tuple, now), ONE);
        self.say(ONE, &[Frame::Ping, Frame::Padding(1000)]);
        self.network.run_for(RTT);
    }
}

fn acknowledgement(path: Option<PathId>, numbers: RangeInclusive<u64>) -> Frame {
    let mut ranges = Ranges::new();
    ranges.insert_range(numbers);
    Frame::Ack(Ack::from_ranges(path, &ranges, 0, None, 100).expect("there is room for one range"))
}

fn new_id(path: PathId, sequence: u64, retire_prior_to: u64, number: u64) -> Frame {
    let id = ConnectionId::new(&number.to_be_bytes()).expect("8 bytes");
    let token = ResetToken([number as u8; 16]);
    Frame::NewConnectionId(NewConnectionId { path: Some(path), sequence, retire_prior_to, id, token })
}

/// Every type of frame that names a path.
fn about(path: PathId) -> Vec<Frame> {
    let mut with_counts = match acknowledgement(Some(path), 0..=0) {
        Frame::Ack(ack) => ack,
        other => panic!("{other:?}"),
    };
    with_counts.ecn = Some(crate::wire::frame::EcnCounts { ect0: 1, ect1: 0, ce: 0 });
    vec![
        acknowledgement(Some(path), 0..=0),
        Frame::Ack(with_counts),
        Frame::PathAbandon { path, error: 0 },
        Frame::PathStatus { path, sequence: 9, status: Status::Backup },
        Frame::PathStatus { path, sequence: 10, status: Status::Available },
        new_id(path, 1, 0, 77),
        Frame::RetireConnectionId { path: Some(path), sequence: 0 },
        Frame::PathCidsBlocked { path, next_sequence: 0 },
        Frame::PathHints(PathHints { path, sequence: 9, hints: all_hints() }),
    ]
}

/// Every type of frame of the extension.
fn of_the_extension() -> Vec<Frame> {
    [about(ONE), vec![Frame::MaxPathId(9), Frame::PathsBlocked(0)]].concat()
}

#[test]
fn multipath_frames_in_packets_of_the_handshake_are_violations() {
    // attacks.md G1, RFC 10069 §4.
    for frame in of_the_extension() {
        let mut payload = Vec::new();
        frame.put(&mut payload);
        for level in [Level::Initial, Level::Handshake] {
            let mut network = Network::new(transport(), transport());
            let first = network.link(RTT / 2);
            // The server still reads these packets.
            let handle = network.connect_up_to(level);
            network.client(handle).force_handshake(level, &payload);
            let mut attack = Attack { network, handle, second: first };
            assert_eq!(attack.verdict(), VIOLATION, "{} in {level:?}", frame.kind());
        }
    }
}

#[test]
fn multipath_frames_without_negotiation_are_unknown_frames() {
    // attacks.md G2, RFC 9000 §12.4.
    for frame in of_the_extension() {
        for (client, server) in [(transport(), single()), (single(), transport())] {
            let mut attack = Attack::between(client, server);
            attack.say(ZERO, std::slice::from_ref(&frame));
            assert_eq!(attack.verdict(), Some(ErrorCode::FRAME_ENCODING_ERROR), "{}", frame.kind());
        }
    }
}

#[test]
fn every_frame_with_a_path_above_the_limit_is_a_violation() {
    // attacks.md G8, RFC 10069 §4.
    let named = about(FORBIDDEN);
    assert_eq!(named.len(), 9);
    for frame in named {
        let mut attack = Attack::new();
        attack.say(ZERO, std::slice::from_ref(&frame));
        assert_eq!(attack.verdict(), VIOLATION, "{}", frame.kind());
    }
}

#[test]
fn limits_and_reports_that_cannot_be_true_are_violations() {
    // attacks.md G7, G10, G30, RFC 10069 §4.6, §4.7.
    let cases = [
        (Frame::MaxPathId(1 << 32), VIOLATION),
        (Frame::MaxPathId((1 << 62) - 1), VIOLATION),
        // Below the client's transport parameter, which was 3.
        (Frame::MaxPathId(2), VIOLATION),
        (Frame::MaxPathId(3), None),
        (Frame::MaxPathId((1 << 32) - 1), None),
        (Frame::PathsBlocked(4), VIOLATION),
        (Frame::PathsBlocked(3), None),
        // The server has issued number 0 of path 1.
        (Frame::PathCidsBlocked { path: ONE, next_sequence: 2 }, VIOLATION),
        (Frame::PathCidsBlocked { path: ONE, next_sequence: 1 }, None),
    ];
    for (frame, code) in cases {
        let mut attack = Attack::new();
        attack.say(ZERO, std::slice::from_ref(&frame));
        assert_eq!(attack.verdict(), code, "{frame:?}");
    }
}

#[test]
fn a_limit_that_falls_is_ignored() {
    // attacks.md G7, RFC 10069 §4.6.
    let mut attack = Attack::new();
    attack.say(ZERO, &[Frame::MaxPathId(20)]);
    attack.say(ZERO, &[Frame::MaxPathId(5)]);
    assert_eq!(attack.verdict(), None);
    assert!(attack.network.server().bookkeeping().contains("peer: PathId(20)"));
}

#[test]
fn connection_ids_that_break_the_rules_of_their_path_close_with_the_codes_of_rfc_9000() {
    // attacks.md G11, G12, RFC 9000 §5.1.1, §19.15, §19.16, RFC 10069 §4.4, §4.5.
    let too_many: Vec<_> = (1..5).map(|sequence| new_id(ONE, sequence, 0, 100 + sequence)).collect();
    let limit = Some(ErrorCode::CONNECTION_ID_LIMIT_ERROR);
    let cases = [
        (too_many[..3].to_vec(), None),
        (too_many, limit),
        (vec![new_id(ONE, 1, 0, 77), new_id(PathId(2), 1, 0, 77)], VIOLATION),
        (vec![new_id(ONE, 1, 0, 77), new_id(ONE, 1, 0, 78)], VIOLATION),
        (vec![new_id(ONE, 1, 0, 77), new_id(ONE, 2, 0, 77)], VIOLATION),
        (vec![new_id(ONE, 1, 2, 77)], Some(ErrorCode::FRAME_ENCODING_ERROR)),
        (vec![Frame::RetireConnectionId { path: Some(ONE), sequence: 1 }], VIOLATION),
    ];
    for (frames, code) in cases {
        let mut attack = Attack::new();
        attack.say(ZERO, &frames);
        assert_eq!(attack.verdict(), code, "{frames:?}");
    }
}

#[test]
fn retirements_that_pile_up_on_all_paths_close_the_connection() {
    // attacks.md G13: no acknowledgement can come between, for all arrives at one instant.
    let mut attack = Attack::new();
    let frames = (1..100).flat_map(|sequence| {
        (0..4).map(move |path| {
            new_id(PathId(path), 10 + sequence, 10 + sequence, 1000 * u64::from(path) + sequence)
        })
    });
    for frames in frames.collect::<Vec<_>>().chunks(20) {
        attack.say(ZERO, frames);
    }
    assert_eq!(attack.verdict(), Some(ErrorCode::CONNECTION_ID_LIMIT_ERROR));
    assert!(attack.server_sent(|kind| kind == "path_retire_connection_id") <= 256);
}

#[test]
fn frames_about_a_path_that_is_over_change_nothing() {
    // attacks.md G9, RFC 10069 §3.4, §4: while the path is remembered, and after that.
    for wait in [RTT * 3, Duration::from_secs(5)] {
        let mut attack = Attack::with_two_paths();
        attack.abandon(ONE);
        attack.network.run_for(wait);
        let before = attack.network.server().bookkeeping();
        let sent = attack.server_sent(|kind| kind != "path_ack");
        for frame in about(ONE) {
            attack.say(ZERO, &[frame]);
        }
        attack.say(ZERO, &[Frame::PathCidsBlocked { path: ONE, next_sequence: 1000 }]);
        assert_eq!(attack.verdict(), None);
        assert_eq!(attack.network.server().bookkeeping(), before);
        assert_eq!(attack.server_sent(|kind| kind != "path_ack"), sent);
    }
}

#[test]
fn a_flood_of_abandonments_gets_one_answer_for_each_path() {
    // attacks.md G15, RFC 10069 §3.4.
    let mut attack = Attack::new();
    for round in 0..100 {
        let frame = |n: u32| Frame::PathAbandon { path: PathId(1 + n % 3), error: u64::from(round + n) };
        attack.say(ZERO, &(0..50).map(frame).collect::<Vec<_>>());
    }
    assert_eq!(attack.verdict(), None);
    assert_eq!(attack.server_sent(|kind| kind == "path_abandon"), 3);
}

#[test]
fn a_connection_whose_last_path_is_abandoned_ends_after_a_probe_timeout() {
    // attacks.md G16, RFC 10069 §3.4.
    let mut attack = Attack::new();
    let grace = attack.network.server().abandonment() / 3;
    attack.say(ZERO, &[Frame::PathAbandon { path: ZERO, error: 0 }]);
    attack.network.run_for(RTT / 2 + grace / 2);
    assert_eq!(attack.network.server.handles().count(), 1, "the client may still open another");
    attack.network.run_for(grace);
    let closed = attack.network.server_events.iter().any(|(_, event)| match event {
        Event::Closed(ConnectionError::Transport(error)) => error.code == ErrorCode::NO_VIABLE_PATH,
        _ => false,
    });
    assert!(closed, "{:?}", attack.network.server_events);
    assert_eq!(attack.network.server.handles().count(), 0);
}

#[test]
fn a_path_whose_abandonment_never_arrives_is_known_as_long_as_the_connection() {
    // attacks.md G17, RFC 10069 §3.4.1: a peer that does not know of it may go on to use the path.
    let mut attack = Attack::with_two_paths();
    let known = attack.client().recognized_ids();
    for link in &mut attack.network.links {
        link.drop = Box::new(|_, _| true);
    }
    let keep = attack.client().abandonment();
    attack.abandon(ONE);
    attack.network.run_for(keep * 6 / 5);
    assert_eq!((attack.client().recognized_ids(), attack.client().path_ids()), (known, vec![ZERO]));
    attack.network.run_for(Duration::from_secs(60));
    assert_eq!(attack.network.client.handles().count(), 0, "the idle timeout ends it");
}

#[test]
fn late_packets_of_an_abandoned_path_are_acknowledged_and_not_reset_for_three_probe_timeouts() {
    // attacks.md G18, RFC 10069 §3.4.
    let mut attack = Attack::with_two_paths();
    let keep = attack.network.server().abandonment();
    let caught = attack.network.catch(1);
    for _ in 0..2 {
        attack.say(ONE, &[Frame::Ping, Frame::Padding(100)]);
        attack.network.run_for(Duration::from_micros(1));
    }
    attack.abandon(ONE);
    attack.network.run_for(RTT);
    let late = caught.borrow().clone();
    attack.network.links[1].drop = Box::new(|_, _| false);
    let acknowledged = attack.server_sent(|kind| kind == "path_ack");
    attack.network.forge_over(1, &late[0]);
    attack.network.run_for(RTT);
    assert_eq!(attack.server_sent(|kind| kind == "path_ack"), acknowledged + 1);
    assert_eq!(attack.network.server.stats().stateless_resets, 0);
    attack.network.run_for(keep * 2);
    attack.network.forge_over(1, &late[1]);
    assert_eq!(attack.verdict(), None);
    assert_eq!(attack.network.server.stats().stateless_resets, 1, "nobody remembers the path");
    assert!(attack.client().lifecycle().is_open(), "the token of an abandoned path ends nothing");
}

#[test]
fn a_response_on_another_path_validates_nothing() {
    // attacks.md G21, RFC 10069 §3.1: responses come on the path of their challenge.
    let mut attack = Attack::new();
    attack.enter();
    let challenges = attack.network.server().challenges(ONE);
    assert!(!challenges.is_empty());
    let responses: Vec<_> = challenges.into_iter().map(Frame::PathResponse).collect();
    attack.say(ZERO, &responses);
    assert_eq!(attack.verdict(), None);
    assert!(!attack.server_saw(PathEvent::Validated(ONE)));
    attack.network.links[1].drop = Box::new(|_, _| false);
    attack.say(ONE, &responses);
    assert_eq!(attack.verdict(), None);
    assert!(attack.server_saw(PathEvent::Validated(ONE)));
}

#[test]
fn a_path_that_begins_without_a_challenge_is_taken_up_and_sent_three_times_what_came_until_it_is_proven() {
    // attacks.md G22, RFC 10069 §3.1, RFC 9000 §8.1.
    let mut attack = Attack::new();
    attack.enter();
    assert!(attack.server_saw(PathEvent::Opened(ONE)));
    let id = attack.network.server().open(Direction::Unidirectional).expect("within limits");
    attack.network.server().write(id, &[1; 500_000]).expect("there is room");
    for _ in 0..50 {
        attack.network.run_for(RTT);
        let counters = attack.network.server().path_stats(ONE).expect("it is open").counters;
        assert_eq!(counters.packets_received, 1);
        assert!(
            counters.bytes_sent > 0 && counters.bytes_sent <= 3 * counters.bytes_received,
            "{counters:?}"
        );
    }
    assert!(!attack.server_saw(PathEvent::Validated(ONE)));
}

#[test]
fn acknowledgements_of_what_was_not_sent_on_their_path_are_violations() {
    // attacks.md G24, RFC 9000 §13.1.
    // Nothing was ever sent on path 2.
    for (named, path) in [(Some(ZERO), ZERO), (None, ZERO), (Some(ONE), ONE), (Some(PathId(2)), PathId(2))] {
        let mut attack = Attack::with_two_paths();
        let received = attack.client().largest_received(path);
        let frame = acknowledgement(named, received..=1 << 20);
        attack.say(ZERO, std::slice::from_ref(&frame));
        assert_eq!(attack.verdict(), VIOLATION, "{frame:?}");
    }
}

#[test]
fn acknowledgements_of_numbers_that_a_path_skipped_are_violations() {
    // attacks.md G24, RFC 9000 §21.4: about a hundred packets lie between two numbers that are skipped.
    for path in [ZERO, ONE] {
        let mut attack = Attack::with_two_paths();
        for _ in 0..40 {
            for _ in 0..20 {
                let now = attack.network.now;
                attack.network.server().force_on(path, &[Frame::Ping], now);
            }
            attack.network.run_for(RTT);
        }
        assert_eq!(attack.verdict(), None);
        let last = attack.client().largest_received(path);
        attack.say(ZERO, &[acknowledgement(Some(path), last - 750..=last)]);
        assert_eq!(attack.verdict(), VIOLATION, "{path}");
    }
}

#[test]
fn paths_that_come_and_go_without_end_get_credit_slowly_and_leave_little_behind() {
    // attacks.md G14: a path comes back into the limit three probe timeouts after its end.
    let mut attack = Attack::new();
    let (keep, known) = (attack.network.server().abandonment(), attack.network.server().recognized_ids());
    let (step, time) = (Duration::from_millis(10), Duration::from_secs(15));
    let mut opened = 0;
    for _ in 0..time.as_millis() / step.as_millis() {
        let (tuple, now) = (attack.second, attack.network.now);
        if let Ok(path) = attack.client().open_path(tuple, now) {
            opened += 1;
            attack.network.run_for(RTT);
            attack.abandon(path);
        }
        attack.network.run_for(step);
    }
    let most = 3 + 3 * (time.as_millis() / keep.as_millis()) as usize;
    assert!((10..=most).contains(&opened), "{opened} paths, at most {most}");
    assert_eq!(attack.verdict(), None);
    attack.network.run_for(Duration::from_secs(10));
    assert_eq!(attack.network.server().recognized_ids(), known);
    let counted: BTreeSet<_> =
        attack.network.server().stats().frames.iter().map(|frame| frame.path).collect();
    assert!(counted.len() <= 20, "counters of {} paths", counted.len());
}

/// Twelve paths from as many addresses that are not the client's: the bytes that go there, counted as they do, and those that
/// came from there.
fn sprayed(attack: &mut Attack) -> (Rc<Cell<usize>>, usize) {
    let caught = attack.network.catch(1);
    for _ in 0..12 {
        attack.open();
    }
    attack.network.run_for(Duration::from_millis(1));
    let sent = Rc::new(Cell::new(0));
    let mut victims = BTreeMap::new();
    let mut received = 0;
    for datagram in caught.borrow().iter() {
        let port = 5000 + victims.len() as u16;
        let victim = *victims.entry(datagram[1..9].to_vec()).or_insert_with(|| ([192, 0, 2, 1], port).into());
        if !attack.network.links.iter().any(|link| link.client == victim) {
            let (server, count) = (attack.network.links[0].server, Rc::clone(&sent));
            let drop = Box::new(move |_, bytes: &[u8]| {
                count.set(count.get() + bytes.len());
                true
            });
            attack.network.links.push(Link { client: victim, server, delay: RTT / 2, drop });
        }
        received += datagram.len();
        attack.network.forge(victim, datagram);
    }
    assert_eq!(victims.len(), 12);
    attack.network.run_for(RTT);
    assert_eq!(attack.network.server().pending_validations(), VALIDATIONS);
    (sent, received)
}

#[test]
fn paths_opened_from_forged_addresses_get_three_times_what_came_from_them() {
    // attacks.md G19: the client leaves the server no other address, and the server's policy wants to send to these.
    let mut attack = Attack::between(terse(20), eager(20));
    let (sent, received) = sprayed(&mut attack);
    attack.leave();
    let id = attack.network.server().open(Direction::Unidirectional).expect("within limits");
    attack.network.server().write(id, &[1; 500_000]).expect("there is room");
    attack.network.run_for(Duration::from_secs(2));
    // Of twelve addresses, eight count.
    let limit = 3 * received * VALIDATIONS / 12;
    assert!(sent.get() > limit / 2 && sent.get() <= limit, "{} bytes for {received}", sent.get());
}

#[test]
fn paths_opened_from_forged_addresses_are_few_and_carry_no_data_before_they_are_validated() {
    // attacks.md G19, G36, RFC 10069 §7.
    let mut attack = Attack::between(terse(20), eager(20));
    let (sent, received) = sprayed(&mut attack);
    let id = attack.network.server().open(Direction::Unidirectional).expect("within limits");
    attack.network.server().write(id, &[1; 500_000]).expect("there is room");
    attack.network.run_for(Duration::from_secs(2));
    // Three challenges each.
    assert!(sent.get() > 0 && sent.get() <= VALIDATIONS * 3 * 1_200, "{} bytes for {received}", sent.get());
    let code = AbandonReason::ResourceLimit.code();
    let refused = attack.network.client_events.iter().filter(
        |(_, event)| matches!(event, Event::Path(PathEvent::Abandoned { code: told, .. }) if *told == code),
    );
    assert_eq!(refused.count(), 12 - VALIDATIONS);
    attack.network.run_for(Duration::from_secs(3));
    assert_eq!((attack.verdict(), attack.network.server().pending_validations()), (None, 0));
}

#[test]
fn paths_that_share_a_forged_address_get_three_times_what_came_from_it_together() {
    // attacks.md K7: what arrives from one address is credited once, to whichever of the paths, and a policy that wants to send
    // there uses up all of it.
    let mut attack = Attack::between(terse(20), eager(20));
    let caught = attack.network.catch(1);
    (0..4).for_each(|_| attack.open());
    attack.network.run_for(Duration::from_millis(1));
    let victim = ([192, 0, 2, 1], 5000).into();
    let (sent, server) = (Rc::new(Cell::new(0)), attack.network.links[0].server);
    let count = Rc::clone(&sent);
    let drop = Box::new(move |_, bytes: &[u8]| {
        count.set(count.get() + bytes.len());
        true
    });
    attack.network.links.push(Link { client: victim, server, delay: RTT / 2, drop });
    let mut received = 0;
    for datagram in caught.borrow().iter() {
        received += datagram.len();
        attack.network.forge(victim, datagram);
    }
    assert_eq!(attack.network.server().path_ids().len(), 5);
    attack.leave();
    let id = attack.network.server().open(Direction::Unidirectional).expect("within limits");
    attack.network.server().write(id, &[1; 500_000]).expect("there is room");
    for _ in 0..20 {
        attack.network.run_for(RTT * 2);
        assert!(sent.get() <= 3 * received, "{} bytes for {received}", sent.get());
    }
    assert!(sent.get() > 2 * received, "the policy used it: {} bytes for {received}", sent.get());
}

#[test]
fn a_flood_of_reports_and_statuses_is_answered_with_acknowledgements_only() {
    // attacks.md G28, G30, RFC 10069 §4.3, §4.7.
    let mut attack = Attack::with_two_paths();
    let before = attack.server_sent(|kind| kind != "path_ack");
    let kept = attack.network.server().bookkeeping().len();
    attack.network.server_events.clear();
    for round in 0..100 {
        let frames: Vec<_> = (0..20)
            .flat_map(|n| {
                // Another one each time, for each of four paths.
                let status = if n / 4 % 2 == 0 { Status::Backup } else { Status::Available };
                [
                    Frame::PathsBlocked(3),
                    Frame::PathCidsBlocked { path: PathId(2), next_sequence: 1 },
                    Frame::PathStatus { path: PathId(n % 4), sequence: round * 20 + u64::from(n), status },
                ]
            })
            .collect();
        attack.say(ZERO, &frames);
    }
    assert_eq!(attack.verdict(), None);
    assert_eq!(attack.server_sent(|kind| kind != "path_ack"), before);
    assert!(attack.server_sent(|kind| kind == "path_ack") <= 100 + before);
    // Four statuses, and nothing else.
    let grown = attack.network.server().bookkeeping().len() - kept;
    assert!(grown < 4 * 60, "{grown} characters more");
    // All came before the application looked: it is told of each path once.
    let is_status = |event: &Event| matches!(event, Event::Path(PathEvent::PeerStatus(..)));
    let told = attack.network.server_events.iter().filter(|(_, event)| is_status(event)).count();
    assert!((1..=4).contains(&told), "{told} statuses told");
}

#[test]
fn a_peer_that_grants_all_paths_gets_connection_ids_for_a_bounded_number() {
    // attacks.md G37: 63 beside path 0, and two more for path 0.
    let mut attack = Attack::between(up_to(u32::MAX), up_to(u32::MAX));
    attack.network.run_for(RTT * 4);
    assert_eq!(attack.server_sent(|kind| kind == "path_new_connection_id"), 63 + 2);
    assert_eq!(attack.network.server().recognized_ids(), 64 + 2);
    let mut attack = Attack::between(up_to(u32::MAX), transport());
    assert_eq!(attack.server_sent(|kind| kind == "path_new_connection_id"), 3 + 2);
}

#[test]
fn a_path_that_is_abandoned_before_it_was_used_does_not_come_to_be() {
    // attacks.md G38, RFC 10069 §3.4.
    let mut attack = Attack::new();
    attack.say(ZERO, &[Frame::PathAbandon { path: ONE, error: 0 }]);
    attack.open();
    assert_eq!(attack.verdict(), None);
    attack.network.run_for(RTT);
    assert_eq!(attack.network.server().path_ids(), [ZERO]);
    assert_eq!(attack.client().path_ids(), [ZERO], "the answer has come");
    attack.open();
    attack.network.run_for(RTT * 4);
    assert_eq!(attack.network.server().path_ids(), [ZERO, PathId(2)]);
}

#[test]
fn frames_of_rfc_9000_mean_path_zero_beside_those_of_the_extension() {
    // attacks.md G40, RFC 10069 §3.2, §4.
    let retire = |sequence| Frame::RetireConnectionId { path: None, sequence };
    let mut attack = Attack::with_two_paths();
    let received = attack.client().largest_received(ZERO);
    attack.say(ONE, &[acknowledgement(None, received..=received), retire(1), retire(1)]);
    assert_eq!(attack.verdict(), None);
    assert!(attack.network.server().bookkeeping().contains("form: Multipath"));
    for (path, frame, code) in [
        (ONE, retire(0), None),
        // The packet's own connection ID.
        (ZERO, retire(0), VIOLATION),
        (ONE, retire(50), VIOLATION),
        (ONE, acknowledgement(None, 0..=1 << 20), VIOLATION),
    ] {
        let mut attack = Attack::with_two_paths();
        attack.say(path, std::slice::from_ref(&frame));
        assert_eq!(attack.verdict(), code, "{frame:?}");
    }
}
