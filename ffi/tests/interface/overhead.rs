//! The overhead of the C interface beyond the Rust API: allocations, and time.

use crate::pair::{C, Pair, Paths, Rust, Sender, transfer};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Duration;

/// Counts the allocations of each thread.
struct Counting;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    let _uncounted_at_the_end = COUNT.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: everything is passed on to the allocator of the system.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller says what this one is asked for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations and datagrams of a transfer after others, in which buffers grow.
fn allocations(end: &mut dyn Pair, sender: Sender, bytes: u64) -> (u64, u64) {
    for _ in 0..2 {
        transfer(end, sender, bytes);
    }
    let before = COUNT.get();
    let datagrams = transfer(end, sender, bytes);
    (COUNT.get() - before, datagrams)
}

/// The allocations that transfers may make, by their bytes: those of a stream, whose state and queues grow with it at
/// both ends, and beyond 2 MiB that wait to be acknowledged, memory for each 64 KiB that are written.
const BOUNDS: [(u64, u64); 2] = [(2 << 20, 48), (8 << 20, 256)];

#[test]
fn a_packet_costs_no_allocation() {
    for sender in [Sender::Server, Sender::Client] {
        let pairs: [(&str, Box<dyn Pair>); 4] = [
            ("Rust, one path", Box::new(Rust::new(1))),
            ("Rust, one path, batches", Box::new(Rust::new(16))),
            ("Rust, two paths", Box::new(Rust::over(Paths::Two, 16))),
            ("C", Box::new(C::new(1))),
        ];
        for (name, mut pair) in pairs {
            for (bytes, most) in BOUNDS {
                let (count, datagrams) = allocations(pair.as_mut(), sender, bytes);
                println!("{sender:?} sends {bytes}, {name}: {count} allocations for {datagrams} datagrams");
                assert!(datagrams > bytes / 1_400, "{name}: {datagrams} datagrams");
                assert!(count <= most, "{name}: {count} allocations for {datagrams} datagrams");
            }
        }
    }
}

/// Returns the processor time of this thread: other programs do not count.
fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the place is ours.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    assert_eq!(result, 0);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Bytes of one transfer, and rounds.
const BYTES: u64 = 64 << 20;
const ROUNDS: usize = 21;

/// Processor time of a transfer.
fn timed(end: &mut dyn Pair, sender: Sender) -> f64 {
    let start = processor_time();
    transfer(end, sender, BYTES);
    (processor_time() - start).as_secs_f64()
}

/// The rate of C over that of Rust in one round: a transfer in Rust, two in C and one in Rust, so that what grows or shrinks
/// with time counts for both alike. Pairs are new in each round, and so is where their memory is.
fn round(sender: Sender) -> (f64, f64) {
    let (mut rust, mut c) = (Rust::new(64), C::new(64));
    transfer(&mut rust, sender, BYTES / 8);
    transfer(&mut c, sender, BYTES / 8);
    let first = timed(&mut rust, sender);
    let c = timed(&mut c, sender) + timed(&mut c, sender);
    let rust = first + timed(&mut rust, sender);
    (rust / c, 2.0 * BYTES as f64 * 8.0 / rust / 1e9)
}

#[test]
#[ignore = "a measurement: make ffi-bench"]
fn bulk_through_c_costs_as_much_as_in_rust() {
    for sender in [Sender::Server, Sender::Client] {
        let rounds: Vec<(f64, f64)> = (0..ROUNDS).map(|_| round(sender)).collect();
        let sorted = |of: fn(&(f64, f64)) -> f64| {
            let mut values: Vec<f64> = rounds.iter().map(of).collect();
            values.sort_by(f64::total_cmp);
            values
        };
        let (ratios, rates) = (sorted(|round| round.0), sorted(|round| round.1));
        println!(
            "{sender:?} sends, {ROUNDS} rounds: Rust {:.2} Gbit a second of processor time; C at {:.3} of it in the median, \
             half of the rounds from {:.3} to {:.3}, all from {:.3} to {:.3}",
            rates[ROUNDS / 2],
            ratios[ROUNDS / 2],
            ratios[ROUNDS / 4],
            ratios[ROUNDS * 3 / 4],
            ratios[0],
            ratios[ROUNDS - 1]
        );
        assert!(ratios[ROUNDS / 2] > 0.97, "the C interface costs more than 3 %");
    }
}
