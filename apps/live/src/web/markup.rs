//! A page rebuilt from its description, as HTML that a browser loads: objects of the recorded sizes, asked for in the
//! recorded order.
//!
//! Objects that the document leads to are markup in it, in front of its padding or behind it as the capture says, so
//! that the browser's own parser, preload scanner and priorities are at work. Objects that others lead to, or that come
//! later than a browser needs to parse, are asked for by a script when the recorded event has happened and the recorded
//! delay, scaled as in virtual time, has passed. A frame whose document is left open holds the load event back until
//! all is there.

use hvq_lab::pages::{Event, Object, ObjectId, ObjectKind, Page, THINK_SCALE};
use serde_json::json;
use std::fmt::Write;
use std::time::Duration;

/// The script that asks for what is not in the markup.
const SCRIPT: &str = include_str!("loader.js");
/// The time after the document within which an object that it leads to, as recorded and scaled, is in its markup.
const AT_ONCE: Duration = Duration::from_millis(20);

/// The size of what is around the parts of a document.
const FRAME: usize = "<!----><script>ended();</script></body></html>".len();

/// A page for a browser.
#[derive(Clone, Debug)]
pub struct BrowserPage {
    /// Its name.
    pub id: String,
    /// The objects that the load event waits for.
    pub files: Vec<File>,
    /// Paths that answer with another's address, and that address without its scheme.
    pub redirects: Vec<(String, String)>,
    /// The address at which the load begins, without its scheme.
    pub first: String,
}

/// A file of a page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct File {
    /// The object.
    pub object: ObjectId,
    /// Its path.
    pub path: String,
    /// The content.
    pub content: Vec<u8>,
}

/// The names of the hosts of `page`.
pub fn hosts(page: &Page) -> Vec<String> {
    let mut domains: Vec<u32> = page.objects.iter().map(|object| object.domain).collect();
    domains.sort_unstable();
    domains.dedup();
    domains.into_iter().map(|domain| host(&page.id, domain)).collect()
}

fn host(id: &str, domain: u32) -> String {
    format!("d{domain}.{id}.test")
}

/// The path of `object` of page `id`; its end tells Nginx the media type.
fn path(id: &str, object: &Object) -> String {
    let ending = if is_redirect(object) { "redirect" } else { Element::of(object.kind).ending() };
    format!("/{id}/{}.{ending}", object.id)
}

/// The address of `object`, whatever the scheme.
fn address(id: &str, object: &Object) -> String {
    format!("//{}{}", host(id, object.domain), path(id, object))
}

impl BrowserPage {
    /// `page` for a browser; `None` if it has no document.
    pub fn new(page: &Page) -> Option<Self> {
        let first = page.objects.iter().find(|object| object.before_onload)?;
        let document = page.objects.iter().find(|object| is_document(object))?;
        let before = page.objects.iter().take(document.id.index()).filter(|object| is_redirect(object));
        let redirecting: Vec<&Object> = before.collect();
        let next = redirecting.iter().skip(1).copied().chain([document]);
        let pairs = redirecting.iter().zip(next);
        let redirects =
            pairs.map(|(object, next)| (path(&page.id, object), address(&page.id, next))).collect();
        let wanted = |object: &&Object| {
            object.before_onload
                && object.id != document.id
                && !redirecting.iter().any(|other| other.id == object.id)
        };
        let mut files: Vec<File> =
            page.objects.iter().filter(wanted).map(|object| file(page, object)).collect();
        let start = if redirecting.is_empty() { document } else { first };
        let content = Markup { page, document }.document().into_bytes();
        files.push(File { object: document.id, path: path(&page.id, document), content });
        Some(Self { id: page.id.clone(), files, redirects, first: address(&page.id, start) })
    }

    /// The number of objects that are loaded.
    pub fn objects(&self) -> usize {
        self.files.len() + self.redirects.len()
    }
}

fn is_document(object: &Object) -> bool {
    object.kind == ObjectKind::Document && object.status == 200 && object.before_onload
}

