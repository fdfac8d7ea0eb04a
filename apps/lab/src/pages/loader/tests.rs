use super::*;
use crate::pages::builtin;
use crate::pages::page::{Object, ObjectKind, Priority, Recorded, Trigger};

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn object(id: u32, kind: ObjectKind, priority: Priority, after: Option<(u32, Event, u64)>) -> Object {
    Object {
        id: ObjectId(id),
        domain: 0,
        kind,
        mime: String::new(),
        size: 1000,
        request_size: 400,
        method: "GET".to_owned(),
        status: 200,
        priority,
        after: after.map(|(of, event, delay)| Trigger { object: ObjectId(of), event, delay: ms(delay) }),
        before_onload: true,
        recorded_server_wait: ms(40),
        recorded: Recorded { start: ms(0), first_byte: ms(50), end: ms(60) },
    }
}

/// A document that leads to a style sheet (at its first byte), a script (at its end) and a beacon (with the script's
/// request) that the load does not wait for; the style sheet leads to an image.
fn page() -> Page {
    let mut objects = vec![
        object(0, ObjectKind::Document, Priority::VeryHigh, None),
        object(1, ObjectKind::Stylesheet, Priority::High, Some((0, Event::FirstByte, 100))),
        object(2, ObjectKind::Script, Priority::Medium, Some((0, Event::End, 0))),
        object(3, ObjectKind::Ping, Priority::VeryLow, Some((2, Event::Request, 0))),
        object(4, ObjectKind::Image, Priority::Low, Some((1, Event::End, 20))),
    ];
    objects[3].before_onload = false;
    Page { id: "p".to_owned(), site: "s".to_owned(), objects, recorded_onload: None, paper_size_scale: None }
}

fn ids(requests: &[Request]) -> Vec<u32> {
    requests.iter().map(|request| request.object.0).collect()
}

#[test]
fn a_load_starts_with_the_document_alone() {
    let mut loader = Loader::new(&page(), 0.1, 1.0);
    assert_eq!(loader.next_deadline(), Some(ms(0)));
    assert_eq!(ids(&loader.ready(ms(500))), [0]);
    assert!(loader.ready(ms(900)).is_empty(), "nothing is requested twice");
    assert_eq!(loader.next_deadline(), None, "only bytes can go on from here");
}

#[test]
fn an_object_found_in_the_first_bytes_is_requested_while_the_rest_still_arrives() {
    let mut loader = Loader::new(&page(), 0.1, 1.0);
    loader.ready(ms(0));
    loader.on_first_byte(ObjectId(0), ms(50)).unwrap();
    assert_eq!(loader.next_deadline(), Some(ms(60)), "a tenth of 100 ms of thinking");
    assert!(loader.ready(ms(59)).is_empty());
    assert_eq!(ids(&loader.ready(ms(60))), [1]);
}

#[test]
fn a_request_that_follows_from_another_request_goes_out_with_it() {
    let mut loader = Loader::new(&page(), 0.0, 1.0);
    loader.ready(ms(0));
    loader.on_end(ObjectId(0), ms(70)).unwrap();
    assert_eq!(ids(&loader.ready(ms(70))), [1, 2, 3], "the end implies the first byte");
}

#[test]
fn the_load_time_counts_what_the_load_event_waits_for_and_nothing_else() {
    let mut loader = Loader::new(&page(), 0.0, 1.0);
    loader.ready(ms(1000));
    loader.on_end(ObjectId(0), ms(1100)).unwrap();
    loader.ready(ms(1100));
    loader.on_end(ObjectId(1), ms(1200)).unwrap();
    loader.on_end(ObjectId(2), ms(1300)).unwrap();
    assert!(!loader.is_loaded() && loader.page_load_time().is_none());
    loader.ready(ms(1300));
    loader.on_end(ObjectId(4), ms(1400)).unwrap();
    assert!(loader.is_loaded() && !loader.is_complete(), "the beacon is still under way");
    assert_eq!(loader.page_load_time(), Some(ms(400)));
    loader.on_end(ObjectId(3), ms(2000)).unwrap();
    assert!(loader.is_complete());
    assert_eq!(loader.page_load_time(), Some(ms(400)));
}

#[test]
fn timings_are_since_the_start_of_the_load_and_are_set_once() {
    let mut loader = Loader::new(&page(), 0.0, 1.0);
    loader.ready(ms(1000));
    loader.on_first_byte(ObjectId(0), ms(1050)).unwrap();
    loader.on_first_byte(ObjectId(0), ms(1060)).unwrap();
    loader.on_end(ObjectId(0), ms(1070)).unwrap();
    loader.on_end(ObjectId(0), ms(1080)).unwrap();
    let expected =
        Timing { object: ObjectId(0), requested: Some(ms(0)), first_byte: Some(ms(50)), end: Some(ms(70)) };
    assert_eq!(loader.timings()[0], expected);
    assert_eq!(loader.timings()[4].requested, None);
    assert_eq!(ids(&loader.ready(ms(1100))), [1, 2, 3], "repeated reports cause no second request");
}

