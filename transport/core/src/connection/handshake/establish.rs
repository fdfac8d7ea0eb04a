//! The handshake's progress: what TLS gives out becomes keys, CRYPTO frames and parameters.

use crate::PathId;
use crate::connection::Peer;
use crate::connection::TransportConfig;
use crate::connection::events::EventQueue;
use crate::connection::frame_owners::{FrameOwners, frame_owners};
use crate::connection::handshake::discard_space;
use crate::connection::handshake::key_update::TrafficKeys;
use crate::connection::lifecycle::Lifecycle;
use crate::connection::lifecycle::Milestone;
use crate::connection::observe::Observer;
use crate::connection::paths::hints::exchanges_hints;
use crate::connection::send::transmit_queue::TransmitQueue;
use crate::connection::{Connection, Event, Role};
use crate::crypto::keys::Cipher;
use crate::crypto::one_rtt::OneRttKeys;
use crate::crypto::protect::{OpenKey, SealKey};
use crate::crypto::session::SessionOutput;
use crate::error::{ErrorCode, TransportError};
use crate::handshake::parameters::authenticate;
use crate::handshake::space::LevelKeys;
use crate::handshake::zero_rtt::ZeroRtt;
use crate::seed::Randomness;
use crate::time::Instant;
use crate::trace::{Side, TraceEvent};
use crate::wire::level::Level;
use crate::wire::transport_parameters::TransportParameters;

/// The part of a connection that drives the handshake.
pub(in crate::connection) struct HandshakeDriver<'a> {
    pub role: Role,
    pub config: &'a TransportConfig,
    pub lifecycle: &'a mut Lifecycle,
    pub owners: FrameOwners<'a>,
    pub keys: &'a mut TrafficKeys,
    pub zero_rtt: &'a mut ZeroRtt,
    pub peer: &'a mut Peer,
    pub queue: &'a mut TransmitQueue,
    pub observer: &'a mut Observer,
    pub events: &'a mut EventQueue,
    pub rng: &'a mut Randomness,
}

/// Tells whether packets can be read that could not before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::connection) enum Readable {
    /// Those that came before their keys are to be tried.
    More,
    /// None.
    Same,
}

impl Connection {
    /// The part that drives the handshake.
    pub(in crate::connection) fn handshake_driver(&mut self) -> HandshakeDriver<'_> {
        HandshakeDriver {
            role: self.role,
            config: &self.config,
            lifecycle: &mut self.lifecycle,
            owners: frame_owners!(self),
            keys: &mut self.keys,
            zero_rtt: &mut self.zero_rtt,
            peer: &mut self.peer,
            queue: &mut self.queue,
            observer: &mut self.observer,
            events: &mut self.events,
            rng: &mut self.rng,
        }
    }

    /// Gives TLS what arrived at `level`, as far as it is contiguous.
    pub(in crate::connection) fn advance_handshake(
        &mut self,
        level: Level,
        now: Instant,
    ) -> Result<(), TransportError> {
        if level == Level::OneRtt && !self.handshake.post.has_incoming() {
            return Ok(());
        }
        while let Some(data) = self.handshake.crypto(level).and_then(|crypto| crypto.read()) {
            self.handshake_driver().provide(level, &data)?;
            self.collect_tls(now)?;
        }
        Ok(())
    }

    /// Takes everything that TLS has to say, and then the packets that waited for it.
    pub(in crate::connection) fn collect_tls(&mut self, now: Instant) -> Result<(), TransportError> {
        if self.handshake_driver().collect_tls(now)? == Readable::More {
            self.replay_undecryptable(now);
        }
        if self.handshake_driver().complete(now)? == Readable::More {
            self.replay_undecryptable(now);
        }
        Ok(())
    }

    /// Has a [`Verifier`](crate::crypto::session::Verifier) that answered
    /// [`Pending`](crate::crypto::session::CertificateVerdict::Pending) asked again. Does nothing if none waits.
    pub fn verify_again(&mut self, now: Instant) {
        if self.role != Role::Client || !self.lifecycle.is_open() || !self.handshake.session.is_handshaking()
        {
            return;
        }
        let gone_on = self.handshake.session.start();
        if let Err(error) = gone_on.and_then(|()| self.collect_tls(now)) {
            self.fail(error, now);
        }
    }
}

