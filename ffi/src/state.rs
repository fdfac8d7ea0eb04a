//! The state behind an endpoint of C, and the guard that keeps it from being used twice at a time.

use crate::error::{
    Failure, HVQ_ERR_BUSY, HVQ_ERR_NULL, HVQ_ERR_PANIC, HVQ_ERR_UNKNOWN_CONNECTION, hvq_result, report,
};
use crate::event::{event_of, no_event};
use crate::guard::entry;
use crate::output::{HVQ_OUTPUT_EVENT, HVQ_OUTPUT_IDLE, HVQ_OUTPUT_TRANSMIT, hvq_output, hvq_transmit};
use bytes::{Bytes, BytesMut};
use hvq_transport::connection::{Connection, FourTuple, Transmit};
use hvq_transport::endpoint::{ConnectionHandle, Endpoint, EndpointConfig, Output, ServerConfig};
use hvq_transport::time::Instant;
use std::cell::UnsafeCell;
use std::fmt;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

/// A QUIC endpoint: client, server or both.
pub struct hvq_endpoint {
    /// True while a call is under way.
    busy: AtomicBool,
    /// True if a call failed in a way that leaves anything possible.
    poisoned: AtomicBool,
    /// Only for who holds `busy`. `None` while it is freed.
    state: UnsafeCell<Option<Box<State>>>,
}

// SAFETY: the state, which may move between threads, is touched by one at a time: the one that set `busy`.
unsafe impl Sync for hvq_endpoint {}

const fn assert_send<T: Send>() {}
const _: () = assert_send::<State>();

impl fmt::Debug for hvq_endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("hvq_endpoint").finish_non_exhaustive()
    }
}

impl hvq_endpoint {
    /// An endpoint that C frees.
    pub(crate) fn new(state: State) -> *mut Self {
        let state = UnsafeCell::new(Some(Box::new(state)));
        let (busy, poisoned) = (AtomicBool::new(false), AtomicBool::new(false));
        Box::into_raw(Box::new(Self { busy, poisoned, state }))
    }

    /// Frees an endpoint that is not in use.
    ///
    /// # Safety
    ///
    /// `endpoint` comes from [`Self::new`] and was not freed, or is NULL.
    pub(crate) unsafe fn free(endpoint: *mut Self) -> Result<(), Failure> {
        // SAFETY: the caller says so.
        let Some(this) = (unsafe { endpoint.as_ref() }) else { return Ok(()) };
        if this.busy.swap(true, Ordering::Acquire) {
            return Err(HVQ_ERR_BUSY.into());
        }
        // SAFETY: nobody else holds `busy`. Callbacks that are called from here find it set.
        let state = unsafe { (*this.state.get()).take() };
        let freed = entry(|| {
            drop(state);
            Ok(())
        });
        // SAFETY: the caller gives it back, and nothing borrows it any more.
        drop(unsafe { Box::from_raw(endpoint) });
        if freed < 0 { Err(freed.into()) } else { Ok(()) }
    }
}

/// Runs the body of a call on `endpoint`, alone.
pub(crate) fn with(
    endpoint: Option<&hvq_endpoint>,
    body: impl FnOnce(&mut State) -> Result<(), Failure>,
) -> hvq_result {
    let Some(endpoint) = endpoint else { return report(HVQ_ERR_NULL.into()) };
    if endpoint.busy.swap(true, Ordering::Acquire) {
        return report(HVQ_ERR_BUSY.into());
    }
    let result = entry(|| {
        if endpoint.poisoned.load(Ordering::Relaxed) {
            return Err(HVQ_ERR_PANIC.into());
        }
        // SAFETY: `busy` was clear, so that nobody else has this reference until it is cleared again.
        let state = unsafe { (*endpoint.state.get()).as_deref_mut() };
        state.ok_or_else(|| HVQ_ERR_BUSY.into()).and_then(body)
    });
    if result == HVQ_ERR_PANIC {
        endpoint.poisoned.store(true, Ordering::Relaxed);
    }
    endpoint.busy.store(false, Ordering::Release);
    result
}

/// Runs the body of a call on a connection of `endpoint`, alone.
pub(crate) fn with_connection(
    endpoint: Option<&hvq_endpoint>,
    number: u64,
    body: impl FnOnce(&mut Connection) -> Result<(), Failure>,
) -> hvq_result {
    with(endpoint, |state| body(state.connection(number)?))
}

/// Runs the body of a call that only looks at a connection, alone: it is not polled for that.
pub(crate) fn look(
    endpoint: Option<&hvq_endpoint>,
    number: u64,
    body: impl FnOnce(&Connection) -> Result<(), Failure>,
) -> hvq_result {
    with(endpoint, |state| {
        let connection = state.core.get(ConnectionHandle(number));
        body(connection.ok_or(HVQ_ERR_UNKNOWN_CONNECTION)?)
    })
}

/// An endpoint of the transport, and what C was last shown of it.
pub(crate) struct State {
    pub(crate) core: Endpoint,
    /// Copies of what arrives.
    pub(crate) arena: Arena,
    /// The datagram that C was last given to send.
    transmit: Option<Transmit>,
    /// The bytes in the event that C was last given.
    bytes: Vec<u8>,
    /// The bytes that C last read without a copy.
    pub(crate) chunk: Bytes,
}

