//! 0-RTT of one connection: its keys, the state that it relies on, and the server's answer (RFC 9001 §4.6).

use crate::Role;
use crate::crypto::keys::{Cipher, Secret};
use crate::crypto::protect::{OpenKey, SealKey};
use crate::crypto::session::{ClientTls, EarlyData as Choice, EarlyDataState, Session, SessionStore};
use crate::recovery_token::RecoveryToken;
use crate::stream::StreamId;
use crate::time::Instant;
use crate::wire::transport_parameters::TransportParameters;
use crate::wire::version::Version;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// The state of 0-RTT and resumption of a connection.
#[derive(Default)]
pub struct ZeroRtt {
    state: EarlyDataState,
    /// A client's key.
    seal: Option<Box<SealKey>>,
    /// A server's key.
    open: Option<Box<OpenKey>>,
    /// The server's parameters of the connection that the ticket is from.
    remembered: Option<Box<TransportParameters>>,
    /// The application protocol of that connection.
    alpn: Vec<u8>,
    /// The store of a client's tickets, and the name of the server that they are for.
    store: Option<(Arc<dyn SessionStore>, String)>,
    /// The first packet number of path 0 that is not of a 0-RTT packet.
    first_one_rtt: u64,
    /// The time at which a server drops its key (RFC 9001 §4.9.3).
    discard_at: Option<Instant>,
    /// Streams of which a part arrived in 0-RTT packets.
    streams: BTreeSet<StreamId>,
    /// Contents of a client's 0-RTT packets that the server acknowledged: they are kept until it confirms the handshake, for
    /// they are sent again if another connection takes the place of this one.
    acknowledged: Vec<RecoveryToken>,
}

/// The answer of a server to a client's 0-RTT.
#[derive(Debug)]
pub enum ZeroRttAnswer {
    /// It was accepted, under these parameters of an earlier connection.
    Accepted(Box<TransportParameters>),
    /// It was rejected.
    Rejected,
    /// There was none.
    NotAsked,
}

impl fmt::Debug for ZeroRtt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ZeroRtt").field("state", &self.state).finish_non_exhaustive()
    }
}

impl ZeroRtt {
    /// Keeps the tickets of a client's session that resumes none.
    pub fn keep(tls: &ClientTls, server_name: &str) -> Self {
        let store = tls.sessions().map(|store| (store.clone(), server_name.to_owned()));
        Self { store, ..Self::default() }
    }

    /// Takes note that the server acknowledged what `token` stands for, before it confirmed the handshake.
    pub fn defer(&mut self, token: &RecoveryToken) {
        self.acknowledged.push(token.clone());
    }

    /// A frame of stream `id` came in a 0-RTT packet. The streams' own limits bound how many are remembered.
    pub fn note_stream(&mut self, id: StreamId) {
        self.streams.insert(id);
    }

    /// Drops a server's key, if it is time.
    pub fn expire(&mut self, now: Instant) {
        if self.discard_at.is_some_and(|at| at <= now) {
            (self.open, self.discard_at) = (None, None);
        }
    }

    /// Takes the tokens of contents that were acknowledged before the handshake was confirmed.
    pub fn take_deferred(&mut self) -> Vec<RecoveryToken> {
        std::mem::take(&mut self.acknowledged)
    }

    /// The server rejected 0-RTT: nothing is sealed with its key any more.
    pub fn on_rejected(&mut self) {
        self.seal = None;
        self.state = EarlyDataState::Rejected;
    }

    /// The state.
    pub fn state(&self) -> EarlyDataState {
        self.state
    }

    /// Returns true if a client offered 0-RTT and was not refused, or a server accepted it.
    pub fn is_in_use(&self) -> bool {
        matches!(self.state, EarlyDataState::Offered | EarlyDataState::Accepted)
    }

    /// The server's parameters of the connection that the ticket is from, until the handshake is complete.
    pub fn remembered(&self) -> Option<&TransportParameters> {
        self.remembered.as_deref()
    }

    /// A client sends 0-RTT packets from here on, which `secret` protects with `cipher`.
    pub fn offer(&mut self, cipher: Cipher, secret: &Secret) {
        self.seal = Some(Box::new(SealKey::new(cipher, secret.as_slice())));
        self.state = EarlyDataState::Offered;
    }

