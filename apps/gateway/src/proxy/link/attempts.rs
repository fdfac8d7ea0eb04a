//! One attempt for everybody who waits, and a pause behind one that failed.

use std::future::Future;
use std::mem::replace;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The pause behind the first attempt that fails; each further one doubles it.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(8);

/// Something that takes an attempt to have, such as a connection.
#[derive(Debug)]
pub(super) struct Attempts<T, E> {
    inner: Arc<Inner<T, E>>,
}

#[derive(Debug)]
struct Inner<T, E> {
    stage: Mutex<Stage<T, E>>,
    ended: Notify,
}

/// The stage of the last attempt.
#[derive(Debug)]
enum Stage<T, E> {
    /// There was none, or what came of it is gone.
    Idle,
    /// It is under way.
    Running,
    /// It succeeded.
    Done(T),
    /// It failed.
    Failed(Failure<E>),
}

#[derive(Debug)]
struct Failure<E> {
    error: Arc<E>,
    /// Attempts that failed in a row.
    row: u32,
    /// No further attempt begins earlier.
    until: Instant,
}

impl<T, E> Default for Attempts<T, E> {
    fn default() -> Self {
        Self { inner: Arc::new(Inner { stage: Mutex::new(Stage::Idle), ended: Notify::new() }) }
    }
}

impl<T: Clone + Send + 'static, E: Send + Sync + 'static> Attempts<T, E> {
    /// The value of the last attempt if it `is_good` still, or of the attempt under way, or else of one that `start` makes. An
    /// attempt goes on when those who wait for it give up. Within the pause behind one that failed, this fails at once.
    ///
    /// # Errors
    /// The error of the attempt, which everybody who waited for it gets.
    pub(super) async fn get<F>(
        &self,
        is_good: impl Fn(&T) -> bool,
        start: impl Fn() -> F,
    ) -> Result<T, Arc<E>>
    where
        F: Future<Output = Result<T, E>> + Send + 'static,
    {
        let entered = Instant::now();
        loop {
            // Before the stage is looked at, so that no end in between is missed.
            let ended = self.inner.ended.notified();
            {
                let mut stage = self.inner.lock();
                match &*stage {
                    Stage::Done(value) if is_good(value) => return Ok(value.clone()),
                    // Also the failure of an attempt that was waited for here.
                    Stage::Failed(failure) if entered < failure.until => return Err(failure.error.clone()),
                    Stage::Running => {}
                    Stage::Idle | Stage::Done(_) | Stage::Failed(_) => {
                        let before = replace(&mut *stage, Stage::Running);
                        let row = if let Stage::Failed(failure) = before { failure.row } else { 0 };
                        tokio::spawn(self.inner.clone().run(row, start()));
                    }
                }
            }
            ended.await;
        }
    }

    /// Forgets the value of the last attempt if it `is` that.
    pub(super) fn forget(&self, is: impl Fn(&T) -> bool) {
        let mut stage = self.inner.lock();
        if matches!(&*stage, Stage::Done(value) if is(value)) {
            *stage = Stage::Idle;
        }
    }

    /// The value of the last attempt.
    pub(super) fn last(&self) -> Option<T> {
        match &*self.inner.lock() {
            Stage::Done(value) => Some(value.clone()),
            Stage::Idle | Stage::Running | Stage::Failed(_) => None,
        }
    }
}

impl<T, E> Inner<T, E> {
    /// Makes an attempt, behind so many in a `row` that failed.
    async fn run(self: Arc<Self>, row: u32, attempt: impl Future<Output = Result<T, E>>) {
        let mut end = End { inner: &self, stage: Stage::Idle };
        end.stage = match attempt.await {
            Ok(value) => Stage::Done(value),
            Err(error) => {
                let pause = FIRST_PAUSE.saturating_mul(1 << row.min(16)).min(LONGEST_PAUSE);
                let (error, row) = (Arc::new(error), row.saturating_add(1));
                Stage::Failed(Failure { error, row, until: Instant::now() + pause })
            }
        };
    }