impl HandshakeDriver<'_> {
    /// Takes everything that TLS has to say.
    pub fn collect_tls(&mut self, now: Instant) -> Result<Readable, TransportError> {
        while let Some(output) = self.owners.handshake.session.poll() {
            match output {
                SessionOutput::Send { level, data } => {
                    //= https://www.rfc-editor.org/rfc/rfc9001#section-4.9
                    //# Though an endpoint might retain older keys, new data MUST be sent at the highest
                    //# currently available encryption level
                    if let Some(crypto) = self.owners.handshake.crypto(level) {
                        crypto.write(&data);
                    }
                }
                SessionOutput::ReadSecret { level, suite, secret } => {
                    self.owners.handshake.secrets.store_read(level, suite, secret);
                }
                SessionOutput::WriteSecret { level, suite, secret } => {
                    self.owners.handshake.secrets.store_write(level, suite, secret);
                }
                SessionOutput::Ticket => self.keep_tickets(),
                SessionOutput::EarlyDataRejected => self.on_zero_rtt_rejected(now),
            }
            self.install_keys(now);
        }
        self.learn_parameters(now)?;
        let accepts_zero_rtt = self.role == Role::Server
            && *self.lifecycle == Lifecycle::Handshaking
            && self.zero_rtt.is_in_use();
        Ok(if accepts_zero_rtt { Readable::More } else { Readable::Same })
    }

    fn install_keys(&mut self, now: Instant) {
        let version = self.owners.handshake.version();
        let secrets = &mut self.owners.handshake.secrets;
        if let Some((suite, read, write)) = secrets.take_pair(Level::Handshake) {
            let cipher = Cipher { suite, version };
            let keys = LevelKeys {
                seal: SealKey::new(cipher, write.as_slice()),
                open: OpenKey::new(cipher, read.as_slice()),
            };
            self.owners.handshake.install(Level::Handshake, keys);
            self.observer.trace(&TraceEvent::KeysInstalled(Level::Handshake), now);
        }
        self.install_zero_rtt_keys(now);
        if let Some((suite, read, write)) = self.owners.handshake.secrets.take_pair(Level::OneRtt) {
            self.keys.install(OneRttKeys::new(Cipher { suite, version }, write.as_slice(), read.as_slice()));
            self.observer.trace(&TraceEvent::KeysInstalled(Level::OneRtt), now);
        }
    }

    fn install_zero_rtt_keys(&mut self, now: Instant) {
        let secrets = &mut self.owners.handshake.secrets;
        if let Some((suite, secret)) = secrets.take_write(Level::ZeroRtt) {
            self.start_zero_rtt(suite, &secret);
            self.observer.trace(&TraceEvent::KeysInstalled(Level::ZeroRtt), now);
        } else if let Some((suite, secret)) = secrets.take_read(Level::ZeroRtt) {
            self.accept_early_data(suite, &secret);
            self.observer.trace(&TraceEvent::KeysInstalled(Level::ZeroRtt), now);
        } else if let Some(keys) = self.keys.current_mut().filter(|keys| !keys.can_open())
            && let Some((_, secret)) = secrets.take_read(Level::OneRtt)
        {
            keys.receive(secret.as_slice());
            self.observer.trace(&TraceEvent::KeysInstalled(Level::OneRtt), now);
        }
    }

    fn learn_parameters(&mut self, now: Instant) -> Result<(), TransportError> {
        if self.peer.is_known() {
            return Ok(());
        }
        //= https://www.rfc-editor.org/rfc/rfc9000#section-7
        //# The cryptographic handshake MUST provide the following properties:
        let Some(bytes) = self.owners.handshake.session.peer_transport_parameters() else { return Ok(()) };
        let parameters = TransportParameters::decode(self.role.peer(), &bytes)?;
        //= https://www.rfc-editor.org/rfc/rfc9000#section-7.3
        //# Endpoints MUST validate that received transport parameters match received connection ID values
        authenticate(
            &parameters,
            self.role,
            &self.owners.handshake.seen,
            self.owners.handshake.ids.local.is_empty(),
        )?;
        self.owners.handshake.negotiation.verify(self.role, parameters.version_information.as_ref())?;
        //= https://www.rfc-editor.org/rfc/rfc9000#section-7.4.1
        //# The client MUST use the server's new values in the handshake instead; if the server does not
        //# provide new values, the default values are used.
        self.owners.streams.set_peer_limits(&parameters);
        self.owners.datagrams.set_peer_limit(parameters.max_datagram_frame_size);
        self.owners.paths.on_peer_parameters(&parameters);
        if let Some(token) = parameters.stateless_reset_token {
            self.owners.paths.remote_ids.set_initial_token(token);
        }
        if let Some(preferred) = &parameters.preferred_address {
            // RFC 9000 §18.2: a server whose connection IDs are empty must not offer one.
            self.owners
                .paths
                .remote_ids
                .set_preferred(preferred.connection_id, preferred.stateless_reset_token)
                .map_err(|error| ErrorCode::TRANSPORT_PARAMETER_ERROR.because(error.reason))?;
        }
        if let Some(tracer) = self.observer.tracer() {
            let event = TraceEvent::ParametersSet { side: Side::Remote, parameters: &parameters };
            tracer.record(now, &event);
        }
        self.peer.learn(parameters);
        if !exchanges_hints(self.config, self.peer) {
            self.owners.paths.watch_narrow_paths();
        }
        Ok(())
    }

    /// Takes note if TLS is done with the handshake.
    pub fn complete(&mut self, now: Instant) -> Result<Readable, TransportError> {
        if self.owners.handshake.session.is_handshaking() || self.lifecycle.is_connected() {
            return Ok(Readable::Same);
        }
        if !self.peer.is_known() {
            //= https://www.rfc-editor.org/rfc/rfc9001#section-8.2
            //# Endpoints MUST send the quic_transport_parameters extension; endpoints that receive
            //# ClientHello or EncryptedExtensions messages without the quic_transport_parameters extension
            //# MUST close the
            // RFC 9001 §8.2: endpoints that receive no transport parameters close with missing_extension (109).
            return Err(ErrorCode::crypto(109).because("the peer sent no QUIC transport parameters"));
        }
        //= https://www.rfc-editor.org/rfc/rfc9001#section-8.1
        //# While [ALPN] only specifies that servers use this alert, QUIC clients MUST use error 0x0178 to
        //# terminate a connection when ALPN negotiation fails.
        self.end_zero_rtt(now)?;
        *self.lifecycle = self.lifecycle.after(Milestone::HandshakeComplete);
        // RFC 10069 §2: the extension is in use once the handshake is complete.
        self.owners.paths.follow_limits();
        self.events.push(Event::Connected);
        if self.role == Role::Server {
            //= https://www.rfc-editor.org/rfc/rfc9000#section-19.20
            //# Servers MUST NOT send a HANDSHAKE_DONE frame before completing the handshake
            //= https://www.rfc-editor.org/rfc/rfc9001#section-4.1.2
            //# The server MUST send a HANDSHAKE_DONE frame as soon as the handshake is complete
            // RFC 9001 §4.1.2: for a server the handshake is confirmed when it is complete.
            self.owners.control.want_handshake_done();
            self.confirm();
        }
        Ok(Readable::More)
    }

    /// The handshake is confirmed: Handshake keys go (RFC 9001 §4.9.2).
    pub fn confirm(&mut self) {
        if *self.lifecycle == self.lifecycle.after(Milestone::HandshakeConfirmed) {
            return;
        }
        *self.lifecycle = self.lifecycle.after(Milestone::HandshakeConfirmed);
        discard_space(self.owners.handshake, self.owners.paths, Level::Initial);
        //= https://www.rfc-editor.org/rfc/rfc9001#section-4.9.2
        //# An endpoint MUST discard its Handshake keys when the TLS handshake is confirmed (Section 4.1.2).
        discard_space(self.owners.handshake, self.owners.paths, Level::Handshake);
        self.free_handshake_room();
        let deferred = self.zero_rtt.take_deferred();
        self.owners.on_tokens_acknowledged(&deferred);
        self.events.push(Event::Confirmed);
    }

    /// Frees what grew during the handshake and stays empty from now on: most connections idle most of the time.
    fn free_handshake_room(&mut self) {
        self.owners.handshake.session.finish(self.role);
        self.owners.handshake.secrets.forget();
        self.queue.shrink_to_fit();
    }

    /// Consequences of an authentic long-header packet, whatever is in it.
    pub fn on_long_packet(&mut self, level: Level, source: crate::wire::connection_id::ConnectionId) {
        //= https://www.rfc-editor.org/rfc/rfc9000#section-7.2
        //# A server MUST set the Destination Connection ID it uses for sending packets based on the first
        //# received Initial packet
        if !self.owners.handshake.ids.is_remote_final() {
            //= https://www.rfc-editor.org/rfc/rfc9000#section-7.2
            //# A client MUST change the Destination Connection ID it uses for sending packets in response to
            //# only the first received Initial or Retry packet
            // RFC 9000 §7.2: the first packet of the peer fixes its connection ID.
            self.owners.handshake.ids.fix_remote(source);
            self.owners.handshake.seen.on_first_packet(source);
            self.owners.paths.remote_ids.set_initial(source);
        }
        if level == Level::Handshake && self.role == Role::Server {
            // RFC 9000 §8.1: a Handshake packet validates the client's address; RFC 9001 §4.9.1: Initial keys go.
            if let Some(path) = self.owners.paths.get_mut(PathId::ZERO) {
                path.route.amplification.validate();
                path.route.validation.presume();
            }
            //= https://www.rfc-editor.org/rfc/rfc9001#section-4.9.1
            //# Thus, a client MUST discard Initial keys when it first sends a Handshake packet and a server
            //# MUST discard Initial keys when it first successfully processes a Handshake packet
            discard_space(self.owners.handshake, self.owners.paths, Level::Initial);
        }
    }
}
