//! quinn-proto and noq-proto, which grew out of it: the same code twice, for their types have the same names in two crates.

/// A module with the [`Pair`](super::Pair) of one of them: the module's name, which is that of its
/// [contender](crate::contender) too, the crate, and the four calls that differ.
macro_rules! peer_pair {
    ($module:ident, $library:ident, $($differences:item)*) => {
        pub mod $module {
            use crate::contender::{Material, SMALL, $module as contender};
            use crate::pipe::{BLOCK, PATIENCE, STEP};
            use anyhow::{Context, Result, ensure};
            use bytes::{Bytes, BytesMut};
            use std::net::{IpAddr, Ipv4Addr, SocketAddr};
            use std::sync::Arc;
            use std::time::Instant;
            use $library::{
                ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig, Event,
                ReadError, SendStream, ServerConfig, StreamId, Transmit, VarInt,
            };

            $($differences)*

            /// One end, and the connection that it has now.
            struct End {
                endpoint: Endpoint,
                connection: Option<(ConnectionHandle, Connection)>,
                address: SocketAddr,
                is_connected: bool,
                sent: u64,
            }

            pub struct Pair {
                client: End,
                server: End,
                config: ClientConfig,
                now: Instant,
                unanswered: Vec<StreamId>,
            }

            impl Pair {
                pub fn new(material: &Material, datagram: u16) -> Result<Self> {
                    let server = contender::server_config(material, datagram)?;
                    let config = contender::client_config(material, datagram)?;
                    let end = |server, port| End {
                        endpoint: new_endpoint(server),
                        connection: None,
                        address: (Ipv4Addr::LOCALHOST, port).into(),
                        is_connected: false,
                        sent: 0,
                    };
                    Ok(Self {
                        client: end(None, 1000),
                        server: end(Some(Arc::new(server)), 443),
                        config,
                        now: Instant::now(),
                        unanswered: Vec::new(),
                    })
                }

                fn exchange(&mut self) -> Result<()> {
                    pump(&mut self.server, &mut self.client, self.now)?;
                    pump(&mut self.client, &mut self.server, self.now)?;
                    self.now += STEP;
                    Ok(())
                }
            }

            /// Carries everything that `from` has to send to `to`.
            fn pump(from: &mut End, to: &mut End, now: Instant) -> Result<()> {
                from.settle(now);
                let mut batch = Vec::new();
                while let Some((_, connection)) = &mut from.connection {
                    batch.clear();
                    let Some(transmit) = poll(connection, now, &mut batch) else { break };
                    let size = transmit.segment_size.unwrap_or(transmit.size).max(1);
                    for payload in crate::pipe::received(&batch[..transmit.size], size) {
                        from.sent += 1;
                        to.receive(from.address, payload, now)?;
                    }
                }
                from.settle(now);
                Ok(())
            }

            impl End {
                fn receive(&mut self, from: SocketAddr, payload: BytesMut, now: Instant) -> Result<()> {
                    let mut answer = Vec::new();
                    match deliver(&mut self.endpoint, now, from, payload, &mut answer) {
                        Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                            if let Some((own, connection)) = &mut self.connection
                                && *own == handle
                            {
                                connection.handle_event(event);
                            }
                        }
                        Some(DatagramEvent::NewConnection(incoming)) => {
                            let accepted = self.endpoint.accept(incoming, now, &mut answer, None);
                            self.connection = Some(accepted.map_err(|error| error.cause)?);
                        }
                        Some(DatagramEvent::Response(_)) | None => {}
                    }
                    Ok(())
                }

                /// Timers, events, and what endpoint and connection tell each other.
                fn settle(&mut self, now: Instant) {
                    let Some((handle, connection)) = &mut self.connection else { return };
                    if connection.poll_timeout().is_some_and(|at| at <= now) {
                        connection.handle_timeout(now);
                    }
                    while let Some(event) = connection.poll_endpoint_events() {
                        if let Some(event) = self.endpoint.handle_event(*handle, event) {
                            connection.handle_event(event);
                        }
                    }
                    while let Some(event) = connection.poll() {
                        self.is_connected |= matches!(event, Event::Connected);
                    }
                }
            }

            impl crate::pipe::Pair for Pair {
                fn handshake(&mut self) -> Result<()> {
                    self.unanswered.clear();
                    for end in [&mut self.client, &mut self.server] {
                        end.connection = None;
                        end.is_connected = false;
                    }
                    let (address, config) = (self.server.address, self.config.clone());
                    let connected = self.client.endpoint.connect(self.now, config, address, Material::NAME)?;
                    self.client.connection = Some(connected);
                    for _ in 0..PATIENCE {
                        self.exchange()?;
                        if self.client.is_connected && self.server.is_connected {
                            break;
                        }
                    }
                    ensure!(self.client.is_connected && self.server.is_connected, "it did not connect");
                    for _ in 0..4 {
                        self.exchange()?;
                    }
                    Ok(())
                }

                fn transfer(&mut self, bytes: u64) -> Result<u64> {
                    let before = self.server.sent;
                    let (_, connection) = self.server.connection.as_mut().context("connected")?;
                    let stream = connection.streams().open(Dir::Uni).context("no stream may be opened")?;
                    let block = Bytes::from(vec![0x5a; BLOCK]);
                    let (mut left, mut received, mut idle) = (bytes, 0, 0);
                    while received < bytes {
                        let (_, connection) = self.server.connection.as_mut().context("connected")?;
                        left = write(connection, stream, &block, left)?;
                        self.exchange()?;
                        let (_, connection) = self.client.connection.as_mut().context("connected")?;
                        let some = read(connection, stream)?;
                        received += some;
                        idle = if some == 0 { idle + 1 } else { 0 };
                        ensure!(idle < PATIENCE, "it is stuck after {received} of {bytes} bytes");
                    }
                    self.exchange()?;
                    Ok(self.server.sent - before)
                }

                fn ask(&mut self) -> Result<Option<u64>> {
                    let (_, connection) = self.client.connection.as_mut().context("connected")?;
                    let Some(id) = connection.streams().open(Dir::Bi) else { return Ok(None) };
                    write(connection, id, &Bytes::from_static(&[0xa5; SMALL]), SMALL as u64)?;
                    Ok(Some(id.into()))
                }

                fn answer(&mut self) -> Result<()> {
                    let (_, connection) = self.server.connection.as_mut().context("connected")?;
                    while let Some(id) = connection.streams().accept(Dir::Bi) {
                        self.unanswered.push(id);
                    }
                    let unanswered = std::mem::take(&mut self.unanswered);
                    for id in unanswered {
                        if read_all(connection, id)? {
                            write(connection, id, &Bytes::from_static(&[0x5a; SMALL]), SMALL as u64)?;
                        } else {
                            self.unanswered.push(id);
                        }
                    }
                    Ok(())
                }

                fn is_answered(&mut self, id: u64) -> Result<bool> {
                    let (_, connection) = self.client.connection.as_mut().context("connected")?;
                    read_all(connection, VarInt::from_u64(id)?.into())
                }

                fn carry(&mut self) -> Result<()> {
                    self.exchange()
                }
            }

            /// Reads a stream; whether its end was there.
            fn read_all(connection: &mut Connection, id: StreamId) -> Result<bool> {
                let mut stream = connection.recv_stream(id);
                let mut chunks = stream.read(true)?;
                let is_end = loop {
                    match chunks.next(usize::MAX) {
                        Ok(Some(_)) => {}
                        Ok(None) => break true,
                        Err(ReadError::Blocked) => break false,
                        Err(error) => return Err(error.into()),
                    }
                };
                let _transmit = chunks.finalize();
                Ok(is_end)
            }

            /// Writes as much as the stream takes of what is left, and ends it behind the last byte. Returns what is left then.
            fn write(connection: &mut Connection, stream: StreamId, block: &Bytes, mut left: u64) -> Result<u64> {
                let mut stream = connection.send_stream(stream);
                while left > 0 {
                    let part = block.slice(..block.len().min(usize::try_from(left).unwrap_or(block.len())));
                    let Ok(written) = write_some(&mut stream, part) else { break };
                    left -= written;
                    if left == 0 {
                        stream.finish()?;
                    }
                }
                Ok(left)
            }

            /// Reads all that has arrived, and returns how much that was.
            fn read(connection: &mut Connection, stream: StreamId) -> Result<u64> {
                while connection.streams().accept(Dir::Uni).is_some() {}
                let mut stream = connection.recv_stream(stream);
                let Ok(mut chunks) = stream.read(true) else { return Ok(0) };
                let mut received = 0;
                while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
                    received += chunk.bytes.len() as u64;
                }
                let _told = chunks.finalize();
                Ok(received)
            }
        }
    };
}

