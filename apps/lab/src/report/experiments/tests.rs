use super::*;
use crate::experiment::campaign::{Record, Scope, tasks};
use crate::experiment::definition::Definition;

const TEXT: &str = r#"
name = "small"
title = "Loss & delay"
source = "Table 1"
differs = "Ours is <other>."
schemes = ["embb", "ideal", "below:dchannel", "hvc"]
stretches = 2

[page]
pages = ["p05", "p07"]

[matrix]
embb = ["MM-S", "LB-D"]
loss = ["0", "1%"]

[plot]
kind = "bars"
along = "loss"

[[published]]
scheme = "below:dchannel"
along = "loss"
at = { embb = "MM-S" }
values = { "1%" = 5.5 }

[[goals]]
number = 5
says = "closes 30 %"
of = { measure = "gap", scheme = "hvc" }
at_least = 30
"#;

fn report(text: &str) -> String {
    let definition = Definition::parse("small.toml", text).expect("it is well-formed");
    let record = |task: &crate::experiment::campaign::Task| {
        let time = match task.key.scheme.to_string().as_str() {
            "embb" => 1000.0,
            "ideal" => 500.0,
            "hvc" => 800.0,
            _ => 900.0,
        };
        Record {
            basis: String::new(),
            key: task.key.clone(),
            values: [("plt_ms".to_owned(), time)].into(),
            failure: None,
        }
    };
    let records: Vec<Record> = tasks(&definition, Scope::default()).iter().map(record).collect();
    html(&[Results::new(&definition, &records)], &["other".to_owned()])
}

#[test]
fn the_report_needs_nothing_else_and_shows_ours_beside_the_published_values() {
    let page = report(TEXT);
    for part in [
        "<section id=\"small\"><h2>Loss &amp; delay</h2>",
        "<h3>MM-S</h3>",
        "paper 5.5",
        "class=\"paper\"",
        "Ours is &lt;other&gt;.",
        "hvc: 20.0 % (20.0 % to 20.0 %)",
        "<span class=\"good\">met</span>",
        "Not run: other.",
        "prefers-color-scheme: dark",
        "64 runs",
    ] {
        assert!(page.contains(part), "{part}");
    }
    for outside in ["src=", "http://", "https://", "@import", "NaN", "inf"] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert_eq!(page.matches("<svg viewBox=\"0 0 420").count(), 4);
}

#[test]
fn lines_are_drawn_through_all_values_of_the_axis() {
    let page = report(&TEXT.replace("kind = \"bars\"", "kind = \"lines\""));
    assert_eq!(page.matches("<polyline class=\"line s2\"").count(), 2);
    assert!(!page.contains("NaN"));
}

#[test]
fn a_report_without_results_says_so() {
    let definition = Definition::parse("small.toml", TEXT).expect("it is well-formed");
    let page = html(&[Results::new(&definition, &[])], &[]);
    assert!(page.contains("not run") && !page.contains("NaN"));
}

#[test]
fn a_goal_that_is_missed_has_the_measurements_beside_it() {
    assert!(!report(TEXT).contains("class=\"why\""));
    let missed = report(&TEXT.replace("at_least = 30", "at_least = 90"));
    assert!(missed.contains("<p class=\"why\">hvc 800; embb 1000</p>"), "{missed}");
}

#[test]
fn a_first_look_is_called_one() {
    let note = "no decision about them stands";
    assert!(!report(TEXT).contains(note));
    let definition = Definition::parse("small.toml", TEXT).expect("it is well-formed");
    let one = tasks(&definition, Scope::Quick).into_iter().map(|task| Record {
        basis: String::new(),
        key: task.key,
        values: [("plt_ms".to_owned(), 1.0)].into(),
        failure: None,
    });
    let records: Vec<Record> = one.collect();
    assert!(html(&[Results::new(&definition, &records)], &[]).contains(note));
    assert!(markdown(&Results::new(&definition, &records)).contains("A part of the experiment"));
}
