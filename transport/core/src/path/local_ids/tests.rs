use super::*;

/// Numbers the connection IDs that it makes.
struct Counter(u64);

impl IdSource for Counter {
    fn issue(&mut self) -> (ConnectionId, ResetToken) {
        self.0 += 1;
        (id(self.0), ResetToken([self.0 as u8; 16]))
    }
}

const ONE: PathId = PathId(1);
/// The connection ID that packets in these tests are sent to.
const CARRIER: (PathId, u64) = (PathId(99), 0);

fn id(number: u64) -> ConnectionId {
    ConnectionId::new(&number.to_be_bytes()).unwrap()
}

fn local(peer_limit: u64, highest: u32) -> (LocalIds, Counter) {
    let mut ids = LocalIds::new(id(0));
    ids.set_peer_limit(peer_limit);
    ids.set_multipath(PathId(highest));
    (ids, Counter(0))
}

fn single_path(peer_limit: u64) -> (LocalIds, Counter) {
    let mut ids = LocalIds::new(id(0));
    ids.set_peer_limit(peer_limit);
    (ids, Counter(0))
}

fn sent(ids: &mut LocalIds, source: &mut Counter) -> Vec<NewConnectionId> {
    std::iter::from_fn(|| ids.next_frame(source))
        .map(|(frame, token)| match frame {
            Frame::NewConnectionId(new) => {
                let path = new.path.unwrap_or(PathId::ZERO);
                assert_eq!(token, RecoveryToken::NewConnectionId { path, sequence: new.sequence });
                new
            }
            other => panic!("{other:?}"),
        })
        .collect()
}

fn names(frames: &[NewConnectionId]) -> Vec<(u32, u64)> {
    frames.iter().map(|frame| (frame.path.expect("a PATH_ form").0, frame.sequence)).collect()
}

