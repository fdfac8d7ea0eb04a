//! The results of videos: tables in Markdown, and a drawing of distributions (HotNets 2023, Fig. 2).

mod compare;
mod figure;
mod goals;
#[cfg(test)]
mod tests;

pub use compare::{ReceiverView, Row, rows};
pub use figure::figure;
pub use goals::{VideoGoal, goals};

use crate::experiment::video::VideoOutcome;
use std::fmt::Write;

/// A table for each pair of channels and receiver, and what became of the goals.
pub fn markdown(outcomes: &[VideoOutcome]) -> String {
    let mut text = String::new();
    for receiver in ReceiverView::ALL {
        let rows = rows(outcomes, receiver);
        let mut channels: Vec<&str> = rows.iter().map(|row| row.channels.as_str()).collect();
        channels.dedup();
        for channels in channels {
            table(&mut text, receiver, rows.iter().filter(|row| row.channels == channels), channels);
        }
    }
    let goals = goals(outcomes);
    if !goals.is_empty() {
        text.push_str("| goal | measured | |\n| --- | --- | --- |\n");
    }
    for VideoGoal { says, measured, met } in goals {
        let verdict = if met { "met" } else { "missed" };
        put(&mut text, format_args!("| {says} | {measured} | {verdict} |\n"));
    }
    text
}

fn table<'a>(text: &mut String, receiver: ReceiverView, rows: impl Iterator<Item = &'a Row>, channels: &str) {
    put(text, format_args!("**{channels}, {}**\n\n", receiver.label()));
    text.push_str(
        "| scheme | latency p50 | p95 | p99 | SSIM | p5 | freezes | frozen | all layers | base only | not shown | \
         on URLLC |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for row in rows {
        put(
            text,
            format_args!(
                "| {} | {} ms | {} ms | {} ms | {:.4} | {:.3} | {:.1}/min | {:.1} % | {:.1} % | {:.1} % | {:.1} % | \
                 {:.1} % |\n",
                row.scheme,
                milliseconds(row.latency.p50),
                milliseconds(row.latency.p95),
                milliseconds(row.latency.p99),
                row.ssim.mean,
                row.ssim.p5,
                row.freezes_a_minute,
                row.frozen * 100.0,
                row.depths[2] * 100.0,
                row.depths[0] * 100.0,
                row.missing * 100.0,
                row.urllc_share * 100.0
            ),
        );
    }
    text.push('\n');
}

fn milliseconds(value: f64) -> String {
    if value < 99.95 { format!("{value:.1}") } else { format!("{value:.0}") }
}

fn put(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments).expect("writing to a string does not fail");
}
