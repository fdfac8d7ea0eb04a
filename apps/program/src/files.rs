//! Files for reports: tried before there are any, and written.

use crate::failure::{Exit, Failure, OrFail};
use crate::output::check_writable;
use std::path::{Path, PathBuf};

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

/// Writes `text` to the file at `path`.
///
/// # Errors
/// It cannot be written ([`Exit::Runtime`]).
pub fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).or_fail(Exit::Runtime, || format!("cannot write {}", path.display()))
}