/// Datagrams of a batch: what segmentation offload would take.
const BATCH: usize = 10;

peer_pair! {
    quinn,
    quinn_proto,
    fn new_endpoint(server: Option<Arc<ServerConfig>>) -> Endpoint {
        Endpoint::new(Arc::new(EndpointConfig::default()), server, false, None)
    }

    fn deliver(
        endpoint: &mut Endpoint,
        now: Instant,
        from: SocketAddr,
        payload: BytesMut,
        answer: &mut Vec<u8>,
    ) -> Option<DatagramEvent> {
        endpoint.handle(now, from, Some(IpAddr::V4(Ipv4Addr::LOCALHOST)), None, payload, answer)
    }

    fn poll(connection: &mut Connection, now: Instant, batch: &mut Vec<u8>) -> Option<Transmit> {
        connection.poll_transmit(now, super::BATCH, batch)
    }

    fn write_some(stream: &mut SendStream<'_>, part: Bytes) -> Result<u64> {
        Ok(stream.write_chunks(&mut [part])?.bytes as u64)
    }
}

peer_pair! {
    noq,
    noq_proto,
    fn new_endpoint(server: Option<Arc<ServerConfig>>) -> Endpoint {
        Endpoint::new(Arc::new(EndpointConfig::default()), server, false)
    }

    fn deliver(
        endpoint: &mut Endpoint,
        now: Instant,
        from: SocketAddr,
        payload: BytesMut,
        answer: &mut Vec<u8>,
    ) -> Option<DatagramEvent> {
        let path = noq_proto::FourTuple::new(from, Some(IpAddr::V4(Ipv4Addr::LOCALHOST)));
        endpoint.handle(now, path, None, payload, answer)
    }

    fn poll(connection: &mut Connection, now: Instant, batch: &mut Vec<u8>) -> Option<Transmit> {
        connection.poll_transmit(now, std::num::NonZeroUsize::new(super::BATCH)?, batch)
    }

    fn write_some(stream: &mut SendStream<'_>, part: Bytes) -> Result<u64> {
        Ok(stream.write_chunks(&mut &mut [part][..])? as u64)
    }
}
