//! quinn and noq, which grew out of it: the same code twice, for their types have the same names in two crates.

/// A module with what both have in common: the module's name, the crate, the bytes of the next chunk of a stream.
macro_rules! quic_pair {
    ($module:ident, $library:ident, $chunk:expr) => {
        #[doc = concat!(stringify!($library), " with its defaults.")]
        pub mod $module {
            use crate::arguments::Arguments;
            use crate::loads::{BLOCK, COUNT, ENDLESS, REQUEST, WRITE};
            use crate::news;
            use crate::record::{Counter, Said, say};
            use crate::tls;
            use anyhow::{Context, Result};
            use std::sync::Arc;
            use tokio::task::spawn_local;
            use tokio::time::sleep;
            use $library::crypto::rustls::{QuicClientConfig, QuicServerConfig};
            use $library::{
                ClientConfig, Connection, Endpoint, EndpointConfig, RecvStream, SendStream, ServerConfig,
                TokioRuntime, TransportConfig,
            };

            /// The configuration of clients.
            pub fn client(arguments: &Arguments, transport: TransportConfig) -> Result<ClientConfig> {
                let mut config =
                    ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls::client(arguments)?)?));
                config.transport_config(Arc::new(transport));
                Ok(config)
            }

            /// Serves until it is given up; `sent` is kept at the UDP payload that was sent for the download.
            pub async fn serve(
                arguments: &Arguments,
                transport: TransportConfig,
                sent: &Counter,
            ) -> Result<()> {
                let crypto = Arc::new(QuicServerConfig::try_from(tls::server(arguments)?)?);
                let mut config = ServerConfig::with_crypto(crypto);
                config.transport_config(Arc::new(transport));
                let socket = news::udp(arguments.server, None)?;
                let runtime = Arc::new(TokioRuntime);
                let endpoint = Endpoint::new(EndpointConfig::default(), Some(config), socket, runtime)?;
                say(&Said::Ready)?;
                while let Some(incoming) = endpoint.accept().await {
                    let sent = sent.clone();
                    spawn_local(async move {
                        // A client that gives up its handshake is told of by its own end.
                        if let Ok(connection) = incoming.await {
                            answer(connection, sent).await;
                        }
                    });
                }
                Ok(())
            }

            /// Sends back datagrams and requests, and endless bytes to those who ask for them.
            async fn answer(connection: Connection, sent: Counter) {
                let datagrams = async {
                    while let Ok(datagram) = connection.read_datagram().await {
                        // One that the network has no room for is lost, as others are.
                        let _sent = connection.send_datagram(datagram);
                    }
                };
                let streams = async {
                    while let Ok((send, receive)) = connection.accept_bi().await {
                        let (connection, sent) = (connection.clone(), sent.clone());
                        spawn_local(async move {
                            // The client may be gone meanwhile.
                            let _answered = respond(&connection, (send, receive), &sent).await;
                        });
                    }
                };
                tokio::join!(datagrams, streams);
            }

            async fn respond(
                connection: &Connection,
                (mut send, mut receive): (SendStream, RecvStream),
                sent: &Counter,
            ) -> Result<()> {
                let request = receive.read_to_end(REQUEST).await?;
                if request.first() != Some(&ENDLESS) {
                    send.write_all(&request).await?;
                    return Ok(send.finish()?);
                }
                let counting = async {
                    loop {
                        sent.set(connection.stats().udp_tx.bytes);
                        sleep(COUNT).await;
                    }
                };
                let writing = async { while send.write_all(&[0; WRITE]).await.is_ok() {} };
                tokio::select! {
                    () = counting => {}
                    () = writing => {}
                }
                Ok(())
            }

            /// Sends a request and waits for all of its answer; the bytes of the answer.
            pub async fn ask(connection: &Connection, request: &[u8]) -> Result<usize> {
                let (mut send, mut receive) = connection.open_bi().await?;
                send.write_all(request).await?;
                send.finish()?;
                Ok(receive.read_to_end(REQUEST).await?.len())
            }

            /// Asks for endless bytes.
            pub async fn begin(connection: &Connection) -> Result<RecvStream> {
                let (mut send, receive) = connection.open_bi().await?;
                send.write_all(&[ENDLESS]).await?;
                send.finish()?;
                Ok(receive)
            }

            /// Waits for more of them; how many there were.
            pub async fn read(download: &mut RecvStream) -> Result<usize> {
                let bytes: Option<usize> = $chunk(download, BLOCK).await?;
                bytes.context("the server has ended the download")
            }
        }
    };
}

quic_pair!(quinn, quinn, async |stream: &mut RecvStream, most: usize| {
    let chunk = stream.read_chunk(most, true).await?;
    anyhow::Ok(chunk.map(|chunk| chunk.bytes.len()))
});

quic_pair!(noq, noq, async |stream: &mut RecvStream, most: usize| {
    let chunk = stream.read_chunk(most).await?;
    anyhow::Ok(chunk.map(|chunk| chunk.len()))
});
