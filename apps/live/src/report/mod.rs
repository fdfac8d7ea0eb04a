//! The results, as tables for documents and as one page of HTML with drawings.

mod bars;
mod chaos;
mod load;
mod programs;
mod table;
mod web;

use crate::load::Round;
use crate::load::endurance::Turn;
use crate::programs::Outcome;
use crate::web::{Expected, Load};
pub use chaos::markdown as chaos;
use hvq_lab::report::page::{Page, note, section};
use std::fmt::Write;
use table::Table;

/// The results of all experiments.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// Programs of every day.
    pub programs: Vec<Outcome>,
    /// Pages in a browser.
    pub web: Vec<Load>,
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
        let page = Page {
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
