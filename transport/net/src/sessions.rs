//! Session tickets in memory.

use hvq_transport::crypto::session::{SessionStore, SessionTicket};
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Tickets kept for one server: what a server sends after two handshakes.
const PER_SERVER: usize = 4;
/// Tickets kept at most unless told otherwise.
const DEFAULT_CAPACITY: usize = 256;

/// A [`SessionStore`] that forgets everything with the process. If it is full, the oldest ticket gives way.
pub struct MemorySessions {
    capacity: usize,
    /// By age, the oldest first.
    tickets: Mutex<VecDeque<(String, SessionTicket)>>,
}

impl MemorySessions {
    /// An empty store for `capacity` tickets, four of them for the same server at most.
    pub fn new(capacity: usize) -> Self {
        Self { capacity, tickets: Mutex::default() }
    }

    /// Returns the number of tickets.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Returns true if there is no ticket.
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(String, SessionTicket)>> {
        self.tickets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for MemorySessions {
    fn default() -> Self {
        Self::new(DEFAULT_CAPACITY)
    }
}

impl fmt::Debug for MemorySessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemorySessions").field("tickets", &self.len()).finish_non_exhaustive()
    }
}

impl SessionStore for MemorySessions {
    fn put(&self, server_name: &str, ticket: SessionTicket) {
        let mut tickets = self.lock();
        let same = |(name, known): &(String, SessionTicket)| name == server_name && known.alpn == ticket.alpn;
        if tickets.iter().filter(|entry| same(entry)).count() >= PER_SERVER
            && let Some(oldest) = tickets.iter().position(same)
        {
            tickets.remove(oldest);
        }
        tickets.push_back((server_name.to_owned(), ticket));
        while tickets.len() > self.capacity {
            tickets.pop_front();
        }
    }

    fn take(&self, server_name: &str, protocols: &[Vec<u8>]) -> Option<SessionTicket> {
        let mut tickets = self.lock();
        let latest = tickets
            .iter()
            .rposition(|(name, ticket)| name == server_name && protocols.contains(&ticket.alpn))?;
        tickets.remove(latest).map(|(_, ticket)| ticket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hvq_transport::crypto::session::Ticket;
    use hvq_transport::wire::version::Version;

    fn ticket(byte: u8, alpn: &str) -> SessionTicket {
        let version = Version::V1;
        SessionTicket { tls: Ticket(vec![byte]), version, alpn: alpn.into(), parameters: Vec::new() }
    }

    #[test]
    fn the_latest_ticket_of_the_server_and_protocol_is_taken_once() {
        let store = MemorySessions::default();
        store.put("a.test", ticket(1, "h3"));
        store.put("a.test", ticket(2, "h3"));
        store.put("a.test", ticket(3, "other"));
        store.put("b.test", ticket(4, "h3"));
        let protocols = [b"h3".to_vec()];
        assert_eq!(store.take("a.test", &protocols), Some(ticket(2, "h3")));
        assert_eq!(store.take("a.test", &protocols), Some(ticket(1, "h3")));
        assert_eq!(store.take("a.test", &protocols), None);
        assert_eq!(store.len(), 2);
    }

    #[test]
    fn space_is_bounded_for_each_server_and_in_all() {
        let store = MemorySessions::new(10);
        for byte in 0..20 {
            store.put("a.test", ticket(byte, "h3"));
        }
        assert_eq!(store.len(), PER_SERVER);
        for byte in 0..20 {
            store.put(&format!("{byte}.test"), ticket(byte, "h3"));
        }
        assert_eq!(store.len(), 10);
        assert!(store.take("a.test", &[b"h3".to_vec()]).is_none());
        assert!(format!("{store:?}").contains("10"));
    }
}
