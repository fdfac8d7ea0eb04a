//! A page of one object: what a command line fetches.

use crate::pages::{Object, ObjectId, ObjectKind, Page, Priority, Recorded};
use std::time::Duration;

/// Bytes of a request without cookies, about.
const REQUEST: u64 = 400;

/// Bytes of the answer to an upload.
const ANSWER: u64 = 200;

/// A page that is one document of `size` bytes, which its server has at hand (NSDI 2023, Table 2; HotMobile 2021,
/// Table 2).
pub fn single(size: u64) -> Page {
    exchange((REQUEST, size), format!("object:{size}"))
}

/// A page that is one request of `size` bytes with a short answer: an upload.
pub fn upload(size: u64) -> Page {
    exchange((size, ANSWER), format!("upload:{size}"))
}

/// A page of one request and its answer, of these sizes.
fn exchange((request_size, size): (u64, u64), id: String) -> Page {
    let document = Object {
        id: ObjectId(0),
        domain: 0,
        kind: ObjectKind::Document,
        mime: "text/html".to_owned(),
        size,
        request_size,
        method: "GET".to_owned(),
        status: 200,
        priority: Priority::VeryHigh,
        after: None,
        before_onload: true,
        recorded_server_wait: Duration::ZERO,
        recorded: Recorded { start: Duration::ZERO, first_byte: Duration::ZERO, end: Duration::ZERO },
    };
    Page { id, site: String::new(), objects: vec![document], recorded_onload: None, paper_size_scale: None }
}
