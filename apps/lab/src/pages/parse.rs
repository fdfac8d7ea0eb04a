//! From the text of a page description to a consistent page.

use crate::pages::PageError;
use crate::pages::fields::{Fields, Source};
use crate::pages::page::{Event, Object, ObjectId, ObjectKind, Page, Priority, Recorded, Trigger};
use serde_json::Value;
use std::path::Path;

/// The format that `data/pages/README.md` describes.
const SCHEMA: &str = "hvc-page/1";

const KINDS: [(&str, ObjectKind); 11] = [
    ("document", ObjectKind::Document),
    ("stylesheet", ObjectKind::Stylesheet),
    ("script", ObjectKind::Script),
    ("image", ObjectKind::Image),
    ("font", ObjectKind::Font),
    ("media", ObjectKind::Media),
    ("xhr", ObjectKind::Xhr),
    ("fetch", ObjectKind::Fetch),
    ("ping", ObjectKind::Ping),
    ("preflight", ObjectKind::Preflight),
    ("other", ObjectKind::Other),
];

const PRIORITIES: [(&str, Priority); 5] = [
    ("VeryHigh", Priority::VeryHigh),
    ("High", Priority::High),
    ("Medium", Priority::Medium),
    ("Low", Priority::Low),
    ("VeryLow", Priority::VeryLow),
];

const EVENTS: [(&str, Event); 3] =
    [("request", Event::Request), ("first_byte", Event::FirstByte), ("end", Event::End)];

impl Page {
    /// Reads the page description in the file `path`.
    ///
    /// # Errors
    /// The file cannot be read, or [`Page::parse`] does not accept it.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, PageError> {
        let file = path.as_ref().display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse(&file, &text),
            Err(source) => Err(PageError::Read { file, source }),
        }
    }

    /// Parses the page description `text`; `file` is its name in errors.
    ///
    /// # Errors
    /// The text is not JSON, a field is missing or out of range, an object waits for one that does not exist, or for
    /// itself, or nothing belongs to the page load.
    pub fn parse(file: &str, text: &str) -> Result<Self, PageError> {
        let value: Value = serde_json::from_str(text)
            .map_err(|source| PageError::Syntax { file: file.to_owned(), source })?;
        let fields = Fields::new(Source { file, text }, String::new(), &value)?;
        let schema = fields.text("schema")?;
        if schema != SCHEMA {
            return Err(fields.error("schema", format!("expected \"{SCHEMA}\", found \"{schema}\"")));
        }
        let recorded_onload = match fields.optional_object("capture")? {
            Some(capture) => capture.optional_milliseconds("onload_ms")?,
            None => None,
        };
        let elements = fields.objects("objects")?;
        let objects =
            elements.iter().map(|fields| object(fields, elements.len())).collect::<Result<Vec<_>, _>>()?;
        check_numbers(&elements, &objects)?;
        if let Some(id) = on_a_cycle(&objects) {
            return Err(
                elements[id.index()].error("after.id", "waits for itself, directly or through others")
            );
        }
        if !objects.iter().any(|object| object.before_onload) {
            return Err(fields.error("objects", "none of them belongs to the page load (before_onload)"));
        }
        Ok(Self {
            id: fields.text("page_id")?.to_owned(),
            site: fields.text("site")?.to_owned(),
            objects,
            recorded_onload,
            paper_size_scale: fields.optional_factor("dchannel_size_scale")?,
        })
    }
}

/// One object of a page with `count` objects.
fn object(fields: &Fields<'_>, count: usize) -> Result<Object, PageError> {
    let start = fields.milliseconds("start_ms")?;
    let end = fields.milliseconds("end_ms")?;
    if end < start {
        return Err(fields.error("end_ms", "is before start_ms"));
    }
    let first_byte = (start + fields.milliseconds("ttfb_ms")?).min(end);
    let wait = fields.optional_milliseconds("server_wait_ms")?.unwrap_or_default();
    Ok(Object {
        id: ObjectId(fields.count("id")?),
        domain: fields.count("domain")?,
        kind: fields.one_of("type", &KINDS)?,
        mime: fields.text("mime")?.to_owned(),
        size: fields.count("size_bytes")?,
        request_size: fields.count("req_bytes")?,
        method: fields.text("method")?.to_owned(),
        status: fields.count("status")?,
        priority: fields.one_of("priority", &PRIORITIES)?,
        after: trigger(fields, count)?,
        // Captures without a load event leave this open: then the page is loaded when all of it is there.
        before_onload: fields.optional_answer("before_onload")?.unwrap_or(true),
        recorded_server_wait: wait,
        recorded: Recorded { start, first_byte, end },
    })
}

fn trigger(fields: &Fields<'_>, count: usize) -> Result<Option<Trigger>, PageError> {
    let known = |fields: &Fields<'_>, name: &str, id: u32| {
        let exists = (id as usize) < count;
        exists
            .then_some(ObjectId(id))
            .ok_or_else(|| fields.error(name, format!("the page has no object {id}")))
    };
    let initiator = match fields.optional_count("initiator")? {
        Some(id) => Some(known(fields, "initiator", id)?),
        None => None,
    };
    let Some(after) = fields.optional_object("after")? else {
        return match initiator {
            Some(_) => Err(fields.error("after", "missing, although the object has an initiator")),
            None => Ok(None),
        };
    };
    Ok(Some(Trigger {
        object: known(&after, "id", after.count("id")?)?,
        event: after.one_of("event", &EVENTS)?,
        delay: after.milliseconds("delay_ms")?,
    }))
}

fn check_numbers(elements: &[Fields<'_>], objects: &[Object]) -> Result<(), PageError> {
    match objects.iter().enumerate().find(|(index, object)| object.id.index() != *index) {
        Some((index, object)) => {
            Err(elements[index]
                .error("id", format!("expected {index} (ids count from 0), found {}", object.id)))
        }
        None => Ok(()),
    }
}

/// An object whose chain of triggers never ends, if there is one.
fn on_a_cycle(objects: &[Object]) -> Option<ObjectId> {
    // 0: unknown, otherwise the number of the walk that came by; a walk that meets itself is a cycle.
    let mut walks = vec![0_usize; objects.len()];
    for (index, object) in objects.iter().enumerate() {
        let walk = index + 1;
        let mut next = Some(object.id);
        while let Some(id) = next {
            match walks[id.index()] {
                0 => walks[id.index()] = walk,
                seen if seen == walk => return Some(id),
                _ => break,
            }
            next = objects[id.index()].after.map(|trigger| trigger.object);
        }
    }
    None
}

#[cfg(test)]
mod tests;
