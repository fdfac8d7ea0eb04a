//! Endpoints.
//!
//! An endpoint is many connections, of a client, a server or both. It does no I/O. The rule is: pass it datagrams
//! (hvq_endpoint_handle) and commands, then poll (hvq_endpoint_poll) until it is idle, sending what it says. Poll again
//! after the next datagram or command, and when the deadline that it named has passed.
//!
//! An endpoint may be used by any thread, by one at a time. A call while another one runs, or from a callback, fails with
//! `HVQ_ERR_BUSY` and does nothing.

use crate::address::hvq_route;
use crate::config::hvq_hints;
use crate::error::{
    Failure, HVQ_ERR_ARGUMENT, HVQ_ERR_LIMIT, HVQ_ERR_SYSTEM, HVQ_ERR_TLS, HVQ_ERR_TOO_SMALL, hvq_result,
};
use crate::guard::{self, Versioned, entry};
use crate::output::hvq_output;
use crate::state::{State, hvq_endpoint, with};
use crate::tls::{hvq_client_config, hvq_server_config};
use hvq_transport::connection::{Datagram, Ecn};
use hvq_transport::crypto::reset::ResetKey;
use hvq_transport::crypto::token::TokenKey;
use hvq_transport::endpoint::{ConnectError, EndpointConfig, NetworkPath};
use hvq_transport::time::Instant;
use ring::rand::{SecureRandom, SystemRandom};
use std::ffi::c_char;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{mem, ptr};

/// The options of an endpoint, filled with the defaults by hvq_endpoint_options_init().
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hvq_endpoint_options {
    /// The size of this struct, as the caller was compiled. Set by the init function.
    pub size: usize,
    /// The configuration of connections that peers start; NULL accepts none.
    pub server: *const hvq_server_config,
    /// 32 secret random bytes, used for this endpoint only; NULL takes them from the system. Equal seeds and equal calls
    /// give equal results.
    pub seed: *const u8,
    /// 32 secret bytes that a server keeps over a restart, so that clients of before learn at once that their connections
    /// are gone; NULL draws some.
    pub reset_key: *const u8,
    /// 32 secret bytes that servers share or keep to accept each other's address tokens; NULL draws some.
    pub token_key: *const u8,
    /// Nanoseconds since 1970 at the endpoint's time 0, for dates in tokens; 0 takes the system's time at creation.
    pub epoch: u64,
    /// The maximum number of connections whose handshake is complete.
    pub max_connections: u64,
    /// The maximum number of connections whose handshake is not complete, beside those.
    pub max_handshaking: u64,
    /// The length of the connection IDs that the endpoint issues, 4 to 20 bytes.
    pub id_length: u32,
    /// 0.
    pub reserved: u32,
    /// The maximum number of stateless resets sent in a second (RFC 9000 §10.3.3); 0 sends none.
    pub resets_per_second: u32,
    /// The maximum number of Version Negotiation packets sent in a second (RFC 9000 §6.1); 0 sends none.
    pub negotiations_per_second: u32,
}

/// A datagram from the network, or several of equal size from one address to another, back to back.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hvq_incoming {
    /// The address that it arrived at, and the one that it came from.
    pub route: hvq_route,
    /// Its UDP payload.
    pub bytes: *const u8,
    /// Bytes of the payload.
    pub length: usize,
    /// The size of each datagram but the last if there are several (UDP_GRO), else 0.
    pub segment: usize,
    /// Its ECN bits: the two low bits of the traffic class, 0 if not known.
    pub ecn: u32,
    /// 0.
    pub reserved: u32,
}

// SAFETY: the struct begins with its size and holds numbers and pointers, for which zeros are NULL.
unsafe impl Versioned for hvq_endpoint_options {
    const FIRST_SIZE: usize = mem::offset_of!(Self, resets_per_second);

    fn defaults() -> Self {
        let base = EndpointConfig::default();
        Self {
            size: mem::size_of::<Self>(),
            server: ptr::null(),
            seed: ptr::null(),
            reset_key: ptr::null(),
            token_key: ptr::null(),
            epoch: 0,
            max_connections: base.max_connections() as u64,
            max_handshaking: base.max_handshaking() as u64,
            id_length: 8,
            reserved: 0,
            resets_per_second: base.resets_per_second(),
            negotiations_per_second: base.negotiations_per_second(),
        }
    }
}

