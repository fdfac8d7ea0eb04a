use super::*;
use crate::error::TransportError;
use crate::wire::connection_id::ConnectionId;
use crate::wire::header::ShortHeader;
use std::collections::HashSet;

const FAST: PathId = PathId(0);
const SLOW: PathId = PathId(1);

struct Pair {
    client: OneRttKeys,
    server: OneRttKeys,
}

fn pair(suite: Suite) -> Pair {
    let (a, b) = (vec![1; suite.secret_length()], vec![2; suite.secret_length()]);
    Pair { client: OneRttKeys::new(suite, &a, &b), server: OneRttKeys::new(suite, &b, &a) }
}

/// A packet with two bytes of packet number and an 8-byte connection ID.
struct Sealed {
    bytes: Vec<u8>,
    path: PathId,
    number: u64,
}

fn seal(keys: &mut OneRttKeys, path: PathId, number: u64) -> Sealed {
    let mut bytes = Vec::new();
    let destination = ConnectionId::new(&[9; 8]).unwrap();
    let layout = ShortHeader { destination, key_phase: keys.phase(), spin: false }.put(&mut bytes, number, 2);
    bytes.extend_from_slice(&number.to_be_bytes());
    keys.seal(&mut bytes, 0, &layout, path, number);
    Sealed { bytes, path, number }
}

fn open(keys: &mut OneRttKeys, packet: &Sealed) -> Result<KeyGeneration, PacketError> {
    let mut bytes = BytesMut::from(packet.bytes.as_slice());
    let header = keys.unprotect(&mut bytes, 9)?;
    let phase = KeyPhase::of(header.first);
    let (payload, generation) =
        keys.open(bytes, 9 + header.number_length, phase, packet.path, packet.number)?;
    assert_eq!(payload.as_ref(), packet.number.to_be_bytes());
    Ok(generation)
}

fn forged(mut packet: Sealed) -> Sealed {
    *packet.bytes.last_mut().unwrap() ^= 1;
    packet
}

impl Pair {
    /// One packet each way on the fast path, acknowledged, so that the client may update.
    fn exchange(&mut self, number: u64) {
        let packet = seal(&mut self.client, FAST, number);
        open(&mut self.server, &packet).unwrap();
        let answer = seal(&mut self.server, FAST, number);
        open(&mut self.client, &answer).unwrap();
        self.client.on_acknowledged(FAST, number);
        self.server.on_acknowledged(FAST, number);
    }
}

fn code(result: Result<KeyGeneration, PacketError>) -> ErrorCode {
    match result {
        Err(PacketError::Close(TransportError { code, .. })) => code,
        other => panic!("{other:?}"),
    }
}

const UNDECRYPTABLE: Result<KeyGeneration, PacketError> = Err(PacketError::Dropped(Dropped::Undecryptable));

#[test]
fn both_directions_work_with_every_suite() {
    for suite in [Suite::Aes128Gcm, Suite::Aes256Gcm, Suite::ChaCha20Poly1305] {
        let mut pair = pair(suite);
        let packet = seal(&mut pair.client, SLOW, 3);
        assert_eq!(open(&mut pair.server, &packet), Ok(KeyGeneration::Current));
        let packet = seal(&mut pair.server, SLOW, 3);
        assert_eq!(open(&mut pair.client, &packet), Ok(KeyGeneration::Current));
        assert_eq!(open(&mut pair.server, &packet), UNDECRYPTABLE);
    }
}

#[test]
fn a_packet_of_the_next_keys_in_the_current_phase_is_none() {
    let mut pair = pair(Suite::Aes128Gcm);
    pair.client.rotate();
    pair.client.phase = KeyPhase::Zero;
    for number in [5, 6] {
        let packet = seal(&mut pair.client, FAST, number);
        assert_eq!(open(&mut pair.server, &packet), UNDECRYPTABLE);
        assert_eq!(pair.server.phase(), KeyPhase::Zero);
    }
}

