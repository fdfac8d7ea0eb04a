//! The endpoints of a gateway: its sockets, what their connections are made from, and who takes them.

use crate::configuration::Config;
use crate::connection;
use crate::gateway::{Shared, StartError};
use crate::health::Alarm;
use crate::keys::Keys;
use hvq::admission::{Admission, Decision, RetryPolicy};
use hvq::balancing::{ConnectionIds, QuicLb, SteeredBy, Succession};
use hvq::config::{ChannelHint, DatagramSizing, MemoryQuota};
use hvq::tls::KeyLog;
use hvq::{
    ChannelOptions, Endpoint, EndpointConfig, EndpointOptions, LocalAddress, ServerConfig, ServerTls,
    TransportConfig,
};
use ring::rand::{SecureRandom, SystemRandom};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::task::JoinSet;

/// The port of HTTP/3, for channels that name none.
const PORT: u16 = 443;

/// Stateless resets in a second at most: what thousands of clients of before a restart send is answered at once. Each is
/// smaller than what it answers (RFC 9000 §10.3.3).
const RESETS: u32 = 10_000;

/// Serves connections of `endpoint` until the gateway stops and none is left, or the endpoint closes. Ends with `alarm`.
pub(crate) async fn accept(shared: Arc<Shared>, endpoint: Endpoint, alarm: Alarm) {
    let mut connections = JoinSet::new();
    // Handshakes that were under way when the gateway was told to stop are completed, and told to go elsewhere.
    while !(shared.is_stopping() && connections.is_empty()) {
        tokio::select! {
            accepted = endpoint.accept() => match accepted {
                Some(connection) => {
                    connections.spawn(connection::serve(shared.clone(), connection));
                }
                None => break,
            },
            () = shared.stopping(), if !shared.is_stopping() => {}
            Some(_) = connections.join_next() => {}
        }
    }
    while connections.join_next().await.is_some() {}
    drop(alarm);
}

/// Returns the TLS configuration of the gateway, with its certificates.
pub(crate) fn tls(config: &Config, keys: Option<&Keys>) -> Result<ServerTls, StartError> {
    let (default, others) = config.credentials.split_first().expect("there is at least one certificate");
    let builder = ServerTls::builder(default.clone()).alpn([hvq_h3::ALPN]);
    let mut builder = others.iter().fold(builder, |builder, other| builder.credential(other.clone()));
    if let Some(authority) = config.proxy.as_ref().and_then(|proxy| proxy.clients.authority.as_ref()) {
        builder = builder.ask_clients(authority.clone());
    }
    if let Some(keys) = keys.and_then(Keys::tickets) {
        builder = builder.ticket_keys(keys);
    }
    if let Some(file) = &config.key_log {
        let failed = |source| StartError::KeyLog { file: file.display().to_string(), source };
        builder = builder.keylog(key_log(file).map_err(failed)?);
    }
    // Browsers may open a second connection while the first is there.
    Ok(builder.early_data(config.early_data).tickets(2).build()?)
}

/// Returns a function that appends TLS secrets to `file`, which is made for its owner alone if it is missing.
pub(crate) fn key_log(file: &Path) -> io::Result<KeyLog> {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = Mutex::new(options.open(file)?);
    Ok(Box::new(move |line| {
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        // One call for the line and its end, so that programs that share the file do not mix their lines.
        if let Err(error) = file.write_all(format!("{line}\n").as_bytes()) {
            tracing::warn!(%error, "cannot write TLS secrets");
        }
    }))
}

