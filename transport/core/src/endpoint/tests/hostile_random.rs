//! Peers that say anything: well-formed frames at random, on random paths, among things that honest peers do.

use super::network::{Network, transport};
use crate::PathId;
use crate::connection::{Connection, Event, FourTuple};
use crate::endpoint::ConnectionHandle;
use crate::error::{ConnectionError, ErrorCode};
use crate::ranges::Ranges;
use crate::stream::{Direction, StreamId};
use crate::wire::connection_id::{ConnectionId, ResetToken};
use crate::wire::frame::{
    Ack, Frame, NewConnectionId, ResetStream, ResetStreamAt, Status, StopSending, Stream,
};
use bytes::Bytes;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

const SEEDS: u64 = 200;
const STEPS: usize = 40;

/// The end that attacks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Attacker {
    Client,
    Server,
}

struct Play {
    network: Network,
    handle: ConnectionHandle,
    second: FourTuple,
    attacker: Attacker,
    dice: StdRng,
}

impl Play {
    fn new(seed: u64, attacker: Attacker) -> Self {
        let mut network = Network::new(transport(), transport());
        let first = network.link(Duration::from_millis(10));
        let second = network.link(Duration::from_millis(25));
        let handle = network.connect(first);
        network.run_for(Duration::from_millis(100));
        Self { network, handle, second, attacker, dice: StdRng::seed_from_u64(seed) }
    }

    fn client(&mut self) -> Option<&mut Connection> {
        self.network.client.connection(self.handle).filter(|client| client.lifecycle().is_open())
    }

    fn server(&mut self) -> Option<&mut Connection> {
        let handle = self.network.server.handles().next()?;
        self.network.server.connection(handle).filter(|server| server.lifecycle().is_open())
    }

    fn peer(&mut self, attacker: bool) -> Option<&mut Connection> {
        match (self.attacker == Attacker::Client) == attacker {
            true => self.client(),
            false => self.server(),
        }
    }

    /// One of the things that honest applications do, at either end; whether it is possible does not matter.
    fn command(&mut self) {
        let (now, second) = (self.network.now, self.second);
        let (what, victim) = (self.dice.random_range(0..5), self.dice.random_bool(0.5));
        let path = PathId(self.dice.random_range(0..3));
        if let (0, Some(client)) = (what, self.client()) {
            let _ = client.open_path(second, now);
        }
        let Some(connection) = self.peer(!victim) else { return };
        match what {
            1 => drop(connection.abandon_path(path, 0x3e, now)),
            2 => drop(connection.rotate_connection_id(path, now)),
            3 => drop(connection.set_path_status(path, Status::Backup)),
            4 => {
                if let Some(id) = connection.open(Direction::Bidirectional) {
                    let _ = connection.write(id, &[7; 5_000]);
                    let _ = connection.finish(id);
                }
            }
            _ => {}
        }
    }

    /// False once a connection is over.
    fn step(&mut self) -> bool {
        if self.dice.random_bool(0.3) {
            self.command();
        }
        let count = self.dice.random_range(1..4);
        let frames: Vec<_> = (0..count).map(|_| self.frame()).collect();
        let (now, which) = (self.network.now, self.dice.random_range(0..4_usize));
        let Some(attacker) = self.peer(true) else { return false };
        let paths = attacker.path_ids();
        if let Some(path) = paths.get(which % paths.len().max(1)) {
            attacker.force_on(*path, &frames, now);
        }
        let time = Duration::from_millis(self.dice.random_range(0..30));
        self.network.run_for(time);
        let now = self.network.now;
        let Some(victim) = self.peer(false) else { return false };
        if let Err(problem) = victim.audit(now) {
            panic!("{problem} after {frames:?}");
        }
        true
    }

    /// Most frames are permitted, though nobody would send them; a few may be anything.
    fn frame(&mut self) -> Frame {
        if self.dice.random_bool(0.03) {
            return wild(&mut self.dice);
        }
        let received = self.peer(true).map_or(0, |attacker| attacker.largest_received(PathId::ZERO));
        odd(&mut self.dice, self.attacker, received)
    }

    /// The connections that are still there.
    fn left(&self) -> String {
        let mut left = String::new();
        for (endpoint, events) in [
            (&self.network.client, &self.network.client_events),
            (&self.network.server, &self.network.server_events),
        ] {
            for handle in endpoint.handles() {
                let connection = endpoint.get(handle).expect("it was listed");
                let deadline = connection.next_deadline(self.network.now);
                let _ = write!(left, "{connection:?} {deadline:?} {:?} {events:?}", self.network.now);
            }
        }
        left
    }

    /// Returns the code with which the victim closed, if it did.
    fn verdict(&self) -> Option<ErrorCode> {
        let events = match self.attacker {
            Attacker::Client => &self.network.server_events,
            Attacker::Server => &self.network.client_events,
        };
        events.iter().find_map(|(_, event)| match event {
            Event::Closed(ConnectionError::Transport(error)) => Some(error.code),
            _ => None,
        })
    }
}

fn acknowledgement(path: Option<PathId>, smallest: u64, length: u64) -> Frame {
    let mut ranges = Ranges::new();
    ranges.insert_range(smallest..=smallest + length);
    Frame::Ack(Ack::from_ranges(path, &ranges, 0, None, 100).expect("one range fits"))
}

