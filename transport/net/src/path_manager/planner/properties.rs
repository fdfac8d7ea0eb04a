//! Properties of plans for random events of links: a link has one path, attempts are few, and in the end each link that works
//! has its path.

use super::*;
use crate::LocalAddress;
use crate::path_manager::budget::Spending;
use crate::path_manager::fixture::{Shape, remote};
use crate::path_manager::rules::Rules;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// The time after which the peer has answered over a path that works.
const ANSWER: Duration = Duration::from_millis(50);
/// The time after which one that does not is over.
const SILENCE: Duration = Duration::from_secs(3);
/// Interfaces.
const SLOTS: usize = 4;
/// Paths that the peer permits at the same time.
const LIMIT: usize = 5;

/// Something that happens to an interface.
#[derive(Clone, Copy, Debug)]
enum Change {
    Down,
    Up,
    Remove,
    Make,
    Renumber,
    Deafen,
    Hear,
}

#[derive(Clone, Copy, Debug)]
struct Event {
    slot: usize,
    change: Change,
    /// Milliseconds until the next.
    wait: u64,
}

fn event() -> impl Strategy<Value = Event> {
    use Change::{Deafen, Down, Hear, Make, Remove, Renumber, Up};
    let change = prop::sample::select(vec![Down, Up, Remove, Make, Renumber, Deafen, Hear]);
    let wait = prop_oneof![0..100_u64, 100..5_000_u64];
    (0..SLOTS, change, wait).prop_map(|(slot, change, wait)| Event { slot, change, wait })
}

/// An interface, and whether the peer can be reached through it.
struct Slot {
    link: Option<Link>,
    is_deaf: bool,
}

/// A path as the network has it.
struct Path {
    open: OpenPath,
    /// The interface that it is bound to.
    index: u32,
    since: Instant,
    /// The place to which it goes back if the peer does not answer.
    before: Option<(u32, Origin)>,
}

struct World {
    planner: Planner,
    slots: Vec<Slot>,
    paths: BTreeMap<PathId, Path>,
    rules: Rules,
    now: Instant,
    next_id: u32,
    next_index: u32,
    host: u8,
    opens: BTreeMap<u32, u32>,
}

impl World {
    fn new(rules: &str) -> Self {
        let slot = |index: usize| {
            let link = Shape::new(index as u32 + 1, &format!("if{index}")).link();
            Slot { link: Some(link), is_deaf: false }
        };
        let slots: Vec<Slot> = (0..SLOTS).map(slot).collect();
        let mut world = Self {
            planner: Planner::new(),
            slots,
            paths: BTreeMap::new(),
            rules: rules.parse().unwrap(),
            now: Instant::ZERO,
            next_id: 1,
            next_index: SLOTS as u32 + 1,
            host: 2,
            opens: BTreeMap::new(),
        };
        let origin = Origin::Address([10, 0, 1, 2].into());
        let open = OpenPath { id: PathId(0), origin, remote: remote(), state: PathState::Validated };
        world.paths.insert(PathId(0), Path { open, index: 1, since: world.now, before: None });
        world
    }

    fn links(&self) -> Vec<Link> {
        let mut links: Vec<Link> = self.slots.iter().filter_map(|slot| slot.link.clone()).collect();
        links.sort_by_key(|link| link.index);
        links
    }

    fn happen(&mut self, event: Event) {
        let host = self.host;
        let slot = &mut self.slots[event.slot];
        match (event.change, &mut slot.link) {
            (Change::Down, Some(link)) => link.state = LinkState::Down,
            (Change::Up, Some(link)) => link.state = LinkState::Up,
            (Change::Remove, link) => *link = None,
            (Change::Make, link @ None) => {
                *link = Some(Shape::new(self.next_index, &format!("if{}", event.slot)).link());
                self.next_index += 1;
            }
            (Change::Renumber, Some(link)) => {
                let index = link.index;
                *link = Link { state: link.state, ..Shape::new(index, &link.name).host(host).link() };
                self.host = 2 + (self.host + 1) % 200;
            }
            (Change::Deafen, _) => slot.is_deaf = true,
            (Change::Hear, _) => slot.is_deaf = false,
            _ => {}
        }
    }

    fn works(&self, path: &Path) -> bool {
        let Origin::Address(address) = path.open.origin else { return false };
        self.slots.iter().any(|slot| {
            let is_here =
                |link: &Link| link.index == path.index && link.state == LinkState::Up && link.has(address);
            !slot.is_deaf && slot.link.as_ref().is_some_and(is_here)
        })
    }

    /// The network goes on until `now`.
    fn advance(&mut self) {
        let ids: Vec<PathId> = self.paths.keys().copied().collect();
        for id in ids {
            let (works, age) = (self.works(&self.paths[&id]), self.now.since(self.paths[&id].since));
            let is_last = self.paths.len() == 1;
            let path = self.paths.get_mut(&id).unwrap();
            match (path.open.state, works) {
                (PathState::Validating, true) if age >= ANSWER => {
                    (path.open.state, path.before) = (PathState::Validated, None);
                }
                (PathState::Validating, false) if age >= SILENCE => match path.before.take() {
                    Some((index, origin)) => {
                        (path.index, path.open.origin) = (index, origin);
                        path.open.state = PathState::Silent;
                        self.planner.move_failed(id, self.now);
                    }
                    None if !is_last => drop(self.paths.remove(&id)),
                    None => path.open.state = PathState::Silent,
                },
                (PathState::Validated, false) => path.open.state = PathState::Silent,
                (PathState::Silent, true) => path.open.state = PathState::Validated,
                _ => {}
            }
        }
    }

