//! Pages that are asked for by number, name or file.

use crate::pages::{Page, builtin};
use hvq_program::failure::{Exit, Failure, OrFail};
use hvq_program::output::check_distinct;
use std::path::Path;

/// The page `name`: compiled in, or else a file.
///
/// # Errors
/// There is none, or its file makes no sense ([`Exit::Usage`]).
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
///
/// # Errors
/// One is not there or stands there twice, or fewer are compiled in ([`Exit::Usage`]).
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

    #[test]
    fn pages_are_counted_or_named() {
        assert_eq!(chosen("3").unwrap().len(), 3);
        let named = chosen("p05, p12").unwrap();
        assert_eq!(named.iter().map(|page| page.id.as_str()).collect::<Vec<_>>(), ["p05", "p12"]);
        for text in ["0", "1000", "nowhere", "", "p05,p12,p05"] {
            assert_eq!(chosen(text).unwrap_err().exit(), Exit::Usage, "{text}");
        }
    }
}
