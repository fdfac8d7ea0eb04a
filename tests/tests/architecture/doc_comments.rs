//! Doc comments are sentences: each paragraph begins with a noun phrase or a verb, and stands alone.

use crate::Finding;
use crate::tree::File;

/// Words that begin a relative clause, which says nothing to a reader who does not know the item yet.
const RELATIVE: [&str; 24] = [
    "What",
    "Whatever",
    "Whether",
    "How",
    "However",
    "Where",
    "Wherever",
    "Who",
    "Whoever",
    "Whom",
    "Whose",
    "When",
    "Whenever",
    "Which",
    "Whichever",
    "Why",
    "So many",
    "So much",
    "So few",
    "So long",
    "So often",
    "As many",
    "As much",
    "As long",
];

/// Words that only stand before a clause, as in "By how much" and "Until when".
const PREPOSITIONS: [&str; 19] = [
    "About", "Above", "After", "At", "Before", "Below", "Beyond", "By", "For", "From", "In", "Into", "On",
    "Over", "Since", "To", "Under", "Until", "With",
];

/// Beginnings of fragments, which say nothing without the item that they compare with or point to.
const FRAGMENTS: [&str; 4] = ["As [", "As `", "Of ", "That "];

/// No paragraph of a doc comment begins with a relative clause or a fragment.
pub(crate) fn check(file: &File) -> Vec<Finding> {
    if !file.is_rust() {
        return Vec::new();
    }
    let mut findings = Vec::new();
    let mut above = None;
    for (index, line) in file.text.lines().enumerate() {
        let doc = doc_line(line);
        if let Some((_, text)) = doc.filter(|(marker, _)| begins_paragraph(marker, above))
            && let Some(word) = relative(text).or_else(|| fragment(text))
        {
            let problem = format!("a doc comment says {word:?} first: name the thing, or begin with a verb");
            findings.push(Finding::new(file, index + 1, problem));
        }
        above = doc;
    }
    findings
}

/// Returns the marker and the text of a line of a doc comment.
fn doc_line(line: &str) -> Option<(&'static str, &str)> {
    let line = line.trim_start();
    ["///", "//!"].into_iter().find_map(|marker| Some((marker, line.strip_prefix(marker)?.trim_start())))
}

/// Returns true if a line with `marker` begins a paragraph: behind another comment, an empty line or a heading.
fn begins_paragraph(marker: &str, above: Option<(&str, &str)>) -> bool {
    above.is_none_or(|(other, text)| other != marker || text.is_empty() || text.starts_with('#'))
}

/// Returns the relative clause's first word that `text` begins with, after a preposition or without one.
fn relative(text: &str) -> Option<&'static str> {
    if let Some(rest) = PREPOSITIONS.iter().find_map(|word| text.strip_prefix(word)?.strip_prefix(' ')) {
        return RELATIVE.into_iter().find(|word| begins_with(rest, &word.to_lowercase()));
    }
    RELATIVE.into_iter().find(|word| begins_with(text, word))
}

/// Returns the beginning of a fragment that `text` has.
fn fragment(text: &str) -> Option<&'static str> {
    FRAGMENTS.into_iter().find(|beginning| text.starts_with(beginning))
}

fn begins_with(text: &str, word: &str) -> bool {
    text.strip_prefix(word).is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
}

#[cfg(test)]
fn lines(text: &str) -> Vec<usize> {
    check(&File::sample("a/src/b.rs", text)).iter().map(|finding| finding.line).collect()
}

#[test]
fn a_relative_clause_is_found_where_a_doc_comment_begins() {
    assert_eq!(
        lines("//! What it is.\n\n/// Whether it is.\nfn f() {\n    /// So many.\n    let a;\n}"),
        [1, 3, 5]
    );
    for word in RELATIVE {
        assert_eq!(lines(&format!("/// {word} it is.\n")), [1], "{word}");
    }
    assert_eq!(lines("/// By how much it grows.\n\n/// Until when it waits.\n"), [1, 3]);
}

#[test]
fn a_relative_clause_is_found_where_a_later_paragraph_begins() {
    assert_eq!(lines("/// The bytes.\n///\n/// What follows them is lost.\n"), [3]);
    assert_eq!(lines("/// The bytes.\n/// # Errors\n/// What went wrong.\n"), [3]);
}

#[test]
fn a_relative_clause_on_a_later_line_and_in_other_comments_is_none_of_them() {
    assert!(lines("/// The bytes.\n/// What follows them is lost.\nfn f() {}").is_empty());
    assert!(
        lines("// What it is.\n/// Whatsoever. Whoops, Wholly.\n/* Who */\n/// By far whatever.").is_empty()
    );
}

#[test]
fn an_inner_doc_comment_begins_anew_below_an_outer_one() {
    assert_eq!(
        lines("//! The module.\n/// Who uses it.\nfn f() {}\n/// The rest.\n\n/// Why.\nfn g() {}"),
        [2, 6]
    );
}

#[test]
fn a_fragment_is_found_where_a_paragraph_begins() {
    for text in ["As [`Self::new`].", "As `new`, but once.", "Of the paths, one.", "That is so."] {
        assert_eq!(lines(&format!("/// {text}\n")), [1], "{text}");
        assert_eq!(lines(&format!("/// A path.\n///\n/// {text}\n")), [3], "{text}");
    }
}

#[test]
fn a_word_like_that_of_a_fragment_is_none_of_them() {
    for text in ["As a client, it waits.", "Offers a path.", "Thatch.", "A path, of two. Of three, none."] {
        assert!(lines(&format!("/// {text}\n/// That of a later line.\n")).is_empty(), "{text}");
    }
}
