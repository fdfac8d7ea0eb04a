//! From a specification to text, such that reading it gives the same specification.

use std::fmt;
use std::time::Duration;

use super::{ChannelSpec, LinkSpec};
use crate::blackout::Interval;
use crate::delay::{Delay, Reading};
use crate::quantity::duration_text;
use crate::queue::QueueLimit;
use crate::rate::Rate;
use crate::trace::TraceEnd;

impl fmt::Display for ChannelSpec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (up, down, default) = (items(&self.up), items(&self.down), items(&LinkSpec::default()));
        let mut written: Vec<String> = Vec::new();
        for ((up, down), default) in up.into_iter().zip(down).zip(default) {
            // `drx` without a direction means the downlink only.
            if up == down && up.key != "drx" {
                if up != default {
                    written.push(format!("{}={}", up.key, up.value));
                }
                continue;
            }
            for (direction, item) in [("up", up), ("down", down)] {
                if item != default {
                    written.push(format!("{direction}.{}={}", item.key, item.value));
                }
            }
        }
        formatter.write_str(&written.join(","))
    }
}

impl From<ChannelSpec> for String {
    fn from(spec: ChannelSpec) -> Self {
        spec.to_string()
    }
}

#[derive(PartialEq)]
struct Item {
    key: &'static str,
    value: String,
}

/// Everything a link specification says. Both delays of a trace are told apart by their key, so there are two items for
/// it, one of them empty.
fn items(link: &LinkSpec) -> Vec<Item> {
    let (rtt, delay) = delay_texts(&link.delay);
    let burst = link.burst.map(|burst| format!("{}/{}/{}", burst.enter, burst.leave, burst.loss));
    let reorder = link.reorder.map(|reorder| format!("{}/{}", reorder.chance, duration_text(reorder.by)));
    let drx = link.drx.map(|drx| format!("{}/{}", duration_text(drx.idle), duration_text(drx.cycle)));
    let blackouts = link.blackouts.iter().map(|interval| interval_text(*interval));
    let collapses =
        link.collapses.iter().map(|collapse| format!("{}/{}", interval_text(collapse.during), collapse.left));
    let detours = link
        .detours
        .iter()
        .map(|detour| format!("{}/{}", interval_text(detour.during), duration_text(detour.by)));
    let rate = match &link.rate {
        Rate::Unlimited => "unlimited".to_owned(),
        Rate::Constant(bandwidth) => bandwidth.to_string(),
        Rate::Trace(source) => source.to_string(),
    };
    let ecn = link.ecn.map_or_else(|| "off".to_owned(), queue_text);
    let end = match link.replay.end {
        TraceEnd::Loop => "loop",
        TraceEnd::Hold => "hold",
    };
    [
        ("rtt", rtt),
        ("delay", delay),
        ("rate", rate),
        ("offset", duration_text(link.replay.offset)),
        ("end", end.to_owned()),
        ("queue", queue_text(link.queue)),
        ("ecn", ecn),
        ("loss", link.loss.to_string()),
        ("burst", burst.unwrap_or_default()),
        ("reorder", reorder.unwrap_or_default()),
        ("duplicate", link.duplicate.to_string()),
        ("blackout", blackouts.collect::<Vec<_>>().join("+")),
        ("collapse", collapses.collect::<Vec<_>>().join("+")),
        ("detour", detours.collect::<Vec<_>>().join("+")),
        ("extra", link.extra.map_or_else(|| "none".to_owned(), |extra| extra.to_string())),
        ("drx", drx.unwrap_or_default()),
        ("overhead", link.overhead.to_string()),
    ]
    .map(|(key, value)| Item { key, value })
    .into()
}

fn interval_text(interval: Interval) -> String {
    match interval.until {
        Duration::MAX => format!("{}..", duration_text(interval.from)),
        until => format!("{}..{}", duration_text(interval.from), duration_text(until)),
    }
}

fn queue_text(queue: QueueLimit) -> String {
    match queue {
        QueueLimit::Packets(packets) => format!("{packets}p"),
        QueueLimit::Bytes(bytes) => format!("{bytes}b"),
        QueueLimit::Unlimited => "unlimited".to_owned(),
    }
}

/// The values of `rtt` and of `delay`, one of which is what the default has.
fn delay_texts(delay: &Delay) -> (String, String) {
    let one_way = |text: String| (String::new(), text);
    match delay {
        Delay::Constant(delay) => one_way(duration_text(*delay)),
        Delay::Normal { mean, variation } => one_way(format!("normal:{}:{variation}", duration_text(*mean))),
        Delay::Uniform { low, high } => {
            one_way(format!("uniform:{}:{}", duration_text(*low), duration_text(*high)))
        }
        Delay::Trace { source, reading: Reading::OneWay } => one_way(source.to_string()),
        Delay::Trace { source, reading: Reading::RoundTrip } => {
            (source.to_string(), duration_text(Duration::ZERO))
        }
    }
}
