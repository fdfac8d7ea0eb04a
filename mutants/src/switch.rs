//! The choice of the mutant that is active in this build: written into a copy of a crate by hvq-mutants.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};

/// No mutant has this number.
const NONE: u32 = u32::MAX - 2;
const RECORDS: u32 = u32::MAX - 1;
const UNKNOWN: u32 = u32::MAX;

static ACTIVE: AtomicU32 = AtomicU32::new(UNKNOWN);
static SEEN: [AtomicU8; 1 << 15] = [const { AtomicU8::new(0) }; 1 << 15];
static RECORD: OnceLock<File> = OnceLock::new();

/// Returns whether mutant `number` is active. Those that are asked for are recorded if the environment wants it.
#[inline(always)]
pub fn is(number: u32) -> bool {
    let active = ACTIVE.load(Relaxed);
    if active < RECORDS { active == number } else { decide(number, active) }
}

#[cold]
#[inline(never)]
fn decide(number: u32, active: u32) -> bool {
    if active == RECORDS {
        let seen = &SEEN[number as usize];
        if seen.load(Relaxed) == 0 && seen.swap(1, Relaxed) == 0 {
            RECORD.get().expect("opened before").write_all_at(&[1], number.into()).expect("a disk with room");
        }
        return false;
    }
    if let Some(path) = std::env::var_os("HVQ_MUTANTS_RECORD") {
        RECORD.get_or_init(|| OpenOptions::new().write(true).create(true).open(path).expect("a file"));
        ACTIVE.store(RECORDS, Relaxed);
    } else {
        let named = std::env::var("HVQ_MUTANT").ok().and_then(|text| text.parse().ok());
        ACTIVE.store(named.unwrap_or(NONE), Relaxed);
    }
    is(number)
}
