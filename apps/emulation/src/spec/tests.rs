//! The text form of a channel.

use std::time::Duration;

use proptest::prelude::*;

use super::*;

fn parse(text: &str) -> ChannelSpec {
    text.parse().unwrap()
}

#[test]
fn the_short_form_sets_both_directions_and_halves_the_round_trip() {
    let spec = parse("rtt=5ms,rate=2mbit,queue=800p,loss=0.1%");
    assert_eq!(spec.up, spec.down);
    assert_eq!(spec.up.delay, Delay::Constant(Duration::from_micros(2_500)));
    assert_eq!(spec.up.rate, Rate::Constant(Bandwidth::from_megabits_per_second(2)));
    assert_eq!(spec.up.queue, QueueLimit::Packets(800));
    assert_eq!(spec.up.loss, Probability::new(0.001).unwrap());
}

#[test]
fn presets_are_what_the_papers_measured_with() {
    assert_eq!(parse("urllc"), parse("rtt=5ms,rate=2mbit"));
    assert_eq!(parse("embb"), parse("rtt=40ms,rate=200mbit"));
    assert_eq!(parse("mm-d"), ChannelSpec::trace(TraceName::MmwaveDriving));
    assert_eq!(parse("trace=MM-D,offset=30s"), parse("MM-D,offset=30s"));
    let spec = parse("trace=LB-S,offset=30s");
    assert_eq!(spec, ChannelSpec::trace(TraceName::LowBandStationary).starting_at(Duration::from_secs(30)));
    assert_eq!((spec.up.drx, spec.down.drx), (None, Some(Drx::LOW_BAND)));
    assert_eq!(parse("LB-S,drx=off").down.drx, None);
}

#[test]
fn a_preset_leaves_the_other_items_alone_and_later_items_win() {
    let spec = parse("loss=1%,rate=9mbit,urllc,rtt=8ms");
    assert_eq!(spec.up.loss, Probability::new(0.01).unwrap());
    assert_eq!(spec.up.rate, Rate::Constant(Bandwidth::from_megabits_per_second(2)));
    assert_eq!(spec.up.delay, Delay::Constant(Duration::from_millis(4)));
}

#[test]
fn items_of_one_direction_and_comments_and_lines_are_understood() {
    let spec =
        parse("# a channel\nrate=10mbit, up.rate = 1mbit # slow up\nblackout=1s..2s+5s..,drx=30ms/40ms\n");
    assert_eq!(spec.up.rate, Rate::Constant(Bandwidth::from_megabits_per_second(1)));
    assert_eq!(spec.down.rate, Rate::Constant(Bandwidth::from_megabits_per_second(10)));
    let second = Duration::from_secs(1);
    let intervals =
        [Interval { from: second, until: 2 * second }, Interval { from: 5 * second, until: Duration::MAX }];
    assert_eq!(spec.up.blackouts, intervals);
    assert_eq!((spec.up.drx, spec.down.drx), (None, Some(Drx::MMWAVE)));
}

#[test]
fn errors_name_the_item_and_the_line() {
    let error = "rtt=5ms\nrate=2mbit,qeue=5p".parse::<ChannelSpec>().unwrap_err();
    assert_eq!((error.line(), error.item()), (2, "qeue=5p"));
    assert!(error.to_string().starts_with("line 2: `qeue=5p`: unknown key; keys are rtt, delay"), "{error}");
    let error = "rate=fast".parse::<ChannelSpec>().unwrap_err();
    assert_eq!(error.to_string(), "`rate=fast`: `fast` is not a rate above zero such as 2mbit or 1.5gbit");
    for wrong in [
        "nonsense",
        "rtt=5",
        "rate=0mbit",
        "rtt=normal:5ms",
        "rtt=normal:5ms:-1",
        "rtt=uniform:5ms:4ms",
        "rtt=trace:XX-S",
        "rate=file:",
        "up.trace=MM-D",
        "sideways.rate=1mbit",
        "queue=0p",
        "queue=800",
        "ecn=unlimited",
        "loss=2",
        "burst=1%",
        "blackout=5s..4s",
        "collapse=2s..3s",
        "collapse=2s..3s/200%",
        "collapse=3s..2s/5%",
        "detour=2s..3s",
        "detour=2s..3s/fast",
        "extra=0mbit",
        "drx=30ms",
        "drx=30ms/0ms",
        "end=never",
        "overhead=-1",
        "offset=later",
    ] {
        let error = wrong.parse::<ChannelSpec>().unwrap_err();
        assert_eq!(error.item(), wrong);
    }
}

