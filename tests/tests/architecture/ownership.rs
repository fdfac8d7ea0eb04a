//! Ownership in the core: the connection stays small, nobody outside of `path/` assigns a field of a path, and no part of the
//! connection assigns a field of another.

use crate::Finding;
use crate::lexer;
use crate::paths::{self, Token};
use crate::tree::File;

const CONNECTION: &str = "transport/core/src/connection/";
/// The folders whose code composes paths.
const COMPOSING: [&str; 2] = [CONNECTION, "transport/core/src/endpoint/"];

/// Methods of `Connection`, at most.
const MOST_METHODS: usize = 119;
/// Fields of `Connection`, at most.
const MOST_FIELDS: usize = 19;

/// Names that variables of the types of `path/` have in the rest of the core.
const OF_PATHS: [&str; 6] = ["path", "candidate", "route", "left", "failed", "known"];

/// The components of the connection, as it and its parts name them. Each assigns its own fields, and takes events.
const COMPONENTS: [&str; 17] = [
    "activity",
    "closing",
    "control",
    "datagrams",
    "events",
    "handshake",
    "keys",
    "memory",
    "observer",
    "paths",
    "peer",
    "queue",
    "rng",
    "scheduler",
    "streams",
    "zero_rtt",
    "space",
];

/// Too many methods or fields of `Connection`.
pub(crate) fn size(files: &[File]) -> Vec<Finding> {
    let concerned = files.iter().filter(|file| file.path.starts_with(CONNECTION) && file.is_rust());
    let (mut all, mut members) = (0, 0);
    for file in concerned.filter(|file| !file.is_test()) {
        let tokens = tokens_of(file);
        all += methods(&tokens);
        members += fields(&tokens);
    }
    let place = File::sample("transport/core/src/connection/mod.rs", "");
    let mut findings = Vec::new();
    if all == 0 || members == 0 {
        findings.push(Finding::new(&place, 0, "there is no Connection to count"));
    }
    for (count, most, what) in [(all, MOST_METHODS, "methods"), (members, MOST_FIELDS, "fields")] {
        if count > most {
            let problem = format!("Connection has {count} {what}, at most {most}: give them to a part of it");
            findings.push(Finding::new(&place, 0, problem));
        }
    }
    findings
}

/// Assignments to fields of paths, their routes and candidates outside of `path/`, and by a part of the connection to fields of
/// its components.
pub(crate) fn assignments(file: &File) -> Vec<Finding> {
    let concerned = COMPOSING.iter().any(|place| file.path.starts_with(place));
    if !concerned || !file.is_rust() || file.is_test() {
        return Vec::new();
    }
    let tokens = tokens_of(file);
    let found = (0..tokens.len()).filter_map(|index| assigned(&tokens, index));
    let problem = |place: &str| format!("{place} is assigned by another component: give its owner an event");
    found.map(|(line, place)| Finding::new(file, line, problem(&place))).collect()
}

fn tokens_of(file: &File) -> Vec<Token> {
    paths::tokens(&lexer::without_tests(&lexer::code(&file.text)))
}

/// The place that a statement which begins at `index` assigns, if it is a field of a path or of a component.
fn assigned(tokens: &[Token], index: usize) -> Option<(usize, String)> {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text.as_str());
    let before = |back: usize| index.checked_sub(back).map_or("", |at| text(at));
    let is_own = before(1) == "." && before(2) == "self";
    let is_variable = !matches!(before(1), "." | "::" | "let" | "mut");
    let is_named = |names: &[&str]| names.contains(&text(index));
    // A variable called like a component may be anything, but for the handshake's: nobody else has those names.
    let is_of_handshake = is_named(&["handshake", "space", "zero_rtt"]);
    let is_path = is_named(&OF_PATHS) && (is_variable || is_own);
    let is_component = is_named(&COMPONENTS) && (is_own || is_variable && is_of_handshake);
    if !is_path && !is_component {
        return None;
    }
    let (mut at, mut place) = (index + 1, text(index).to_owned());
    while text(at) == "." {
        place = format!("{place}.{}", text(at + 1));
        at += 2;
    }
    let sets = match (text(at), text(at + 1)) {
        ("=", next) => !matches!(next, "=" | ">"),
        ("+" | "-" | "|" | "&" | "*" | "/", next) => next == "=",
        _ => false,
    };
    (sets && place.contains('.')).then(|| (tokens[index].line, place))
}

