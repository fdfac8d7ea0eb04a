//! One public type for one name: whoever reads a name in a crate knows what is meant.

use crate::Finding;
use crate::lexer;
use crate::paths::{self, Token};
use crate::tree::File;
use std::collections::BTreeMap;

/// The words that begin a type.
const TYPES: [&str; 5] = ["struct", "enum", "union", "trait", "type"];

/// Sources that are compiled in place of others, or apart: the form of a module for systems that lack what it needs, and
/// what examples in the documentation of `frames!` include.
const APART: [&str; 2] = ["_elsewhere.rs", "/wire/frame/rows/example.rs"];

/// The crate in which every contender has a module with the same names, by design.
const CONTENDERS: &str = "bench";

/// The mark of the form that a type has on other systems.
const OTHER_SYSTEMS: &str = "#[cfg(not(";

/// Public types of one name in a crate; `pub(crate)` and narrower count, private types and tests do not.
pub(crate) fn twice(files: &[File]) -> Vec<Finding> {
    let mut first: BTreeMap<(String, String), String> = BTreeMap::new();
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.is_rust() && !file.is_test()) {
        let Some((crate_folder, _)) = file.path.split_once("/src/") else { continue };
        if crate_folder == CONTENDERS || APART.iter().any(|ending| file.path.ends_with(ending)) {
            continue;
        }
        for (line, name) in public_types(&file.text) {
            let key = (crate_folder.to_owned(), name);
            if let Some(other) = first.get(&key) {
                let name = &key.1;
                let problem = format!(
                    "{other} has a public {name}, too: name one by what sets it apart, or make it private"
                );
                findings.push(Finding::new(file, line, problem));
            } else {
                first.insert(key, file.path.clone());
            }
        }
    }
    findings
}

/// The public types that `text` defines, with their lines.
fn public_types(text: &str) -> Vec<(usize, String)> {
    let code = lexer::without_tests(&lexer::code(text));
    let tokens = paths::tokens(&lexer::without(&code, OTHER_SYSTEMS));
    let begins = |index: &usize| tokens[*index].text == "pub";
    (0..tokens.len()).filter(begins).filter_map(|index| named(&tokens[index + 1..])).collect()
}

/// The type that follows `pub`, if one does: after where it is visible, and `unsafe` of a trait.
fn named(mut tokens: &[Token]) -> Option<(usize, String)> {
    if tokens.first()?.text == "(" {
        tokens = &tokens[tokens.iter().position(|token| token.text == ")")? + 1..];
    }
    if tokens.first()?.text == "unsafe" {
        tokens = &tokens[1..];
    }
    let [kind, name, ..] = tokens else { return None };
    TYPES.contains(&kind.text.as_str()).then(|| (name.line, name.text.clone()))
}

#[cfg(test)]
fn found(first: (&str, &str), second: (&str, &str)) -> usize {
    twice(&[File::sample(first.0, first.1), File::sample(second.0, second.1)]).len()
}

#[test]
fn a_second_public_type_of_a_name_is_found_however_narrow_it_is() {
    let first = ("a/src/one.rs", "pub enum Verdict { Yes }");
    for second in [
        "pub struct Verdict;",
        "pub(crate) trait Verdict {}",
        "pub(super) type Verdict<'a> = &'a u8;",
        "#[derive(Debug)]\npub(in crate::deep) union Verdict { a: u8 }",
        "pub unsafe trait Verdict {}",
    ] {
        assert_eq!(found(first, ("a/src/deep/two.rs", second)), 1, "{second}");
    }
}

#[test]
fn private_types_tests_and_other_crates_have_names_of_their_own() {
    let first = ("a/src/one.rs", "pub enum Verdict { Yes }");
    for (path, second) in [
        ("a/src/two.rs", "enum Verdict { Yes } pub fn verdict() -> Verdict {}"),
        ("a/src/two.rs", "#[cfg(test)]\nmod tests { pub struct Verdict; }"),
        ("a/src/two.rs", "#[cfg(not(target_os = \"linux\"))]\npub struct Verdict;"),
        ("a/src/two/tests.rs", "pub struct Verdict;"),
        ("a/src/two_elsewhere.rs", "pub struct Verdict;"),
        ("b/src/two.rs", "pub struct Verdict;"),
        ("bench/src/two.rs", "pub struct Verdict; pub mod other { pub struct Verdict; }"),
        ("a/src/two.rs", "// pub struct Verdict;\npub use verdict::Verdict;"),
    ] {
        assert_eq!(found(first, (path, second)), 0, "{path}: {second}");
    }
}
