//! The health of a gateway: it is well while nothing of it has ended that was not told to.

use std::sync::Arc;
use tokio::sync::watch;

/// A part of a gateway that ended though nobody told it to: by a panic, or because the system failed it. Without it the gateway
/// serves nobody, or not everybody, and had better be started again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Broken {
    /// The driver of the worker of this number, from 0 on: its connections are gone.
    #[error("the driver of worker {0} has ended")]
    Driver(usize),
    /// The task that accepts connections of the worker of this number.
    #[error("worker {0} accepts no more connections")]
    Accepting(usize),
    /// A task that accepts connections over TCP.
    #[error("connections over TCP are accepted no more")]
    Tcp,
    /// The task that answers at the admin address.
    #[error("nobody answers at the admin address any more")]
    Admin,
    /// The task that takes packets from the device of tunnels.
    #[error("nothing comes from the device of tunnels any more")]
    Tunnels,
}

/// The health of a gateway: the order to stop, and its broken part.
#[derive(Debug)]
pub(crate) struct Health {
    stopping: watch::Sender<bool>,
    broken: watch::Sender<Option<Broken>>,
}

impl Default for Health {
    fn default() -> Self {
        Self { stopping: watch::Sender::new(false), broken: watch::Sender::new(None) }
    }
}

impl Health {
    /// Has the gateway stop: what ends from now on does as it was told.
    pub(crate) fn stop(&self) {
        self.stopping.send_replace(true);
    }

    /// Returns true if the gateway is to stop.
    pub(crate) fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// Waits until the gateway is to stop.
    pub(crate) async fn stopping(&self) {
        let mut stopping = self.stopping.subscribe();
        // The sender is here, so that waiting cannot fail.
        let _stopped = stopping.wait_for(|stopping| *stopping).await;
    }

    /// Returns true if anything is broken.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken.borrow().is_some()
    }

    /// Waits until something is broken; what broke first.
    pub(crate) async fn broken(&self) -> Broken {
        let mut broken = self.broken.subscribe();
        loop {
            if let Some(first) = *broken.borrow_and_update() {
                return first;
            }
            // The sender is here, as above.
            let _changed = broken.changed().await;
        }
    }

    fn note(&self, what: Broken) {
        self.broken.send_if_modified(|broken| {
            let is_first = broken.is_none();
            broken.get_or_insert(what);
            is_first
        });
    }

    /// Returns the alarm that a task keeps for as long as it runs, if it must not end before the gateway does.
    pub(crate) fn alarm(self: &Arc<Self>, what: Broken) -> Alarm {
        Alarm { health: self.clone(), what }
    }
}

/// Tells that something is broken when it is dropped, by a panic too, unless the gateway is to stop.
#[derive(Debug)]
#[must_use = "dropping it is the alarm"]
pub(crate) struct Alarm {
    health: Arc<Health>,
    what: Broken,
}

impl Drop for Alarm {
    fn drop(&mut self) {
        if !self.health.is_stopping() {
            self.health.note(self.what);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_ends_unasked_is_told_by_whatever_way_it_ends() {
        let health = Arc::new(Health::default());
        let alarm = health.alarm(Broken::Accepting(3));
        let panicked = tokio::spawn(async move {
            let _alarm = alarm;
            panic!("as a bug would");
        });
        assert_eq!(health.broken().await, Broken::Accepting(3));
        assert!(panicked.await.is_err() && health.is_broken());
        drop(health.alarm(Broken::Admin));
        assert_eq!(health.broken().await, Broken::Accepting(3), "the first");
    }

    #[test]
    fn what_ends_as_it_was_told_is_not_broken() {
        let health = Arc::new(Health::default());
        let alarm = health.alarm(Broken::Admin);
        health.stop();
        drop(alarm);
        assert!(health.is_stopping() && !health.is_broken());
    }
}
