//! Connections to origins that become those of another protocol (RFC 9110 §7.8), each made for one request.

use super::BUFFER;
use super::connector::Direct;
use super::failure::Failure;
use crate::request::Upload;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http1;

/// Sends the request over HTTP/1.1 on a connection of its own, and waits for the head of the response, which tells whether the connection
/// is one of another protocol from then on.
pub(super) async fn send(
    connector: &Direct,
    request: Request<Upload>,
) -> Result<Response<Incoming>, Failure> {
    let wire = connector.connect_http1().await.map_err(|error| Failure::of_connecting(&error))?;
    let made = http1::Builder::new().max_buf_size(BUFFER).handshake(wire).await;
    let (mut sender, connection) = made.map_err(|error| Failure::of_exchange(&error))?;
    // Who waits for a response learns how it ends.
    tokio::spawn(async move { drop(connection.with_upgrades().await) });
    sender.send_request(request).await.map_err(|error| Failure::of_exchange(&error))
}
