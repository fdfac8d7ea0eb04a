//! The results as a table and as JSON.

use crate::case::CASES;
use crate::play::CaseOutcome;
use anyhow::Context;
use serde::Serialize;
use std::fmt::Write;

/// The result of a case between two programs.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Entry {
    /// The case.
    pub(crate) case: &'static str,
    /// The client.
    pub(crate) client: String,
    /// The server.
    pub(crate) server: String,
    /// The outcome: `ok`, `unsupported` or `failed`.
    pub(crate) result: &'static str,
    /// The reason, if it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// The duration, in seconds.
    pub(crate) seconds: f64,
}

impl Entry {
    /// The entry for `outcome`.
    pub(crate) fn new(
        case: &'static str,
        [client, server]: [&str; 2],
        outcome: CaseOutcome,
        seconds: f64,
    ) -> Self {
        let (result, reason) = match outcome {
            CaseOutcome::Passed => ("ok", None),
            CaseOutcome::Unsupported => ("unsupported", None),
            CaseOutcome::Failed(reason) => ("failed", Some(reason)),
        };
        Self { case, client: client.to_owned(), server: server.to_owned(), result, reason, seconds }
    }

    fn cell(&self) -> String {
        match self.result {
            "ok" => format!("ok {:.1} s", self.seconds),
            "unsupported" => "–".to_owned(),
            _ => "**FAIL**".to_owned(),
        }
    }
}

/// A row for each case and a column for each pair, in Markdown, and below it why cases failed.
pub(crate) fn table(entries: &[Entry], pairs: &[[String; 2]]) -> String {
    let mut text = String::from("| case |");
    for [client, server] in pairs {
        write!(text, " {client} → {server} |").expect("a string takes all");
    }
    writeln!(text, "\n| --- |{}", " --- |".repeat(pairs.len())).expect("a string takes all");
    for case in &CASES {
        let of = |[client, server]: &[String; 2]| {
            entries
                .iter()
                .find(|entry| entry.case == case.name && entry.client == *client && entry.server == *server)
        };
        if pairs.iter().all(|pair| of(pair).is_none()) {
            continue;
        }
        write!(text, "| {} ({}) |", case.name, case.letter).expect("a string takes all");
        for pair in pairs {
            let cell = of(pair).map(Entry::cell).unwrap_or_default();
            write!(text, " {cell} |").expect("a string takes all");
        }
        text.push('\n');
    }
    for entry in entries {
        if let Some(reason) = &entry.reason {
            let Entry { case, client, server, .. } = entry;
            writeln!(text, "\n{case}, {client} → {server}: {reason}").expect("a string takes all");
        }
    }
    text
}

/// `text` with `table` between the marks of this `name`.
///
/// # Errors
/// The marks are not there.
pub(crate) fn with_table(text: &str, name: &str, table: &str) -> anyhow::Result<String> {
    let (begin, end) = (format!("<!-- {name}: begin -->\n"), format!("<!-- {name}: end -->"));
    let (before, rest) = text.split_once(&begin).context("there is no mark where the table begins")?;
    let (_, after) = rest.split_once(&end).context("there is no mark where the table ends")?;
    Ok(format!("{before}{begin}{table}{end}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_shows_every_pair_and_says_why_a_case_failed() {
        let pairs = [["a", "b"], ["b", "a"]].map(|pair| pair.map(str::to_owned));
        let failed = CaseOutcome::Failed("lost".to_owned());
        let entries = [
            Entry::new("retry", ["a", "b"], CaseOutcome::Passed, 1.25),
            Entry::new("retry", ["b", "a"], failed, 2.0),
            Entry::new("v2", ["b", "a"], CaseOutcome::Unsupported, 0.1),
        ];
        let table = table(&entries, &pairs);
        assert_eq!(
            table,
            "| case | a → b | b → a |\n| --- | --- | --- |\n| retry (S) | ok 1.2 s | **FAIL** |\n\
             | v2 (V2) |  | – |\n\nretry, b → a: lost\n"
        );
        let page = |table: &str| format!("x\n<!-- a: begin -->\n{table}<!-- a: end -->\ny");
        assert_eq!(with_table(&page("old\n"), "a", "new\n").unwrap(), page("new\n"));
        assert!(with_table(&page(""), "b", "").is_err());
    }
}
