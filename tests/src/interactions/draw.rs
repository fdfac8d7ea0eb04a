//! Random draws from a seed: the world, the configurations of both ends, and the operations.

use hvq_emulation::Direction as Way;
use hvq_scheduler::Policy;
use hvq_transport::congestion::Algorithm;
use hvq_transport::connection::{Greasing, Moving};
use hvq_transport::stream::Direction;
use hvq_transport::wire::frame::Status;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

/// One operation. Sides, streams, paths and wires are numbers that are taken modulo what there is when it is played, so
/// that an operation keeps a meaning when others are dropped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Op {
    /// A side opens a stream and writes to it.
    Open { side: u8, direction: Direction, bytes: u32 },
    /// A side writes to a stream of its own or of its peer.
    Write { side: u8, stream: u8, bytes: u32 },
    /// A side marks the end of a message.
    EndMessage { side: u8, stream: u8 },
    /// A side ends a stream.
    Finish { side: u8, stream: u8 },
    /// A side abandons what it sends on a stream.
    Reset { side: u8, stream: u8, code: u8 },
    /// A side wants no more of a stream.
    Stop { side: u8, stream: u8, code: u8 },
    /// A side reads some of a stream.
    Read { side: u8, stream: u8, bytes: u32 },
    /// A side changes the priority of a stream.
    Priority { side: u8, stream: u8, urgency: u8 },
    /// A side sends a datagram.
    Datagram { side: u8, bytes: u16, milliseconds: u8 },
    /// The client opens a path over a wire.
    OpenPath { wire: u8 },
    /// A side gives up a path.
    Abandon { side: u8, path: u8 },
    /// A side advises its peer about a path.
    Advise { side: u8, path: u8, status: Status },
    /// A side is told about a channel.
    Hint { side: u8, path: u8, megabits: u8, milliseconds: u8 },
    /// A path gets another congestion controller.
    Control { side: u8, path: u8, algorithm: Algorithm },
    /// The client moves a path to a wire, at once or when that is validated.
    Migrate { path: u8, wire: u8, moving: Moving },
    /// A side changes the connection ID that it sends to.
    Rotate { side: u8, path: u8 },
    /// A side keeps a path warm.
    KeepWarm { side: u8, path: u8, milliseconds: u16 },
    /// A side updates its keys.
    UpdateKeys { side: u8 },
    /// A NAT gives the client another port.
    RebindPort { wire: u8, port: u8 },
    /// A NAT gives the client another address.
    RebindAddress { wire: u8, host: u8 },
    /// Nothing passes a wire for a while.
    Cut { wire: u8, milliseconds: u16 },
    /// A wire becomes another channel; what was under way is lost.
    Change { wire: u8, seed: u8 },
    /// The next datagrams of one direction of a wire are lost.
    Lose { wire: u8, way: Way, count: u8 },
    /// The next datagrams of the client on a wire reach the server from an address that an attacker chose.
    Forge { wire: u8, host: u8, count: u8 },
    /// Every wire is dark. Wire `first` is back before the others, in one direction if `way` says so.
    Darken { first: u8, way: Option<Way>, milliseconds: u16, later: u16 },
    /// Nothing passes one direction of a wire for a while.
    CutWay { wire: u8, way: Way, milliseconds: u16 },
    /// A wire comes and goes.
    Flap { wire: u8, milliseconds: u16, dark: u8 },
    /// Time passes.
    Wait { milliseconds: u16 },
    /// Time passes until the handshake is confirmed.
    AwaitHandshake,
    /// A side closes the connection.
    Close { side: u8, code: u8 },
}

/// The server's way of receiving clients.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reception {
    /// It begins with the handshake.
    Open,
    /// It has clients prove their address first.
    Retry,
    /// It ignores so many datagrams, then has the client prove its address.
    Reluctant(u32),
}

/// Tells whether the connection resumes an earlier one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Resumption {
    /// There was none.
    None,
    /// It does, and the server accepts what comes early.
    Accepted,
    /// The server has other keys now, and rejects what comes early.
    Rejected,
}

/// The world that operations are played in.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    /// The seed that everything in it is drawn from.
    pub seed: u64,
    /// The wires in the text form of channels.
    pub wires: Vec<String>,
    /// The schedulers of the client and of the server.
    pub policies: [Policy; 2],
    /// Their congestion controllers.
    pub algorithms: [Algorithm; 2],
    /// The highest path ID that each permits, if it knows of several paths.
    pub paths: [Option<u32>; 2],
    /// True for each end whose windows and buffers are small.
    pub narrow: [bool; 2],
    /// Packets after which connection IDs change.
    pub rotation: Option<u64>,
    /// The server's way of receiving clients.
    pub door: Reception,
    /// The resumption of an earlier connection, if any.
    pub resumption: Resumption,
    /// True if the server has a preferred address.
    pub preferring: bool,
    /// Packets that each end may seal with one key, if not as many as the cipher suite permits.
    pub wear: [Option<u64>; 2],
    /// The greasing of each end: the variation of values that mean nothing.
    pub greasing: [Greasing; 2],
}

