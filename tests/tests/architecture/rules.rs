//! Rules about the text of one file.

use crate::Finding;
use crate::lexer;
use crate::paths;
use crate::tree::File;

const LONGEST: usize = 800;

/// The places where `unsafe` is the point of the code: the bindings to libraries in C, BoringSSL and libvpx, and the C
/// interface.
const UNSAFE_PLACES: [&str; 4] = [
    "transport/core/src/crypto/session",
    "transport/core/src/crypto/aead/boringssl",
    "ffi/",
    "apps/video/src/vpx/",
];

/// Names that `hvq_scheduler` exports and only a program that chooses a policy may use.
const POLICIES: [&str; 9] =
    ["Hvc", "MinRtt", "RoundRobin", "Redundant", "Single", "Policy", "UnknownPolicy", "hvc", "policy"];

/// Marks of unfinished work, cut in two so that this file does not hold them.
const POSTPONED: [&str; 5] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("to", "do!"),
    concat!("unimple", "mented!"),
];

/// Folders of one machine, cut in two for the same reason.
const PLACES: [&str; 5] = [
    concat!("/wo", "rk"),
    concat!("/ro", "ot"),
    concat!("/t", "mp"),
    concat!("/ho", "me"),
    concat!("../sha", "red"),
];

/// Hashes without a secret: whoever chooses keys has them collide (attacks.md D13, CVE-2025-24946).
const OPEN_HASHES: [&str; 8] = [
    "FxHashMap",
    "FxHashSet",
    "FxHasher",
    "FxBuildHasher",
    "FnvHashMap",
    "FnvHasher",
    "BuildHasherDefault",
    "IntMap",
];

/// Written by cargo.
fn is_generated(file: &File) -> bool {
    file.path.ends_with("Cargo.lock")
}

/// A source file has at most 800 lines.
pub(crate) fn length(file: &File) -> Vec<Finding> {
    let lines = file.text.lines().count();
    if !file.is_rust() || lines <= LONGEST {
        return Vec::new();
    }
    vec![Finding::new(file, lines, format!("{lines} lines, at most {LONGEST}: divide it by responsibility"))]
}

/// `unsafe` stays in the bindings to BoringSSL and libvpx, and in the C interface.
pub(crate) fn unsafe_code(file: &File) -> Vec<Finding> {
    if !file.is_rust() || UNSAFE_PLACES.iter().any(|place| file.path.starts_with(place)) {
        return Vec::new();
    }
    let words = paths::tokens(&lexer::code(&file.text)).into_iter().filter(|token| token.text == "unsafe");
    words
        .map(|token| {
            Finding::new(
                file,
                token.line,
                "unsafe outside the bindings to BoringSSL and libvpx and the C interface",
            )
        })
        .collect()
}

/// The transport knows the trait `Scheduler`, never a policy.
pub(crate) fn policies(file: &File) -> Vec<Finding> {
    if !file.path.starts_with("transport/core/src/") || !file.is_rust() || file.is_test() {
        return Vec::new();
    }
    let code = lexer::without_tests(&lexer::code(&file.text));
    let mut findings = Vec::new();
    for root in ["hvq_scheduler", "scheduler", "crate", "super"] {
        for path in paths::starting_with(root, &code) {
            let scheduler = path.words.iter().position(|word| word == "scheduler" || word == "hvq_scheduler");
            let Some(name) = scheduler.and_then(|index| path.words.get(index + 1)) else { continue };
            if POLICIES.contains(&name.as_str()) || name == "*" {
                let problem = format!("names the policy {name}: take a `dyn Scheduler` instead");
                findings.push(Finding::new(file, path.line, problem));
            }
        }
    }
    findings
}

/// Keys that come from a network are hashed with a secret.
pub(crate) fn hashes(file: &File) -> Vec<Finding> {
    let far = ["transport/", "ffi/", "apps/gateway/", "apps/tunnel/"];
    if !file.is_rust() || !far.iter().any(|place| file.path.starts_with(place)) {
        return Vec::new();
    }
    words(file, &OPEN_HASHES, |hash| format!("{hash}: peers can have its keys collide, take a KeyedMap"))
}

/// A lint is suppressed with `expect` and a reason.
pub(crate) fn suppressions(file: &File) -> Vec<Finding> {
    if !file.is_rust() {
        return Vec::new();
    }
    let code = lexer::code(&file.text);
    let tokens = paths::tokens(&code);
    let attributes = tokens.windows(2).filter(|pair| pair[0].text == "[" && pair[1].text == "allow");
    attributes
        .map(|pair| Finding::new(file, pair[0].line, "allow: use expect(lint, reason = \"…\")"))
        .collect()
}

/// Nothing is left for later: what is missing is an issue, not a comment.
pub(crate) fn postponed(file: &File) -> Vec<Finding> {
    words(file, &POSTPONED, |mark| format!("{mark}: finish it, or open an issue"))
}

