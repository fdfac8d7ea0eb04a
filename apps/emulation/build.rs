//! Packs the named traces: as text they were a sixth of the program.

use flate2::Compression;
use flate2::write::ZlibEncoder;
use std::io::Write;
use std::path::Path;
use std::{env, fs};

/// Milliseconds between two samples of these traces.
const STEP: usize = 15;

fn main() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/traces");
    let target = env::var("OUT_DIR").expect("cargo sets it");
    for name in ["MM-S", "MM-W", "MM-D", "LB-S", "LB-W", "LB-D"] {
        let (delay, rate) = (format!("{name}.rtt"), format!("{name}.bw"));
        let text = read(&data.join("synth").join(format!("{delay}.csv")));
        write(&Path::new(&target).join(delay), &packed(&text));
        let text = read(&data.join("bw").join(format!("{rate}.csv")));
        write(&Path::new(&target).join(rate), text.as_bytes());
    }
}

fn read(file: &Path) -> String {
    println!("cargo::rerun-if-changed={}", file.display());
    fs::read_to_string(file).expect("the traces are beside the crate")
}

/// Writes a file in the format of zlib (RFC 1950).
fn write(file: &Path, content: &[u8]) {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(content).expect("a vector takes everything");
    fs::write(file, encoder.finish().expect("a vector takes everything")).expect("the folder is cargo's");
}

/// Tenths of a millisecond, one for each step: the lower bytes of all, then the upper ones, which compress better apart.
fn packed(text: &str) -> Vec<u8> {
    let tenths: Vec<[u8; 2]> =
        text.lines().skip(1).enumerate().map(|(index, row)| tenths(index, row)).collect();
    tenths.iter().map(|pair| pair[0]).chain(tenths.iter().map(|pair| pair[1])).collect()
}

fn tenths(index: usize, row: &str) -> [u8; 2] {
    let (time, rtt) = row.split_once(',').expect("a row has two columns");
    assert_eq!(time.parse(), Ok(index * STEP), "samples are {STEP} ms apart");
    let rtt: f64 = rtt.parse().expect("a round-trip time is a number");
    let tenths = (rtt * 10.0).round();
    assert!(tenths / 10.0 == rtt && tenths <= f64::from(u16::MAX), "{rtt} is no number of tenths");
    (tenths as u16).to_le_bytes()
}