    fn plan(&mut self) -> Plan {
        let (links, spending) = (self.links(), Spending::default());
        let paths: Vec<OpenPath> = self.paths.values().map(|path| path.open.clone()).collect();
        let wishes = Wishes {
            links: &links,
            rules: &self.rules,
            remotes: &[remote()],
            most: SLOTS,
            spending: &spending,
            calendar: Duration::ZERO,
        };
        self.planner.plan(&wishes, Situation { paths: &paths, capacity: Capacity::Several, now: self.now })
    }

    /// Plans and carries out, as long as there is something to do. Returns the time to wake.
    fn settle(&mut self) -> Option<Instant> {
        for _ in 0..20 {
            self.advance();
            let plan = self.plan();
            let is_done = plan.actions.is_empty();
            for action in plan.actions {
                self.carry_out(action);
            }
            if is_done {
                return plan.wake;
            }
        }
        panic!("it plans without end");
    }

    fn carry_out(&mut self, action: Action) {
        match action {
            Action::Open(opening) => {
                let link = opening.link;
                *self.opens.entry(link).or_default() += 1;
                if self.paths.len() >= LIMIT {
                    return self.planner.refused(link, &Refusal::Limit, self.now);
                }
                let (id, remote) = (PathId(self.next_id), remote());
                self.next_id += 1;
                let origin = Origin::Address(address(&opening.options));
                let open = OpenPath { id, origin, remote, state: PathState::Validating };
                self.paths.insert(id, Path { open, index: link, since: self.now, before: None });
                self.planner.opened(id, &opening);
            }
            Action::Move { link, path: id, to, manner } => {
                *self.opens.entry(link).or_default() += 1;
                assert_eq!(manner, Manner::AtOnce, "no path floats here");
                let path = self.paths.get_mut(&id).expect("it moves what there is");
                let origin = Origin::Address(address(&to));
                path.before = Some((path.index, std::mem::replace(&mut path.open.origin, origin)));
                (path.index, path.since, path.open.state) = (link, self.now, PathState::Validating);
                self.planner.moving(id, link, address(&to), self.now);
            }
            Action::Abandon { path, .. } => {
                assert!(self.paths.remove(&path).is_some(), "it gives up what there is");
                let works = |path: &Path| path.open.state == PathState::Validated;
                assert!(self.paths.values().any(works), "make before break");
            }
            Action::Configure { path, settings } => self.planner.configured(path, settings),
            Action::Probe { path } => assert!(self.paths.contains_key(&path)),
        }
        self.check();
    }

    /// No interface has two paths from addresses that it has. One whose address is gone, or that went back to where it was,
    /// may be there until another works.
    fn check(&self) {
        let links = self.links();
        let is_at_home = |path: &&Path| {
            let has = |address| links.iter().any(|link| link.index == path.index && link.has(address));
            matches!(path.open.origin, Origin::Address(address) if has(address))
        };
        let mut seen: Vec<u32> = self.paths.values().filter(is_at_home).map(|path| path.index).collect();
        let count = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), count, "two paths over one link");
    }

    /// Lets time pass until `until`, waking as planned.
    fn run(&mut self, until: Instant) {
        while self.now < until {
            let wake = self.settle().unwrap_or(until);
            let soon = self.now + ANSWER;
            self.now = wake.max(self.now + Duration::from_millis(1)).min(soon).min(until);
        }
        self.settle();
    }
}

fn address(options: &PathOptions) -> IpAddr {
    match &options.local {
        LocalAddress::Link(local) => local.address,
        other => panic!("{other}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn every_story_of_links_ends_well(
        events in prop::collection::vec(event(), 0..40),
        rules in prop::sample::select(vec!["", "if1=backup", "if1=never", "if2=metered\nif3=never"]),
    ) {
        let mut world = World::new(rules);
        world.settle();
        for event in events {
            world.happen(event);
            world.run(world.now + Duration::from_millis(event.wait));
        }
        // At most two attempts a second at each interface, and no burst of them.
        let seconds = world.now.since(Instant::ZERO).as_secs_f64();
        for (link, opens) in &world.opens {
            prop_assert!(f64::from(*opens) <= 2.0 * seconds + 4.0, "{opens} at {link} in {seconds} s");
        }
        world.slots.iter_mut().for_each(|slot| slot.is_deaf = false);
        world.opens.clear();
        world.run(world.now + Duration::from_secs(200));
        let wanted: Vec<u32> = world
            .links()
            .iter()
            .filter(|link| link.state == LinkState::Up && !rules.contains(&format!("{}=never", link.name)))
            .map(|link| link.index)
            .collect();
        let mut used: Vec<u32> = world.paths.values().map(|path| path.index).collect();
        used.sort_unstable();
        if !wanted.is_empty() {
            prop_assert_eq!(&used, &wanted);
            prop_assert!(world.paths.values().all(|path| path.open.state == PathState::Validated));
        } else {
            prop_assert!(!used.is_empty(), "without any link the last paths stay");
        }
        let tried: u32 = world.opens.values().sum();
        prop_assert!(tried <= 20, "{tried} attempts though nothing changed");
    }
}
