//! Plans when links come, go and change.

use super::*;
use crate::LocalAddress;
use crate::path::Status;
use crate::path_manager::budget::Spending;
use crate::path_manager::fixture::{Shape, remote};
use crate::path_manager::rules::Rules;

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// A planner with what it plans for.
struct World {
    planner: Planner,
    links: Vec<Link>,
    rules: Rules,
    paths: Vec<OpenPath>,
    capacity: Capacity,
}

impl World {
    /// Path 0 over the first of `links`, validated.
    fn new(links: Vec<Link>) -> Self {
        let mut world = Self {
            planner: Planner::new(),
            links,
            rules: Rules::default(),
            paths: Vec::new(),
            capacity: Capacity::Several,
        };
        world.paths.push(world.path(0, 0));
        world
    }

    fn path(&self, id: u32, link: usize) -> OpenPath {
        let origin = Origin::Address(self.links[link].addresses[0].addr());
        OpenPath { id: PathId(id), origin, remote: remote(), state: PathState::Validated }
    }

    fn plan(&mut self, now: Instant) -> Plan {
        let wishes = Wishes {
            links: &self.links,
            rules: &self.rules,
            remotes: &[remote()],
            most: 4,
            spending: &Spending::default(),
            calendar: Duration::ZERO,
        };
        self.planner.plan(&wishes, Situation { paths: &self.paths, capacity: self.capacity, now })
    }

    /// Opens the path that is planned as `id`, validated.
    fn open(&mut self, plan: &Plan, id: u32) {
        let Some(Action::Open(opening)) = plan.actions.first() else {
            panic!("no path is opened: {plan:?}");
        };
        self.planner.opened(PathId(id), opening);
        let index = self.links.iter().position(|known| known.index == opening.link).unwrap();
        self.paths.push(self.path(id, index));
    }
}

fn opened(plan: &Plan) -> Vec<u32> {
    let link = |action: &Action| match action {
        Action::Open(opening) => Some(opening.link),
        _ => None,
    };
    plan.actions.iter().filter_map(link).collect()
}

fn abandoned(plan: &Plan) -> Vec<(u32, u64)> {
    let path = |action: &Action| match action {
        Action::Abandon { path, code } => Some((path.0, *code)),
        _ => None,
    };
    plan.actions.iter().filter_map(path).collect()
}

#[test]
fn a_link_that_appears_gets_a_path_at_once_and_only_one() {
    let mut world = World::new(vec![Shape::new(2, "wlan0").link()]);
    assert_eq!(world.plan(at(0)).actions, []);
    world.links.push(Shape::new(3, "wwan0").link());
    let plan = world.plan(at(5_000));
    assert_eq!(opened(&plan), [3]);
    world.open(&plan, 1);
    let plan = world.plan(at(5_001));
    assert_eq!(plan.actions, []);
    let usage = |index: usize| matches!(plan.links[index].usage, LinkUse::Path { .. });
    assert!(usage(0) && usage(1), "{plan:?}");
}

#[test]
fn a_path_whose_link_is_gone_is_given_up_once_another_works_and_not_before() {
    let mut world = World::new(vec![Shape::new(2, "wlan0").link(), Shape::new(3, "wwan0").link()]);
    let plan = world.plan(at(0));
    world.open(&plan, 1);
    world.paths[1].state = PathState::Validating;
    world.links.remove(0);
    assert_eq!(abandoned(&world.plan(at(10))), []);
    world.paths[1].state = PathState::Validated;
    assert_eq!(abandoned(&world.plan(at(20))), [(0, GONE)]);
    assert_eq!(abandoned(&world.plan(at(30))), [], "once is enough");
}

#[test]
fn an_interface_that_is_made_anew_with_the_same_address_gets_a_new_path() {
    let mut world = World::new(vec![Shape::new(2, "wlan0").link()]);
    world.plan(at(0));
    let mut anew = Shape::new(2, "wlan0").link();
    anew.index = 9;
    world.links = vec![anew];
    let plan = world.plan(at(1_000));
    assert_eq!(opened(&plan), [9], "the socket of the old one leads nowhere");
    world.open(&plan, 1);
    assert_eq!(abandoned(&world.plan(at(1_100))), [(0, GONE)]);
}

