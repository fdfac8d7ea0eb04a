//! Small files that were read a moment ago: what many clients ask for is looked up and read once a second, not for each.

use bytes::Bytes;
use http::HeaderValue;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Bytes that are kept at most, counting each file as no less than [`LEAST`].
const MOST: usize = 16 << 20;
/// The cost of a file beside its content: its path, and its place; in bytes.
const LEAST: usize = 512;

/// A small file.
#[derive(Clone, Debug)]
pub(super) struct Small {
    pub(super) content: Bytes,
    pub(super) media_type: HeaderValue,
}

/// Small files by the path that they are asked for by, for a while. No file stays open.
#[derive(Debug)]
pub(super) struct Kept {
    fresh: Duration,
    shelf: Mutex<Shelf>,
}

#[derive(Debug, Default)]
struct Shelf {
    files: HashMap<Box<str>, (Instant, Small)>,
    /// Their cost together, in bytes.
    cost: usize,
    /// The time of the latest search for old files: that takes its time.
    swept: Option<Instant>,
}

impl Kept {
    /// Nothing yet; what is read counts for `fresh`, and nothing is kept if that is zero.
    pub(super) fn new(fresh: Duration) -> Self {
        Self { fresh, shelf: Mutex::default() }
    }

    /// Returns the file that was at `path` a moment before `now`.
    pub(super) fn get(&self, path: &str, now: Instant) -> Option<Small> {
        let shelf = self.shelf();
        let (read, small) = shelf.files.get(path)?;
        (now.saturating_duration_since(*read) < self.fresh).then(|| small.clone())
    }

    /// Keeps what was read from `path` at `now`, if there is room.
    pub(super) fn put(&self, path: &str, small: &Small, now: Instant) {
        if self.fresh.is_zero() {
            return;
        }
        let mut shelf = self.shelf();
        shelf.remove(path);
        let cost = cost(path, small);
        let is_fresh = |read: Instant| now.saturating_duration_since(read) < self.fresh;
        if shelf.cost + cost > MOST && !shelf.swept.is_some_and(is_fresh) {
            shelf.swept = Some(now);
            shelf.sweep(is_fresh);
        }
        if shelf.cost + cost <= MOST {
            shelf.cost += cost;
            shelf.files.insert(path.into(), (now, small.clone()));
        }
    }

    /// Forgets what was at `path`, which is not there any more.
    pub(super) fn forget(&self, path: &str) {
        self.shelf().remove(path);
    }

    /// Locks the shelf, which is whole after every statement.
    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shelf {
    fn remove(&mut self, path: &str) {
        if let Some((_, small)) = self.files.remove(path) {
            self.cost -= cost(path, &small);
        }
    }

    /// Keeps those only that were read at a time that `counts`.
    fn sweep(&mut self, counts: impl Fn(Instant) -> bool) {
        self.files.retain(|_, (read, _)| counts(*read));
        self.cost = self.files.iter().map(|(path, (_, small))| cost(path, small)).sum();
    }
}

fn cost(path: &str, small: &Small) -> usize {
    LEAST + path.len() + small.content.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn small(length: usize) -> Small {
        Small { content: vec![7; length].into(), media_type: HeaderValue::from_static("text/plain") }
    }

    #[test]
    fn what_was_read_counts_for_a_while_and_no_longer() {
        let (kept, start) = (Kept::new(SECOND), Instant::now());
        assert!(kept.get("/a", start).is_none());
        kept.put("/a", &small(3), start);
        assert_eq!(kept.get("/a", start + SECOND / 2).unwrap().content.len(), 3);
        assert!(kept.get("/a", start + SECOND).is_none());
        kept.put("/a", &small(4), start + SECOND);
        assert_eq!(kept.get("/a", start + SECOND).unwrap().content.len(), 4);
        kept.forget("/a");
        assert!(kept.get("/a", start + SECOND).is_none());
    }

    #[test]
    fn nothing_is_kept_for_no_time() {
        let (kept, now) = (Kept::new(Duration::ZERO), Instant::now());
        kept.put("/a", &small(3), now);
        assert!(kept.get("/a", now).is_none());
    }

    #[test]
    fn memory_is_bounded_whatever_is_asked_for() {
        // Names without end, each of another file.
        let (kept, now) = (Kept::new(SECOND), Instant::now());
        for index in 0..100_000 {
            kept.put(&format!("/{index}"), &small(index % 5), now);
        }
        assert!(kept.shelf().cost <= MOST);
        let held = kept.shelf().files.len();
        assert!((MOST / (LEAST + 20)..=MOST / LEAST).contains(&held), "{held}");
        // What is old makes room.
        kept.put("/new", &small(60_000), now + SECOND);
        assert_eq!(kept.shelf().files.len(), 1);
        assert_eq!(kept.shelf().cost, LEAST + 4 + 60_000);
    }
}
