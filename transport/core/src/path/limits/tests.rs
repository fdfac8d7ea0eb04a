use super::*;
use crate::error::ErrorCode;

fn negotiated(local: u32, peer: u32) -> PathLimits {
    let mut limits = PathLimits::new(Some(PathId(local)));
    limits.set_peer(Some(PathId(peer)));
    limits
}

fn code<T: std::fmt::Debug>(result: Result<T, TransportError>) -> ErrorCode {
    result.expect_err("an error was expected").code
}

fn frame(limits: &mut PathLimits) -> Option<Frame> {
    limits.next_frame().map(|(frame, _)| frame)
}

#[test]
fn the_highest_path_is_the_smaller_of_both_limits() {
    assert_eq!(negotiated(3, 7).highest(), PathId(3));
    assert_eq!(negotiated(3, 1).highest(), PathId(1));
    assert_eq!(negotiated(0, 9).highest(), PathId::ZERO);
}

//= https://www.rfc-editor.org/rfc/rfc10069#section-2
//= type=test
//# If either of the endpoints does not advertise the initial_max_path_id transport parameter, then both
//# endpoints MUST NOT use any frame or mechanism defined in this document
#[test]
fn multipath_needs_the_transport_parameter_of_both_endpoints() {
    let mut limits = PathLimits::new(Some(PathId(3)));
    assert!(!limits.is_negotiated());
    limits.set_peer(None);
    assert_eq!(
        (limits.is_negotiated(), limits.highest(), limits.form()),
        (false, PathId::ZERO, Form::SinglePath)
    );
    let mut without = PathLimits::new(None);
    without.set_peer(Some(PathId(3)));
    assert!(!without.is_negotiated());
    assert_eq!(negotiated(0, 0).form(), Form::Multipath);
}

#[test]
fn multipath_frames_without_negotiation_are_unknown_frames() {
    let mut limits = PathLimits::new(Some(PathId(3)));
    assert_eq!(code(limits.validate(PathId::ZERO)), ErrorCode::FRAME_ENCODING_ERROR);
    assert_eq!(code(limits.on_max_path_id(9)), ErrorCode::FRAME_ENCODING_ERROR);
    assert_eq!(code(limits.on_paths_blocked(0)), ErrorCode::FRAME_ENCODING_ERROR);
    assert_eq!(code(limits.on_path_cids_blocked(PathId::ZERO, 0, 0)), ErrorCode::FRAME_ENCODING_ERROR);
}

//= https://www.rfc-editor.org/rfc/rfc10069#section-4
//= type=test
//# if no MAX_PATH_ID frame was received yet, MUST be treated as a connection error of type
//# PROTOCOL_VIOLATION.
#[test]
fn a_path_above_the_announced_limit_is_a_violation_whatever_the_peer_allows() {
    let limits = negotiated(3, 100);
    assert_eq!(limits.validate(PathId(3)), Ok(()));
    assert_eq!(code(limits.validate(PathId(4))), ErrorCode::PROTOCOL_VIOLATION);
    assert_eq!(code(limits.validate(PathId(u32::MAX))), ErrorCode::PROTOCOL_VIOLATION);
    assert_eq!(negotiated(3, 0).validate(PathId(3)), Ok(()));
}

//= https://www.rfc-editor.org/rfc/rfc10069#section-4.6
//= type=test
//# Receipt of an invalid Maximum Path Identifier value MUST be treated as a connection error of type
//# PROTOCOL_VIOLATION.
#[test]
fn max_path_id_above_32_bits_is_a_violation() {
    let mut limits = negotiated(3, 1);
    assert_eq!(code(limits.on_max_path_id(1 << 32)), ErrorCode::PROTOCOL_VIOLATION);
    assert_eq!(code(limits.on_max_path_id(u64::MAX)), ErrorCode::PROTOCOL_VIOLATION);
    assert_eq!(limits.on_max_path_id((1 << 32) - 1), Ok(Some(PathId(u32::MAX))));
    assert_eq!(limits.highest(), PathId(3));
}

//= https://www.rfc-editor.org/rfc/rfc10069#section-4.6
//= type=test
//# Receipt of an invalid Maximum Path Identifier value MUST be treated as a connection error of type
//# PROTOCOL_VIOLATION.
#[test]
fn max_path_id_below_the_transport_parameter_is_a_violation() {
    let mut limits = negotiated(3, 2);
    assert_eq!(code(limits.on_max_path_id(1)), ErrorCode::PROTOCOL_VIOLATION);
}