impl hvq_endpoint_options {
    unsafe fn state(&self) -> Result<State, Failure> {
        let count = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
        if !(4..=20).contains(&self.id_length) {
            return Err(Failure::because(HVQ_ERR_ARGUMENT, "connection IDs have 4 to 20 bytes"));
        }
        // SAFETY: the caller passes 32 bytes or NULL for each, and a valid configuration or NULL.
        let (seed, reset, token, server) = unsafe {
            (secret(self.seed)?, secret(self.reset_key)?, secret(self.token_key)?, optional(self.server))
        };
        let epoch = match self.epoch {
            0 => SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(),
            nanos => Duration::from_nanos(nanos),
        };
        // No other endpoint is at the addresses of this one: there is nothing to share, and no strays are kept.
        let mut config = EndpointConfig::default();
        config
            .set_id_length(self.id_length as usize)
            .set_max_connections(count(self.max_connections))
            .set_max_handshaking(count(self.max_handshaking))
            .set_reset_key(reset.map(|key| ResetKey::new(&key)))
            .set_token_key(token.map(|key| TokenKey::new(&key)))
            .set_epoch(epoch)
            .set_resets_per_second(self.resets_per_second)
            .set_negotiations_per_second(self.negotiations_per_second);
        let seed = seed.map_or_else(random, Ok)?;
        Ok(State::new(config, server.map(|server| server.config.clone()), seed))
    }
}

unsafe fn optional<'a, T>(pointer: *const T) -> Option<&'a T> {
    // SAFETY: the caller says that it is valid or NULL.
    unsafe { pointer.as_ref() }
}

unsafe fn secret(pointer: *const u8) -> Result<Option<[u8; 32]>, Failure> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller says that there are 32 bytes.
    Ok(unsafe { guard::elements(pointer, 32) }?.try_into().ok())
}

fn random() -> Result<[u8; 32], Failure> {
    let mut seed = [0; 32];
    let filled = SystemRandom::new().fill(&mut seed);
    filled.map_err(|_| Failure::because(HVQ_ERR_SYSTEM, "the system gives no random numbers"))?;
    Ok(seed)
}

/// Fills options with the defaults. `size` is sizeof(hvq_endpoint_options).
///
/// Errors: `HVQ_ERR_NULL`, `HVQ_ERR_ARGUMENT` if `size` is no size that the struct ever had.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_endpoint_options_init(
    options: *mut hvq_endpoint_options,
    size: usize,
) -> hvq_result {
    // SAFETY: the caller passes a struct of that size.
    entry(|| unsafe { guard::initialise(options, size) })
}

/// Makes an endpoint, to be freed with hvq_endpoint_free(). `options` may be NULL for the defaults: a client.
///
/// Errors: `HVQ_ERR_NULL`, `HVQ_ERR_ARGUMENT`, `HVQ_ERR_SYSTEM` without random numbers. Nothing is written to `endpoint` then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_endpoint_new(
    options: *const hvq_endpoint_options,
    endpoint: *mut *mut hvq_endpoint,
) -> hvq_result {
    entry(|| {
        guard::check(endpoint)?;
        let options = if options.is_null() {
            hvq_endpoint_options::defaults()
        } else {
            // SAFETY: the caller passes a struct as documented.
            unsafe { guard::versioned(options) }?
        };
        // SAFETY: the caller's options point to what the header says, and the result may be written.
        unsafe { guard::put(endpoint, hvq_endpoint::new(options.state()?)) }
    })
}

/// Frees an endpoint with all of its connections; peers are not told. NULL is ignored. Callbacks may be called a last time.
///
/// Errors: `HVQ_ERR_BUSY` if it is in use; it is not freed then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_endpoint_free(endpoint: *mut hvq_endpoint) -> hvq_result {
    // SAFETY: the caller gives back what hvq_endpoint_new made.
    entry(|| unsafe { hvq_endpoint::free(endpoint) })
}

