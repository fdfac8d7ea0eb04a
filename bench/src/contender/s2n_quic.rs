//! s2n-quic with its defaults, but for the datagram size, the key exchange and the cipher suite.

use super::stack::{Counters, Stack};
use super::{ALPN, Material, SOCKET_BUFFER, STREAMS, Task};
use anyhow::{Context, Error, Result, anyhow, bail};
use bytes::Bytes;
use s2n_quic::client::Connect;
use s2n_quic::connection::{Error as ConnectionError, Handle, StreamAcceptor};
use s2n_quic::provider::io::tokio::{Builder, Provider as Io};
use s2n_quic::provider::limits::Limits;
use s2n_quic::provider::tls::rustls as tls;
use s2n_quic::stream::{ReceiveStream, SendStream};
use s2n_quic::{Client, Connection as Whole, Server};
use std::cell::RefCell;
use std::fmt::Display;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;

/// The library.
pub struct S2nQuic;

/// A server or a client.
#[derive(Clone)]
pub enum Endpoint {
    /// Accepts connections, one caller at a time.
    Server(Rc<RefCell<Server>>),
    /// Opens them.
    Client(Client),
}

/// A connection in the two parts that the library makes of it.
pub struct Connection {
    handle: Handle,
    acceptor: StreamAcceptor,
}

impl From<Whole> for Connection {
    fn from(whole: Whole) -> Self {
        let (handle, acceptor) = whole.split();
        Self { handle, acceptor }
    }
}

/// Its errors are of several kinds, not all of them errors of the standard library.
fn refused(error: impl Display) -> Error {
    anyhow!("s2n-quic: {error}")
}

fn io(datagram: u16) -> Result<Io> {
    let builder = Builder::default()
        .with_receive_address((Ipv4Addr::LOCALHOST, 0).into())?
        .with_recv_buffer_size(SOCKET_BUFFER)?
        .with_send_buffer_size(SOCKET_BUFFER)?
        .with_base_mtu(datagram + HEADERS)?
        .with_initial_mtu(datagram + HEADERS)?
        .with_max_mtu(datagram + HEADERS)?;
    Ok(builder.build()?)
}

/// The limits that all contenders have.
fn limits(task: &Task) -> Result<Limits> {
    let limits = Limits::new()
        .with_max_open_local_bidirectional_streams(STREAMS.into())?
        .with_max_open_remote_bidirectional_streams(STREAMS.into())?
        .with_max_idle_timeout(task.idle_timeout())?;
    Ok(limits)
}

/// Bytes of IPv4 and UDP headers, which s2n-quic counts as part of a datagram.
const HEADERS: u16 = 28;

impl Stack for S2nQuic {
    type Endpoint = Endpoint;
    type Connection = Connection;
    type Send = SendStream;
    type Receive = ReceiveStream;

    fn listen(task: &Task) -> Result<(Endpoint, Vec<SocketAddr>)> {
        let tls = tls::Server::from(task.material.aws_server(ALPN)?);
        let builder =
            Server::builder().with_tls(tls)?.with_io(io(task.datagram)?)?.with_limits(limits(task)?)?;
        let server = builder.start().map_err(refused)?;
        let address = server.local_addr()?;
        Ok((Endpoint::Server(Rc::new(RefCell::new(server))), vec![address]))
    }

    fn dial(task: &Task) -> Result<Endpoint> {
        let tls = tls::Client::from(task.material.aws_client(ALPN)?);
        let builder =
            Client::builder().with_tls(tls)?.with_io(io(task.datagram)?)?.with_limits(limits(task)?)?;
        Ok(Endpoint::Client(builder.start().map_err(refused)?))
    }

    #[expect(clippy::await_holding_refcell_ref, reason = "a server has one task that accepts")]
    async fn accept(endpoint: &Endpoint) -> Result<Connection> {
        let Endpoint::Server(server) = endpoint else { bail!("a client accepts nothing") };
        let accepted = server.borrow_mut().accept().await;
        Ok(accepted.context("the endpoint was closed")?.into())
    }

    async fn connect(endpoint: &Endpoint, _: &Task, to: &[SocketAddr]) -> Result<Connection> {
        let Endpoint::Client(client) = endpoint else { bail!("a server opens nothing") };
        let [remote] = to else { bail!("one address of the server is needed, not {}", to.len()) };
        let connect = Connect::new(*remote).with_server_name(Material::NAME);
        Ok(client.connect(connect).await?.into())
    }

    async fn open(connection: &Connection) -> Result<(SendStream, ReceiveStream)> {
        let stream = connection.handle.clone().open_bidirectional_stream().await?;
        let (receive, send) = stream.split();
        Ok((send, receive))
    }

    async fn accept_stream(connection: &mut Connection) -> Result<Option<(SendStream, ReceiveStream)>> {
        match connection.acceptor.accept_bidirectional_stream().await {
            Ok(Some(stream)) => {
                let (receive, send) = stream.split();
                Ok(Some((send, receive)))
            }
            Ok(None) => Ok(None),
            Err(ConnectionError::Application { error, .. }) if *error == 0 => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    async fn write(stream: &mut SendStream, data: Bytes) -> Result<()> {
        Ok(stream.send(data).await?)
    }

    fn finish(stream: &mut SendStream) -> Result<()> {
        Ok(stream.finish()?)
    }

    async fn read(stream: &mut ReceiveStream) -> Result<Option<Bytes>> {
        Ok(stream.receive().await?)
    }

    fn close(connection: &Connection) {
        connection.handle.close(0u32.into());
    }

    async fn drain(endpoint: &Endpoint) {
        if let Endpoint::Client(client) = endpoint {
            // What cannot be said any more is said to nobody.
            let _said = client.clone().wait_idle().await;
        }
    }

    fn counters(_: &Endpoint, _: &Connection) -> Counters {
        // s2n-quic tells them to subscribers of events only, which would cost time.
        Counters::default()
    }
}
