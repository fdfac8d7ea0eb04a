//! The checks that `tests/ATTACKS.md` names, against the tests that it names: for each row, a fault of the check that one of
//! its own tests notices.

use crate::catalogue::Mutant;
use crate::suite::{Suite, Test, Word};
use anyhow::Result;
use std::collections::BTreeSet;

/// The table of attacks.
pub const FILE: &str = "tests/ATTACKS.md";

/// An attack with the functions that defend and the tests that try it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    /// Its name, as in `G19`.
    pub id: String,
    /// File and function of each check.
    pub checks: Vec<(String, String)>,
    /// Names of tests, the crate first.
    pub tests: Vec<String>,
}

/// The verdict of a row's own tests about faults of its checks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Finding {
    /// One of them noticed one.
    Noticed,
    /// None noticed any of so many.
    Unnoticed(usize),
    /// There are no mutants of its checks, or none of its tests, in this build.
    Elsewhere,
}

/// The rows of the table that name a check.
pub fn rows(table: &str) -> Vec<Row> {
    let lines = table.lines().filter(|line| line.starts_with("| ") && line.contains("Check"));
    let row = |line: &str| {
        let id = line.split('|').nth(1)?.trim().to_owned();
        let quoted: Vec<&str> = line.split('`').skip(1).step_by(2).collect();
        let check =
            |text: &&str| text.split_once(".rs#").map(|(file, name)| (format!("{file}.rs"), name.into()));
        let checks = quoted.iter().filter_map(check).collect();
        let tests = quoted.iter().filter(|text| text.contains("::")).map(|text| (*text).to_owned()).collect();
        Some(Row { id, checks, tests })
    };
    lines.filter_map(row).filter(|row: &Row| !row.checks.is_empty()).collect()
}

/// The function that a mutation is in, without its type.
pub fn function(mutation: &str) -> &str {
    let path = match mutation.rsplit_once(" in ") {
        Some((_, path)) if !path.contains(" with ") => path,
        _ => {
            let value = mutation.strip_prefix("replace ").unwrap_or(mutation);
            value.split(" -> ").next().and_then(|path| path.split(" with ").next()).unwrap_or(value)
        }
    };
    path.rsplit("::").next().unwrap_or(path)
}

/// Asks the tests of `row` about mutants of its checks, until one notices.
///
/// # Errors
///
/// If a program of tests cannot be run.
pub fn ask(row: &Row, suite: &Suite, mutants: &[&Mutant]) -> Result<Finding> {
    let named: BTreeSet<&str> =
        row.tests.iter().filter_map(|name| name.split_once("::")).map(|parts| parts.1).collect();
    let tests: Vec<&Test> = suite.tests.iter().filter(|test| named.contains(test.name.as_str())).collect();
    let is_checked = |mutant: &&&Mutant| {
        let at = (&mutant.key.file, function(&mutant.key.mutation));
        row.checks.iter().any(|(file, name)| (file, name.as_str()) == at)
    };
    let (mut asked, mut patience) = (0, 24);
    for mutant in mutants.iter().filter(is_checked) {
        let reaching: Vec<&Test> =
            tests.iter().copied().filter(|test| test.reaches.binary_search(&mutant.number).is_ok()).collect();
        if reaching.is_empty() || patience == 0 {
            continue;
        }
        (asked, patience) = (asked + 1, patience - 1);
        if suite.ask(&reaching, mutant.number)? != Word::Passed {
            return Ok(Finding::Noticed);
        }
    }
    let has_mutants = mutants.iter().any(|mutant| is_checked(&mutant));
    Ok(if tests.is_empty() || !has_mutants { Finding::Elsewhere } else { Finding::Unnoticed(asked) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_names_its_checks_and_its_tests() {
        let table = "| id | attack |\n| A1 | a | dropped | `x::y::z`, `w::v`: so. Checks: `a/b.rs#go`, `a/c.rs#stay` |\n\
                     | A2 | b | dropped | `x::y` |";
        let checks = vec![("a/b.rs".into(), "go".into()), ("a/c.rs".into(), "stay".into())];
        let tests = vec!["x::y::z".into(), "w::v".into()];
        assert_eq!(rows(table), [Row { id: "A1".into(), checks, tests }]);
    }

    #[test]
    fn a_mutation_is_in_a_function() {
        for (mutation, name) in [
            ("replace < with <= in Streams::room", "room"),
            ("replace Paths::on_datagram with ()", "on_datagram"),
            ("replace length -> Option<usize> with Some(0)", "length"),
            ("delete match arm Self::Ping in <impl Frame for A>::put", "put"),
        ] {
            assert_eq!(function(mutation), name, "{mutation}");
        }
    }
}