//= https://www.rfc-editor.org/rfc/rfc9001#section-6.2
//= type=test
//# The endpoint MUST update its send keys to the corresponding key phase in response, as described in Section
//# 6.1
//= https://www.rfc-editor.org/rfc/rfc9001#section-6.2
//= type=test
//# Sending keys MUST be updated before sending an acknowledgment for the packet that was received with
//# updated keys
//= https://www.rfc-editor.org/rfc/rfc9001#section-6.3
//= type=test
//# For this reason, endpoints MUST be able to retain two sets of packet protection keys for receiving
//# packets: the current and the next
#[test]
fn an_update_is_followed_by_the_peer_and_again_and_again() {
    let mut pair = pair(Suite::Aes128Gcm);
    for round in 0..5 {
        pair.exchange(10 * round);
        let phase = pair.client.phase();
        pair.client.initiate_update().unwrap();
        assert_eq!(pair.client.phase(), phase.next());
        let packet = seal(&mut pair.client, FAST, 10 * round + 1);
        assert_eq!(open(&mut pair.server, &packet), Ok(KeyGeneration::Next));
        assert_eq!(pair.server.phase(), pair.client.phase());
        let answer = seal(&mut pair.server, FAST, 10 * round + 1);
        assert!(!pair.client.is_answered());
        assert_eq!(open(&mut pair.client, &answer), Ok(KeyGeneration::Current));
        assert!(pair.client.is_answered());
        pair.client.discard_previous();
        pair.server.discard_previous();
    }
}

#[test]
fn late_packets_of_the_old_phase_still_open_on_every_path() {
    let mut pair = pair(Suite::Aes128Gcm);
    pair.exchange(0);
    let late_fast = seal(&mut pair.client, FAST, 1);
    let late_slow: Vec<_> = (0..3).map(|number| seal(&mut pair.client, SLOW, number)).collect();
    pair.client.initiate_update().unwrap();
    let update = seal(&mut pair.client, FAST, 2);
    assert_eq!(open(&mut pair.server, &update), Ok(KeyGeneration::Next));
    assert_eq!(open(&mut pair.server, &late_fast), Ok(KeyGeneration::Previous));
    assert_eq!(open(&mut pair.server, &late_slow[0]), Ok(KeyGeneration::Previous));
    // The slow path moves on to the new phase, and then an old packet arrives there too.
    let update = seal(&mut pair.client, SLOW, 3);
    assert_eq!(open(&mut pair.server, &update), Ok(KeyGeneration::Current));
    assert_eq!(open(&mut pair.server, &late_slow[1]), Ok(KeyGeneration::Previous));
    pair.server.discard_previous();
    assert_eq!(open(&mut pair.server, &late_slow[2]), UNDECRYPTABLE);
}

//= https://www.rfc-editor.org/rfc/rfc9001#section-6.1
//= type=test
//# An endpoint MUST retain old keys until it has successfully unprotected a packet sent using the new keys
#[test]
fn packets_of_a_peer_that_has_not_followed_yet_open() {
    let mut pair = pair(Suite::Aes256Gcm);
    pair.exchange(0);
    pair.client.initiate_update().unwrap();
    let unaware = seal(&mut pair.server, SLOW, 0);
    assert_eq!(open(&mut pair.client, &unaware), Ok(KeyGeneration::Previous));
    // The old keys stay until the peer is seen to follow.
    pair.client.discard_previous();
    let unaware = seal(&mut pair.server, FAST, 1);
    assert_eq!(open(&mut pair.client, &unaware), Ok(KeyGeneration::Previous));
}

#[test]
fn both_sides_may_update_at_the_same_time() {
    let mut pair = pair(Suite::ChaCha20Poly1305);
    pair.exchange(0);
    pair.client.initiate_update().unwrap();
    pair.server.initiate_update().unwrap();
    let (a, b) = (seal(&mut pair.client, FAST, 1), seal(&mut pair.server, FAST, 1));
    assert_eq!(open(&mut pair.server, &a), Ok(KeyGeneration::Current));
    assert_eq!(open(&mut pair.client, &b), Ok(KeyGeneration::Current));
}

//= https://www.rfc-editor.org/rfc/rfc9001#section-6.1
//= type=test
//# An endpoint MUST NOT initiate a subsequent key update unless it has received an acknowledgment for a
//# packet that was sent protected with keys from the current key phase
#[test]
fn an_update_needs_an_acknowledgement_and_that_old_keys_are_gone() {
    // RFC 9001 §6.1, §6.5.
    let mut pair = pair(Suite::Aes128Gcm);
    assert_eq!(pair.client.initiate_update(), Err(UpdateNotPermitted::Unacknowledged));
    pair.exchange(0);
    assert_eq!(pair.client.initiate_update(), Ok(()));
    assert_eq!(pair.client.initiate_update(), Err(UpdateNotPermitted::Unacknowledged));
    // Acknowledgements of packets of the old phase, or of paths that sent nothing since, do not count.
    seal(&mut pair.client, FAST, 7);
    pair.client.on_acknowledged(FAST, 0);
    pair.client.on_acknowledged(SLOW, 9);
    assert!(!pair.client.is_acknowledged());
    pair.client.on_acknowledged(FAST, 7);
    assert!(pair.client.is_acknowledged());
    assert_eq!(pair.client.initiate_update(), Err(UpdateNotPermitted::PreviousInUse));
}

