//! quinn and noq, which grew out of it: the same code twice, for their types have the same names in two crates.

/// A module with the [`Stack`](super::stack::Stack) of one of them: the module's name, the crate, and how it tells the bytes
/// of a chunk and what was sent.
macro_rules! peer_pair {
    ($module:ident, $library:ident, chunk: $chunk:expr, counters: $counters:expr) => {
        #[doc = concat!(
            stringify!($library),
            " with its defaults, but for the datagram size, which is fixed, the key exchange and the cipher suite."
        )]
        pub mod $module {
            use crate::contender::stack::{Counters, Stack};
            use crate::contender::{ALPN, IDLE_TIMEOUT, Material, SOCKET_BUFFER, STREAMS, Task};
            use anyhow::{Context, Result, bail};
            use bytes::Bytes;
            use quinn_udp::UdpSocketState;
            use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
            use std::sync::Arc;
            use std::time::Duration;
            use $library::crypto::rustls::{QuicClientConfig, QuicServerConfig};
            use $library::{
                ClientConfig, Connection, ConnectionError, Endpoint, EndpointConfig, RecvStream, SendStream,
                ServerConfig, TokioRuntime, TransportConfig,
            };

            /// The library.
            pub struct PeerPair;

            impl Stack for PeerPair {
                type Endpoint = Endpoint;
                type Connection = Connection;
                type Send = SendStream;
                type Receive = RecvStream;

                fn listen(task: &Task) -> Result<(Endpoint, Vec<SocketAddr>)> {
                    let mut config = server_config(&task.material, task.datagram)?;
                    config.transport_config(transport(task.datagram, task.idle_timeout())?);
                    let endpoint = endpoint(Some(config))?;
                    let address = endpoint.local_addr()?;
                    Ok((endpoint, vec![address]))
                }

                fn dial(task: &Task) -> Result<Endpoint> {
                    let mut endpoint = endpoint(None)?;
                    let mut config = client_config(&task.material, task.datagram)?;
                    config.transport_config(transport(task.datagram, task.idle_timeout())?);
                    Endpoint::set_default_client_config(&mut endpoint, config);
                    Ok(endpoint)
                }

                async fn accept(endpoint: &Endpoint) -> Result<Connection> {
                    Ok(endpoint.accept().await.context("the endpoint was closed")?.await?)
                }

                async fn connect(endpoint: &Endpoint, _: &Task, to: &[SocketAddr]) -> Result<Connection> {
                    let [remote] = to else { bail!("one address of the server is needed, not {}", to.len()) };
                    Ok(endpoint.connect(*remote, Material::NAME)?.await?)
                }

                async fn open(connection: &Connection) -> Result<(SendStream, RecvStream)> {
                    Ok(connection.open_bi().await?)
                }

                async fn accept_stream(
                    connection: &mut Connection,
                ) -> Result<Option<(SendStream, RecvStream)>> {
                    match connection.accept_bi().await {
                        Ok(halves) => Ok(Some(halves)),
                        Err(ConnectionError::ApplicationClosed(close)) if close.error_code == 0u32.into() => {
                            Ok(None)
                        }
                        // Its close was lost.
                        Err(ConnectionError::Reset | ConnectionError::TimedOut) => Ok(None),
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
                    $chunk(stream).await
                }

                fn close(connection: &Connection) {
                    connection.close(0u32.into(), b"");
                }

                async fn drain(endpoint: &Endpoint) {
                    endpoint.wait_idle().await;
                }

                fn counters(_: &Endpoint, connection: &Connection) -> Counters {
                    $counters(connection)
                }
            }

            /// Returns the configuration of a server that sends datagrams of `datagram` bytes.
            pub fn server_config(material: &Material, datagram: u16) -> Result<ServerConfig> {
                let tls = QuicServerConfig::try_from(material.rustls_server(ALPN)?)?;
                let mut config = ServerConfig::with_crypto(Arc::new(tls));
                config.transport_config(transport(datagram, IDLE_TIMEOUT)?);
                Ok(config)
            }

            /// Returns the configuration of a client that sends datagrams of `datagram` bytes.
            pub fn client_config(material: &Material, datagram: u16) -> Result<ClientConfig> {
                let tls = QuicClientConfig::try_from(material.rustls_client(ALPN)?)?;
                let mut config = ClientConfig::new(Arc::new(tls));
                config.transport_config(transport(datagram, IDLE_TIMEOUT)?);
                Ok(config)
            }

            /// The defaults, CUBIC among them, with datagrams of one size.
            fn transport(datagram: u16, idle_timeout: Duration) -> Result<Arc<TransportConfig>> {
                let mut transport = TransportConfig::default();
                transport.initial_mtu(datagram).mtu_discovery_config(None);
                transport.max_concurrent_bidi_streams(STREAMS.into()).max_concurrent_uni_streams(STREAMS.into());
                transport.max_idle_timeout(Some(idle_timeout.try_into()?));
                Ok(Arc::new(transport))
            }

            /// An endpoint on a socket with the buffers that all contenders have.
            fn endpoint(server: Option<ServerConfig>) -> Result<Endpoint> {
                let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
                let state = UdpSocketState::new((&socket).into())?;
                state.set_recv_buffer_size((&socket).into(), SOCKET_BUFFER)?;
                state.set_send_buffer_size((&socket).into(), SOCKET_BUFFER)?;
                Ok(Endpoint::new(EndpointConfig::default(), server, socket, Arc::new(TokioRuntime))?)
            }
        }
    };
}

peer_pair!(
    quinn,
    quinn,
    chunk: async |stream: &mut RecvStream| {
        let chunk = stream.read_chunk(crate::contender::BLOCK, true).await?;
        anyhow::Ok(chunk.map(|chunk| chunk.bytes))
    },
    counters: |connection: &Connection| {
        let stats = connection.stats();
        let (datagrams_sent, send_calls) = (stats.udp_tx.datagrams, stats.udp_tx.ios);
        Counters { datagrams_sent, send_calls, packets_lost: stats.path.lost_packets }
    }
);

peer_pair!(
    noq,
    noq,
    chunk: async |stream: &mut RecvStream| anyhow::Ok(stream.read_chunk(crate::contender::BLOCK).await?),
    counters: |connection: &Connection| {
        let stats = connection.stats();
        // noq does not count its calls.
        Counters {
            datagrams_sent: stats.udp_tx.datagrams,
            send_calls: 0,
            packets_lost: stats.lost_packets,
        }
    }
);
