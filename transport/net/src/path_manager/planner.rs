//! Plans: which paths to open, move and give up, from the links, the rules and the paths that are open.
//!
//! The planner reads no clock and does no I/O: whoever carries out a plan tells it what came of that.

mod attempts;
#[cfg(test)]
mod properties;
mod seats;
#[cfg(test)]
mod tests;

use self::attempts::Attempts;
use self::seats::{Seat, Seats};
use super::assess::{Assessment, Settings, Way, Wishes, assess};
use super::status::{LinkStatus, LinkUse, Reason};
use crate::links::{Link, LinkState};
use crate::paths::GONE;
use crate::{PathId, PathOptions, PathState};
use hvq_transport::time::Instant;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// The code of PATH_ABANDON for a path that is not wanted any more.
pub(crate) const UNWANTED: u64 = 0;

/// The place from which a path starts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    /// An address.
    Address(IpAddr),
    /// An interface, of which the system chooses the address.
    Device(String),
    /// No place of its own: the system's routes lead there from this address now.
    Routed(Option<IpAddr>),
}

/// A path that is open.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct OpenPath {
    /// The path.
    pub(crate) id: PathId,
    /// The place from which it starts.
    pub(crate) origin: Origin,
    /// The address of the peer.
    pub(crate) remote: SocketAddr,
    /// The state of the path.
    pub(crate) state: PathState,
}

/// Tells what the peer permits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Capacity {
    /// Several paths.
    Several,
    /// One, which may move.
    One,
}

/// A path to be opened.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Opening {
    /// The number of the interface.
    pub(crate) link: u32,
    /// The path.
    pub(crate) options: PathOptions,
    /// Its properties.
    pub(crate) settings: Settings,
}

/// A thing to do.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Action {
    /// Open a path, then tell [`Planner::opened`] or [`Planner::refused`].
    Open(Opening),
    /// Move a path, then tell [`Planner::moving`] or [`Planner::refused`].
    Move {
        /// The number of the interface that it is to use.
        link: u32,
        /// The path.
        path: PathId,
        /// The place to which it moves.
        to: PathOptions,
        /// The manner in which it moves.
        manner: Manner,
    },
    /// Give a path up with this code.
    Abandon {
        /// The path.
        path: PathId,
        /// The code of PATH_ABANDON.
        code: u64,
    },
    /// Give a path other properties.
    Configure {
        /// The path.
        path: PathId,
        /// The properties.
        settings: Settings,
    },
    /// Ask at once whether a path answers.
    Probe {
        /// The path.
        path: PathId,
    },
}

/// The manner in which a path moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Manner {
    /// Once the peer has answered: the path works where it is.
    Validated,
    /// Now: it does not.
    AtOnce,
}

/// The reason for which an action was not carried out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    /// The peer has yet to permit another path.
    Limit,
    /// The connection is not ready for it yet.
    Early,
    /// An error, which counts as a failure of the link.
    Error(String),
}

/// A plan.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Plan {
    /// The things to do, in order.
    pub(crate) actions: Vec<Action>,
    /// The time at which to plan again though nothing happened.
    pub(crate) wake: Option<Instant>,
    /// The part that each link plays.
    pub(crate) links: Vec<LinkStatus>,
}

/// A planner of the paths of one connection.
#[derive(Debug)]
pub(crate) struct Planner {
    seats: Seats,
    attempts: Attempts,
    /// The time until which the peer permits no further path, unless it says so before.
    limited_until: Instant,
}

/// The state of the connection that a plan is for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Situation<'a> {
    /// The open paths.
    pub(crate) paths: &'a [OpenPath],
    /// The number of paths that the peer permits.
    pub(crate) capacity: Capacity,
    /// Now.
    pub(crate) now: Instant,
}

/// A plan in the making.
struct Draft<'a> {
    assessment: Assessment<'a>,
    situation: Situation<'a>,
    plan: Plan,
}

impl Planner {
    /// A planner that knows of no paths and has made no attempts.
    pub(crate) fn new() -> Self {
        Self { seats: Seats::default(), attempts: Attempts::default(), limited_until: Instant::ZERO }
    }

    /// The next things to do.
    pub(crate) fn plan(&mut self, wishes: &Wishes<'_>, situation: Situation<'_>) -> Plan {
        let wishes = match situation.capacity {
            Capacity::Several => *wishes,
            Capacity::One => Wishes { most: 1, ..*wishes },
        };
        let revived = self.attempts.follow(wishes.links, situation.now);
        for link in self.seats.follow(wishes.links, situation) {
            self.attempts.fail(
                link,
                "nothing came back over the path, or it ended".to_owned(),
                situation.now,
            );
        }
        let mut draft = Draft { assessment: assess(&wishes), situation, plan: Plan::default() };
        for link in revived {
            let probes = self.seats.on(link).map(|(path, _)| Action::Probe { path });
            draft.plan.actions.extend(probes);
        }
        self.seats.note_lasting(situation, |link, since| self.attempts.succeed(link, since));
        self.keep(&mut draft);
        self.fill(&mut draft);
        self.leave(&mut draft);
        self.describe(&mut draft);
        draft.plan
    }