/// Binds all addresses, as many times as there are workers.
pub(crate) fn bind(
    config: &Config,
    tls: &ServerTls,
    keys: Option<&Keys>,
    succession: Option<Succession>,
    memory: &Arc<MemoryQuota>,
) -> Result<Vec<Endpoint>, StartError> {
    let mut local: Vec<LocalAddress> = config.listen.iter().copied().map(LocalAddress::Socket).collect();
    for channel in &config.channels {
        if config.listen.iter().any(|bound| channel.hint_for(*bound).is_some()) {
            continue;
        }
        local.push(match &channel.local {
            LocalAddress::Ip(address) => LocalAddress::Socket(SocketAddr::new(*address, PORT)),
            other => other.clone(),
        });
    }
    let address = local.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let start = || {
        let mut limits = endpoint(config)?;
        limits
            .set_reset_key(keys.map(Keys::reset))
            .set_token_key(keys.map(Keys::token))
            .set_resets_per_second(RESETS)
            .set_memory(Some(memory.clone()));
        let first = Some(server(config, tls.clone(), &[]));
        let options = EndpointOptions { config: limits, server: first, local, ..EndpointOptions::default() };
        match (succession, config.workers.get()) {
            (Some(succession), _) => Endpoint::succeeding(options, config.workers, succession),
            (None, 1) => Ok(vec![Endpoint::new(options)?]),
            (None, _) => Endpoint::workers(options, config.workers, SteeredBy::Kernel),
        }
    };
    let endpoints = start().map_err(|source| StartError::Listen { address, source })?;
    // Only now are the ports known that the system chose.
    for endpoint in &endpoints {
        endpoint.set_server(Some(server(config, tls.clone(), &endpoint.local_addrs())))?;
    }
    Ok(endpoints)
}

/// The limits of each worker: its share of those of the gateway, for the system deals new clients out evenly.
fn endpoint(config: &Config) -> io::Result<EndpointConfig> {
    let workers = usize::from(config.workers.get());
    let mut limits = EndpointConfig::default();
    limits
        .set_ids(ids(config)?)
        .set_max_connections(config.limits.connections.div_ceil(workers))
        .set_max_handshaking(config.limits.handshakes.div_ceil(workers));
    Ok(limits)
}

/// Returns the generator of connection IDs, if a load balancer is to read them.
fn ids(config: &Config) -> io::Result<Option<Arc<dyn ConnectionIds>>> {
    let Some(quic_lb) = config.quic_lb.clone() else { return Ok(None) };
    let mut first_nonce = [0; 19];
    let filled = SystemRandom::new().fill(&mut first_nonce);
    filled.map_err(|_| io::Error::other("the system gives no random numbers"))?;
    let ids = QuicLb::new(quic_lb, first_nonce).map_err(io::Error::other)?;
    Ok(Some(Arc::new(ids)))
}

/// Returns the configuration of connections, with the hints about the channels of the sockets that are bound to
/// `bound`.
pub(crate) fn server(config: &Config, tls: ServerTls, bound: &[SocketAddr]) -> ServerConfig {
    let policy = config.scheduler;
    let hint = |bound: &SocketAddr| config.channels.iter().find_map(|channel| channel.hint_for(*bound));
    let channels: Vec<ChannelHint> = bound.iter().filter_map(hint).collect();
    let codepoint = |bound: &SocketAddr| {
        config.channels.iter().find_map(|channel: &ChannelOptions| channel.codepoint_for(*bound))
    };
    let mut transport = TransportConfig::new(Arc::new(move || policy.scheduler()));
    transport.streams_mut().max_streams_bidi = config.limits.requests_per_connection;
    transport
        .set_congestion(config.congestion.into())
        .set_idle_timeout(config.connection_idle)
        .set_memory(config.limits.memory_per_connection)
        .set_datagram_size(DatagramSizing::Discover { most: config.largest_datagram })
        .set_codepoints(bound.iter().filter_map(codepoint).collect())
        .set_tracer(config.tracer.clone())
        .set_channels(channels);
    let mut server = ServerConfig::new(tls, Arc::new(transport));
    // A quarter of the handshakes, as by default, may be those of clients that have not proven their addresses.
    let handshakes = config.limits.handshakes.div_ceil(usize::from(config.workers.get()));
    server.set_retry(RetryPolicy::WhenBusy(handshakes.div_ceil(4)));
    server
}

/// `server`, whose clients are all told that there is no connection to be had (CONNECTION_REFUSED, RFC 9000 §5.2.2).
pub(crate) fn refusing(mut server: ServerConfig) -> ServerConfig {
    server.set_admission(Some(Admission::new(|_| Decision::Refuse)));
    server
}
