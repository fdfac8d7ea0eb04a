//! The pages that are compiled in, so that a program can load some wherever it runs.

use crate::pages::Page;
use flate2::read::ZlibDecoder;
use std::io::Read as _;

/// Pages as the build script compressed them.
macro_rules! files {
    ($($id:literal),+ $(,)?) => {
        [$(($id, include_bytes!(concat!(env!("OUT_DIR"), "/", $id, ".json")))),+]
    };
}

/// Ten pages from 13 to 101 objects and 0.1 to 1.9 MB before their load event.
static FILES: [(&str, &[u8]); 10] =
    files!["p34", "p05", "p07", "p30", "p12", "p19", "p24", "p11", "p13", "p25"];

/// Ten others of about the same weights, on which nothing was tried while schedulers were made.
static HELD_OUT: [(&str, &[u8]); 10] =
    files!["p26", "p29", "p06", "p48", "p33", "p03", "p20", "p32", "p31", "p23"];

fn all() -> impl Iterator<Item = (&'static str, &'static [u8])> {
    FILES.into_iter().chain(HELD_OUT)
}

/// The names of the pages that are compiled in: those of [`pages`], then those of [`held_out`].
pub fn ids() -> impl Iterator<Item = &'static str> {
    all().map(|(id, _)| id)
}

/// The page `id`, if it is compiled in.
pub fn page(id: &str) -> Option<Page> {
    all().find(|(known, _)| *known == id).map(|(id, file)| parsed(id, file))
}

/// The pages that are there to be used, light ones first.
pub fn pages() -> Vec<Page> {
    FILES.iter().map(|(id, file)| parsed(id, file)).collect()
}

/// The pages that are kept for a check, light ones first: parameters are chosen on the others.
pub fn held_out() -> Vec<Page> {
    HELD_OUT.iter().map(|(id, file)| parsed(id, file)).collect()
}

fn parsed(id: &str, file: &[u8]) -> Page {
    let mut text = String::new();
    ZlibDecoder::new(file).read_to_string(&mut text).expect("the build script compressed text");
    Page::parse(id, &text).expect("a test parses every page that is compiled in")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_page_is_valid_and_bears_its_name() {
        let pages: Vec<Page> = pages().into_iter().chain(held_out()).collect();
        assert!(pages.len() >= 6);
        for (page, id) in pages.iter().zip(ids()) {
            assert_eq!(page.id, id);
            assert!(page.objects.len() > 10 && page.bytes() > 50_000, "{id}");
        }
    }

    #[test]
    fn a_page_is_found_by_name() {
        assert_eq!(page("p05").map(|page| page.site), Some("mousel.lu".to_owned()));
        assert_eq!(page("nowhere"), None);
    }
}