    /// A panic elsewhere leaves a stage that is whole.
    fn lock(&self) -> MutexGuard<'_, Stage<T, E>> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The end of an attempt, of one that panics too.
struct End<'a, T, E> {
    inner: &'a Inner<T, E>,
    stage: Stage<T, E>,
}

impl<T, E> Drop for End<'_, T, E> {
    fn drop(&mut self) {
        *self.inner.lock() = replace(&mut self.stage, Stage::Idle);
        self.inner.ended.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};
    use tokio::time::{advance, sleep, timeout};

    const ATTEMPT: Duration = Duration::from_secs(10);

    /// Attempts that take ten seconds each and are counted: the first `bad` fail.
    #[derive(Clone, Default)]
    struct World {
        attempts: Arc<Attempts<u32, u32>>,
        count: Arc<AtomicU32>,
    }

    impl World {
        async fn get(&self, bad: u32) -> Result<u32, Arc<u32>> {
            let start = || {
                let number = self.count.fetch_add(1, Ordering::Relaxed);
                async move {
                    sleep(ATTEMPT).await;
                    if number < bad { Err(number) } else { Ok(number) }
                }
            };
            self.attempts.get(|_| true, start).await
        }

        fn count(&self) -> u32 {
            self.count.load(Ordering::Relaxed)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn everybody_who_waits_shares_one_attempt_and_its_error() {
        let world = World::default();
        let start = Instant::now();
        let waiting: Vec<_> = (0..5)
            .map(|number| {
                let world = world.clone();
                tokio::spawn(async move {
                    sleep(Duration::from_secs(number)).await;
                    world.get(1).await
                })
            })
            .collect();
        for waiting in waiting {
            assert_eq!(waiting.await.unwrap(), Err(Arc::new(0)));
        }
        assert_eq!((start.elapsed(), world.count()), (ATTEMPT, 1), "not one after the other");
        assert_eq!(world.get(1).await, Err(Arc::new(0)), "within the pause nothing is tried");
        assert_eq!((start.elapsed(), world.count()), (ATTEMPT, 1));
        advance(FIRST_PAUSE).await;
        assert_eq!(world.get(1).await, Ok(1));
        assert_eq!((world.get(1).await, world.count()), (Ok(1), 2));
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_double_up_to_a_limit_and_begin_anew_after_success() {
        let world = World::default();
        for pause in [250, 500, 1000, 2000, 4000, 8000, 8000] {
            assert!(world.get(7).await.is_err());
            let before = world.count();
            advance(Duration::from_millis(pause - 1)).await;
            assert!(world.get(7).await.is_err());
            assert_eq!(world.count(), before, "{pause} ms");
            advance(Duration::from_millis(1)).await;
        }
        assert_eq!(world.get(7).await, Ok(7));
        world.attempts.forget(|value| *value == 7);
        assert_eq!((world.attempts.last(), world.get(9).await), (None, Err(Arc::new(8))));
        advance(FIRST_PAUSE).await;
        assert_eq!(world.get(9).await, Ok(9));
    }

    #[tokio::test(start_paused = true)]
    async fn an_attempt_goes_on_when_the_one_who_began_it_gives_up() {
        let world = World::default();
        for _ in 0..3 {
            assert!(timeout(Duration::from_secs(3), world.get(0)).await.is_err());
        }
        assert_eq!((world.get(0).await, world.count()), (Ok(0), 1));
    }

    #[tokio::test(start_paused = true)]
    async fn an_attempt_that_panics_keeps_nobody_waiting() {
        let attempts: Attempts<u32, u32> = Attempts::default();
        let count = AtomicU32::new(0);
        let start = || {
            let number = count.fetch_add(1, Ordering::Relaxed);
            async move {
                assert!(number > 0, "the first attempt panics");
                Ok(number)
            }
        };
        assert_eq!(attempts.get(|_| true, start).await, Ok(1));
    }
}
