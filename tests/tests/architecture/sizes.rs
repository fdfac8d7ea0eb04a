//! The size of the command line: it holds arguments and glue, and everything else is in the crate where it belongs.

use crate::Finding;
use crate::lexer;
use crate::tree::File;

/// The folder of the program's sources.
const FOLDER: &str = "apps/cli/src/";
/// The maximum number of its lines: comments and empty lines count, tests do not.
const MOST: usize = 4_000;

/// A finding if the command line has grown beyond its size.
pub(crate) fn command_line(files: &[File]) -> Vec<Finding> {
    let sources = files.iter().filter(|file| file.path.starts_with(FOLDER) && file.is_rust());
    let lines: usize = sources.filter(|file| !file.is_test()).map(lines).sum();
    match lines {
        0..=MOST => Vec::new(),
        _ => {
            let problem = format!(
                "{lines} lines without tests, {MOST} at most: it keeps arguments and glue, what does the work goes to its crate"
            );
            vec![Finding::new(&File::sample(FOLDER, ""), 0, problem)]
        }
    }
}

/// The lines of a file that are not under `#[cfg(test)]`.
fn lines(file: &File) -> usize {
    let code = lexer::code(&file.text);
    let test: usize = lexer::tests(&code).iter().map(|item| item.lines().count()).sum();
    file.text.lines().count() - test
}

#[test]
fn tests_do_not_count() {
    let text = "//! A.\n\nfn a() {}\n\n#[cfg(test)]\nmod tests {\n    // b\n\n    fn b() {}\n}\n";
    assert_eq!(lines(&File::sample("apps/cli/src/a.rs", text)), 4);
    let alone = "fn a() {}\n#[cfg(test)]\nmod tests;\n";
    assert_eq!(lines(&File::sample("apps/cli/src/a.rs", alone)), 1);
}

#[test]
fn a_command_line_that_does_the_work_itself_is_found() {
    let text = "fn a() {}\n".repeat(MOST);
    let file = File::sample("apps/cli/src/a.rs", &text);
    assert_eq!(command_line(std::slice::from_ref(&file)), []);
    let more = File::sample("apps/cli/src/b.rs", "fn b() {}\n");
    let tests = File::sample("apps/cli/src/a/tests.rs", "fn b() {}\n");
    assert_eq!(command_line(&[file.clone(), tests]), []);
    assert_eq!(command_line(&[file, more]).len(), 1);
}
