//! The properties that must hold after every step.

use super::fixture::Fixture;
use super::player::{Player, index};
use hvq_lab::world::Side;
use hvq_scheduler::PathId;
use hvq_transport::crypto::keys::Level;
use hvq_transport::stream::Accounts;
use hvq_transport::time::Instant;
use hvq_transport::trace::{TraceEvent, Tracer};
use std::sync::{Arc, Mutex, PoisonError};

/// The numbers of the 1-RTT packets that one end sealed: the last of each path, and the first that was used twice.
#[derive(Debug, Default)]
struct Numbers {
    last: Vec<(PathId, u64)>,
    repeated: Option<(PathId, u64)>,
}

/// Watches one end seal packets. Neither path IDs nor numbers are ever used again, whatever keys come (RFC 10069 §2.4):
/// then no nonce is.
#[derive(Clone, Debug, Default)]
struct Watch(Arc<Mutex<Numbers>>);

impl Watch {
    fn seal(&self, path: PathId, number: u64) {
        let mut numbers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match numbers.last.iter_mut().find(|(of, _)| *of == path) {
            Some((_, last)) if *last < number => *last = number,
            Some(_) => numbers.repeated = numbers.repeated.or(Some((path, number))),
            None => numbers.last.push((path, number)),
        }
    }

    fn repeated(&self) -> Option<(PathId, u64)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).repeated
    }
}

impl Tracer for Watch {
    fn record(&mut self, _now: Instant, event: &TraceEvent<'_>) {
        if let TraceEvent::PacketSent(packet) = event
            && packet.level == Level::OneRtt
        {
            self.seal(packet.path, packet.number);
        }
    }
}

/// The models of one world.
#[derive(Debug, Default)]
pub(super) struct Model {
    watches: [Watch; 2],
    watching: [bool; 2],
}

impl Model {
    /// Checks all properties; returns the first violation.
    pub(super) fn check(&mut self, fixture: &mut Fixture, player: &Player) -> Result<(), String> {
        for side in Side::BOTH {
            self.watch(fixture, side);
            if let Some((path, number)) = self.watches[index(side)].repeated() {
                return Err(format!("{side:?}: packet number {number} of path {path} was used again"));
            }
        }
        if let Some(problem) = player.failure() {
            return Err(problem.to_owned());
        }
        if let Some(breach) = fixture.net.ledger.as_ref().and_then(|ledger| ledger.breach()) {
            return Err(format!("the server sent too much to an unproven address: {breach}"));
        }
        let [client, server] = accounts(fixture)?;
        // What one end knows of the other's account is never ahead of it (RFC 9000 §4.1).
        for (sender, receiver) in [(client, server), (server, client)] {
            let (Some(sender), Some(receiver)) = (sender, receiver) else { continue };
            if receiver.received > sender.used || sender.credit > receiver.granted {
                return Err(format!("the accounts of sender and receiver differ: {sender:?}, {receiver:?}"));
            }
        }
        Ok(())
    }

    fn watch(&mut self, fixture: &mut Fixture, side: Side) {
        if !self.watching[index(side)]
            && let Some(connection) = fixture.connection(side)
        {
            connection.set_tracer(Box::new(self.watches[index(side)].clone()));
            self.watching[index(side)] = true;
        }
    }
}

/// The accounts of both ends, as far as they exist, or what is wrong with one.
pub(super) fn accounts(fixture: &Fixture) -> Result<[Option<Accounts>; 2], String> {
    let now = fixture.net.now;
    let audit = |side: Side| {
        let end = if side == Side::Client { &fixture.net.client } else { &fixture.net.server };
        let accounts = end.get().map(|connection| connection.audit(now)).transpose();
        accounts.map_err(|problem| format!("{side:?}: {problem}"))
    };
    Ok([audit(Side::Client)?, audit(Side::Server)?])
}

/// Returns a value that is not settled although everything was delivered, acknowledged and read, if there is one.
pub(super) fn unsettled(fixture: &mut Fixture) -> Result<Option<String>, String> {
    let [Some(client), Some(server)] = accounts(fixture)? else {
        return Err("a connection is gone".to_owned());
    };
    for (sender, receiver) in [(client, server), (server, client)] {
        if sender.used != receiver.received || receiver.received != receiver.consumed || sender.streams != 0 {
            return Ok(Some(format!("accounts differ: {sender:?}, {receiver:?}")));
        }
    }
    for side in Side::BOTH {
        let paths = fixture.connection(side).map(|connection| connection.stats().paths).unwrap_or_default();
        if let Some(path) = paths.iter().find(|path| path.in_flight > 0) {
            return Ok(Some(format!("{side:?}: {} bytes in flight on path {}", path.in_flight, path.id)));
        }
    }
    Ok(None)
}
