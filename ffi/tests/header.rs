//! `include/hvq.h` is what the sources say. With HVQ_WRITE_HEADER set it is written (`make header`).

use std::fs;
use std::path::{Path, PathBuf};

/// The topics of the header in its order, each a module.
const TOPICS: [&str; 13] = [
    "error",
    "address",
    "version",
    "log",
    "config",
    "tls",
    "output",
    "endpoint",
    "connection",
    "stream",
    "datagram",
    "path",
    "scheduler",
];

const PREFACE: &str = r#"/*
 * hvq: multipath QUIC endpoints without I/O.
 *
 * QUIC (RFC 9000, 9001, 9002), datagrams (RFC 9221) and several paths for each connection (RFC 10069), with schedulers
 * that know how channels differ. The library opens no socket, reads no clock and starts no thread, but for one that
 * writes qlog files if there are any: datagrams, commands and the time go in, datagrams and events come out.
 *
 * A client in short:
 *
 *     hvq_client_options_init, hvq_client_config_new      what connections are made from
 *     hvq_endpoint_new                                    an endpoint
 *     hvq_endpoint_connect                                a connection
 *     loop:
 *         hvq_endpoint_poll until it is idle              send what it says, act upon events
 *         poll(2) until something arrives or its deadline
 *         hvq_endpoint_handle                             what arrived
 *
 * Rules that hold everywhere:
 *
 * - Functions return HVQ_OK or a negative number (see Errors) unless they say otherwise, and then have done nothing.
 * - NULL, numbers of connections, streams and paths that do not exist, calls at the wrong time, and calls from callbacks
 *   or from two threads at a time are errors, and do no harm. Other pointers must be valid: objects made by the library
 *   and not freed, structs, or as many bytes as their length says.
 * - What the library makes is freed by its own free functions; what the program makes, by the program. Arguments are only
 *   used during the call, unless the function says otherwise. Where the library lends bytes, it says for how long.
 * - Different endpoints can be used by different threads at the same time. One endpoint is used by one thread at a time.
 * - Callbacks are called within calls of the library, by the thread that called it. They must return: no longjmp, and no
 *   exception of C++.
 * - Structs that begin with `size` can grow in later versions: have them filled by their init function. Other structs keep
 *   their layout. Kinds of events and error numbers can be added, so expect unknown ones.
 *
 * This file is generated from the sources of the library.
 */
#ifndef HVQ_H
#define HVQ_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An endpoint: client, server or both. */
typedef struct hvq_endpoint hvq_endpoint;
/* See Schedulers of your own. */
typedef struct hvq_scheduler hvq_scheduler;
"#;

const END: &str = "
#ifdef __cplusplus
}
#endif

#endif /* HVQ_H */
";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf()
}

/// The whole header.
fn header() -> String {
    let sections: String = TOPICS.iter().map(|topic| section(topic)).collect();
    format!("{PREFACE}{sections}{END}")
}

fn section(topic: &str) -> String {
    let path = root().join(format!("src/{topic}.rs"));
    let text = fs::read_to_string(&path).expect("the module exists");
    let intro: Vec<&str> = text.lines().map_while(|line| line.strip_prefix("//!")).collect();
    let title = intro.first().map(|line| line.trim().trim_end_matches('.')).unwrap_or_default();
    let rule = "-".repeat(72);
    let mut section = format!("\n/* {rule}\n * {title}\n");
    for line in intro.iter().skip(1) {
        section.push_str(format!(" *{}", line.replace('`', "")).trim_end());
        section.push('\n');
    }
    section.push_str(&format!(" * {rule} */\n\n"));
    section.push_str(plain(&declarations(&path)).trim());
    section.push('\n');
    section
}

fn declarations(path: &Path) -> String {
    let mut config = cbindgen::Config {
        language: cbindgen::Language::C,
        no_includes: true,
        usize_is_size_t: true,
        documentation_style: cbindgen::DocumentationStyle::Cxx,
        style: cbindgen::Style::Both,
        line_length: 110,
        tab_width: 4,
        ..Default::default()
    };
    config.function.args = cbindgen::Layout::Auto;
    config.export.include = types(path);
    let bindings = cbindgen::Builder::new().with_config(config).with_src(path).generate().expect("it parses");
    let mut written = Vec::new();
    bindings.write(&mut written);
    String::from_utf8(written).expect("the sources are UTF-8")
}

/// The types that a module defines for C: all of them, whether a function of the same module uses them or not.
fn types(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).expect("the module exists");
    let name = |line: &str| {
        let rest = line.strip_prefix("pub struct ").or_else(|| line.strip_prefix("pub type "))?;
        rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().map(str::to_owned)
    };
    text.lines().filter_map(name).collect()
}

/// Types by their names alone, numbers that can be used in any expression, comments without marks for Rust, and constants
/// without blank lines between them.
fn plain(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut plain = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let (before, after) = (index.checked_sub(1).and_then(|index| lines.get(index)), lines.get(index + 2));
        let is_define = |line: Option<&&str>| line.is_some_and(|line| line.starts_with("#define"));
        if line.is_empty() && is_define(before) && (is_define(after) || is_define(lines.get(index + 3))) {
            continue;
        }
        plain.push(plain_line(line));
    }
    plain.join("\n")
}

fn plain_line(line: &str) -> String {
    if line.trim_start().starts_with("//") {
        return line.replace('`', "");
    }
    if let Some((name, number)) = line.strip_prefix("#define ").and_then(|rest| rest.split_once(' ')) {
        return if number.starts_with('-') { format!("#define {name} ({number})") } else { line.to_owned() };
    }
    let defines =
        line.starts_with("typedef struct hvq_") && !line.contains('(') || line.starts_with("struct ");
    if defines { line.to_owned() } else { line.replace("struct hvq_", "hvq_") }
}

#[test]
fn the_header_is_fresh() {
    let path = root().join("include/hvq.h");
    let made = header();
    if std::env::var_os("HVQ_WRITE_HEADER").is_some() {
        fs::create_dir_all(root().join("include")).expect("the folder can be made");
        fs::write(&path, &made).expect("the header can be written");
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == made, "include/hvq.h is not what the sources say: make header");
}

#[test]
fn every_function_of_the_library_is_in_the_header() {
    let header = header();
    for topic in TOPICS {
        let text = fs::read_to_string(root().join(format!("src/{topic}.rs"))).expect("the module exists");
        let mut after = text.split("#[unsafe(no_mangle)]");
        after.next();
        for entry in after {
            let name = entry.split("fn ").nth(1).and_then(|rest| rest.split('(').next()).expect("a function");
            assert!(header.contains(&format!("{name}(")), "{name}");
        }
    }
}
