//! Plays operations, then lets the network calm down, and has everything end well.

mod apply;

use super::draw::{Op, Plan, Reception};
use super::fixture::Fixture;
use super::model::{Model, unsettled};
use super::player::{Player, Reading, index};
use hvq_lab::world::Side;
use hvq_scheduler::Policy;
use hvq_transport::connection::EarlyDataState;
use hvq_transport::connection::Lifecycle;
use hvq_transport::error::{ConnectionError, ErrorCode};
use std::time::Duration;

/// The longest that an operation waits for the end of a handshake.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// In a calm network everything is delivered within this time; probe timeouts have backed off before.
const PATIENCE: Duration = Duration::from_secs(60);
/// Over the one path that works everything is delivered within this time.
const PATIENCE_WITH_ONE: Duration = Duration::from_secs(20);
/// A closed connection is forgotten within this time, if need be by the idle timeout and three backed-off probe timeouts.
const FORGETTING: Duration = Duration::from_secs(600);
/// A client behind a NAT that moved has to say something before the server can.
const WARM: Duration = Duration::from_millis(500);

/// The outcome of a plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Played {
    /// Virtual time until it was over.
    pub time: Duration,
    /// Datagrams that both ends sent, as far as their open paths know.
    pub datagrams: u64,
    /// The largest number of paths that were open at a time.
    pub paths: usize,
    /// Paths that were open when everything had arrived and the connection was about to be closed.
    pub last_paths: usize,
    /// The rare events that happened.
    pub rarities: Rarities,
}

/// Counts of events that do not happen in every world.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rarities {
    /// Key updates.
    pub key_updates: u64,
    /// Connections of which something was accepted that came early.
    pub early: u64,
    /// Connections whose path 0 was at the server's preferred address.
    pub preferred: u64,
    /// Connections that lived on one path while all others were dark.
    pub isolated: u64,
    /// Connections that ended because keys were worn out before they could be updated.
    pub worn_out: u64,
}

/// Plays `plan`; what went wrong first, if anything did.
pub(super) fn run(plan: &Plan) -> Result<Played, String> {
    let mut stage = Stage::new(plan);
    let result = stage.play(&plan.ops);
    result.map_err(|problem| format!("{problem}\n{}", stage.fixture.net.describe()))
}

struct Stage {
    fixture: Fixture,
    player: Player,
    model: Model,
    played: Played,
    closer: Side,
    closing: bool,
    wear: [Option<u64>; 2],
    door: Reception,
    trial: Trial,
}

/// A hardship before the network is calm.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Trial {
    /// Nothing more.
    None,
    /// All wires but one go dark.
    OnePath,
}

impl Stage {
    fn new(plan: &Plan) -> Self {
        let setting = &plan.setting;
        let reading = if setting.seed.is_multiple_of(3) { Reading::WhenTold } else { Reading::AtOnce };
        let copies = setting.policies.map(|policy| policy == Policy::Redundant);
        Self {
            fixture: Fixture::new(setting),
            player: Player::new(reading, copies),
            model: Model::default(),
            played: Played::default(),
            closer: Side::BOTH[(setting.seed % 2) as usize],
            closing: false,
            wear: setting.wear,
            door: setting.door,
            trial: if setting.seed % 4 == 1 { Trial::OnePath } else { Trial::None },
        }
    }

    fn play(&mut self, ops: &[Op]) -> Result<Played, String> {
        for (number, op) in ops.iter().enumerate() {
            self.fixture.deliver_forged();
            self.apply(op);
            match op {
                Op::Wait { milliseconds } => self.step(Duration::from_millis(u64::from(*milliseconds)))?,
                Op::AwaitHandshake => self.await_handshake()?,
                _ => self.step(Duration::from_millis(number as u64 % 4))?,
            }
            if self.is_over() {
                break;
            }
        }
        self.fixture.deliver_forged();
        if self.trial == Trial::OnePath && !self.is_over() {
            self.live_on_one_path()?;
        }
        self.fixture.calm();
        if !self.is_over() {
            self.deliver_everything()?;
            self.settle()?;
            // A NAT that has moved since the client last spoke: the server cannot know where to close.
            self.step(WARM * 2)?;
            self.look_around();
            self.close();
            self.step(Duration::from_millis(500))?;
            self.check_clean_end()?;
        }
        self.forget()?;
        let ends = Side::BOTH.map(|side| self.player.closed(side));
        let worn_out = ends.iter().flatten().any(|end| self.is_worn_out(end));
        self.played.rarities.worn_out = u64::from(worn_out);
        self.played.time = self.fixture.net.elapsed();
        Ok(self.played)
    }

    /// Returns the stages of life of both ends.
    fn lifecycles(&mut self) -> [Option<Lifecycle>; 2] {
        Side::BOTH.map(|side| self.fixture.connection(side).map(|it| it.lifecycle()))
    }

