//! The table of attacks names tests and checks that exist.

use super::Finding;
use super::tree::File;

/// The table.
const TABLE: &str = "tests/ATTACKS.md";
/// The number of attacks of each section.
const SECTIONS: [(char, usize); 11] = [
    ('A', 20),
    ('B', 21),
    ('C', 15),
    ('D', 16),
    ('E', 16),
    ('F', 14),
    ('G', 40),
    ('H', 24),
    ('I', 17),
    ('J', 12),
    ('K', 28),
];
/// The places of the sources of crates that tests are named in; other names are of files in `tests/tests`.
const CRATES: [(&str, &str); 18] = [
    ("hvq_transport", "transport/core/src/"),
    ("hvq_qlog", "transport/qlog/src/"),
    ("hvq_scheduler", "scheduler/src/"),
    ("hvq", "transport/net/src/"),
    ("paths_of_net", "transport/net/tests/paths"),
    ("failures_of_net", "transport/net/tests/failures"),
    ("workers_of_net", "transport/net/tests/workers"),
    ("hvq_h3", "transport/http3/src/"),
    ("hvq_gateway", "apps/gateway/src/"),
    ("hvq_program", "apps/program/src/"),
    ("hvq_cli", "apps/cli/src/"),
    ("hvq_tunnel", "apps/tunnel/src/"),
    ("gateway", "apps/gateway/tests/end_to_end/"),
    ("proxy", "apps/gateway/tests/proxy/"),
    ("command", "apps/cli/tests/command/"),
    ("h3", "transport/http3/tests/end_to_end/"),
    ("ffi", "ffi/tests/interface/"),
    ("hvq_ffi", "ffi/src/"),
];

/// Rows without a test or a reason, tests that do not exist, and attacks without a row.
pub(crate) fn check(files: &[File]) -> Vec<Finding> {
    let Some(table) = files.iter().find(|file| file.path == TABLE) else {
        return vec![Finding::new(&File::sample(TABLE, ""), 0, "there is no table of attacks")];
    };
    let mut findings = Vec::new();
    let mut ids = Vec::new();
    for (index, line) in table.text.lines().enumerate() {
        let Some(id) = attack(line) else { continue };
        ids.push(id);
        let tests: Vec<&str> =
            line.split('`').skip(1).step_by(2).filter(|text| text.contains("::")).collect();
        if tests.is_empty() && !line.contains("Left out: ") {
            findings.push(Finding::new(table, index + 1, format!("{id} has neither a test nor a reason")));
        }
        for test in tests.iter().filter(|test| !exists(test, files)) {
            findings.push(Finding::new(table, index + 1, format!("{id}: there is no test {test}")));
        }
        for check in checks(line).filter(|check| !is_function(check, files)) {
            findings.push(Finding::new(table, index + 1, format!("{id}: there is no check {check}")));
        }
    }
    for (section, count) in SECTIONS {
        for attack in (1..=count).map(|number| format!("{section}{number}")) {
            let rows = ids.iter().filter(|id| **id == attack).count();
            if rows != 1 {
                findings.push(Finding::new(table, 0, format!("{attack} has {rows} rows")));
            }
        }
    }
    findings
}

/// The checks that a line names: `file#function` each.
fn checks(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2).filter(|text| text.contains(".rs#"))
}

/// Returns true if `check`, a file from the root of the repository and a function, is a function there that is no test.
fn is_function(check: &str, files: &[File]) -> bool {
    let Some((path, name)) = check.split_once('#') else { return false };
    let Some(file) = files.iter().find(|file| file.path == path) else { return false };
    let declared = |end| file.text.contains(&format!("fn {name}{end}"));
    (declared('(') || declared('<')) && !has_test(&file.text, name)
}

/// The rows of the summary: a name, and the sections that it counts.
const GROUPS: [(&str, &str); 6] = [
    ("A to G, transport", "ABCDEFG"),
    ("H, HTTP/3", "H"),
    ("I, gateway and proxy", "I"),
    ("J, interfaces, operation", "J"),
    ("K, sums, slots, new machinery", "K"),
    ("all", "ABCDEFGHIJK"),
];

/// Returns the numbers of attacks that have tests and that are left out, as a table for the results.
pub(crate) fn summary(files: &[File]) -> String {
    let table = files.iter().find(|file| file.path == TABLE).map_or("", |file| &file.text);
    let mut text = "| sections | attacks | tried | left out |\n| --- | --- | --- | --- |\n".to_owned();
    for (name, sections) in GROUPS {
        let of_group =
            |line: &&str| attack(line).is_some_and(|id| id.starts_with(|first| sections.contains(first)));
        let rows: Vec<&str> = table.lines().filter(of_group).collect();
        let left_out = rows.iter().filter(|row| row.contains("Left out: ")).count();
        text += &format!("| {name} | {} | {} | {left_out} |\n", rows.len(), rows.len() - left_out);
    }
    text
}

