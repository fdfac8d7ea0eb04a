use super::*;
use proptest::prelude::*;

const ZERO: PathId = PathId::ZERO;
const ONE: PathId = PathId(1);
const LIMIT: usize = 4;

fn id(number: u64) -> ConnectionId {
    ConnectionId::new(&number.to_be_bytes()).unwrap()
}

fn token(number: u64) -> ResetToken {
    ResetToken([number as u8; 16])
}

/// Connection IDs of different paths and sequence numbers differ.
fn new_id(path: u32, sequence: u64, retire_prior_to: u64) -> NewConnectionId {
    let number = u64::from(path) << 32 | sequence;
    NewConnectionId {
        path: Some(PathId(path)),
        sequence,
        retire_prior_to,
        id: id(number),
        token: token(number),
    }
}

/// Path 0 uses the ID that `new_id(0, 0, _)` would bring.
fn remote() -> RemoteIds {
    let mut ids = RemoteIds::new(LIMIT);
    ids.set_initial(id(0));
    ids.set_multipath();
    ids
}

fn code(result: Result<(), TransportError>) -> ErrorCode {
    result.expect_err("an error was expected").code
}

fn retired(ids: &mut RemoteIds) -> Vec<(PathId, u64)> {
    std::iter::from_fn(|| ids.next_frame())
        .map(|(frame, token)| match frame {
            Frame::RetireConnectionId { path, sequence } => {
                let path = path.unwrap_or(ZERO);
                assert_eq!(token, RecoveryToken::RetireConnectionId { path, sequence });
                (path, sequence)
            }
            other => panic!("{other:?}"),
        })
        .collect()
}

