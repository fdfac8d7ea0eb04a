//! The results, as tables for documents and as one page of HTML with drawings.

mod bars;
mod chaos;
mod failover;
mod load;
mod programs;
mod table;
mod web;

use crate::error::LiveError;
use crate::load::Round;
use crate::load::endurance::Turn;
use crate::programs::ProgramOutcome;
use crate::web::{BrowserLoad, Expected};
pub use chaos::markdown as chaos;
pub use failover::{figure as failover_figure, markdown as failover};
use hvq_lab::report::page::{ReportPage, note, section};
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt::Write;
use table::Table;

/// The results of all experiments.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// Programs of every day.
    pub programs: Vec<ProgramOutcome>,
    /// Pages in a browser.
    pub web: Vec<BrowserLoad>,
    /// The times of the same loads in virtual time.
    pub expected: Vec<Expected>,
    /// Many requests.
    pub load: Vec<Round>,
    /// Millions of requests to one gateway.
    pub endurance: Vec<Turn>,
    /// The experiments that were left out, with their reasons.
    pub skipped: Vec<String>,
}

/// A part of the report.
struct Part {
    title: &'static str,
    tables: Vec<Table>,
    /// Drawings, as HTML.
    drawings: String,
    notes: Vec<String>,
}

impl Results {
    fn parts(&self) -> Vec<Part> {
        let parts = [
            web::part(&self.web, &self.expected),
            load::part(&self.load),
            load::endurance(&self.endurance),
            programs::part(&self.programs),
        ];
        parts.into_iter().flatten().collect()
    }

    /// Returns the results of the experiment `name`; none if it cannot be run, and then the reason is kept.
    pub fn or_skipped<T>(&mut self, name: &str, result: Result<Vec<T>, LiveError>) -> Vec<T> {
        result.unwrap_or_else(|error| {
            self.skipped.push(format!("{name}: {error}"));
            Vec::new()
        })
    }

    /// All results as JSON, each with the name of its experiment.
    ///
    /// # Errors
    /// None: numbers and texts are JSON.
    pub fn lines(&self) -> Result<Vec<Value>, serde_json::Error> {
        fn named<T: Serialize>(name: &str, all: &[T]) -> Result<Vec<Value>, serde_json::Error> {
            let one = |one| Ok(json!({ "experiment": name, "result": serde_json::to_value(one)? }));
            all.iter().map(one).collect()
        }
        let mut lines = named("programs", &self.programs)?;
        lines.extend(named("load", &self.load)?);
        lines.extend(named("endurance", &self.endurance)?);
        lines.extend(named("web", &self.web)?);
        lines.extend(named("web in virtual time", &self.expected)?);
        Ok(lines)
    }

    /// Tables for a document.
    pub fn markdown(&self) -> String {
        let mut text = String::new();
        let mut put = |block: &str| write!(text, "{block}\n\n").expect("writing to a string does not fail");
        for part in self.parts() {
            put(&format!("**{}**", part.title));
            part.tables.iter().for_each(|table| put(table.markdown().trim_end()));
            part.notes.iter().for_each(|note| put(note));
        }
        self.skipped.iter().for_each(|line| put(&format!("Left out: {line}")));
        format!("{}\n", text.trim_end())
    }

    /// A page that needs nothing else.
    pub fn html(&self) -> String {
        let mut body = String::new();
        for part in self.parts() {
            let tables: String = part.tables.iter().map(Table::html).collect();
            let notes: String =
                part.notes.iter().map(|text| note(&hvq_lab::report::svg::escape(text))).collect();
            body.push_str(&section(part.title, &format!("{}{tables}{notes}", part.drawings)));
        }
        for line in &self.skipped {
            body.push_str(&note(&format!("Left out: {}", hvq_lab::report::svg::escape(line))));
        }
        let page = ReportPage {
            title: "Real programs over emulated channels",
            lead: "What <code>hvq lab live</code> measured on this machine, in real time.",
            style: include_str!("style.css"),
            script: "",
        };
        page.html(&body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_said_in_both_forms() {
        let results = Results { skipped: vec!["<b>".to_owned()], ..Results::default() };
        assert_eq!(results.markdown(), "Left out: <b>\n");
        let html = results.html();
        assert!(html.contains("Left out: &lt;b&gt;") && html.contains("prefers-color-scheme: dark"));
    }
}