/// A frame that is a violation more often than not.
fn wild(dice: &mut StdRng) -> Frame {
    let path = PathId(dice.random_range(0..4));
    let id = StreamId(dice.random_range(0..16));
    let (small, other) = (dice.random_range(0..8_u64), dice.random_range(0..200_u64));
    let direction = Direction::ALL[dice.random_range(0..2)];
    match dice.random_range(0..26) {
        0 => acknowledgement(Some(path), small, 0),
        1 => acknowledgement(None, small, small),
        2 => Frame::PathAbandon { path, error: small },
        3..=5 => Frame::PathStatus { path, sequence: other, status: Status::Backup },
        6 => Frame::PathStatus { path, sequence: other, status: Status::Available },
        7..=9 => new_id(path, small, dice.random_range(0..=small), other),
        10 => Frame::RetireConnectionId { path: Some(path), sequence: small % 4 },
        11 => Frame::RetireConnectionId { path: None, sequence: small % 4 },
        12 => Frame::MaxPathId(3 + small),
        13 => Frame::PathsBlocked(small % 4),
        14 => Frame::PathCidsBlocked { path, next_sequence: small % 2 },
        15 => Frame::PathChallenge([small as u8; 8]),
        16 => Frame::PathResponse([small as u8; 8]),
        17 | 18 => {
            Frame::Stream(Stream { id, offset: other, data: Bytes::from(vec![1; 50]), fin: small == 0 })
        }
        19 => Frame::ResetStream(ResetStream { id, error: small, final_size: other + 50 }),
        20 if other < 50 => Frame::ResetStreamAt(ResetStreamAt {
            id,
            error: small,
            final_size: other + 50,
            reliable_size: other,
        }),
        20 => Frame::StopSending(StopSending { id, error: small }),
        21 => Frame::MaxStreamData { id, limit: other * 1000 },
        22 => Frame::MaxStreams { direction, limit: other },
        23 => Frame::StreamsBlocked { direction, limit: other },
        24 => Frame::Datagram(Bytes::from(vec![2; 20])),
        _ => Frame::ImmediateAck,
    }
}

/// A frame that is no violation, or only if something happened before. The attacker has `received` this packet on path 0.
fn odd(dice: &mut StdRng, from: Attacker, received: u64) -> Frame {
    let path = PathId(dice.random_range(0..4));
    let own = StreamId(dice.random_range(0..8) * 4 + u64::from(from == Attacker::Server));
    let (small, other) = (dice.random_range(1..4_u64), dice.random_range(0..200_u64));
    let direction = Direction::ALL[dice.random_range(0..2)];
    match dice.random_range(0..24) {
        0 => acknowledgement(Some(PathId::ZERO), received, 0),
        1 => acknowledgement(None, received, 0),
        2 if other < 50 => Frame::PathAbandon { path, error: small },
        3 | 4 => Frame::PathStatus { path, sequence: other, status: Status::Backup },
        5 => Frame::PathStatus { path, sequence: other, status: Status::Available },
        // What follows from these ends the attacker soon, which is no liar when it listens.
        6 if other < 40 => new_id(path, 10 + other, 9 + other + small % 2, other),
        7 if other < 40 => Frame::RetireConnectionId { path: Some(PathId::ZERO), sequence: small },
        8 if other < 40 => Frame::RetireConnectionId { path: None, sequence: small },
        9 | 10 => Frame::MaxPathId(3 + small),
        11 => Frame::PathsBlocked(small),
        12 => Frame::PathCidsBlocked { path, next_sequence: 0 },
        13 | 14 => Frame::PathChallenge([other as u8; 8]),
        15 => Frame::PathResponse([other as u8; 8]),
        16 | 17 => {
            Frame::Stream(Stream { id: own, offset: other, data: Bytes::from(vec![1; 50]), fin: false })
        }
        18 => Frame::StopSending(StopSending { id: own, error: small }),
        19 => Frame::MaxStreamData { id: own, limit: other * 1000 },
        20 => Frame::MaxStreams { direction, limit: other },
        21 => Frame::StreamsBlocked { direction, limit: other },
        22 => Frame::Datagram(Bytes::from(vec![2; 20])),
        _ => Frame::ImmediateAck,
    }
}

fn new_id(path: PathId, sequence: u64, retire_prior_to: u64, number: u64) -> Frame {
    let id = ConnectionId::new(&[0xee, number as u8, path.0 as u8, sequence as u8]).expect("4 bytes");
    let (path, token) = (Some(path), ResetToken([number as u8; 16]));
    Frame::NewConnectionId(NewConnectionId { path, sequence, retire_prior_to, id, token })
}

#[test]
fn whatever_a_peer_says_accounts_and_timers_are_right_until_the_end_which_has_a_reason() {
    let mut reasons = BTreeMap::new();
    let mut survived = 0;
    for seed in 0..SEEDS {
        let attacker = if seed % 2 == 0 { Attacker::Client } else { Attacker::Server };
        let mut play = Play::new(seed, attacker);
        survived += (0..STEPS).take_while(|_| play.step()).count();
        // Each end may speak until its own idle timeout, which the other hears.
        play.network.run_for(Duration::from_secs(120));
        let code = play.verdict();
        assert_ne!(code, Some(ErrorCode::INTERNAL_ERROR), "seed {seed}");
        *reasons.entry(code.map(|code| code.0)).or_insert(0) += 1;
        assert_eq!(play.left(), "", "all is over when nobody speaks any more, seed {seed}");
    }
    assert!(reasons.len() >= 4 && survived >= 1500, "{reasons:?}, {survived} steps");
}
