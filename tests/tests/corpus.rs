//! Replays the inputs that the fuzzer found worth keeping, and variations of them: no target panics.

use hvq_tests::fuzz::{TARGETS, Target};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::path::Path;

/// Variations of each file, for targets that take microseconds and for those that make a connection.
const VARIATIONS: usize = 400;
const COSTLY_VARIATIONS: usize = 6;

fn corpus(target: &Target) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target.name);
    let entries = std::fs::read_dir(&folder).expect("every target has a corpus");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("the folder can be read").path()).collect();
    files.sort();
    files.iter().map(|file| std::fs::read(file).expect("the file can be read")).collect()
}

/// `bytes` with a few of them changed, taken out or put in twice.
fn varied(bytes: &[u8], rng: &mut StdRng) -> Vec<u8> {
    let mut varied = bytes.to_vec();
    for _ in 0..rng.random_range(1..=4) {
        if varied.is_empty() {
            varied.push(rng.random());
        }
        let place = rng.random_range(0..varied.len());
        let end = rng.random_range(place..=varied.len().min(place + 16));
        match rng.random_range(0..4) {
            0 => varied[place] = rng.random(),
            1 => varied[place] ^= 1 << rng.random_range(0..8),
            2 => drop(varied.drain(place..end)),
            _ => {
                let piece = varied[place..end].to_vec();
                varied.splice(place..place, piece);
            }
        }
    }
    varied
}

fn examine(name: &str) {
    let target = hvq_tests::fuzz::target(name).expect("there is such a target");
    let count = if matches!(name, "off_path_attacker" | "authenticated_peer") {
        COSTLY_VARIATIONS
    } else {
        VARIATIONS
    };
    let mut rng = StdRng::seed_from_u64(1);
    let corpus = corpus(&target);
    assert!(!corpus.is_empty(), "{name} has no corpus");
    for bytes in &corpus {
        (target.run)(bytes);
        for _ in 0..count {
            (target.run)(&varied(bytes, &mut rng));
        }
    }
    (target.run)(&[]);
}

#[test]
fn every_target_has_a_test() {
    let tested = [
        "packets",
        "frames",
        "parameters",
        "off_path_attacker",
        "authenticated_peer",
        "text",
        "requests",
        "qpack",
        "web_transport",
        "capture",
    ];
    assert_eq!(TARGETS.map(|target| target.name), tested);
}

#[test]
fn datagrams_of_the_corpus_are_taken_apart() {
    examine("packets");
}

#[test]
fn frames_of_the_corpus_are_read_and_written() {
    examine("frames");
}

#[test]
fn parameters_of_the_corpus_are_read() {
    examine("parameters");
}

#[test]
fn off_path_attackers_of_the_corpus_get_three_times_what_they_sent_at_most() {
    examine("off_path_attacker");
}

#[test]
fn authenticated_peers_of_the_corpus_leave_no_connection_behind() {
    examine("authenticated_peer");
}

#[test]
fn texts_of_the_corpus_are_understood_or_refused() {
    examine("text");
}

#[test]
fn requests_of_the_corpus_are_read_or_refused() {
    examine("requests");
}

#[test]
fn instructions_of_the_corpus_are_followed_or_refused() {
    examine("qpack");
}

#[test]
fn capsules_of_the_corpus_are_read_or_refused() {
    examine("web_transport");
}

#[test]
fn captures_of_the_corpus_are_decoded() {
    examine("capture");
}
