//! Doc comments are sentences: the first line is a noun phrase or begins with a verb, and stands alone.

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
const PREPOSITIONS: [&str; 20] = [
    "About", "Above", "After", "At", "Before", "Below", "Beyond", "By", "For", "From", "In", "Into", "Of",
    "On", "Over", "Since", "To", "Under", "Until", "With",
];

/// No doc comment begins with a relative clause.
pub(crate) fn check(file: &File) -> Vec<Finding> {
    if !file.is_rust() {
        return Vec::new();
    }
    let mut findings = Vec::new();
    let mut above = None;
    for (index, line) in file.text.lines().enumerate() {
        let doc = doc_line(line);
        let marker = doc.map(|(marker, _)| marker);
        if let Some((_, text)) = doc.filter(|_| marker != above)
            && let Some(word) = relative(text)
        {
            let problem = format!("a doc comment begins with {word}: name the thing, or begin with a verb");
            findings.push(Finding::new(file, index + 1, problem));
        }
        above = marker;
    }
    findings
}

/// Returns the marker and the text of a line of a doc comment.
fn doc_line(line: &str) -> Option<(&'static str, &str)> {
    let line = line.trim_start();
    ["///", "//!"].into_iter().find_map(|marker| Some((marker, line.strip_prefix(marker)?.trim_start())))
}

/// Returns the relative clause's first word that `text` begins with, after a preposition or without one.
fn relative(text: &str) -> Option<&'static str> {
    if let Some(rest) = PREPOSITIONS.iter().find_map(|word| text.strip_prefix(word)?.strip_prefix(' ')) {
        return RELATIVE.into_iter().find(|word| begins_with(rest, &word.to_lowercase()));
    }
    RELATIVE.into_iter().find(|word| begins_with(text, word))
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
fn a_relative_clause_on_a_later_line_and_in_other_comments_is_none_of_them() {
    assert!(
        lines("/// The bytes.\n/// What follows them is lost.\n///\n/// When it is not…\nfn f() {}")
            .is_empty()
    );
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
