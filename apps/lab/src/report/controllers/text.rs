//! Tables for a terminal and for documentation, in Markdown.

use super::compare::{ControllerComparison, ControllerVerdict, comparisons};
use super::throughput::published;
use crate::experiment::controllers::{ControllerOutcome, Milliseconds};

/// A table for each setting.
pub fn markdown(outcomes: &[ControllerOutcome]) -> String {
    tables(&comparisons(outcomes))
}

/// The table of the first setting, and one with the goodput in all others.
pub fn documentation(outcomes: &[ControllerOutcome]) -> String {
    let mut rows = comparisons(outcomes);
    let base = rows.first().map(|row| row.setting.clone()).unwrap_or_default();
    let others = rows.split_off(rows.iter().take_while(|row| row.setting == base).count());
    let text = tables(&rows);
    if others.is_empty() { text } else { format!("{text}\n{}", overview(&others)) }
}

/// A row for each controller, a column for each setting: goodput alone and with hvq, and what is missed of the goal.
fn overview(rows: &[ControllerComparison<'_>]) -> String {
    let mut settings: Vec<&str> = Vec::new();
    let mut controllers: Vec<&str> = Vec::new();
    for row in rows {
        for (known, name) in [(&mut settings, &row.setting), (&mut controllers, &row.controller)] {
            if !known.contains(&name.as_str()) {
                known.push(name);
            }
        }
    }
    let cell = |controller: &str, setting: &str| {
        let row = rows.iter().find(|row| row.controller == controller && row.setting == setting);
        row.map_or_else(String::new, |row| {
            let missed = match row.verdict {
                ControllerVerdict::Met => String::new(),
                missed => format!(", {missed}"),
            };
            format!("{} → {}{missed}", goodput(row.single), goodput(row.multipath))
        })
    };
    let mut text = format!(
        "**Elsewhere** (goodput in Mbit/s, eMBB alone → hvq, and what is missed of the goal)\n\n\
         | controller | {} |\n| --- |{}\n",
        settings.join(" | "),
        " --- |".repeat(settings.len())
    );
    for controller in controllers {
        let cells: Vec<String> = settings.iter().map(|setting| cell(controller, setting)).collect();
        text.push_str(&format!("| {controller} | {} |\n", cells.join(" | ")));
    }
    text
}

fn tables(rows: &[ControllerComparison<'_>]) -> String {
    let mut text = String::new();
    let mut setting = None;
    for row in rows {
        if setting != Some(&row.setting) {
            if setting.is_some() {
                text.push('\n');
            }
            text.push_str(&head(row));
            setting = Some(&row.setting);
        }
        text.push_str(&line(row));
    }
    text
}

fn head(row: &ControllerComparison<'_>) -> String {
    format!(
        "**eMBB {}** (goodput in Mbit/s; eMBB queue p50/p95/p99 in ms)\n\n\
         | controller | eMBB alone | steered below | the paper's | hvq | of CUBIC | queue alone | queue with hvq | goal |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
        row.setting
    )
}

fn goodput(outcome: Option<&ControllerOutcome>) -> String {
    outcome.map_or_else(String::new, |outcome| format!("{:.1}", outcome.goodput))
}

fn line(row: &ControllerComparison<'_>) -> String {
    let queue = |outcome: Option<&ControllerOutcome>| {
        outcome.map_or_else(String::new, |outcome| {
            let Milliseconds { p50, p95, p99, .. } = outcome.embb_queue.delay;
            format!("{p50:.1}/{p95:.1}/{p99:.1}")
        })
    };
    format!(
        "| {} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
        row.controller,
        goodput(row.single),
        goodput(row.steered),
        published(row).map_or_else(String::new, |rate| rate.to_string()),
        goodput(row.multipath),
        row.of_cubic.map_or_else(String::new, |share| format!("{:.1} %", share * 100.0)),
        queue(row.single),
        queue(row.multipath),
        row.verdict,
    )
}
