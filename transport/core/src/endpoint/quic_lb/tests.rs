use super::*;
use rand::SeedableRng;
use rand::rngs::StdRng;

/// The key of the draft's test vectors (appendix B).
const KEY: [u8; 16] = 0x8f95_f092_4576_5f80_2569_34e5_0c66_207f_u128.to_be_bytes();

fn hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("hex")).collect()
}

fn config(rotation: u8, server_id: &str, nonce_length: usize, key: Option<[u8; 16]>) -> QuicLbConfig {
    let first_octet = FirstOctet::Length;
    QuicLbConfig { rotation, server_id: hex(server_id), nonce_length, key, first_octet }
}

fn balanced(config: QuicLbConfig) -> QuicLb {
    QuicLb::new(config, [0xfe; LONGEST]).expect("within the limits")
}

fn assert_vector(key: Option<[u8; 16]>, rotation: u8, [server_id, nonce, id]: [&str; 3]) {
    let lb = balanced(config(rotation, server_id, nonce.len() / 2, key));
    let made = lb.encode(&hex(nonce), &mut StdRng::seed_from_u64(2));
    assert_eq!(made.to_string(), id);
    assert_eq!(lb.decode(made.as_slice()), Some((hex(server_id), hex(nonce))), "{id}");
}

#[test]
fn plaintext_connection_ids_are_those_of_the_draft() {
    assert_vector(None, 0, ["c4605e", "4504cc4f", "07c4605e4504cc4f"]);
    assert_vector(None, 1, ["350d28b420", "3487d970", "29350d28b4203487d970"]);
}

#[test]
fn encrypted_connection_ids_are_those_of_the_draft() {
    let key = Some(KEY);
    assert_vector(key, 0, ["ed793a", "ee080dbf", "0720b1d07b359d3c"]);
    assert_vector(key, 1, ["ed793a51d49b8f5fab65", "ee080dbf48", "2fcc381bc74cb4fbad2823a3d1f8fed2"]);
    let one_pass = "504dd2d05a7b0de9b2b9907afb5ecf8cc3";
    assert_vector(key, 2, ["ed793a51d49b8f5f", "ee080dbf48c0d1e5", one_pass]);
    let long = "125779c9cc86beb3a3a4a3ca96fce4bfe0cdbc";
    let lb = balanced(config(3, "ed793a51d49b8f5fab", 9, key));
    let made = lb.encode(&hex("ee080dbf48c0d1e55d"), &mut StdRng::seed_from_u64(2));
    // The vector was made with the rotation bits 0.
    assert_eq!(made.as_slice()[0], 0x72);
    assert_eq!(made.to_string()[2..], long[2..]);
    assert_eq!(lb.server_id(made.as_slice()), Some(hex("ed793a51d49b8f5fab")));
}

#[test]
fn the_example_that_the_draft_explains_comes_out() {
    // §5.4.2.4 of the draft.
    let key = 0xfdf7_26a9_893e_c05c_0632_d395_6680_baf0_u128.to_be_bytes();
    assert_vector(Some(key), 0, ["31441a", "9c69c275", "0767947d29be054a"]);
}

#[test]
fn connection_ids_of_every_length_come_back_and_none_comes_twice() {
    let mut rng = StdRng::seed_from_u64(3);
    for key in [None, Some(KEY)] {
        for length in SHORTEST..=LONGEST {
            for server in 1..=length - SHORTEST_NONCE {
                let server_id = "5a".repeat(server);
                let lb = balanced(config(4, &server_id, length - server, key));
                let ids: Vec<_> = (0..50).map(|_| lb.generate(&mut rng)).collect();
                for id in &ids {
                    assert_eq!((id.len(), id.as_slice()[0]), (length + 1, 4 << 5 | length as u8));
                    assert_eq!(lb.server_id(id.as_slice()), Some(hex(&server_id)));
                }
                let different: std::collections::BTreeSet<_> = ids.iter().collect();
                assert_eq!(different.len(), ids.len());
                assert_eq!(lb.length(), length + 1);
            }
        }
    }
}

#[test]
fn when_no_nonce_is_left_connection_ids_are_marked_as_unroutable() {
    // §3.2, §9.3 of the draft.
    let lb = balanced(config(0, "ed793a", 4, Some(KEY)));
    lb.nonces.store(u64::from(u32::MAX), Ordering::Relaxed);
    let mut rng = StdRng::seed_from_u64(4);
    assert!(lb.server_id(lb.generate(&mut rng).as_slice()).is_some(), "the last");
    for _ in 0..3 {
        let id = lb.generate(&mut rng);
        assert_eq!((id.len(), id.as_slice()[0]), (8, 0b1110_0111));
        assert_eq!(lb.server_id(id.as_slice()), None);
    }
}

#[test]
fn what_is_not_of_the_configuration_tells_no_server() {
    // attacks.md A4: any bytes.
    let lb = balanced(config(2, "ed793a", 4, Some(KEY)));
    for other in ["", "47", "47010203040506", "0720b1d07b359d3c", "e720b1d07b359d3c"] {
        assert_eq!(lb.decode(&hex(other)), None, "{other}");
    }
    assert!(lb.decode(&hex("4720b1d07b359d3cffff")).is_some(), "bytes behind are the server's own");
}

#[test]
fn configurations_beyond_the_limits_are_refused() {
    let made = |config| QuicLb::new(config, [0; LONGEST]).map(|_| ()).expect_err("refused");
    assert_eq!(made(config(7, "01", 8, None)), QuicLbError::Rotation(7));
    assert_eq!(made(config(0, "", 8, None)), QuicLbError::ServerId);
    assert_eq!(made(config(0, "010203", 3, None)), QuicLbError::Nonce(3));
    assert_eq!(made(config(0, "01", 5, None)), QuicLbError::Together(6));
    assert_eq!(made(config(0, "01", 19, None)), QuicLbError::Together(20));
    assert_eq!(made(config(0, "01", usize::MAX, None)), QuicLbError::Together(usize::MAX));
    let shown = format!("{:?}", balanced(config(0, "01", 8, Some(KEY))));
    assert!(!shown.contains("8f") && !shown.contains("143"), "{shown}");
}

#[test]
fn the_rest_of_the_first_octet_is_random_where_it_is_asked_for() {
    let config = QuicLbConfig { first_octet: FirstOctet::Random, ..config(5, "01", 8, None) };
    let (lb, mut rng) = (balanced(config), StdRng::seed_from_u64(5));
    let firsts: std::collections::BTreeSet<_> =
        (0..100).map(|_| lb.generate(&mut rng).as_slice()[0]).collect();
    assert!(firsts.len() > 20 && firsts.iter().all(|first| first >> 5 == 5), "{firsts:?}");
}

#[test]
fn nonces_begin_with_the_first_and_count_on() {
    let lb = balanced(config(0, "ed793a", 4, Some(KEY)));
    let mut rng = StdRng::seed_from_u64(6);
    for nonce in ["fefefefe", "fefefeff", "fefeff00", "fefeff01"] {
        let id = lb.generate(&mut rng);
        assert_eq!(lb.decode(id.as_slice()), Some((hex("ed793a"), hex(nonce))));
    }
    lb.nonces.store(0x0102, Ordering::Relaxed);
    let id = lb.generate(&mut rng);
    assert_eq!(lb.decode(id.as_slice()), Some((hex("ed793a"), hex("feff0000"))));
}
