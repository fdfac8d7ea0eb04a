//! The pages that are compiled in, so that a program can load some wherever it runs.

use crate::pages::Page;

macro_rules! texts {
    ($($id:literal),+ $(,)?) => {
        [$(($id, include_str!(concat!("../../../../data/pages/", $id, ".json")))),+]
    };
}

/// Ten pages from 13 to 101 objects and 0.1 to 1.9 MB before their load event.
const TEXTS: [(&str, &str); 10] =
    texts!["p34", "p05", "p07", "p30", "p12", "p19", "p24", "p11", "p13", "p25"];

/// Ten others of about the same weights, on which nothing was tried while schedulers were made.
const HELD_OUT: [(&str, &str); 10] =
    texts!["p26", "p29", "p06", "p48", "p33", "p03", "p20", "p32", "p31", "p23"];

fn texts() -> impl Iterator<Item = (&'static str, &'static str)> {
    TEXTS.into_iter().chain(HELD_OUT)
}

/// The names of the pages that are compiled in: those of [`pages`], then those of [`held_out`].
pub fn ids() -> impl Iterator<Item = &'static str> {
    texts().map(|(id, _)| id)
}

/// The page `id`, if it is compiled in.
pub fn page(id: &str) -> Option<Page> {
    texts().find(|(known, _)| *known == id).map(|(id, text)| parsed(id, text))
}

/// The pages that are there to be used, light ones first.
pub fn pages() -> Vec<Page> {
    TEXTS.iter().map(|(id, text)| parsed(id, text)).collect()
}

/// The pages that are kept for a check, light ones first: parameters are chosen on the others.
pub fn held_out() -> Vec<Page> {
    HELD_OUT.iter().map(|(id, text)| parsed(id, text)).collect()
}

fn parsed(id: &str, text: &str) -> Page {
    Page::parse(id, text).expect("a test parses every page that is compiled in")
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
