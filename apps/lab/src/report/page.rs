//! A page of HTML that needs nothing else, in the reader's light or dark theme.

use crate::report::svg::escape;

/// The styles that all pages have.
pub(super) const BASE: &str = include_str!("base.css");

/// The parts of a page besides its sections.
#[derive(Clone, Copy, Debug)]
pub struct ReportPage<'a> {
    /// The title.
    pub title: &'a str,
    /// A sentence below it, as HTML.
    pub lead: &'a str,
    /// Styles beside those that all pages have.
    pub style: &'a str,
    /// A script.
    pub script: &'a str,
}

impl ReportPage<'_> {
    /// The page with `body` below the title.
    pub fn html(&self, body: &str) -> String {
        let Self { title, lead, style, script } = self;
        let title = escape(title);
        let script = if script.is_empty() { String::new() } else { format!("<script>\n{script}</script>\n") };
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
             <style>\n{BASE}{style}</style>\n</head>\n<body>\n<header><h1>{title}</h1><p>{lead}</p></header>\n{body}\
             {script}</body>\n</html>\n"
        )
    }
}

/// A section under `title` with `body` in HTML.
pub fn section(title: &str, body: &str) -> String {
    format!("<section><h2>{title}</h2>\n{body}</section>\n")
}

/// A remark in small type.
pub fn note(text: &str) -> String {
    format!("<p class=\"note\">{text}</p>\n")
}

/// Returns the legend of colours: the class of each and its label.
pub fn legend(entries: impl Iterator<Item = (String, String)>) -> String {
    let entry = |(class, label)| {
        format!(
            "<span><svg class=\"key\" viewBox=\"0 0 10 10\"><rect class=\"{class}\" width=\"10\" height=\"10\"/></svg>{label}</span>"
        )
    };
    format!("<p class=\"legend\">{}</p>\n", entries.map(entry).collect::<String>())
}

/// A table with `heads` and `rows` of cells in HTML.
pub fn table(heads: &[String], rows: &[Vec<String>]) -> String {
    let cells = |tag: &str, cells: &[String]| {
        cells.iter().map(|cell| format!("<{tag}>{cell}</{tag}>")).collect::<String>()
    };
    let rows: String = rows.iter().map(|row| format!("<tr>{}</tr>\n", cells("td", row))).collect();
    format!(
        "<div class=\"scroll\"><table>\n<thead><tr>{}</tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n",
        cells("th", heads)
    )
}
