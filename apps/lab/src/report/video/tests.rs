use super::*;
use crate::experiment::video::Viewing;

fn outcome(scheme: &str, latency: &[f64], ssim: f64) -> VideoOutcome {
    let view = Viewing {
        latency_ms: latency.to_vec(),
        ssim: vec![ssim; latency.len()],
        depths: [0, 0, latency.len() as u32],
        ..Viewing::default()
    };
    VideoOutcome {
        curve: Vec::new(),
        channels: "MM-D".into(),
        scheme: scheme.parse().expect("a scheme"),
        repetition: 0,
        seconds: 60.0,
        paper: view.clone(),
        adaptive: Viewing { latency_ms: latency.iter().map(|time| time / 2.0).collect(), ..view },
        embb: Default::default(),
        urllc: Default::default(),
        withdrawn: 0,
        failure: None,
    }
}

#[test]
fn quantiles_are_values_that_occurred() {
    let values: Vec<f64> = (1..=100).map(f64::from).collect();
    assert_eq!(
        [0.0, 0.05, 0.5, 0.95, 1.0].map(|share| compare::quantile(&values, share)),
        [1.0, 5.0, 50.0, 95.0, 100.0]
    );
    assert_eq!(compare::quantile(&[], 0.5), 0.0);
}

#[test]
fn goals_hold_hvc_against_dchannel_and_priorities() {
    let outcomes = [
        outcome("udp:dchannel", &[170.0; 10], 0.98),
        outcome("priority-svc+priorities", &[71.0; 10], 0.97),
        outcome("hvc+deadlines", &[70.0; 10], 0.976),
    ];
    let goals = goals(&outcomes);
    assert_eq!(
        goals.iter().map(|goal| goal.met).collect::<Vec<_>>(),
        [true, true, true, true, true],
        "{goals:?}"
    );
    assert!(super::goals(&outcomes[..2]).is_empty());
    let slow = [outcome("hvc+deadlines", &[73.0; 10], 0.9)];
    assert!(!super::goals(&slow)[0].met);
}

#[test]
fn each_scheme_has_a_row_and_a_line() {
    let outcomes = [outcome("udp:embb", &[100.0, 300.0], 0.9), outcome("hvc+deadlines", &[70.0, 71.0], 0.95)];
    let text = markdown(&outcomes);
    assert!(
        text.contains("| udp:embb | 100 ms | 300 ms |") && text.contains("| hvc+deadlines | 70.0 ms |"),
        "{text}"
    );
    let drawing = figure(&outcomes).expect("both are drawn");
    assert_eq!(drawing.matches("<polyline").count(), 4);
    assert!(figure(&[]).is_none());
}
