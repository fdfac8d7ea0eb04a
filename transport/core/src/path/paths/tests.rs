use super::*;
use crate::congestion::Algorithm;
use crate::path::amplification::Amplification;
use crate::path::candidates::CandidatePurpose;
use crate::path::lifecycle::AbandonReason;
use crate::path::mtu::DatagramSizing;
use crate::path::route::Route;
use crate::recovery::sent_packet::{PacketClass, SentPacket};
use crate::space::received::AckPolicy;
use crate::wire::connection_id::ResetToken;
use crate::wire::frame::NewConnectionId;
use crate::wire::frame::Status;
use hvq_scheduler::{Bandwidth, Hints};

const ONE: PathId = PathId(1);

fn address(port: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], port))
}

/// The addresses of a path whose peer is at `port`.
fn tuple(port: u16) -> FourTuple {
    FourTuple { local: address(443), remote: address(port) }
}

fn path(id: PathId, port: u16) -> Path {
    let sizing = DatagramSizing::default();
    let congestion = Algorithm::NewReno.into();
    let route = Route::new(tuple(port), congestion, Amplification::default(), sizing, Instant::ZERO);
    Path::new(id, route, AckPolicy::default())
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn connection_id(number: u8) -> ConnectionId {
    ConnectionId::new(&[number; 8]).expect("not too long")
}

/// A source of connection IDs that is never asked.
struct Unasked;

impl IdSource for Unasked {
    fn issue(&mut self) -> (ConnectionId, ResetToken) {
        unreachable!("no test here issues connection IDs")
    }
}

fn first_ids(remote: RemoteIds) -> FirstConnectionIds {
    FirstConnectionIds { local: LocalIds::new(connection_id(99)), remote, source: Box::new(Unasked) }
}

/// Path 0 to port 1 and path 1 to port 2, none of them validated; the peer issued a spare connection ID for each.
fn paths() -> Paths {
    let mut remote_ids = RemoteIds::new(4);
    remote_ids.set_initial(connection_id(0));
    remote_ids.set_multipath();
    for (path, sequence, number) in [(0, 1, 1), (1, 0, 10), (1, 1, 11)] {
        let (id, token) = (connection_id(number), ResetToken([number; 16]));
        let path = Some(PathId(path));
        let frame = NewConnectionId { path, sequence, retire_prior_to: 0, id, token };
        remote_ids.on_new(frame).expect("within the limits");
    }
    let mut paths = Paths::new(path(PathId::ZERO, 1), first_ids(remote_ids), Some(PathId(4)));
    paths.lifecycles.apply(ONE, LifecycleEvent::Opened, Instant::ZERO);
    paths.insert(path(ONE, 2));
    paths
}

#[test]
fn a_packet_is_told_by_its_path_and_by_where_it_came_from() {
    let mut paths = paths();
    for (id, port, arrival) in [
        (PathId::ZERO, 1, PathMatch::Known),
        (PathId::ZERO, 2, PathMatch::OtherAddress),
        (ONE, 2, PathMatch::Known),
        (ONE, 1, PathMatch::OtherAddress),
        (PathId(2), 1, PathMatch::Fresh),
    ] {
        assert_eq!(paths.arrival(id, tuple(port)), arrival, "path {id:?} from port {port}");
    }
    let keep = Duration::from_secs(1);
    paths.apply(ONE, LifecycleEvent::PeerAbandon { keep }, Instant::ZERO);
    assert_eq!(paths.arrival(ONE, tuple(2)), PathMatch::Known, "late packets are still acknowledged");
    assert_eq!((paths.get(ONE).is_none(), paths.any(ONE).is_some()), (true, true));
    let end = Instant::ZERO + keep;
    assert_eq!(paths.expire(Instant::ZERO), []);
    paths.expire(end);
    assert_eq!((paths.any(ONE).is_some(), paths.any(PathId::ZERO).is_some()), (false, true));
    assert_eq!(paths.arrival(ONE, tuple(2)), PathMatch::Gone);
}

#[test]
fn a_datagram_widens_what_may_be_sent_to_where_it_came_from_once() {
    // RFC 9000 §8.1: three times what came.
    let mut paths = paths();
    paths.add_candidate(
        PathId::ZERO,
        CandidateAddress::new(tuple(3), CandidatePurpose::Probing, Instant::FAR_FUTURE),
    );
    let allowances = |paths: &Paths| {
        let of = |id| paths.get(id).map_or(0, |path: &Path| path.route.amplification.allowance());
        let probed = paths.get(PathId::ZERO).and_then(|path| path.elsewhere.get(tuple(3)));
        [of(PathId::ZERO), of(ONE), probed.map_or(0, |one| one.amplification.allowance())]
    };
    for (port, expected) in [(1, [300, 0, 0]), (2, [300, 300, 0]), (3, [300, 300, 300]), (4, [300, 300, 300])]
    {
        paths.on_datagram(tuple(port), 100);
        assert_eq!(allowances(&paths), expected, "from port {port}");
        assert_eq!(paths.counts(tuple(port)), port < 4);
    }
}

#[test]
fn an_address_is_validated_wherever_it_belongs_to() {
    let mut paths = paths();
    paths.add_candidate(ONE, CandidateAddress::new(tuple(3), CandidatePurpose::Probing, Instant::FAR_FUTURE));
    let validated = |paths: &Paths| [1, 2, 3].map(|port| paths.is_validated(tuple(port)));
    assert_eq!(validated(&paths), [false; 3]);
    paths.get_mut(PathId::ZERO).expect("it is open").route.validation.presume();
    assert_eq!(validated(&paths), [true, false, false]);
    let path = paths.get_mut(ONE).expect("it is open");
    path.elsewhere.get_mut(tuple(3)).expect("it was added").validation.presume();
    assert_eq!(validated(&paths), [true, false, true]);
}

#[test]
fn addresses_that_are_being_validated_are_counted_on_all_paths() {
    let mut paths = paths();
    let mut rng = <rand::rngs::StdRng as rand::SeedableRng>::seed_from_u64(1);
    for (id, port) in [(PathId::ZERO, 3), (ONE, 4), (ONE, 5)] {
        let mut candidate =
            CandidateAddress::new(tuple(port), CandidatePurpose::Probing, Instant::FAR_FUTURE);
        if port < 5 {
            candidate.validation.start(Instant::ZERO, &mut rng, Duration::from_secs(1));
        }
        paths.add_candidate(id, candidate);
    }
    assert_eq!(paths.pending_candidates(), 2);
}

#[test]
fn an_address_has_the_connection_id_that_it_was_lent_or_that_of_its_path() {
    let mut paths = paths();
    paths.add_candidate(ONE, CandidateAddress::new(tuple(3), CandidatePurpose::Probing, Instant::FAR_FUTURE));
    assert_eq!(paths.destination(ONE, tuple(3)), Some(connection_id(10)));
    assert_eq!(paths.destination(PathId::ZERO, tuple(3)), None);
    let lent = paths.remote_ids.lend(ONE);
    let candidate = paths.get_mut(ONE).and_then(|path| path.elsewhere.get_mut(tuple(3)));
    candidate.expect("it was added").destination = lent;
    assert_eq!(paths.destination(ONE, tuple(3)), Some(connection_id(11)));
    // The peer has that retired, and gives another.
    let (id, token) = (connection_id(12), ResetToken([12; 16]));
    let frame = NewConnectionId { path: Some(ONE), sequence: 2, retire_prior_to: 2, id, token };
    paths.remote_ids.on_new(frame).expect("within the limits");
    let (id, token) = (connection_id(13), ResetToken([13; 16]));
    let frame = NewConnectionId { path: Some(ONE), sequence: 3, retire_prior_to: 2, id, token };
    paths.remote_ids.on_new(frame).expect("within the limits");
    assert_eq!(paths.destination(ONE, tuple(3)), None);
    paths.renew_destination(ONE, tuple(3));
    let renewed = paths.destination(ONE, tuple(3));
    assert!([connection_id(12), connection_id(13)].map(Some).contains(&renewed), "{renewed:?}");
}

#[test]
fn delays_are_half_of_the_fastest_round_trip_and_what_others_take_beyond_it() {
    let first = path(PathId::ZERO, 1);
    let half = first.rtt().smoothed() / 2;
    let alone = Paths::new(first, first_ids(RemoteIds::new(4)), None);
    assert_eq!(alone.delay(PathId::ZERO), half, "before anything was measured");
    let mut paths = paths();
    let half = paths.get(ONE).map(|path| path.rtt().smoothed() / 2);
    assert_eq!(Some(paths.delay(ONE)), half, "the initial estimate");
    assert_eq!(paths.delay(PathId(3)), Duration::ZERO);
    // Both are acknowledged over path 0: path 1 takes 20 ms more there.
    for (id, rtt) in [(PathId::ZERO, 20), (ONE, 40)] {
        let path = paths.get_mut(id).expect("it is open");
        path.rtts.sample(PathId::ZERO, Duration::from_millis(rtt), Duration::ZERO, Instant::ZERO);
    }
    paths.follow_samples();
    let delays = [PathId::ZERO, ONE].map(|id| paths.delay(id));
    assert_eq!(delays, [10, 30].map(Duration::from_millis));
}

#[test]
fn the_remote_addresses_are_told_once_after_each_change() {
    let mut paths = paths();
    assert_eq!(paths.take_remotes(), Some(vec![address(1), address(2)]));
    assert_eq!(paths.take_remotes(), None);
    let event = LifecycleEvent::Abandon { reason: AbandonReason::Application, keep: Duration::ZERO };
    paths.apply(ONE, event, Instant::ZERO);
    assert_eq!(paths.take_remotes(), Some(vec![address(1)]));
    assert_eq!(paths.take_remotes(), None);
}

#[test]
fn a_close_goes_over_the_path_that_answers_soonest_among_the_validated() {
    let mut paths = paths();
    for (id, rtt) in [(PathId::ZERO, 60), (ONE, 20)] {
        let path = paths.get_mut(id).expect("it is open");
        path.route.validation.presume();
        path.rtts.sample(id, Duration::from_millis(rtt), Duration::ZERO, Instant::ZERO);
    }
    assert_eq!(paths.best_for_close(), Some(ONE));
    paths.get_mut(ONE).expect("it is open").on_probe_timeout(Instant::ZERO);
    assert_eq!(paths.best_for_close(), Some(PathId::ZERO));
}

#[test]
fn a_lone_path_and_the_addresses_of_validated_ones_have_limits_of_their_own() {
    let mut paths = paths();
    let allowance = |paths: &Paths, port| {
        let probed = paths.get(PathId::ZERO).and_then(|path| path.elsewhere.get(tuple(port)));
        probed.map(|one| one.amplification.allowance())
    };
    paths.on_datagram(tuple(1), 100);
    let first = paths.get(PathId::ZERO).map(|path| path.route.amplification.allowance());
    assert_eq!(first, Some(300));
    paths.open_mut().for_each(|path| path.route.amplification.validate());
    paths.add_candidate(ONE, CandidateAddress::new(tuple(4), CandidatePurpose::Probing, Instant::FAR_FUTURE));
    paths.add_candidate(
        PathId::ZERO,
        CandidateAddress::new(tuple(3), CandidatePurpose::Probing, Instant::FAR_FUTURE),
    );
    paths.on_datagram(tuple(3), 100);
    assert_eq!(allowance(&paths, 3), Some(300));
}

#[test]
fn receipts_of_frames_about_paths_belong_to_the_paths_and_others_do_not() {
    let path = PathId::ZERO;
    for (token, is_theirs) in [
        (RecoveryToken::NewConnectionId { path, sequence: 1 }, true),
        (RecoveryToken::RetireConnectionId { path, sequence: 1 }, true),
        (RecoveryToken::PathAbandon(ONE), true),
        (RecoveryToken::PathStatus { path, sequence: 1 }, true),
        (RecoveryToken::MaxPathId(PathId(4)), true),
        (RecoveryToken::PathsBlocked(PathId(4)), true),
        (RecoveryToken::PathCidsBlocked(ONE), true),
        (RecoveryToken::HandshakeDone, false),
    ] {
        let mut paths = paths();
        let taken = (paths.on_acknowledged(&token), paths.on_lost(&token));
        assert_eq!(taken, (is_theirs, is_theirs), "{token:?}");
    }
}

#[test]
fn the_preferred_address_is_considered_once() {
    let mut paths = paths();
    assert!(paths.is_preferred_due() && paths.take_preferred_due());
    assert!(!paths.is_preferred_due() && !paths.take_preferred_due());
}

/// Both paths are validated, nothing limits them, and their round trips took 60 ms and 20 ms.
fn measured() -> Paths {
    let mut paths = paths();
    for (id, rtt) in [(PathId::ZERO, 60), (ONE, 20)] {
        let path = paths.get_mut(id).expect("it is open");
        path.route.validation.presume();
        path.route.amplification.validate();
        path.rtts.sample(id, Duration::from_millis(rtt), Duration::ZERO, Instant::ZERO);
    }
    paths
}

fn send(paths: &mut Paths, id: PathId, numbers: std::ops::Range<u64>, ms: u64) {
    let path = paths.get_mut(id).expect("it is open");
    let packet = |number| SentPacket::new(number, at(ms), 1_000, PacketClass::AckEliciting);
    numbers.for_each(|number| path.sent.on_sent(packet(number)));
}

#[test]
fn round_trips_and_probe_timeouts_are_those_of_all_open_paths() {
    assert_eq!(paths().shortest_round_trip(), Duration::ZERO, "nothing was measured");
    let mut paths = measured();
    assert_eq!(paths.ids().as_slice(), [PathId::ZERO, ONE]);
    assert_eq!(paths.shortest_round_trip(), Duration::from_millis(20));
    // RFC 9002 §6.2.1: a first sample of 60 ms varies by half of it, four times.
    assert_eq!(paths.longest_probe_timeout(Duration::from_millis(25)), Duration::from_millis(205));
    paths.apply(PathId::ZERO, LifecycleEvent::PeerAbandon { keep: Duration::ZERO }, at(1));
    assert_eq!(paths.longest_probe_timeout(Duration::from_millis(25)), Duration::from_millis(85));
}

#[test]
fn the_room_beside_a_path_is_that_of_others_that_answer() {
    let mut paths = measured();
    send(&mut paths, ONE, 0..3, 10);
    let room = |paths: &Paths, id| {
        let path: &Path = paths.get(id).expect("it is open");
        path.route.room(path.sent.in_flight(), at(10))
    };
    let [wide, narrow] = [PathId::ZERO, ONE].map(|id| room(&paths, id));
    assert!(wide > narrow && narrow > 0, "{wide} and {narrow}");
    assert_eq!([PathId::ZERO, ONE].map(|id| paths.room_beside(id, at(10))), [narrow, wide]);
    paths.get_mut(ONE).expect("it is open").on_probe_timeout(at(10));
    assert_eq!([PathId::ZERO, ONE].map(|id| paths.room_beside(id, at(10))), [0, wide]);
}

#[test]
fn the_knowledge_of_the_endpoint_learns_once_in_an_interval_of_milliseconds() {
    let mut paths = paths();
    let due: Vec<u64> =
        (0..3_500).filter(|ms| paths.is_learning_due(Duration::from_secs(1), at(*ms))).collect();
    assert_eq!(due, [1_000, 2_000, 3_000]);
    // The account of milliseconds has 32 bits.
    let wrap = 1 << 32;
    assert!(paths.is_learning_due(Duration::from_secs(1), at(wrap - 400)));
    let due = [599, 600].map(|ms| paths.is_learning_due(Duration::from_secs(1), at(wrap + ms)));
    assert_eq!(due, [false, true]);
}

#[test]
fn connection_ids_are_changed_on_paths_that_answer_and_have_used_theirs() {
    let rotation = Rotation { packets: Some(2), ..Rotation::default() };
    let current = |paths: &Paths| [PathId::ZERO, ONE].map(|id| paths.remote_ids.current(id));
    let mut paths = measured();
    for id in [PathId::ZERO, ONE] {
        send(&mut paths, id, 0..2, 10);
        let path = paths.get_mut(id).expect("it is open");
        path.on_carried();
        path.on_heard(at(10));
    }
    paths.get_mut(ONE).expect("it is open").on_probe_timeout(at(11));
    let [zero, one] = current(&paths);
    paths.rotate_due(&rotation, 0, at(12));
    assert_eq!(current(&paths), [Some(connection_id(1)), one], "path 1 does not answer");
    assert_ne!(zero, Some(connection_id(1)));
    paths.get_mut(ONE).expect("it is open").on_acknowledged(at(13));
    paths.rotate_due(&rotation, 0, at(14));
    assert_eq!(current(&paths), [Some(connection_id(1)), Some(connection_id(11))], "path 0 did already");
    assert_eq!(paths.rotate(ONE, 0, at(15)), None, "there is no spare one");
}

#[test]
fn a_path_is_overdue_only_beside_another_that_could_take_over() {
    let overdue = |paths: &Paths| {
        let one = paths.get(ONE).expect("it is open");
        paths.overdue_at(one, Duration::from_millis(25))
    };
    let mut paths = measured();
    send(&mut paths, ONE, 0..1, 10);
    let silent = paths.get(ONE).and_then(|one| one.silent_at(Duration::from_millis(25), Duration::ZERO));
    assert!(silent.is_some());
    assert_eq!(overdue(&paths), silent);
    paths.get_mut(PathId::ZERO).expect("it is open").on_probe_timeout(at(11));
    assert_eq!(overdue(&paths), None, "path 0 does not answer");
    paths.get_mut(PathId::ZERO).expect("it is open").on_heard(at(12));
    assert_eq!(overdue(&paths), silent, "it was heard");
    paths.get_mut(ONE).expect("it is open").on_probe_timeout(at(13));
    assert_eq!(overdue(&paths), None, "it is silent already");
}

#[test]
fn a_silent_path_is_asked_more_seldom_beside_one_that_answers() {
    let asked = |paths: &Paths| {
        let one = paths.get(ONE).expect("it is open");
        paths.ask_at(one, Duration::from_millis(25)).map(|at| at.since(Instant::ZERO).as_millis())
    };
    let mut paths = measured();
    assert_eq!((asked(&paths), paths.are_silent_everywhere()), (None, false));
    let one = paths.get_mut(ONE).expect("it is open");
    one.on_probe_timeout(at(1_000));
    one.liveness.on_pace(at(65_000));
    assert_eq!(asked(&paths), Some(66_000), "a 64th of its silence");
    paths.get_mut(PathId::ZERO).expect("it is open").on_probe_timeout(at(65_000));
    assert_eq!((asked(&paths), paths.are_silent_everywhere()), (Some(65_085), true), "a probe timeout");
}

#[test]
fn hints_about_each_path_are_told_until_they_arrive() {
    let mut paths = paths();
    let of = |told: Option<(Frame, RecoveryToken)>| match told {
        Some((Frame::PathHints(told), token)) => Some((told.path, told.sequence, token)),
        _ => None,
    };
    assert_eq!(of(paths.next_hints()), None);
    let rate = Some(Bandwidth::from_mbit(2));
    let hints = Hints { rate, ..Hints::NONE };
    paths.get_mut(ONE).expect("it is open").set_hints(hints);
    let token = RecoveryToken::PathHints { path: ONE, sequence: 0 };
    assert_eq!(of(paths.next_hints()), Some((ONE, 0, token.clone())));
    assert_eq!((of(paths.next_hints()), paths.on_lost(&token)), (None, true));
    assert_eq!(of(paths.next_hints()), Some((ONE, 0, token.clone())));
    assert!(paths.on_acknowledged(&token) && paths.on_lost(&token));
    assert_eq!(of(paths.next_hints()), None, "a copy arrived");
}

#[test]
fn paths_at_rest_have_nothing_to_say_and_nothing_is_due() {
    let mut paths = Paths::new(path(PathId::ZERO, 1), first_ids(RemoteIds::new(4)), None);
    assert!(paths.has_changes_of_ids(), "the router knows nothing yet");
    assert_eq!((paths.take_remotes().is_some(), paths.local_ids.take_new().len()), (true, 1));
    assert!(!paths.has_changes_of_ids() && !paths.may_have_frame() && !paths.may_have_due(at(10)));
    let candidate = CandidateAddress::new(tuple(3), CandidatePurpose::Probing, Instant::FAR_FUTURE);
    paths.add_candidate(PathId::ZERO, candidate);
    assert!(paths.may_have_due(at(10)), "an address beside the one in use");
}

#[test]
fn something_is_due_once_the_validation_of_a_path_may_have_failed() {
    let mut paths = Paths::new(path(PathId::ZERO, 1), first_ids(RemoteIds::new(4)), None);
    let mut rng = <rand::rngs::StdRng as rand::SeedableRng>::seed_from_u64(1);
    let path = paths.get_mut(PathId::ZERO).expect("it is open");
    path.route.validation.start(at(0), &mut rng, Duration::from_secs(1));
    assert!(!paths.may_have_due(at(1)));
    assert!(paths.may_have_due(at(100_000)));
}

/// Hints of a channel that brings so many megabits a second.
fn brings(megabits: u64) -> Hints {
    Hints { rate: Some(Bandwidth::from_mbit(megabits)), ..Hints::NONE }
}

/// The time in milliseconds at which it is looked at whether path 1, of 2 Mbit/s, is still to be spared: packets arrive there
/// from 1000 ms on as closely as it brings them, one in 5 ms.
fn looked_at(paths: &mut Paths) -> Option<u128> {
    paths.get_mut(ONE).expect("it is open").set_hints(brings(2));
    paths.refresh_delays();
    paths.watch_narrow_paths();
    (0..40).for_each(|n| paths.on_packet_received(ONE, 1_250, at(1_000 + 5 * n)));
    paths.relief_deadline().map(|at| at.since(Instant::ZERO).as_millis())
}

#[test]
fn the_peer_is_advised_to_spare_a_narrow_path_that_it_fills() {
    let mut paths = measured();
    paths.limits.set_peer(Some(PathId(4)));
    // The other takes 20 ms longer, one way: it is looked at again after two of its round trips of 60 ms.
    assert_eq!(looked_at(&mut paths), Some(1_015 + 120));
    let advised = |paths: &mut Paths| match paths.status.next_frame() {
        Some((Frame::PathStatus { path, status, .. }, _)) => Some((path, status)),
        _ => None,
    };
    assert_eq!(advised(&mut paths), Some((ONE, Status::Backup)));
    paths.review_reliefs(at(1_134));
    assert_eq!((advised(&mut paths), paths.relief_deadline()), (None, Some(at(1_135))));
    paths.review_reliefs(at(1_135));
    assert_eq!((advised(&mut paths), paths.relief_deadline()), (Some((ONE, Status::Available)), None));
}

#[test]
fn a_path_is_spared_only_beside_one_that_may_bring_four_times_as_much_and_answers() {
    for (megabits, is_spared) in [(7, false), (8, true)] {
        let mut paths = measured();
        paths.get_mut(PathId::ZERO).expect("it is open").set_hints(brings(megabits));
        assert_eq!(looked_at(&mut paths).is_some(), is_spared, "beside {megabits} Mbit/s");
    }
    let mut paths = measured();
    paths.get_mut(PathId::ZERO).expect("it is open").on_probe_timeout(at(10));
    assert_eq!(looked_at(&mut paths), None, "it is silent");
}

#[test]
fn the_delay_of_a_wider_path_is_what_it_is_promised_before_it_is_measured() {
    let mut paths = paths();
    let path = paths.get_mut(ONE).expect("it is open");
    path.rtts.sample(ONE, Duration::from_millis(20), Duration::ZERO, Instant::ZERO);
    let hints = Hints { delay: Some(Duration::from_millis(100)), ..Hints::NONE };
    paths.get_mut(PathId::ZERO).expect("it is open").set_hints(hints);
    // It takes 90 ms longer, and two of its round trips are 400 ms.
    assert_eq!(looked_at(&mut paths), Some(1_085 + 400));
}
