//! Bytes between a local connection and a tunnel through the gateway.

use crate::proxy::link::{Link, LinkError, Open};
use bytes::{Bytes, BytesMut};
use http::{Method, Request, StatusCode, Uri};
use hvq_h3::Code;
use hvq_h3::client::RequestError;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Bytes that are read at a time.
const CHUNK: usize = 64 << 10;

/// A tunnel through the gateway that is open, or the status that the gateway answered with instead.
pub(crate) enum TunnelAnswer {
    Open(Box<Open>),
    Refused(StatusCode),
}

/// Asks the gateway for a tunnel to `authority`, `HOST:PORT` (RFC 9114 §4.4).
pub(crate) async fn tunnel(
    link: &Arc<Link>,
    authority: http::uri::Authority,
) -> Result<TunnelAnswer, LinkError> {
    let mut request = Request::new(());
    *request.method_mut() = Method::CONNECT;
    let mut parts = http::uri::Parts::default();
    parts.authority = Some(authority);
    *request.uri_mut() = Uri::from_parts(parts).expect("an authority alone is what CONNECT asks for");
    let mut open = link.open(request).await?;
    let status = open.receiving.response().await.map_err(RequestError::from)?.status();
    Ok(if status.is_success() { TunnelAnswer::Open(Box::new(open)) } else { TunnelAnswer::Refused(status) })
}

/// Carries bytes both ways until both ends are done or one breaks off.
pub(crate) async fn carry(local: impl AsyncRead + AsyncWrite + Unpin, open: Open) {
    let Open { sending: mut send, receiving: mut receive, session: _session } = open;
    let (mut read, mut write) = tokio::io::split(local);
    let up = async {
        let mut buffer = BytesMut::new();
        loop {
            buffer.reserve(CHUNK);
            if read.read_buf(&mut buffer).await.map_err(|_| ())? == 0 {
                return send.finish().await.map_err(|_| ());
            }
            let data: Bytes = buffer.split().freeze();
            send.data(data).await.map_err(|_| ())?;
        }
    };
    let down = async {
        while let Some(mut data) = receive.data().await.map_err(|_| ())? {
            write.write_all_buf(&mut data).await.map_err(|_| ())?;
        }
        write.shutdown().await.map_err(|_| ())
    };
    if tokio::try_join!(up, down).is_err() {
        // What broke off must not look whole at the other end.
        send.reset(Code::H3_REQUEST_CANCELLED);
        receive.stop(Code::H3_REQUEST_CANCELLED);
    }
}
