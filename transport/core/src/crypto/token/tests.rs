use super::*;
use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::StdRng;

const NOW: Instant = Instant::from_nanos(1_000_000_000_000);

fn rng() -> StdRng {
    StdRng::seed_from_u64(3)
}

fn client() -> SocketAddr {
    "192.0.2.7:4433".parse().unwrap()
}

fn retry() -> RetryToken {
    RetryToken {
        version: Version::V1,
        address: client(),
        issued: NOW,
        original_destination: ConnectionId::new(&[1; 8]).unwrap(),
        retry_source: ConnectionId::new(&[2; 20]).unwrap(),
    }
}

fn key() -> TokenKey {
    TokenKey::new(&[7; 32])
}

fn rejection(kind: TokenKind, reason: Rejection) -> Result<ValidToken, Rejected> {
    Err(Rejected { kind, reason })
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-8.1.1
//= type=test
//# A token sent in a NEW_TOKEN frame or a Retry packet MUST be constructed in a way that allows the server to
//# identify how it was provided to a client
#[test]
fn a_retry_token_gives_back_what_it_was_made_of() {
    let token = key().seal_retry(&mut rng(), &retry());
    let later = NOW + Duration::from_secs(15);
    assert_eq!(key().open(&token, client(), later), Ok(ValidToken::Retry(retry())));
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-8.1.1
//= type=test
//# A token sent in a NEW_TOKEN frame or a Retry packet MUST be constructed in a way that allows the server to
//# identify how it was provided to a client
//= https://www.rfc-editor.org/rfc/rfc9000#section-8.1.4
//= type=test
//# Tokens sent in NEW_TOKEN frames MUST include information that allows the server to verify that the client
//# IP address has not changed from when the token was issued
//= https://www.rfc-editor.org/rfc/rfc9000#section-19.7
//= type=test
//# The token MUST NOT be empty
#[test]
fn a_token_of_a_former_connection_covers_all_its_addresses_whatever_the_port() {
    let addresses: Addresses = ["192.0.2.7", "2001:db8::1"].map(|a| a.parse().unwrap()).into_iter().collect();
    let made = AddressToken { version: Version::V1, addresses, issued: NOW };
    let token = key().seal_address(&mut rng(), &made);
    for from in ["192.0.2.7:1", "[2001:db8::1]:2", "[::ffff:192.0.2.7]:3"] {
        assert_eq!(key().open(&token, from.parse().unwrap(), NOW), Ok(ValidToken::NewToken(made.clone())));
    }
    let other = "192.0.2.8:1".parse().unwrap();
    assert_eq!(key().open(&token, other, NOW), rejection(TokenKind::NewToken, Rejection::OtherAddress));
}

#[test]
fn a_token_covers_a_bounded_number_of_addresses() {
    let addresses: Addresses = (0..20).map(|n| IpAddr::from([10, 0, 0, n])).collect();
    let token =
        key().seal_address(&mut rng(), &AddressToken { version: Version::V1, addresses, issued: NOW });
    let Ok(ValidToken::NewToken(read)) = key().open(&token, "10.0.0.7:1".parse().unwrap(), NOW) else {
        panic!("the eighth address is covered");
    };
    assert_eq!(read.addresses.len(), MAX_ADDRESSES);
    assert!(key().open(&token, "10.0.0.8:1".parse().unwrap(), NOW).is_err());
}

#[test]
fn tokens_expire_and_none_comes_from_the_future() {
    let token = key().seal_retry(&mut rng(), &retry());
    let expired = rejection(TokenKind::Retry, Rejection::Expired);
    assert_eq!(key().open(&token, client(), NOW + Duration::from_millis(15_001)), expired);
    // But for what the clocks of servers with one key may differ.
    assert!(key().open(&token, client(), NOW - SKEW).is_ok());
    assert_eq!(key().open(&token, client(), NOW - SKEW - Duration::from_nanos(1)), expired);
    let made =
        AddressToken { version: Version::V1, addresses: [client().ip()].into_iter().collect(), issued: NOW };
    let token = key().seal_address(&mut rng(), &made);
    let short = key().with_lifetimes(Duration::ZERO, Duration::from_secs(60));
    assert!(short.open(&token, client(), NOW + Duration::from_secs(60)).is_ok());
    let late = short.open(&token, client(), NOW + Duration::from_secs(61));
    assert_eq!(late, rejection(TokenKind::NewToken, Rejection::Expired));
}

#[test]
fn a_retry_token_counts_only_from_the_same_address_and_port() {
    let token = key().seal_retry(&mut rng(), &retry());
    for from in ["192.0.2.7:4434", "192.0.2.8:4433", "[2001:db8::1]:4433"] {
        let result = key().open(&token, from.parse().unwrap(), NOW);
        assert_eq!(result, rejection(TokenKind::Retry, Rejection::OtherAddress));
    }
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-8.1.4
//= type=test
//# For this design to work, the token MUST be covered by integrity protection against modification or
//# falsification by clients
#[test]
fn every_prefix_and_every_changed_bit_of_a_token_is_rejected() {
    let token = key().seal_retry(&mut rng(), &retry());
    for length in 0..token.len() {
        assert_eq!(key().open(&token[..length], client(), NOW).unwrap_err().reason, Rejection::Forged);
    }
    for bit in 0..token.len() * 8 {
        let mut changed = token.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(key().open(&changed, client(), NOW).unwrap_err().reason, Rejection::Forged);
    }
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-8.1.4
//= type=test
//# An address validation token MUST be difficult to guess
#[test]
fn a_token_of_another_key_is_rejected() {
    let token = TokenKey::new(&[8; 32]).seal_retry(&mut rng(), &retry());
    assert_eq!(key().open(&token, client(), NOW), rejection(TokenKind::Retry, Rejection::Forged));
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-8.1.3
//= type=test
//# A token issued with NEW_TOKEN MUST NOT include information that would allow values to be linked by an
//# observer to the connection on which it was issued
//= https://www.rfc-editor.org/rfc/rfc9000#section-8.1.3
//= type=test
//# A server MUST ensure that every NEW_TOKEN frame it sends is unique across all clients, with the exception
//# of those sent to repair losses of previously sent NEW_TOKEN frames
#[test]
fn two_tokens_for_the_same_client_have_nothing_in_common() {
    let mut rng = rng();
    let (a, b) = (key().seal_retry(&mut rng, &retry()), key().seal_retry(&mut rng, &retry()));
    assert_ne!(a[1..17], b[1..17]);
    assert_ne!(a[17..], b[17..]);
}

proptest! {
    //= https://www.rfc-editor.org/rfc/rfc9000#section-8.1.4
    //= type=test
    //# An address validation token MUST be difficult to guess
    #[test]
    fn random_bytes_are_no_token(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        prop_assert_eq!(key().open(&bytes, client(), NOW).map_err(|e| e.reason), Err(Rejection::Forged));
    }
}