/// Replaces what new connections of peers are made from; NULL accepts no more. Existing connections go on.
///
/// Errors: `HVQ_ERR_NULL`, `HVQ_ERR_BUSY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_endpoint_set_server(
    endpoint: *mut hvq_endpoint,
    server: *const hvq_server_config,
) -> hvq_result {
    // SAFETY: the caller passes valid pointers or NULL.
    let server = unsafe { optional(server) };
    on_endpoint!(endpoint, |state| {
        state.core.set_server(server.map(|server| server.config.clone()));
        Ok(())
    })
}

/// Takes in what arrived from the network at time `now`. The bytes are copied. Datagrams that make no sense are
/// ignored, so that only mistakes of the caller are errors: `HVQ_ERR_NULL`, `HVQ_ERR_ARGUMENT`, `HVQ_ERR_BUSY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_endpoint_handle(
    endpoint: *mut hvq_endpoint,
    incoming: *const hvq_incoming,
    now: u64,
) -> hvq_result {
    on_endpoint!(endpoint, |state| {
        // SAFETY: the caller passes a valid struct.
        let incoming = unsafe { guard::reference(incoming) }?;
        let tuple = incoming.route.decode()?;
        // SAFETY: the struct points to that many bytes.
        let bytes = unsafe { guard::elements(incoming.bytes, incoming.length) }?;
        let ecn = Ecn::from_bits((incoming.ecn & 3) as u8);
        let mut copy = state.arena.copy(bytes);
        let segment = if incoming.segment == 0 { bytes.len() } else { incoming.segment };
        while !copy.is_empty() {
            let bytes = copy.split_to(segment.min(copy.len()));
            let datagram = Datagram { local: tuple.local, remote: tuple.remote, ecn, bytes };
            state.core.handle(datagram, Instant::from_nanos(now));
        }
        Ok(())
    })
}

/// Tells that the system refused to send a UDP payload of `size` bytes over `route` as too large for the interface
/// (EMSGSIZE). It is sent again in smaller ones.
///
/// Errors: `HVQ_ERR_NULL`, `HVQ_ERR_ARGUMENT`, `HVQ_ERR_BUSY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_endpoint_refused(
    endpoint: *mut hvq_endpoint,
    route: *const hvq_route,
    size: usize,
    now: u64,
) -> hvq_result {
    on_endpoint!(endpoint, |state| {
        // SAFETY: the caller passes a valid struct.
        let tuple = unsafe { guard::reference(route) }?.decode()?;
        state.core.on_refused(tuple, size, Instant::from_nanos(now));
        Ok(())
    })
}

/// The options of a connection that a client starts.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hvq_connect_options {
    /// The configuration.
    pub config: *const hvq_client_config,
    /// The name that the server's certificate must be for: a host name, or an IP address.
    pub server_name: *const c_char,
    /// The addresses of path 0. The local address is that of a socket, not 0.0.0.0: what arrives must be passed with
    /// the same.
    pub route: hvq_route,
}

/// Starts a connection at time `now` and writes its number, which is never used twice by the endpoint.
/// `HVQ_EVENT_CONNECTED` or `HVQ_EVENT_CLOSED` follows.
///
/// Errors: `HVQ_ERR_NULL`, `HVQ_ERR_ARGUMENT`, `HVQ_ERR_TLS` for a name that is none, `HVQ_ERR_LIMIT`, `HVQ_ERR_BUSY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_endpoint_connect(
    endpoint: *mut hvq_endpoint,
    options: *const hvq_connect_options,
    now: u64,
    connection: *mut u64,
) -> hvq_result {
    on_endpoint!(endpoint, |state| {
        guard::check(connection)?;
        // SAFETY: the caller passes a struct that points to a configuration and to text.
        let (config, name, route) = unsafe {
            let options = guard::reference(options)?;
            (guard::reference(options.config)?, guard::text(options.server_name)?, options.route)
        };
        let started = state.core.connect(&config.config, route.decode()?, name, Instant::from_nanos(now));
        let handle = started.map_err(|error| match error {
            ConnectError::Tls(error) => Failure::because(HVQ_ERR_TLS, error),
            error @ ConnectError::TooManyConnections => Failure::because(HVQ_ERR_LIMIT, error),
            error @ (ConnectError::Config(_) | ConnectError::NoCandidate) => {
                Failure::because(HVQ_ERR_ARGUMENT, error)
            }
        })?;
        // SAFETY: the caller lets it be written.
        unsafe { guard::put(connection, handle.0) }
    })
}

