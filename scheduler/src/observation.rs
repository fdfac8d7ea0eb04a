//! Outcomes of placements: the feedback that policies may listen to.

use std::time::Duration;

use crate::{Content, PathId};

/// An outcome, reported once it is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Observation {
    /// A frame was written into a packet on `path`.
    Placed {
        /// The path.
        path: PathId,
        /// The content of the frame.
        content: Content,
        /// Its size as written.
        bytes: usize,
    },
    /// The packet with the frame was acknowledged.
    Acknowledged {
        /// The path it was sent on.
        path: PathId,
        /// The content of the frame.
        content: Content,
        /// Its size as written.
        bytes: usize,
        /// From sending to acknowledgement.
        delay: Duration,
    },
    /// The packet with the frame was declared lost.
    Lost {
        /// The path it was sent on.
        path: PathId,
        /// The content of the frame.
        content: Content,
        /// Its size as written.
        bytes: usize,
        /// From sending to the verdict.
        delay: Duration,
    },
    /// The path will not be listed again: its id is not used twice (RFC 10069 §3.4).
    PathGone {
        /// The path.
        path: PathId,
    },
}
