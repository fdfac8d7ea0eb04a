//! SOCKS5 (RFC 1928): CONNECT and UDP without authentication. Names are resolved by the gateway.

mod udp;

pub(crate) use udp::Ends;

use crate::proxy::carry::{TunnelAnswer, carry, tunnel};
use crate::proxy::link::Link;
use http::StatusCode;
use http::uri::Authority;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

/// The time that a client may take for its request.
const PATIENCE: Duration = Duration::from_secs(10);
const VERSION: u8 = 5;
const NO_AUTHENTICATION: u8 = 0;
const NO_METHOD: u8 = 0xff;
const CONNECT: u8 = 1;
const ASSOCIATE: u8 = 3;

/// The REP field of a reply (RFC 1928 §6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reply {
    Succeeded = 0,
    Failed = 1,
    NotAllowed = 2,
    HostUnreachable = 4,
    CommandNotSupported = 7,
    AddressNotSupported = 8,
}

impl Reply {
    /// Converts the status of the gateway's refusal into a reply.
    fn to(status: StatusCode) -> Self {
        match status {
            StatusCode::FORBIDDEN | StatusCode::PROXY_AUTHENTICATION_REQUIRED => Self::NotAllowed,
            StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT => Self::HostUnreachable,
            _ => Self::Failed,
        }
    }

    async fn send(self, stream: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        // The address that the host sees is the gateway's own, which is not told.
        stream.write_all(&[VERSION, self as u8, 0, 1, 0, 0, 0, 0, 0, 0]).await
    }
}

/// The request of a client.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Wish {
    /// A connection to this host.
    Connect(Authority),
    /// A place to send packets to.
    Associate,
}

/// An address as replies have it.
fn address_of(address: SocketAddr) -> Vec<u8> {
    let mut bytes = match address.ip() {
        IpAddr::V4(address) => [&[1][..], &address.octets()].concat(),
        IpAddr::V6(address) => [&[4][..], &address.octets()].concat(),
    };
    bytes.extend(address.port().to_be_bytes());
    bytes
}

/// Serves one client.
pub(crate) async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    ends: Ends,
    link: &Arc<Link>,
) -> io::Result<()> {
    let asked = timeout(PATIENCE, negotiate(&mut stream)).await.map_err(|_| io::ErrorKind::TimedOut)??;
    let target = match asked {
        Ok(Wish::Connect(target)) => target,
        Ok(Wish::Associate) => return udp::associate(stream, ends, link).await,
        Err(reply) => return reply.send(&mut stream).await,
    };
    match tunnel(link, target).await {
        Ok(TunnelAnswer::Open(open)) => {
            Reply::Succeeded.send(&mut stream).await?;
            carry(stream, *open).await;
            Ok(())
        }
        Ok(TunnelAnswer::Refused(status)) => Reply::to(status).send(&mut stream).await,
        Err(error) => {
            tracing::warn!(%error, "no tunnel");
            Reply::Failed.send(&mut stream).await
        }
    }
}

