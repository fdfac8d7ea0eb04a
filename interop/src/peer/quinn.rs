//! quinn: a QUIC implementation in Rust, the root of several others.

use crate::content;
use crate::identity::Identity;
use crate::peer::tls;
use anyhow::{Context, Result};
use bytes::Bytes;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, Connection, Endpoint, ServerConfig};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// Bytes to read at a time.
const CHUNK: usize = 64 * 1024;

/// A server on a port of 127.0.0.1.
///
/// # Errors
/// It cannot be bound.
pub fn server(identity: &Identity, alpn: &[u8]) -> Result<Endpoint> {
    let tls = QuicServerConfig::try_from(tls::server(identity, alpn)?)?;
    let config = ServerConfig::with_crypto(Arc::new(tls));
    Ok(Endpoint::server(config, SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?)
}

/// A client that trusts only `identity`.
///
/// # Errors
/// It cannot be bound.
pub fn client(identity: &Identity, alpn: &[u8]) -> Result<Endpoint> {
    let tls = QuicClientConfig::try_from(tls::client(identity, alpn)?)?;
    let config = ClientConfig::new(Arc::new(tls));
    let mut endpoint = Endpoint::client(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)))?;
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
        stream.write_all(&sent).await.context("quinn writes")?;
        stream.finish()?;
        anyhow::Ok(())
    };
    let receive = async {
        let mut stream = connection.accept_uni().await?;
        let mut received = Vec::with_capacity(wanted.len());
        while let Some(chunk) = stream.read_chunk(CHUNK, true).await.context("quinn reads")? {
            received.extend_from_slice(&chunk.bytes);
        }
        content::check(&received, wanted, "received by quinn")
    };
    tokio::try_join!(send, receive)?;
    Ok(())
}
