//! The places of paths on links.

use super::{OpenPath, Opening, Origin, Situation};
use crate::links::Link;
use crate::path_manager::assess::{Settings, Wanted, Way};
use crate::{LocalAddress, PathId, PathState};
use hvq_transport::time::Instant;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// A path that has worked for so long makes up for earlier failures of its link.
const LASTING: Duration = Duration::from_secs(10);
/// The longest time that a move takes: the transport ends it before.
const LONGEST_MOVE: Duration = Duration::from_secs(30);

/// The place to which a path is moving.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Target {
    /// The number of the interface.
    link: u32,
    /// The address.
    address: IpAddr,
    /// The time at which the move is over, whatever was heard of it.
    until: Instant,
}

/// The place of a path.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Seat {
    /// The number of the interface; `None` if its address belongs to none.
    pub(super) link: Option<u32>,
    /// The place from which it starts.
    pub(super) origin: Origin,
    /// The address of the peer.
    pub(super) remote: SocketAddr,
    /// The properties that it was given; `None` if somebody else opened it.
    pub(super) settings: Option<Settings>,
    /// The interface and address that it is moving to.
    pub(super) target: Option<Target>,
    /// It has been given up.
    is_left: bool,
    /// The time since which it works.
    works_since: Option<Instant>,
}

impl Seat {
    /// The way among those over a link that the path uses: its own, else one to the same address of the peer, else one of
    /// the same IP version.
    pub(super) fn way_among<'a>(&self, wanted: &Wanted<'a>) -> Option<Way<'a>> {
        let same_end = || wanted.ways.iter().filter(|way| way.remote == self.remote);
        let own = same_end().find(|way| Origin::Address(way.local) == self.origin);
        own.or_else(|| same_end().next()).cloned()
    }
}

/// The places of all paths.
#[derive(Debug, Default)]
pub(super) struct Seats {
    seats: BTreeMap<PathId, Seat>,
}

impl Seats {
    /// Takes note of the open paths. Returns the interfaces whose paths ended, though they were not given up, or turned
    /// back.
    pub(super) fn follow(&mut self, links: &[Link], situation: Situation<'_>) -> Vec<u32> {
        let (paths, mut failed) = (situation.paths, Vec::new());
        self.seats.retain(|id, seat| {
            let is_open = paths.iter().any(|path| path.id == *id);
            if !is_open && !seat.is_left {
                failed.extend(seat.target.map(|target| target.link).or(seat.link));
            }
            is_open
        });
        for path in paths {
            let found = || find(links, &path.origin);
            let Some(seat) = self.seats.get_mut(&path.id) else {
                self.seats.insert(path.id, Seat::adopted(path, found()));
                continue;
            };
            let late = seat.target.take_if(|target| target.until <= situation.now);
            failed.extend(late.map(|target| target.link));
            let arrived = seat.target.take_if(|target| path.origin == Origin::Address(target.address));
            if let Some(target) = arrived {
                seat.link = Some(target.link);
            } else if seat.origin != path.origin || matches!(path.origin, Origin::Routed(_)) {
                seat.link = found();
            }
            seat.origin = path.origin.clone();
            seat.remote = path.remote;
        }
        failed
    }

    /// Tells `lasting` of the links whose paths have worked for long, and since when.
    pub(super) fn note_lasting(&mut self, situation: Situation<'_>, mut lasting: impl FnMut(u32, Instant)) {
        for path in situation.paths {
            let Some(seat) = self.seats.get_mut(&path.id) else { continue };
            if path.state != PathState::Validated {
                seat.works_since = None;
                continue;
            }
            let since = *seat.works_since.get_or_insert(situation.now);
            if let (Some(link), true) = (seat.link, situation.now.since(since) >= LASTING) {
                lasting(link, since);
            }
        }
    }

