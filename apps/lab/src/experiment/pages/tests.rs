use super::*;
use crate::experiment::definition::Half;
use crate::pages::builtin;
use crate::workload::page_load::{ApplicationHints, Background, Deployment, Manner, single};
use hvq_emulation::{ChannelSpec, TraceName};
use hvq_transport::congestion::Algorithm;
use std::sync::Arc;

fn plan(deployment: Deployment, schemes: &[&str]) -> PagesPlan {
    let manner = Manner {
        deployment,
        voice: ApplicationHints::Silent,
        think_scale: 0.1,
        size_scale: 1.0,
        wait_scale: 1.0,
        background: Background::NONE,
        connections: 1,
    };
    PagesPlan {
        pages: builtin::page("p05").into_iter().map(Arc::new).collect(),
        sizes: Sizes::Captured,
        manner,
        traces: vec![TraceName::LowBandStationary],
        schemes: schemes.iter().map(|name| name.parse().expect("a scheme's name")).collect(),
        congestion: Algorithm::Cubic,
        repetitions: 1,
        half: Half::Training,
        seed: 1,
    }
}

fn outcomes(plan: &PagesPlan) -> Vec<PageOutcome> {
    plan.runs().iter().map(|run| run.outcome().expect("the traces are compiled in")).collect()
}