/// Nothing depends on where the repository is, or on what stands beside it.
pub(crate) fn machine_paths(file: &File) -> Vec<Finding> {
    words(file, &PLACES, |place| format!("{place}: a path outside of the repository"))
}

/// The lines of `file` that hold one of `marks` as a word of its own.
fn words(file: &File, marks: &[&str], problem: impl Fn(&str) -> String) -> Vec<Finding> {
    if is_generated(file) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        for mark in marks.iter().filter(|mark| holds_word(line, mark)) {
            findings.push(Finding::new(file, index + 1, problem(mark)));
        }
    }
    findings
}

fn holds_word(line: &str, mark: &str) -> bool {
    let joins = |c: char| c.is_alphanumeric() || c == '_';
    // In front of a path a dot, a dash or a brace continues a longer one, as in `./mark`, `target-mark` or `${…}/mark`.
    let path_joins = |c: char| joins(c) || ".-}*~/".contains(c);
    line.match_indices(mark).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        let after = line[start + mark.len()..].chars().next();
        let joined_before =
            before.is_some_and(|c| if mark.starts_with('/') { path_joins(c) } else { joins(c) });
        let joined_after = after.is_some_and(|c| joins(c) || (c == '-' && mark.starts_with('/')));
        let ends_open = mark.ends_with('!') || !joined_after;
        ends_open && !joined_before
    })
}

#[cfg(test)]
fn lines(findings: &[Finding]) -> Vec<usize> {
    findings.iter().map(|finding| finding.line).collect()
}

#[test]
fn a_file_of_801_lines_is_found() {
    assert!(length(&File::sample("a/src/b.rs", &"x\n".repeat(800))).is_empty());
    assert_eq!(lines(&length(&File::sample("a/src/b.rs", &"x\n".repeat(801)))), [801]);
    assert!(length(&File::sample("data/b.csv", &"x\n".repeat(801))).is_empty());
}

#[test]
fn unsafe_code_is_found_outside_its_two_places() {
    let text = "// unsafe\n#[expect(unsafe_code, reason = \"unsafe\")]\nunsafe { f() }";
    assert_eq!(lines(&unsafe_code(&File::sample("transport/net/src/a.rs", text))), [3]);
    assert!(unsafe_code(&File::sample("transport/core/src/crypto/session/callbacks.rs", text)).is_empty());
    assert!(unsafe_code(&File::sample("ffi/src/lib.rs", text)).is_empty());
}

#[test]
fn a_policy_named_in_the_transport_is_found_and_its_tests_may_name_one() {
    let text = "use hvq_scheduler::{Item, Hvc};\nfn f() { crate::scheduler::MinRtt::new(); }\n#[cfg(test)]\nmod tests { use hvq_scheduler::Single; }";
    assert_eq!(lines(&policies(&File::sample("transport/core/src/connection/mod.rs", text))), [1, 2]);
    assert!(policies(&File::sample("transport/core/src/connection/tests.rs", text)).is_empty());
    assert!(policies(&File::sample("apps/cli/src/main.rs", text)).is_empty());
    let all = File::sample("transport/core/src/a.rs", "use hvq_scheduler::*;");
    assert_eq!(lines(&policies(&all)), [1]);
}

#[test]
fn a_hash_without_a_secret_is_found_where_keys_come_from_a_network() {
    for hash in OPEN_HASHES {
        let text = format!("use std::collections::HashMap;\nlet map = {hash}::default();");
        assert_eq!(
            lines(&hashes(&File::sample("transport/core/src/endpoint/router.rs", &text))),
            [2],
            "{hash}"
        );
        assert!(hashes(&File::sample("apps/lab/src/a.rs", &text)).is_empty());
    }
}

#[test]
fn a_lint_suppressed_without_a_reason_is_found() {
    let text = "#![allow(dead_code)]\n#[expect(dead_code, reason = \"#[allow(x)]\")]\n#[allow(unused)]\nfn allow() {}";
    assert_eq!(lines(&suppressions(&File::sample("a/src/b.rs", text))), [1, 3]);
}

#[test]
fn marks_of_unfinished_work_are_found() {
    for mark in POSTPONED {
        let sample = File::sample("README.md", &format!("fine\nsee {mark}(\"later\")\n"));
        assert_eq!(lines(&postponed(&sample)), [2], "{mark}");
    }
    let prose = format!("{}S and lower case are words: todo = \"warn\"", POSTPONED[0]);
    assert!(postponed(&File::sample("clippy.toml", &prose)).is_empty());
}

#[test]
fn paths_of_one_machine_are_found() {
    for place in PLACES {
        for line in [format!("cd {place}/x"), format!("\"{place}\""), format!("({place})")] {
            assert_eq!(lines(&machine_paths(&File::sample("scripts/a.sh", &line))), [1], "{line}");
        }
        let longer = format!("http://host/x{place}_x .{place} target{place}");
        assert_eq!(
            machine_paths(&File::sample("scripts/a.sh", &longer)).len(),
            usize::from(place.starts_with('.'))
        );
    }
}
