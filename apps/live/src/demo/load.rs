//! One load of one page: a server, emulated channels and a client that exist for it alone.

use super::Plan;
use super::page_load;
use super::recording::Recording;
use super::results::{ChannelUse, FrameCount, Load, LoadOutcome, ObjectTiming, Series};
use super::scheme::{ChannelName, Scheme};
use super::stage::{Client, Relays, Server};
use hvq::{Connection, PathId};
use hvq_lab::pages::{Loader, Page, THINK_SCALE};
use hvq_program::failure::Failure;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// A load that takes longer has failed.
const LIMIT: Duration = Duration::from_secs(20);

/// The number of the load of a page, and its start in the trace.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    /// The repetition, counted from 1.
    pub(super) repetition: usize,
    /// The time in the trace.
    pub(super) offset: Duration,
}

/// Loads `page` with `scheme`. Failures in the load are part of the result; errors are about what surrounds it.
pub(super) async fn load(plan: &Plan, page: &Page, scheme: Scheme, moment: Moment) -> Result<Load, Failure> {
    let mut server = Server::bind(plan, page, scheme)?;
    // The time of the channels starts here, and so does that of the load.
    let relays = Relays::start(plan, &server, scheme, moment)?;
    let start = Instant::now();
    server.run(Recording::new(start));
    let client = Client::new(plan, scheme, &relays, Recording::new(start))?;
    let mut loader = Loader::new(page, THINK_SCALE, 1.0);
    let outcome = match timeout(LIMIT, page_load::run(&client, &mut loader, page, start)).await {
        Ok(Ok(())) => {
            LoadOutcome::LoadedMs(milliseconds(loader.page_load_time().unwrap_or_else(|| start.elapsed())))
        }
        Ok(Err(failure)) => LoadOutcome::Failed(failure.line()),
        Err(_) => LoadOutcome::Failed(format!("not loaded after {LIMIT:?}")),
    };
    let channels = usage(&relays, &client, &server);
    let connect_ms = client.connect_time().map(milliseconds).unwrap_or_default();
    client.close();
    server.stop().await;
    Ok(Load {
        page: page.id.clone(),
        scheme,
        repetition: moment.repetition,
        offset_s: moment.offset.as_secs_f64(),
        outcome,
        connect_ms,
        objects: timings(page, &loader),
        channels,
    })
}

fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

fn timings(page: &Page, loader: &Loader) -> Vec<ObjectTiming> {
    let timing = |(object, timing): (&hvq_lab::pages::Object, &hvq_lab::pages::Timing)| ObjectTiming {
        id: object.id.0,
        kind: format!("{:?}", object.kind).to_lowercase(),
        bytes: object.size,
        requested_ms: timing.requested.map(milliseconds),
        first_byte_ms: timing.first_byte.map(milliseconds),
        end_ms: timing.end.map(milliseconds),
    };
    page.objects.iter().zip(loader.timings()).filter(|(object, _)| object.before_onload).map(timing).collect()
}

/// Returns the traffic of each channel until now.
fn usage(relays: &Relays, client: &Client, server: &Server) -> Vec<ChannelUse> {
    let (up, down) = (client.connection(), server.connection());
    let of = |(index, (channel, relay)): (usize, &(ChannelName, hvq_emulation::relay::RelayHandle))| {
        // Paths are numbered in the order in which they are opened, which is that of the relays.
        let path = PathId(index as u32);
        let statistics = relay.stats();
        ChannelUse {
            channel: *channel,
            up_bytes: statistics.up.entered.bytes,
            down_bytes: statistics.down.entered.bytes,
            dropped: statistics.up.dropped_in_all().packets + statistics.down.dropped_in_all().packets,
            frames: frames(path, [up.as_ref(), down.as_ref()]),
            series: Series { up: client.recording().buckets(path), down: server.recording().buckets(path) },
        }
    };
    relays.in_order().iter().enumerate().map(of).collect()
}

/// Frames that the two ends sent on `path`, by kind.
fn frames(path: PathId, ends: [Option<&Connection>; 2]) -> Vec<FrameCount> {
    let mut counts: BTreeMap<&'static str, FrameCount> = BTreeMap::new();
    for counter in ends.into_iter().flatten().flat_map(|end| end.stats().frames) {
        if counter.path == path && counter.sent > 0 {
            let kind = counter.kind;
            let count = counts.entry(kind).or_insert(FrameCount { kind, frames: 0, bytes: 0 });
            count.frames += counter.sent;
            count.bytes += counter.sent_bytes;
        }
    }
    counts.into_values().collect()
}
