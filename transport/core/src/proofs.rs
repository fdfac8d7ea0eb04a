//! Exhaustive checks of small domains: what random tests try by chance is tried here in every case.
//!
//! The short ones run with all tests. Those that take minutes are ignored; `make prove` runs both. Each holds the code
//! against a model that is too slow or too plain to use, and the model is the definition in the RFC.

mod amplification;
mod nonces;
mod numbers;
mod reassembly;
mod sets;

/// Calls `check` with every sequence of `length` numbers below `symbols`.
fn sequences(symbols: usize, length: usize, mut check: impl FnMut(&[usize])) {
    let mut sequence = vec![0; length];
    loop {
        check(&sequence);
        let Some(place) = sequence.iter().rposition(|symbol| symbol + 1 < symbols) else { return };
        sequence[place] += 1;
        sequence[place + 1..].fill(0);
    }
}

#[test]
fn every_sequence_is_met_once() {
    let mut met = std::collections::BTreeSet::new();
    sequences(3, 4, |sequence| assert!(met.insert(sequence.to_vec())));
    assert_eq!(met.len(), 81);
}
