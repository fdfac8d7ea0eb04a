use super::*;
use crate::experiment::pages::{ChannelUse, Scheme};
use std::collections::BTreeMap;

fn outcome(page: &str, scheme: &str, plt_ms: Option<f64>) -> PageOutcome {
    let scheme: Scheme = scheme.parse().expect("a scheme's name");
    let urllc = if scheme == Scheme::EmbbAlone { 0 } else { 100 };
    PageOutcome {
        page: page.to_owned(),
        channels: "LB-S".to_owned(),
        scheme,
        repetition: 0,
        plt_ms,
        embb: ChannelUse { up: 100, down: 800 },
        urllc: ChannelUse { up: 0, down: urllc },
        noted: BTreeMap::new(),
        progress_ms: Vec::new(),
        ends_ms: Vec::new(),
        failure: plt_ms.is_none().then(|| "late".to_owned()),
    }
}

fn outcomes() -> Vec<PageOutcome> {
    let times = [("embb", 1000.0, 2000.0), ("ideal", 500.0, 1000.0), ("hvc", 800.0, 1600.0)];
    times
        .into_iter()
        .flat_map(|(scheme, p1, p2)| [outcome("p1", scheme, Some(p1)), outcome("p2", scheme, Some(p2))])
        .collect()
}

#[test]
fn a_gain_is_that_of_the_mean_and_held_against_the_limit() {
    let rows = comparisons(&outcomes());
    let [embb, ideal, hvc] = &rows[..] else { panic!("three schemes: {rows:?}") };
    assert_eq!((embb.mean, embb.gain, embb.of_gap), (1500.0, None, None));
    assert_eq!((ideal.gain, ideal.of_gap), (Some(0.5), Some(1.0)));
    assert_eq!((hvc.mean, hvc.gain, hvc.of_gap), (1200.0, Some(0.2), Some(0.4)));
    assert_eq!((hvc.urllc_share, embb.urllc_share), (0.1, 0.0));
    // Saved 200 and 400 ms: deviation 141.4, of the mean of two 100, 196 of 1500.
    assert!(hvc.confidence.is_some_and(|half| (half - 196.0 / 1500.0).abs() < 1e-3), "{hvc:?}");
}

#[test]
fn a_load_that_failed_is_counted_and_compared_with_nothing() {
    let mut outcomes = outcomes();
    outcomes.push(outcome("p3", "embb", Some(90_000.0)));
    outcomes.push(outcome("p3", "hvc", None));
    let rows = comparisons(&outcomes);
    assert_eq!((rows[2].loads, rows[2].failed, rows[2].gain), (2, 1, Some(0.2)));
}

#[test]
fn a_table_has_a_line_for_each_scheme() {
    let text = markdown(&outcomes());
    assert!(text.starts_with("**eMBB LB-S**"), "{text}");
    assert!(
        text.contains("| hvc | 2 | 1200 |") && text.contains("20.0 ± 13.1 % | 40.0 % | 10.0 % | 0 |"),
        "{text}"
    );
}
