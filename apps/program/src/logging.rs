//! A limit on the log of standard error: never more of the same than somebody reads.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tracing::callsite::Identifier;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Filter};

/// Warnings and errors of one place of the program that are written in a [`PERIOD`].
const MOST: u64 = 10;
/// The time in which they count.
const PERIOD: Duration = Duration::from_secs(10);

/// Lets some warnings and errors of each place of the program through in each period, so that what clients can cause does not
/// fill a disk, and whatever else is asked for.
#[derive(Debug, Default)]
pub struct Limit(Mutex<HashMap<Identifier, Window>>);

/// One place of the program in the current period.
#[derive(Clone, Copy, Debug)]
struct Window {
    start: Instant,
    count: u64,
}

/// The treatment of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Treatment {
    /// It is written, and so many were left out before.
    Written { left_out: u64 },
    /// It is left out.
    LeftOut,
}

impl Limit {
    fn treatment(&self, place: Identifier, now: Instant) -> Treatment {
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let window = places.entry(place).or_insert(Window { start: now, count: 0 });
        let mut left_out = 0;
        if now.saturating_duration_since(window.start) >= PERIOD {
            left_out = window.count.saturating_sub(MOST);
            *window = Window { start: now, count: 0 };
        }
        window.count += 1;
        if window.count <= MOST { Treatment::Written { left_out } } else { Treatment::LeftOut }
    }
}

impl<S: Subscriber> Filter<S> for Limit {
    fn enabled(&self, _: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        true
    }

    fn event_enabled(&self, event: &Event<'_>, _: &Context<'_, S>) -> bool {
        let metadata = event.metadata();
        if *metadata.level() > Level::WARN {
            return true;
        }
        match self.treatment(metadata.callsite(), Instant::now()) {
            Treatment::LeftOut => false,
            Treatment::Written { left_out } => {
                if left_out > 0 {
                    eprintln!("hvq: {left_out} lines like the next were left out ({})", metadata.target());
                }
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::sync::Arc;
    use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};

    /// Returns the text that is written of warnings that `say` gives.
    fn written(say: impl FnOnce()) -> String {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let sink = kept.clone();
        let lines = tracing_subscriber::fmt::layer().with_writer(move || Sink(sink.clone())).with_ansi(false);
        let subscriber = tracing_subscriber::registry().with(lines.with_filter(Limit::default()));
        tracing::subscriber::with_default(subscriber, say);
        String::from_utf8(kept.lock().unwrap().clone()).unwrap()
    }

    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_thousand_equal_warnings_are_ten_lines_and_other_places_have_theirs() {
        let lines = written(|| {
            for number in 0..1_000 {
                tracing::warn!(number, "somebody knocks");
                tracing::info!(number, "asked for");
            }
            tracing::error!("something else");
        });
        let count = |part: &str| lines.lines().filter(|line| line.contains(part)).count();
        assert_eq!((count("somebody knocks"), count("something else")), (10, 1), "{lines}");
        assert_eq!(count("asked for"), 1_000);
    }

    #[test]
    fn the_next_period_has_its_own_and_tells_what_was_left_out() {
        let limit = Limit::default();
        let place = tracing::callsite!(name: "place", kind: tracing::metadata::Kind::EVENT, fields:);
        let (place, start) = (tracing::Callsite::metadata(place).callsite(), Instant::now());
        let treatments: Vec<_> = (0..25).map(|_| limit.treatment(place.clone(), start)).collect();
        assert_eq!(treatments.iter().filter(|treatment| **treatment == Treatment::LeftOut).count(), 15);
        assert_eq!(limit.treatment(place.clone(), start + PERIOD), Treatment::Written { left_out: 15 });
        assert_eq!(limit.treatment(place, start + PERIOD), Treatment::Written { left_out: 0 });
    }
}
