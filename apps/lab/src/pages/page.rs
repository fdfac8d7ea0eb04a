//! A page: its objects, and what each of them waits for.

use std::fmt;
use std::time::Duration;

/// The longest time that a server is taken to think about a request; captures hold outliers beyond it.
pub const SERVER_WAIT_LIMIT: Duration = Duration::from_secs(2);

/// The number of an object in its page, counted from 0 in the order of the recorded requests.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ObjectId(pub u32);

impl ObjectId {
    /// The position in [`Page::objects`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A page as it was captured: facts about its objects, no content.
///
/// A parsed page is consistent: every [`Trigger`] names an object of the page, there are no cycles, and at least one
/// object belongs to the page load.
#[derive(Clone, PartialEq, Debug)]
pub struct Page {
    /// Short name, as in `p05`.
    pub id: String,
    /// The site that was captured.
    pub site: String,
    /// The objects; [`ObjectId`] is the index.
    pub objects: Vec<Object>,
    /// The recorded page load time; `None` if the capture has no load event.
    pub recorded_onload: Option<Duration>,
    /// The factor on all sizes that makes the corpus as heavy as DChannel's; `None` for pages outside of that corpus.
    pub paper_size_scale: Option<f64>,
}

impl Page {
    /// The object `id`, if the page has it.
    pub fn object(&self, id: ObjectId) -> Option<&Object> {
        self.objects.get(id.index())
    }

    /// Bytes of all response bodies, unscaled.
    pub fn bytes(&self) -> u64 {
        self.objects.iter().map(|object| object.size).sum()
    }

    /// The number of different hosts.
    pub fn domains(&self) -> usize {
        let mut domains: Vec<u32> = self.objects.iter().map(|object| object.domain).collect();
        domains.sort_unstable();
        domains.dedup();
        domains.len()
    }
}

/// One request and its response, as captured.
#[derive(Clone, PartialEq, Debug)]
pub struct Object {
    /// Its number.
    pub id: ObjectId,
    /// A small number for each host.
    pub domain: u32,
    /// The kind of object.
    pub kind: ObjectKind,
    /// The media type, empty if unknown.
    pub mime: String,
    /// Bytes of the response on the wire, compressed.
    pub size: u64,
    /// Bytes of the request, header and body.
    pub request_size: u64,
    /// The HTTP method.
    pub method: String,
    /// The HTTP status.
    pub status: u16,
    /// Chrome's priority.
    pub priority: Priority,
    /// The event that it waits for; `None` if it starts with the load.
    pub after: Option<Trigger>,
    /// True if the load event waits for it.
    pub before_onload: bool,
    /// The server's thinking time as captured, see [`Object::server_wait`].
    pub recorded_server_wait: Duration,
    /// The times of the capture.
    pub recorded: Recorded,
}

impl Object {
    /// The time a server waits before its first byte: the recorded one, at most [`SERVER_WAIT_LIMIT`], times `scale`.
    /// A scale that is negative or not a number counts as zero.
    pub fn server_wait(&self, scale: f64) -> Duration {
        scaled(self.recorded_server_wait.min(SERVER_WAIT_LIMIT), scale)
    }

    /// Bytes of the response times `scale`, rounded; what has a byte keeps at least one. A scale that is negative or
    /// not a number counts as zero.
    pub fn scaled_size(&self, scale: f64) -> u64 {
        if self.size == 0 { 0 } else { ((self.size as f64 * scale.max(0.0)).round() as u64).max(1) }
    }

    /// Returns true if a part of it is already of use (the incremental parameter of RFC 9218 §4.2): images.
    pub fn incremental(&self) -> bool {
        self.kind == ObjectKind::Image
    }
}

/// The kind of an object (Chrome's resource type).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[expect(missing_docs, reason = "the names are those of the resource types")]
pub enum ObjectKind {
    Document,
    Stylesheet,
    Script,
    Image,
    Font,
    Media,
    Xhr,
    Fetch,
    Ping,
    Preflight,
    Other,
}

/// Chrome's priority of a request.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[expect(missing_docs, reason = "the names are Chrome's")]
pub enum Priority {
    VeryHigh,
    High,
    Medium,
    Low,
    VeryLow,
}

impl Priority {
    /// The urgency that Chrome sends for it over HTTP/3 (RFC 9218 §4.1): 0 for the highest to 4 for the lowest.
    pub const fn urgency(self) -> u8 {
        self as u8
    }
}

/// The event that has to happen before an object is requested.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trigger {
    /// The object that it waits for.
    pub object: ObjectId,
    /// The event of that object.
    pub event: Event,
    /// The time from there to the request, as captured: the browser's computing and, in part, its network.
    pub delay: Duration,
}

/// A step in the life of an object.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Event {
    /// It is requested.
    Request,
    /// Its first byte arrives: what waits for this was discovered while it was still arriving.
    FirstByte,
    /// Its last byte arrives.
    End,
}

/// Times of the capture, since its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Recorded {
    /// The request.
    pub start: Duration,
    /// The first byte.
    pub first_byte: Duration,
    /// The last byte.
    pub end: Duration,
}

/// `time` times `scale`; a scale that is negative or not a number counts as zero.
pub(crate) fn scaled(time: Duration, scale: f64) -> Duration {
    if time.is_zero() {
        return time;
    }
    // `max` also turns NaN into zero; only an absurd scale is out of range.
    Duration::try_from_secs_f64(time.as_secs_f64() * scale.max(0.0)).unwrap_or(Duration::MAX)
}