    /// Gives paths that stay the addresses and properties that they should have.
    fn keep(&mut self, draft: &mut Draft<'_>) {
        let several = draft.assessment.wanted.len() > 1;
        for wanted in &draft.assessment.wanted {
            let Some((path, seat)) = self.seats.serving(wanted) else { continue };
            let way = seat.way_among(wanted);
            let (origin, configured, is_moving) = (&seat.origin, seat.settings, seat.target.is_some());
            let is_lost = matches!(origin, Origin::Address(address) if !wanted.link.has(*address));
            // A path that goes where the routes lead must not follow them onto the link of another.
            let floats = matches!(origin, Origin::Routed(_)) && several;
            let Some(way) = way else { continue };
            if (is_lost || floats) && !is_moving {
                let manner = if is_lost { Manner::AtOnce } else { Manner::Validated };
                let step = Step { path, link: wanted.link, way: &way, manner };
                self.attempt(step, &mut draft.plan, draft.situation.now);
            }
            // What nobody has a rule for stays as it is.
            let settings = way.settings();
            if configured != Some(settings) && (configured.is_some() || way.rule.is_some()) {
                draft.plan.actions.push(Action::Configure { path, settings });
            }
        }
    }

    /// Opens paths over links that are wanted and have none, or moves to them what cannot stay.
    fn fill(&mut self, draft: &mut Draft<'_>) {
        let now = draft.situation.now;
        let mut strays = self.strays(draft);
        for wanted in &draft.assessment.wanted {
            // A path that is moving there has its place already.
            if self.seats.serving(wanted).is_some() || self.seats.is_awaited(wanted.link.index) {
                continue;
            }
            if let Some(at) = self.attempts.next(wanted.link.index, now) {
                draft.plan.wake = earliest(draft.plan.wake, at);
                continue;
            }
            let way = &wanted.ways[self.attempts.turn(wanted.link.index, wanted.ways.len())];
            let is_full = draft.situation.capacity == Capacity::One || self.limited_until > now;
            if !is_full {
                self.attempts.begin(wanted.link.index, now);
                let (options, settings) = (way.options(wanted.link), way.settings());
                let opening = Opening { link: wanted.link.index, options, settings };
                draft.plan.actions.push(Action::Open(opening));
                continue;
            }
            if draft.situation.capacity == Capacity::Several {
                draft.plan.wake = earliest(draft.plan.wake, self.limited_until);
            }
            let movable = |stray: &Stray| stray.is_dead || draft.situation.capacity == Capacity::One;
            if let Some(place) = strays.iter().position(movable) {
                let stray = strays.swap_remove(place);
                let manner = if stray.is_dead { Manner::AtOnce } else { Manner::Validated };
                let step = Step { path: stray.path, link: wanted.link, way, manner };
                self.attempt(step, &mut draft.plan, now);
            }
        }
    }

    /// Has a path moved, unless it is too early for that.
    fn attempt(&mut self, step: Step<'_>, plan: &mut Plan, now: Instant) {
        let link = step.link.index;
        if let Some(at) = self.attempts.next(link, now) {
            plan.wake = earliest(plan.wake, at);
            return;
        }
        self.attempts.begin(link, now);
        let to = step.way.options(step.link);
        plan.actions.push(Action::Move { link, path: step.path, to, manner: step.manner });
    }

    /// Gives up paths that should not be, once another one works that should: make before break.
    fn leave(&mut self, draft: &mut Draft<'_>) {
        let strays = self.strays(draft);
        let works = |path: &OpenPath| {
            path.state == PathState::Validated && strays.iter().all(|stray| stray.path != path.id)
        };
        if !draft.situation.paths.iter().any(works) {
            return;
        }
        for stray in strays {
            let code = if stray.is_dead { GONE } else { UNWANTED };
            self.seats.leave(stray.path);
            draft.plan.actions.push(Action::Abandon { path: stray.path, code });
        }
    }

    /// The paths that no wanted link has a place for.
    fn strays(&self, draft: &Draft<'_>) -> Vec<Stray> {
        let links = draft.assessment.links();
        let stray = |(path, seat): (PathId, &Seat)| {
            if seat.target.is_some() {
                return None;
            }
            let wanted = draft.assessment.wanted.iter().find(|wanted| Some(wanted.link.index) == seat.link);
            if wanted.and_then(|wanted| self.seats.serving(wanted)).is_some_and(|(id, _)| id == path) {
                return None;
            }
            let link = links.iter().find(|link| Some(link.index) == seat.link);
            Some(Stray { path, is_dead: link.is_none_or(|link| !seat.lives_on(link)) })
        };
        self.seats.staying().filter_map(stray).collect()
    }

