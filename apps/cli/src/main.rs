//! The hvq command.

use std::process::ExitCode;

/// It can give back what is free, whatever lies between, when nothing else happens (docs/results/memory.md).
#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    hvq_cli::run(std::env::args_os())
}