/// A world and what happens in it.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// The world.
    pub setting: Setting,
    /// The operations.
    pub ops: Vec<Op>,
}

/// Added to a seed for the outages, so that the rest of its world is what it is without them.
const OUTAGES: u64 = 0x9e37_79b9_7f4a_7c15;

/// The world and the operations of `seed`.
pub(super) fn plan(seed: u64) -> Plan {
    let mut dice = StdRng::seed_from_u64(seed);
    let setting = setting(seed, &mut dice);
    let mut ops = beginning(&setting, &mut dice);
    let count = dice.random_range(5..=40);
    ops.extend((0..count).map(|_| op(&mut dice)));
    add_outages(&mut ops, &mut StdRng::seed_from_u64(seed.wrapping_add(OUTAGES)));
    if dice.random_bool(0.1) {
        ops.push(Op::Close { side: dice.random(), code: dice.random() });
    }
    Plan { setting, ops }
}

/// Puts outages somewhere among `ops` in half of the worlds, each with some time in which the ends find out about it.
fn add_outages(ops: &mut Vec<Op>, dice: &mut StdRng) {
    if dice.random() {
        return;
    }
    for _ in 0..dice.random_range(1..=3) {
        let at = dice.random_range(0..=ops.len());
        let more = op_on_streams(dice);
        let wait = Op::Wait { milliseconds: dice.random_range(100..2_500) };
        let outage = outage(dice);
        ops.splice(at..at, outage.into_iter().chain([more, wait]));
    }
}

/// Paths that fall silent together, in one direction, again and again, or after another got a new address.
fn outage(dice: &mut StdRng) -> Vec<Op> {
    let (wire, other) = (dice.random_range(0..8), dice.random_range(0..8));
    let way = if dice.random() { Way::Up } else { Way::Down };
    match dice.random_range(0..4) {
        0 => {
            let way = [None, Some(way)][dice.random_range(0..2)];
            let (milliseconds, later) = (dice.random_range(50..5_000), dice.random_range(0..5_000));
            vec![Op::Darken { first: wire, way, milliseconds, later }]
        }
        1 => vec![Op::CutWay { wire, way, milliseconds: dice.random_range(50..10_000) }],
        2 => {
            // The logarithm of the period is uniform.
            let milliseconds = (50.0 * 400_f64.powf(dice.random())) as u16;
            let flap = |wire| Op::Flap { wire, milliseconds, dark: dice.random_range(20..80) };
            [wire, other].into_iter().map(flap).collect()
        }
        _ => vec![
            Op::RebindAddress { wire, host: dice.random_range(0..8) },
            Op::Wait { milliseconds: dice.random_range(0..2_000) },
            Op::Cut { wire: other, milliseconds: 60_000 },
        ],
    }
}

/// Most worlds have several paths before anything else happens; some begin with what is sent early.
fn beginning(setting: &Setting, dice: &mut StdRng) -> Vec<Op> {
    let mut ops = Vec::new();
    if setting.resumption != Resumption::None {
        ops.extend((0..dice.random_range(0..=4)).map(|_| op_on_streams(dice)));
    }
    if dice.random_bool(0.9) {
        ops.push(Op::AwaitHandshake);
        let first = dice.random_range(0..8);
        ops.extend((0..dice.random_range(1..=4)).map(|further| Op::OpenPath { wire: first + further }));
    }
    ops
}

fn setting(seed: u64, dice: &mut StdRng) -> Setting {
    let wires = dice.random_range(2..=4);
    let policies = [Policy::Hvc, Policy::MinRtt, Policy::RoundRobin, Policy::Redundant, Policy::Single(None)];
    let mut paths = || dice.random_bool(0.95).then(|| dice.random_range(0_u32..=12).min(4));
    let paths = [paths(), paths()];
    Setting {
        seed,
        wires: (0..wires).map(|_| channel(dice)).collect(),
        policies: [0, 1].map(|_| *policies.choose(dice).expect("there are policies")),
        algorithms: [0, 1].map(|_| algorithm(dice)),
        paths,
        narrow: [0, 1].map(|_| dice.random_bool(0.4)),
        rotation: dice.random_bool(0.1).then(|| dice.random_range(5..50)),
        door: match dice.random_range(0..20) {
            0..2 => Reception::Retry,
            2 => Reception::Reluctant(dice.random_range(1..4)),
            _ => Reception::Open,
        },
        resumption: match dice.random_range(0..20) {
            0..3 => Resumption::Accepted,
            3 => Resumption::Rejected,
            _ => Resumption::None,
        },
        preferring: dice.random_bool(0.1),
        wear: [0, 1].map(|_| dice.random_bool(0.1).then(|| dice.random_range(200..1_000))),
        greasing: [0, 1].map(|_| if dice.random() { Greasing::On } else { Greasing::Off }),
    }
}

