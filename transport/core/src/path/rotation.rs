//! Rotation of the connection ID that a path uses, so that observers cannot follow it for long (RFC 9000 §5.1.2, §9.5).

use crate::time::Instant;
use std::time::Duration;

/// The limits after which paths change the peer's connection ID that they use. Each limit that is set counts from the
/// last change; none is a path that keeps its connection ID unless it moves. Without data of the application nothing
/// changes: a change costs packets of its own, which must not bring about the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rotation {
    /// The number of packets after which it is changed.
    pub packets: Option<u64>,
    /// The time after which it is changed.
    pub time: Option<Duration>,
    /// The silence after which it is changed with the first packet: an observer then learns least from the change.
    pub idle: Option<Duration>,
}

/// The use that a path has made of the peer's connection ID.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Destination {
    /// The number of the first packet that was sent to it.
    pub since: u64,
    /// The time at which it was taken into use.
    pub at: Instant,
    /// True if data of the application was sent or received on the path since then.
    pub carried: bool,
}

impl Rotation {
    /// Returns true if anything is limited.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.packets.is_some() || self.time.is_some() || self.idle.is_some()
    }
}

impl Destination {
    /// Returns true if `rotation` asks for another one before packet number `next` leaves at `now`, on a path that was
    /// last active at `active_at`. One that was not used for the application's data yet stays.
    pub fn is_due(&self, rotation: &Rotation, next: u64, active_at: Instant, now: Instant) -> bool {
        let packets = next.saturating_sub(self.since);
        self.carried
            && (rotation.packets.is_some_and(|most| packets >= most)
                || rotation.time.is_some_and(|longest| now.since(self.at) >= longest)
                || rotation.idle.is_some_and(|silence| now.since(active_at) >= silence))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_counts_for_itself_and_no_limit_is_never() {
        let start = Instant::from_nanos(1_000);
        let second = Duration::from_secs(1);
        let destination = Destination { since: 10, at: start, carried: true };
        let due =
            |rotation: Rotation, next, active_at, now| destination.is_due(&rotation, next, active_at, now);
        let packets = Rotation { packets: Some(5), ..Rotation::default() };
        assert!(!due(packets, 14, start, start));
        assert!(due(packets, 15, start, start));
        let time = Rotation { time: Some(second), ..Rotation::default() };
        assert!(!due(time, 11, start, start));
        assert!(due(time, 11, start, start + second));
        let unused = Destination { carried: false, ..destination };
        assert!(!unused.is_due(&time, 11, start, start + second), "it was not used yet");
        let idle = Rotation { idle: Some(second), ..Rotation::default() };
        assert!(!due(idle, 11, start + second, start + second));
        assert!(due(idle, 11, start, start + second));
        assert!([packets, time, idle].iter().all(Rotation::is_set) && !Rotation::default().is_set());
        assert!(!due(Rotation::default(), u64::MAX, start, start + second * 1_000_000));
    }
}
