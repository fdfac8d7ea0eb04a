//! The permitted uses between modules of the core: lower layers only, and neither siblings nor modules that compose
//! them.

use crate::Finding;
use crate::lexer;
use crate::paths;
use crate::tree::File;

const CORE: &str = "transport/core/src/";

/// The layers, the lowest first. Modules of one layer do not use each other.
const LAYERS: [&[&str]; 11] = [
    &["time", "error", "memory", "four_tuple"],
    &["ranges", "slots"],
    &["wire"],
    &["crypto"],
    &["recovery_token", "trace", "inspect", "knowledge"],
    &["stream", "datagram", "recovery"],
    &["space"],
    &["congestion"],
    &["path", "handshake"],
    &["connection"],
    &["endpoint"],
];

/// The uses in `file` that go up, or to a sibling.
pub(crate) fn check(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (line, user, used) in uses(file) {
        let Some(from) = layer(&user) else {
            findings.push(Finding::new(
                file,
                0,
                format!("the module {user} has no layer: give it one in the table"),
            ));
            return findings;
        };
        // Not a module: an item of the crate's root, open to all.
        let Some(to) = layer(&used[0]) else { continue };
        if from <= to {
            let what = if from == to { "a sibling" } else { "a higher layer" };
            findings.push(Finding::new(file, line, format!("{user} uses {}, {what}", used.join("::"))));
        }
    }
    findings
}

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|modules| modules.contains(&module))
}

/// Returns the uses in `file` of other top-level modules of the core: line, its own module, the path used.
fn uses(file: &File) -> Vec<(usize, String, Vec<String>)> {
    let Some(place) = file.path.strip_prefix(CORE).filter(|_| !file.is_test()) else { return Vec::new() };
    let Some(place) = place.strip_suffix(".rs").filter(|place| *place != "lib") else { return Vec::new() };
    let module: Vec<String> = place.trim_end_matches("/mod").split('/').map(str::to_owned).collect();
    let code = lexer::without_tests(&lexer::code(&file.text));
    let mut named = paths::starting_with("crate", &code);
    named.extend(paths::starting_with("super", &code));
    named.sort_by_key(|path| path.line);
    let absolute = named.into_iter().filter_map(|path| Some((path.line, from_root(&path.words, &module)?)));
    let foreign = absolute.filter(|(_, used)| used[0] != module[0]);
    foreign.map(|(line, used)| (line, module[0].clone(), used)).collect()
}

/// `words` from the root of the crate, as seen in `module`; `None` if nothing is left, or if it leaves the crate, as
/// `super` of a module inside the file may seem to.
fn from_root(words: &[String], module: &[String]) -> Option<Vec<String>> {
    let ups = words.iter().take_while(|word| *word == "super").count();
    let mut path = if ups == 0 { Vec::new() } else { module[..module.len().checked_sub(ups)?].to_vec() };
    path.extend_from_slice(&words[ups.max(1)..]);
    (!path.is_empty()).then_some(path)
}

#[cfg(test)]
fn problems(path: &str, text: &str) -> Vec<String> {
    check(&File::sample(path, text)).iter().map(Finding::to_string).collect()
}

#[test]
fn a_use_of_a_higher_layer_is_found() {
    let path = "transport/core/src/space/sent.rs";
    let text = "use crate::{time::Instant, connection::Connection};\nfn f() { crate::endpoint::g(); }";
    let expected = [
        format!("{path}:1: space uses connection::Connection, a higher layer"),
        format!("{path}:2: space uses endpoint::g, a higher layer"),
    ];
    assert_eq!(problems(path, text), expected);
}

#[test]
fn a_use_of_a_sibling_is_found_however_it_is_written() {
    let path = "transport/core/src/stream/send.rs";
    assert_eq!(problems(path, "use super::super::datagram::Datagrams;").len(), 1);
    assert_eq!(problems("transport/core/src/stream/mod.rs", "use super::datagram;").len(), 1);
    assert_eq!(problems("transport/core/src/datagram.rs", "use super::stream::StreamId;").len(), 1);
}

#[test]
fn uses_of_lower_layers_of_the_root_and_of_the_module_itself_are_fine() {
    let path = "transport/core/src/stream/send.rs";
    let text = "use crate::PathId;\nuse crate::scheduler::Item;\nuse crate::wire::varint;\nuse super::id::StreamId;\nuse crate::stream::flow;";
    assert_eq!(problems(path, text), [""; 0]);
}

#[test]
fn tests_may_use_everything() {
    let text = "#[cfg(test)]\nmod tests { use crate::endpoint::Endpoint; }\nuse crate::Role;";
    assert_eq!(problems("transport/core/src/wire/header.rs", text), [""; 0]);
    assert_eq!(problems("transport/core/src/wire/tests.rs", "use crate::endpoint::Endpoint;"), [""; 0]);
}

#[test]
fn a_module_without_a_layer_is_found() {
    assert_eq!(problems("transport/core/src/novelty.rs", "use crate::time::Instant;").len(), 1);
}
