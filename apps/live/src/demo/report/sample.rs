//! Results that were made up, for tests.

use super::super::results::{
    ChannelUse, DemoResults, FrameCount, Load, LoadOutcome, ObjectTiming, PageFacts, Series, Setup,
};
use super::super::scheme::{ChannelName, Scheme};

/// Two pages, eMBB alone and hvc. The first loads in 1000 ms, and 700 ms with hvc; the second fails with hvc.
pub(in crate::demo) fn results() -> DemoResults {
    let hvc: Scheme = "hvc".parse().unwrap();
    let pages = ["p1", "p2"].map(|id| PageFacts {
        id: id.to_owned(),
        site: "<b>&".to_owned(),
        objects: 2,
        bytes: 3000,
    });
    DemoResults {
        version: "0.0.0",
        setup: Setup {
            trace: "LB-D".to_owned(),
            embb: "rtt=trace:LB-D".to_owned(),
            urllc: "rtt=5ms".to_owned(),
            embb_hints: "57.0 Mbit/s".to_owned(),
            urllc_hints: "2.0 Mbit/s".to_owned(),
            congestion: "cubic".to_owned(),
            think_scale: 0.1,
            seed: 1,
            repetitions: 1,
        },
        pages: pages.to_vec(),
        schemes: vec![Scheme::BASELINE, hvc],
        loads: vec![
            load("p1", Scheme::BASELINE, LoadOutcome::LoadedMs(1000.0)),
            load("p1", hvc, LoadOutcome::LoadedMs(700.0)),
            load("p2", Scheme::BASELINE, LoadOutcome::LoadedMs(2000.0)),
            load("p2", hvc, LoadOutcome::Failed("no <network>".to_owned())),
        ],
    }
}

fn load(page: &str, scheme: Scheme, outcome: LoadOutcome) -> Load {
    let mut channels = vec![used(ChannelName::Embb, 9_000)];
    if scheme.is_multipath() {
        channels.push(used(ChannelName::Urllc, 1_000));
    }
    let object = |id, end_ms| ObjectTiming {
        id,
        kind: "script".to_owned(),
        bytes: 1500,
        requested_ms: Some(10.0),
        first_byte_ms: Some(50.0),
        end_ms,
    };
    Load {
        page: page.to_owned(),
        scheme,
        repetition: 1,
        offset_s: 0.0,
        outcome,
        connect_ms: 40.0,
        objects: vec![object(0, Some(100.0)), object(1, None)],
        channels,
    }
}

fn used(channel: ChannelName, bytes: u64) -> ChannelUse {
    ChannelUse {
        channel,
        up_bytes: bytes / 10,
        down_bytes: bytes - bytes / 10,
        dropped: 0,
        frames: vec![
            FrameCount { kind: "stream", frames: 7, bytes },
            FrameCount { kind: "path_ack", frames: 3, bytes: 60 },
        ],
        series: Series { up: vec![[100, 20, 0, 0, 0, 5]], down: vec![[0; 6], [1000, 30, 300, 9, 9, 40]] },
    }
}
