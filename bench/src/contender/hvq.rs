//! hvq with its defaults: one path and policy `single`, or two loopback paths and policy `hvc`.

use super::{ALPN, Account, BLOCK, Contender, Line, Material, REQUEST, Task, say};
use crate::meter::Meter;
use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use hvq::{
    ClientConfig, ClientTls, Connection, ConnectionError, Endpoint, Identity, LocalAddress, PathOptions,
    Policy, ServerConfig, ServerTls, TransportConfig, Verify,
};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// The loopback addresses of the paths, the same on both sides.
const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(127, 0, 0, 1), Ipv4Addr::new(127, 0, 0, 2)];

/// Listens, answers one request and waits until the client has the answer.
pub async fn serve(task: &Task) -> Result<Account> {
    let identity = Identity::Pem { chain: task.material.certificate_pem()?, key: task.material.key_pem()? };
    let tls = ServerTls::builder(identity).alpn([ALPN]).build()?;
    let config = ServerConfig::new(tls, transport(task));
    let local: Vec<_> =
        addresses(task.contender).iter().map(|ip| LocalAddress::Socket((*ip, 0).into())).collect();
    let endpoint = Endpoint::server(config, &local)?;
    say(&Line::Listening(endpoint.local_addrs()))?;
    let connection = endpoint.accept().await.context("the endpoint was closed")?;
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
    ensure!(matches!(end, ConnectionError::PeerApplication { code: 0, .. }), "{end}");
    account(&meter, &endpoint, &connection)
}

/// Connects, opens the second path if there is one, sends a request and reads the answer.
pub async fn fetch(task: &Task, to: &[SocketAddr]) -> Result<Account> {
    let verify = Verify::CaFile(task.material.certificate.clone());
    let tls = ClientTls::builder().alpn([ALPN]).verify(verify).build()?;
    let config = ClientConfig::new(tls, transport(task));
    let [first, others @ ..] = to else { bail!("no address of a server") };
    let endpoint = Endpoint::client(&[LocalAddress::Socket((ADDRESSES[0], 0).into())])?;
    let connection = endpoint.connect(config, *first, Material::NAME)?.await?;
    for (address, remote) in addresses(task.contender).iter().skip(1).zip(others) {
        let local = LocalAddress::Ip(IpAddr::V4(*address));
        connection.open_path(PathOptions::new("second", local).to(*remote)).await?;
    }
    let (mut send, mut receive) = connection.open_bi().await?;
    let meter = Meter::start()?;
    send.write_all(&task.bytes.to_be_bytes()).await?;
    send.finish()?;
    let mut received = 0;
    while let Some(chunk) = receive.read_chunk(BLOCK).await? {
        received += chunk.len() as u64;
    }
    ensure!(received == task.bytes, "{received} bytes arrived instead of {}", task.bytes);
    let account = account(&meter, &endpoint, &connection)?;
    connection.close(0, b"");
    endpoint.wait_idle().await;
    Ok(account)
}

fn addresses(contender: Contender) -> &'static [Ipv4Addr] {
    if contender == Contender::HvqTwoPaths { &ADDRESSES } else { &ADDRESSES[..1] }
}

fn transport(task: &Task) -> Arc<TransportConfig> {
    let policy = match task.contender {
        Contender::HvqTwoPaths => Policy::Hvc,
        _ => Policy::Single(None),
    };
    let mut transport = TransportConfig::new(Arc::new(move || policy.scheduler()));
    transport.datagram_size = usize::from(task.datagram).into();
    Arc::new(transport)
}

fn account(meter: &Meter, endpoint: &Endpoint, connection: &Connection) -> Result<Account> {
    let usage = meter.stop()?;
    let io = endpoint.io_stats();
    let packets_lost = connection.stats().paths.iter().map(|path| path.counters.packets_lost).sum();
    Ok(Account { usage, datagrams_sent: io.datagrams_sent, send_calls: io.send_calls, packets_lost })
}
