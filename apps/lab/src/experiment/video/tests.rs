use super::*;
use crate::experiment::definition::Half;
use crate::experiment::pages::Channels;
use hvq_emulation::ChannelSpec;
use hvq_video::clip::{Clip, Frame};
use hvq_video::layers::LayerSet;
use std::sync::Arc;

/// A clip of 1.6, 16 and 30 KB a frame, whose upper layers begin anew every eighth frame.
fn clip() -> Arc<Clip> {
    let frame = |number: u32| Frame {
        bytes: [1600, 16_000, 30_000],
        fresh: LayerSet::from_bits(match number % 8 {
            0 if number == 0 => 7,
            0 => 2,
            4 => 4,
            _ => 0,
        }),
        ssim: [0.9, 0.97, 0.99],
    };
    Arc::new(Clip::new((0..80).map(frame).collect()).expect("it begins with a key frame"))
}

fn run(scheme: &str, embb: &str, seconds: u32) -> VideoOutcome {
    let embb: ChannelSpec = embb.parse().expect("a channel");
    let channels = Channels { name: "test".into(), embb, urllc: ChannelSpec::urllc() };
    let scheme = scheme.parse().expect("a scheme");
    let run = VideoRun { clip: clip(), channels, scheme, frames: seconds * 30, repetition: 0, seed: 7 };
    run.outcome().expect("no traces are read")
}

#[test]
fn schemes_are_written_as_they_are_read() {
    for name in [
        "udp:embb",
        "udp:dchannel",
        "udp:priority",
        "embb",
        "min-rtt",
        "hvc+deadlines",
        "priority-svc+priorities",
    ] {
        assert_eq!(name.parse::<VideoScheme>().map(String::from), Ok(name.to_owned()));
    }
    for name in ["", "udp:", "udp:hvc", "hvc+", "+deadlines", "hvc+deadlines+priorities"] {
        assert!(name.parse::<VideoScheme>().is_err(), "{name}");
    }
}

#[test]
fn over_channels_with_room_every_scheme_shows_every_frame_with_all_layers() {
    for name in
        ["udp:embb", "udp:priority", "udp:dchannel", "embb", "priority-svc+priorities", "hvc+deadlines"]
    {
        let VideoOutcome { paper, failure, .. } = run(name, "rtt=30ms,rate=100mbit", 3);
        assert_eq!((failure, paper.missing, paper.freezes), (None, 0, 0), "{name}");
        assert!(paper.depths[2] >= 85, "{name}: {:?}", paper.depths);
        assert!(
            paper.latency_ms.iter().skip(5).all(|time| (60.0..140.0).contains(time)),
            "{name}: {:?}",
            paper.latency_ms
        );
    }
}

#[test]
fn base_layers_go_ahead_where_the_transport_knows_what_is_urgent() {
    let VideoOutcome { paper, urllc, .. } = run("priority-svc+priorities", "rtt=80ms,rate=100mbit", 3);
    // 1.6 KB take 6.7 ms at 2 Mbit/s and 2.5 ms on the way, and the receiver waits for 60 ms.
    let late = paper.latency_ms.iter().filter(|time| **time > 72.0).count();
    assert!(late <= 2, "{:?}", paper.latency_ms);
    assert!(urllc.down > 90 * 1600, "{urllc:?}");
}

#[test]
fn without_embb_the_picture_moves_on_by_base_layers() {
    let dark = "rtt=30ms,rate=100mbit,blackout=4s..7s";
    let VideoOutcome { paper, failure, withdrawn, .. } = run("hvc+deadlines", dark, 8);
    assert_eq!((failure, paper.missing, paper.freezes), (None, 0, 0), "{:?}", paper.latency_ms);
    assert!(withdrawn > 60, "{withdrawn}");
    assert!(paper.depths[0] > 60 && paper.depths[2] > 100, "{:?}", paper.depths);
    let alone = run("udp:embb", dark, 8);
    assert!(alone.paper.freezes > 0 && alone.paper.missing >= 85, "{:?}", alone.paper.missing);
}

#[test]
fn equal_seeds_give_equal_videos() {
    let channels = "rtt=40ms,rate=50mbit,loss=1%";
    assert_eq!(run("hvc+deadlines", channels, 2), run("hvc+deadlines", channels, 2));
}

#[test]
fn a_plan_compares_all_schemes_on_the_same_stretches() {
    let schemes: Vec<VideoScheme> =
        ["udp:embb", "hvc"].iter().map(|name| name.parse().expect("a scheme")).collect();
    let plan = VideoPlan {
        clip: ("test".into(), clip()),
        traces: vec!["MM-D".parse().expect("a trace"), "LB-D".parse().expect("a trace")],
        schemes: schemes.clone(),
        time: std::time::Duration::from_secs(2),
        repetitions: 2,
        dark: None,
        half: Half::HeldOut,
        seed: 1,
    };
    let runs = plan.runs();
    assert_eq!(runs.len(), 8);
    for pair in runs.chunks(2) {
        assert_eq!([pair[0].scheme, pair[1].scheme], schemes[..]);
        assert_eq!((&pair[0].channels, pair[0].frames), (&pair[1].channels, 60));
    }
    assert_ne!(runs[0].channels, runs[2].channels);
}
