//! Tables for a terminal and for documentation, in Markdown.

use super::compare::{Comparison, comparisons};
use super::throughput::published;
use crate::experiment::controllers::{Milliseconds, Outcome};

/// A table for each setting.
pub fn markdown(outcomes: &[Outcome]) -> String {
    let rows = comparisons(outcomes);
    let mut text = String::new();
    let mut setting = None;
    for row in &rows {
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

fn head(row: &Comparison<'_>) -> String {
    format!(
        "**eMBB {}** (goodput in Mbit/s; eMBB queue p50/p95/p99 in ms)\n\n\
         | controller | eMBB alone | steered below | the paper's | hvq | of CUBIC | queue alone | queue with hvq | goal |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
        row.setting
    )
}

fn line(row: &Comparison<'_>) -> String {
    let goodput = |outcome: Option<&Outcome>| {
        outcome.map_or_else(String::new, |outcome| format!("{:.1}", outcome.goodput))
    };
    let queue = |outcome: Option<&Outcome>| {
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
