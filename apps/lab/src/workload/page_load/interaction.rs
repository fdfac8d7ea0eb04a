//! The uses of apps, as small pages: exchanges with a server of data, and pictures from another.
//!
//! NSDI 2023 (§5.2, Fig. 7) names the apps (social, shopping, news) and what was done with them, not their traffic.
//! These pages are a guess at such apps: answers in JSON that lead to pictures, servers that take time to think, and 20
//! ms of each answer for the way behind the emulated channel, which the paper measured to be 12 to 30 ms long.

use crate::pages::{Event, Object, ObjectId, ObjectKind, Page, Priority, Recorded, Trigger};
use std::time::Duration;

/// The use of an app by a person.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Interaction {
    /// The app is started: settings, a session, the first list with its pictures.
    Launch,
    /// Something is searched for: one answer that takes time, and small pictures.
    Search,
    /// A product or an article is opened: its text, large pictures, what others say.
    Load,
    /// A number of small requests, each after the answer to the one before, whose size is `answer`, in bytes.
    Exchanges {
        /// The number of requests.
        number: u32,
        /// Bytes of each answer.
        answer: u64,
    },
}

/// The time that an answer takes for the way from the channel to the server and back.
const BEHIND: Duration = Duration::from_millis(20);

/// The server of data.
const DATA: u32 = 0;
/// The server of pictures.
const PICTURES: u32 = 1;
/// One that only notes what is done.
const NOTES: u32 = 2;

/// A page that is being made.
#[derive(Default)]
struct Sketch {
    objects: Vec<Object>,
}

/// One exchange of a sketch.
struct Exchange {
    domain: u32,
    /// Bytes of the request and of the answer.
    sizes: (u64, u64),
    /// The time for which the server thinks.
    wait: Duration,
    /// The exchange after whose end it begins, and the time between them.
    after: Option<(ObjectId, Duration)>,
}

const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

impl Sketch {
    fn add(&mut self, exchange: Exchange) -> ObjectId {
        let id = ObjectId(u32::try_from(self.objects.len()).unwrap_or(u32::MAX));
        let Exchange { domain, sizes: (request_size, size), wait, after } = exchange;
        let (kind, mime, priority) = match domain {
            PICTURES => (ObjectKind::Image, "image/jpeg", Priority::Medium),
            NOTES => (ObjectKind::Ping, "text/plain", Priority::VeryLow),
            _ => (ObjectKind::Fetch, "application/json", Priority::High),
        };
        self.objects.push(Object {
            id,
            domain,
            kind,
            mime: mime.to_owned(),
            size,
            request_size,
            method: "GET".to_owned(),
            status: 200,
            priority,
            after: after.map(|(object, delay)| Trigger { object, event: Event::End, delay }),
            before_onload: domain != NOTES,
            recorded_server_wait: wait,
            recorded: Recorded { start: Duration::ZERO, first_byte: Duration::ZERO, end: Duration::ZERO },
        });
        id
    }

    /// An answer of `size` bytes after `wait`.
    fn data(&mut self, size: u64, wait: Duration, after: Option<(ObjectId, Duration)>) -> ObjectId {
        self.add(Exchange { domain: DATA, sizes: (1_000, size), wait: wait + BEHIND, after })
    }

    /// Adds `number` pictures of `size` bytes, once the answer `after` has been read.
    fn pictures(&mut self, number: u32, size: u64, after: ObjectId) {
        for _ in 0..number {
            let wait = ms(5) + BEHIND;
            self.add(Exchange { domain: PICTURES, sizes: (400, size), wait, after: Some((after, ms(40))) });
        }
    }
}

impl Interaction {
    /// Its exchanges as a page, whose load time is that of the app's answer.
    pub fn page(self) -> Page {
        let mut sketch = Sketch::default();
        match self {
            Self::Launch => {
                let settings = sketch.data(4_000, ms(60), None);
                let session = sketch.data(2_000, ms(80), Some((settings, ms(30))));
                let list = sketch.data(45_000, ms(150), Some((settings, ms(30))));
                sketch.pictures(8, 40_000, list);
                let after = Some((session, Duration::ZERO));
                sketch.add(Exchange { domain: NOTES, sizes: (3_000, 300), wait: BEHIND, after });
            }
            Self::Search => {
                let found = sketch.data(30_000, ms(250), None);
                sketch.pictures(6, 12_000, found);
            }
            Self::Load => {
                let text = sketch.data(25_000, ms(90), None);
                sketch.pictures(4, 90_000, text);
                let said = sketch.data(15_000, ms(80), Some((text, ms(40))));
                sketch.pictures(3, 6_000, said);
            }
            Self::Exchanges { number, answer } => {
                let mut before = None;
                for _ in 0..number {
                    let exchange =
                        Exchange { domain: DATA, sizes: (200, answer), wait: Duration::ZERO, after: before };
                    before = Some((sketch.add(exchange), Duration::ZERO));
                }
            }
        }
        Page {
            id: "interaction".to_owned(),
            site: String::new(),
            objects: sketch.objects,
            recorded_onload: None,
            paper_size_scale: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_app_asks_for_waits_for_what_it_follows_from() {
        for interaction in [Interaction::Launch, Interaction::Search, Interaction::Load] {
            let page = interaction.page();
            assert_eq!(page.objects.iter().filter(|object| object.after.is_none()).count(), 1);
            assert!(page.objects.iter().any(|object| object.domain == PICTURES));
            let known = |object: &Object| object.after.is_none_or(|after| after.object < object.id);
            assert!(page.objects.iter().all(known), "{interaction:?}");
        }
    }

    #[test]
    fn exchanges_follow_each_other() {
        let page = Interaction::Exchanges { number: 3, answer: 500 }.page();
        let after: Vec<Option<u32>> =
            page.objects.iter().map(|object| object.after.map(|after| after.object.0)).collect();
        assert_eq!(after, [None, Some(0), Some(1)]);
        assert!(page.objects.iter().all(|object| object.size == 500));
    }
}
