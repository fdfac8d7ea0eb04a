//! The bytes around frames stand in one place: who needs them asks `wire::overhead`, or the view of a path.

use crate::Finding;
use crate::lexer;
use crate::paths;
use crate::tree::File;

/// The file in which they stand.
const PLACE: &str = "transport/core/src/wire/overhead.rs";
/// The places of code that deals with packets.
const CONCERNED: [&str; 5] =
    ["scheduler/src/", "transport/", "apps/gateway/src/", "apps/tunnel/src/", "apps/lab/src/"];
/// Words in the name of a constant that states them.
const NAMES: [&str; 3] = ["OVERHEAD", "TAG", "LOWER"];

/// Constants of such names that are about something else.
const OTHERS: [(&str, &str); 3] = [
    // What an entry in memory costs.
    ("transport/core/src/datagram.rs", "OVERHEAD"),
    // What a field counts for in a table (RFC 9204 §3.2.1).
    ("transport/http3/src/qpack/mod.rs", "FIELD_OVERHEAD"),
    // The tag of a Retry packet, which has no frames (RFC 9001 §5.8).
    ("transport/core/src/crypto/retry.rs", "TAG_LENGTH"),
];

/// No other place gives a number for them.
pub(crate) fn check(file: &File) -> Vec<Finding> {
    let concerned = CONCERNED.iter().any(|place| file.path.starts_with(place));
    if !file.is_rust() || file.is_test() || file.path == PLACE || !concerned {
        return Vec::new();
    }
    let tokens = paths::tokens(&lexer::without_tests(&lexer::code(&file.text)));
    let stated = tokens.windows(6).filter(|words| {
        let (name, value) = (words[1].text.as_str(), words[5].text.as_str());
        words[0].text == "const"
            && name.split('_').any(|word| NAMES.contains(&word))
            && words[4].text == "="
            && value.starts_with(|first: char| first.is_ascii_digit())
            && !OTHERS.contains(&(file.path.as_str(), name))
    });
    stated
        .map(|words| {
            let name = &words[1].text;
            Finding::new(file, words[0].line, format!("{name}: take it from {PLACE} or the view of a path"))
        })
        .collect()
}

#[test]
fn a_number_of_its_own_is_found_and_one_that_is_derived_is_not() {
    let bad = "const PACKET_OVERHEAD: usize = 60;\nconst B: usize = 1;\nfn a() { const TAG: usize = 16; }";
    let found = check(&File::sample("scheduler/src/a.rs", bad));
    assert_eq!(found.iter().map(|finding| finding.line).collect::<Vec<_>>(), [1, 3]);
    let good = "const OVERHEAD: usize = short(8);\n#[cfg(test)]\nmod tests { const TAG: usize = 16; }";
    assert_eq!(check(&File::sample("scheduler/src/a.rs", good)), []);
    assert_eq!(check(&File::sample("apps/cli/src/a.rs", bad)), []);
}