    /// A path was opened.
    pub(super) fn take(&mut self, id: PathId, opening: &Opening) {
        let options = &opening.options;
        let origin = match &options.local {
            LocalAddress::Link(local) => Origin::Address(local.address),
            LocalAddress::Ip(address) => Origin::Address(*address),
            LocalAddress::Socket(address) => Origin::Address(address.ip()),
            LocalAddress::Interface(name) => Origin::Device(name.clone()),
        };
        let remote = options.remote.expect("a way has both ends");
        let mut seat = Seat::at(origin, remote, Some(opening.link));
        seat.settings = Some(opening.settings);
        self.seats.insert(id, seat);
    }

    /// A path is on its way.
    pub(super) fn aim(&mut self, id: PathId, link: u32, address: IpAddr, now: Instant) {
        if let Some(seat) = self.seats.get_mut(&id) {
            seat.target = Some(Target { link, address, until: now + LONGEST_MOVE });
        }
    }

    /// A path did not get to where it was going; returns where that is.
    pub(super) fn miss(&mut self, id: PathId) -> Option<u32> {
        let seat = self.seats.get_mut(&id)?;
        seat.target.take().map(|target| target.link).or(seat.link)
    }

    /// A path is given up.
    pub(super) fn leave(&mut self, id: PathId) {
        if let Some(seat) = self.seats.get_mut(&id) {
            seat.is_left = true;
        }
    }

    /// A path is not given up.
    pub(super) fn stay(&mut self, id: PathId) {
        if let Some(seat) = self.seats.get_mut(&id) {
            seat.is_left = false;
        }
    }

    /// Returns true if a path was given up.
    pub(super) fn is_left(&self, id: PathId) -> bool {
        self.seats.get(&id).is_some_and(|seat| seat.is_left)
    }

    /// A path has these properties.
    pub(super) fn configure(&mut self, id: PathId, settings: Settings) {
        if let Some(seat) = self.seats.get_mut(&id) {
            seat.settings = Some(settings);
        }
    }

    /// The paths that were not given up.
    pub(super) fn staying(&self) -> impl Iterator<Item = (PathId, &Seat)> {
        self.seats.iter().filter(|(_, seat)| !seat.is_left).map(|(id, seat)| (*id, seat))
    }

    /// Those of them on `link`.
    pub(super) fn on(&self, link: u32) -> impl Iterator<Item = (PathId, &Seat)> {
        self.staying().filter(move |(_, seat)| seat.link == Some(link))
    }

    /// The one on `link` that was opened first and was not given up.
    pub(super) fn first_on(&self, link: u32) -> Option<(PathId, &Seat)> {
        self.on(link).next()
    }

    /// The one over the link of `wanted`: the first that can be.
    pub(super) fn serving(&self, wanted: &Wanted<'_>) -> Option<(PathId, &Seat)> {
        self.on(wanted.link.index).find(|(_, seat)| seat.way_among(wanted).is_some())
    }

    /// Returns true if a path is moving to `link`.
    pub(super) fn is_awaited(&self, link: u32) -> bool {
        self.staying().any(|(_, seat)| seat.target.is_some_and(|target| target.link == link))
    }

    /// The interface that a path uses.
    pub(super) fn link_of(&self, id: PathId) -> Option<u32> {
        self.seats.get(&id)?.link
    }
}

impl Seat {
    fn adopted(path: &OpenPath, link: Option<u32>) -> Self {
        Self::at(path.origin.clone(), path.remote, link)
    }

    fn at(origin: Origin, remote: SocketAddr, link: Option<u32>) -> Self {
        Self { link, origin, remote, settings: None, target: None, is_left: false, works_since: None }
    }
}

/// The interface that something that starts at `origin` leaves through.
fn find(links: &[Link], origin: &Origin) -> Option<u32> {
    let is_it = |link: &&Link| match origin {
        Origin::Address(address) | Origin::Routed(Some(address)) => link.has(*address),
        Origin::Device(name) => link.name == *name,
        Origin::Routed(None) => false,
    };
    links.iter().find(is_it).map(|link| link.index)
}