#[test]
fn a_path_whose_address_changes_moves_at_once_and_stays_one_path() {
    let mut world = World::new(vec![Shape::new(2, "wlan0").link()]);
    world.plan(at(0));
    world.links = vec![Shape::new(2, "wlan0").host(9).link()];
    let plan = world.plan(at(1_000));
    let [Action::Move { link: 2, path: PathId(0), to, manner: Manner::AtOnce }] = &plan.actions[..] else {
        panic!("{plan:?}");
    };
    let LocalAddress::Link(local) = &to.local else { panic!("{to:?}") };
    assert_eq!(local.to_string(), "10.0.2.9%wlan0");
    world.planner.moving(PathId(0), 2, local.address, at(1_000));
    assert_eq!(world.plan(at(1_001)).actions, [], "it is on its way");
    world.paths[0] = world.path(0, 0);
    assert_eq!(world.plan(at(1_100)).actions, []);
}

#[test]
fn a_move_that_fails_is_repeated_later_each_time() {
    let mut world = World::new(vec![Shape::new(2, "wlan0").link()]);
    world.plan(at(0));
    world.links = vec![Shape::new(2, "wlan0").host(9).link()];
    let mut now = at(1_000);
    for pause in [1, 2, 4] {
        assert!(matches!(world.plan(now).actions[..], [Action::Move { .. }]));
        world.planner.moving(PathId(0), 2, [10, 0, 2, 9].into(), now);
        assert_eq!(world.planner.move_failed(PathId(0), now), Some(2));
        let plan = world.plan(now);
        assert_eq!((plan.actions, plan.wake), (Vec::new(), Some(now + Duration::from_secs(pause))));
        now += Duration::from_secs(pause);
    }
}

#[test]
fn a_link_that_comes_up_again_has_its_path_asked_at_once() {
    let mut world = World::new(vec![Shape::new(2, "wlan0").link()]);
    world.plan(at(0));
    world.links[0].state = LinkState::NoCarrier;
    assert_eq!(world.plan(at(1_000)).actions, [], "the last path stays");
    world.links[0].state = LinkState::Up;
    world.paths[0].state = PathState::Silent;
    assert_eq!(world.plan(at(9_000)).actions, [Action::Probe { path: PathId(0) }]);
}

#[test]
fn rules_that_change_are_followed() {
    let mut world = World::new(vec![Shape::new(2, "wlan0").link(), Shape::new(3, "wwan0").link()]);
    let plan = world.plan(at(0));
    world.open(&plan, 1);
    world.rules = "wwan0=backup".parse().unwrap();
    let plan = world.plan(at(10));
    let [Action::Configure { path: PathId(1), settings }] = &plan.actions[..] else { panic!("{plan:?}") };
    assert_eq!(settings.status, Status::Backup);
    world.planner.configured(PathId(1), *settings);
    assert_eq!(world.plan(at(20)).actions, []);
    world.rules = "wwan0=never".parse().unwrap();
    assert_eq!(abandoned(&world.plan(at(30))), [(1, UNWANTED)]);
    world.paths.remove(1);
    let plan = world.plan(at(40));
    assert_eq!(plan.actions, []);
    assert_eq!(plan.links[1].usage, LinkUse::Unused(Reason::Rule("wwan0=never".to_owned())));
}

#[test]
fn a_path_that_cannot_be_opened_is_tried_again_over_each_way_in_turn() {
    let mut world = World::new(vec![Shape::new(2, "wlan0").link()]);
    world.plan(at(0));
    let mut wide = Shape::new(3, "wwan0").link();
    wide.addresses.push("10.0.3.7/24".parse().unwrap());
    world.links.push(wide);
    let local = |plan: &Plan| match &plan.actions[..] {
        [Action::Open(opening)] => opening.options.local.to_string(),
        _ => panic!("{plan:?}"),
    };
    let plan = world.plan(at(0));
    assert_eq!(local(&plan), "10.0.3.2%wwan0");
    world.open(&plan, 1);
    world.paths.remove(1);
    let plan = world.plan(at(3_000));
    assert_eq!((plan.actions, plan.wake), (Vec::new(), Some(at(4_000))));
    assert!(matches!(plan.links[1].usage, LinkUse::Unused(Reason::Failed { failures: 1, .. })));
    assert_eq!(local(&world.plan(at(4_000))), "10.0.3.7%wwan0");
}