/// `page` with `table` between its marks, if they are there.
pub(crate) fn with_summary(page: &str, table: &str) -> Option<String> {
    let (begin, end) = ("<!-- attacks: begin -->\n", "<!-- attacks: end -->");
    let (before, rest) = page.split_once(begin)?;
    let (_, after) = rest.split_once(end)?;
    Some(format!("{before}{begin}{table}{end}{after}"))
}

/// The number of the attack that a line of the table is about.
fn attack(line: &str) -> Option<&str> {
    let id = line.strip_prefix("| ")?.split(' ').next()?;
    id.ends_with(|last: char| last.is_ascii_digit()).then_some(id)
}

/// Returns true if `test`, `crate::module::function` or `file::function`, is a test in a file that its path leads to.
fn exists(test: &str, files: &[File]) -> bool {
    let Some((module, name)) = test.rsplit_once("::") else { return false };
    files.iter().any(|file| leads_to(module, &file.path) && has_test(&file.text, name))
}

/// Returns true if a function `name` is there with an attribute that makes it a test.
fn has_test(text: &str, name: &str) -> bool {
    let Some((before, _)) = text.split_once(&format!("fn {name}(")) else { return false };
    let mut above = before.lines().rev().skip(usize::from(!before.ends_with('\n'))).map(str::trim_start);
    above
        .by_ref()
        .take_while(|line| line.starts_with('#') || line.starts_with("//"))
        .any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"))
}

/// Returns true if the module `module` is in the file at `path`, or inside of a module there.
fn leads_to(module: &str, path: &str) -> bool {
    let inside = |root: &str, rest: &str| {
        let Some(file) = path.strip_prefix(root).and_then(|file| file.strip_suffix(".rs")) else {
            return false;
        };
        let file = file.trim_end_matches("/mod").replace('/', "::");
        rest == file || rest.strip_prefix(&file).is_some_and(|inner| inner.starts_with("::"))
    };
    let (first, rest) = module.split_once("::").unwrap_or((module, ""));
    match CRATES.iter().find(|(name, _)| *name == first) {
        // A file of tests that is a crate of its own.
        Some((_, root)) if rest.is_empty() => path.strip_suffix(".rs") == Some(root),
        Some((_, root)) => inside(root, rest),
        None => inside("tests/tests/", module),
    }
}

#[test]
fn the_summary_counts_what_is_tried_and_what_is_left_out() {
    let table = "| A1 | one | `x::y` |\n| G40 | two | Left out: so. |\n| J1 | three | `x::y` |\n";
    let text = summary(&[File::sample(TABLE, table)]);
    assert!(
        text.contains("| A to G, transport | 2 | 1 | 1 |\n")
            && text.contains("operation | 1 | 1 | 0 |\n")
            && text.contains("| all | 3 | 2 | 1 |\n")
    );
    let page = "a\n<!-- attacks: begin -->\nold\n<!-- attacks: end -->\nb";
    assert_eq!(
        with_summary(page, "new\n").as_deref(),
        Some("a\n<!-- attacks: begin -->\nnew\n<!-- attacks: end -->\nb")
    );
}

#[test]
fn missing_tests_reasons_and_rows_are_found() {
    let table = "| A1 | one | `hvq_transport::a::b::tests::it_is`, `scenarios_x::it_is` |\n\
                 | A2 | two | `hvq_transport::a::c::it_is`. Checks: `a/b.rs#go`, `a/b.rs#stay`, `a/c.rs#go`, `a/b.rs#tries` |\n| A3 | three | none |\n| A4 | four | Left out: so. |\n";
    let files = [
        File::sample(TABLE, table),
        File::sample("transport/core/src/a/b.rs", "    #[test]\n    // So.\n    fn it_is() {}"),
        File::sample("transport/core/src/a/c.rs", "#[test]\nfn another() {}\nfn it_is() {}"),
        File::sample("tests/tests/scenarios_x.rs", "#[tokio::test]\nasync fn it_is() {}"),
        File::sample("a/b.rs", "fn go<T>(t: T) {}\n#[test]\nfn tries() {}"),
    ];
    let problems: Vec<String> = check(&files).into_iter().map(|finding| finding.problem).collect();
    assert_eq!(problems[0], "A2: there is no test hvq_transport::a::c::it_is");
    for (problem, missing) in problems[1..4].iter().zip(["a/b.rs#stay", "a/c.rs#go", "a/b.rs#tries"]) {
        assert_eq!(*problem, format!("A2: there is no check {missing}"));
    }
    assert_eq!(problems[4], "A3 has neither a test nor a reason");
    assert_eq!(problems[5], "A5 has 0 rows");
}