#[test]
fn the_first_connection_id_of_path_zero_follows_the_handshake() {
    let mut ids = RemoteIds::new(LIMIT);
    assert_eq!(ids.current(ZERO), None);
    ids.set_initial(id(7));
    ids.set_initial(id(8));
    assert_eq!(ids.current(ZERO), Some(id(8)));
    assert_eq!((ids.next_expected_sequence(ZERO), ids.has_unused(ZERO)), (1, false));
    assert_eq!(
        ids.on_new(NewConnectionId { id: id(7), ..new_id(0, 1, 0) }),
        Ok(()),
        "id 7 was the client's guess"
    );
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-5.1.1
//= type=test
//# an endpoint MUST close the connection with an error of type CONNECTION_ID_LIMIT_ERROR.
#[test]
fn more_active_connection_ids_than_the_limit_are_an_error() {
    let mut ids = remote();
    for sequence in 1..4 {
        assert_eq!(ids.on_new(new_id(0, sequence, 0)), Ok(()));
    }
    assert_eq!(code(ids.on_new(new_id(0, 4, 0))), ErrorCode::CONNECTION_ID_LIMIT_ERROR);
}

#[test]
fn the_limit_counts_for_each_path() {
    let mut ids = remote();
    for path in 1..4 {
        for sequence in 0..4 {
            assert_eq!(ids.on_new(new_id(path, sequence, 0)), Ok(()));
        }
    }
    assert_eq!(ids.known().count(), 1 + 3 * LIMIT);
    assert_eq!(code(ids.on_new(new_id(2, 4, 0))), ErrorCode::CONNECTION_ID_LIMIT_ERROR);
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-5.1.1
//= type=test
//# an endpoint MUST close the connection with an error of type CONNECTION_ID_LIMIT_ERROR.
#[test]
fn the_limit_counts_after_retirement() {
    let mut ids = remote();
    for sequence in 1..4 {
        ids.on_new(new_id(0, sequence, 0)).unwrap();
    }
    assert_eq!(ids.on_new(new_id(0, 4, 1)), Ok(()));
    assert_eq!(retired(&mut ids), [(ZERO, 0)]);
}

#[test]
fn a_sequence_number_with_another_connection_id_is_a_violation() {
    let mut ids = remote();
    ids.on_new(new_id(1, 0, 0)).unwrap();
    let other = NewConnectionId { id: id(77), ..new_id(1, 0, 0) };
    assert_eq!(code(ids.on_new(other)), ErrorCode::PROTOCOL_VIOLATION);
    let handshake = NewConnectionId { id: id(77), ..new_id(0, 0, 0) };
    assert_eq!(code(ids.on_new(handshake)), ErrorCode::PROTOCOL_VIOLATION);
}

#[test]
fn a_retired_sequence_number_with_another_connection_id_is_a_violation() {
    let mut ids = remote();
    ids.on_new(new_id(0, 1, 1)).unwrap();
    let other = NewConnectionId { id: id(77), ..new_id(0, 0, 0) };
    assert_eq!(code(ids.on_new(other)), ErrorCode::PROTOCOL_VIOLATION);
}

#[test]
fn a_connection_id_with_another_sequence_number_is_a_violation() {
    let mut ids = remote();
    ids.on_new(new_id(1, 0, 0)).unwrap();
    let again = NewConnectionId { sequence: 1, ..new_id(1, 0, 0) };
    assert_eq!(code(ids.on_new(again)), ErrorCode::PROTOCOL_VIOLATION);
}

#[test]
fn a_connection_id_on_two_paths_is_a_violation() {
    let mut ids = remote();
    ids.on_new(new_id(1, 0, 0)).unwrap();
    let elsewhere = NewConnectionId { path: Some(PathId(2)), ..new_id(1, 0, 0) };
    assert_eq!(code(ids.on_new(elsewhere)), ErrorCode::PROTOCOL_VIOLATION);
    let of_handshake = NewConnectionId { id: id(0), ..new_id(2, 0, 0) };
    assert_eq!(code(ids.on_new(of_handshake)), ErrorCode::PROTOCOL_VIOLATION);
}

#[test]
fn a_connection_id_with_two_tokens_is_a_violation() {
    let mut ids = remote();
    ids.on_new(new_id(1, 0, 0)).unwrap();
    let other = NewConnectionId { token: token(9), ..new_id(1, 0, 0) };
    assert_eq!(code(ids.on_new(other)), ErrorCode::PROTOCOL_VIOLATION);
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-19.15
//= type=test
//# The value in the Retire Prior To field MUST be less than or equal to the value in the Sequence Number
//# field
//= https://www.rfc-editor.org/rfc/rfc9000#section-19.15
//= type=test
//# Receiving a value in the Retire Prior To field that is greater than that in the Sequence Number field MUST
//# be treated as a connection error of type FRAME_ENCODING_ERROR.
#[test]
fn malformed_fields_are_encoding_errors() {
    let mut ids = remote();
    assert_eq!(code(ids.on_new(new_id(1, 1, 2))), ErrorCode::FRAME_ENCODING_ERROR);
    let empty = NewConnectionId { id: ConnectionId::EMPTY, ..new_id(1, 0, 0) };
    assert_eq!(code(ids.on_new(empty)), ErrorCode::FRAME_ENCODING_ERROR);
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-19.15
//= type=test
//# An endpoint that is sending packets with a zero-length Destination Connection ID MUST treat receipt of a
//# NEW_CONNECTION_ID frame as a connection error of type PROTOCOL_VIOLATION.
#[test]
fn a_peer_without_connection_ids_must_not_issue_any() {
    let mut ids = RemoteIds::new(LIMIT);
    ids.set_initial(ConnectionId::EMPTY);
    assert_eq!(code(ids.on_new(new_id(0, 1, 0))), ErrorCode::PROTOCOL_VIOLATION);
    assert_eq!(ids.current(ZERO), Some(ConnectionId::EMPTY));
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-19.15
//= type=test
//# Receipt of the same frame multiple times MUST NOT be treated as a connection error
#[test]
fn a_repeated_frame_is_ignored() {
    let mut ids = remote();
    for _ in 0..1000 {
        assert_eq!(ids.on_new(new_id(1, 0, 0)), Ok(()));
    }
    assert_eq!((ids.known().count(), retired(&mut ids)), (2, vec![]));
}

#[test]
fn a_repeated_frame_does_not_bring_back_what_was_given_up() {
    let mut ids = remote();
    ids.on_new(new_id(0, 1, 0)).unwrap();
    ids.on_new(new_id(0, 2, 0)).unwrap();
    assert_eq!(ids.rotate(ZERO, 2), None, "two are to be left");
    assert_eq!(ids.rotate(ZERO, 0), Some(id(1)));
    assert_eq!(ids.rotate(ZERO, 0), Some(id(2)));
    for (path, sequence) in retired(&mut ids) {
        ids.on_acknowledged(path, sequence);
    }
    assert_eq!(ids.on_new(new_id(0, 1, 0)), Ok(()));
    assert_eq!((ids.has_unused(ZERO), retired(&mut ids)), (false, vec![]));
}

#[test]
fn the_form_of_rfc_9000_means_path_zero() {
    let mut ids = remote();
    assert_eq!(ids.on_new(NewConnectionId { path: None, ..new_id(0, 1, 0) }), Ok(()));
    assert_eq!(ids.on_new(new_id(0, 1, 0)), Ok(()), "the same in the other form is a repetition");
    assert_eq!(ids.on_new(NewConnectionId { path: None, ..new_id(0, 2, 1) }), Ok(()));
    assert_eq!(ids.on_new(new_id(1, 0, 0)), Ok(()));
    assert_eq!((ids.current(ZERO), ids.next_expected_sequence(ZERO)), (Some(id(1)), 3));
}

#[test]
fn retirement_is_told_in_the_form_that_was_negotiated() {
    let mut plain = RemoteIds::new(LIMIT);
    plain.set_initial(id(0));
    plain.on_new(NewConnectionId { path: None, ..new_id(0, 1, 0) }).unwrap();
    assert!(!plain.has_retirements());
    plain.rotate(ZERO, 0);
    assert!(plain.has_retirements());
    let frame = plain.next_frame().map(|(frame, _)| frame);
    assert_eq!(frame, Some(Frame::RetireConnectionId { path: None, sequence: 0 }));
    let mut multipath = remote();
    multipath.on_new(new_id(0, 1, 1)).unwrap();
    let frame = multipath.next_frame().map(|(frame, _)| frame);
    assert_eq!(frame, Some(Frame::RetireConnectionId { path: Some(ZERO), sequence: 0 }));
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-5.1.2
//= type=test
//# Upon receipt of an increased Retire Prior To field, the peer MUST stop using the corresponding connection
//# IDs and retire them with RETIRE_CONNECTION_ID frames before adding the newly provided
#[test]
fn retire_prior_to_moves_the_path_to_the_next_connection_id_and_leaves_other_paths() {
    let mut ids = remote();
    ids.on_new(new_id(1, 0, 0)).unwrap();
    ids.on_new(new_id(0, 1, 0)).unwrap();
    ids.on_new(new_id(0, 2, 2)).unwrap();
    assert_eq!(retired(&mut ids), [(ZERO, 0), (ZERO, 1)]);
    assert_eq!((ids.current(ZERO), ids.current(ONE)), (Some(id(2)), Some(new_id(1, 0, 0).id)));
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-19.15
//= type=test
//# A receiver MUST ignore any Retire Prior To fields that do not increase the largest received Retire Prior
//# To value.
//= https://www.rfc-editor.org/rfc/rfc9000#section-19.15
//= type=test
//# Prior To field of a previously received NEW_CONNECTION_ID frame MUST send a corresponding
//# RETIRE_CONNECTION_ID frame that retires the newly received connection ID
#[test]
fn a_connection_id_that_arrives_after_its_retirement_is_given_back_at_once() {
    let mut ids = remote();
    ids.on_new(new_id(0, 5, 5)).unwrap();
    assert_eq!(retired(&mut ids), [(ZERO, 0)]);
    assert_eq!(ids.on_new(new_id(0, 3, 0)), Ok(()));
    assert_eq!(retired(&mut ids), [(ZERO, 3)]);
    assert_eq!((ids.current(ZERO), ids.has_unused(ZERO)), (Some(id(5)), false));
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-5.1.2
//= type=test
//# An endpoint MUST NOT forget a connection ID without retiring it, though it MAY choose to treat having
//# connection IDs in need of retirement that exceed this limit as a connection error of type
#[test]
fn retirements_without_end_close_the_connection() {
    let mut ids = remote();
    let mut accepted = 0;
    let error = (1..1_000_000).find_map(|sequence| {
        accepted = sequence;
        retired(&mut ids);
        ids.on_new(new_id(0, sequence, sequence)).err()
    });
    assert_eq!(error.unwrap().code, ErrorCode::CONNECTION_ID_LIMIT_ERROR);
    assert_eq!(accepted, 10 * LIMIT as u64 + 1);
}

#[test]
fn late_connection_ids_without_end_close_the_connection() {
    let mut ids = remote();
    ids.on_new(new_id(0, 1_000_000, 1_000_000)).unwrap();
    let error = (1..1_000_000).find_map(|sequence| ids.on_new(new_id(0, sequence, 0)).err());
    assert_eq!(error.unwrap().code, ErrorCode::CONNECTION_ID_LIMIT_ERROR);
}

#[test]
fn retirements_on_all_paths_at_once_are_bounded_together() {
    let mut ids = remote();
    let frames = (1..200).flat_map(|sequence| (0..64).map(move |path| new_id(path, sequence, sequence)));
    let error = frames.enumerate().find_map(|(accepted, frame)| Some((accepted, ids.on_new(frame).err()?)));
    let (accepted, error) = error.unwrap();
    // All but the first on each path retire one, on path 0 that as well: the last of the fifth round is the 257th.
    assert_eq!((accepted, error.code), (5 * 64 - 1, ErrorCode::CONNECTION_ID_LIMIT_ERROR));
    assert!(ids.known().count() <= 64 * LIMIT + 257, "{}", ids.known().count());
    for path in 0..64 {
        ids.drop_path(PathId(path));
    }
    assert_eq!((ids.known().count(), ids.next_frame()), (0, None));
}

#[test]
fn acknowledged_retirements_may_go_on_for_ever() {
    let mut ids = remote();
    for sequence in 1..20_000 {
        ids.on_new(new_id(0, sequence, sequence)).unwrap();
        for (path, sequence) in retired(&mut ids) {
            ids.on_acknowledged(path, sequence);
        }
    }
    assert_eq!(ids.known().count(), 1);
}

#[test]
fn sequence_numbers_with_gaps_everywhere_close_the_connection() {
    let mut ids = remote();
    let error = (1..1000).find_map(|round| {
        let result = ids.on_new(new_id(0, 2 * round, 0));
        ids.rotate(ZERO, 0);
        for (path, sequence) in retired(&mut ids) {
            ids.on_acknowledged(path, sequence);
        }
        Some((round, result.err()?))
    });
    let (round, error) = error.unwrap();
    assert_eq!(
        (round, error.code),
        (66, ErrorCode::CONNECTION_ID_LIMIT_ERROR),
        "64 gaps are left in the 65th"
    );
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-5.1.2
//= type=test
//# An endpoint MUST NOT forget a connection ID without retiring it, though it MAY choose to treat having
//# connection IDs in need of retirement that exceed this limit as a connection error of type
#[test]
fn a_lost_retirement_is_repeated_until_it_arrives() {
    let mut ids = remote();
    ids.on_new(new_id(0, 1, 1)).unwrap();
    assert_eq!(retired(&mut ids), [(ZERO, 0)]);
    assert_eq!(retired(&mut ids), []);
    ids.on_lost(ZERO, 0);
    assert_eq!(retired(&mut ids), [(ZERO, 0)]);
    ids.on_lost(ZERO, 0);
    ids.on_acknowledged(ZERO, 0);
    assert_eq!(retired(&mut ids), [], "a copy arrived");
    ids.on_lost(ZERO, 0);
    assert_eq!(retired(&mut ids), []);
}

//= https://www.rfc-editor.org/rfc/rfc10069#section-3.2.2
//= type=test
//# For the extension specified in this document, endpoints MUST only rotate to another connection ID
//# associated with the same path ID
#[test]
fn rotation_stays_on_its_path_and_ends_with_the_supply() {
    let mut ids = remote();
    ids.on_new(new_id(1, 0, 0)).unwrap();
    ids.on_new(new_id(1, 1, 0)).unwrap();
    assert_eq!(ids.rotate(ZERO, 0), None, "the connection IDs of path 1 are not for path 0");
    assert_eq!(ids.current(ZERO), Some(id(0)));
    assert_eq!(ids.rotate(ONE, 0), Some(new_id(1, 1, 0).id));
    assert_eq!(ids.rotate(ONE, 0), None);
    assert_eq!(ids.rotate(PathId(5), 0), None);
    assert_eq!(retired(&mut ids), [(ONE, 0)]);
}

#[test]
fn an_unopened_path_counts_its_only_connection_id_as_unused() {
    let mut ids = remote();
    assert!(!ids.has_unused(ONE));
    ids.on_new(new_id(1, 1, 0)).unwrap();
    ids.on_new(new_id(1, 0, 0)).unwrap();
    assert!(ids.has_unused(ONE));
    assert_eq!(ids.current(ONE), Some(new_id(1, 0, 0).id), "the smallest sequence number opens the path");
    ids.open_path(ONE);
    assert!(ids.has_unused(ONE));
    assert!(ids.rotate(ONE, 0).is_some());
    assert!(!ids.has_unused(ONE));
}

#[test]
fn a_connection_id_that_arrives_late_does_not_replace_the_one_in_use() {
    let mut ids = remote();
    ids.on_new(new_id(1, 1, 0)).unwrap();
    ids.open_path(ONE);
    ids.on_new(new_id(1, 0, 0)).unwrap();
    assert_eq!(ids.current(ONE), Some(new_id(1, 1, 0).id));
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-10.3.1
//= type=test
//# An endpoint MUST NOT check for any stateless reset tokens associated with connection IDs it has not used
//# or for connection IDs that have been retired.
//= https://www.rfc-editor.org/rfc/rfc9000#section-10.3.1
//= type=test
//# When comparing a datagram to stateless reset token values, endpoints MUST perform the comparison without
//# leaking information about the value of the token
#[test]
fn only_tokens_in_use_are_reset_tokens() {
    let mut ids = remote();
    assert!(!ids.is_reset_token(&[3; 16]));
    ids.set_initial_token(token(3));
    assert!(ids.is_reset_token(&[3; 16]));
    ids.on_new(new_id(0, 1, 0)).unwrap();
    assert!(!ids.is_reset_token(&[1; 16]), "not used yet");
    ids.rotate(ZERO, 0);
    assert!(ids.is_reset_token(&[1; 16]));
    assert!(!ids.is_reset_token(&[3; 16]), "retired");
    ids.on_new(new_id(1, 2, 0)).unwrap();
    assert!(!ids.is_reset_token(&[2; 16]), "its path is not open");
    ids.open_path(ONE);
    assert!(ids.is_reset_token(&[2; 16]));
    ids.drop_path(ONE);
    assert!(!ids.is_reset_token(&[2; 16]), "its path is abandoned");
}

//= https://www.rfc-editor.org/rfc/rfc10069#section-3.4
//= type=test
//# Endpoints that send a PATH_ABANDON frame MUST treat all connection IDs received from the peer for the path
//# ID indicated in the PATH_ABANDON as immediately retired
//= https://www.rfc-editor.org/rfc/rfc10069#section-4
//= type=test
//# If an endpoint receives a multipath-specific frame with a path ID that it cannot process anymore (e.g.,
//# because the path might have been abandoned), it MUST silently ignore the frame.
#[test]
fn frames_for_an_abandoned_path_build_nothing_up() {
    let mut ids = remote();
    ids.on_new(new_id(1, 0, 0)).unwrap();
    ids.on_new(new_id(1, 1, 1)).unwrap();
    ids.drop_path(ONE);
    assert_eq!((ids.current(ONE), retired(&mut ids)), (None, vec![]), "retired without frames");
    for sequence in 0..1000 {
        assert_eq!(ids.on_new(new_id(1, sequence, sequence)), Ok(()));
    }
    ids.on_lost(ONE, 0);
    ids.on_acknowledged(ONE, 0);
    ids.open_path(ONE);
    assert_eq!((ids.known().count(), ids.paths.len(), retired(&mut ids)), (1, 1, vec![]));
    assert!(!ids.has_unused(ONE) && ids.next_expected_sequence(ONE) == 0);
}

#[test]
fn a_path_abandoned_before_its_connection_ids_came_stays_without() {
    let mut ids = remote();
    ids.drop_path(ONE);
    assert_eq!(ids.on_new(new_id(1, 0, 0)), Ok(()));
    assert_eq!(ids.current(ONE), None);
}

#[test]
fn the_preferred_address_brings_sequence_number_one() {
    let mut ids = remote();
    assert_eq!(ids.set_preferred(id(9), token(9)), Ok(()));
    assert_eq!((ids.next_expected_sequence(ZERO), ids.rotate(ZERO, 0)), (2, Some(id(9))));
}

#[test]
fn a_lent_connection_id_is_used_elsewhere_until_it_changes_places_or_goes_back() {
    let mut ids = remote();
    for sequence in 1..4 {
        ids.on_new(new_id(0, sequence, 0)).unwrap();
    }
    assert_eq!((ids.lend(ZERO), ids.current(ZERO)), (Some(1), Some(id(0))));
    assert_eq!(ids.id_of(ZERO, 1), Some(id(1)));
    assert!(ids.is_reset_token(&[1; 16]), "it is in use");
    assert_eq!(ids.exchange(ZERO, 1), Some(0));
    assert_eq!((ids.current(ZERO), retired(&mut ids)), (Some(id(1)), vec![]));
    ids.give_back(ZERO, 0);
    assert_eq!(retired(&mut ids), [(ZERO, 0)]);
    assert!(!ids.is_reset_token(&[0; 16]));
    assert_eq!((ids.lend(ZERO), ids.lend(ZERO), ids.lend(ZERO)), (Some(2), Some(3), None));
    assert_eq!(ids.rotate(ZERO, 0), None, "lent ones are no spares");
    ids.on_new(new_id(0, 5, 4)).unwrap();
    assert_eq!((ids.current(ZERO), ids.id_of(ZERO, 2)), (Some(id(5)), None), "the peer wants all back");
    assert_eq!(retired(&mut ids), [(ZERO, 1), (ZERO, 2), (ZERO, 3)]);
    ids.give_back(ZERO, 2);
    assert_eq!(retired(&mut ids), []);
}

proptest! {
    #[test]
    fn no_sequence_of_frames_exceeds_the_bounds(
        frames in prop::collection::vec((0_u32..4, 0_u64..40, 0_u64..40, 0_u64..60, 0_u8..6), 0..200)
    ) {
        let mut ids = remote();
        for (path, sequence, below, number, action) in frames {
            match action {
                0 => { ids.rotate(PathId(path), 0); }
                1 => { ids.next_frame(); }
                2 => ids.on_acknowledged(PathId(path), sequence),
                3 => ids.on_lost(PathId(path), sequence),
                4 if number == 0 => ids.drop_path(PathId(path)),
                _ => {
                    let frame = NewConnectionId { id: id(number), ..new_id(path, sequence, below) };
                    if ids.on_new(frame).is_err() {
                        break;
                    }
                }
            }
            for (path, known) in ids.paths.keys().zip(ids.paths.values()) {
                prop_assert!(known.len() <= LIMIT);
                prop_assert_eq!(known.current().is_some(), ids.current(*path).is_some());
            }
            prop_assert!(ids.known().count() <= 4 * (LIMIT + 10 * LIMIT + LIMIT));
        }
    }
}

#[test]
fn connection_ids_have_one_to_twenty_bytes() {
    // RFC 9000 §19.15.
    for (length, is_valid) in [(0, false), (1, true), (19, true), (20, true)] {
        let mut ids = remote();
        let id = ConnectionId::new(&[9; 20][..length]).unwrap();
        let result = ids.on_new(NewConnectionId { id, ..new_id(0, 1, 0) });
        let expected = if is_valid { None } else { Some(ErrorCode::FRAME_ENCODING_ERROR) };
        assert_eq!(result.err().map(|error| error.code), expected, "{length} bytes");
    }
}

#[test]
fn a_token_of_two_connection_ids_in_use_is_one_all_the_same() {
    let mut ids = remote();
    for path in [0, 1] {
        ids.on_new(NewConnectionId { token: token(7), ..new_id(path, 1, 0) }).unwrap();
        ids.open_path(PathId(path));
        assert!(path == 1 || ids.rotate(ZERO, 0).is_some());
    }
    assert_eq!((ids.current(ZERO), ids.current(ONE)), (Some(id(1)), Some(id(1 << 32 | 1))));
    assert!(ids.is_reset_token(&[7; 16]) && !ids.is_reset_token(&[8; 16]));
}

#[test]
fn a_connection_id_that_was_given_back_does_not_come_back() {
    let mut ids = remote();
    ids.on_new(new_id(0, 1, 0)).unwrap();
    assert_eq!(ids.lend(ZERO), Some(1));
    ids.give_back(ZERO, 1);
    assert_eq!(retired(&mut ids), [(ZERO, 1)]);
    ids.on_acknowledged(ZERO, 1);
    // A copy of its frame is late.
    assert_eq!(ids.on_new(new_id(0, 1, 0)), Ok(()));
    assert_eq!((ids.id_of(ZERO, 1), ids.lend(ZERO)), (None, None));
}

#[test]
fn what_is_lent_counts_among_those_that_are_stored() {
    let mut ids = remote();
    (1..4).for_each(|sequence| ids.on_new(new_id(0, sequence, 0)).unwrap());
    assert_eq!(ids.lend(ZERO), Some(1));
    assert_eq!(ids.on_new(new_id(0, 4, 0)).unwrap_err().code, ErrorCode::CONNECTION_ID_LIMIT_ERROR);
}