impl State {
    pub(crate) fn new(config: EndpointConfig, server: Option<ServerConfig>, seed: [u8; 32]) -> Self {
        Self {
            core: Endpoint::new(config, server, seed),
            arena: Arena::default(),
            transmit: None,
            bytes: Vec::new(),
            chunk: Bytes::new(),
        }
    }

    pub(crate) fn connection(&mut self, number: u64) -> Result<&mut Connection, Failure> {
        self.core.connection(ConnectionHandle(number)).ok_or_else(|| HVQ_ERR_UNKNOWN_CONNECTION.into())
    }

    /// The next thing to do.
    pub(crate) fn poll(&mut self, now: Instant) -> hvq_output {
        if let Some(sent) = self.transmit.take() {
            self.core.recycle(sent.bytes);
        }
        let mut output = nothing();
        match self.core.poll(now) {
            Output::Transmit(transmit) => {
                let transmit = self.transmit.insert(transmit);
                output.kind = HVQ_OUTPUT_TRANSMIT;
                output.transmit = transmit_of(transmit);
            }
            Output::Event(handle, event) => {
                output.kind = HVQ_OUTPUT_EVENT;
                output.event = event_of(handle.0, &event, &mut self.bytes);
            }
            Output::Idle(deadline) => {
                output.deadline = deadline.map_or(u64::MAX, |deadline| deadline.at.as_nanos());
            }
        }
        output
    }
}

fn nothing() -> hvq_output {
    let transmit = hvq_transmit {
        route: Default::default(),
        bytes: ptr::null(),
        length: 0,
        segment: 0,
        ecn: 0,
        dscp: 0,
    };
    hvq_output { kind: HVQ_OUTPUT_IDLE, reserved: 0, deadline: 0, transmit, event: no_event() }
}

fn transmit_of(transmit: &Transmit) -> hvq_transmit {
    hvq_transmit {
        route: FourTuple { local: transmit.local, remote: transmit.remote }.into(),
        bytes: transmit.bytes.as_ptr(),
        length: transmit.bytes.len(),
        segment: transmit.segment.unwrap_or(0),
        ecn: transmit.ecn.bits().into(),
        dscp: transmit.dscp.value().into(),
    }
}

/// Bytes of a buffer for copies, which holds the largest batch, and how many buffers there are at most.
const BUFFER: usize = 128 << 10;
const MOST_BUFFERS: usize = 64;

/// Copies of datagrams in memory that is used again, so that there is no allocation for each. Memory that cannot be
/// used again because something of it is kept for long is bounded; beyond that each copy has memory of its own.
#[derive(Default)]
pub(crate) struct Arena {
    buffers: Vec<BytesMut>,
    /// The buffer to try first.
    next: usize,
}

impl Arena {
    /// A copy of `bytes`.
    pub(crate) fn copy(&mut self, bytes: &[u8]) -> BytesMut {
        if bytes.len() > BUFFER {
            return BytesMut::from(bytes);
        }
        let count = self.buffers.len();
        let order = (0..count).map(|step| (self.next + step) % count);
        let free = order
            .into_iter()
            .find(|index| self.buffers.get_mut(*index).is_some_and(|buffer| buffer.try_reclaim(bytes.len())));
        let index = match free {
            Some(index) => index,
            None if count < MOST_BUFFERS => {
                self.buffers.push(BytesMut::with_capacity(BUFFER));
                count
            }
            None => return BytesMut::from(bytes),
        };
        self.next = index;
        let Some(buffer) = self.buffers.get_mut(index) else { return BytesMut::from(bytes) };
        buffer.extend_from_slice(bytes);
        buffer.split()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_right_and_memory_is_bounded_whatever_is_kept() {
        let mut arena = Arena::default();
        let mut kept = Vec::new();
        for number in 0..10_000u32 {
            let bytes = [number as u8; 1400];
            let copy = arena.copy(&bytes);
            assert_eq!(copy, bytes[..]);
            if number % 3 == 0 {
                kept.push((number as u8, copy));
            }
        }
        assert!(arena.buffers.len() <= MOST_BUFFERS);
        assert!(kept.iter().all(|(number, copy)| copy.iter().all(|byte| byte == number)));
    }

    #[test]
    fn a_panic_is_an_error_and_the_endpoint_of_no_use_from_then_on() {
        let endpoint = hvq_endpoint::new(State::new(EndpointConfig::default(), None, [1; 32]));
        // SAFETY: it was made above, and is freed below.
        let this = unsafe { endpoint.as_ref() };
        assert_eq!(with(this, |_| Ok(())), 0);
        assert_eq!(with(this, |_| panic!("as a test has it")), HVQ_ERR_PANIC);
        assert_eq!(with(this, |_| Ok(())), HVQ_ERR_PANIC);
        assert_eq!(with_connection(this, 0, |_| Ok(())), HVQ_ERR_PANIC);
        assert_eq!(look(this, 0, |_| Ok(())), HVQ_ERR_PANIC);
        // SAFETY: it was made above, and is not used any more.
        assert!(unsafe { hvq_endpoint::free(endpoint) }.is_ok());
    }

    #[test]
    fn one_buffer_does_for_what_is_dropped_at_once() {
        let mut arena = Arena::default();
        for _ in 0..10_000 {
            drop(arena.copy(&[1; 1400]));
        }
        assert_eq!(arena.buffers.len(), 1);
    }
}
