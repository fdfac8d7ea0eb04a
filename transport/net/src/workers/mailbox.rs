//! Mailboxes in which workers leave each other datagrams.
//!
//! The lock is that of `super::sync`, so that races are tried with a model of it, too.

use super::sync::{Mutex, MutexGuard, PoisonError};
use hvq_transport::connection::Datagram;
use std::task::Waker;

/// Datagrams that wait for another worker at most; beyond it they are dropped, as by a socket that is full.
const MAIL: usize = 4_096;
/// Packets of no connection that wait for another worker to look at them at most.
pub(super) const SHOWN: usize = 256;

/// Datagrams that were handed over to a worker and not taken in yet.
#[derive(Debug, Default)]
pub(super) struct Mailbox(Mutex<Mail>);

#[derive(Debug)]
enum Mail {
    /// Somebody takes it.
    Open {
        /// For this worker.
        datagrams: Vec<Datagram>,
        /// For nobody, or for a connection of whoever knows the reset.
        strays: Vec<Datagram>,
        reader: Option<Waker>,
    },
    /// The worker is gone.
    Closed,
}

impl Default for Mail {
    fn default() -> Self {
        Self::Open { datagrams: Vec::new(), strays: Vec::new(), reader: None }
    }
}

/// The sort of a datagram in a mailbox: the worker's own, or a stray.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sort {
    /// A datagram that is for it.
    Its,
    /// One that no connection was found for.
    Stray,
}

impl Mailbox {
    fn lock(&self) -> MutexGuard<'_, Mail> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves a datagram there and wakes the worker; drops it if there are too many, or the worker is gone.
    pub(super) fn put(&self, datagram: Datagram, sort: Sort) {
        let Mail::Open { datagrams, strays, reader } = &mut *self.lock() else { return };
        let (pile, most) = match sort {
            Sort::Its => (datagrams, MAIL),
            Sort::Stray => (strays, SHOWN),
        };
        if pile.len() < most {
            pile.push(datagram);
            if let Some(reader) = reader.take() {
                reader.wake();
            }
        }
    }

    /// Takes what is there, strays apart, and has `waker` woken when there is more.
    pub(super) fn take(&self, waker: &Waker, into: &mut Vec<Datagram>, strays_into: &mut Vec<Datagram>) {
        if let Mail::Open { datagrams, strays, reader } = &mut *self.lock() {
            into.append(datagrams);
            strays_into.append(strays);
            if !reader.as_ref().is_some_and(|reader| reader.will_wake(waker)) {
                *reader = Some(waker.clone());
            }
        }
    }

    /// The worker is gone: what is there and what comes is dropped.
    pub(super) fn close(&self) {
        *self.lock() = Mail::Closed;
    }
}
