//! Bytes between a local connection and a tunnel through the gateway.

use crate::proxy::link::{Link, LinkError, Open};
use http::{Method, Request, StatusCode, Uri};
use hvq_h3::Code;
use hvq_h3::client::RequestError;
use hvq_program::splice::splice;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};

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
pub(crate) async fn carry(mut local: impl AsyncRead + AsyncWrite + Unpin, open: Open) {
    let Open { sending, receiving, session: _session } = open;
    // The local connection is closed with it.
    let _ended = splice(&mut local, (sending, receiving), Code::H3_REQUEST_CANCELLED).await;
}