#[test]
fn in_serde_formats_a_channel_is_a_string() {
    let spec: ChannelSpec = serde_json::from_str("\"MM-D,loss=1%\"").unwrap();
    assert_eq!(spec, parse("MM-D,loss=1%"));
    let text = serde_json::to_string(&spec).unwrap();
    assert_eq!(serde_json::from_str::<ChannelSpec>(&text).unwrap(), spec);
    assert!(serde_json::from_str::<ChannelSpec>("\"rate=\"").is_err());
}

/// Some value of every key, as it may be written.
fn item() -> impl Strategy<Value = String> {
    let key = prop_oneof![
        (0u64..10_000_000).prop_map(|us| format!("delay={us}us")),
        (0u64..10_000_000).prop_map(|us| format!("rtt=normal:{us}us:0.37")),
        (0u64..10_000).prop_map(|us| format!("delay=uniform:{us}us:3s")),
        Just("rtt=trace:LB-W".to_owned()),
        Just("delay=file:some/where.csv".to_owned()),
        Just("rate=unlimited".to_owned()),
        (1u64..u64::from(u32::MAX)).prop_map(|bits| format!("rate={bits}bit")),
        Just("rate=trace:MM-S".to_owned()),
        (0u64..1_000_000).prop_map(|ms| format!("offset={ms}ms")),
        Just("end=hold".to_owned()),
        (1usize..10_000).prop_map(|size| format!("queue={size}p")),
        (1usize..10_000).prop_map(|size| format!("queue={size}kb")),
        (1usize..10_000).prop_map(|size| format!("ecn={size}p")),
        (0.0f64..=1.0).prop_map(|share| format!("loss={share}")),
        (0.0f64..=1.0).prop_map(|share| format!("burst={share}/{share}/{share}")),
        (0.0f64..=1.0).prop_map(|share| format!("reorder={share}/7ms")),
        (0.0f64..=1.0).prop_map(|share| format!("duplicate={share}")),
        (0u64..1_000).prop_map(|ms| format!("blackout={ms}ms..1s+2s..")),
        (0u64..1_000, 0.0f64..=1.0)
            .prop_map(|(ms, share)| format!("collapse={ms}ms..1s/{share}+2s../{share}")),
        (0u64..1_000).prop_map(|ms| format!("detour={ms}ms..1s/{ms}us+2s../3ms")),
        Just("extra=2mbit".to_owned()),
        (0u64..1_000).prop_map(|ms| format!("drx={ms}ms/40ms")),
        (0usize..100).prop_map(|bytes| format!("overhead={bytes}")),
    ];
    (prop_oneof![Just(""), Just("up."), Just("down.")], key)
        .prop_map(|(direction, key)| format!("{direction}{key}"))
}

proptest! {
    #[test]
    fn what_is_written_reads_back_the_same(items in proptest::collection::vec(item(), 0..12)) {
        let spec = parse(&items.join(","));
        prop_assert_eq!(parse(&spec.to_string()), spec);
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "[a-z.=/:0-9%+#,\n -]{0,60}") {
        let _ = text.parse::<ChannelSpec>();
    }
}

#[test]
fn a_rate_may_be_a_link_trace_of_mahimahi() {
    let spec = parse("up.rate=mahimahi:up.trace,down.rate=mahimahi:down.trace");
    assert_eq!(spec.up.rate, Rate::Trace(TraceSource::Mahimahi("up.trace".into())));
    assert_eq!(spec.to_string(), "up.rate=mahimahi:up.trace,down.rate=mahimahi:down.trace");
    assert!("rate=mahimahi:".parse::<ChannelSpec>().unwrap_err().to_string().contains("mahimahi:PATH"));
}
