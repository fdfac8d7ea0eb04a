//! The program that libFuzzer drives: the environment variable `HVQ_FUZZ_TARGET` names the target.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;

static TARGET: OnceLock<hvq_tests::fuzz::Target> = OnceLock::new();

fuzz_target!(|bytes: &[u8]| {
    let target = TARGET.get_or_init(|| {
        let name = std::env::var("HVQ_FUZZ_TARGET").unwrap_or_default();
        hvq_tests::fuzz::target(&name).expect("HVQ_FUZZ_TARGET names a target")
    });
    (target.run)(bytes);
});
