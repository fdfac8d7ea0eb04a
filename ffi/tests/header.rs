//! `include/hvq.h` is what the sources say. With HVQ_WRITE_HEADER set it is written (`make header`).

use std::fs;
use std::path::{Path, PathBuf};

/// The topics of the header in its order, each a module.
const TOPICS: [&str; 16] = [
    "error",
    "address",
    "version",
    "log",
    "config",
    "session",
    "admission",
    "tls",
    "output",
    "endpoint",
    "connection",
    "stream",
    "datagram",
    "path",
    "counters",
    "scheduler",
];

const PREFACE: &str = r#"/*
 * hvq: multipath QUIC endpoints without I/O.
 *
 * QUIC (RFC 9000, 9001, 9002, 9369), datagrams (RFC 9221) and several paths for each connection (RFC 10069), with schedulers
 * that know how channels differ. The library opens no socket, reads no clock and starts no thread, but for one that
 * writes qlog files if there are any: datagrams, commands and the time go in, datagrams and events come out.
 *
 * Objects
 *
 *     hvq_client_config, hvq_server_config    what connections are made from: TLS, limits, the scheduler. Not changed
 *                                             once they are made; one serves many connections.
 *     hvq_endpoint                            many connections behind a few sockets of the program, of a client, a
 *                                             server or both.
 *     connections, streams, paths             numbers. A connection is named by a number of its endpoint, a stream and a
 *                                             path by that and a number of their own. None is ever used twice, so that
 *                                             late calls find nothing instead of something else.
 *
 * The life of a connection
 *
 *     1. Make a configuration: hvq_client_options_init(), change what shall differ, hvq_client_config_new(). A server does
 *        the same with hvq_server_options_init() and hvq_server_config_new().
 *     2. Make an endpoint: hvq_endpoint_new(), for a server with its configuration. Open sockets and set them to
 *        non-blocking; the library does not know of them.
 *     3. A client calls hvq_endpoint_connect(). A server learns of connections by HVQ_EVENT_CONNECTED.
 *     4. Then, for as long as the program runs:
 *          a. hvq_endpoint_poll() until it says HVQ_OUTPUT_IDLE. Send each HVQ_OUTPUT_TRANSMIT from the socket of its local
 *             address, act upon each HVQ_OUTPUT_EVENT.
 *          b. Wait until a socket is readable, the deadline of the last poll has passed, or the program wants something.
 *          c. hvq_endpoint_handle() for each datagram that arrived; commands such as hvq_stream_write().
 *     5. HVQ_EVENT_CONNECTED: the peer is authenticated. hvq_stream_open() and hvq_stream_accept() give streams, which are
 *        written and read until that is blocked; events tell when to go on. HVQ_EVENT_PATH_AVAILABLE: a client may call
 *        hvq_path_open() for its second socket. The scheduler divides what is written among the paths.
 *     6. hvq_connection_close(), or the peer closes, or nothing arrives for too long: HVQ_EVENT_CLOSED says which. Poll on:
 *        the peer is told. HVQ_EVENT_FORGOTTEN: the number is void.
 *     7. hvq_endpoint_free(). Configurations can be freed as soon as nothing more shall be made from them.
 *
 * Results
 *
 *     Functions return HVQ_OK or a negative number (see Errors) unless they say otherwise. If it is negative, nothing was
 *     done and nothing was written but what the function says. NULL, numbers of connections, streams and paths that do not
 *     exist, calls at the wrong time, and calls from callbacks or from two threads at a time are such errors and do no harm.
 *     Every function that takes an endpoint may also return HVQ_ERR_PANIC after a failure of the library.
 *     What cannot be found out is the duty of the program: other pointers are valid, that is to objects made by the library
 *     and not freed, to structs, to text that ends with a zero byte, or to as many bytes as their length says.
 *
 * Ownership
 *
 *     What the library makes is freed by its own free functions; what the program makes, by the program. Arguments are only
 *     used during the call, unless the function says otherwise. Where the library lends bytes, it says for how long: mostly
 *     until the next call of the same function for the same endpoint.
 *
 * Threads
 *
 *     An endpoint belongs to no thread, and is used by one at a time: a second one gets HVQ_ERR_BUSY at once, it does not
 *     wait. Different endpoints can be used at the same time, as can configurations. Callbacks are called within calls of
 *     the library, by the thread that called it; from there the endpoint is busy too. They must return: no longjmp, and no
 *     exception of C++.
 *
 * Versions
 *
 *     Structs that begin with `size` can grow in later versions: have them filled by their init function, or set `size` to
 *     sizeof and everything else to zeros where there is none. A library takes the structs of programs that were compiled
 *     with an older header, and those of a newer one as long as what it does not know is zero. Other structs keep their
 *     layout while the major version is the same. Functions carry the version that they came with (HVQ_0.1), and none is
 *     taken out. Kinds of events and error numbers can be added, so expect unknown ones.
 *
 * Linking
 *
 *     With libhvq.so, which shows nothing but hvq_ names:
 *         cc program.c $(pkg-config --cflags --libs hvq)
 *     With libhvq.a, likewise, or libhvq-boringssl.a, whose BoringSSL the program may use:
 *         cc program.c $(pkg-config --static --cflags --libs hvq | sed 's/-lhvq /-l:libhvq.a /')
 *     With CMake: find_package(hvq 0 REQUIRED CONFIG), then link hvq::hvq or hvq::static.
 *
 * Whole programs are in ffi/examples of the sources: echo.c is the one to begin with.
 *
CONTENTS
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
    format!("{}{sections}{END}", PREFACE.replace("CONTENTS", &contents()))
}

