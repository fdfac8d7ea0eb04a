//! The snippets of C in the documents are compiled against the header.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// The documents that have any.
const DOCUMENTS: [&str; 2] = ["README.md", "docs/c.md"];
/// The flags of the compiler: what is no error in C11 must not be a warning either.
const FLAGS: [&str; 8] =
    ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "-x", "c"];

/// The code between ```` ```c ```` and the end of the block, for each block.
fn snippets(text: &str) -> Vec<&str> {
    text.split("```c\n").skip(1).map(|rest| rest.split("```").next().unwrap_or(rest)).collect()
}

/// Compiles `code`; returns what the compiler has to say against it.
fn complaints(code: &str) -> String {
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    let mut compiler = Command::new("gcc")
        .args(FLAGS)
        .arg("-I")
        .arg(include)
        .arg("-")
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    compiler.stdin.take().unwrap().write_all(code.as_bytes()).unwrap();
    let output = compiler.wait_with_output().unwrap();
    if output.status.success() { String::new() } else { String::from_utf8_lossy(&output.stderr).into_owned() }
}

#[test]
fn the_snippets_of_the_documents_compile() {
    for document in DOCUMENTS {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(document);
        let text = std::fs::read_to_string(path).unwrap();
        let snippets = snippets(&text);
        assert!(!snippets.is_empty(), "{document} has no snippet of C");
        for code in snippets {
            assert_eq!(complaints(code), "", "{document}");
        }
    }
}

#[test]
fn a_snippet_with_a_function_that_the_header_lacks_does_not_compile() {
    let code = "#include <hvq.h>\nvoid f(hvq_endpoint *endpoint) { hvq_endpoint_vanish(endpoint); }\n";
    assert!(complaints(code).contains("hvq_endpoint_vanish"));
}