#[test]
fn a_peer_that_updates_twice_without_awaiting_an_acknowledgement_is_an_error() {
    // RFC 9001 §6.2.
    let mut pair = pair(Suite::Aes128Gcm);
    pair.exchange(0);
    pair.client.initiate_update().unwrap();
    let first = seal(&mut pair.client, FAST, 1);
    assert_eq!(open(&mut pair.server, &first), Ok(KeyGeneration::Next));
    // The server sends nothing, and the client pretends that it did.
    pair.client.on_acknowledged(FAST, 1);
    pair.client.previous_remote = None;
    pair.client.initiate_update().unwrap();
    let second = seal(&mut pair.client, FAST, 2);
    assert_eq!(code(open(&mut pair.server, &second)), ErrorCode::KEY_UPDATE_ERROR);
}

//= https://www.rfc-editor.org/rfc/rfc9001#section-5.5
//= type=test
//# Once an endpoint successfully receives a packet with a given packet number, it MUST discard all packets in
//# the same packet number space with higher packet numbers
//= https://www.rfc-editor.org/rfc/rfc9001#section-6.4
//= type=test
//# An endpoint that successfully removes protection with old keys when newer keys were used for packets with
//# lower packet numbers MUST treat this as a connection error of type KEY_UPDATE_ERROR.
#[test]
fn old_keys_for_a_higher_packet_number_on_the_same_path_are_an_error() {
    // RFC 9001 §6.4.
    let mut pair = pair(Suite::Aes128Gcm);
    pair.exchange(0);
    let high = seal(&mut pair.client, FAST, 9);
    let high_elsewhere = seal(&mut pair.client, SLOW, 9);
    assert_eq!(open(&mut pair.server, &high), Ok(KeyGeneration::Current));
    assert_eq!(open(&mut pair.server, &high_elsewhere), Ok(KeyGeneration::Current));
    pair.client.initiate_update().unwrap();
    let low = seal(&mut pair.client, FAST, 5);
    assert_eq!(code(open(&mut pair.server, &low)), ErrorCode::KEY_UPDATE_ERROR);
    // Numbers of another path do not matter.
    let third = seal(&mut pair.client, PathId(2), 0);
    assert_eq!(open(&mut pair.server, &third), Ok(KeyGeneration::Next));
}

//= https://www.rfc-editor.org/rfc/rfc9001#section-5.5
//= type=test
//# Once an endpoint successfully receives a packet with a given packet number, it MUST discard all packets in
//# the same packet number space with higher packet numbers
//= https://www.rfc-editor.org/rfc/rfc9001#section-5.5
//= type=test
//# Similarly, a packet that appears to trigger a key update but cannot be unprotected successfully MUST be
//# discarded.
//= https://www.rfc-editor.org/rfc/rfc9001#section-6.3
//= type=test
//# Endpoints responding to an apparent key update MUST NOT generate a timing side-channel signal that might
//# indicate that the Key Phase bit was invalid (see Section 9.5)
#[test]
fn a_forged_packet_of_the_other_phase_updates_nothing() {
    let mut pair = pair(Suite::Aes128Gcm);
    pair.exchange(0);
    pair.client.initiate_update().unwrap();
    let update = forged(seal(&mut pair.client, FAST, 1));
    assert_eq!(open(&mut pair.server, &update), UNDECRYPTABLE);
    assert_eq!((pair.server.phase(), pair.server.has_previous()), (KeyPhase::Zero, false));
    let update = seal(&mut pair.client, FAST, 2);
    assert_eq!(open(&mut pair.server, &update), Ok(KeyGeneration::Next));
}

//= https://www.rfc-editor.org/rfc/rfc9001#section-6.6
//= type=test
//# Endpoints MUST count the number of encrypted packets for each set of keys
#[test]
fn sealed_packets_of_all_paths_count_towards_the_limit_and_an_update_resets_it() {
    let limits = AeadLimits { confidentiality: 8, integrity: 100 };
    let mut pair = pair(Suite::Aes128Gcm);
    pair.client = pair.client.with_limits(limits);
    let mut states = Vec::new();
    for number in 0..4 {
        for path in [FAST, SLOW] {
            states.push(pair.client.limits());
            seal(&mut pair.client, path, number);
        }
    }
    let (fine, soon) = ([LimitState::Fine; 4], [LimitState::UpdateSoon; 4]);
    assert_eq!(states, [fine, soon].concat());
    assert_eq!(pair.client.limits(), LimitState::Reached);
    pair.client.on_acknowledged(SLOW, 3);
    pair.client.initiate_update().unwrap();
    assert_eq!(pair.client.limits(), LimitState::Fine);
}