/// The titles of all topics, as lines of the preface.
fn contents() -> String {
    let titles = TOPICS.iter().map(|topic| title(&introduction(topic)));
    let mut lines = vec![" * Contents".to_owned(), " *".to_owned()];
    lines.extend(titles.map(|title| format!(" *     {title}")));
    lines.join("\n")
}

/// The lines with which a module opens.
fn introduction(topic: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join(format!("src/{topic}.rs"))).expect("the module exists");
    text.lines().map_while(|line| line.strip_prefix("//!")).map(str::to_owned).collect()
}

fn title(intro: &[String]) -> String {
    intro.first().map(|line| line.trim().trim_end_matches('.').to_owned()).unwrap_or_default()
}

fn section(topic: &str) -> String {
    let path = root().join(format!("src/{topic}.rs"));
    let intro = introduction(topic);
    let title = title(&intro);
    let rule = "-".repeat(72);
    let mut section = format!("\n/* {rule}\n * {title}\n");
    for line in intro.iter().skip(1) {
        section.push_str(format!(" *{}", plain_comment(line)).trim_end());
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

/// Types by their names alone, numbers that can be used in any expression, comments without marks for Rust, and blank lines
/// between constants only where others begin.
fn plain(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut plain = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let before = index.checked_sub(1).and_then(|index| lines.get(index)).and_then(|line| group(line));
        let after = lines.iter().skip(index).find(|line| !line.is_empty() && !line.starts_with("//"));
        if line.is_empty() && before.is_some() && before == after.and_then(|line| group(line)) {
            continue;
        }
        // What fences a sample in Rust's documentation is of no use in C.
        if !line.trim_start().starts_with("/// ```") {
            plain.push(plain_line(line));
        }
    }
    plain.join("\n")
}

/// Returns the prefix of constants that belong together.
fn group(line: &str) -> Option<&str> {
    let name = line.strip_prefix("#define HVQ_")?;
    let group = name.split(['_', ' ']).next()?;
    // HVQ_OK is the first of the errors.
    Some(if group == "OK" { "ERR" } else { group })
}

fn plain_line(line: &str) -> String {
    if line.trim_start().starts_with("//") {
        return plain_comment(line);
    }
    if let Some((name, number)) = line.strip_prefix("#define ").and_then(|rest| rest.split_once(' ')) {
        return match number.parse::<i64>() {
            Ok(number) if number < 0 => format!("#define {name} ({number})"),
            Ok(number) if number > 1 << 20 => format!("#define {name} {number:#010x}"),
            _ => line.to_owned(),
        };
    }
    let defines =
        line.starts_with("typedef struct hvq_") && !line.contains('(') || line.starts_with("struct ");
    if defines { line.to_owned() } else { line.replace("struct hvq_", "hvq_") }
}

/// Names of the library need no marks in C, names of fields and arguments do.
fn plain_comment(line: &str) -> String {
    let parts = line.split('`').enumerate();
    let marked = |(index, part): (usize, &str)| {
        let is_name = part.starts_with("HVQ_") || part.starts_with("hvq_") || part.contains(' ');
        if index % 2 == 1 && !is_name { format!("`{part}`") } else { part.to_owned() }
    };
    parts.map(marked).collect()
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

/// Functions that touch nothing that could fail.
const PLAIN: [&str; 5] =
    ["hvq_error_name", "hvq_error_text", "hvq_last_error", "hvq_last_error_code", "hvq_version"];

#[test]
fn no_panic_gets_past_any_function() {
    let guards = ["on_endpoint!(", "on_connection!(", "look_at!(", "entry(", "free("];
    for topic in TOPICS {
        let text = fs::read_to_string(root().join(format!("src/{topic}.rs"))).expect("the module exists");
        for function in text.split("#[unsafe(no_mangle)]").skip(1) {
            let name =
                function.split("fn ").nth(1).and_then(|rest| rest.split('(').next()).expect("a function");
            let body = function.split("\n}").next().unwrap_or_default();
            let body = body.split_once(" {\n").map_or("", |(_, body)| body);
            let is_guarded = guards.iter().any(|guard| body.contains(guard));
            assert!(is_guarded || PLAIN.contains(&name), "{name} does not go through the guard");
        }
    }
}

#[test]
fn every_error_that_a_function_names_exists() {
    let header = header();
    let numbers: Vec<&str> =
        header.lines().filter_map(|line| line.strip_prefix("#define HVQ_ERR_")).collect();
    let known = |name: &str| numbers.iter().any(|line| line.split(' ').next() == Some(name));
    for mention in header.split("HVQ_ERR_").skip(1) {
        let name = mention.split(|c: char| !c.is_ascii_uppercase() && c != '_').next().unwrap_or_default();
        assert!(known(name) || name.is_empty(), "HVQ_ERR_{name}");
    }
    assert_eq!(numbers.len(), 25);
}

#[test]
fn every_function_that_can_fail_names_its_errors() {
    for topic in TOPICS {
        let text = fs::read_to_string(root().join(format!("src/{topic}.rs"))).expect("the module exists");
        let parts: Vec<&str> = text.split("#[unsafe(no_mangle)]\n").collect();
        for (before, function) in parts.iter().zip(parts.iter().skip(1)) {
            let can_fail = function.split('{').next().is_some_and(|head| head.contains("-> hvq_result"));
            let comment: Vec<&str> =
                before.lines().rev().take_while(|line| line.starts_with("///")).collect();
            let named = comment.iter().any(|line| line.contains("Errors: ") || line.contains("are errors: "));
            assert!(named || !can_fail, "{}", function.lines().next().unwrap_or_default());
        }
    }
}
