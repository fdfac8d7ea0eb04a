//! Named cells: outages that once made two channels worse than one.

use super::cell::OutageCell;
use super::outage::{Outage, OutageKind};
use crate::experiment::pages::Reach;
use crate::pages::builtin;
use crate::workload::page_load::Deployment;
use hvq_emulation::{Bandwidth, ChannelSpec};
use std::sync::Arc;
use std::time::Duration;

/// An outage of a named cell: times in milliseconds since the beginning of the load.
struct Dark {
    channel: Reach,
    /// `None` for the start of the world.
    from: Option<u64>,
    until: u64,
}

/// A cell whose channels are eMBB with 50 ms and 60 Mbit/s, and URLLC with 5 ms and 2 Mbit/s.
struct Named {
    name: &'static str,
    page: &'static str,
    deployment: Deployment,
    kind: OutageKind,
    dark: &'static [Dark],
}

/// eMBB dark from `from` until `until`.
const fn embb(from: Option<u64>, until: u64) -> Dark {
    Dark { channel: Reach::Embb, from, until }
}

/// URLLC dark from `from` until `until`.
const fn urllc(from: Option<u64>, until: u64) -> Dark {
    Dark { channel: Reach::Urllc, from, until }
}

/// A load of p05 or p12 that begins on a channel which is dark.
const fn at_start(name: &'static str, deployment: Deployment, dark: &'static [Dark]) -> Named {
    Named { name, page: "p05", deployment, kind: OutageKind::Start, dark }
}

/// A load during which channels go dark.
const fn during(
    name: &'static str,
    deployment: Deployment,
    kind: OutageKind,
    dark: &'static [Dark],
) -> Named {
    Named { name, page: "p12", deployment, kind, dark }
}

use Deployment::{Cold, Gateway};

const CELLS: [Named; 13] = [
    at_start("gateway-urllc-3s", Gateway, &[urllc(None, 3_000)]),
    at_start("gateway-urllc-7s", Gateway, &[urllc(None, 7_000)]),
    at_start("cold-urllc-at-100ms", Cold, &[urllc(Some(100), 12_100)]),
    at_start("cold-urllc-at-400ms", Cold, &[urllc(Some(400), 12_400)]),
    at_start("cold-embb-9s", Cold, &[embb(Some(0), 9_000)]),
    during("cold-embb-9s-p12", Cold, OutageKind::Middle, &[embb(Some(500), 9_500)]),
    during("gateway-both-9s", Gateway, OutageKind::Both, &[embb(Some(500), 5_500), urllc(Some(500), 9_500)]),
    during(
        "gateway-both-14s",
        Gateway,
        OutageKind::Both,
        &[embb(Some(500), 5_500), urllc(Some(500), 14_500)],
    ),
    during(
        "gateway-both-25s",
        Gateway,
        OutageKind::Both,
        &[embb(Some(500), 5_500), urllc(Some(500), 25_500)],
    ),
    during(
        "gateway-both-9s-urllc",
        Gateway,
        OutageKind::Both,
        &[embb(Some(500), 9_500), urllc(Some(500), 5_500)],
    ),
    during("cold-embb-14s", Cold, OutageKind::Middle, &[embb(Some(500), 14_500)]),
    during(
        "gateway-urllc-14s",
        Gateway,
        OutageKind::Middle,
        &[embb(None, 200_000), urllc(Some(500), 14_500)],
    ),
    during("cold-urllc-14s", Cold, OutageKind::Middle, &[embb(None, 200_000), urllc(Some(500), 14_500)]),
];

/// The names of all named cells.
pub fn names() -> impl Iterator<Item = &'static str> {
    CELLS.iter().map(|named| named.name)
}

/// The named cell `name`, if there is one; `seed` is for what is random in its runs.
pub fn named(name: &str, seed: u64) -> Option<OutageCell> {
    let Named { name, page, deployment, kind, dark } = CELLS.iter().find(|named| named.name == name)?;
    let lead = deployment.lead();
    let since = |milliseconds: u64| lead + Duration::from_millis(milliseconds);
    let outage =
        |dark: &Dark| Outage::once(dark.channel, dark.from.map_or(Duration::ZERO, since), since(dark.until));
    Some(OutageCell {
        name: (*name).to_owned(),
        kind: *kind,
        page: Arc::new(builtin::page(page)?),
        deployment: *deployment,
        embb: ChannelSpec::constant(Duration::from_millis(50), Bandwidth::from_megabits_per_second(60)),
        urllc: ChannelSpec::urllc(),
        outages: dark.iter().map(outage).collect(),
        seed,
    })
}
