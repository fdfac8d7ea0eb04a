use super::*;
use crate::experiment::outages::named;

/// The outcome of a cell with `policy` that took `both` where `allowed` was allowed.
fn outcome(cell: &str, policy: &str, both: Option<f64>, verdict: OutageVerdict) -> OutageOutcome {
    OutageOutcome {
        cell: cell.to_owned(),
        kind: named("gateway-both-9s", 1).expect("a named cell").kind,
        setting: "a page".to_owned(),
        policy: policy.to_owned(),
        embb_ms: Some(1_000.0),
        urllc_ms: None,
        both_ms: both,
        allowed_ms: Some(1_400.0),
        verdict,
        failure: None,
        scene: None,
    }
}

fn outcomes() -> [OutageOutcome; 4] {
    [
        outcome("1", "hvc", Some(900.0), OutageVerdict::InTime),
        outcome("1", "min-rtt", Some(2_400.0), OutageVerdict::Late),
        outcome("2", "hvc", None, OutageVerdict::Never),
        outcome("2", "min-rtt", Some(3_400.0), OutageVerdict::Late),
    ]
}

#[test]
fn verdicts_are_counted_by_policy_and_by_kind_of_outage() {
    let text = markdown(&outcomes());
    for row in [
        "| hvc | 2 | 1 | 0 | 0 | 1 |  |",
        "| min-rtt | 2 | 0 | 0 | 2 | 0 | 2.0 s |",
        "| all | 4 | 1 | 0 | 2 | 1 | 2.0 s |",
        "| both at once | 4 | 1 | 0 | 2 | 1 | 2.0 s |",
    ] {
        assert!(text.lines().any(|line| line == row), "{row}\n{text}");
    }
}

#[test]
fn the_worst_cells_come_first_each_with_its_command_and_its_other_policies() {
    let replay = |outcome: &OutageOutcome| format!("again {} {}", outcome.cell, outcome.policy);
    let text = worst(&outcomes(), 10, replay);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("never: cell 2, hvc: both never, eMBB alone 1000 ms"), "{text}");
    assert_eq!(lines[1..3], ["    again 2 hvc", "    and 1 more: min-rtt 3400 ms"]);
    assert!(lines[3].starts_with("late: cell 1, min-rtt: both 2400 ms"), "{text}");
    assert_eq!(worst(&outcomes(), 1, replay).lines().count(), 3);
    assert_eq!(worst(&outcomes()[..1], 1, replay), "");
}