    /// A server takes 0-RTT packets from here on, which `secret` protects with `cipher`.
    pub fn accept(&mut self, cipher: Cipher, secret: &Secret) {
        self.open = Some(Box::new(OpenKey::new(cipher, secret.as_slice())));
        self.state = EarlyDataState::Accepted;
    }

    /// A client's key, while there is one.
    pub fn sealer(&self) -> Option<&SealKey> {
        self.seal.as_deref()
    }

    /// A server's key, while there is one.
    pub fn opener(&self) -> Option<&OpenKey> {
        self.open.as_deref()
    }

    /// The time at which a server drops its key, once that is known.
    pub fn discard_at(&self) -> Option<Instant> {
        self.discard_at
    }

    /// Returns true if the packet of path 0 with this number was no 0-RTT packet.
    pub fn is_one_rtt(&self, number: u64) -> bool {
        number >= self.first_one_rtt
    }

    /// Returns true if a part of stream `id` arrived in 0-RTT packets.
    pub fn has_stream(&self, id: StreamId) -> bool {
        self.streams.contains(&id)
    }

    /// The store of a client's tickets, and the name of the server that they are for.
    pub fn store(&self) -> Option<(&dyn SessionStore, &str)> {
        self.store.as_ref().map(|(store, server_name)| (store.as_ref(), server_name.as_str()))
    }

    /// The handshake is complete: packets of path 0 from number `first_one_rtt` on are 1-RTT packets. A client drops its key
    /// now, and a server at `discard_at`.
    pub fn on_handshake_complete(&mut self, first_one_rtt: u64, discard_at: Instant) {
        self.first_one_rtt = first_one_rtt;
        //= https://www.rfc-editor.org/rfc/rfc9000#section-17.2.3
        //# A client MUST NOT send 0-RTT packets once it starts processing 1-RTT packets from the server
        //= https://www.rfc-editor.org/rfc/rfc9001#section-5.6
        //# Once a client has installed 1-RTT keys, it MUST NOT send any more 0-RTT packets.
        // RFC 9001 §4.9.3: a client drops its key with the first 1-RTT keys, a server a short time later.
        self.seal = None;
        if self.open.is_some() {
            self.discard_at = Some(discard_at);
        }
    }

    /// The handshake of a client is complete: the answer of the server to its 0-RTT. It is given once.
    pub fn take_answer(&mut self) -> ZeroRttAnswer {
        match (self.state, self.remembered.take()) {
            (EarlyDataState::Offered, Some(remembered)) => {
                self.state = EarlyDataState::Accepted;
                ZeroRttAnswer::Accepted(remembered)
            }
            (EarlyDataState::Rejected, _) => ZeroRttAnswer::Rejected,
            _ => ZeroRttAnswer::NotAsked,
        }
    }

    /// Returns true if a client offered 0-RTT and knows no answer.
    pub fn is_offered(&self) -> bool {
        self.state == EarlyDataState::Offered
    }

    /// The application protocol that 0-RTT was sent under, if it was.
    pub fn remembered_protocol(&self) -> Option<&[u8]> {
        (self.state != EarlyDataState::default()).then_some(&self.alpn)
    }

