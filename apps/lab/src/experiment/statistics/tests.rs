use super::*;
use crate::experiment::campaign::{Record, Scope, tasks};
use crate::experiment::definition::{Definition, Measure};
use crate::experiment::pages::Scheme;
use std::collections::BTreeMap;

const TEXT: &str = r#"
name = "a"
title = "A"
source = "Table 1"
schemes = ["embb", "ideal", "below:dchannel", "hvc"]
stretches = 2

[page]
pages = ["p05", "p07"]

[matrix]
loss = ["0", "1%"]

[[published]]
scheme = "below:dchannel"
along = "loss"
values = { "0" = 12 }

[[goals]]
number = 2
says = "1.25 times the share of the gap"
of = { measure = "gap", scheme = "hvc" }
at_least = { measure = "gap", scheme = "below:dchannel", times = 1.25 }

[[goals]]
number = 7
says = "no page 1 % slower"
of = { measure = "worst", scheme = "hvc", at = { loss = "0" } }
at_most = 1

[[goals]]
number = 1
says = "as published"
of = { scheme = "below:dchannel" }
near_published = 3

[[goals]]
number = 1
says = "in order"
order = ["hvc", "below:dchannel", "embb"]

[[goals]]
number = 5
says = "loss costs no gain"
of = { scheme = "hvc", at = { loss = "1%" } }
at_least = { scheme = "hvc", at = { loss = "0" } }
"#;

fn definition() -> Definition {
    Definition::parse("a.toml", TEXT).expect("it is well-formed")
}

/// Page p05 takes 1000 ms with eMBB alone and 500 with the ideal channel, p07 twice that.
fn records(definition: &Definition) -> Vec<Record> {
    let record = |task: &crate::experiment::campaign::Task| {
        let lossy = task.key.cell.values().any(|label| label == "1%");
        let time = match task.key.scheme.to_string().as_str() {
            "embb" => 1000.0,
            "ideal" => 500.0,
            "below:dchannel" => 900.0,
            _ if lossy => 880.0,
            _ => 800.0,
        };
        let scale = if task.key.subject == "p05" { 1.0 } else { 2.0 };
        let values = [("plt_ms", time * scale), ("embb_bytes", 900.0), ("urllc_bytes", 100.0)];
        Record {
            basis: String::new(),
            key: task.key.clone(),
            values: values.map(|(name, value)| (name.to_owned(), value)).into(),
            failure: None,
        }
    };
    tasks(definition, Scope::default()).iter().map(record).collect()
}

fn scheme(name: &str) -> Scheme {
    name.parse().expect("a scheme's name")
}

#[test]
fn estimates_hold_each_run_against_the_same_stretch() {
    let definition = definition();
    let records = records(&definition);
    let results = Results::new(&definition, &records);
    let cell = definition.matrix.cells()[0];
    let value = |measure: &str, name: &str| {
        let measure = Measure::try_from(measure.to_owned()).expect("a measure");
        results.estimate(&measure, cell, scheme(name)).map(|estimate| estimate.value)
    };
    assert_eq!((value("gain", "hvc"), value("gap", "hvc")), (Some(20.0), Some(40.0)));
    assert_eq!((value("gain", "embb"), value("gap", "ideal")), (Some(0.0), Some(100.0)));
    assert_eq!((value("mean", "hvc"), value("p95", "hvc")), (Some(1200.0), Some(1600.0)));
    assert_eq!((value("worst", "hvc"), value("urllc", "hvc")), (Some(-20.0), Some(10.0)));
    assert_eq!((value("embb_bytes", "hvc"), value("ssim", "hvc")), (Some(900.0), None));
    assert_eq!(value("mean", "min-rtt"), None);
    assert_eq!((results.len(), results.runs(cell, scheme("hvc"))), (32, (4, 0)));
}

#[test]
fn a_run_that_failed_counts_as_failed_and_takes_its_partners_along() {
    let definition = definition();
    let mut records = records(&definition);
    let failed = records.iter_mut().find(|record| {
        record.key.scheme == Scheme::EmbbAlone && record.key.subject == "p07" && record.key.stretch == 0
    });
    let failed = failed.expect("it was run");
    (failed.values, failed.failure) = (BTreeMap::new(), Some("late".to_owned()));
    let results = Results::new(&definition, &records);
    let cell = definition.matrix.cells()[0];
    let estimate = |measure, name| results.estimate(&measure, cell, scheme(name)).map(|found| found.value);
    assert_eq!(estimate(Measure::Failed, "embb"), Some(25.0));
    assert_eq!(estimate(Measure::Gain, "hvc"), Some(20.0));
}

#[test]
fn an_interval_holds_the_estimate_and_narrows_with_more_units() {
    let mean = |units: &[&f64]| Some(units.iter().copied().sum::<f64>() / units.len() as f64);
    let of = |count: u32| {
        let units: Vec<f64> = (0..count).map(|index| f64::from(index % 10)).collect();
        Estimate::of(&units, mean).expect("it is defined")
    };
    let (few, many) = (of(10), of(1000));
    assert!(few.low < 4.5 && few.high > 4.5 && few.value == 4.5, "{few:?}");
    assert!(many.half_width() < few.half_width() / 5.0, "{many:?}");
    assert_eq!(Estimate::of(&[3.0], mean), Some(Estimate::exactly(3.0)));
}

#[test]
fn goals_are_met_or_missed_by_their_numbers() {
    let definition = definition();
    let records = records(&definition);
    let found = verdicts(&Results::new(&definition, &records));
    let met: Vec<Option<bool>> = found.iter().map(Verdict::is_met).collect();
    // With loss hvc closes 24 % of the gap, where 25 are wanted, and gains less than without.
    assert_eq!(met, [Some(false), Some(true), Some(true), Some(true), Some(false)]);
    assert_eq!((found[0].met(), found[0].checks.len()), (1, 2));
    let missed = &found[0].checks[1];
    assert_eq!((missed.place.as_str(), missed.measured.as_str()), ("1%", "24.0 %"));
    assert_eq!((found[2].checks.len(), found[2].checks[0].wanted.as_str()), (1, "12.0 % ± 3"));
    let nothing = verdicts(&Results::new(&definition, &[]));
    assert!(nothing.iter().all(|verdict| verdict.is_met().is_none()));
}

#[test]
fn quantiles_are_values_that_were_measured() {
    let sorted = [1.0, 2.0, 3.0, 4.0, 100.0];
    assert_eq!((quantile(&sorted, 0.5), quantile(&sorted, 1.0)), (Some(3.0), Some(100.0)));
    assert_eq!(quantile(&[], 0.5), None);
}
