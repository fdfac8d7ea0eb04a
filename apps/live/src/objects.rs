//! Objects of page descriptions, made up to their recorded size and sent after their recorded wait.

use http::{HeaderValue, Request, StatusCode};
use hvq_gateway::content::{Answer, Body, Content};
use hvq_lab::pages::{Object, ObjectId, Page, builtin};
use hvq_program::failure::{Exit, Failure, OrFail};
use hvq_program::output::check_distinct;
use std::path::Path;

/// Pages whose objects are offered as `/PAGE/OBJECT`.
#[derive(Debug)]
pub struct Pages {
    pages: Vec<Page>,
    /// The factor on recorded waits.
    pub wait_scale: f64,
    /// The factor on recorded sizes.
    pub size_scale: f64,
}

/// The path of object `object` of `page`.
pub fn object_path(page: &str, object: ObjectId) -> String {
    format!("/{page}/{object}")
}

impl Pages {
    /// `pages` as they were recorded.
    pub fn new(pages: Vec<Page>) -> Self {
        Self { pages, wait_scale: 1.0, size_scale: 1.0 }
    }

    /// The pages called `names`: compiled in, or in files; one of the name `all` are all that are compiled in.
    pub fn read(names: &[String]) -> Result<Self, Failure> {
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
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.pages.iter().map(|page| page.id.as_str())
    }

    fn object(&self, path: &str) -> Option<(&Page, &Object)> {
        let (page, object) = path.strip_prefix('/')?.split_once('/')?;
        let page = self.pages.iter().find(|known| known.id == page)?;
        let object = page.object(ObjectId(object.parse().ok()?))?;
        Some((page, object))
    }
}

impl Content for Pages {
    fn answer(&self, path: &str, request: &Request<()>) -> Answer {
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
}

/// The page `name`: compiled in, or else a file.
pub fn find(name: &str) -> Result<Page, Failure> {
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

/// The pages that `text` names: a number of those compiled in, or names and files.
pub fn chosen(text: &str) -> Result<Vec<Page>, Failure> {
    let Ok(number) = text.parse::<usize>() else {
        let pages: Vec<Page> = text.split(',').map(|name| find(name.trim())).collect::<Result<_, _>>()?;
        let names: Vec<&str> = pages.iter().map(|page| page.id.as_str()).collect();
        check_distinct("--pages", &names)?;
        return Ok(pages);
    };
    let known = builtin::pages();
    if number == 0 || number > known.len() {
        let text = format!("--pages {number}: from 1 to {} pages are compiled in", known.len());
        return Err(Failure::new(Exit::Usage, text));
    }
    Ok(known.into_iter().take(number).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::header::CONTENT_TYPE;
    use std::time::Duration;

    #[test]
    fn pages_are_counted_or_named() {
        assert_eq!(chosen("3").unwrap().len(), 3);
        let named = chosen("p05, p12").unwrap();
        assert_eq!(named.iter().map(|page| page.id.as_str()).collect::<Vec<_>>(), ["p05", "p12"]);
        for text in ["0", "1000", "nowhere", "", "p05,p12,p05"] {
            assert_eq!(chosen(text).unwrap_err().exit(), Exit::Usage, "{text}");
        }
    }

    #[tokio::test]
    async fn objects_have_their_recorded_size_and_wait() {
        let mut pages = Pages::read(&["p05".to_owned()]).unwrap();
        pages.wait_scale = 0.5;
        let page = chosen("p05").map(|mut pages| pages.remove(0)).unwrap();
        let object = page.objects.iter().find(|object| object.size > 1000).unwrap();
        let request = Request::new(());
        let mut answer = pages.answer(&object_path("p05", object.id), &request);
        assert_eq!(answer.wait, object.server_wait(0.5));
        assert!(answer.wait <= Duration::from_secs(1));
        assert_eq!(
            (answer.head.status(), &answer.head.headers()[CONTENT_TYPE]),
            (StatusCode::OK, &HeaderValue::from_str(&object.mime).unwrap())
        );
        let mut bytes = 0;
        while let Some(chunk) = answer.body.next().await.unwrap() {
            bytes += chunk.len() as u64;
        }
        assert_eq!(bytes, object.size);
        for path in ["/p05/9999", "/p06/0", "/p05", "/p05/x"] {
            assert_eq!(pages.answer(path, &request).head.status(), StatusCode::NOT_FOUND, "{path}");
        }
    }

    #[test]
    fn a_page_that_is_not_there_is_refused_with_those_that_are() {
        let failure = Pages::read(&["nowhere".to_owned()]).unwrap_err();
        assert!(failure.line().contains("p05"), "{}", failure.line());
    }
}
