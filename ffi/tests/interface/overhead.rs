//! What the C interface costs beyond the Rust API: allocations, and time.

use crate::pair::{self, C, Rust, transfer};
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

/// Allocations and datagrams of a transfer after a first one, in which buffers grow.
fn allocations(end: &mut dyn pair::Pair, bytes: u64) -> (u64, u64) {
    transfer(end, bytes);
    let before = COUNT.get();
    let datagrams = transfer(end, bytes);
    (COUNT.get() - before, datagrams)
}

#[test]
fn a_packet_costs_no_allocation_beyond_those_of_the_core() {
    let (core, datagrams) = allocations(&mut Rust::new(1), 8 << 20);
    let (interface, as_many) = allocations(&mut C::new(1), 8 << 20);
    println!("{core} allocations for {datagrams} datagrams in Rust, {interface} for {as_many} through C");
    assert!(datagrams > 4_000 && as_many > 4_000);
    // The pair in Rust allocates twice for each datagram that it passes on, which is its side's work: what is left is the
    // core's. Two in a hundred datagrams may cost an allocation of the interface.
    let bound = core.saturating_sub(2 * datagrams) + as_many / 50;
    assert!(interface <= bound, "{interface} allocations, of the core alone {bound}");
}

/// What this thread has used of the processor: other programs do not count.
fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the place is ours.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    assert_eq!(result, 0);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[test]
#[ignore = "a measurement: make ffi-bench"]
fn bulk_through_c_costs_as_much_as_in_rust() {
    const BYTES: u64 = 128 << 20;
    let (mut rust, mut c) = (Rust::new(64), C::new(64));
    transfer(&mut rust, BYTES / 4);
    transfer(&mut c, BYTES / 4);
    let mut best = [Duration::MAX; 2];
    // In turns, so that what else the machine does disturbs both; the best of each counts.
    for _ in 0..7 {
        for (best, end) in best.iter_mut().zip([&mut rust as &mut dyn pair::Pair, &mut c]) {
            let start = processor_time();
            transfer(end, BYTES);
            *best = (*best).min(processor_time() - start);
        }
    }
    let rate = |time: Duration| BYTES as f64 * 8.0 / time.as_secs_f64() / 1e9;
    let ratio = best[0].as_secs_f64() / best[1].as_secs_f64();
    println!(
        "bulk in memory: Rust {:.2} Gbit, C {:.2} Gbit a second of processor time, ratio {ratio:.3}",
        rate(best[0]),
        rate(best[1])
    );
    assert!(ratio > 0.97, "the C interface costs more than 3 %: {ratio:.3}");
}