fn algorithm(dice: &mut StdRng) -> Algorithm {
    *Algorithm::ALL.choose(dice).expect("there are controllers")
}

/// A channel that may be slow, far, shallow, lossy, unsteady or asymmetric, in its text form.
pub(super) fn channel(dice: &mut StdRng) -> String {
    let mut text = String::new();
    for way in ["up", "down"] {
        let delay = dice.random_range(0..60);
        let jitter = if dice.random_bool(0.3) { dice.random_range(1..30) } else { 0 };
        let rate = [1, 2, 5, 20, 100].choose(dice).expect("there are rates");
        text += &format!("{way}.delay=uniform:{delay}ms:{}ms,{way}.rate={rate}mbit,", delay + jitter);
        if dice.random_bool(0.3) {
            text += &format!("{way}.loss={}%,", dice.random_range(1..20));
        }
        if dice.random_bool(0.1) {
            text += &format!("{way}.burst=5%/25%,");
        }
        if dice.random_bool(0.2) {
            text += &format!("{way}.reorder=20%/{}ms,", dice.random_range(1..40));
        }
        if dice.random_bool(0.2) {
            text += &format!("{way}.duplicate=10%,");
        }
        if dice.random_bool(0.2) {
            text += &format!("{way}.queue={}p,", dice.random_range(2..20));
        }
        if dice.random_bool(0.1) {
            text += &format!("{way}.ecn={}p,", dice.random_range(1..5));
        }
    }
    text
}

fn op(dice: &mut StdRng) -> Op {
    match dice.random_range(0..100) {
        0..45 => op_on_streams(dice),
        45..75 => op_on_paths(dice),
        75..90 => op_on_wires(dice),
        _ => Op::Wait { milliseconds: [1, 5, 30, 200, 1500].choose(dice).copied().unwrap_or_default() },
    }
}

fn size(dice: &mut StdRng) -> u32 {
    let most = *[0, 1, 100, 1_500, 6_000, 20_000].choose(dice).expect("there are sizes");
    dice.random_range(0..=most)
}

fn op_on_streams(dice: &mut StdRng) -> Op {
    let (side, stream) = (dice.random_range(0..2), dice.random_range(0..12));
    match dice.random_range(0..100) {
        0..30 => {
            let direction = Direction::ALL[dice.random_range(0..2)];
            Op::Open { side, direction, bytes: size(dice) }
        }
        30..50 => Op::Write { side, stream, bytes: size(dice) },
        50..55 => Op::EndMessage { side, stream },
        55..65 => Op::Finish { side, stream },
        65..71 => Op::Reset { side, stream, code: dice.random() },
        71..77 => Op::Stop { side, stream, code: dice.random() },
        77..87 => Op::Read { side, stream, bytes: size(dice) },
        87..90 => Op::Priority { side, stream, urgency: dice.random_range(0..8) },
        _ => {
            let milliseconds = if dice.random_bool(0.5) { 0 } else { dice.random() };
            Op::Datagram { side, bytes: dice.random_range(8..1_250), milliseconds }
        }
    }
}

fn op_on_paths(dice: &mut StdRng) -> Op {
    let (side, path) = (dice.random_range(0..2), dice.random_range(0..4));
    match dice.random_range(0..100) {
        0..36 => Op::OpenPath { wire: dice.random_range(0..8) },
        36..42 => Op::Abandon { side, path },
        42..50 => {
            let status = if dice.random() { Status::Backup } else { Status::Available };
            Op::Advise { side, path, status }
        }
        50..58 => Op::Hint {
            side,
            path,
            megabits: dice.random_range(0..20),
            milliseconds: dice.random_range(0..50),
        },
        58..62 => Op::Control { side, path, algorithm: algorithm(dice) },
        62..77 => {
            let moving = if dice.random() { Moving::AtOnce } else { Moving::Validated };
            Op::Migrate { path, wire: dice.random_range(0..8), moving }
        }
        77..82 => Op::Rotate { side, path },
        82..87 => Op::KeepWarm { side, path, milliseconds: dice.random_range(0..1_000) },
        _ => Op::UpdateKeys { side },
    }
}

fn op_on_wires(dice: &mut StdRng) -> Op {
    let wire = dice.random_range(0..8);
    match dice.random_range(0..100) {
        0..18 => Op::RebindPort { wire, port: dice.random_range(0..8) },
        18..36 => Op::RebindAddress { wire, host: dice.random_range(0..8) },
        36..56 => Op::Cut { wire, milliseconds: dice.random_range(1..2_000) },
        56..66 => Op::Change { wire, seed: dice.random() },
        66..88 => {
            let way = if dice.random() { Way::Up } else { Way::Down };
            Op::Lose { wire, way, count: dice.random_range(1..12) }
        }
        _ => Op::Forge { wire, host: dice.random_range(0..4), count: dice.random_range(1..6) },
    }
}
