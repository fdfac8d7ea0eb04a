//! quinn with its defaults, but for the datagram size, which is fixed, and the cipher suite.

use super::{ALPN, Account, BLOCK, Line, Material, REQUEST, SOCKET_BUFFER, Task, say};
use crate::meter::Meter;
use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{
    ClientConfig, Connection, ConnectionError, Endpoint, EndpointConfig, ServerConfig, TokioRuntime,
    TransportConfig,
};
use quinn_udp::UdpSocketState;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;

/// Listens, answers one request and waits until the client has the answer.
pub async fn serve(task: &Task) -> Result<Account> {
    let endpoint = endpoint(Some(server_config(&task.material, task.datagram)?))?;
    say(&Line::Listening(vec![endpoint.local_addr()?]))?;
    let connection = endpoint.accept().await.context("the endpoint was closed")?.await?;
    let (mut send, mut receive) = connection.accept_bi().await?;
    let request = receive.read_to_end(REQUEST).await?;
    let meter = Meter::start()?;
    let block = Bytes::from(vec![0x5a; BLOCK]);
    let mut left = u64::from_be_bytes(request.as_slice().try_into().context("a request has eight bytes")?);
    while left > 0 {
        let part = block.slice(..BLOCK.min(usize::try_from(left).unwrap_or(BLOCK)));
        left -= part.len() as u64;
        send.write_chunk(part).await?;
    }
    send.finish()?;
    // The client closes the connection as soon as it has everything, perhaps without an acknowledgement of the last part.
    let end = connection.closed().await;
    let is_expected =
        matches!(&end, ConnectionError::ApplicationClosed(close) if close.error_code == 0u32.into());
    ensure!(is_expected, "{end}");
    account(&meter, &connection)
}

/// Connects, sends a request and reads the answer.
pub async fn fetch(task: &Task, to: &[SocketAddr]) -> Result<Account> {
    let [remote] = to else { bail!("quinn has one address of its server, not {}", to.len()) };
    let config = client_config(&task.material, task.datagram)?;
    let endpoint = endpoint(None)?;
    let connection = endpoint.connect_with(config, *remote, Material::NAME)?.await?;
    let (mut send, mut receive) = connection.open_bi().await?;
    let meter = Meter::start()?;
    send.write_all(&task.bytes.to_be_bytes()).await?;
    send.finish()?;
    let mut received = 0;
    while let Some(chunk) = receive.read_chunk(BLOCK, true).await? {
        received += chunk.bytes.len() as u64;
    }
    ensure!(received == task.bytes, "{received} bytes arrived instead of {}", task.bytes);
    let account = account(&meter, &connection)?;
    connection.close(0u32.into(), b"");
    endpoint.wait_idle().await;
    Ok(account)
}

/// What a server is made from that sends datagrams of `datagram` bytes.
pub fn server_config(material: &Material, datagram: u16) -> Result<ServerConfig> {
    let tls = QuicServerConfig::try_from(material.rustls_server(ALPN)?)?;
    let mut config = ServerConfig::with_crypto(Arc::new(tls));
    config.transport_config(transport(datagram));
    Ok(config)
}

/// What a client is made from that sends datagrams of `datagram` bytes.
pub fn client_config(material: &Material, datagram: u16) -> Result<ClientConfig> {
    let tls = QuicClientConfig::try_from(material.rustls_client(ALPN)?)?;
    let mut config = ClientConfig::new(Arc::new(tls));
    config.transport_config(transport(datagram));
    Ok(config)
}

/// The defaults, CUBIC among them, with datagrams of one size.
fn transport(datagram: u16) -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport.initial_mtu(datagram).mtu_discovery_config(None);
    Arc::new(transport)
}

/// An endpoint on a socket with the buffers that all contenders have.
fn endpoint(server: Option<ServerConfig>) -> Result<Endpoint> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let state = UdpSocketState::new((&socket).into())?;
    state.set_recv_buffer_size((&socket).into(), SOCKET_BUFFER)?;
    state.set_send_buffer_size((&socket).into(), SOCKET_BUFFER)?;
    Ok(Endpoint::new(EndpointConfig::default(), server, socket, Arc::new(TokioRuntime))?)
}

fn account(meter: &Meter, connection: &Connection) -> Result<Account> {
    let usage = meter.stop()?;
    let stats = connection.stats();
    Ok(Account {
        usage,
        datagrams_sent: stats.udp_tx.datagrams,
        send_calls: stats.udp_tx.ios,
        packets_lost: stats.path.lost_packets,
    })
}
