//! Rules about links from arguments and from a file.

use crate::failure::{Exit, Failure, OrFail};
use hvq::path_manager::{Rule, Rules};
use std::path::PathBuf;

/// The source of rules about links.
#[derive(Clone, Debug, Default)]
pub struct RuleSource {
    /// The first rules.
    pub given: Vec<Rule>,
    /// A file with the rules after those, one a line.
    pub file: Option<PathBuf>,
}

impl RuleSource {
    /// Returns true if there are no rules.
    pub fn is_empty(&self) -> bool {
        self.given.is_empty() && self.file.is_none()
    }

    /// Reads the rules.
    pub(super) fn read(&self) -> Result<Rules, Failure> {
        let given: Rules = self.given.iter().cloned().collect();
        let Some(file) = &self.file else { return Ok(given) };
        let text = std::fs::read_to_string(file);
        let text = text.or_fail(Exit::Usage, || format!("cannot read {}", file.display()))?;
        let read: Rules = text.parse().or_fail(Exit::Usage, || file.display().to_string())?;
        Ok(read.iter().cloned().fold(given, Rules::then))
    }
}
