//! Admission.
//!
//! A server decides about each client that asks for a connection before anything is spent on it: by `retry_from` of its
//! options alone, or by a callback, to which that is a proposal.

use crate::address::hvq_route;
use hvq_transport::connection::{ClientAddress, FourTuple};
use hvq_transport::endpoint::{Admission, Candidate, Decision};
use std::ffi::c_void;

/// The handshake begins.
pub const HVQ_ADMISSION_ACCEPT: u32 = 0;
/// The client has to prove its address first, which costs a round trip (RFC 9000 §8.1.2). One that did is accepted.
pub const HVQ_ADMISSION_RETRY: u32 = 1;
/// The client is told that there will be no connection (CONNECTION_REFUSED).
pub const HVQ_ADMISSION_REFUSE: u32 = 2;
/// The client gets no answer.
pub const HVQ_ADMISSION_IGNORE: u32 = 3;

/// A client that asks for a connection.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct hvq_candidate {
    /// The addresses at which its first datagram arrived, and from which it came. Anybody can forge the latter unless
    /// `is_proven` is 1.
    pub route: hvq_route,
    /// 1 if a token proves that the client receives at this address, 0 if nothing does.
    pub is_proven: u32,
    /// The version of QUIC that the client begins with.
    pub version: u32,
    /// Connections of the endpoint.
    pub connections: u64,
    /// The connections that peers started and whose handshake is not complete.
    pub handshaking: u64,
    /// HVQ_ADMISSION_...: what `retry_from` alone would say.
    pub proposal: u32,
    /// 0.
    pub reserved: u32,
}

/// Decides about a client: one of HVQ_ADMISSION_, and anything else counts as HVQ_ADMISSION_IGNORE. It is asked for every
/// datagram that belongs to no connection and could start one, within calls on the endpoint, on their thread; it must be
/// quick and not call the library for the same endpoint.
pub type hvq_admission_callback =
    Option<unsafe extern "C" fn(user: *mut c_void, candidate: *const hvq_candidate) -> u32>;

fn number_of(decision: Decision) -> u32 {
    match decision {
        Decision::Accept => HVQ_ADMISSION_ACCEPT,
        Decision::Retry => HVQ_ADMISSION_RETRY,
        Decision::Refuse => HVQ_ADMISSION_REFUSE,
        Decision::Ignore | Decision::Defer => HVQ_ADMISSION_IGNORE,
    }
}

fn shown(candidate: &Candidate) -> hvq_candidate {
    hvq_candidate {
        route: FourTuple { local: candidate.local, remote: candidate.remote }.into(),
        is_proven: (candidate.address != ClientAddress::Unproven).into(),
        version: candidate.version.0,
        connections: candidate.connections as u64,
        handshaking: candidate.handshaking as u64,
        proposal: number_of(candidate.proposal),
        reserved: 0,
    }
}

/// The callback of C as the endpoint asks it.
pub(crate) fn admission(
    callback: hvq_admission_callback,
    user: crate::credentials::User,
) -> Option<Admission> {
    let call = callback?;
    Some(Admission::new(move |candidate| {
        // SAFETY: the callback may be called with its `user`, and the candidate is valid during the call.
        match unsafe { call(user.pointer(), &shown(candidate)) } {
            HVQ_ADMISSION_ACCEPT => Decision::Accept,
            HVQ_ADMISSION_RETRY => Decision::Retry,
            HVQ_ADMISSION_REFUSE => Decision::Refuse,
            _ => Decision::Ignore,
        }
    }))
}
