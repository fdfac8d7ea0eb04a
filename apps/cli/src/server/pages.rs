//! Objects of page descriptions, made up to their recorded size and sent after their recorded wait.

use super::{Answer, Body};
use crate::failure::{Exit, Failure, OrFail};
use http::{HeaderValue, Request, StatusCode};
use hvq_pages::{Object, Page, builtin};
use std::path::Path;

/// Pages whose objects are offered as `/PAGE/OBJECT`.
#[derive(Debug)]
pub(crate) struct Pages {
    pages: Vec<Page>,
    /// The factor on recorded waits.
    pub(crate) wait_scale: f64,
    /// The factor on recorded sizes.
    pub(crate) size_scale: f64,
}

/// The path of object `object` of `page`.
pub(crate) fn object_path(page: &str, object: hvq_pages::ObjectId) -> String {
    format!("/{page}/{object}")
}

impl Pages {
    /// `pages` as they were recorded.
    pub(crate) fn new(pages: Vec<Page>) -> Self {
        Self { pages, wait_scale: 1.0, size_scale: 1.0 }
    }

    /// The pages called `names`: compiled in, or in files; one of the name `all` are all that are compiled in.
    pub(crate) fn read(names: &[String]) -> Result<Self, Failure> {
        let mut pages = Vec::new();
        for name in names {
            match name.as_str() {
                "all" => pages.extend(builtin::pages()),
                name => pages.push(find(name)?),
            }
        }
        Ok(Self::new(pages))
    }

    /// The names of the pages.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.pages.iter().map(|page| page.id.as_str())
    }

    /// The answer to a request for `path`.
    pub(super) fn answer(&self, path: &str, request: &Request<()>) -> Answer {
        let Some((page, object)) = self.object(path) else {
            return Answer::error(StatusCode::NOT_FOUND);
        };
        let media_type = HeaderValue::from_str(&object.mime)
            .ok()
            .filter(|media_type| !media_type.is_empty())
            .unwrap_or(HeaderValue::from_static("application/octet-stream"));
        let seed = page.id.bytes().fold(u64::from(object.id.0), |seed, byte| seed * 31 + u64::from(byte));
        let length = object.scaled_size(self.size_scale);
        Answer::stretch(request, media_type, length, |range| Body::Pattern(seed, range))
            .after(object.server_wait(self.wait_scale))
    }

    fn object(&self, path: &str) -> Option<(&Page, &Object)> {
        let (page, object) = path.strip_prefix('/')?.split_once('/')?;
        let page = self.pages.iter().find(|known| known.id == page)?;
        let object = page.object(hvq_pages::ObjectId(object.parse().ok()?))?;
        Some((page, object))
    }
}

/// The page `name`: compiled in, or else a file.
pub(crate) fn find(name: &str) -> Result<Page, Failure> {
    if let Some(page) = builtin::page(name) {
        return Ok(page);
    }
    if !Path::new(name).exists() {
        let known = builtin::ids().collect::<Vec<_>>().join(", ");
        let text = format!("there is no page {name}: no such file, and the pages compiled in are {known}");
        return Err(Failure::new(Exit::Usage, text));
    }
    Page::read(name).or_fail(Exit::Usage, || "page description".to_owned())
}
