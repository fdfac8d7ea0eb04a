//! The books of flow control, held against the streams that they are about.

use super::Streams;
use super::writers::{Held, Writers};

/// Flow control of a connection in bytes from its start (RFC 9000 §4.1), and the streams that take memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Accounts {
    /// The bytes that the peer lets this endpoint send.
    pub credit: u64,
    /// The part of it that this endpoint used.
    pub used: u64,
    /// The bytes that this endpoint lets the peer send.
    pub granted: u64,
    /// The part of it that the peer used.
    pub received: u64,
    /// The part of that which left the buffers.
    pub consumed: u64,
    /// Streams that take memory.
    pub streams: usize,
}

impl Streams {
    /// The accounts, if no stream contradicts them.
    pub(crate) fn audit(&self) -> Result<Accounts, String> {
        let accounts = Accounts {
            credit: self.credit.limit(),
            used: self.credit.used(),
            granted: self.window.limit(),
            received: self.window.received(),
            consumed: self.window.consumed(),
            streams: self.map.len(),
        };
        self.audit_writers()?;
        let (mut received, mut consumed) = (0, 0);
        for (id, stream) in self.map.iter() {
            if let Some(window) = stream.receive.as_ref().map(|receive| receive.window()) {
                if window.consumed() > window.received() || window.received() > window.limit() {
                    return Err(format!("stream {id}: {window:?}"));
                }
                received += window.received();
                consumed += window.consumed();
            }
        }
        // Streams that are freed count on in the totals, and whatever they held was consumed.
        let unread = received - consumed;
        if accounts.used > accounts.credit
            || accounts.received > accounts.granted
            || received > accounts.received
            || accounts.received.checked_sub(accounts.consumed) != Some(unread)
        {
            return Err(format!("{accounts:?}, but open streams received {received}, {unread} of it unread"));
        }
        Ok(accounts)
    }

    /// Checks that the sums over streams are those of the single streams.
    fn audit_writers(&self) -> Result<(), String> {
        let halves = self.map.iter().filter_map(|(_, stream)| stream.send.as_ref());
        let mut sum = Writers::default();
        halves.for_each(|send| sum.on_change(Held::default(), Held::of(send)));
        let (sum, totals) = (sum.totals(), self.writers.totals());
        if sum == totals { Ok(()) } else { Err(format!("{totals:?} are said to be held, but it is {sum:?}")) }
    }
}