#[test]
fn every_scheme_loads_a_page_in_both_deployments() {
    let schemes = ["embb", "urllc", "ideal", "below:dchannel", "below:pkt-state", "below:pkt-uplink"];
    let policies = hvq_scheduler::Policy::NAMES;
    for deployment in Deployment::ALL {
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

#[test]
fn a_hand_over_delays_what_uses_embb_alone_and_the_ideal_channel_loses_but_the_rate() {
    let time = |events: &str, scheme| fetch(182_000, &format!("rtt=40ms,rate=200mbit{events}"), scheme);
    // The object is on its way 12.1 to 12.4 s after the start of the channels.
    let cut = ",blackout=12100ms..12300ms";
    assert!(time(cut, "embb") > time("", "embb") + 150.0);
    let (calm, ideal) = (time("", "ideal"), time(cut, "ideal"));
    assert!(ideal >= calm && ideal < time(cut, "embb"), "{calm} {ideal}");
    let detour = ",detour=12s..13s/30ms";
    assert!(time(detour, "embb") > time("", "embb") + 60.0);
    assert_eq!(time(detour, "ideal"), calm);
}

#[test]
fn one_object_takes_as_long_on_one_of_six_connections_as_on_the_only_one() {
    let time = |deployment| {
        let mut plan = plan(deployment, &["embb"]);
        plan.pages = vec![Arc::new(single(50_000))];
        outcomes(&plan)[0].plt_ms.expect("it loads")
    };
    assert_eq!(time(Deployment::Http1), time(Deployment::TcpTls));
}

#[test]
fn a_resumed_session_saves_the_round_trip_of_the_handshake() {
    let mean = |deployment| {
        let outcomes = outcomes(&plan(deployment, &["embb"]));
        outcomes.iter().map(|outcome| outcome.plt_ms.expect("it loads")).sum::<f64>()
    };
    let (cold, resumed, tcp) = (mean(Deployment::Cold), mean(Deployment::Resumed), mean(Deployment::TcpTls));
    // At least 34 ms are a round trip over this trace (NSDI 2023, Table 1).
    assert!(resumed + 30.0 < cold && cold < tcp, "{resumed} {cold} {tcp}");
}

/// Load times of the plan's page with two background flows.
fn with_background(deployment: Deployment, voice: ApplicationHints, schemes: &[&str]) -> Vec<PageOutcome> {
    let mut plan = plan(deployment, schemes);
    (plan.manner.background, plan.manner.voice) = (Background::Flows(2), voice);
    outcomes(&plan)
}

#[test]
fn background_flows_go_on_during_the_load_and_can_be_kept_off_the_fast_channel() {
    // HotNets 2023, Table 1.
    let schemes = ["below:dchannel", "below:dchannel-priority"];
    let alone = outcomes(&plan(Deployment::TcpTls, &schemes[..1]));
    let both = with_background(Deployment::TcpTls, ApplicationHints::Silent, &schemes);
    let [alike, apart] = &both[..] else { panic!("two runs") };
    let bytes = |outcome: &PageOutcome| outcome.embb.bytes() + outcome.urllc.bytes();
    assert!(bytes(alike) > bytes(&alone[0]) + 200_000, "{alike:?}");
    assert!(apart.urllc.bytes() * 2 < alike.urllc.bytes(), "{apart:?} {alike:?}");
    assert!(apart.plt_ms < alike.plt_ms, "{apart:?} {alike:?}");
}

#[test]
fn through_a_gateway_background_flows_are_streams_of_the_least_urgency() {
    let silent = with_background(Deployment::Gateway, ApplicationHints::Silent, &["hvc"]);
    let told = with_background(Deployment::Gateway, ApplicationHints::Priorities, &["hvc"]);
    assert!(told[0].plt_ms <= silent[0].plt_ms, "{told:?} {silent:?}");
}

#[test]
fn a_steerers_buffers_and_mistakes_are_noted() {
    let outcomes = outcomes(&plan(Deployment::TcpTls, &["below:dchannel"]));
    let noted = |name: &str| outcomes[0].noted.get(name).copied().expect("it is noted");
    // NSDI 2023, Table 3: the proxy's buffer holds less than the client's.
    assert!(noted("client_buffer_most_bytes") >= noted("proxy_buffer_most_bytes"), "{outcomes:?}");
    assert!(noted("client_buffer_mean_bytes") <= noted("client_buffer_most_bytes"));
    assert!((0.0..100.0).contains(&noted("reward_error_p90_ms")), "{outcomes:?}");
}

#[test]
fn what_a_policy_of_two_paths_expects_is_held_against_what_comes() {
    let plan = plan(Deployment::TcpTls, &["hvc"]);
    let mut run = plan.runs().remove(0);
    run.notes = Notes::Rewards;
    let outcome = run.outcome().expect("the traces are compiled in");
    let error = outcome.noted.get("reward_error_p90_ms").copied().expect("it is noted");
    assert!((0.0..200.0).contains(&error), "{outcome:?}");
    let few = plan.runs()[0].outcome().expect("the traces are compiled in");
    assert_eq!((few.plt_ms, few.noted.len()), (outcome.plt_ms, 0), "to listen changes nothing");
}

/// The load time in ms of one object of `size` bytes with `scheme`, as the papers fetch it from a command line.
fn fetch(size: u64, embb: &str, scheme: &str) -> f64 {
    let run = PageRun {
        page: Arc::new(single(size)),
        manner: Manner {
            deployment: Deployment::TcpTls,
            voice: ApplicationHints::Silent,
            think_scale: 1.0,
            size_scale: 1.0,
            wait_scale: 1.0,
            background: Background::NONE,
            connections: 1,
        },
        channels: Channels {
            name: embb.to_owned(),
            embb: embb.parse().expect("a channel"),
            urllc: ChannelSpec::urllc(),
        },
        belief: Belief::default(),
        order: Order::default(),
        scheme: scheme.parse().expect("a scheme's name"),
        congestion: Algorithm::Cubic,
        repetition: 0,
        notes: Notes::Few,
        seed: 1,
    };
    run.outcome().expect("there are no traces").plt_ms.expect("it loads")
}

/// Asserts that `measured` is within `share` of `published`.
fn assert_near(measured: f64, published: f64, share: f64) {
    assert!((measured / published - 1.0).abs() <= share, "{measured} instead of {published}");
}

#[test]
fn one_object_takes_what_was_published_over_either_channel_and_steered() {
    // NSDI 2023, Table 2: 182 KB over 40 ms and 200 Mbit/s, and over URLLC.
    let embb = "rtt=40ms,rate=200mbit";
    assert_near(fetch(182_000, embb, "embb"), 349.0, 0.15);
    assert_near(fetch(182_000, embb, "urllc"), 853.0, 0.15);
    // A fifth less than was published, which experiment nsdi-table-2 shows as missed; without DChannel it is eMBB's 349.
    assert_near(fetch(182_000, embb, "below:dchannel"), 189.0, 0.25);
}

/// The gain of `scheme` over eMBB alone on a few pages at a fixed round-trip time.
fn gain(round_trip: &str, scheme: &str) -> f64 {
    let manner = Manner {
        deployment: Deployment::TcpTls,
        voice: ApplicationHints::Silent,
        think_scale: 0.25,
        size_scale: 1.0,
        wait_scale: 1.0,
        background: Background::NONE,
        connections: 1,
    };
    let mean = |scheme: &str| {
        let times = builtin::pages().into_iter().take(6).map(|page| {
            let size_scale = page.paper_size_scale.unwrap_or(1.0);
            let embb = format!("rtt={round_trip},rate=200mbit");
            let run = PageRun {
                page: Arc::new(page),
                manner: Manner { size_scale, ..manner },
                channels: Channels {
                    name: embb.clone(),
                    embb: embb.parse().expect("a channel"),
                    urllc: ChannelSpec::urllc(),
                },
                belief: Belief::default(),
                order: Order::default(),
                scheme: scheme.parse().expect("a scheme's name"),
                congestion: Algorithm::Cubic,
                repetition: 0,
                notes: Notes::Few,
                seed: 1,
            };
            run.outcome().expect("there are no traces").plt_ms.expect("it loads")
        });
        times.sum::<f64>()
    };
    100.0 * (1.0 - mean(scheme) / mean("embb"))
}

#[test]
fn steered_packets_gain_what_was_published_in_the_order_that_was_published() {
    // NSDI 2023, Table 5 (34.7 % at 40 ms) and Fig. 3; HotMobile 2021, Fig. 3 and Table 1.
    let schemes = ["below:dchannel", "below:asap", "below:pkt-control"];
    let gains = schemes.map(|scheme| gain("40ms", scheme));
    assert!((gains[0] - 34.7).abs() < 7.0, "{gains:?}");
    assert!(gains.is_sorted_by(|more, less| more > less), "{gains:?}");
    assert!(gains[2] > 5.0, "{gains:?}");
}
