//! noq: a QUIC implementation with the multipath extension.

use crate::content;
use crate::identity::Identity;
use crate::peer::tls;
use anyhow::{Context, Result};
use bytes::Bytes;
use hvq::transport::wire::frame::types;
use noq::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use noq::{ClientConfig, Connection, Endpoint, FrameStats, ServerConfig, TransportConfig};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// The silence after which noq gives a path up. Until then it goes on choosing the path of lowest ID whose congestion
/// window has room, for acknowledgements and flow control too: if that path is cut, both directions wait for this long.
const PATH_PATIENCE: Duration = Duration::from_millis(1500);
/// Bytes to read at a time.
const CHUNK: usize = 64 * 1024;
/// The interval at which it probes a silent path.
const PATH_KEEP_ALIVE: Duration = Duration::from_millis(500);

fn transport(paths: u32) -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport.max_concurrent_multipath_paths(paths);
    transport.default_path_max_idle_timeout(Some(PATH_PATIENCE));
    transport.default_path_keep_alive_interval(Some(PATH_KEEP_ALIVE));
    Arc::new(transport)
}

/// A server on a port of 127.0.0.1 that permits `paths` paths at a time.
///
/// # Errors
/// It cannot be bound.
pub fn server(identity: &Identity, alpn: &[u8], paths: u32) -> Result<Endpoint> {
    let tls = QuicServerConfig::try_from(tls::server(identity, alpn)?)?;
    let mut config = ServerConfig::with_crypto(Arc::new(tls));
    config.transport_config(transport(paths));
    Ok(Endpoint::server(config, SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?)
}

/// A client that trusts only `identity` and permits `paths` paths at a time.
///
/// # Errors
/// It cannot be bound.
pub fn client(identity: &Identity, alpn: &[u8], paths: u32) -> Result<Endpoint> {
    let tls = QuicClientConfig::try_from(tls::client(identity, alpn)?)?;
    let mut config = ClientConfig::new(Arc::new(tls));
    config.transport_config(transport(paths));
    let endpoint = Endpoint::client(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)))?;
    endpoint.set_default_client_config(config);
    Ok(endpoint)
}

/// Sends `sent` on a stream and receives another, which must hold `wanted`.
///
/// # Errors
/// The connection ended, or something else arrived.
pub async fn swap(connection: &Connection, sent: Bytes, wanted: &Bytes) -> Result<()> {
    let send = async {
        let mut stream = connection.open_uni().await?;
        stream.write_all(&sent).await.context("noq writes")?;
        stream.finish()?;
        anyhow::Ok(())
    };
    let receive = async {
        let mut stream = connection.accept_uni().await?;
        // Not read_to_end, which takes data out of order: now and then it never ends with noq 1.4 when a path was cut and
        // data came twice, although noq has acknowledged all of it.
        let mut received = Vec::with_capacity(wanted.len());
        while let Some(chunk) = stream.read_chunk(CHUNK).await.context("noq reads")? {
            received.extend_from_slice(&chunk);
        }
        content::check(&received, wanted, "received by noq")
    };
    tokio::try_join!(send, receive)?;
    Ok(())
}

/// The multipath frames among these by type. noq has one counter for PATH_ACK and PATH_ACK_ECN.
pub fn multipath(frames: &FrameStats) -> [(&'static [u64], u64); 9] {
    [
        (&[types::PATH_ACK, types::PATH_ACK_ECN], frames.path_acks),
        (&[types::PATH_ABANDON], frames.path_abandon),
        (&[types::PATH_STATUS_BACKUP], frames.path_status_backup),
        (&[types::PATH_STATUS_AVAILABLE], frames.path_status_available),
        (&[types::PATH_NEW_CONNECTION_ID], frames.path_new_connection_id),
        (&[types::PATH_RETIRE_CONNECTION_ID], frames.path_retire_connection_id),
        (&[types::MAX_PATH_ID], frames.max_path_id),
        (&[types::PATHS_BLOCKED], frames.paths_blocked),
        (&[types::PATH_CIDS_BLOCKED], frames.path_cids_blocked),
    ]
}
