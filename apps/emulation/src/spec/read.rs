//! From text to a specification.

use std::str::FromStr;
use std::time::Duration;

use super::{ChannelSpec, LinkSpec, Reorder};
use crate::blackout::Interval;
use crate::delay::{Delay, Reading};
use crate::drx::Drx;
use crate::loss::Burst;
use crate::mobility::{Collapse, Detour};
use crate::quantity::{Probability, QuantityError, parse_duration};
use crate::queue::QueueLimit;
use crate::rate::Rate;
use crate::trace::{TraceEnd, TraceName, TraceSource};

/// A text that is not a channel: which item on which line, if there are several, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}`{item}`: {problem}", place = if *.several { format!("line {}: ", .line) } else { String::new() })]
pub struct SpecError {
    line: usize,
    several: bool,
    item: String,
    problem: String,
}

impl SpecError {
    /// The line, counted from 1.
    pub fn line(&self) -> usize {
        self.line
    }

    /// The item at fault, as it was written.
    pub fn item(&self) -> &str {
        &self.item
    }
}

/// The keys, for the error about one that is none of them.
const KEYS: &str = "rtt, delay, rate, trace, offset, end, queue, ecn, loss, burst, reorder, duplicate, blackout, \
                    collapse, detour, extra, drx, overhead, each with an optional `up.` or `down.`; presets are urllc, embb and MM-S … LB-D";

impl FromStr for ChannelSpec {
    type Err = SpecError;

    /// Reads the text form (see the crate's documentation).
    fn from_str(text: &str) -> Result<Self, SpecError> {
        let mut spec = Self::default();
        for (index, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default();
            for item in line.split(',').map(str::trim).filter(|item| !item.is_empty()) {
                read_item(&mut spec, item).map_err(|problem| SpecError {
                    line: index + 1,
                    several: text.trim().contains('\n'),
                    item: item.to_owned(),
                    problem,
                })?;
            }
        }
        Ok(spec)
    }
}

impl TryFrom<String> for ChannelSpec {
    type Error = SpecError;

    fn try_from(text: String) -> Result<Self, SpecError> {
        text.parse()
    }
}

fn read_item(spec: &mut ChannelSpec, item: &str) -> Result<(), String> {
    let Some((key, value)) = item.split_once('=') else {
        let preset =
            preset(item).ok_or_else(|| format!("not a preset and not `key=value`; keys are {KEYS}"))?;
        spec.up.follow(preset.up);
        spec.down.follow(preset.down);
        return Ok(());
    };
    let (key, value) = (key.trim(), value.trim());
    let (links, key): (Vec<&mut LinkSpec>, &str) = match key.split_once('.') {
        Some(("up", key)) => (vec![&mut spec.up], key),
        Some(("down", key)) => (vec![&mut spec.down], key),
        Some(_) => return Err(format!("unknown key; keys are {KEYS}")),
        // Only the downlink pays for a sleeping device (NSDI 2023, §4.2.2).
        None if key == "drx" => (vec![&mut spec.down], key),
        None => (vec![&mut spec.up, &mut spec.down], key),
    };
    if key == "trace" {
        let preset = ChannelSpec::trace(value.parse().map_err(|error: QuantityError| error.to_string())?);
        let whole = links.len() == 2;
        if !whole {
            return Err("a trace goes for both directions; use rtt=trace:NAME and rate=trace:NAME".to_owned());
        }
        spec.up.follow(preset.up);
        spec.down.follow(preset.down);
        return Ok(());
    }
    links.into_iter().try_for_each(|link| read_link_item(link, key, value))
}

fn preset(name: &str) -> Option<ChannelSpec> {
    match name.to_ascii_lowercase().as_str() {
        "urllc" => Some(ChannelSpec::urllc()),
        "embb" => Some(ChannelSpec::embb()),
        other => other.parse::<TraceName>().ok().map(ChannelSpec::trace),
    }
}

