//! Packs the round-trip times of the named traces: as text they were an eighth of the program.

use std::path::Path;
use std::{env, fs};

/// Milliseconds between two samples of these traces.
const STEP: usize = 15;

fn main() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/traces/synth");
    let target = env::var("OUT_DIR").expect("cargo sets it");
    for name in ["MM-S", "MM-W", "MM-D", "LB-S", "LB-W", "LB-D"] {
        let file = folder.join(format!("{name}.rtt.csv"));
        println!("cargo::rerun-if-changed={}", file.display());
        let text = fs::read_to_string(&file).expect("the traces are beside the crate");
        fs::write(Path::new(&target).join(format!("{name}.rtt")), packed(&text))
            .expect("the folder is cargo's");
    }
}

/// Tenths of a millisecond in two bytes each, the lower first, one for each step.
fn packed(text: &str) -> Vec<u8> {
    let rows = text.lines().skip(1).enumerate();
    rows.flat_map(|(index, row)| {
        let (time, rtt) = row.split_once(',').expect("a row has two columns");
        assert_eq!(time.parse(), Ok(index * STEP), "samples are {STEP} ms apart");
        let rtt: f64 = rtt.parse().expect("a round-trip time is a number");
        let tenths = (rtt * 10.0).round();
        assert!(tenths / 10.0 == rtt && tenths <= f64::from(u16::MAX), "{rtt} is no number of tenths");
        (tenths as u16).to_le_bytes()
    })
    .collect()
}
