//! Files for results: tried before there are any, and written.

use crate::failure::{Exit, Failure, OrFail};
use crate::output::check_writable;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Checks that results can be written to `files`, and tables between `marks` of the file `marked`: to be known before hours
/// of work.
///
/// # Errors
/// A file cannot be written or has no such marks ([`Exit::Usage`]).
pub fn check_outputs(
    files: &[&Option<PathBuf>],
    (marked, marks): (&Option<PathBuf>, [&str; 2]),
) -> Result<(), Failure> {
    files.iter().filter_map(|file| file.as_deref()).try_for_each(check_writable)?;
    if let Some(path) = marked {
        check_writable(path)?;
        with_marks(path, marks, "")?;
    }
    Ok(())
}

/// Makes the folder of a report, and returns the path of the file `name` there.
///
/// # Errors
/// It cannot be written ([`Exit::Usage`]).
pub fn report_in(folder: &Path, name: &str) -> Result<PathBuf, Failure> {
    std::fs::create_dir_all(folder).or_fail(Exit::Usage, || format!("cannot create {}", folder.display()))?;
    let report = folder.join(name);
    check_writable(&report)?;
    Ok(report)
}

/// Writes `outcomes` to the file at `path`, one JSON object a line.
///
/// # Errors
/// It cannot be written ([`Exit::Runtime`]).
pub fn write_lines(path: &Path, outcomes: &[impl Serialize]) -> Result<(), Failure> {
    let lines: Result<Vec<String>, _> = outcomes.iter().map(serde_json::to_string).collect();
    write(path, &(lines?.join("\n") + "\n"))
}

/// Writes `text` to the file at `path`.
///
/// # Errors
/// It cannot be written ([`Exit::Runtime`]).
pub fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).or_fail(Exit::Runtime, || format!("cannot write {}", path.display()))
}

/// Puts `tables` between `marks` of the file at `path`.
///
/// # Errors
/// It cannot be read or written, or has no such marks.
pub fn write_between_marks(path: &Path, marks: [&str; 2], tables: &str) -> Result<(), Failure> {
    write(path, &with_marks(path, marks, tables)?)
}

/// The text of the file at `path` with `tables` between `marks`.
fn with_marks(path: &Path, marks: [&str; 2], tables: &str) -> Result<String, Failure> {
    let text =
        std::fs::read_to_string(path).or_fail(Exit::Usage, || format!("cannot read {}", path.display()))?;
    between_marks(&text, marks, tables).ok_or_else(|| {
        let [begin, end] = marks.map(str::trim);
        let problem = format!("{} has no lines {begin} and {end} for the tables", path.display());
        Failure::new(Exit::Usage, problem)
    })
}

/// `text` with `tables` between `marks`, if it has them.
fn between_marks(text: &str, [begin, end]: [&str; 2], tables: &str) -> Option<String> {
    let (before, rest) = text.split_once(begin)?;
    let (_, after) = rest.split_once(end)?;
    Some(format!("{before}{begin}{tables}{end}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_take_the_place_of_those_before() {
        let marks = ["<!-- x: begin -->\n", "<!-- x: end -->"];
        let [begin, end] = marks;
        let file = format!("# a\n{begin}old\n{end}\nb\n");
        assert_eq!(between_marks(&file, marks, "new\n"), Some(format!("# a\n{begin}new\n{end}\nb\n")));
        assert_eq!(between_marks("nothing", marks, "new"), None);
    }
}
