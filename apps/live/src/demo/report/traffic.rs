//! The traffic of a channel over time: bytes down above the axis, bytes up below it, coloured by the kind of frame.

use super::super::results::{BUCKET_MS, ChannelUse, Group};
use super::super::scheme::ChannelName;
use hvq_lab::report::svg::{Anchor, Area, LinearAxis, Svg};

const WIDTH: f64 = 420.0;
const LEFT: f64 = 6.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 14.0;
const HEIGHT: f64 = 96.0;

type Buckets = Vec<[u64; Group::COUNT]>;

/// The axes that all drawings of one channel of a page share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    /// The end of the time axis in milliseconds.
    pub(super) most_ms: f64,
    /// The most bytes of a bucket from server to client.
    down: u64,
    /// The most bytes of a bucket from client to server.
    up: u64,
}

impl Scale {
    /// Returns a scale on which the traffic of all `used` channels has room.
    pub(super) fn of<'a>(used: impl Iterator<Item = &'a ChannelUse> + Clone, most_ms: f64) -> Self {
        let most =
            |of: fn(&ChannelUse) -> &Buckets| used.clone().flat_map(of).map(total).max().unwrap_or_default();
        Self { most_ms, down: most(|used| &used.series.down), up: most(|used| &used.series.up) }
    }
}

fn total(bucket: &[u64; Group::COUNT]) -> u64 {
    bucket.iter().sum()
}

/// Bytes of a bucket as Mbit/s.
fn megabits(bytes: f64) -> f64 {
    bytes * 8.0 / (BUCKET_MS as f64 * 1e3)
}

/// Draws the traffic of `used`, or an empty drawing if the channel was not used.
pub(super) fn draw(channel: ChannelName, used: Option<&ChannelUse>, scale: Scale) -> String {
    let mut svg =
        Svg::new(WIDTH, TOP + HEIGHT + 4.0, &format!("bytes over {} by kind of frame", channel.label()));
    let time = LinearAxis { most: scale.most_ms, origin: LEFT, end: WIDTH - RIGHT };
    // One scale for both directions, so that heights compare.
    let both = (scale.down + scale.up).max(1) as f64;
    let zero = TOP + HEIGHT * scale.down as f64 / both;
    let up = LinearAxis { most: scale.down.max(1) as f64, origin: zero, end: TOP };
    for tick in time.ticks(5) {
        svg.line("grid", (time.at(tick), TOP), (time.at(tick), TOP + HEIGHT));
    }
    for tick in rate_ticks(scale) {
        let y = up.at(tick.bytes);
        svg.line("grid", (LEFT, y), (WIDTH - RIGHT, y));
        svg.text("tick", (WIDTH - RIGHT, y - 2.0), Anchor::End, &tick.label);
    }
    match used {
        Some(used) => {
            bars(&mut svg, &used.series.down, time, |bytes| up.at(bytes));
            bars(&mut svg, &used.series.up, time, |bytes| zero + (zero - up.at(bytes)));
        }
        None => svg.text("none", (WIDTH / 2.0, zero.max(TOP + 20.0) - 6.0), Anchor::Middle, "not used"),
    }
    svg.line("axis", (LEFT, zero), (WIDTH - RIGHT, zero));
    svg.finish()
}

struct RateTick {
    bytes: f64,
    label: String,
}

/// Round rates in Mbit/s.
fn rate_ticks(scale: Scale) -> Vec<RateTick> {
    let most = megabits(scale.down as f64);
    let ticks = LinearAxis { most, origin: 0.0, end: 1.0 }.ticks(4);
    let tick = |rate: f64| RateTick {
        bytes: rate * BUCKET_MS as f64 * 1e3 / 8.0,
        label: if rate < 1.0 { format!("{rate:.1} Mbit/s") } else { format!("{rate:.0} Mbit/s") },
    };
    ticks.into_iter().filter(|rate| *rate > 0.0).map(tick).collect()
}

/// Stacked bars; `place` says how far from the axis a number of bytes is.
fn bars(svg: &mut Svg, buckets: &Buckets, time: LinearAxis, place: impl Fn(f64) -> f64) {
    let width = time.at(BUCKET_MS as f64) - time.at(0.0);
    for (index, bucket) in buckets.iter().enumerate() {
        let begin = index as f64 * BUCKET_MS as f64;
        if begin >= time.most {
            break;
        }
        let mut below = 0.0;
        for group in Group::ALL {
            let bytes = bucket[group as usize] as f64;
            if bytes == 0.0 {
                continue;
            }
            let (near, far) = (place(below), place(below + bytes));
            let (y, height) = (near.min(far), (near - far).abs());
            let tip = format!("{begin:.0} ms: {bytes:.0} B of {}", group.label());
            let area = Area { x: time.at(begin), y, width: (width - 0.3).max(0.5), height };
            svg.area_with_tip(&format!("g{}", group as usize), area, &tip);
            below += bytes;
        }
    }
}