/// The functions in blocks `impl Connection`.
fn methods(tokens: &[Token]) -> usize {
    blocks(tokens, &["impl", "Connection", "{"])
        .flatten()
        .filter(|(depth, token)| *depth == 1 && token.text == "fn")
        .count()
}

/// The fields in `struct Connection`.
fn fields(tokens: &[Token]) -> usize {
    blocks(tokens, &["struct", "Connection", "{"])
        .map(|block| block.iter().filter(|(depth, token)| *depth == 1 && token.text == ":").count())
        .sum()
}

/// The tokens of blocks that begin with `start`, each with its depth in braces.
fn blocks<'a>(tokens: &'a [Token], start: &'a [&str]) -> impl Iterator<Item = Vec<(usize, &'a Token)>> {
    let begins = move |index: &usize| {
        let words = tokens[*index..].iter().map(|token| token.text.as_str());
        words.take(start.len()).eq(start.iter().copied())
    };
    (0..tokens.len()).filter(begins).map(move |index| {
        let mut depth = 0_usize;
        let inside = tokens[index + start.len() - 1..].iter().map(move |token| {
            match token.text.as_str() {
                "{" => depth += 1,
                "}" => depth -= 1,
                _ => {}
            }
            (depth, token)
        });
        inside.take_while(|(depth, _)| *depth > 0).collect()
    })
}

#[test]
fn an_assignment_to_a_field_of_a_component_is_found_and_one_of_the_component_itself_is_none() {
    let found = |text: &str| assignments(&sample(text)).len();
    assert_eq!(found("self.handshake.seen.peer_source = source;"), 1);
    assert_eq!(found("self.memory.charged += 1;"), 1);
    assert_eq!(found("if let Some(space) = f() { space.keys = Some(keys); }"), 1);
    assert_eq!(found("handshake.hello = None;"), 1);
    assert_eq!(
        found("self.zero_rtt = early_data; self.streams = Streams::new();"),
        0,
        "the connection has another"
    );
    assert_eq!(found("self.charged += 1; queue.rate = rate; self.handshake.limit(until);"), 0);
    assert_eq!(found("if self.peer.known == known { let space = 1; }"), 0);
}

#[cfg(test)]
fn sample(text: &str) -> File {
    File::sample("transport/core/src/connection/sample.rs", text)
}

#[test]
fn methods_and_fields_of_the_connection_alone_are_counted() {
    let text = "pub struct Connection { role: Role, keys: Vec<a::B> }\nimpl Connection { fn a() { fn no() {} } pub fn b() {} }
        impl Other { fn c() {} }\n#[cfg(test)]\nimpl Connection { fn d() {} }";
    let tokens = tokens_of(&sample(text));
    assert_eq!((methods(&tokens), fields(&tokens)), (2, 2));
}

#[test]
fn a_connection_that_grows_is_found() {
    let many = "fn f() {}".repeat(MOST_METHODS + 1);
    let text = format!("struct Connection {{ role: Role }}\nimpl Connection {{ {many} }}");
    assert_eq!(size(&[sample(&text)]).len(), 1);
    assert_eq!(size(&[sample("struct Connection { role: Role }\nimpl Connection { fn f() {} }")]), []);
    assert_eq!(size(&[]).len(), 1, "somebody renamed it");
}

#[test]
fn an_assignment_to_a_field_of_a_path_is_found_and_calls_are_none() {
    let found = |text: &str| assignments(&sample(text)).len();
    assert_eq!(found("path.counters.bytes += 1;"), 1);
    assert_eq!(found("if x { path.route.since = 4; }"), 1);
    assert_eq!(found("let path = f(); path.on_sent(1); if path.id == of {} a.path = 1;"), 0);
    assert_eq!(found("match path.id { _ => 1 }"), 0);
    assert_eq!(found("self.path.route.since = 4;"), 1, "a path of a part");
    let inside = File::sample("transport/core/src/path/path.rs", "path.route.since = 4;");
    assert_eq!(assignments(&inside), []);
}
