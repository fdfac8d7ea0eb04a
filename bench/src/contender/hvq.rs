//! hvq with its defaults, but for the datagram size and the key exchange: one path and policy `single`, or two loopback
//! paths and policy `hvc`.

use super::stack::{Counters, Stack};
use super::{ALPN, Contender, Material, STREAMS, Task};
use anyhow::{Context, Result, bail};
use bytes::Bytes;
use hvq::{
    ClientConfig, ClientTls, Connection, ConnectionError, Endpoint, Identity, LocalAddress, PathOptions,
    Policy, RecvStream, SendStream, ServerConfig, ServerTls, TransportConfig, Verify,
};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// The loopback addresses of the paths, the same on both sides.
const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(127, 0, 0, 1), Ipv4Addr::new(127, 0, 0, 2)];

/// The library.
pub struct Hvq;

/// A server, or a client and what its connections are made from.
#[derive(Clone)]
pub struct Ends {
    endpoint: Endpoint,
    client: Option<ClientConfig>,
}

/// The key exchange that a client offers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyExchange {
    /// X25519 only, as the others do here.
    Classical,
    /// hvq's default offer: X25519MLKEM768 first.
    PostQuantum,
}

impl Stack for Hvq {
    type Endpoint = Ends;
    type Connection = Connection;
    type Send = SendStream;
    type Receive = RecvStream;

    fn listen(task: &Task) -> Result<(Ends, Vec<SocketAddr>)> {
        let config = ServerConfig::new(server_tls(&task.material)?, transport(task));
        let local: Vec<_> =
            addresses(task.contender).iter().map(|ip| LocalAddress::Socket((*ip, 0).into())).collect();
        let endpoint = Endpoint::server(config, &local)?;
        let addresses = endpoint.local_addrs();
        Ok((Ends { endpoint, client: None }, addresses))
    }

    fn dial(task: &Task) -> Result<Ends> {
        let tls = client_tls(&task.material, KeyExchange::Classical)?;
        let client = Some(ClientConfig::new(tls, transport(task)));
        let endpoint = Endpoint::client(&[LocalAddress::Socket((ADDRESSES[0], 0).into())])?;
        Ok(Ends { endpoint, client })
    }

    async fn accept(ends: &Ends) -> Result<Connection> {
        ends.endpoint.accept().await.context("the endpoint was closed")
    }

    async fn connect(ends: &Ends, task: &Task, to: &[SocketAddr]) -> Result<Connection> {
        let config = ends.client.clone().context("a server opens nothing")?;
        let [first, others @ ..] = to else { bail!("no address of a server") };
        let connection = ends.endpoint.connect(config, *first, Material::NAME)?.await?;
        for (address, remote) in addresses(task.contender).iter().skip(1).zip(others) {
            let local = LocalAddress::Ip(IpAddr::V4(*address));
            connection.open_path(PathOptions::new("second", local).to(*remote)).await?;
        }
        Ok(connection)
    }

    async fn open(connection: &Connection) -> Result<(SendStream, RecvStream)> {
        Ok(connection.open_bi().await?)
    }

    async fn accept_stream(connection: &mut Connection) -> Result<Option<(SendStream, RecvStream)>> {
        match connection.accept_bi().await {
            Ok(halves) => Ok(Some(halves)),
            Err(ConnectionError::PeerApplication { code: 0, .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    async fn write(stream: &mut SendStream, data: Bytes) -> Result<()> {
        Ok(stream.write_chunk(data).await?)
    }

    fn finish(stream: &mut SendStream) -> Result<()> {
        Ok(stream.finish()?)
    }

    async fn read(stream: &mut RecvStream) -> Result<Option<Bytes>> {
        Ok(stream.read_chunk(super::BLOCK).await?)
    }

    fn close(connection: &Connection) {
        connection.close(0, b"");
    }

    async fn drain(ends: &Ends) {
        ends.endpoint.wait_idle().await;
    }

    fn counters(ends: &Ends, connection: &Connection) -> Counters {
        let io = ends.endpoint.io_stats();
        let paths = connection.stats().paths;
        Counters {
            datagrams_sent: paths.iter().map(|path| path.counters.datagrams_sent).sum(),
            send_calls: io.send_calls,
            packets_lost: paths.iter().map(|path| path.counters.packets_lost).sum(),
        }
    }
}

/// Returns the TLS configuration of a server, with its certificate.
pub fn server_tls(material: &Material) -> Result<ServerTls> {
    let identity = Identity::Pem { chain: material.certificate_pem()?, key: material.key_pem()? };
    Ok(ServerTls::builder(identity).alpn([ALPN]).build()?)
}

/// Returns the TLS configuration of a client, which trusts the authority of the server's certificate.
pub fn client_tls(material: &Material, exchange: KeyExchange) -> Result<ClientTls> {
    let verify = Verify::CaFile(material.authority.clone());
    let builder = ClientTls::builder().alpn([ALPN]).verify(verify);
    let builder = match exchange {
        KeyExchange::Classical => builder.curves("X25519"),
        KeyExchange::PostQuantum => builder,
    };
    Ok(builder.build()?)
}

/// Sets the limits of streams that all contenders have.
pub fn permit_streams(transport: &mut TransportConfig) {
    transport.streams_mut().max_streams_bidi = STREAMS.into();
    transport.streams_mut().max_streams_uni = STREAMS.into();
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
    transport.set_datagram_size(usize::from(task.datagram).into());
    permit_streams(&mut transport);
    transport.set_idle_timeout(task.idle_timeout());
    Arc::new(transport)
}
