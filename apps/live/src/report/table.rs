//! A table in both forms.

use hvq_lab::report::page;
use hvq_lab::report::svg::escape;

/// A table of text.
pub(super) struct Table {
    /// The caption above it, if there is one.
    pub(super) caption: String,
    pub(super) heads: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table.
    pub(super) fn new(caption: impl Into<String>, heads: &[&str]) -> Self {
        let heads = heads.iter().map(|head| (*head).to_owned()).collect();
        Self { caption: caption.into(), heads, rows: Vec::new() }
    }

    /// For a document.
    pub(super) fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | ").replace('\n', " "));
        let rule: Vec<String> = self.heads.iter().map(|_| "---".to_owned()).collect();
        let rows: String = self.rows.iter().map(|row| line(row)).collect();
        let caption = if self.caption.is_empty() { String::new() } else { format!("{}\n\n", self.caption) };
        format!("{caption}{}{}{rows}", line(&self.heads), line(&rule))
    }

    /// For a page.
    pub(super) fn html(&self) -> String {
        let escaped = |cells: &[String]| cells.iter().map(|cell| escape(cell)).collect::<Vec<_>>();
        let rows: Vec<Vec<String>> = self.rows.iter().map(|row| escaped(row)).collect();
        let caption = if self.caption.is_empty() {
            String::new()
        } else {
            format!("<h3>{}</h3>\n", escape(&self.caption))
        };
        format!("{caption}{}", page::table(&escaped(&self.heads), &rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_the_same_cells_in_both_forms() {
        let mut table = Table::new("<t>", &["a", "b"]);
        table.rows.push(vec!["1".to_owned(), "x & y".to_owned()]);
        assert_eq!(table.markdown(), "<t>\n\n| a | b |\n| --- | --- |\n| 1 | x & y |\n");
        assert!(table.html().contains("<h3>&lt;t&gt;</h3>") && table.html().contains("x &amp; y"));
    }
}
