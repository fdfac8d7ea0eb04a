//! UDP by SOCKS5 (RFC 1928 §7): a program's packets, each to a host that it names, through tunnels of RFC 9298.

use super::{Reply, VERSION, address_of};
use crate::proxy::link::{Link, LinkError, Open};
use bytes::Bytes;
use http::uri::Authority;
use http::{Method, Request, Uri};
use hvq_h3::Protocol;
use hvq_h3::client::RequestError;
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::UdpSocket;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinSet;

/// Hosts that one program may speak to at a time.
const TUNNELS: usize = 64;
/// Packets that may wait for their tunnel; more are dropped.
const WAITING: usize = 64;
/// The largest UDP payload, and a little more.
const LARGEST: usize = 65_536;
/// The context of packets that are nothing but payload (RFC 9298 §4), as a variable-length integer.
const PLAIN: u8 = 0;

/// The addresses of a program and of the proxy, as the program finds it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    pub(crate) program: IpAddr,
    pub(crate) here: IpAddr,
}

/// Relays packets for as long as `stream` lives (RFC 1928 §6).
pub(super) async fn associate(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    ends: Ends,
    link: &Arc<Link>,
) -> io::Result<()> {
    let socket = Arc::new(UdpSocket::bind((ends.here, 0)).await?);
    let bound = socket.local_addr()?;
    stream.write_all(&[&[VERSION, Reply::Succeeded as u8, 0][..], &address_of(bound)].concat()).await?;
    let mut tunnels: HashMap<Vec<u8>, Sender<Bytes>> = HashMap::new();
    let (mut tasks, mut buffer, mut program) = (JoinSet::new(), vec![0; LARGEST], None);
    loop {
        let mut nothing = [0; 64];
        let (length, from) = tokio::select! {
            received = socket.recv_from(&mut buffer) => received?,
            read = stream.read(&mut nothing) => match read? {
                0 => return Ok(()),
                _ => continue,
            },
            Some(_) = tasks.join_next() => continue,
        };
        // RFC 1928 §7: from the program's address only, and here from its first port.
        if from.ip() != ends.program || *program.get_or_insert(from) != from {
            continue;
        }
        let Some((head, target, payload)) = split(&buffer[..length]) else { continue };
        let payload = Bytes::copy_from_slice(payload);
        tunnels.retain(|_, tunnel| !tunnel.is_closed());
        if let Some(tunnel) = tunnels.get(head) {
            if tunnel.try_send(payload).is_err() {
                link.displaced();
            }
        } else if tunnels.len() < TUNNELS {
            let (sender, receiver) = channel(WAITING);
            let _room = sender.try_send(payload);
            let way = Way { socket: socket.clone(), program: from, head: head.to_vec() };
            let link = link.clone();
            tasks.spawn(async move {
                if let Err(error) = tunnel(&link, &target, way, receiver).await {
                    tracing::debug!(%error, %target, "no tunnel for packets");
                }
            });
            tunnels.insert(head.to_vec(), sender);
        } else {
            link.displaced();
        }
    }
}

/// The head of a packet, the host that it names, and its payload. Fragments are dropped, as RFC 1928 §7 permits.
fn split(packet: &[u8]) -> Option<(&[u8], Authority, &[u8])> {
    let [0, 0, 0, kind, rest @ ..] = packet else { return None };
    let (host, length) = match (kind, rest) {
        (1, [a, b, c, d, ..]) => (IpAddr::from([*a, *b, *c, *d]).to_string(), 4),
        (3, [length, name @ ..]) => {
            let length = usize::from(*length);
            (std::str::from_utf8(name.get(..length)?).ok()?.to_owned(), 1 + length)
        }
        (4, rest) => {
            let address: [u8; 16] = rest.get(..16)?.try_into().ok()?;
            (format!("[{}]", std::net::Ipv6Addr::from(address)), 16)
        }
        _ => return None,
    };
    let port = u16::from_be_bytes(rest.get(length..length + 2)?.try_into().ok()?);
    let authority = format!("{host}:{port}").parse::<Authority>().ok()?;
    let (head, payload) = packet.split_at_checked(4 + length + 2)?;
    (authority.host() == host && !host.is_empty()).then_some((head, authority, payload))
}

/// The way back to the program.
struct Way {
    socket: Arc<UdpSocket>,
    program: SocketAddr,
    /// The header that its packets begin with, and those to it.
    head: Vec<u8>,
}

async fn tunnel(
    link: &Link,
    target: &Authority,
    way: Way,
    mut packets: Receiver<Bytes>,
) -> Result<(), LinkError> {
    let host = target.host().trim_matches(['[', ']']).replace(':', "%3A");
    let port = target.port_u16().unwrap_or_default();
    let path = format!("/.well-known/masque/udp/{host}/{port}/");
    let uri = Uri::builder().scheme("https").authority(link.authority()).path_and_query(path).build();
    let mut request = Request::new(());
    *request.method_mut() = Method::CONNECT;
    *request.uri_mut() = uri.map_err(|_| LinkError::Refused(http::StatusCode::BAD_REQUEST))?;
    request.extensions_mut().insert(Protocol::new("connect-udp"));
    request.headers_mut().insert("capsule-protocol", http::HeaderValue::from_static("?1"));
    let Open { sending, mut receiving, session } = link.open(request).await?;
    let Some(mut flow) = session.datagrams.flow(sending.id()) else { return Ok(()) };
    let status = receiving.response().await.map_err(RequestError::from)?.status();
    if !status.is_success() {
        return Err(LinkError::Refused(status));
    }
    let mut answer = Vec::new();
    loop {
        tokio::select! {
            packet = packets.recv() => match packet {
                Some(payload) => drop(flow.send(&[&[PLAIN], &payload], hvq::Priority::DEFAULT)),
                None => return Ok(()),
            },
            datagram = flow.receive() => if let Some((&PLAIN, payload)) = datagram.split_first() {
                answer.clear();
                answer.extend_from_slice(&way.head);
                answer.extend_from_slice(payload);
                // A program that does not listen any more loses its packets.
                let _lost = way.socket.send_to(&answer, way.program).await;
            },
            ended = receiving.data() => if !matches!(ended, Ok(Some(_))) { return Ok(()) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_name_their_host_in_three_ways() {
        for (packet, target, payload) in [
            (&[0, 0, 0, 1, 192, 0, 2, 1, 0, 53, 7][..], "192.0.2.1:53", &[7][..]),
            (&[0, 0, 0, 3, 3, b'a', b'.', b'b', 1, 0], "a.b:256", &[]),
            (&[0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 9, 1, 2], "[::1]:9", &[1, 2]),
        ] {
            let (head, authority, rest) = split(packet).unwrap();
            assert_eq!((authority.as_str(), rest), (target, payload));
            assert_eq!([head, rest].concat(), packet);
        }
    }

    #[test]
    fn fragments_and_what_is_cut_short_are_dropped() {
        let whole = [0, 0, 0, 1, 192, 0, 2, 1, 0, 53];
        for end in 0..whole.len() {
            assert!(split(&whole[..end]).is_none(), "{end}");
        }
        for packet in
            [&[0, 0, 1, 1, 192, 0, 2, 1, 0, 53][..], &[0, 0, 0, 3, 1, b'@', 0, 53], &[0, 0, 0, 3, 0, 0, 53]]
        {
            assert!(split(packet).is_none(), "{packet:?}");
        }
    }
}