fn is_redirect(object: &Object) -> bool {
    (300..400).contains(&object.status) && object.before_onload
}

/// The element by which an object is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Element {
    Script,
    Style,
    Image,
    Font,
    Frame,
    Fetch,
}

impl Element {
    const fn of(kind: ObjectKind) -> Self {
        match kind {
            ObjectKind::Script => Self::Script,
            ObjectKind::Stylesheet => Self::Style,
            ObjectKind::Image => Self::Image,
            ObjectKind::Font => Self::Font,
            ObjectKind::Document => Self::Frame,
            ObjectKind::Media
            | ObjectKind::Xhr
            | ObjectKind::Fetch
            | ObjectKind::Ping
            | ObjectKind::Preflight
            | ObjectKind::Other => Self::Fetch,
        }
    }

    /// Returns the name by which the script knows it.
    const fn name(self) -> &'static str {
        match self {
            Self::Script => "script",
            Self::Style => "style",
            Self::Image => "image",
            Self::Font => "font",
            Self::Frame => "frame",
            Self::Fetch => "fetch",
        }
    }

    /// Returns the ending of its path.
    const fn ending(self) -> &'static str {
        match self {
            Self::Script => "js",
            Self::Style => "css",
            Self::Image => "gif",
            Self::Font => "woff2",
            Self::Frame => "html",
            Self::Fetch => "bin",
        }
    }

    /// Returns the first bytes of its content.
    const fn begin(self) -> &'static [u8] {
        match self {
            Self::Script | Self::Style => b"/*",
            // One pixel: browsers read on to the end of the response.
            Self::Image => {
                b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff!\xf9\x04\x01\0\0\0\0,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;"
            }
            Self::Frame => b"<!doctype html><title>frame</title><!--",
            Self::Font | Self::Fetch => b"",
        }
    }
}

/// The content of `object`, of its recorded size.
fn file(page: &Page, object: &Object) -> File {
    let element = Element::of(object.kind);
    let begin = element.begin();
    let end: &[u8] = match element {
        Element::Script | Element::Style => b"*/",
        Element::Frame => b"-->",
        _ => b"",
    };
    let size = object.size as usize;
    let mut content = match size >= begin.len() + end.len() {
        true => begin.to_vec(),
        false => Vec::new(),
    };
    let end = if content.is_empty() { b"" } else { end };
    // Spaces mean nothing in any of these languages.
    content.resize(size - end.len(), b' ');
    content.extend_from_slice(end);
    File { object: object.id, path: path(&page.id, object), content }
}

/// The document of a page.
struct Markup<'a> {
    page: &'a Page,
    document: &'a Object,
}

