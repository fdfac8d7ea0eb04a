//! The doors of the core and of the crate `hvq`: the names that other crates can write. What nobody outside needs stays inside,
//! and the top of `hvq` has what a program holds.

use crate::Finding;
use crate::lexer;
use crate::paths::{self, Token};
use crate::tree::File;

/// The folder of the core's sources.
const CORE: &str = "transport/core/src/";

/// The exported names, at most: types, traits, functions and constants in public modules, and what these export again.
const MOST_NAMES: usize = 314;

/// The front of the crate for programs.
const FRONT: &str = "transport/net/src/lib.rs";

/// The names at the top of that crate, its modules among them, at most; others are in the modules.
const MOST_AT_TOP: usize = 70;

/// The words that begin an item with a name.
const ITEMS: [&str; 9] = ["struct", "enum", "union", "trait", "type", "fn", "const", "static", "mod"];

/// A finding if the core exports more names than it may.
pub(crate) fn size(files: &[File]) -> Vec<Finding> {
    let root = format!("{CORE}lib.rs");
    let count = exported(files, &root, CORE);
    let place = File::sample(&root, "");
    if count == 0 {
        return vec![Finding::new(&place, 0, "there is no door to count")];
    }
    if count > MOST_NAMES {
        let problem = format!(
            "the core exports {count} names, at most {MOST_NAMES}: make what others do not need pub(crate)"
        );
        return vec![Finding::new(&place, 0, problem)];
    }
    Vec::new()
}

/// A finding if the crate `hvq` has more names at its top than a page shows.
pub(crate) fn front(files: &[File]) -> Vec<Finding> {
    let place = File::sample(FRONT, "");
    let Some(file) = files.iter().find(|file| file.path == FRONT) else {
        return vec![Finding::new(&place, 0, "there is no front to count")];
    };
    let count = at_top(&file.text);
    if count > MOST_AT_TOP {
        let problem = format!(
            "the top of hvq has {count} names, at most {MOST_AT_TOP}: put details into a module such as hvq::config"
        );
        return vec![Finding::new(&place, 0, problem)];
    }
    Vec::new()
}

/// The public names at the top of a module: what is in its modules counts as one name each.
fn at_top(text: &str) -> usize {
    let tokens = paths::tokens(&lexer::without_tests(&lexer::code(text)));
    items(&tokens)
        .into_iter()
        .map(|item| match item {
            Item::Module(_) => 1,
            Item::Names(names) => names,
        })
        .sum()
}

/// The names that the module in the file at `path` exports, with its public modules, whose files are in `folder`.
fn exported(files: &[File], path: &str, folder: &str) -> usize {
    let Some(file) = files.iter().find(|file| file.path == path) else { return 0 };
    let tokens = paths::tokens(&lexer::without_tests(&lexer::code(&file.text)));
    items(&tokens)
        .into_iter()
        .map(|item| match item {
            Item::Module(name) => module(files, folder, name),
            Item::Names(names) => names,
        })
        .sum()
}

/// The public items outside of braces.
fn items(tokens: &[Token]) -> Vec<Item<'_>> {
    let (mut found, mut depth) = (Vec::new(), 0_usize);
    for (index, token) in tokens.iter().enumerate() {
        match token.text.as_str() {
            "{" => depth += 1,
            "}" => depth = depth.saturating_sub(1),
            "pub" if depth == 0 => found.extend(item(&tokens[index + 1..])),
            _ => {}
        }
    }
    found
}

fn module(files: &[File], folder: &str, name: &str) -> usize {
    let inside = format!("{folder}{name}/");
    [format!("{folder}{name}.rs"), format!("{inside}mod.rs")]
        .iter()
        .map(|path| exported(files, path, &inside))
        .sum()
}

/// The item that follows `pub`.
enum Item<'a> {
    /// A module in a file of its own.
    Module(&'a str),
    /// The number of names.
    Names(usize),
}

fn item(tokens: &[Token]) -> Option<Item<'_>> {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text.as_str());
    match text(0) {
        "(" => None,
        "use" => {
            let leaves = tokens
                .windows(2)
                .take_while(|pair| pair[0].text != ";")
                .filter(|pair| is_word(&pair[0].text) && matches!(pair[1].text.as_str(), "," | "}" | ";"));
            Some(Item::Names(leaves.count()))
        }
        "mod" if text(2) == ";" => Some(Item::Module(&tokens[1].text)),
        _ => {
            tokens.iter().take(3).any(|token| ITEMS.contains(&token.text.as_str())).then_some(Item::Names(1))
        }
    }
}

fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

#[cfg(test)]
fn count(sources: &[(&str, &str)]) -> usize {
    let files: Vec<File> =
        sources.iter().map(|(path, text)| File::sample(&format!("{CORE}{path}"), text)).collect();
    exported(&files, &format!("{CORE}lib.rs"), CORE)
}

#[test]
fn types_functions_and_what_is_exported_again_are_counted() {
    let text =
        "pub struct A { pub a: u8 } pub const fn f() {} pub unsafe fn g() {} pub use a::{B, c::{D, E as F}};
        pub use hvq_scheduler as scheduler; impl A { pub fn not() {} } pub(crate) fn hidden() {} struct Own;
        #[cfg(test)]\npub fn test() {}";
    assert_eq!(count(&[("lib.rs", text)]), 7);
}

#[test]
fn public_modules_count_with_what_is_in_them_and_private_ones_do_not() {
    let sources = [
        ("lib.rs", "pub mod a; mod b; pub(crate) mod c; pub mod d;"),
        ("a.rs", "pub mod deep; pub fn f() {}"),
        ("a/deep.rs", "pub enum E {}"),
        ("b.rs", "pub fn no() {}"),
        ("c.rs", "pub fn no() {}"),
        ("d/mod.rs", "pub trait T {}"),
    ];
    assert_eq!(count(&sources), 3);
}

#[test]
fn a_module_is_one_name_at_the_top() {
    let text =
        "pub mod a; mod b; pub use b::{C, D}; pub use e as f; pub mod g { pub use h::{I, J}; pub struct K; }";
    assert_eq!(at_top(text), 5);
    let many = format!("pub use b::{{{}}};", "C, ".repeat(MOST_AT_TOP + 1));
    assert_eq!(front(&[File::sample(FRONT, &many)]).len(), 1);
    assert_eq!(front(&[File::sample(FRONT, text)]), []);
    assert_eq!(front(&[]).len(), 1, "somebody moved it");
}
