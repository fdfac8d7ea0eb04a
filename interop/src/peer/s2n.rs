//! s2n-quic: a QUIC implementation in Rust, here with its TLS by rustls.

use crate::content;
use crate::identity::Identity;
use anyhow::{Context, Error, Result, anyhow};
use bytes::Bytes;
use s2n_quic::provider::tls::rustls as tls;
use s2n_quic::{Client, Connection, Server};
use std::fmt::Display;

/// Its errors are of several kinds, not all of them errors of the standard library.
fn refused(error: impl Display) -> Error {
    anyhow!("TLS of s2n-quic: {error}")
}

/// A server on a port of 127.0.0.1.
///
/// # Errors
/// It cannot be bound.
pub fn server(identity: &Identity, alpn: &[u8]) -> Result<Server> {
    let builder = tls::Server::builder()
        .with_certificate(identity.certificate.as_str(), identity.key.as_str())
        .map_err(refused)?;
    let tls = builder.with_application_protocols([alpn].iter()).map_err(refused)?.build().map_err(refused)?;
    let builder = Server::builder().with_tls(tls)?.with_io("127.0.0.1:0")?;
    builder.start().map_err(|error| anyhow!("s2n-quic: {error}"))
}

/// A client that trusts only `identity`.
///
/// # Errors
/// It cannot be bound.
pub fn client(identity: &Identity, alpn: &[u8]) -> Result<Client> {
    let builder = tls::Client::builder().with_certificate(identity.certificate.as_str()).map_err(refused)?;
    let tls = builder.with_application_protocols([alpn].iter()).map_err(refused)?.build().map_err(refused)?;
    let builder = Client::builder().with_tls(tls)?.with_io("127.0.0.1:0")?;
    builder.start().map_err(|error| anyhow!("s2n-quic: {error}"))
}

/// Sends `sent` on a stream and receives another, which must hold `wanted`.
///
/// # Errors
/// The connection ended, or something else arrived.
pub async fn swap(connection: &mut Connection, sent: Bytes, wanted: &Bytes) -> Result<()> {
    let mut opener = connection.handle();
    let send = async {
        let mut stream = opener.open_send_stream().await?;
        stream.send(sent).await.context("s2n-quic writes")?;
        stream.close().await.context("s2n-quic ends its stream")?;
        anyhow::Ok(())
    };
    let receive = async {
        let stream = connection.accept_receive_stream().await?;
        let mut stream = stream.context("the connection ended")?;
        let mut received = Vec::with_capacity(wanted.len());
        while let Some(chunk) = stream.receive().await.context("s2n-quic reads")? {
            received.extend_from_slice(&chunk);
        }
        content::check(&received, wanted, "received by s2n-quic")
    };
    tokio::try_join!(send, receive)?;
    Ok(())
}
