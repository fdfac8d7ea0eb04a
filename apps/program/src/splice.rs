//! Bytes between a connection of TCP and the stream of a CONNECT request (RFC 9114 §4.4).

use bytes::{Bytes, BytesMut};
use hvq_h3::{Code, Receiving, Sending};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Bytes that are read at a time.
const CHUNK: usize = 64 << 10;

/// A connection that broke off before both of its directions were done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the connection broke off")]
pub struct BrokenOff;

/// Carries bytes both ways until both ends are done or one breaks off. Either end may finish first, and still receives then.
///
/// # Errors
/// One broke off: the stream is reset with `code`, and the caller is to do the same to `local`.
pub async fn splice(
    local: &mut (impl AsyncRead + AsyncWrite + Unpin),
    (mut send, mut receive): (Sending, Receiving),
    code: Code,
) -> Result<(), BrokenOff> {
    let (mut read, mut write) = tokio::io::split(local);
    let up = async {
        let mut buffer = BytesMut::new();
        loop {
            buffer.reserve(CHUNK);
            if read.read_buf(&mut buffer).await.map_err(|_| BrokenOff)? == 0 {
                return send.finish().await.map_err(|_| BrokenOff);
            }
            let data: Bytes = buffer.split().freeze();
            send.data(data).await.map_err(|_| BrokenOff)?;
        }
    };
    let down = async {
        while let Some(mut data) = receive.data().await.map_err(|_| BrokenOff)? {
            write.write_all_buf(&mut data).await.map_err(|_| BrokenOff)?;
        }
        write.shutdown().await.map_err(|_| BrokenOff)
    };
    let ended = tokio::try_join!(up, down).map(|_| ());
    if ended.is_err() {
        // What broke off must not look whole at the other end.
        send.reset(code);
        receive.stop(code);
    }
    ended
}