//= https://www.rfc-editor.org/rfc/rfc10069#section-4.6
//= type=test
//# MAX_PATH_ID frames that do not increase the path limit MUST be ignored.
#[test]
fn max_path_id_that_raises_nothing_is_ignored() {
    let mut limits = negotiated(9, 2);
    assert_eq!(limits.on_max_path_id(2), Ok(None));
    assert_eq!(limits.on_max_path_id(5), Ok(Some(PathId(5))));
    assert_eq!(limits.on_max_path_id(4), Ok(None));
    assert_eq!((limits.peer(), limits.highest()), (PathId(5), PathId(5)));
}

//= https://www.rfc-editor.org/rfc/rfc10069#section-4.7
//= type=test
//# Receipt of a value of Maximum Path Identifier or Path Identifier that is higher than the local maximum
//# value MUST be treated as a connection error of type PROTOCOL_VIOLATION.
#[test]
fn blocked_frames_above_the_limit_are_violations() {
    let limits = negotiated(3, 100);
    assert_eq!(limits.on_paths_blocked(3), Ok(()));
    assert_eq!(code(limits.on_paths_blocked(4)), ErrorCode::PROTOCOL_VIOLATION);
    assert_eq!(code(limits.on_paths_blocked(u64::MAX)), ErrorCode::PROTOCOL_VIOLATION);
    assert_eq!(limits.on_path_cids_blocked(PathId(3), 2, 2), Ok(()));
    assert_eq!(code(limits.on_path_cids_blocked(PathId(4), 0, 2)), ErrorCode::PROTOCOL_VIOLATION);
}

//= https://www.rfc-editor.org/rfc/rfc10069#section-4.7
//= type=test
//# of the next expected to be issued connection ID for this path MUST be treated as a connection error of
//# type PROTOCOL_VIOLATION.
#[test]
fn path_cids_blocked_must_not_expect_more_than_the_next_sequence_number() {
    let limits = negotiated(3, 3);
    assert_eq!(limits.on_path_cids_blocked(PathId(1), 0, 2), Ok(()));
    assert_eq!(code(limits.on_path_cids_blocked(PathId(1), 3, 2)), ErrorCode::PROTOCOL_VIOLATION);
}

#[test]
fn a_flood_of_blocked_frames_is_answered_with_nothing() {
    let mut limits = negotiated(3, 3);
    for _ in 0..10_000 {
        assert_eq!(limits.on_paths_blocked(3), Ok(()));
        assert_eq!(limits.on_path_cids_blocked(PathId(2), 1, 1), Ok(()));
    }
    assert_eq!(frame(&mut limits), None);
}

#[test]
fn a_raised_limit_is_announced_once_and_again_if_lost() {
    let mut limits = negotiated(1, 9);
    limits.raise(PathId(3));
    let (sent, token) = limits.next_frame().unwrap();
    assert_eq!((sent, &token), (Frame::MaxPathId(3), &RecoveryToken::MaxPathId(PathId(3))));
    assert_eq!(frame(&mut limits), None);
    limits.on_lost(&token);
    assert_eq!(frame(&mut limits), Some(Frame::MaxPathId(3)));
    limits.on_acknowledged(&token);
    limits.on_lost(&token);
    assert_eq!(frame(&mut limits), None);
    assert_eq!((limits.local(), limits.highest()), (PathId(3), PathId(3)));
}

#[test]
fn a_superseded_limit_is_not_repeated() {
    let mut limits = negotiated(1, 9);
    limits.raise(PathId(2));
    let (_, old) = limits.next_frame().unwrap();
    limits.raise(PathId(4));
    assert_eq!(frame(&mut limits), Some(Frame::MaxPathId(4)));
    limits.on_lost(&old);
    assert_eq!(frame(&mut limits), None);
}

//= https://www.rfc-editor.org/rfc/rfc10069#section-4.6
//= type=test
//# This value MUST NOT exceed 2^32-1, which is the maximum allowed value for the path ID due to restrictions
//# on the nonce calculation (see Section 2.4)
//= https://www.rfc-editor.org/rfc/rfc10069#section-4.6
//= type=test
//# The Maximum Path Identifier value MUST NOT be lower than the value advertised in the initial_max_path_id
//# transport parameter.
#[test]
fn the_limit_never_falls_and_stops_at_32_bits() {
    let mut limits = negotiated(5, 9);
    limits.raise(PathId(2));
    assert_eq!((limits.local(), frame(&mut limits)), (PathId(5), None));
    limits.raise(PathId(u32::MAX - 1));
    limits.return_credit(7);
    assert_eq!(
        (limits.local(), frame(&mut limits)),
        (PathId(u32::MAX), Some(Frame::MaxPathId(u64::from(u32::MAX))))
    );
    limits.return_credit(7);
    assert_eq!((limits.local(), frame(&mut limits)), (PathId(u32::MAX), None));
}

