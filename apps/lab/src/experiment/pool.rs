//! Independent runs on several threads.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Runs every task, up to `jobs` at once, and returns the results in the order of the tasks. `done` is told each
/// result as it comes.
pub fn run<T: Sync, R: Send>(
    tasks: &[T],
    jobs: usize,
    run: impl Fn(&T) -> R + Sync,
    done: impl Fn(&R) + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<R>>> = Mutex::new(tasks.iter().map(|_| None).collect());
    let work = || {
        while let Some((index, task)) = {
            let index = next.fetch_add(1, Ordering::Relaxed);
            tasks.get(index).map(|task| (index, task))
        } {
            let result = run(task);
            done(&result);
            results.lock().unwrap_or_else(PoisonError::into_inner)[index] = Some(result);
        }
    };
    thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, tasks.len().max(1)) {
            scope.spawn(work);
        }
    });
    // A run that panicked has ended the scope with its panic.
    results.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_tasks_however_many_threads_there_are() {
        for jobs in [0, 1, 3, 100] {
            let tasks: Vec<u32> = (0..20).collect();
            let told = AtomicUsize::new(0);
            let count = |_: &u32| {
                told.fetch_add(1, Ordering::Relaxed);
            };
            let results = run(&tasks, jobs, |task| task * 2, count);
            assert_eq!(results, (0..20).map(|task| task * 2).collect::<Vec<_>>());
            assert_eq!(told.into_inner(), 20);
        }
    }
}