impl Markup<'_> {
    /// The object that `object` waits for. An object that a redirect leads to, or that begins with the load, waits for
    /// the document.
    fn parent(&self, object: &Object) -> ObjectId {
        let parent = object.after.map_or(self.document.id, |after| after.object);
        let redirect =
            self.page.object(parent).is_none_or(|parent| is_redirect(parent) || !parent.before_onload);
        if redirect { self.document.id } else { parent }
    }

    fn delay(object: &Object) -> Duration {
        object.after.map_or(Duration::ZERO, |after| after.delay.mul_f64(THINK_SCALE))
    }

    /// Returns the place of `object` in the markup, before or behind the padding; `None` if it is not in it.
    fn place(&self, object: &Object) -> Option<Event> {
        let written = !matches!(Element::of(object.kind), Element::Fetch);
        let here = self.parent(object) == self.document.id && Self::delay(object) < AT_ONCE && written;
        here.then(|| object.after.map_or(Event::End, |after| after.event))
    }

    fn document(&self) -> String {
        let redirects = |object: &Object| object.id < self.document.id && is_redirect(object);
        let (mut early, mut late, mut table) = (String::new(), String::new(), Vec::new());
        for object in &self.page.objects {
            if !object.before_onload || object.id == self.document.id || redirects(object) {
                continue;
            }
            let place = self.place(object);
            match place {
                Some(Event::End) => late.push_str(&self.element(object)),
                Some(Event::Request | Event::FirstByte) => early.push_str(&self.element(object)),
                None => {}
            }
            let event = match object.after.map(|after| after.event) {
                Some(Event::Request) => "request",
                _ => "end",
            };
            table.push(json!({
                "id": object.id.0,
                "url": address(&self.page.id, object),
                "as": Element::of(object.kind).name(),
                "urgent": object.priority.urgency() <= 1,
                "after": self.parent(object).0,
                "event": event,
                "delay": Self::delay(object).as_secs_f64() * 1e3,
                "written": place.is_some(),
            }));
        }
        let table = serde_json::Value::from(table);
        let head = format!(
            "<!doctype html><html><head><meta charset=\"utf-8\"><title>{}</title>\
             <link rel=\"icon\" href=\"data:,\"><script>const table={table};const root={};\n{SCRIPT}</script>{early}</head><body>",
            self.page.id, self.document.id
        );
        let size = self.document.size as usize;
        // The list of objects is part of the document; a page that is smaller than it becomes larger.
        let padding = size.saturating_sub(head.len() + late.len() + FRAME);
        format!("{head}<!--{}--><script>ended();</script>{late}</body></html>", " ".repeat(padding))
    }

    /// The element that leads to `object`.
    fn element(&self, object: &Object) -> String {
        let url = address(&self.page.id, object);
        let told = format!("onload=\"done({0})\" onerror=\"done({0})\"", object.id);
        let mut text = String::new();
        let written = match Element::of(object.kind) {
            Element::Script => write!(text, "<script src=\"{url}\" {told}></script>"),
            Element::Style => write!(text, "<link rel=\"stylesheet\" href=\"{url}\" {told}>"),
            Element::Image => write!(text, "<img src=\"{url}\" {told} alt=\"\">"),
            Element::Font => {
                write!(text, "<link rel=\"preload\" as=\"font\" crossorigin href=\"{url}\" {told}>")
            }
            Element::Frame => write!(text, "<iframe src=\"{url}\" {told}></iframe>"),
            Element::Fetch => Ok(()),
        };
        written.expect("writing to a string does not fail");
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hvq_lab::pages::builtin;

    #[test]
    fn every_object_before_the_load_event_is_there_with_its_size() {
        for id in ["p05", "p12", "p34", "p25"] {
            let page = builtin::page(id).unwrap();
            let site = BrowserPage::new(&page).unwrap();
            let wanted = page.objects.iter().filter(|object| object.before_onload).count();
            assert_eq!(site.objects(), wanted, "{id}");
            for file in &site.files {
                let object = page.object(file.object).unwrap();
                let grown = file.content.len() as u64 - object.size;
                assert!(grown == 0 || is_document(object), "{id} {}", file.object);
            }
        }
    }

    #[test]
    fn a_redirect_leads_to_the_document() {
        let page = builtin::page("p05").unwrap();
        let site = BrowserPage::new(&page).unwrap();
        assert!(
            site.first.starts_with("//d") && site.first.ends_with(".p05.test/p05/0.redirect"),
            "{}",
            site.first
        );
        let [(from, to)] = site.redirects.as_slice() else { panic!("{:?}", site.redirects) };
        assert!(from == "/p05/0.redirect" && to.ends_with(".p05.test/p05/1.html"), "{to}");
    }

    #[test]
    fn the_document_names_every_other_object_once_in_its_list() {
        let page = builtin::page("p12").unwrap();
        let site = BrowserPage::new(&page).unwrap();
        let text = String::from_utf8(site.files.last().unwrap().content.clone()).unwrap();
        for file in site.files.iter().rev().skip(1) {
            assert_eq!(text.matches(&format!("\"id\":{},", file.object)).count(), 1, "{}", file.object);
        }
        assert!(
            text.contains("<img ") && text.contains("<script src=") && text.contains("rel=\"stylesheet\"")
        );
    }
}
