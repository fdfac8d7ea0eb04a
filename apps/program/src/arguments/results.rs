//! The files for results of an experiment, beside the tables on standard output.

use crate::failure::{Exit, Failure, OrFail};
use crate::files::write;
use crate::output::check_writable;
use clap::Args;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// The files for what was measured and for tables.
#[derive(Clone, Debug, Default, Args)]
pub struct ResultArguments {
    /// Write everything that was measured to this file too, one JSON object a line
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Put the tables into this file too, between its lines <!-- NAME: begin --> and <!-- NAME: end -->, with the command's name
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
}

impl ResultArguments {
    /// Checks that the files can be written, and that the one for tables has the marks of the command `name`: to be known
    /// before hours of work.
    ///
    /// # Errors
    /// A file cannot be written or has no such marks ([`Exit::Usage`]).
    pub fn check(&self, name: &str) -> Result<(), Failure> {
        self.json.as_deref().map_or(Ok(()), check_writable)?;
        let Some(path) = &self.write else { return Ok(()) };
        check_writable(path)?;
        with_marks(path, name, "").map(drop)
    }

    /// Writes `outcomes` to the file for them, one JSON object a line, if one was named.
    ///
    /// # Errors
    /// It cannot be written ([`Exit::Runtime`]).
    pub fn write_outcomes(&self, outcomes: &[impl Serialize]) -> Result<(), Failure> {
        let Some(path) = &self.json else { return Ok(()) };
        let lines: Result<Vec<String>, _> = outcomes.iter().map(serde_json::to_string).collect();
        write(path, &(lines?.join("\n") + "\n"))
    }

    /// Puts `tables` between the marks of the command `name` in the file for them, if one was named.
    ///
    /// # Errors
    /// The file cannot be read or written, or has no such marks.
    pub fn write_tables(&self, name: &str, tables: &str) -> Result<(), Failure> {
        self.write.as_ref().map_or(Ok(()), |path| write(path, &with_marks(path, name, tables)?))
    }
}

/// The file for a drawing.
#[derive(Clone, Debug, Default, Args)]
pub struct FigureArguments {
    /// Write the drawing to this file too, as SVG
    #[arg(long, value_name = "FILE")]
    figure: Option<PathBuf>,
}

impl FigureArguments {
    /// Checks that the file can be written.
    ///
    /// # Errors
    /// It cannot ([`Exit::Usage`]).
    pub fn check(&self) -> Result<(), Failure> {
        self.figure.as_deref().map_or(Ok(()), check_writable)
    }

    /// Writes the drawing that `draw` makes, if a file was named for it and there is something to draw.
    ///
    /// # Errors
    /// It cannot be written ([`Exit::Runtime`]).
    pub fn write(&self, draw: impl FnOnce() -> Option<String>) -> Result<(), Failure> {
        let Some(path) = &self.figure else { return Ok(()) };
        draw().map_or(Ok(()), |figure| write(path, &figure))
    }
}

/// The text of the file at `path` with `tables` between the marks of `name`.
fn with_marks(path: &Path, name: &str, tables: &str) -> Result<String, Failure> {
    let text =
        std::fs::read_to_string(path).or_fail(Exit::Usage, || format!("cannot read {}", path.display()))?;
    between_marks(&text, name, tables).ok_or_else(|| {
        let [begin, end] = marks(name);
        let problem = format!("{} has no lines {begin} and {end} for the tables", path.display());
        Failure::new(Exit::Usage, problem)
    })
}

/// The lines between which the tables of the command `name` stand.
fn marks(name: &str) -> [String; 2] {
    ["begin", "end"].map(|end| format!("<!-- {name}: {end} -->"))
}

/// `text` with `tables` between the marks of `name`, if it has them.
fn between_marks(text: &str, name: &str, tables: &str) -> Option<String> {
    let [begin, end] = marks(name);
    let begin = begin + "\n";
    let (before, rest) = text.split_once(&begin)?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!("{before}{begin}{tables}{end}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_take_the_place_of_those_before() {
        let file = |tables: &str| format!("# a\n<!-- x: begin -->\n{tables}<!-- x: end -->\nb\n");
        assert_eq!(between_marks(&file("old\n\n"), "x", "new\n"), Some(file("new\n")));
        assert_eq!(between_marks(&file("old\n"), "y", "new\n"), None);
    }

    #[test]
    fn a_file_for_tables_without_marks_is_refused_before_the_work() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tables.md");
        let arguments = ResultArguments { json: None, write: Some(file.clone()) };
        std::fs::write(&file, "<!-- y: begin -->\n<!-- y: end -->").unwrap();
        let failure = arguments.check("x").unwrap_err();
        assert_eq!(failure.exit(), Exit::Usage);
        assert!(failure.line().contains("<!-- x: begin -->"), "{}", failure.line());
        arguments.check("y").unwrap();
        arguments.write_tables("y", "new\n").unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "<!-- y: begin -->\nnew\n<!-- y: end -->");
    }
}
