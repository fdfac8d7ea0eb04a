//! The goals, each with its numbers.

use crate::experiment::statistics::{Check, Decision, GoalVerdict};
use crate::report::page::{self, note};
use crate::report::svg::escape;

const NOTE: &str = "A number is met if the whole 95 % interval of the difference from what is wanted lies on the wanted side, missed \
    if all of it lies on the other, and undecided between: more runs would tell. Brackets hold the interval of what was measured. \
    A goal is met if its numbers are met in every cell, and missed if one is missed. With one in twenty intervals beside the truth by \
    chance, one of many cells may be too. Experiments run on the held-out half of \
    pages, stretches of traces and seeds unless they say otherwise: parameters were chosen on the other half.";

/// The subjects of the project's goals, by number.
const GOALS: [&str; 15] = [
    "validity of DChannel",
    "hvc without input",
    "priorities",
    "BBR",
    "loss of 1 %",
    "bulk",
    "wrong knowledge",
    "errors of rewards",
    "video in layers",
    "nothing told",
    "two ordinary links",
    "told",
    "wrong or shared",
    "a foreign sender",
    "the viewer's quality",
];

/// A tile for each goal of the project: met or missed, and in how many of its numbers.
fn tiles(verdicts: &[GoalVerdict]) -> String {
    let tile = |(number, about): (u32, &str)| {
        let own = || verdicts.iter().filter(|verdict| verdict.number == number);
        let checks: usize = own().map(|verdict| verdict.checks.len()).sum();
        let met: usize = own().map(|verdict| verdict.count(Decision::Met)).sum();
        let (class, said) = match own().filter_map(GoalVerdict::decision).max() {
            None => ("", "not run"),
            Some(Decision::Met) if own().any(|verdict| verdict.checks.is_empty()) => ("", "in part"),
            Some(decision) => (class(decision), decision.name()),
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
pub(super) fn section(verdicts: &[GoalVerdict]) -> String {
    if verdicts.is_empty() {
        return String::new();
    }
    let mut sorted: Vec<&GoalVerdict> = verdicts.iter().collect();
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

/// The class of a decision's colour.
const fn class(decision: Decision) -> &'static str {
    match decision {
        Decision::Met => "good",
        Decision::Undecided => "",
        Decision::Missed => "bad",
    }
}

/// A verdict in words.
fn said(verdict: &GoalVerdict) -> String {
    match verdict.decision() {
        None => "not run".to_owned(),
        Some(decision) if decision == Decision::Met || verdict.checks.len() == 1 => {
            decision.name().to_owned()
        }
        Some(decision) => {
            format!("{} in {} of {}", decision.name(), verdict.count(decision), verdict.checks.len())
        }
    }
}

fn row(verdict: &GoalVerdict) -> String {
    let GoalVerdict { number, says, experiment, checks, .. } = verdict;
    format!(
        "<tr><td>{number}</td><td class=\"says\">{} <a href=\"#{experiment}\">{experiment}</a></td>\
         <td><span class=\"{}\">{}</span></td><td class=\"numbers\">{}</td></tr>\n",
        escape(says),
        verdict.decision().map_or("", class),
        said(verdict),
        numbers(checks)
    )
}

/// The checks that are missed, or else the first, and the rest to be unfolded.
fn numbers(checks: &[Check]) -> String {
    let with = |decision| checks.iter().filter(|check| check.decision == decision).collect::<Vec<_>>();
    let [missed, undecided, met] = [Decision::Missed, Decision::Undecided, Decision::Met].map(with);
    let list = |checks: &[&Check]| checks.iter().map(|check| line(check)).collect::<String>();
    let folded = |title: &str, checks: &[&Check]| match checks {
        [] => String::new(),
        some => format!("<details><summary>{} {title}</summary>{}</details>", some.len(), list(some)),
    };
    let (shown, more) = missed.split_at(missed.len().min(3));
    let rest = [("more missed", more), ("undecided", &undecided), ("met", &met)];
    list(shown) + &rest.map(|(title, checks)| folded(title, checks)).concat()
}

fn line(check: &Check) -> String {
    let Check { place, measured, wanted, decision, evidence } = check;
    let evidence = match evidence.as_str() {
        "" => String::new(),
        text => format!("<p class=\"why\">{}</p>", escape(text)),
    };
    let class = class(*decision);
    let place = if place.is_empty() { String::new() } else { format!("{}: ", escape(place)) };
    format!(
        "<div>{place}<span class=\"{class}\">{}</span>, wanted {}{evidence}</div>",
        escape(measured),
        escape(wanted)
    )
}