/// Reads the client's request; returns the reply to one that cannot be met.
async fn negotiate(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> io::Result<Result<Wish, Reply>> {
    let malformed = || io::Error::from(io::ErrorKind::InvalidData);
    let [version, count] = array(stream).await?;
    if version != VERSION {
        return Err(malformed());
    }
    let mut methods = vec![0; count.into()];
    stream.read_exact(&mut methods).await?;
    if !methods.contains(&NO_AUTHENTICATION) {
        stream.write_all(&[VERSION, NO_METHOD]).await?;
        return Err(malformed());
    }
    stream.write_all(&[VERSION, NO_AUTHENTICATION]).await?;
    let [version, command, _, kind] = array(stream).await?;
    if version != VERSION {
        return Err(malformed());
    }
    let host = match kind {
        1 => Ipv4Addr::from(array::<4>(stream).await?).to_string(),
        3 => {
            let [length] = array(stream).await?;
            let mut name = vec![0; length.into()];
            stream.read_exact(&mut name).await?;
            String::from_utf8(name).map_err(|_| malformed())?
        }
        4 => format!("[{}]", Ipv6Addr::from(array::<16>(stream).await?)),
        _ => return Ok(Err(Reply::AddressNotSupported)),
    };
    let port = u16::from_be_bytes(array(stream).await?);
    // The address says where packets will come from, which programs seldom know.
    if command == ASSOCIATE {
        return Ok(Ok(Wish::Associate));
    }
    if command != CONNECT {
        return Ok(Err(Reply::CommandNotSupported));
    }
    let authority = format!("{host}:{port}").parse::<Authority>();
    // A name with a port, a user or nothing in it is no name.
    let sound = authority.ok().filter(|authority| authority.host() == host && !host.is_empty());
    Ok(sound.map(Wish::Connect).ok_or(Reply::AddressNotSupported))
}

async fn array<const LENGTH: usize>(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<[u8; LENGTH]> {
    let mut bytes = [0; LENGTH];
    stream.read_exact(&mut bytes).await?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the request of a client that sends `bytes`, and the bytes of the answer.
    async fn say(bytes: &[u8]) -> (io::Result<Result<Wish, Reply>>, Vec<u8>) {
        let (mut client, mut server) = tokio::io::duplex(1024);
        client.write_all(bytes).await.unwrap();
        client.shutdown().await.unwrap();
        let asked = negotiate(&mut server).await;
        drop(server);
        let mut answered = Vec::new();
        client.read_to_end(&mut answered).await.unwrap();
        (asked, answered)
    }

    #[tokio::test]
    async fn names_and_addresses_of_both_kinds_are_understood() {
        let greeting = [5, 2, 2, 0];
        for (request, wanted) in [
            (&[5, 1, 0, 1, 192, 0, 2, 1, 1, 187][..], "192.0.2.1:443"),
            (&[5, 1, 0, 3, 5, b'a', b'.', b'o', b'r', b'g', 0, 80], "a.org:80"),
            (
                &[5, 1, 0, 4, 0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 22],
                "[2001:db8::1]:22",
            ),
        ] {
            let (asked, answered) = say(&[&greeting, request].concat()).await;
            assert_eq!(asked.unwrap(), Ok(Wish::Connect(wanted.parse().unwrap())));
            assert_eq!(answered, [5, 0]);
        }
    }

    #[tokio::test]
    async fn what_cannot_be_done_is_answered_and_what_makes_no_sense_is_not() {
        let (asked, answered) = say(&[5, 1, 2]).await;
        assert!(asked.is_err());
        assert_eq!(answered, [5, 0xff], "only with a password");
        let (asked, _) = say(&[5, 1, 0, 5, 2, 0, 1, 1, 1, 1, 1, 0, 1]).await;
        assert_eq!(asked.unwrap(), Err(Reply::CommandNotSupported), "BIND");
        let (asked, _) = say(&[5, 1, 0, 5, 1, 0, 9, 1, 1, 1, 1, 0, 1]).await;
        assert_eq!(asked.unwrap(), Err(Reply::AddressNotSupported));
        for name in ["a b", "", "u@a.org", "a.org:1", "a/b"] {
            let head = [&[5, 1, 0, 5, 1, 0, 3, name.len() as u8][..], name.as_bytes(), &[0, 80]].concat();
            assert_eq!(say(&head).await.0.unwrap(), Err(Reply::AddressNotSupported), "{name:?}");
        }
        for bytes in [
            &[4, 1, 0][..],
            &[5],
            &[5, 3, 0],
            &[5, 1, 0, 4, 1, 0, 1, 1, 1, 1, 1, 0, 1],
            &[5, 1, 0, 5, 1, 0, 3, 9, b'a'],
        ] {
            assert!(say(bytes).await.0.is_err(), "{bytes:?}");
        }
    }
}
