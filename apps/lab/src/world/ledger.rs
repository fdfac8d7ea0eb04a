//! Accounts of the bytes that a server sends to each address of its clients, compared with those that it got from there
//! (RFC 9000 §8.1, §9.3).

use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Times what was received that may be sent to an address which nobody has proven (RFC 9000 §8.1).
const FACTOR: u64 = 3;

/// The bytes between the server and one address.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    /// Bytes of UDP payload that came from there.
    received: u64,
    /// Bytes of UDP payload sent there.
    sent: u64,
    /// The extent to which the address can have been proven.
    proof: Proof,
}

/// The extent to which an address can have been proven to be the client's: a datagram that was sent there has to reach
/// the client first, and the client has to be heard after that.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Proof {
    #[default]
    None,
    Reached,
    Possible,
}

/// The accounts of all addresses, kept outside of the endpoints: it sees what is on the wires only.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    accounts: BTreeMap<SocketAddr, Account>,
    breach: Option<String>,
}

impl Ledger {
    /// The first time that an address which cannot have been proven was sent more than three times what came from it.
    pub fn breach(&self) -> Option<&str> {
        self.breach.as_deref()
    }

    /// The server sent `bytes` to `address`.
    pub(super) fn sent(&mut self, address: SocketAddr, bytes: usize) {
        let account = self.accounts.entry(address).or_default();
        account.sent += bytes as u64;
        if account.proof != Proof::Possible && account.sent > FACTOR * account.received {
            let Account { received, sent, .. } = account;
            self.breach.get_or_insert_with(|| format!("{sent} bytes to {address}, {received} from there"));
        }
    }

    /// The client got what the server sent to `address`.
    pub(super) fn reached(&mut self, address: SocketAddr) {
        let account = self.accounts.entry(address).or_default();
        if account.proof == Proof::None {
            account.proof = Proof::Reached;
        }
    }

    /// The server got `bytes` of the client from `address`, or from someone who forwards them.
    pub fn received(&mut self, address: SocketAddr, bytes: usize) {
        self.accounts.entry(address).or_default().received += bytes as u64;
        // An answer may come from anywhere (RFC 9000 §8.2.3).
        for account in self.accounts.values_mut().filter(|account| account.proof == Proof::Reached) {
            account.proof = Proof::Possible;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_nobody_was_reached_at_is_sent_three_times_what_came_from_it() {
        let address = SocketAddr::from(([192, 0, 2, 1], 1));
        let mut ledger = Ledger::default();
        ledger.received(address, 1000);
        ledger.sent(address, 3000);
        assert_eq!(ledger.breach(), None);
        ledger.received(address, 1);
        ledger.sent(address, 4);
        assert!(ledger.breach().is_some());
    }

    #[test]
    fn an_address_is_proven_once_it_is_heard_after_it_was_reached() {
        let address = SocketAddr::from(([192, 0, 2, 1], 1));
        let mut ledger = Ledger::default();
        ledger.received(address, 1);
        ledger.reached(address);
        ledger.received(address, 1);
        ledger.sent(address, 1_000_000);
        assert_eq!(ledger.breach(), None);
    }
}
