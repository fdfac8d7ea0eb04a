//! Both ends of the connection ID exchange, over a network that loses, repeats and reorders.

use super::*;
use crate::path::local_ids::{IdSource, LocalIds};
use proptest::prelude::*;

struct Counter(u64);

impl IdSource for Counter {
    fn issue(&mut self) -> (ConnectionId, ResetToken) {
        self.0 += 1;
        let id = ConnectionId::new(&self.0.to_be_bytes()).expect("8 bytes");
        (id, ResetToken([self.0 as u8; 16]))
    }
}

/// ```text
///   issuer ── NEW_CONNECTION_ID ──▶ user
///          ◀─ RETIRE_CONNECTION_ID ─
/// ```
struct Exchange {
    issuer: LocalIds,
    source: Counter,
    user: RemoteIds,
    flying: Vec<(Frame, RecoveryToken)>,
}

#[derive(Clone, Copy, Debug)]
enum Delivery {
    Delivered,
    Repeated,
    Lost,
}

impl Exchange {
    fn new(limit: usize, highest: u32) -> Self {
        let first = ConnectionId::new(&[0; 8]).expect("8 bytes");
        let mut exchange = Self {
            issuer: LocalIds::new(first),
            source: Counter(0),
            user: RemoteIds::new(limit),
            flying: Vec::new(),
        };
        exchange.issuer.set_peer_limit(limit as u64);
        exchange.issuer.set_multipath(PathId(highest));
        exchange.user.set_initial(first);
        exchange.user.set_multipath();
        exchange
    }

    fn send(&mut self) {
        while let Some(sent) = self.issuer.next_frame(&mut self.source) {
            self.flying.push(sent);
        }
        while let Some(sent) = self.user.next_frame() {
            self.flying.push(sent);
        }
    }

    fn arrive(&mut self, at: usize, delivery: Delivery) -> Result<(), TransportError> {
        if self.flying.is_empty() {
            return Ok(());
        }
        let (frame, token) = self.flying.swap_remove(at % self.flying.len());
        if !matches!(delivery, Delivery::Lost) {
            self.deliver(frame.clone())?;
        }
        match (&token, delivery) {
            (RecoveryToken::NewConnectionId { path, sequence }, Delivery::Delivered) => {
                self.issuer.on_acknowledged(*path, *sequence);
            }
            (RecoveryToken::RetireConnectionId { path, sequence }, Delivery::Delivered) => {
                self.user.on_acknowledged(*path, *sequence);
            }
            // The acknowledgement was lost, or the frame itself.
            (RecoveryToken::NewConnectionId { path, sequence }, _) => self.issuer.on_lost(*path, *sequence),
            (RecoveryToken::RetireConnectionId { path, sequence }, _) => self.user.on_lost(*path, *sequence),
            other => panic!("{other:?}"),
        }
        Ok(())
    }

    fn deliver(&mut self, frame: Frame) -> Result<(), TransportError> {
        match frame {
            Frame::NewConnectionId(new) => self.user.on_new(new),
            Frame::RetireConnectionId { path, sequence } => {
                self.issuer.on_retire(path.unwrap_or(PathId::ZERO), sequence, (PathId(u32::MAX), 0))
            }
            other => panic!("{other:?}"),
        }
    }
}

fn deliveries() -> impl Strategy<Value = Delivery> {
    prop_oneof![3 => Just(Delivery::Delivered), 1 => Just(Delivery::Repeated), 1 => Just(Delivery::Lost)]
}

proptest! {
    #[test]
    fn honest_endpoints_agree_whatever_the_network_does(
        limit in 2_usize..6,
        highest in 0_u32..4,
        steps in prop::collection::vec((0_usize..64, deliveries(), 0_u32..12), 0..300),
    ) {
        let mut exchange = Exchange::new(limit, highest);
        for (at, delivery, path) in steps {
            exchange.send();
            prop_assert_eq!(exchange.arrive(at, delivery), Ok(()));
            if path <= highest && exchange.user.current(PathId(path)).is_some() {
                exchange.issuer.open_path(PathId(path));
                exchange.user.open_path(PathId(path));
                exchange.user.rotate(PathId(path), 0);
            }
        }
        for _ in 0..10_000 {
            exchange.send();
            if exchange.flying.is_empty() {
                break;
            }
            prop_assert_eq!(exchange.arrive(0, Delivery::Delivered), Ok(()));
        }
        prop_assert!(exchange.flying.is_empty(), "the exchange comes to rest");
        for path in (0..=highest).map(PathId) {
            let current = exchange.user.current(path).expect("every path can be used");
            let known = exchange.issuer.lookup(&current).expect("the issuer recognizes what is used");
            prop_assert_eq!(known.0, path);
            prop_assert_eq!(exchange.user.next_expected_sequence(path), exchange.issuer.next_sequence(path));
        }
    }
}