    /// Has a client's `session` resume the latest one with the server, if there is a ticket of `version`.
    pub fn resume(tls: &ClientTls, session: &mut Session, server_name: &str, version: Version) -> Self {
        let Some(store) = tls.sessions() else { return Self::default() };
        let mut early = Self { store: Some((store.clone(), server_name.to_owned())), ..Self::default() };
        let ticket = store.take(server_name, tls.protocols());
        // RFC 9369 §5: tickets of another version must not be used.
        let Some(ticket) = ticket.filter(|ticket| ticket.version == version) else { return early };
        // A ticket that cannot be read is as good as none: the handshake is a full one.
        let resumed = session.resume(&ticket.tls).is_ok();
        //= https://www.rfc-editor.org/rfc/rfc9001#section-5.6
        //# A client therefore MUST NOT use 0-RTT for application data unless specifically requested by the
        //# application that is in use.
        if resumed && tls.early_data() == Choice::On {
            // The sender of remembered parameters was a server.
            if let Ok(parameters) = TransportParameters::decode(Role::Server, &ticket.parameters) {
                session.offer_early_data();
                early.remembered = Some(Box::new(parameters.remembered()));
                early.alpn = ticket.alpn;
            }
        }
        early
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crypto::keys::Suite;
    use crate::crypto::session::{SessionTicket, Verify};
    use crate::stream::Direction;
    use std::time::Duration;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn secret() -> (Cipher, Secret) {
        let cipher = Cipher { suite: Suite::Aes128Gcm, version: Version::V1 };
        (cipher, Secret::new(&[7; 32]).unwrap())
    }

    #[test]
    fn a_server_drops_its_key_a_while_after_the_handshake() {
        // RFC 9001 §4.9.3.
        let (cipher, secret) = secret();
        let mut it = ZeroRtt::default();
        assert!(it.opener().is_none() && !it.is_in_use());
        it.accept(cipher, &secret);
        assert!(it.opener().is_some() && it.is_in_use() && it.state() == EarlyDataState::Accepted);
        it.expire(at(999));
        assert!(it.opener().is_some(), "the handshake is not complete");
        it.on_handshake_complete(5, at(300));
        assert_eq!(it.discard_at(), Some(at(300)));
        it.expire(at(299));
        assert!(it.opener().is_some());
        it.expire(at(300));
        assert!(it.opener().is_none() && it.discard_at().is_none());
        assert!(!it.is_one_rtt(4) && it.is_one_rtt(5) && it.is_one_rtt(6));
    }

    #[test]
    fn a_client_seals_nothing_with_the_key_once_the_handshake_is_complete_or_it_was_rejected() {
        // RFC 9001 §5.6 and §4.6.2.
        let (cipher, secret) = secret();
        let offered = || {
            let mut it = ZeroRtt::default();
            assert!(it.sealer().is_none() && !it.is_offered());
            it.offer(cipher, &secret);
            assert!(it.sealer().is_some() && it.is_offered() && it.is_in_use());
            it
        };
        let mut complete = offered();
        complete.on_handshake_complete(5, at(300));
        assert!(complete.sealer().is_none() && complete.discard_at().is_none());
        let mut rejected = offered();
        rejected.on_rejected();
        assert!(rejected.sealer().is_none() && !rejected.is_in_use() && !rejected.is_offered());
        assert!(matches!(rejected.take_answer(), ZeroRttAnswer::Rejected));
        assert_eq!(format!("{rejected:?}"), "ZeroRtt { state: Rejected, .. }", "keys are not shown");
    }

    #[derive(Debug)]
    struct Empty;

    impl SessionStore for Empty {
        fn put(&self, _: &str, _: SessionTicket) {}

        fn take(&self, _: &str, _: &[Vec<u8>]) -> Option<SessionTicket> {
            None
        }
    }

    #[test]
    fn a_client_that_resumes_nothing_keeps_tickets_under_the_servers_name() {
        let builder = ClientTls::builder().alpn(["h3"]).verify(Verify::Insecure);
        let it = ZeroRtt::keep(&builder.sessions(Arc::new(Empty)).build().unwrap(), "example.test");
        assert_eq!(it.store().map(|(_, name)| name), Some("example.test"));
        let builder = ClientTls::builder().alpn(["h3"]).verify(Verify::Insecure);
        assert!(ZeroRtt::keep(&builder.build().unwrap(), "example.test").store().is_none());
    }

    #[test]
    fn the_protocol_of_early_data_is_known_if_there_was_some() {
        let (cipher, secret) = secret();
        let mut it = ZeroRtt { alpn: b"h3".to_vec(), ..ZeroRtt::default() };
        assert_eq!(it.remembered_protocol(), None);
        it.offer(cipher, &secret);
        assert_eq!(it.remembered_protocol(), Some(&b"h3"[..]));
    }

    #[test]
    fn streams_and_acknowledgements_of_early_data_are_remembered() {
        let [early, late] = [0, 1].map(|index| StreamId::new(Role::Client, Direction::Bidirectional, index));
        let mut it = ZeroRtt::default();
        it.note_stream(early);
        assert!(it.has_stream(early) && !it.has_stream(late));
        it.defer(&RecoveryToken::StopSending(early));
        it.defer(&RecoveryToken::StopSending(late));
        let tokens = [RecoveryToken::StopSending(early), RecoveryToken::StopSending(late)];
        assert_eq!((it.take_deferred(), it.take_deferred()), (tokens.to_vec(), Vec::new()));
    }
}
