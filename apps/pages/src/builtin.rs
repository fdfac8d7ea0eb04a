//! The pages that are compiled in, so that a program can load some wherever it runs.

use crate::Page;

macro_rules! texts {
    ($($id:literal),+ $(,)?) => {
        [$(($id, include_str!(concat!("../../../data/pages/", $id, ".json")))),+]
    };
}

/// Ten pages from 13 to 101 objects and 0.1 to 1.9 MB before their load event.
const TEXTS: [(&str, &str); 10] =
    texts!["p34", "p05", "p07", "p30", "p12", "p19", "p24", "p11", "p13", "p25"];

/// The names of the pages that are compiled in, light ones first.
pub fn ids() -> impl Iterator<Item = &'static str> {
    TEXTS.iter().map(|(id, _)| *id)
}

/// The page `id`, if it is compiled in.
pub fn page(id: &str) -> Option<Page> {
    TEXTS.iter().find(|(known, _)| *known == id).map(|(id, text)| parsed(id, text))
}

/// All pages that are compiled in, light ones first.
pub fn pages() -> Vec<Page> {
    TEXTS.iter().map(|(id, text)| parsed(id, text)).collect()
}

fn parsed(id: &str, text: &str) -> Page {
    Page::parse(id, text).expect("a test parses every page that is compiled in")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_page_is_valid_and_bears_its_name() {
        let pages = pages();
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
