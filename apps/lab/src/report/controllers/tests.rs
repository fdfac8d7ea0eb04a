use super::*;
use crate::experiment::controllers::{Queue, Series};

fn outcome(controller: &str, arrangement: Arrangement, goodput: f64, queue: f64) -> ControllerOutcome {
    ControllerOutcome {
        setting: "50 ms".to_owned(),
        embb: "rtt=50ms <x>".to_owned(),
        urllc: "rtt=5ms".to_owned(),
        controller: controller.to_owned(),
        arrangement,
        seconds: 1.0,
        seed: 1,
        capacity: 62.0,
        capacity_is_steady: true,
        goodput,
        throughput: goodput,
        urllc_share: 0.0,
        rtt: Milliseconds::default(),
        embb_queue: Queue {
            delay: Milliseconds { p95: queue, ..Milliseconds::default() },
            ..Queue::default()
        },
        urllc_queue: Queue::default(),
        lost: 0,
        spurious: 0,
        series: Series {
            step: 200.0,
            goodput: vec![goodput; 5],
            rtt: vec![Some([50.0, 51.0, 60.0]), None, Some([5.0, 20.0, 90.0]), None, None],
        },
        failure: None,
    }
}

fn outcomes() -> Vec<ControllerOutcome> {
    let of = |controller: &str, goodputs: [f64; 3], queues: [f64; 3]| {
        let arranged = Arrangement::ALL.into_iter().zip(goodputs.into_iter().zip(queues));
        arranged
            .map(|(arrangement, (goodput, queue))| outcome(controller, arrangement, goodput, queue))
            .collect::<Vec<_>>()
    };
    [
        of("cubic", [58.0, 57.0, 60.0], [100.0, 100.0, 104.0]),
        of("bbr", [56.0, 20.0, 58.0], [10.0, 1.0, 12.0]),
        of("vegas", [57.0, 2.5, 40.0], [1.0, 1.0, 1.5]),
        of("copa", [57.0, 2.5, 50.0], [1.0, 1.0, 9.0]),
    ]
    .concat()
}

#[test]
fn each_controller_is_held_against_cubic_and_against_itself() {
    let outcomes = outcomes();
    let verdicts: Vec<ControllerVerdict> = comparisons(&outcomes).iter().map(|row| row.verdict).collect();
    assert_eq!(
        verdicts,
        [
            ControllerVerdict::Met,
            ControllerVerdict::Queueing,
            ControllerVerdict::Slow,
            ControllerVerdict::SlowAndQueueing
        ]
    );
}

#[test]
fn cubic_is_held_against_the_capacity_where_it_is_steady() {
    let mut outcomes = outcomes();
    outcomes[2].goodput = 58.0;
    assert_eq!(comparisons(&outcomes)[0].verdict, ControllerVerdict::Slow);
    outcomes[2].capacity_is_steady = false;
    assert_eq!(comparisons(&outcomes)[0].verdict, ControllerVerdict::Met);
}

#[test]
fn a_broken_connection_is_no_success() {
    let mut outcomes = outcomes();
    outcomes[2].failure = Some("closed".to_owned());
    assert_eq!(comparisons(&outcomes)[0].verdict, ControllerVerdict::Failed);
}

#[test]
fn the_table_names_the_papers_values_beside_ours() {
    let text = markdown(&outcomes());
    assert!(text.contains("| bbr | 56.0 | 20.0 | 26.5 | 58.0 | 96.7 % |"), "{text}");
    assert!(text.contains("| copa | 57.0 | 2.5 |  | 50.0 |"), "{text}");
}

#[test]
fn the_report_needs_nothing_else_and_escapes_what_it_shows() {
    let page = html(&outcomes());
    for part in ["<polyline", "class=\"paper\"", "rtt=50ms &lt;x&gt;", "queue too long"] {
        assert!(page.contains(part), "{part}");
    }
    for part in ["http://", "https://", "src=", "NaN"] {
        assert!(!page.contains(part), "{part}");
    }
}

#[test]
fn what_documentation_shows_is_the_base_in_full_and_the_rest_in_one_table() {
    let mut outcomes = outcomes();
    let elsewhere: Vec<ControllerOutcome> = outcomes
        .iter()
        .cloned()
        .map(|outcome| ControllerOutcome { setting: "20 ms".to_owned(), ..outcome })
        .collect();
    outcomes.extend(elsewhere);
    let text = documentation(&outcomes);
    assert!(text.contains("**eMBB 50 ms**") && !text.contains("**eMBB 20 ms**"), "{text}");
    assert!(text.contains("| controller | 20 ms |\n| --- | --- |\n| cubic | 58.0 → 60.0 |\n"), "{text}");
    assert!(text.contains("| copa | 57.0 → 50.0, too slow, queue too long |\n"), "{text}");
    assert!(!documentation(&outcomes[..12]).contains("→"));
}

#[test]
fn the_figure_is_a_file_of_its_own() {
    let figure = figure(&outcomes());
    assert!(figure.starts_with("<svg xmlns=") && figure.ends_with("</svg>\n"), "{figure}");
    for part in ["<style>", "class=\"paper\"", "steered below", "cubic, hvq: 60.00 Mbit/s"] {
        assert!(figure.contains(part), "{part}");
    }
}
