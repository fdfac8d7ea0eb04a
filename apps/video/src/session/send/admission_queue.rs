//! The admission queue of layers: they wait until those below them are not held up by them.

use crate::gate::{Decision, Gate, Layer};
use crate::session::LATE;
use hvq::{Connection, Priority, WriteError};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

/// The gate that all layers of a video pass, and those who wait before it.
#[derive(Debug)]
pub(super) struct AdmissionQueue {
    gate: Mutex<Gate>,
    changed: Notify,
    begun: Instant,
}

/// A layer above the base layer, as it travels.
#[derive(Debug)]
pub(super) struct EncodedLayer {
    pub(super) layer: Layer,
    pub(super) message: Vec<u8>,
    pub(super) priority: Priority,
    /// The time from which on it is of no use.
    pub(super) until: Instant,
}

impl AdmissionQueue {
    /// An open one, at the start of a video.
    pub(super) fn new() -> Self {
        Self { gate: Mutex::default(), changed: Notify::new(), begun: Instant::now() }
    }

    /// Sends `encoded` when it may be. Returns true if the receiver has it in time; a late encoded is taken back.
    pub(super) async fn send(&self, encoded: EncodedLayer, connection: &Connection) -> bool {
        let layer = encoded.layer;
        let is_there = match timeout_at(encoded.until, self.admit(&layer)).await {
            Ok(true) => carry(encoded, connection).await,
            _ => false,
        };
        self.change(|gate, now| match is_there {
            true => gate.on_delivered(layer.frame, layer.layer, now),
            false => gate.on_given_up(layer.frame, layer.layer),
        });
        self.changed.notify_waiters();
        is_there
    }

    /// Waits until `layer` may be sent; whether it is of use then.
    async fn admit(&self, layer: &Layer) -> bool {
        loop {
            // It hears of what changes from here on.
            let changed = self.changed.notified();
            let decision = self.change(|gate, now| {
                let decision = gate.admits(layer, now);
                if decision == Decision::Send {
                    gate.on_sent(*layer, now);
                }
                decision
            });
            match decision {
                Decision::Send => return true,
                Decision::Useless => return false,
                Decision::Wait => changed.await,
            }
        }
    }

    fn change<T>(&self, act: impl FnOnce(&mut Gate, Duration) -> T) -> T {
        let mut gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        act(&mut gate, self.begun.elapsed())
    }
}

/// Sends a layer on a stream of its own; whether all of it is there in time.
async fn carry(encoded: EncodedLayer, connection: &Connection) -> bool {
    let EncodedLayer { message, priority, until, .. } = encoded;
    let Ok(Ok(mut stream)) = timeout_at(until, connection.open_uni()).await else { return false };
    stream.set_priority(priority);
    let sent = async {
        stream.write_chunk(message.into()).await?;
        stream.end_message(Some(until.saturating_duration_since(Instant::now())))?;
        stream.finish()?;
        stream.stopped().await
    };
    let sent: Result<Result<Option<u64>, WriteError>, _> = timeout_at(until, sent).await;
    let is_there = matches!(sent, Ok(Ok(None)));
    if !is_there {
        let _gone = stream.reset(LATE);
    }
    is_there
}
