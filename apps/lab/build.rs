//! Computes a hash of everything that results of runs follow from, for results of another build do not count, and packs the pages
//! that are compiled in.

use flate2::Compression;
use flate2::write::ZlibEncoder;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// The parts that the results of a run depend on, from the root of the workspace on: folders and files.
const PARTS: [&str; 12] = [
    "Cargo.lock",
    "scheduler/src",
    "transport/core/src",
    "apps/emulation/src",
    "apps/lab/src/pages",
    "apps/lab/src/experiment",
    "apps/lab/src/workload",
    "apps/lab/src/world",
    "data/traces/synth",
    "data/traces/bw",
    "apps/video/src",
    "data/video",
];

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut hash = FNV_OFFSET;
    for part in PARTS {
        println!("cargo::rerun-if-changed={}", root.join(part).display());
        for file in files(&root.join(part)) {
            // Where the workspace is does not matter; what its files are called does.
            hash = fnv(hash, file.strip_prefix(&root).unwrap_or(&file).to_string_lossy().as_bytes());
            hash = fnv(hash, &fs::read(&file).unwrap_or_default());
        }
    }
    println!("cargo::rustc-env=HVQ_LAB_BUILD={hash:016x}");
    pack(&root.join("data/pages"), Path::new(&env::var("OUT_DIR").expect("cargo sets it")));
}

/// Compresses each file of a folder into another (RFC 1950).
fn pack(folder: &Path, target: &Path) {
    println!("cargo::rerun-if-changed={}", folder.display());
    for file in files(folder) {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&fs::read(&file).expect("the file was listed")).expect("a vector takes everything");
        let packed = encoder.finish().expect("a vector takes everything");
        fs::write(target.join(file.file_name().expect("it is a file")), packed)
            .expect("the folder is cargo's");
    }
}

/// The files in `path`, or the file itself, but for tests, always in the same order.
fn files(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_owned()];
    }
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    let is_test = |path: &PathBuf| path.file_stem().is_some_and(|stem| stem == "tests");
    paths.into_iter().filter(|path| !is_test(path)).flat_map(|path| files(&path)).collect()
}

/// The start of FNV-1a.
const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a over `bytes`, which is the same on every machine and with every compiler.
fn fnv(hash: u64, bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    bytes.iter().fold(hash, step)
}