#[test]
fn a_peer_that_permits_no_more_paths_is_not_asked_until_it_does() {
    let mut world = World::new(vec![Shape::new(2, "wlan0").link(), Shape::new(3, "wwan0").link()]);
    assert_eq!(opened(&world.plan(at(0))), [3]);
    world.planner.refused(3, &Refusal::Limit, at(0));
    let plan = world.plan(at(1));
    assert_eq!((opened(&plan), plan.wake), (vec![], Some(at(1_000))));
    assert_eq!(plan.links[1].usage, LinkUse::Unused(Reason::PeerLimit));
    world.planner.permitted();
    assert_eq!(opened(&world.plan(at(2))), [3]);
}

#[test]
fn without_room_for_another_path_the_one_whose_link_is_gone_moves() {
    let mut world = World::new(vec![Shape::new(2, "wlan0").link()]);
    world.plan(at(0));
    world.links = vec![Shape::new(3, "wwan0").link()];
    assert_eq!(opened(&world.plan(at(10))), [3]);
    world.planner.refused(3, &Refusal::Limit, at(10));
    let plan = world.plan(at(11));
    assert!(
        matches!(plan.actions[..], [Action::Move { link: 3, path: PathId(0), manner: Manner::AtOnce, .. }]),
        "{plan:?}"
    );
}

#[test]
fn a_peer_without_multipath_has_the_one_path_moved_to_the_best_link() {
    let mut world = World::new(vec![Shape::new(2, "wlan0").metric(600).link()]);
    world.capacity = Capacity::One;
    assert_eq!(world.plan(at(0)).actions, []);
    world.links.push(Shape::new(3, "eth0").metric(100).link());
    let plan = world.plan(at(10));
    assert!(
        matches!(
            plan.actions[..],
            [Action::Move { link: 3, path: PathId(0), manner: Manner::Validated, .. }]
        ),
        "{plan:?}"
    );
    world.planner.moving(PathId(0), 3, [10, 0, 3, 2].into(), at(10));
    world.paths[0] = world.path(0, 1);
    assert_eq!(world.plan(at(100)).actions, []);
    world.links.pop();
    let plan = world.plan(at(5_000));
    assert!(matches!(plan.actions[..], [Action::Move { link: 2, manner: Manner::AtOnce, .. }]), "{plan:?}");
}

#[test]
fn a_path_that_follows_the_routes_is_bound_to_its_link_once_there_are_two() {
    let mut world = World::new(vec![Shape::new(2, "wlan0").link()]);
    world.paths[0].origin = Origin::Routed(Some([10, 0, 2, 2].into()));
    assert_eq!(world.plan(at(0)).actions, []);
    world.links.push(Shape::new(3, "wwan0").link());
    let plan = world.plan(at(10));
    let moves = |action: &Action| matches!(action, Action::Move { link: 2, manner: Manner::Validated, .. });
    assert!(plan.actions.iter().any(moves), "{plan:?}");
    assert_eq!(opened(&plan), [3]);
}

#[test]
fn paths_that_never_validate_are_tried_less_and_less_often_beside_one_that_lasts() {
    // The path on which the connection began goes to an address of the peer that is not among those of the manager, as after
    // the peer's preferred address was taken: it lasts, but does not serve its link.
    let mut world = World::new(vec![Shape::new(2, "wlan0").link()]);
    world.paths[0].remote = ([192, 0, 2, 99], 443).into();
    let (mut opens, mut next_id, mut fails_at) = (Vec::new(), 1, None);
    for second in 0..600 {
        let now = at(second * 1_000);
        if fails_at == Some(second) {
            world.paths.truncate(1);
            fails_at = None;
        }
        let plan = world.plan(now);
        if let [_] = opened(&plan)[..] {
            world.open(&plan, next_id);
            world.paths[1].state = PathState::Validating;
            (next_id, fails_at) = (next_id + 1, Some(second + 3));
            opens.push(second);
        }
    }
    // Pauses of 1, 2, 4 … 60 s, and three seconds for each attempt.
    assert_eq!(opens[..6], [0, 4, 9, 16, 27, 46]);
    assert!(opens.len() <= 16, "{opens:?}");
    // The link comes up again: an attempt is made at once.
    world.paths.truncate(1);
    world.plan(at(600_000));
    world.links[0].state = LinkState::Down;
    world.plan(at(601_000));
    world.links[0].state = LinkState::Up;
    assert_eq!(opened(&world.plan(at(602_000))), [2]);
}
