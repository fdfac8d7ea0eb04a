use super::*;

fn run(arrangement: Arrangement) -> ControllerRun {
    ControllerRun {
        setting: Setting::constant(Setting::RTT, Probability::NEVER),
        controller: Algorithm::Cubic,
        arrangement,
        time: Duration::from_millis(1_600),
        seed: 7,
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_of_json() {
    for arrangement in [Arrangement::Steered, Arrangement::Multipath] {
        let line = || serde_json::to_string(&run(arrangement).outcome().unwrap()).unwrap();
        assert_eq!(line(), line());
    }
}

#[test]
fn an_outcome_accounts_for_what_was_delivered() {
    for arrangement in Arrangement::ALL {
        let outcome = run(arrangement).outcome().unwrap();
        assert_eq!(outcome.failure, None);
        assert!(outcome.goodput > 5.0 && outcome.goodput < outcome.throughput, "{outcome:?}");
        assert!(outcome.throughput <= run(arrangement).setting.capacity(arrangement), "{outcome:?}");
        let mean = outcome.series.goodput.iter().sum::<f64>() / outcome.series.goodput.len() as f64;
        assert!((mean - outcome.goodput).abs() < 0.1, "{mean} and {}", outcome.goodput);
        assert_eq!(outcome.urllc_share > 0.0, arrangement != Arrangement::Single, "{outcome:?}");
        // Without a queue a round trip takes 50 ms; data and acknowledgements over URLLC take less.
        let least = outcome.series.rtt.iter().flatten().map(|rtt| rtt[0]).fold(f64::MAX, f64::min);
        assert_eq!(least >= 50.0, arrangement == Arrangement::Single, "{least}");
    }
}

#[test]
fn a_plan_varies_one_thing_at_a_time() {
    let percent = |share: f64| Probability::new(share / 100.0).unwrap();
    let plan = ControllersPlan {
        controllers: vec![Algorithm::Cubic, Algorithm::NewReno],
        rtts: [50, 20, 50].map(Duration::from_millis).into(),
        losses: vec![Probability::NEVER, percent(0.1), percent(1.0)],
        traces: vec![TraceName::LowBandDriving],
        time: Duration::from_secs(1),
        seed: 1,
    };
    let names: Vec<String> = plan.settings().into_iter().map(|setting| setting.name).collect();
    assert_eq!(names, ["50 ms", "20 ms", "50 ms, 0.1 % loss", "50 ms, 1 % loss", "LB-D"]);
    assert_eq!(plan.runs().len(), 5 * 2 * 3);
}