#[test]
fn requests_carry_urgency_size_and_server_wait() {
    let mut page = page();
    page.objects[4].recorded_server_wait = ms(9000);
    let mut loader = Loader::new(&page, 0.0, 2.5);
    let mut requests = loader.ready(ms(0));
    for _ in 0..3 {
        for request in requests.clone() {
            loader.on_end(request.object, ms(10)).unwrap();
        }
        requests.extend(loader.ready(ms(10)));
    }
    requests.sort_by_key(|request| request.object);
    assert_eq!(requests.iter().map(|request| request.urgency).collect::<Vec<_>>(), [0, 1, 2, 4, 3]);
    assert_eq!(requests.iter().filter(|request| request.incremental).count(), 1);
    assert!(requests[4].incremental && requests[4].size == 2500);
    assert_eq!(requests[4].server_wait, ms(2000), "outliers are capped");
    assert_eq!(page.objects[4].server_wait(0.5), ms(1000));
}

#[test]
fn reports_about_what_was_not_requested_are_errors() {
    let mut loader = Loader::new(&page(), 0.1, 1.0);
    loader.ready(ms(0));
    assert_eq!(loader.on_end(ObjectId(4), ms(1)), Err(LoadError::NotRequested(ObjectId(4))));
    assert_eq!(loader.on_first_byte(ObjectId(5), ms(1)), Err(LoadError::Unknown(ObjectId(5))));
    assert_eq!(LoadError::Unknown(ObjectId(5)).to_string(), "the page has no object 5");
}

#[test]
fn scales_that_make_no_sense_count_as_zero() {
    for scale in [-1.0, f64::NAN] {
        let mut loader = Loader::new(&page(), scale, scale);
        assert_eq!(loader.ready(ms(0))[0].size, 1, "what has bytes keeps one");
        loader.on_first_byte(ObjectId(0), ms(5)).unwrap();
        assert_eq!(ids(&loader.ready(ms(5))), [1], "no thinking");
    }
    let mut endless = Loader::new(&page(), f64::INFINITY, f64::INFINITY);
    endless.ready(ms(1));
    endless.on_end(ObjectId(0), ms(2)).unwrap();
    assert_eq!(ids(&endless.ready(ms(3))), [2, 3], "what waits without delay still goes");
    assert_eq!(page().objects[0].server_wait(f64::INFINITY), Duration::MAX);
}

/// Loads `page` over an ideal network: the first byte after `latency`, the end when `rate` bytes per millisecond have
/// delivered it, each object by itself.
fn load(page: &Page, think_scale: f64, latency: Duration, rate: u64) -> Loader {
    let mut loader = Loader::new(page, think_scale, 1.0);
    let mut arrivals: BTreeSet<(Duration, ObjectId, Arrival)> = BTreeSet::new();
    let mut now = ms(0);
    loop {
        for request in loader.ready(now) {
            let first = now + latency;
            arrivals.insert((first, request.object, Arrival::First));
            arrivals.insert((first + ms(request.size / rate), request.object, Arrival::Last));
        }
        let arrival = arrivals.first().map(|(at, ..)| *at);
        let Some(next) = [arrival, loader.next_deadline()].into_iter().flatten().min() else {
            return loader;
        };
        assert!(next >= now, "time goes on");
        now = next;
        while let Some((_, object, event)) = arrivals.first().copied().filter(|(at, ..)| *at <= now) {
            arrivals.pop_first();
            match event {
                Arrival::First => loader.on_first_byte(object, now).unwrap(),
                Arrival::Last => loader.on_end(object, now).unwrap(),
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Arrival {
    First,
    Last,
}

#[test]
fn every_built_in_page_loads_to_the_end_and_faster_over_a_faster_network() {
    for page in builtin::pages() {
        let near = load(&page, THINK_SCALE, ms(5), 10_000);
        let far = load(&page, THINK_SCALE, ms(60), 1_000);
        assert!(near.is_complete() && far.is_complete(), "{}", page.id);
        let (near, far) = (near.page_load_time().unwrap(), far.page_load_time().unwrap());
        assert!(near < far, "{}: {near:?} and {far:?}", page.id);
        assert!(far > ms(60) && far < Duration::from_secs(20), "{}: {far:?}", page.id);
    }
}

#[test]
fn thinking_time_makes_a_load_slower() {
    let page = builtin::page("p12").unwrap();
    let swift = load(&page, 0.0, ms(30), 5_000).page_load_time().unwrap();
    let slow = load(&page, 1.0, ms(30), 5_000).page_load_time().unwrap();
    assert!(swift < slow);
}