fn read_link_item(link: &mut LinkSpec, key: &str, value: &str) -> Result<(), String> {
    let read = || -> Result<LinkSpec, QuantityError> {
        let mut link = link.clone();
        match key {
            "rtt" => link.delay = read_delay(value, Reading::RoundTrip)?,
            "delay" => link.delay = read_delay(value, Reading::OneWay)?,
            "rate" => link.rate = read_rate(value)?,
            "offset" => link.replay.offset = parse_duration(value)?,
            "end" => link.replay.end = read_end(value)?,
            "queue" => link.queue = read_queue(value)?,
            "ecn" => link.ecn = read_marking(value)?,
            "loss" => link.loss = value.parse()?,
            "burst" => link.burst = Some(read_burst(value)?),
            "reorder" => link.reorder = Some(read_reorder(value)?),
            "duplicate" => link.duplicate = value.parse()?,
            "blackout" => link.blackouts = read_list(value, read_interval)?,
            "collapse" => link.collapses = read_list(value, read_collapse)?,
            "detour" => link.detours = read_list(value, read_detour)?,
            "extra" => link.extra = if value == "none" { None } else { Some(value.parse()?) },
            "drx" => link.drx = read_drx(value)?,
            "overhead" => {
                let few = value.parse().ok().filter(|bytes| *bytes <= 65_536);
                link.overhead =
                    few.ok_or_else(|| QuantityError::new(value, "a number of bytes up to 65536"))?;
            }
            _ => return Err(QuantityError::new(key, "a key")),
        }
        Ok(link)
    };
    match read() {
        Ok(read) => {
            *link = read;
            Ok(())
        }
        Err(error) if error == QuantityError::new(key, "a key") => {
            Err(format!("unknown key; keys are {KEYS}"))
        }
        Err(error) => Err(error.to_string()),
    }
}

fn read_delay(text: &str, reading: Reading) -> Result<Delay, QuantityError> {
    let one_way = |text: &str| {
        parse_duration(text).map(|duration| match reading {
            Reading::RoundTrip => duration / 2,
            Reading::OneWay => duration,
        })
    };
    let parts: Vec<&str> = text.split(':').collect();
    match parts.as_slice() {
        ["trace" | "file", ..] => Ok(Delay::Trace { source: read_source(text)?, reading }),
        ["normal", mean, variation] => {
            let variation = variation.parse().ok().filter(|variation| (0.0..=100.0).contains(variation));
            let wanted = "normal:MEAN:VARIATION with a variation from 0 to 100";
            Ok(Delay::Normal {
                mean: one_way(mean)?,
                variation: variation.ok_or_else(|| QuantityError::new(text, wanted))?,
            })
        }
        ["uniform", low, high] => match (one_way(low)?, one_way(high)?) {
            (low, high) if low <= high => Ok(Delay::Uniform { low, high }),
            _ => Err(QuantityError::new(text, "uniform:LOW:HIGH with the lower first")),
        },
        [constant] => one_way(constant).map(Delay::Constant),
        _ => Err(QuantityError::new(
            text,
            "a delay: 5ms, normal:MEAN:VARIATION, uniform:LOW:HIGH, trace:NAME or file:PATH",
        )),
    }
}

fn read_rate(text: &str) -> Result<Rate, QuantityError> {
    match text {
        "unlimited" => Ok(Rate::Unlimited),
        _ if text.starts_with("trace:") || text.starts_with("file:") => read_source(text).map(Rate::Trace),
        _ if text.starts_with("mahimahi:") => match text.split_once(':') {
            Some((_, path)) if !path.is_empty() => Ok(Rate::Trace(TraceSource::Mahimahi(path.into()))),
            _ => Err(QuantityError::new(text, "mahimahi:PATH")),
        },
        _ => text.parse().map(Rate::Constant),
    }
}

fn read_source(text: &str) -> Result<TraceSource, QuantityError> {
    match text.split_once(':') {
        Some(("trace", name)) => name.parse().map(TraceSource::Named),
        Some(("file", path)) if !path.is_empty() => Ok(TraceSource::File(path.into())),
        _ => Err(QuantityError::new(text, "trace:NAME or file:PATH")),
    }
}

fn read_end(text: &str) -> Result<TraceEnd, QuantityError> {
    match text {
        "loop" => Ok(TraceEnd::Loop),
        "hold" => Ok(TraceEnd::Hold),
        _ => Err(QuantityError::new(text, "loop or hold")),
    }
}