#[test]
fn paths_blocked_is_said_once_for_each_limit() {
    let mut limits = negotiated(9, 2);
    assert_eq!(limits.on_paths_exhausted(), BlockedBy::Peer);
    let (sent, token) = limits.next_frame().unwrap();
    assert_eq!(sent, Frame::PathsBlocked(2));
    limits.on_acknowledged(&token);
    assert_eq!(limits.on_paths_exhausted(), BlockedBy::Peer);
    assert_eq!(frame(&mut limits), None);
    limits.on_max_path_id(4).unwrap();
    limits.on_lost(&token);
    assert_eq!(frame(&mut limits), None);
    limits.on_paths_exhausted();
    assert_eq!(frame(&mut limits), Some(Frame::PathsBlocked(4)));
}

#[test]
fn the_own_limit_in_the_way_is_no_news_for_the_peer() {
    let mut limits = negotiated(1, 2);
    assert_eq!(limits.on_paths_exhausted(), BlockedBy::Local);
    assert_eq!(frame(&mut limits), None);
}

#[test]
fn a_lack_of_connection_ids_is_reported_once_for_each_sequence_number() {
    let mut limits = negotiated(3, 3);
    limits.on_ids_exhausted(PathId(1), 2);
    let (sent, token) = limits.next_frame().unwrap();
    assert_eq!(sent, Frame::PathCidsBlocked { path: PathId(1), next_sequence: 2 });
    limits.on_ids_exhausted(PathId(1), 2);
    assert_eq!(frame(&mut limits), None);
    limits.on_lost(&token);
    assert!(frame(&mut limits).is_some());
    limits.on_acknowledged(&token);
    limits.on_ids_exhausted(PathId(1), 2);
    assert_eq!(frame(&mut limits), None);
    limits.on_ids_exhausted(PathId(1), 3);
    assert_eq!(frame(&mut limits), Some(Frame::PathCidsBlocked { path: PathId(1), next_sequence: 3 }));
    limits.clear_ids_exhausted(PathId(1));
    limits.on_lost(&token);
    assert_eq!(frame(&mut limits), None);
}

#[test]
fn reports_name_no_path_above_the_limit_and_their_number_is_bounded() {
    let mut limits = negotiated(1000, 1000);
    limits.on_ids_exhausted(PathId(1001), 0);
    assert_eq!(frame(&mut limits), None);
    for path in 0..=1000 {
        limits.on_ids_exhausted(PathId(path), 0);
    }
    assert_eq!(limits.ids_blocked.len(), MAX_REPORTS);
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-19.21
//= type=test
//# An extension to QUIC that wishes to use a new type of frame MUST first ensure that a peer is able to
//# understand the frame
#[test]
fn nothing_is_said_about_paths_without_multipath() {
    for local in [None, Some(PathId(3))] {
        let mut limits = PathLimits::new(local);
        limits.set_peer(None);
        limits.raise(PathId(4));
        limits.return_credit(1);
        limits.on_paths_exhausted();
        limits.on_ids_exhausted(PathId::ZERO, 1);
        assert_eq!(frame(&mut limits), None, "{local:?}");
    }
}

#[test]
fn a_lost_report_of_blocked_paths_is_repeated_while_its_limit_holds() {
    let mut limits = negotiated(7, 3);
    assert_eq!(limits.on_paths_exhausted(), BlockedBy::Peer);
    let (first, token) = limits.next_frame().expect("a report");
    assert_eq!((first, limits.next_frame()), (Frame::PathsBlocked(3), None));
    limits.on_lost(&token);
    assert_eq!(frame(&mut limits), Some(Frame::PathsBlocked(3)));
    limits.on_acknowledged(&token);
    limits.on_lost(&token);
    assert_eq!(frame(&mut limits), None, "a copy arrived");
    assert_eq!(limits.on_max_path_id(5), Ok(Some(PathId(5))));
    assert_eq!(limits.on_paths_exhausted(), BlockedBy::Peer);
    assert_eq!(frame(&mut limits), Some(Frame::PathsBlocked(5)));
    limits.on_lost(&token);
    assert_eq!(frame(&mut limits), None, "nobody needs to know of the former limit");
}

#[test]
fn whose_limit_is_in_the_way_is_the_peers_where_both_are_equal() {
    assert_eq!(negotiated(3, 3).on_paths_exhausted(), BlockedBy::Peer);
    assert_eq!(negotiated(2, 3).on_paths_exhausted(), BlockedBy::Local);
}

#[test]
fn the_highest_path_may_report_that_it_lacks_connection_ids_and_no_higher_one() {
    let mut limits = negotiated(3, 3);
    limits.on_ids_exhausted(PathId(4), 1);
    assert_eq!(frame(&mut limits), None);
    limits.on_ids_exhausted(PathId(3), 1);
    assert_eq!(frame(&mut limits), Some(Frame::PathCidsBlocked { path: PathId(3), next_sequence: 1 }));
}
