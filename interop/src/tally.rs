//! Frames of the multipath extension, counted by kind in the packets that hvq seals and opens.

use anyhow::{Context, Result};
use bytes::Bytes;
use hvq::trace::{TraceEvent, Tracer, TracerFactory};
use hvq::transport::time::Instant;
use hvq::transport::wire::frame::{FrameReader, types};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The frames of RFC 10069 §4, by type and name.
pub const KINDS: [(u64, &str); 10] = [
    (types::PATH_ACK, "PATH_ACK"),
    (types::PATH_ACK_ECN, "PATH_ACK_ECN"),
    (types::PATH_ABANDON, "PATH_ABANDON"),
    (types::PATH_STATUS_BACKUP, "PATH_STATUS_BACKUP"),
    (types::PATH_STATUS_AVAILABLE, "PATH_STATUS_AVAILABLE"),
    (types::PATH_NEW_CONNECTION_ID, "PATH_NEW_CONNECTION_ID"),
    (types::PATH_RETIRE_CONNECTION_ID, "PATH_RETIRE_CONNECTION_ID"),
    (types::MAX_PATH_ID, "MAX_PATH_ID"),
    (types::PATHS_BLOCKED, "PATHS_BLOCKED"),
    (types::PATH_CIDS_BLOCKED, "PATH_CIDS_BLOCKED"),
];

/// The interval at which a count that is waited for is looked at.
const POLL: Duration = Duration::from_millis(1);
/// The time for which it is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// The direction of a frame, as hvq sees it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Way {
    /// From hvq.
    Sent,
    /// To hvq.
    Received,
}

/// The frames of a connection, of whatever type. Clones count together.
///
/// The counters of the connection itself have one name for PATH_ACK and PATH_ACK_ECN.
#[derive(Clone, Debug, Default)]
pub struct Tally(Arc<Mutex<BTreeMap<(Way, u64), u64>>>);

impl Tally {
    /// Has each connection counted here from its first packet on.
    pub fn factory(&self) -> TracerFactory {
        let tally = self.clone();
        Arc::new(move |_| Some(Box::new(tally.clone())))
    }

    /// Returns the number of frames of this type that went this way.
    pub fn count(&self, way: Way, frame_type: u64) -> u64 {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.get(&(way, frame_type)).copied().unwrap_or_default()
    }

    /// The kinds of multipath frames of which none went this way.
    pub fn missing(&self, way: Way) -> Vec<&'static str> {
        let none = |(frame_type, _): &(u64, &str)| self.count(way, *frame_type) == 0;
        KINDS.into_iter().filter(none).map(|(_, name)| name).collect()
    }

    /// Waits for a frame of this type to go this way.
    ///
    /// # Errors
    /// None does for ten seconds.
    pub async fn until(&self, way: Way, frame_type: u64) -> Result<()> {
        let name = KINDS.iter().find(|(known, _)| *known == frame_type).map_or("other", |(_, name)| name);
        until(|| (self.count(way, frame_type) > 0).then_some(()))
            .await
            .with_context(|| format!("{way:?}: no {name} frame"))
    }

    fn add(&self, way: Way, payload: &[u8]) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for frame in FrameReader::new(Bytes::copy_from_slice(payload)).map_while(Result::ok) {
            *counts.entry((way, frame.frame_type())).or_default() += 1;
        }
    }
}

impl Tracer for Tally {
    fn record(&mut self, _now: Instant, event: &TraceEvent<'_>) {
        match event {
            TraceEvent::PacketSent(packet) => self.add(Way::Sent, packet.payload.0),
            TraceEvent::PacketReceived(packet) => self.add(Way::Received, packet.payload.0),
            _ => {}
        }
    }
}

/// Waits until `look` finds something.
///
/// # Errors
/// It does not for ten seconds.
pub async fn until<T>(look: impl Fn() -> Option<T>) -> Result<T> {
    let found = async {
        loop {
            if let Some(found) = look() {
                return found;
            }
            tokio::time::sleep(POLL).await;
        }
    };
    let late = || format!("waited for {} s", PATIENCE.as_secs());
    tokio::time::timeout(PATIENCE, found).await.with_context(late)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hvq::PathId;
    use hvq::trace::{Payload, TracedPacket};
    use hvq::transport::crypto::keys::Level;

    /// PATH_ACK, MAX_PATH_ID, PATH_ACK_ECN and PING.
    const FRAMES: [&[u8]; 4] =
        [&[0x3e, 1, 9, 0, 0, 2], &[0x7e, 0x7a, 4], &[0x3f, 1, 9, 0, 0, 2, 3, 0, 0], &[0x01]];

    #[test]
    fn frames_are_counted_by_type_and_way() {
        let tally = Tally::default();
        let payload = FRAMES.concat();
        let packet = TracedPacket {
            level: Level::OneRtt,
            path: PathId(0),
            number: 0,
            bytes: 40,
            payload: Payload(&payload),
        };
        let mut tracer = tally.clone();
        tracer.record(Instant::ZERO, &TraceEvent::PacketSent(packet));
        tracer.record(Instant::ZERO, &TraceEvent::PacketSent(packet));
        assert_eq!(tally.count(Way::Sent, types::PATH_ACK), 2);
        assert_eq!(tally.count(Way::Sent, types::PATH_ACK_ECN), 2);
        assert_eq!(tally.count(Way::Sent, types::PING), 2);
        assert_eq!(tally.count(Way::Received, types::MAX_PATH_ID), 0);
        assert_eq!(tally.missing(Way::Sent).len(), KINDS.len() - 3);
        assert_eq!(tally.missing(Way::Received), KINDS.map(|(_, name)| name));
        tracer.record(Instant::ZERO, &TraceEvent::PacketReceived(packet));
        assert_eq!(tally.missing(Way::Received).len(), KINDS.len() - 3);
    }
}