    fn is_confirmed(&mut self) -> bool {
        self.lifecycles() == [Some(Lifecycle::Confirmed); 2]
    }

    fn is_over(&self) -> bool {
        self.closing || Side::BOTH.iter().any(|side| self.player.closed(*side).is_some())
    }

    fn await_handshake(&mut self) -> Result<(), String> {
        let end = self.fixture.net.now + HANDSHAKE;
        while self.fixture.net.now < end && !self.is_confirmed() && !self.is_over() {
            self.step(Duration::from_millis(10))?;
        }
        Ok(())
    }

    /// Takes note of what there is at the end.
    fn look_around(&mut self) {
        let ids = Side::BOTH.map(|side| self.fixture.connection(side).map_or(0, |it| it.path_ids().len()));
        self.played.last_paths = ids[0].min(ids[1]);
        let is_preferred = self.fixture.is_at_preferred_address();
        let rarities = &mut self.played.rarities;
        rarities.preferred = u64::from(is_preferred);
        if let Some(server) = self.fixture.connection(Side::Server) {
            rarities.key_updates = server.key_updates();
            rarities.early = u64::from(server.early_data() == EarlyDataState::Accepted);
        }
    }

    /// Lets `time` pass, and checks everything after it.
    fn step(&mut self, time: Duration) -> Result<(), String> {
        let until = self.fixture.net.now + time;
        self.fixture.net.run(&mut self.player, until);
        self.model.check(&mut self.fixture, &self.player)?;
        self.check_ends()?;
        let mut datagrams = 0;
        for side in Side::BOTH {
            let paths = self.fixture.connection(side).map(|it| it.stats().paths).unwrap_or_default();
            datagrams += paths.iter().map(|path| path.counters.datagrams_sent).sum::<u64>();
            self.played.paths = self.played.paths.max(paths.len());
        }
        self.played.datagrams = self.played.datagrams.max(datagrams);
        Ok(())
    }

    /// The applications read all there is and end their streams.
    fn end_applications(&mut self) {
        for side in Side::BOTH {
            if let Some(connection) = self.fixture.connection(side) {
                self.player.end(side, connection);
            }
        }
    }

    /// Everything that was written arrives, once all channels are up.
    fn deliver_everything(&mut self) -> Result<(), String> {
        self.end_applications();
        let end = self.fixture.net.now + PATIENCE;
        let mut problem = Some(String::from("nothing was checked"));
        while self.fixture.net.now < end {
            self.keep_warm();
            self.step(Duration::from_millis(50))?;
            problem = match self.is_confirmed() {
                true => self.player.missing(),
                false => Some(format!("the handshake is not confirmed: {:?}", self.lifecycles())),
            };
            if self.is_over() || problem.is_none() {
                break;
            }
        }
        match problem {
            Some(problem) if !self.is_over() => Err(format!("a stall in a calm network: {problem}")),
            _ => Ok(()),
        }
    }

    /// All but one wire go dark for good, over which both ends have proven a path: everything arrives all the same.
    fn live_on_one_path(&mut self) -> Result<(), String> {
        let Some((path, wire)) = self.fixture.proven().last().copied().filter(|_| self.is_confirmed()) else {
            return Ok(());
        };
        self.fixture.isolate(wire);
        self.played.rarities.isolated = 1;
        self.end_applications();
        let end = self.fixture.net.now + PATIENCE_WITH_ONE;
        let mut problem = Some(String::from("nothing was checked"));
        while self.fixture.net.now < end && problem.is_some() {
            self.keep_warm();
            self.step(Duration::from_millis(50))?;
            // An end may have given it up a moment ago, or moved it.
            if self.is_over() || !self.fixture.proven().contains(&(path, wire)) {
                return Ok(());
            }
            problem = self.player.missing();
        }
        problem.map_or(Ok(()), |problem| Err(format!("a stall while path {path} works: {problem}")))
    }

    /// Everything is acknowledged, and both ends agree about what was sent.
    fn settle(&mut self) -> Result<(), String> {
        let end = self.fixture.net.now + PATIENCE;
        let mut problem = None;
        while self.fixture.net.now < end && !self.is_over() {
            self.keep_warm();
            problem = unsettled(&mut self.fixture)?;
            if problem.is_none() {
                return Ok(());
            }
            self.step(Duration::from_millis(100))?;
        }
        if self.is_over() {
            return Ok(());
        }
        Err(format!("not settled in a calm network: {}", problem.unwrap_or_default()))
    }

    /// The client keeps its paths warm, the server leaves that to it.
    fn keep_warm(&mut self) {
        for (side, period) in [(Side::Client, Some(WARM)), (Side::Server, None)] {
            let Some(connection) = self.fixture.connection(side) else { continue };
            for path in connection.path_ids() {
                let _closed_meanwhile = connection.set_path_keep_alive(path, period);
            }
        }
    }