/// A network path on which a connection could begin.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct hvq_network_path {
    /// Its addresses.
    pub route: hvq_route,
    /// Hints about its channel.
    pub hints: hvq_hints,
}

/// Says over which of `count` network paths a connection with `config` had better begin, and writes its index: what the scheduler
/// chooses from the hints and from what all connections of the endpoint saw of these channels. It is 0 while nothing tells of
/// the delay of some path, and with schedulers that leave the choice to the program. Paths beyond the 64th are not
/// looked at. Nothing is started: hvq_endpoint_connect() does that.
///
/// Errors: `HVQ_ERR_NULL`, `HVQ_ERR_ARGUMENT`, also if `count` is 0, `HVQ_ERR_BUSY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_endpoint_first_network_path(
    endpoint: *mut hvq_endpoint,
    config: *const hvq_client_config,
    ways: *const hvq_network_path,
    count: usize,
    now: u64,
    index: *mut usize,
) -> hvq_result {
    on_endpoint!(endpoint, |state| {
        guard::check(index)?;
        // SAFETY: the caller passes a configuration and so many ways.
        let (config, ways) = unsafe { (guard::reference(config)?, guard::elements(ways, count)?) };
        let decode = |way: &hvq_network_path| {
            Ok(NetworkPath { tuple: way.route.decode()?, hints: way.hints.decode()? })
        };
        let ways = ways.iter().take(64).map(decode).collect::<Result<Vec<NetworkPath>, Failure>>()?;
        if ways.is_empty() {
            return Err(Failure::because(HVQ_ERR_ARGUMENT, "no path to choose from"));
        }
        let first = state.core.first_network_path(&config.config, &ways, Instant::from_nanos(now));
        // SAFETY: the caller lets it be written.
        unsafe { guard::put(index, first) }
    })
}

/// Says what is to be done at time `now`: send a batch, look at an event, or wait. To be called until it says
/// HVQ_OUTPUT_IDLE, after every other call that changes something. Bytes that the output points to are valid until the
/// next poll of this endpoint, or until it is freed.
///
/// Errors: `HVQ_ERR_NULL`, `HVQ_ERR_BUSY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_endpoint_poll(
    endpoint: *mut hvq_endpoint,
    now: u64,
    output: *mut hvq_output,
) -> hvq_result {
    on_endpoint!(endpoint, |state| {
        guard::check(output)?;
        let said = state.poll(Instant::from_nanos(now));
        // SAFETY: the caller lets it be written.
        unsafe { guard::put(output, said) }
    })
}

/// Writes the numbers of all connections, closing ones included, in no order: at most `capacity` of them to
/// `connections`, and how many there are to `count`.
///
/// Errors: `HVQ_ERR_NULL`, `HVQ_ERR_BUSY`, `HVQ_ERR_TOO_SMALL` if `capacity` is less than `count`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_endpoint_connections(
    endpoint: *mut hvq_endpoint,
    connections: *mut u64,
    capacity: usize,
    count: *mut usize,
) -> hvq_result {
    on_endpoint!(endpoint, |state| {
        // SAFETY: the caller gives room for `capacity` numbers.
        let room = unsafe { guard::room(connections, capacity) }?;
        let mut total = 0;
        for handle in state.core.handles() {
            if let Some(place) = room.get_mut(total) {
                place.write(handle.0);
            }
            total += 1;
        }
        // SAFETY: the caller lets it be written.
        unsafe { guard::put(count, total) }?;
        if total > capacity { Err(HVQ_ERR_TOO_SMALL.into()) } else { Ok(()) }
    })
}
