//! Tunnels of others (RFC 9298, RFC 9484) with a gateway, a proxy and a tunnel of hvq.

use super::process::{Served, folder, json_of, output_of};
use super::{CONTENT, FILE, Setup};
use crate::content::{check_hash, content};
use crate::report::Exchange;
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpStream, UdpSocket};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// The token that gateways and proxies ask for.
const TOKEN: &str = "0123456789abcdef";
/// Packets of IP have every size up to this: more than IPv6 must be able to send whole (RFC 8200 §5).
const MOST: usize = 1300;
/// UDP has every size up to this.
const MOST_UDP: usize = 1200;
/// The time that an answer may take before it is asked for again.
const ANSWER: Duration = Duration::from_secs(2);

/// A program that says in its first line where it listens, until this is dropped.
struct Listener<T> {
    said: T,
    _process: Child,
}

/// The output of `hvq gateway --json`.
#[derive(Deserialize)]
struct Gateway {
    listening: Vec<SocketAddr>,
}

/// The output of `hvq proxy --json`.
#[derive(Deserialize)]
struct Proxy {
    listening: SocketAddr,
}

/// The first line of `command`.
async fn first_line(mut command: Command, name: &'static str) -> Result<Listener<String>> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut process = command.spawn().with_context(|| format!("cannot start {name}"))?;
    let output = process.stdout.take().context("the output is read here")?;
    let mut lines = BufReader::new(output).lines();
    let said = lines.next_line().await?.with_context(|| format!("{name} says nothing"))?;
    Ok(Listener { said, _process: process })
}

/// `hvq gateway` whose file has `more`.
async fn gateway(setup: &Setup, folder: &Path, more: &str) -> Result<Listener<SocketAddr>> {
    std::fs::write(folder.join("tokens"), format!("ann {TOKEN}\n"))?;
    let (file, identity) = (folder.join("gateway.toml"), &setup.identity);
    let text = format!(
        "listen = ['127.0.0.1:0']\ncertificate = '{}'\nkey = '{}'\n{more}",
        identity.certificate_file().display(),
        identity.key_file().display()
    );
    std::fs::write(&file, text)?;
    let mut command = Command::new(&setup.hvq);
    command.args(["gateway", "--json", "--config"]).arg(file);
    let Listener { said, _process } = first_line(command, "hvq gateway").await?;
    let said: Gateway = serde_json::from_str(&said).context("hvq gateway")?;
    let said = *said.listening.first().context("hvq gateway listens nowhere")?;
    Ok(Listener { said, _process })
}

/// The output of a client that fetched a file.
#[derive(Deserialize)]
struct Received {
    version: String,
    status: u16,
    bytes: usize,
    sha256: String,
}

/// masque-go asks a gateway for a tunnel and fetches a file from `hvq serve` by HTTP/3 in it.
pub async fn from_masque_go(setup: &Setup) -> Result<Exchange> {
    let own = tempfile::tempdir()?;
    let mut identity = Command::new(&setup.masque_go);
    identity.arg("identity").arg(own.path());
    output_of(identity, "masque-go").await?;
    let more = format!(
        "[proxy]\nallow = ['127.0.0.1:*']\nreach = ['127.0.0.0/8']\nclient_ca = '{}'\n",
        own.path().join("authority.pem").display()
    );
    let gateway = gateway(setup, own.path(), &more).await?;
    let body = content(CONTENT, 12);
    let folder = folder(&body)?;
    let served = Served::start(setup, folder.path()).await?;
    let mut client = Command::new(&setup.masque_go);
    client.arg("get").arg(setup.identity.certificate_file()).arg(own.path());
    client.arg(gateway.said.to_string()).arg(format!("https://127.0.0.1:{}/{FILE}", served.port));
    let received: Received = json_of(client, "masque-go").await?;
    ensure!(received.status == 200, "hvq serve answers {}", received.status);
    check_hash(received.bytes, &received.sha256, &body, "received through the tunnel")?;
    Ok(Exchange {
        bytes: CONTENT as u64,
        peer: format!("masque-go {}", received.version),
        ..Exchange::default()
    })
}

/// The port and version that a peer's program prints.
fn port_and_version(said: &str) -> Result<(u16, &str)> {
    let (port, version) = said.trim().split_once(' ').context("the peer prints its port and version")?;
    Ok((port.parse().context("the peer prints its port")?, version))
}

/// `hvq proxy` asks masque-go for a tunnel, and UDP of every size comes back through it.
pub async fn to_masque_go(setup: &Setup) -> Result<Exchange> {
    let mut peer = Command::new(&setup.masque_go);
    peer.arg("proxy").arg(setup.identity.certificate_file()).arg(setup.identity.key_file());
    let peer = first_line(peer, "masque-go").await?;
    let (port, version) = port_and_version(&peer.said)?;
    let mut proxy = Command::new(&setup.hvq);
    proxy.args(["proxy", "--json", "--listen", "127.0.0.1:0", "--gateway"]).arg(format!("localhost:{port}"));
    proxy.arg("--cacert").arg(setup.identity.certificate_file());
    let proxy = first_line(proxy, "hvq proxy").await?;
    let listening: Proxy = serde_json::from_str(&proxy.said).context("hvq proxy")?;
    let bytes = by_socks(listening.listening).await?;
    Ok(Exchange { bytes, peer: format!("masque-go {version}"), ..Exchange::default() })
}