fn read_queue(text: &str) -> Result<QueueLimit, QuantityError> {
    let wanted = || QuantityError::new(text, "a queue: 800p, 1500b, 64kb, 1mb or unlimited");
    let lower = text.to_ascii_lowercase();
    let positive = |number: &str| number.parse::<usize>().ok().filter(|n| (1..1 << 40).contains(n));
    let (number, unit) = lower.split_at(lower.find(|c: char| !c.is_ascii_digit()).unwrap_or(lower.len()));
    match (positive(number), unit) {
        (None, "unlimited") if number.is_empty() => Ok(QueueLimit::Unlimited),
        (Some(packets), "p") => Ok(QueueLimit::Packets(packets)),
        (Some(bytes), "b") => Ok(QueueLimit::Bytes(bytes)),
        (Some(kilobytes), "kb") => Ok(QueueLimit::Bytes(kilobytes.saturating_mul(1_000))),
        (Some(megabytes), "mb") => Ok(QueueLimit::Bytes(megabytes.saturating_mul(1_000_000))),
        _ => Err(wanted()),
    }
}

fn read_marking(text: &str) -> Result<Option<QueueLimit>, QuantityError> {
    match text {
        "off" => Ok(None),
        _ => match read_queue(text) {
            Ok(QueueLimit::Unlimited) | Err(_) => Err(QuantityError::new(
                text,
                "a queue above which packets are marked: 50p, 1500b, 64kb, 1mb or off",
            )),
            Ok(limit) => Ok(Some(limit)),
        },
    }
}

fn read_burst(text: &str) -> Result<Burst, QuantityError> {
    let parts: Vec<&str> = text.split('/').collect();
    let (enter, leave, loss) = match parts.as_slice() {
        [enter, leave] => (enter, leave, Probability::ALWAYS),
        [enter, leave, loss] => (enter, leave, loss.parse()?),
        _ => return Err(QuantityError::new(text, "ENTER/LEAVE or ENTER/LEAVE/LOSS, such as 0.1%/25%")),
    };
    Ok(Burst { enter: enter.parse()?, leave: leave.parse()?, loss })
}

fn read_reorder(text: &str) -> Result<Reorder, QuantityError> {
    let (chance, by) = text.split_once('/').unwrap_or((text, "5ms"));
    Ok(Reorder { chance: chance.parse()?, by: parse_duration(by)? })
}

fn read_interval(text: &str) -> Result<Interval, QuantityError> {
    let wanted = || QuantityError::new(text, "an interval such as 10s..12s");
    let (from, until) = text.split_once("..").ok_or_else(wanted)?;
    let until = if until.is_empty() { Duration::MAX } else { parse_duration(until)? };
    let interval = Interval { from: parse_duration(from)?, until };
    if interval.from < interval.until { Ok(interval) } else { Err(wanted()) }
}

/// Reads what is separated by plus signs.
fn read_list<T>(text: &str, read: fn(&str) -> Result<T, QuantityError>) -> Result<Vec<T>, QuantityError> {
    text.split('+').map(read).collect()
}

fn read_collapse(text: &str) -> Result<Collapse, QuantityError> {
    let wanted = || QuantityError::new(text, "an interval and what is left of the rate, such as 2s..4s/5%");
    let (during, left) = text.split_once('/').ok_or_else(wanted)?;
    Ok(Collapse { during: read_interval(during)?, left: left.parse()? })
}

fn read_detour(text: &str) -> Result<Detour, QuantityError> {
    let wanted = || QuantityError::new(text, "an interval and a delay, such as 2s..3s/30ms");
    let (during, by) = text.split_once('/').ok_or_else(wanted)?;
    Ok(Detour { during: read_interval(during)?, by: parse_duration(by)? })
}

fn read_drx(text: &str) -> Result<Option<Drx>, QuantityError> {
    match text {
        "off" => Ok(None),
        "mmwave" => Ok(Some(Drx::MMWAVE)),
        "lowband" => Ok(Some(Drx::LOW_BAND)),
        _ => {
            let wanted = || QuantityError::new(text, "IDLE/CYCLE such as 30ms/40ms, mmwave, lowband or off");
            let (idle, cycle) = text.split_once('/').ok_or_else(wanted)?;
            let timers = Drx { idle: parse_duration(idle)?, cycle: parse_duration(cycle)? };
            if timers.cycle.is_zero() { Err(wanted()) } else { Ok(Some(timers)) }
        }
    }
}
