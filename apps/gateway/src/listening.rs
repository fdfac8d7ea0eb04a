//! The endpoints of a gateway: its sockets, what their connections are made from, and who takes them.

use crate::configuration::Config;
use crate::connection;
use crate::gateway::{Shared, StartError};
use hvq::transport::connection::{ChannelHint, DatagramSizing};
use hvq::transport::stream::StreamLimits;
use hvq::{
    ChannelOptions, ConnectionIds, Endpoint, EndpointConfig, EndpointOptions, LocalAddress, QuicLb,
    RetryPolicy, ServerConfig, ServerTls, SteeredBy, TransportConfig,
};
use ring::rand::{SecureRandom, SystemRandom};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::task::JoinSet;

/// The port of HTTP/3, for channels that name none.
const PORT: u16 = 443;

/// Serves connections of `endpoint` until the gateway stops or the endpoint closes.
pub(crate) async fn accept(shared: Arc<Shared>, endpoint: Endpoint) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = endpoint.accept() => match accepted {
                Some(connection) => {
                    connections.spawn(connection::serve(shared.clone(), connection));
                }
                None => break,
            },
            () = shared.stopping() => break,
            Some(_) = connections.join_next() => {}
        }
    }
    endpoint.set_server(None);
    while connections.join_next().await.is_some() {}
}

/// Who the gateway is.
pub(crate) fn tls(config: &Config) -> Result<ServerTls, StartError> {
    let mut builder = ServerTls::builder(config.identity.clone()).alpn([hvq_h3::ALPN]);
    if let Some(authority) = config.proxy.as_ref().and_then(|proxy| proxy.clients.authority.as_ref()) {
        builder = builder.ask_clients(authority.clone());
    }
    // Browsers may open a second connection while the first is there.
    Ok(builder.early_data(config.early_data).tickets(2).build()?)
}

/// Binds all addresses, as many times as there are workers.
pub(crate) fn bind(config: &Config, tls: ServerTls) -> Result<Vec<Endpoint>, StartError> {
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
        let options = EndpointOptions {
            config: endpoint(config)?,
            server: Some(server(config, tls.clone(), &[])),
            local,
        };
        match config.workers.get() {
            1 => Ok(vec![Endpoint::new(options)?]),
            _ => Endpoint::workers(options, config.workers, SteeredBy::Kernel),
        }
    };
    let endpoints = start().map_err(|source| StartError::Listen { address, source })?;
    // Only now are the ports known that the system chose.
    for endpoint in &endpoints {
        endpoint.set_server(Some(server(config, tls.clone(), &endpoint.local_addrs())));
    }
    Ok(endpoints)
}

/// The limits of each worker: its share of those of the gateway, for the system deals new clients out evenly.
fn endpoint(config: &Config) -> io::Result<EndpointConfig> {
    let workers = usize::from(config.workers.get());
    Ok(EndpointConfig {
        ids: ids(config)?,
        max_connections: config.limits.connections.div_ceil(workers),
        max_handshaking: config.limits.handshakes.div_ceil(workers),
        ..EndpointConfig::default()
    })
}

/// What makes connection IDs, if a load balancer is to read them.
fn ids(config: &Config) -> io::Result<Option<Arc<dyn ConnectionIds>>> {
    let Some(quic_lb) = config.quic_lb.clone() else { return Ok(None) };
    let mut first_nonce = [0; 19];
    let filled = SystemRandom::new().fill(&mut first_nonce);
    filled.map_err(|_| io::Error::other("the system gives no random numbers"))?;
    let ids = QuicLb::new(quic_lb, first_nonce).map_err(io::Error::other)?;
    Ok(Some(Arc::new(ids)))
}

/// What connections are made from, with what is known of the channels of the sockets that are bound to `bound`.
pub(crate) fn server(config: &Config, tls: ServerTls, bound: &[SocketAddr]) -> ServerConfig {
    let policy = config.scheduler;
    let hint = |bound: &SocketAddr| config.channels.iter().find_map(|channel| channel.hint_for(*bound));
    let channels: Vec<ChannelHint> = bound.iter().filter_map(hint).collect();
    let codepoint = |bound: &SocketAddr| {
        config.channels.iter().find_map(|channel: &ChannelOptions| channel.codepoint_for(*bound))
    };
    let base = TransportConfig::new(Arc::new(move || policy.scheduler()));
    let streams = StreamLimits { max_streams_bidi: config.limits.requests_per_connection, ..base.streams };
    let transport = TransportConfig {
        congestion: config.congestion,
        idle_timeout: config.connection_idle,
        datagram_size: DatagramSizing::Discover { most: config.largest_datagram },
        codepoints: bound.iter().filter_map(codepoint).collect(),
        tracer: config.tracer.clone(),
        channels,
        streams,
        ..base
    };
    let mut server = ServerConfig::new(tls, Arc::new(transport));
    // A quarter of the handshakes, as by default, may be those of clients that have not proven their addresses.
    let handshakes = config.limits.handshakes.div_ceil(usize::from(config.workers.get()));
    server.retry = RetryPolicy::WhenBusy(handshakes.div_ceil(4));
    server
}
