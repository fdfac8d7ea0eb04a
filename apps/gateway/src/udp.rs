//! UDP through the gateway (RFC 9298): packets in HTTP datagrams, or in capsules where none are carried.

use crate::request::ActiveRequest;
use crate::tunnel::{self, Activity};
use http::uri::Authority;
use http::{HeaderValue, Response, StatusCode};
use hvq_h3::Code;
use hvq_h3::{Capsules, Flow};
use std::future::poll_fn;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use tokio::net::UdpSocket;

/// The path that a client asks for by default (RFC 9298 §3).
const WELL_KNOWN: &str = "/.well-known/masque/udp/";
/// The largest UDP payload.
const LARGEST: usize = 65_527;
/// The context of packets that are nothing but payload (RFC 9298 §4), as a variable-length integer.
const PLAIN: u8 = 0;

/// Host and port of a path of RFC 9298 §3.4, as an authority.
fn target(path: &str) -> Option<Authority> {
    let (host, port) = path.strip_prefix(WELL_KNOWN)?.strip_suffix('/')?.split_once('/')?;
    let host = percent_encoding::percent_decode_str(host).decode_utf8().ok()?;
    let host = if host.parse::<Ipv6Addr>().is_ok() { format!("[{host}]") } else { host.into_owned() };
    let authority: Authority = format!("{host}:{port}").parse().ok()?;
    (authority.host() == host && !host.is_empty()).then_some(authority)
}

/// Serves an extended CONNECT request for UDP.
pub(crate) async fn serve(mut active: Box<ActiveRequest>) {
    let (virtual_hosts, authority) = (active.virtual_hosts.clone(), target(active.request.uri().path()));
    let Some(admitted) = tunnel::admit(&mut active, &virtual_hosts, authority.as_ref()).await else { return };
    let addresses = admitted.proxy.connector.resolve(&admitted.host, admitted.port).await;
    let socket = match open(addresses).await {
        Ok(socket) => socket,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return active.refuse(StatusCode::FORBIDDEN, "this address may not be reached", None).await;
        }
        Err(_) => return active.refuse(StatusCode::BAD_GATEWAY, "the host cannot be reached", None).await,
    };
    let flow = active.stream(&active.peer).and_then(|(quic, id)| quic.datagrams.flow(id));
    let Some(flow) = flow else { return };
    let mut head = Response::new(());
    head.headers_mut().insert("capsule-protocol", HeaderValue::from_static("?1"));
    if let Err(error) = active.reply.head(head).await {
        return active.note(Err(error));
    }
    let gateway = active.peer.gateway.clone();
    let _open = gateway.metrics.tunnel();
    carry(&mut active, &socket, flow).await;
}

/// A socket that sends to and receives from one of the addresses only.
async fn open(addresses: io::Result<Vec<SocketAddr>>) -> io::Result<UdpSocket> {
    let address = *addresses?.first().ok_or(io::ErrorKind::NotFound)?;
    let any = match address {
        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    };
    let socket = UdpSocket::bind(any).await?;
    socket.connect(address).await?;
    Ok(socket)
}

async fn carry(active: &mut ActiveRequest, socket: &UdpSocket, mut flow: Flow) {
    let Some(mut receive) = active.receive.take() else { return };
    let (activity, patience) = (Activity::new(), active.virtual_hosts.timeouts.tunnel);
    let priority = hvq_h3::priority::parse(active.request.headers());
    let (mut capsules, mut buffer) = (Capsules::default(), vec![0; LARGEST + 1]);
    let ended = loop {
        tokio::select! {
            datagram = flow.receive() => send(socket, &datagram).await,
            received = socket.recv(&mut buffer) => match received {
                // RFC 9298 §5: what does not fit is dropped.
                Ok(length) => if flow.send(&[&[PLAIN], &buffer[..length]], priority).is_err() { break None },
                // Nobody is there; somebody may come.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(_) => break Some(Code::H3_CONNECT_ERROR),
            },
            data = poll_fn(|context| receive.poll_data(context)) => match data {
                Ok(Some(data)) => {
                    capsules.push(&data);
                    while let Some(datagram) = capsules.datagram() {
                        send(socket, &datagram).await;
                    }
                }
                Ok(None) if capsules.is_complete() => break None,
                Ok(None) => break Some(Code::H3_MESSAGE_ERROR),
                Err(_) => break Some(Code::H3_REQUEST_CANCELLED),
            },
            () = active.gone.wait() => break Some(Code::H3_REQUEST_CANCELLED),
            () = activity.still(patience) => break Some(Code::H3_CONNECT_ERROR),
        }
        activity.moved();
    };
    match ended {
        None => {
            let sent = active.reply.finish().await;
            active.note(sent);
        }
        Some(code) => {
            receive.stop(code);
            active.reply.abort(code);
        }
    }
}

/// Sends a packet on. Contexts other than plain payloads were never agreed on, and are dropped (RFC 9298 §4).
async fn send(socket: &UdpSocket, datagram: &[u8]) {
    if let Some((&PLAIN, payload)) = datagram.split_first() {
        // What cannot be sent is lost, as packets may be.
        let _lost = socket.send(payload).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_a_host_and_a_port_with_nothing_hidden_in_them() {
        let read = |path: &str| target(path).map(|authority| authority.to_string());
        assert_eq!(read("/.well-known/masque/udp/192.0.2.6/443/").as_deref(), Some("192.0.2.6:443"));
        assert_eq!(
            read("/.well-known/masque/udp/2001%3Adb8%3A%3A42/53/").as_deref(),
            Some("[2001:db8::42]:53")
        );
        assert_eq!(read("/.well-known/masque/udp/example.org/53/").as_deref(), Some("example.org:53"));
        for path in [
            "/",
            "/.well-known/masque/udp/example.org/",
            "/.well-known/masque/udp/example.org/53",
            "/.well-known/masque/udp/a%40b/53/",
            "/.well-known/masque/udp/a%2Fb/53/",
            "/.well-known/masque/udp//53/",
            "/.well-known/masque/udp/a/b/53/",
            "/.well-known/masque/udp/a%00/53/",
        ] {
            assert_eq!(read(path), None, "{path}");
        }
    }
}
