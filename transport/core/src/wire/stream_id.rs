//! Stream identifiers (RFC 9000 §2.1).

use crate::Role;
use std::fmt;

/// The direction of a stream: both endpoints send on it, or only the one that opened it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Direction {
    /// Both endpoints send.
    Bidirectional,
    /// Only the initiator sends.
    Unidirectional,
}

impl Direction {
    /// Both directions, in the order of their bit in a stream ID.
    pub const ALL: [Self; 2] = [Self::Bidirectional, Self::Unidirectional];
}

/// A stream ID: bit 0 is the initiator, bit 1 the direction, the rest counts from 0 (RFC 9000 §2.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StreamId(pub u64);

impl StreamId {
    /// Streams of one type that can exist at most (RFC 9000 §4.6).
    pub const MAX_STREAMS: u64 = 1 << 60;

    /// The stream number `index` (from 0, below [`Self::MAX_STREAMS`]) that `initiator` opens in `direction`.
    pub const fn new(initiator: Role, direction: Direction, index: u64) -> Self {
        let initiator = match initiator {
            Role::Client => 0,
            Role::Server => 1,
        };
        let direction = match direction {
            Direction::Bidirectional => 0,
            Direction::Unidirectional => 2,
        };
        Self(index << 2 | direction | initiator)
    }

    /// Returns the endpoint that opens this stream.
    pub const fn initiator(self) -> Role {
        if self.0 & 1 == 0 { Role::Client } else { Role::Server }
    }

    /// Returns the direction: tells who sends on this stream.
    pub const fn direction(self) -> Direction {
        if self.0 & 2 == 0 { Direction::Bidirectional } else { Direction::Unidirectional }
    }

    /// Returns the number of streams of the same type that were opened before it.
    pub const fn index(self) -> u64 {
        self.0 >> 2
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_four_types_of_streams_have_the_ids_of_the_rfc() {
        // RFC 9000 §2.1, table 1.
        assert_eq!(StreamId::new(Role::Client, Direction::Bidirectional, 0), StreamId(0));
        assert_eq!(StreamId::new(Role::Server, Direction::Bidirectional, 0), StreamId(1));
        assert_eq!(StreamId::new(Role::Client, Direction::Unidirectional, 0), StreamId(2));
        assert_eq!(StreamId::new(Role::Server, Direction::Unidirectional, 5), StreamId(23));
    }

    #[test]
    fn an_id_gives_back_what_it_was_made_of() {
        for initiator in [Role::Client, Role::Server] {
            for direction in Direction::ALL {
                for index in [0, 1, 77, StreamId::MAX_STREAMS - 1] {
                    let id = StreamId::new(initiator, direction, index);
                    assert_eq!((id.initiator(), id.direction(), id.index()), (initiator, direction, index));
                }
            }
        }
    }
}
