//! Tables of page loads: each scheme beside eMBB alone, load by load.

mod compare;
#[cfg(test)]
mod tests;

pub use compare::{PageComparison, comparisons};

use crate::experiment::pages::PageOutcome;

/// A table for each pair of channels, in Markdown.
pub fn markdown(outcomes: &[PageOutcome]) -> String {
    let mut text = String::new();
    let mut channels = None;
    for row in comparisons(outcomes) {
        if channels.as_ref() != Some(&row.channels) {
            if channels.is_some() {
                text.push('\n');
            }
            text.push_str(&head(&row.channels));
            channels = Some(row.channels.clone());
        }
        text.push_str(&line(&row));
    }
    text
}

fn head(channels: &str) -> String {
    format!(
        "**eMBB {channels}** (page load time in ms; gain is of the mean over eMBB alone, ± 95 % confidence)\n\n\
         | scheme | loads | mean | median | p95 | gain | of the gap | bytes on URLLC | failed |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
    )
}

fn line(row: &PageComparison) -> String {
    let percent =
        |share: Option<f64>| share.map_or_else(String::new, |share| format!("{:.1} %", share * 100.0));
    let gain = match (row.gain, row.confidence) {
        (Some(gain), Some(half)) => format!("{:.1} ± {:.1} %", gain * 100.0, half * 100.0),
        (gain, _) => percent(gain),
    };
    format!(
        "| {} | {} | {:.0} | {:.0} | {:.0} | {gain} | {} | {} | {} |\n",
        row.scheme,
        row.loads,
        row.mean,
        row.median,
        row.p95,
        percent(row.of_gap),
        percent(Some(row.urllc_share)),
        row.failed
    )
}