/// Sends UDP of every size through the SOCKS5 proxy at `proxy` to a host that sends it back; returns the bytes that came.
async fn by_socks(proxy: SocketAddr) -> Result<u64> {
    let host = UdpSocket::bind("127.0.0.1:0").await?;
    let SocketAddr::V4(target) = host.local_addr()? else { unreachable!("it was bound to IPv4") };
    let echo = async {
        let mut packet = [0; 2048];
        loop {
            let (length, from) = host.recv_from(&mut packet).await?;
            host.send_to(packet.get(..length).unwrap_or_default(), from).await?;
        }
    };
    let exchange = async {
        let mut stream = TcpStream::connect(proxy).await?;
        stream.write_all(&[5, 1, 0, 5, 3, 0, 1, 0, 0, 0, 0, 0, 0]).await?;
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await?;
        let relay = SocketAddr::from(([127, 0, 0, 1], u16::from_be_bytes([answer[10], answer[11]])));
        let socket = UdpSocket::bind("127.0.0.1:0").await?;
        let head = [&[0, 0, 0, 1][..], &target.ip().octets(), &target.port().to_be_bytes()].concat();
        let (mut bytes, mut buffer) = (0, [0; 2048]);
        for size in 1..=MOST_UDP {
            let packet = [&head[..], &vec![size as u8; size]].concat();
            let mut came = false;
            for _ in 0..3 {
                socket.send_to(&packet, relay).await?;
                let received = timeout(ANSWER, socket.recv(&mut buffer)).await;
                came = matches!(received, Ok(Ok(length)) if buffer.get(..length) == Some(&packet[..]));
                if came {
                    break;
                }
            }
            ensure!(came, "{size} bytes of UDP do not come back");
            bytes += 2 * size as u64;
        }
        Ok(bytes)
    };
    tokio::select! {
        failed = echo => failed,
        exchanged = exchange => exchanged,
    }
}

/// The number of packets that were answered.
#[derive(Deserialize)]
struct Answered {
    #[serde(default)]
    version: String,
    sent: u64,
    answered: u64,
}

/// connect-ip-go asks a gateway for a tunnel, and packets of every size come back through it.
pub async fn from_connect_ip_go(setup: &Setup) -> Result<Exchange> {
    ensure!(setup.quic_go.is_file(), "there is no quic-go at {} (--quic-go)", setup.quic_go.display());
    let own = tempfile::tempdir()?;
    let more = format!(
        "[proxy]\nallow = []\nreach = ['100.64.219.1/32']\ntokens = '{}'\n[tunnel]\nroutes = ['100.64.219.1/32']\ndevice = 'hvqi{}'\nnetwork = 219\n",
        own.path().join("tokens").display(),
        std::process::id() % 100_000
    );
    let gateway = gateway(setup, own.path(), &more).await?;
    let mut client = Command::new(&setup.quic_go);
    client.arg("ping").arg(setup.identity.certificate_file()).arg(gateway.said.to_string());
    client.args([TOKEN, &MOST.to_string()]);
    let answered: Answered = json_of(client, "connect-ip-go").await?;
    let peer = format!("connect-ip-go {}", answered.version);
    all_of(&answered, peer)
}

/// `hvq tunnel` asks connect-ip-go for a tunnel, and packets of every size come back through it.
pub async fn to_connect_ip_go(setup: &Setup) -> Result<Exchange> {
    ensure!(setup.quic_go.is_file(), "there is no quic-go at {} (--quic-go)", setup.quic_go.display());
    let mut peer = Command::new(&setup.quic_go);
    peer.arg("answer").arg(setup.identity.certificate_file()).arg(setup.identity.key_file());
    let peer = first_line(peer, "connect-ip-go").await?;
    let (port, version) = port_and_version(&peer.said)?;
    let mut tunnel = Command::new(&setup.hvq);
    tunnel.args(["tunnel", "connect"]).arg(format!("https://localhost:{port}")).env("HVQ_TOKEN", TOKEN);
    tunnel.arg("--cacert").arg(setup.identity.certificate_file()).arg("--").arg(&setup.quic_go);
    tunnel.args(["reflected", "192.0.2.1:7", &MOST.to_string()]);
    let answered: Answered = json_of(tunnel, "hvq tunnel").await?;
    all_of(&answered, format!("connect-ip-go {version}"))
}

/// Fails unless all packets were answered.
fn all_of(answered: &Answered, peer: String) -> Result<Exchange> {
    let Answered { sent, answered, .. } = *answered;
    ensure!(sent > 0 && sent == answered, "{answered} of {sent} packets were answered");
    Ok(Exchange { peer, note: format!("{sent} sizes of packets"), ..Exchange::default() })
}