fn code(result: Result<(), TransportError>) -> ErrorCode {
    result.expect_err("an error was expected").code
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-5.1.1
//= type=test
//# The sequence number on each newly issued connection ID MUST increase by 1
//= https://www.rfc-editor.org/rfc/rfc9000#section-5.1.1
//= type=test
//# An endpoint MUST NOT provide more connection IDs than the peer's limit
#[test]
fn without_multipath_path_zero_gets_as_many_as_the_peer_stores_in_the_old_form() {
    let (mut ids, mut source) = single_path(3);
    let frames = sent(&mut ids, &mut source);
    let names: Vec<_> =
        frames.iter().map(|frame| (frame.path, frame.sequence, frame.retire_prior_to)).collect();
    assert_eq!(names, [(None, 1, 0), (None, 2, 0)]);
    assert_eq!(ids.next_sequence(PathId::ZERO), 3);
}

#[test]
fn nothing_is_issued_before_the_peers_limit_is_known() {
    let mut ids = LocalIds::new(id(0));
    assert_eq!(ids.next_frame(&mut Counter(0)), None);
}

//= https://www.rfc-editor.org/rfc/rfc10069#section-3.2.1
//= type=test
//# Endpoints MUST NOT issue new connection IDs with path IDs greater than the Maximum Path Identifier field
//# in MAX_PATH_ID frames
#[test]
fn every_unused_path_gets_one_before_paths_in_use_get_spares() {
    let (mut ids, mut source) = local(3, 2);
    assert_eq!(names(&sent(&mut ids, &mut source)), [(1, 0), (2, 0), (0, 1), (0, 2)]);
    ids.open_path(ONE);
    assert_eq!(names(&sent(&mut ids, &mut source)), [(1, 1), (1, 2)]);
    assert!(ids.has_issued(PathId(2)) && !ids.has_issued(PathId(3)));
}

#[test]
fn the_own_cap_holds_whatever_the_peer_stores() {
    let (mut ids, mut source) = single_path(u64::MAX);
    assert_eq!(sent(&mut ids, &mut source).len() as u64, IDS_PER_PATH - 1);
}

#[test]
fn a_peer_that_grants_all_paths_gets_ids_for_a_bounded_number() {
    let (mut ids, mut source) = local(4, u32::MAX);
    assert_eq!(sent(&mut ids, &mut source).len(), MAX_PATHS - 1 + IDS_PER_PATH as usize - 1);
    assert_eq!(ids.paths.len(), MAX_PATHS);
    assert_eq!(ids.next_path, MAX_PATHS as u64);
}

#[test]
fn a_raised_limit_continues_without_holes() {
    let (mut ids, mut source) = local(2, 1);
    sent(&mut ids, &mut source);
    ids.set_multipath(PathId(3));
    assert_eq!(names(&sent(&mut ids, &mut source)), [(2, 0), (3, 0)]);
    ids.set_multipath(PathId(2));
    assert_eq!(sent(&mut ids, &mut source), []);
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-5.1.1
//= type=test
//# The sequence number on each newly issued connection ID MUST increase by 1
//= https://www.rfc-editor.org/rfc/rfc9000#section-5.1.1
//= type=test
//# When an endpoint issues a connection ID, it MUST accept packets that carry this connection ID for the
//# duration of the connection or until its peer invalidates the connection ID via a
#[test]
fn each_connection_id_is_found_by_lookup_and_told_to_the_router() {
    let (mut ids, mut source) = local(2, 1);
    sent(&mut ids, &mut source);
    assert_eq!(ids.take_new(), [id(0), id(1), id(2)]);
    assert_eq!(ids.take_new(), []);
    assert_eq!(ids.lookup(&id(0)), Some((PathId::ZERO, 0)));
    assert_eq!(ids.lookup(&id(1)), Some((ONE, 0)));
    assert_eq!(ids.lookup(&id(2)), Some((PathId::ZERO, 1)));
    assert_eq!(ids.lookup(&id(3)), None);
}

#[test]
fn a_lost_connection_id_is_sent_again_unchanged_unless_a_copy_arrived() {
    let (mut ids, mut source) = single_path(2);
    let first = sent(&mut ids, &mut source);
    ids.on_lost(PathId::ZERO, 1);
    ids.on_lost(PathId::ZERO, 1);
    assert_eq!(sent(&mut ids, &mut source), first);
    ids.on_acknowledged(PathId::ZERO, 1);
    ids.on_lost(PathId::ZERO, 1);
    assert_eq!(sent(&mut ids, &mut source), []);
}

#[test]
fn an_acknowledgement_stops_a_repetition_that_is_queued() {
    let (mut ids, mut source) = single_path(2);
    sent(&mut ids, &mut source);
    ids.on_lost(PathId::ZERO, 1);
    ids.on_acknowledged(PathId::ZERO, 1);
    assert_eq!(sent(&mut ids, &mut source), []);
}

#[test]
fn a_retired_connection_id_is_replaced() {
    let (mut ids, mut source) = local(2, 1);
    sent(&mut ids, &mut source);
    assert_eq!(ids.on_retire(PathId::ZERO, 0, CARRIER), Ok(()));
    assert_eq!(names(&sent(&mut ids, &mut source)), [(0, 2)]);
    assert_eq!(ids.on_retire(ONE, 0, CARRIER), Ok(()));
    assert_eq!(names(&sent(&mut ids, &mut source)), [(1, 1)]);
}

#[test]
fn a_repeated_retirement_is_ignored() {
    let (mut ids, mut source) = single_path(2);
    sent(&mut ids, &mut source);
    for _ in 0..1000 {
        assert_eq!(ids.on_retire(PathId::ZERO, 0, CARRIER), Ok(()));
    }
    assert_eq!(sent(&mut ids, &mut source).len(), 1);
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-19.16
//= type=test
//# Receipt of a RETIRE_CONNECTION_ID frame containing a sequence number greater than any previously sent to
//# the peer MUST be treated as a connection error of type PROTOCOL_VIOLATION.
#[test]
fn retiring_what_was_not_issued_is_a_violation() {
    let (mut ids, mut source) = local(2, 1);
    assert_eq!(code(ids.on_retire(PathId::ZERO, 1, CARRIER)), ErrorCode::PROTOCOL_VIOLATION);
    sent(&mut ids, &mut source);
    assert_eq!(code(ids.on_retire(PathId::ZERO, 2, CARRIER)), ErrorCode::PROTOCOL_VIOLATION);
    assert_eq!(code(ids.on_retire(ONE, 1, CARRIER)), ErrorCode::PROTOCOL_VIOLATION);
    assert_eq!(code(ids.on_retire(ONE, u64::MAX, CARRIER)), ErrorCode::PROTOCOL_VIOLATION);
    assert_eq!(code(ids.on_retire(PathId(2), 0, CARRIER)), ErrorCode::PROTOCOL_VIOLATION);
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-19.16
//= type=test
//# The sequence number specified in a RETIRE_CONNECTION_ID frame MUST NOT refer to the Destination Connection
//# ID field of the packet in which the frame is contained
#[test]
fn a_packet_that_retires_its_own_connection_id_is_a_violation() {
    let (mut ids, mut source) = local(2, 1);
    sent(&mut ids, &mut source);
    assert_eq!(code(ids.on_retire(ONE, 0, (ONE, 0))), ErrorCode::PROTOCOL_VIOLATION);
    assert_eq!(ids.on_retire(PathId::ZERO, 0, (ONE, 0)), Ok(()), "the same number on another path is not it");
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-19.15
//= type=test
//# An endpoint MUST NOT send this frame if it currently requires that its peer send packets with a
//# zero-length Destination Connection ID
//= https://www.rfc-editor.org/rfc/rfc9000#section-19.16
//= type=test
//# An endpoint that provides a zero- length connection ID MUST treat receipt of a RETIRE_CONNECTION_ID frame
//# as a connection error of type PROTOCOL_VIOLATION.
#[test]
fn retiring_an_empty_connection_id_is_a_violation_and_none_are_issued() {
    let mut ids = LocalIds::new(ConnectionId::EMPTY);
    ids.set_peer_limit(4);
    ids.set_multipath(PathId(2));
    assert_eq!(ids.next_frame(&mut Counter(0)), None);
    assert_eq!(code(ids.on_retire(PathId::ZERO, 0, CARRIER)), ErrorCode::PROTOCOL_VIOLATION);
    assert_eq!(ids.lookup(&ConnectionId::EMPTY), Some((PathId::ZERO, 0)));
}

#[test]
fn a_retired_connection_id_is_recognized_a_little_longer_for_slow_paths() {
    let (mut ids, mut source) = single_path(2);
    sent(&mut ids, &mut source);
    for sequence in 0..=LINGERING as u64 {
        assert!(ids.take_gone().is_empty());
        ids.on_retire(PathId::ZERO, sequence, CARRIER).unwrap();
        assert_eq!(ids.lookup(&id(sequence)), Some((PathId::ZERO, sequence)));
        sent(&mut ids, &mut source);
        ids.take_new();
        if sequence + 1 == LINGERING as u64 {
            assert_eq!(ids.lookup(&id(0)), Some((PathId::ZERO, 0)));
        }
    }
    assert_eq!((ids.take_gone(), ids.lookup(&id(0))), (vec![id(0)], None));
}

#[test]
fn the_peer_is_asked_to_retire_what_it_has_for_as_many_new_ones() {
    // RFC 9000 §5.1.2.
    let (mut ids, mut source) = single_path(3);
    sent(&mut ids, &mut source);
    assert!(ids.request_retirement(PathId::ZERO));
    let frames = sent(&mut ids, &mut source);
    let names: Vec<_> = frames.iter().map(|frame| (frame.sequence, frame.retire_prior_to)).collect();
    assert_eq!(names, [(3, 3), (4, 3), (5, 3)]);
    // Those of before are recognized until the peer obeys, and a little longer.
    for sequence in 0..3 {
        assert_eq!(ids.lookup(&id(sequence)), Some((PathId::ZERO, sequence)));
        ids.on_retire(PathId::ZERO, sequence, CARRIER).unwrap();
        assert_eq!(ids.lookup(&id(sequence)), Some((PathId::ZERO, sequence)));
    }
    assert!(sent(&mut ids, &mut source).is_empty(), "they were replaced already");
    // A loss is repeated unchanged (§13.3).
    ids.on_lost(PathId::ZERO, 4);
    assert!(ids.request_retirement(PathId::ZERO));
    let frames = sent(&mut ids, &mut source);
    let names: Vec<_> = frames.iter().map(|frame| (frame.sequence, frame.retire_prior_to)).collect();
    assert_eq!(names, [(4, 3), (6, 6), (7, 6), (8, 6)]);
}

#[test]
fn a_peer_that_does_not_retire_anything_is_not_given_more_and_more() {
    let (mut ids, mut source) = local(4, 2);
    sent(&mut ids, &mut source);
    for _ in 0..100 {
        assert!(ids.request_retirement(PathId::ZERO));
        sent(&mut ids, &mut source);
    }
    assert_eq!(ids.next_sequence(PathId::ZERO), 2 * IDS_PER_PATH);
    assert!(!ids.request_retirement(PathId(2)), "a path that is not in use has none to spare");
    assert!(!ids.request_retirement(PathId(77)));
    assert!(!LocalIds::new(ConnectionId::EMPTY).request_retirement(PathId::ZERO));
}

#[test]
fn an_endless_exchange_of_connection_ids_keeps_constant_state() {
    let (mut ids, mut source) = local(4, 2);
    for sequence in 0..50_000 {
        sent(&mut ids, &mut source);
        for path in [PathId::ZERO, ONE, PathId(2)] {
            ids.on_retire(path, sequence, CARRIER).unwrap();
        }
        ids.take_new();
        ids.take_gone();
    }
    assert!(ids.all().count() <= 3 * (IDS_PER_PATH as usize + LINGERING), "{}", ids.all().count());
    assert!(ids.lost.is_empty() && ids.short.len() <= 3);
}

#[test]
fn an_abandoned_path_keeps_its_connection_ids_but_gets_no_more() {
    let (mut ids, mut source) = local(2, 1);
    let frames = sent(&mut ids, &mut source);
    ids.on_lost(ONE, 0);
    ids.close_path(ONE);
    ids.open_path(ONE);
    assert_eq!(sent(&mut ids, &mut source), []);
    ids.on_lost(ONE, 0);
    assert_eq!(ids.on_retire(ONE, 0, CARRIER), Ok(()));
    assert_eq!(sent(&mut ids, &mut source), []);
    assert_eq!(
        ids.lookup(&frames[0].id),
        Some((ONE, 0)),
        "late packets are not answered with a stateless reset"
    );
}

//= https://www.rfc-editor.org/rfc/rfc10069#section-4
//= type=test
//# If an endpoint receives a multipath-specific frame with a path ID that it cannot process anymore (e.g.,
//# because the path might have been abandoned), it MUST silently ignore the frame.
#[test]
fn a_freed_path_is_forgotten_and_its_frames_are_ignored() {
    let (mut ids, mut source) = local(2, 2);
    let frames = sent(&mut ids, &mut source);
    ids.take_new();
    assert!(!ids.has_changes());
    ids.drop_path(ONE);
    assert!(ids.has_changes());
    assert_eq!((ids.take_gone(), ids.lookup(&frames[0].id)), (vec![frames[0].id], None));
    assert_eq!(ids.on_retire(ONE, 7, CARRIER), Ok(()));
    ids.on_lost(ONE, 0);
    ids.on_acknowledged(ONE, 0);
    ids.open_path(ONE);
    ids.drop_path(ONE);
    assert_eq!((sent(&mut ids, &mut source), ids.take_gone()), (vec![], vec![]));
    assert_eq!((ids.has_issued(ONE), ids.next_sequence(ONE)), (false, 0));
}

#[test]
fn the_router_hears_of_the_end_of_those_connection_ids_that_it_heard_of() {
    let (mut ids, mut source) = local(1, 1);
    sent(&mut ids, &mut source);
    assert_eq!(ids.take_new(), [id(0), id(1)]);
    ids.set_multipath(PathId(3));
    sent(&mut ids, &mut source);
    ids.drop_path(ONE);
    ids.drop_path(PathId(3));
    assert_eq!((ids.take_new(), ids.take_gone()), (vec![id(2)], vec![id(1)]));
}

#[test]
fn a_path_abandoned_before_it_had_connection_ids_never_gets_any() {
    let (mut ids, mut source) = local(2, 0);
    sent(&mut ids, &mut source);
    ids.close_path(ONE);
    ids.drop_path(ONE);
    ids.close_path(PathId(2));
    ids.set_multipath(PathId(4));
    assert_eq!(names(&sent(&mut ids, &mut source)), [(3, 0), (4, 0)]);
    assert_eq!(ids.on_retire(PathId(2), 0, CARRIER), Ok(()));
}

#[test]
fn a_freed_path_makes_room_for_the_next() {
    let (mut ids, mut source) = local(4, u32::MAX);
    sent(&mut ids, &mut source);
    ids.drop_path(PathId(5));
    assert_eq!(names(&sent(&mut ids, &mut source)), [(MAX_PATHS as u32, 0)]);
}

#[test]
fn path_zero_can_be_abandoned_too() {
    let (mut ids, mut source) = local(2, 1);
    sent(&mut ids, &mut source);
    ids.drop_path(PathId::ZERO);
    assert_eq!(sent(&mut ids, &mut source), []);
    assert_eq!((ids.lookup(&id(0)), ids.lookup(&id(1))), (None, Some((ONE, 0))));
}

#[test]
fn the_preferred_address_has_sequence_number_one() {
    let mut ids = LocalIds::new(id(0));
    ids.set_preferred(id(100), ResetToken([1; 16]));
    ids.set_peer_limit(3);
    let frames = sent(&mut ids, &mut Counter(0));
    assert_eq!(frames.iter().map(|frame| frame.sequence).collect::<Vec<_>>(), [2]);
    assert_eq!(ids.lookup(&id(100)), Some((PathId::ZERO, 1)));
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-5.1
//= type=test
//# As a trivial example, this means the same connection ID MUST NOT be issued more than once on the same
//# connection.
#[test]
fn a_source_that_repeats_itself_leads_to_no_duplicate() {
    struct Stuck;
    impl IdSource for Stuck {
        fn issue(&mut self) -> (ConnectionId, ResetToken) {
            (id(0), ResetToken([0; 16]))
        }
    }
    let mut ids = LocalIds::new(id(0));
    ids.set_peer_limit(4);
    assert_eq!(ids.next_frame(&mut Stuck), None);
}
