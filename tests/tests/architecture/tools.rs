//! Programs that tests start: scripts/tools.txt lists each for the target that runs the tests, so that scripts/deps.sh
//! installs it on a new machine.

use crate::Finding;
use crate::lexer;
use crate::tree::File;
use std::collections::BTreeSet;

/// The list.
const LIST: &str = "scripts/tools.txt";

/// Programs of Debian's essential packages, which every system has, of the Rust toolchain, and those that the tests make.
const ALWAYS: [&str; 14] = [
    "bash", "cargo", "chmod", "false", "hvq", "id", "mkfifo", "rustc", "setpriv", "setsid", "sh", "sleep",
    "timeout", "true",
];

/// Programs that a test starts and that its target does not install.
pub(crate) fn check(files: &[File]) -> Vec<Finding> {
    let Some(list) = files.iter().find(|file| file.path == LIST) else {
        return vec![Finding::new(&File::sample(LIST, ""), 0, "there is no list of tools")];
    };
    let tests = installed(&list.text, "test");
    let interface = installed(&list.text, "ffi");
    let known = programs(&list.text, |_| true);
    let sources = files.iter().filter(|file| file.is_rust() && !file.path.contains("architecture/"));
    let mut findings = Vec::new();
    for file in sources.filter(|file| file.is_test() && !is_elsewhere(&file.path)) {
        let target = if file.path.starts_with("ffi/") { ("ffi", &interface) } else { ("test", &tests) };
        for (line, program) in started(&file.text, &known) {
            if !target.1.contains(&program) && !ALWAYS.contains(&program.as_str()) {
                let problem = format!("starts {program}, which {LIST} does not name for {}", target.0);
                findings.push(Finding::new(file, line, problem));
            }
        }
    }
    findings
}

/// Workspaces of their own, whose tests `make test` does not run.
fn is_elsewhere(path: &str) -> bool {
    ["interop/", "bench/", "mutants/"].iter().any(|folder| path.starts_with(folder))
}

/// The programs that `target` and what it includes bring.
fn installed(list: &str, target: &str) -> BTreeSet<String> {
    let mut groups = BTreeSet::from([target.to_owned()]);
    let includes = list.lines().filter_map(|line| line.strip_prefix("include "));
    for words in includes.map(|line| line.split_whitespace().collect::<Vec<_>>()) {
        if words[0] == target {
            groups.extend(words[1..].iter().map(|word| (*word).to_owned()));
        }
    }
    programs(list, |group| groups.contains(group))
}

/// The programs of all lines whose target is `wanted`.
fn programs(list: &str, wanted: impl Fn(&str) -> bool) -> BTreeSet<String> {
    let lines = list.lines().filter(|line| !line.starts_with('#') && !line.starts_with("include "));
    let lines = lines.filter(|line| line.split_whitespace().next().is_some_and(&wanted));
    let checks = lines.flat_map(|line| line.split_whitespace().skip(2));
    checks.filter_map(|check| check.strip_prefix("program:")).map(str::to_owned).collect()
}

/// The programs that a test in `source` starts, by line: the argument of `Command::new`, and every `known` program which
/// is a text of its own, the end of a path, or the first word of a command of a shell.
fn started(source: &str, known: &BTreeSet<String>) -> Vec<(usize, String)> {
    let direct: BTreeSet<&str> = source
        .split("Command::new(\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .filter(|name| !name.contains('/'))
        .collect();
    let mut found = Vec::new();
    for (line, text) in lexer::texts(source) {
        if direct.contains(text.as_str()) {
            found.push((line, text.clone()));
        }
        for command in text.split([';', '|', '&', '\n']) {
            let first = command.trim().trim_start_matches("exec ").split(' ').next().unwrap_or_default();
            let name = first.rsplit('/').next().unwrap_or_default();
            if known.contains(name) && !direct.contains(text.as_str()) {
                found.push((line, name.to_owned()));
            }
        }
    }
    found
}

#[test]
fn a_program_that_the_target_does_not_install_is_found() {
    let list = "include test base\nbase build-essential program:make\n\
                test curl program:curl\nvideo ffmpeg program:ffmpeg\n";
    let source = "fn a() { Command::new(\"ffmpeg\"); Command::new(\"sh\").arg(\"cd x; make && nmap -v\"); }\n\
                  fn b() { run(&[\"/usr/bin/ffmpeg\", \"curl\"]); Command::new(\"nmap\"); say(\"no ffmpeg here\"); }";
    let files = [File::sample(LIST, list), File::sample("apps/x/tests/y.rs", source)];
    let problems: Vec<(usize, String)> =
        check(&files).into_iter().map(|finding| (finding.line, finding.problem)).collect();
    let lacks = |program| format!("starts {program}, which {LIST} does not name for test");
    assert_eq!(problems, [(1, lacks("ffmpeg")), (2, lacks("ffmpeg")), (2, lacks("nmap"))]);
}