//= https://www.rfc-editor.org/rfc/rfc9001#section-6.6
//= type=test
//# In addition to counting packets sent, endpoints MUST count the number of received packets that fail
//# authentication during the lifetime of a connection
#[test]
fn failed_packets_of_all_paths_and_generations_count_until_the_connection_closes() {
    let mut pair = pair(Suite::Aes128Gcm);
    pair.server = pair.server.with_limits(AeadLimits { confidentiality: 100, integrity: 4 });
    pair.exchange(0);
    for path in [FAST, SLOW] {
        let packet = forged(seal(&mut pair.client, path, 1));
        assert_eq!(open(&mut pair.server, &packet), UNDECRYPTABLE);
    }
    pair.client.initiate_update().unwrap();
    let update = seal(&mut pair.client, FAST, 2);
    assert_eq!(open(&mut pair.server, &update), Ok(KeyGeneration::Next));
    let packet = forged(seal(&mut pair.client, SLOW, 2));
    assert_eq!(open(&mut pair.server, &packet), UNDECRYPTABLE);
    assert_eq!(pair.server.limits(), LimitState::Fine);
    // Packets that are not even decrypted do not count.
    let short = Sealed { bytes: vec![0x40; 20], path: FAST, number: 0 };
    assert_eq!(open(&mut pair.server, &short), Err(Dropped::Malformed.into()));
    let packet = forged(seal(&mut pair.client, FAST, 3));
    assert_eq!(code(open(&mut pair.server, &packet)), ErrorCode::AEAD_LIMIT_REACHED);
    assert_eq!(pair.server.limits(), LimitState::Reached);
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-12.3
//= type=test
//# Subsequent packets sent in the same packet number space MUST increase the packet number by at least one.
//= https://www.rfc-editor.org/rfc/rfc9001#section-6.4
//= type=test
//# Packets with higher packet numbers MUST be protected with either the same or newer packet protection keys
//# than packets with lower packet numbers
#[test]
fn no_generation_path_and_number_seal_alike() {
    let mut pair = pair(Suite::Aes128Gcm);
    let mut tags = HashSet::new();
    for _generation in 0..3 {
        for path in 0..4 {
            for number in 0..8 {
                let sealed = seal(&mut pair.client, PathId(path), number);
                assert!(tags.insert(sealed.bytes[sealed.bytes.len() - 16..].to_vec()));
            }
        }
        pair.client.on_acknowledged(FAST, 7);
        pair.client.previous_remote = None;
        pair.client.initiate_update().unwrap();
    }
    assert_eq!(tags.len(), 3 * 4 * 8);
}

#[test]
fn a_forgotten_path_leaves_no_state() {
    let mut pair = pair(Suite::Aes128Gcm);
    pair.exchange(0);
    seal(&mut pair.client, SLOW, 0);
    pair.client.forget_path(SLOW);
    assert_eq!(pair.client.paths.iter().map(|(path, _)| *path).collect::<Vec<_>>(), [FAST]);
    assert_eq!(pair.client.suite(), Suite::Aes128Gcm);
}

#[test]
fn a_key_phase_that_flips_with_every_packet_closes_the_connection() {
    // RFC 9001 §6.2, attacks F2: the peer cannot have seen an acknowledgement of the packets between.
    let mut pair = pair(Suite::Aes128Gcm);
    pair.exchange(0);
    let mut results = Vec::new();
    for number in 1..4 {
        pair.client.acknowledgement = Acknowledgement::Received;
        pair.client.previous_remote = None;
        pair.client.initiate_update().unwrap();
        let packet = seal(&mut pair.client, FAST, number);
        results.push(open(&mut pair.server, &packet));
    }
    assert_eq!(results.remove(0), Ok(KeyGeneration::Next));
    assert_eq!(code(results.remove(0)), ErrorCode::KEY_UPDATE_ERROR);
}

#[test]
fn a_peer_with_a_shorter_timeout_may_update_while_late_packets_are_awaited() {
    // RFC 9001 §6.5.
    let mut pair = pair(Suite::Aes128Gcm);
    pair.exchange(0);
    for number in 1..4 {
        pair.client.initiate_update().unwrap();
        let update = seal(&mut pair.client, FAST, number);
        assert_eq!(open(&mut pair.server, &update), Ok(KeyGeneration::Next));
        let answer = seal(&mut pair.server, FAST, number);
        assert_eq!(open(&mut pair.client, &answer), Ok(KeyGeneration::Current));
        pair.client.on_acknowledged(FAST, number);
        // The server keeps its previous keys, the client does not.
        pair.client.discard_previous();
        assert!(pair.server.has_previous());
    }
}

#[test]
fn an_update_is_noticed_on_a_path_that_was_idle_since_the_one_before() {
    // RFC 9001 §6.5, attacks G32: nothing on that path tells late packets of the phase before from early ones of the next.
    let mut pair = pair(Suite::Aes128Gcm);
    pair.exchange(0);
    let late = seal(&mut pair.server, SLOW, 3);
    pair.client.initiate_update().unwrap();
    pair.exchange(1);
    pair.server.discard_previous();
    assert!(pair.client.has_previous());
    pair.server.initiate_update().unwrap();
    let early = seal(&mut pair.server, SLOW, 4);
    assert_eq!(open(&mut pair.client, &forged(seal(&mut pair.server, SLOW, 5))), UNDECRYPTABLE);
    assert_eq!(open(&mut pair.client, &late), Ok(KeyGeneration::Previous));
    assert_eq!(open(&mut pair.client, &early), Ok(KeyGeneration::Next));
    assert_eq!(pair.client.phase(), pair.server.phase());
}

#[test]
fn limits_are_never_higher_than_those_of_the_suite_and_leave_room_for_the_close() {
    // RFC 9001 §6.6, attacks F3.
    let mut pair = pair(Suite::Aes128Gcm);
    pair.client = pair.client.with_limits(AeadLimits { confidentiality: 1 << 40, integrity: 1 << 60 });
    assert_eq!(pair.client.usage.limits, AeadLimits::of(Suite::Aes128Gcm));
    pair.client = pair.client.with_limits(AeadLimits { confidentiality: 32, integrity: 100 });
    for number in 0..30 {
        assert_ne!(pair.client.limits(), LimitState::Reached);
        seal(&mut pair.client, FAST, number);
    }
    assert_eq!((pair.client.limits(), pair.client.is_spent()), (LimitState::Reached, false));
    seal(&mut pair.client, FAST, 30);
    seal(&mut pair.client, FAST, 31);
    assert!(pair.client.is_spent());
}

//= https://www.rfc-editor.org/rfc/rfc9001#section-6.6
//= type=test
//# across all keys, exceeds the integrity limit for the selected AEAD, the endpoint MUST immediately close
//# the connection with a connection error of type AEAD_LIMIT_REACHED and not process any more
#[test]
fn packets_that_failed_under_earlier_keys_count_too() {
    // RFC 9001 §6.6, attacks F3.
    let mut pair = pair(Suite::Aes128Gcm);
    let limits = AeadLimits { confidentiality: 100, integrity: 3 };
    pair.server = pair.server.with_limits(limits).with_failed(2);
    let packet = forged(seal(&mut pair.client, FAST, 0));
    assert_eq!(code(open(&mut pair.server, &packet)), ErrorCode::AEAD_LIMIT_REACHED);
}

#[test]
fn keys_are_active_once_a_packet_was_sealed_or_opened() {
    let mut pair = pair(Suite::Aes128Gcm);
    assert!(!pair.client.is_active() && !pair.server.is_active());
    let packet = seal(&mut pair.client, FAST, 0);
    assert!(pair.client.is_active() && !pair.server.is_active());
    open(&mut pair.server, &packet).expect("it is genuine");
    assert!(pair.server.is_active());
}

#[test]
fn keys_go_on_after_a_rest_in_either_key_phase() {
    for suite in [Suite::Aes128Gcm, Suite::Aes256Gcm, Suite::ChaCha20Poly1305] {
        let mut pair = pair(suite);
        for round in 0..3 {
            pair.exchange(10 * round);
            assert!(pair.client.is_active() && pair.server.is_active());
            pair.client.hibernate();
            pair.server.hibernate();
            assert!(!pair.client.is_active() && !pair.server.is_active());
            let packet = forged(seal(&mut pair.client, FAST, 10 * round + 1));
            assert_eq!(open(&mut pair.server, &packet), UNDECRYPTABLE);
            pair.server.hibernate();
            pair.client.initiate_update().unwrap();
            pair.client.hibernate();
            let packet = seal(&mut pair.client, FAST, 10 * round + 2);
            assert_eq!(open(&mut pair.server, &packet), Ok(KeyGeneration::Next));
            pair.server.hibernate();
            let answer = seal(&mut pair.server, FAST, 10 * round + 2);
            assert_eq!(open(&mut pair.client, &answer), Ok(KeyGeneration::Current));
            pair.client.discard_previous();
            pair.server.discard_previous();
        }
    }
}
