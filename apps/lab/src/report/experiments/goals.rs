//! The goals, each with its numbers.

use crate::experiment::statistics::{Check, Verdict};
use crate::report::page::{self, note};
use crate::report::svg::escape;

const NOTE: &str = "A goal is met if its numbers are met in every cell that was measured; where it is missed, the cells that miss \
    it are listed. It is held against estimates, without regard to their confidence intervals. Experiments run on the held-out half of \
    pages, stretches of traces and seeds unless they say otherwise: parameters were chosen on the other half.";

/// The subjects of the project's goals, by number.
const GOALS: [&str; 8] = [
    "validity of DChannel",
    "hvc without input",
    "priorities",
    "BBR",
    "loss of 1 %",
    "bulk",
    "wrong knowledge",
    "errors of rewards",
];

/// A tile for each goal of the project: met or missed, and in how many of its numbers.
fn tiles(verdicts: &[Verdict]) -> String {
    let tile = |(number, about): (u32, &str)| {
        let own = || verdicts.iter().filter(|verdict| verdict.number == number);
        let checks: usize = own().map(|verdict| verdict.checks.len()).sum();
        let met: usize = own().map(Verdict::met).sum();
        let (class, said) = match checks {
            0 => ("", "not run"),
            _ if met == checks && own().all(|verdict| verdict.is_met().is_some()) => ("good", "met"),
            _ if met == checks => ("", "in part"),
            _ => ("bad", "missed"),
        };
        let count = if checks == 0 { String::new() } else { format!(" <small>{met} of {checks}</small>") };
        format!(
            "<div class=\"tile\"><span>Goal {number}</span><span>{about}</span>\
             <strong class=\"{class}\">{said}{count}</strong></div>"
        )
    };
    let tiles: String = (1..).zip(GOALS).map(tile).collect();
    format!("<div class=\"tiles\">{tiles}</div>\n")
}

/// All goals by number.
pub(super) fn section(verdicts: &[Verdict]) -> String {
    if verdicts.is_empty() {
        return String::new();
    }
    let mut sorted: Vec<&Verdict> = verdicts.iter().collect();
    sorted.sort_by_key(|verdict| verdict.number);
    let rows: String = sorted.into_iter().map(row).collect();
    let body = format!(
        "{}<div class=\"scroll\"><table class=\"goals\">\n<thead><tr><th>goal</th><th>what is wanted</th><th>verdict</th>\
         <th>numbers</th></tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n{}",
        tiles(verdicts),
        note(NOTE)
    );
    page::section("Goals", &body)
}

fn row(verdict: &Verdict) -> String {
    let Verdict { number, says, why, experiment, checks } = verdict;
    let missed = verdict.is_met() == Some(false) && !why.is_empty();
    let why = if missed { format!("<p class=\"why\">{}</p>", escape(why)) } else { String::new() };
    let (class, said) = match verdict.is_met() {
        Some(true) => ("good", "met".to_owned()),
        Some(false) if checks.len() == 1 => ("bad", "missed".to_owned()),
        Some(false) => ("bad", format!("missed in {} of {}", checks.len() - verdict.met(), checks.len())),
        None => ("", "not run".to_owned()),
    };
    format!(
        "<tr><td>{number}</td><td class=\"says\">{} <a href=\"#{experiment}\">{experiment}</a></td>\
         <td><span class=\"{class}\">{said}</span></td><td class=\"numbers\">{}{why}</td></tr>\n",
        escape(says),
        numbers(checks)
    )
}

/// The checks that are missed, or else the first, and the rest to be unfolded.
fn numbers(checks: &[Check]) -> String {
    let (missed, met): (Vec<&Check>, Vec<&Check>) = checks.iter().partition(|check| !check.met);
    let list = |checks: &[&Check]| checks.iter().map(|check| line(check)).collect::<String>();
    let folded = |title: &str, checks: &[&Check]| match checks {
        [] => String::new(),
        some => format!("<details><summary>{} {title}</summary>{}</details>", some.len(), list(some)),
    };
    let (shown, more) = missed.split_at(missed.len().min(3));
    format!("{}{}{}", list(shown), folded("more missed", more), folded("met", &met))
}

fn line(check: &Check) -> String {
    let Check { place, measured, wanted, met } = check;
    let class = if *met { "good" } else { "bad" };
    let place = if place.is_empty() { String::new() } else { format!("{}: ", escape(place)) };
    format!(
        "<div>{place}<span class=\"{class}\">{}</span>, wanted {}</div>",
        escape(measured),
        escape(wanted)
    )
}
