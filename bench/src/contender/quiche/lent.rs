//! Connections of quiche that are lent what they send, in place of slices that they copy: as quiche's own server does.

use bytes::Bytes;
use quiche::{BufFactory, Config, ConnectionId, Result};
use std::net::SocketAddr;

/// A connection.
pub type Connection = quiche::Connection<Lent>;

/// Makes buffers that share their memory.
#[derive(Clone, Debug, Default)]
pub struct Lent;

impl BufFactory for Lent {
    type Buf = Bytes;
    type DgramBuf = Vec<u8>;

    fn buf_from_slice(slice: &[u8]) -> Bytes {
        Bytes::copy_from_slice(slice)
    }

    fn dgram_buf_from_slice(slice: &[u8]) -> Vec<u8> {
        slice.to_vec()
    }
}

/// Begins a connection from `local` to `remote`, whose certificate has to be for `name`.
pub fn connect(
    name: &str,
    id: &ConnectionId,
    [local, remote]: [SocketAddr; 2],
    config: &mut Config,
) -> Result<Connection> {
    quiche::connect_with_buffer_factory(Some(name), id, local, remote, config)
}

/// Accepts a connection at `local` from `remote`.
pub fn accept(
    id: &ConnectionId,
    [local, remote]: [SocketAddr; 2],
    config: &mut Config,
) -> Result<Connection> {
    quiche::accept_with_buf_factory(id, None, local, remote, config)
}
