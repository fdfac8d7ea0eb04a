//! Objects of page descriptions, made up to their recorded size and sent after their recorded wait.

use http::{HeaderValue, Request, StatusCode};
use hvq_lab::command::page_names::find;
use hvq_lab::pages::{Object, ObjectId, Page, builtin};
use hvq_program::content::{Answer, Body, Content};
use hvq_program::failure::Failure;

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

#[cfg(test)]
mod tests {
    use super::*;
    use http::header::CONTENT_TYPE;
    use std::time::Duration;

    #[tokio::test]
    async fn objects_have_their_recorded_size_and_wait() {
        let mut pages = Pages::read(&["p05".to_owned()]).unwrap();
        pages.wait_scale = 0.5;
        let page = find("p05").unwrap();
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