    fn close(&mut self) {
        let (closer, now) = (self.closer, self.fixture.net.now);
        if let Some(connection) = self.fixture.connection(closer) {
            if connection.path_ids().is_empty() {
                // All were abandoned a moment ago: nothing can be said any more.
                self.closing = true;
            }
            connection.close(7, b"bye", now);
        }
    }

    /// Checks that after a close in a calm network the peer knows who closed, and with which code.
    fn check_clean_end(&mut self) -> Result<(), String> {
        let ends = Side::BOTH.map(|side| self.player.closed(side));
        let (closer, other) = (ends[index(self.closer)], ends[1 - index(self.closer)]);
        match (closer, other) {
            _ if self.closing => Ok(()),
            (
                Some(ConnectionError::LocallyClosed { code: 7 }),
                Some(ConnectionError::PeerApplication { code: 7, .. }),
            ) => Ok(()),
            _ if ends.iter().flatten().any(|end| is_without_path(end) || self.is_permitted(end)) => Ok(()),
            ends => Err(format!("both ends disagree about a close: {ends:?}")),
        }
    }

    /// Checks that the errors of the two ends fit together, whoever closed.
    fn check_ends(&self) -> Result<(), String> {
        let ends = Side::BOTH.map(|side| self.player.closed(side));
        let told = ends.iter().flatten().all(|end| self.is_expected(end));
        let agree = match ends {
            [Some(a), Some(b)] => fit(a, b) && fit(b, a),
            _ => true,
        };
        if told && agree { Ok(()) } else { Err(format!("the connection ended with {ends:?}")) }
    }

    /// Returns true if the connection ended because keys that wear out early could not be updated in time.
    fn is_worn_out(&self, end: &ConnectionError) -> bool {
        let (ConnectionError::Transport(error) | ConnectionError::PeerTransport(error)) = end else {
            return false;
        };
        error.code == ErrorCode::AEAD_LIMIT_REACHED && self.wear != [None; 2]
    }

    /// Returns true if the server may end the connection so in this world.
    fn is_permitted(&self, end: &ConnectionError) -> bool {
        // RFC 9000 §8.1.2: the answer to a Retry came when its token had expired.
        let expired =
            matches!(end, ConnectionError::PeerTransport(error) if error.code == ErrorCode::INVALID_TOKEN);
        self.is_worn_out(end) || expired && self.door != Reception::Open
    }

    fn is_expected(&self, end: &ConnectionError) -> bool {
        if self.is_permitted(end) {
            return true;
        }
        match end {
            ConnectionError::LocallyClosed { .. } | ConnectionError::PeerApplication { .. } => true,
            ConnectionError::Transport(error) => error.code == ErrorCode::NO_VIABLE_PATH,
            ConnectionError::PeerTransport(error) => {
                // RFC 9000 §10.2.3: what an application says before the handshake is over is hidden.
                error.code == ErrorCode::NO_VIABLE_PATH || error.code == ErrorCode::APPLICATION_ERROR
            }
            // The close was lost, or the path that it went on was gone.
            ConnectionError::IdleTimeout | ConnectionError::HandshakeTimeout => self.is_over(),
            ConnectionError::StatelessReset => self.is_over(),
            ConnectionError::VersionMismatch => false,
        }
    }

    /// Both ends free all that they held.
    fn forget(&mut self) -> Result<(), String> {
        let end = self.fixture.net.now + FORGETTING;
        loop {
            let left = Side::BOTH.map(|side| self.fixture.net.end(side).endpoint.handles().count());
            if left == [0, 0] {
                return Ok(());
            }
            if self.fixture.net.now >= end {
                return Err(format!("connections {left:?} were never forgotten"));
            }
            self.step(Duration::from_secs(5))?;
        }
    }
}

fn is_without_path(end: &ConnectionError) -> bool {
    match end {
        ConnectionError::Transport(error) | ConnectionError::PeerTransport(error) => {
            error.code == ErrorCode::NO_VIABLE_PATH
        }
        _ => false,
    }
}

/// Returns true if the peer of an end that ended like `a` may have ended like `b`.
fn fit(a: &ConnectionError, b: &ConnectionError) -> bool {
    use ConnectionError::{LocallyClosed, PeerApplication, PeerTransport, Transport};
    match (a, b) {
        (PeerApplication { code, .. }, LocallyClosed { code: meant }) => code == meant,
        (PeerApplication { .. }, _) => false,
        (PeerTransport(error), Transport(meant)) => error.code == meant.code,
        (PeerTransport(error), LocallyClosed { .. }) => error.code == ErrorCode::APPLICATION_ERROR,
        (PeerTransport(_), _) => false,
        _ => true,
    }
}
