//! The goals about channels as they are, in short: the bounds are what is reached today, not what is wanted. `make goals` holds
//! the whole grids against what is wanted, with intervals.

use hvq_lab::experiment::campaign::{Record, Scope, Task, tasks};
use hvq_lab::experiment::definition::{Axis, Cell, Definition, Measure, builtin};
use hvq_lab::experiment::pages::Scheme;
use hvq_lab::experiment::pool;
use hvq_lab::experiment::statistics::Results;
use std::thread::available_parallelism;

/// Repetitions at least: with one, a single load moves the mean of a cell by several per cent.
const REPETITIONS: u32 = 3;

/// The experiment `name` with these schemes only, and the results of its first look in the cells that `keep` says.
fn first_look(
    name: &str,
    schemes: &[&str],
    keep: impl Fn(&Definition, Cell) -> bool,
) -> (Definition, Vec<Record>) {
    let mut definition = builtin(name).expect("it is compiled in").expect("it is well-formed");
    definition.schemes = schemes.iter().map(|name| scheme(name)).collect();
    definition.quick.stretches = definition.quick.stretches.max(REPETITIONS);
    let wanted: Vec<Task> = tasks(&definition, Scope::Quick)
        .into_iter()
        .filter(|task| task.key.cell_of(&definition).is_some_and(|cell| keep(&definition, cell)))
        .collect();
    let jobs = available_parallelism().map_or(1, usize::from);
    let run = |task: &Task| task.run(&definition).expect("the traces are compiled in");
    let records = pool::run(&wanted, jobs, run, |_| ());
    (definition, records)
}

fn scheme(name: &str) -> Scheme {
    name.parse().expect("a scheme's name")
}

/// `measure` of hvc in every cell, by the cell in words, the least first.
fn sorted(definition: &Definition, records: &[Record], measure: &Measure) -> Vec<(String, f64)> {
    sorted_of(definition, records, measure, scheme("hvc"))
}

/// The same of another scheme.
fn sorted_of(
    definition: &Definition,
    records: &[Record],
    measure: &Measure,
    scheme: Scheme,
) -> Vec<(String, f64)> {
    let results = Results::new(definition, records);
    let value = |cell: Cell| {
        let estimate = results.estimate(measure, cell, scheme)?;
        Some((definition.matrix.describe(cell, &[]), estimate.value))
    };
    let mut values: Vec<(String, f64)> = definition.matrix.cells().into_iter().filter_map(value).collect();
    values.sort_by(|one, other| one.1.total_cmp(&other.1));
    values
}

/// Asserts that the least of `values` is at least `least`, and their mean at least `mean`.
fn assert_reaches(values: &[(String, f64)], least: f64, mean: f64) {
    let average = values.iter().map(|(_, value)| value).sum::<f64>() / values.len() as f64;
    println!("least {:?}, mean {average:.1}", values.first());
    assert!(values.first().is_some_and(|(_, value)| *value >= least), "{values:?}");
    assert!(average >= mean, "{average}: {values:?}");
}

#[test]
fn two_ordinary_links_are_as_quick_as_is_known() {
    let (definition, records) = first_look("links", &["embb", "urllc", "hvc"], |_, _| true);
    assert_reaches(&sorted(&definition, &records, &Measure::Single), 68.0, 110.0);
}

#[test]
fn two_ordinary_links_up_are_as_quick_as_is_known() {
    let (definition, records) = first_look("links-upload", &["embb", "urllc", "hvc"], |_, _| true);
    assert_reaches(&sorted(&definition, &records, &Measure::Single), 76.0, 113.0);
}

#[test]
fn pages_gain_what_is_known_with_nothing_told_the_client_told_and_both() {
    let shown = ["LB-S", "MM-D", "40 ms"];
    let keep = |definition: &Definition, cell| shown.contains(&definition.matrix.label(cell, Axis::Embb));
    let (definition, records) = first_look("untold", &["embb", "hvc"], keep);
    let gains = sorted(&definition, &records, &Measure::Gain);
    let told = |by: &str| gains.iter().filter(|(cell, _)| cell.ends_with(by)).cloned().collect::<Vec<_>>();
    assert_reaches(&told("both"), 19.5, 23.0);
    assert_reaches(&told("client"), 19.5, 22.5);
    assert_reaches(&told("none"), 18.0, 18.5);
}

#[test]
fn knowledge_that_is_wrong_and_a_channel_that_is_shared_cost_what_is_known() {
    let (definition, records) = first_look("wrong", &["embb", "hvc"], |definition, cell| {
        definition.matrix.label(cell, Axis::Embb) == "LB-D"
    });
    assert_reaches(&sorted(&definition, &records, &Measure::Gain), -5.0, 22.0);
    let (definition, records) = first_look("taken", &["embb", "hvc"], |definition, cell| {
        definition.matrix.label(cell, Axis::Embb) == "LB-D"
    });
    assert_reaches(&sorted(&definition, &records, &Measure::Gain), -3.0, 15.0);
}

#[test]
fn a_server_of_somebody_else_is_made_to_spare_the_narrow_channel() {
    let foreign = ["foreign:min-rtt", "foreign:round-robin"];
    let (definition, records) = first_look("foreign", &[&["embb"], &foreign[..]].concat(), |_, _| true);
    for name in foreign {
        let gains = sorted_of(&definition, &records, &Measure::Gain, scheme(name));
        assert_reaches(&gains, 0.0, 5.0);
    }
}
