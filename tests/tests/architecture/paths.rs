//! The paths that a piece of Rust code names, with groups taken apart.

/// A path in the code and its line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct NamedPath {
    /// The line, counted from 1.
    pub(crate) line: usize,
    /// The words between `::`.
    pub(crate) words: Vec<String>,
}

/// A word or a sign; `::` counts as one sign.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Token {
    /// The line, counted from 1.
    pub(crate) line: usize,
    /// The text.
    pub(crate) text: String,
}

/// The tokens of `code`, which holds no comments and no literals.
pub(crate) fn tokens(code: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    for (index, line) in code.lines().enumerate() {
        let mut rest = line.trim_start();
        while let Some(first) = rest.chars().next() {
            let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            let length = match word {
                0 if rest.starts_with("::") => 2,
                0 => first.len_utf8(),
                word => word,
            };
            tokens.push(Token { line: index + 1, text: rest[..length].to_owned() });
            rest = rest[length..].trim_start();
        }
    }
    tokens
}

/// All paths of `code` that start with the word `root`: `root::{a::b, c}` gives `root::a::b` and `root::c`.
pub(crate) fn starting_with(root: &str, code: &str) -> Vec<NamedPath> {
    let tokens = tokens(code);
    let is = |index: usize, text: &str| tokens.get(index).is_some_and(|token| token.text == text);
    let mut found = Vec::new();
    for index in 0..tokens.len() {
        // `a::root` is another root; `root:` and `root)` are no paths.
        let starts = is(index, root) && is(index + 1, "::") && (index == 0 || !is(index - 1, "::"));
        if starts {
            follow(&tokens, index, &mut Vec::new(), &mut found);
        }
    }
    found
}

/// Reads the path at `index`, below `above`; returns the index after it.
fn follow(tokens: &[Token], mut index: usize, above: &mut Vec<String>, found: &mut Vec<NamedPath>) -> usize {
    let depth = above.len();
    let Some(line) = tokens.get(index).map(|token| token.line) else { return index };
    while let Some(token) = tokens.get(index) {
        if token.text == "{" {
            index = group(tokens, index + 1, above, found);
            above.truncate(depth);
            return index;
        }
        above.push(token.text.clone());
        index += 1;
        if tokens.get(index).is_none_or(|token| token.text != "::") {
            break;
        }
        index += 1;
    }
    found.push(NamedPath { line, words: above.clone() });
    above.truncate(depth);
    index
}

/// Reads the paths of a group from after its `{`; returns the index after its `}`.
fn group(tokens: &[Token], mut index: usize, above: &mut Vec<String>, found: &mut Vec<NamedPath>) -> usize {
    while let Some(token) = tokens.get(index) {
        match token.text.as_str() {
            "}" => return index + 1,
            "," => index += 1,
            // `name as other`: the other name is not a path.
            "as" => index += 2,
            _ => index = follow(tokens, index, above, found),
        }
    }
    index
}

#[cfg(test)]
fn texts(root: &str, code: &str) -> Vec<String> {
    starting_with(root, code).into_iter().map(|path| path.words.join("::")).collect()
}

#[test]
fn groups_are_taken_apart() {
    let code = "use crate::{a::{b, C as D}, e::*, f};\nlet x = crate::g::h(1);";
    assert_eq!(
        texts("crate", code),
        ["crate::a::b", "crate::a::C", "crate::e::*", "crate::f", "crate::g::h"]
    );
    assert_eq!(starting_with("crate", code)[4].line, 2);
}

#[test]
fn other_roots_and_visibilities_are_left_alone() {
    assert_eq!(texts("crate", "pub(crate) fn a(b: other::crate::c) {}"), [""; 0]);
    assert_eq!(texts("super", "use super::super::a::B;"), ["super::super::a::B"]);
}
