use super::*;
use crate::workload::page_load::{Deployment, Manner, Voice};
use hvq_channel::TraceName;
use hvq_pages::builtin;
use hvq_transport::congestion::Algorithm;
use std::sync::Arc;

fn plan(deployment: Deployment, schemes: &[&str]) -> Plan {
    let manner = Manner { deployment, voice: Voice::Silent, think_scale: 0.1, size_scale: 1.0 };
    Plan {
        pages: builtin::page("p05").into_iter().map(Arc::new).collect(),
        sizes: Sizes::Captured,
        manner,
        traces: vec![TraceName::LowBandStationary],
        schemes: schemes.iter().map(|name| name.parse().expect("a scheme's name")).collect(),
        congestion: Algorithm::Cubic,
        repetitions: 1,
        seed: 1,
    }
}

fn outcomes(plan: &Plan) -> Vec<Outcome> {
    plan.runs().iter().map(|run| run.outcome().expect("the traces are compiled in")).collect()
}

#[test]
fn every_scheme_loads_a_page_in_both_deployments() {
    let schemes = ["embb", "urllc", "ideal", "below:dchannel", "below:pkt-state", "below:pkt-uplink"];
    let policies = hvq_scheduler::Policy::NAMES;
    for deployment in [Deployment::Gateway, Deployment::Cold] {
        let all: Vec<&str> = schemes.into_iter().chain(policies).collect();
        for outcome in outcomes(&plan(deployment, &all)) {
            assert_eq!(outcome.failure, None, "{}", outcome.scheme);
            assert!(outcome.plt_ms.is_some_and(|time| time > 50.0), "{outcome:?}");
        }
    }
}

#[test]
fn equal_seeds_give_equal_outcomes() {
    let plan = plan(Deployment::Cold, &["hvc", "below:dchannel"]);
    assert_eq!(outcomes(&plan), outcomes(&plan));
}

#[test]
fn bytes_are_counted_where_they_went() {
    let outcomes = outcomes(&plan(Deployment::Gateway, &["embb", "urllc", "below:dchannel", "hvc"]));
    let [embb, urllc, below, hvc] = &outcomes[..] else { panic!("four runs") };
    assert!(embb.urllc.bytes() == 0 && embb.embb.down > 90_000, "{embb:?}");
    assert!(urllc.embb.bytes() == 0 && urllc.urllc.down > 90_000, "{urllc:?}");
    for both in [below, hvc] {
        assert!(both.embb.down > both.urllc.down && both.urllc.bytes() > 1000, "{both:?}");
    }
}

#[test]
fn two_channels_beat_one_for_a_page_through_a_gateway() {
    // The order that the papers find (NSDI 2023, Fig. 3), on one page and one stretch of a trace.
    let times: Vec<f64> = outcomes(&plan(Deployment::Gateway, &["ideal", "hvc", "embb"]))
        .iter()
        .map(|outcome| outcome.plt_ms.expect("it loads"))
        .collect();
    assert!(times.is_sorted(), "{times:?}");
}
