//! Free memory goes back to the system, also while nothing else happens (docs/results/memory.md).

/// Starts the thread of the allocator that gives memory back within seconds. To be called once namespaces are made, for which a process must
/// have one thread only. On Linux alone, where the program has that allocator.
pub(crate) fn give_back() {
    #[cfg(target_os = "linux")]
    if let Err(error) = tikv_jemalloc_ctl::background_thread::write(true) {
        tracing::debug!(%error, "free memory goes back to the system only as more is asked for");
    }
}