    /// Says what part each link plays.
    fn describe(&self, draft: &mut Draft<'_>) {
        let unused = draft.assessment.unused.iter().map(|(link, reason)| (*link, reason.clone(), None));
        let wanted = draft.assessment.wanted.iter().map(|wanted| {
            let link = wanted.link;
            (link, self.reason(link.index, draft.situation), wanted.rule())
        });
        let mut links: Vec<LinkStatus> = wanted
            .chain(unused)
            .map(|(link, reason, rule)| LinkStatus {
                name: link.name.clone(),
                index: link.index,
                kind: link.kind,
                usage: self.usage(link.index, draft.situation).unwrap_or(LinkUse::Unused(reason)),
                rule,
            })
            .collect();
        links.sort_by_key(|link| link.index);
        draft.plan.links = links;
    }

    fn usage(&self, link: u32, situation: Situation<'_>) -> Option<LinkUse> {
        let (id, seat) = self.seats.first_on(link)?;
        let path = situation.paths.iter().find(|path| path.id == id)?;
        let local = match seat.origin {
            Origin::Address(address) => Some(address),
            Origin::Device(_) | Origin::Routed(_) => None,
        };
        Some(LinkUse::Path { id, state: path.state, local })
    }

    /// The reason for which a link that is wanted has no path.
    fn reason(&self, link: u32, situation: Situation<'_>) -> Reason {
        if let Some((failures, error)) = self.attempts.failures(link) {
            return Reason::Failed { failures, error: error.to_owned() };
        }
        match situation.capacity {
            Capacity::One => Reason::SinglePath,
            Capacity::Several if self.limited_until > situation.now => Reason::PeerLimit,
            Capacity::Several => Reason::Pending,
        }
    }

    /// The path `id` was opened as an action said.
    pub(crate) fn opened(&mut self, id: PathId, opening: &Opening) {
        self.seats.take(id, opening);
    }

    /// The path `id` is on its way to `to`, an address of `link`.
    pub(crate) fn moving(&mut self, id: PathId, link: u32, to: IpAddr, now: Instant) {
        self.seats.aim(id, link, to, now);
    }

    /// A path did not get to where it moved. Returns the interface that it did not get to.
    pub(crate) fn move_failed(&mut self, id: PathId, now: Instant) -> Option<u32> {
        let link = self.seats.miss(id)?;
        self.attempts.fail(link, "the peer did not answer at the new address".to_owned(), now);
        Some(link)
    }

    /// An action for `link` was not carried out.
    pub(crate) fn refused(&mut self, link: u32, refusal: &Refusal, now: Instant) {
        match refusal {
            Refusal::Limit => {
                self.limited_until = now + LIMITED;
                self.attempts.postpone(link, now);
            }
            Refusal::Early => self.attempts.postpone(link, now + EARLY),
            Refusal::Error(error) => self.attempts.fail(link, error.clone(), now),
        }
    }

    /// A path has the properties that an action gave it.
    pub(crate) fn configured(&mut self, id: PathId, settings: Settings) {
        self.seats.configure(id, settings);
    }

    /// The peer permits another path.
    pub(crate) fn permitted(&mut self) {
        self.limited_until = Instant::ZERO;
    }

    /// A path was not given up after all.
    pub(crate) fn stays(&mut self, id: PathId) {
        self.seats.stay(id);
    }

    /// Returns true if the path was given up by a plan.
    pub(crate) fn is_left(&self, id: PathId) -> bool {
        self.seats.is_left(id)
    }

    /// The number of the interface that a path uses.
    pub(crate) fn link_of(&self, id: PathId) -> Option<u32> {
        self.seats.link_of(id)
    }

    /// The time since `link` became usable.
    pub(crate) fn usable_for(&self, link: u32, now: Instant) -> Duration {
        self.attempts.usable_since(link).map(|since| now.since(since)).unwrap_or_default()
    }
}

/// The time after which a peer that permits no further path is asked again.
const LIMITED: Duration = Duration::from_secs(1);
/// The time after which a connection that was not ready is tried again.
const EARLY: Duration = Duration::from_millis(50);

/// A move to be made.
#[derive(Clone, Copy, Debug)]
struct Step<'a> {
    path: PathId,
    link: &'a Link,
    way: &'a Way<'a>,
    manner: Manner,
}

/// A path that should not be.
#[derive(Clone, Copy, Debug)]
struct Stray {
    path: PathId,
    /// Nothing can come over it: its link or its address is gone.
    is_dead: bool,
}

impl<'a> Assessment<'a> {
    fn links(&self) -> Vec<&'a Link> {
        let wanted = self.wanted.iter().map(|wanted| wanted.link);
        wanted.chain(self.unused.iter().map(|(link, _)| *link)).collect()
    }
}

impl Seat {
    /// Returns true if packets could come over the path through `link`.
    fn lives_on(&self, link: &Link) -> bool {
        let has_address = match &self.origin {
            Origin::Address(address) => link.has(*address),
            Origin::Device(_) | Origin::Routed(_) => true,
        };
        link.state == LinkState::Up && has_address
    }
}

fn earliest(known: Option<Instant>, other: Instant) -> Option<Instant> {
    Some(known.map_or(other, |known| known.min(other)))
}
