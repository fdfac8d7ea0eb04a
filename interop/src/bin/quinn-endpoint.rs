//! quinn as an endpoint of the QUIC interop runner; everything that it is to do is in the environment.

use anyhow::{Context, Result, bail, ensure};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{
    ClientConfig, Connection, Endpoint, EndpointConfig, RecvStream, SendStream, ServerConfig, TransportConfig,
};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::crypto::ring::{cipher_suite, default_provider};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::version::TLS13;
use rustls::{DigitallySignedStruct, KeyLogFile, SignatureScheme};
use std::net::{Ipv6Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// The exit code for a test case that quinn does not know.
const UNSUPPORTED: u8 = 127;
/// The longest request.
const LONGEST: usize = 4096;
/// The time that connection IDs and tickets may take after the handshake.
const MOMENT: Duration = Duration::from_millis(300);
/// The name that clients ask for.
const NAME: &str = "server";
/// The cases that both sides know; each side knows one more.
const CASES: [&str; 8] =
    ["handshake", "transfer", "chacha20", "retry", "resumption", "zerortt", "multiconnect", "ecn"];

// One thread, so that requests that are made together share packets.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let (role, testcase) = (variable("ROLE"), variable("TESTCASE"));
    let more = if role == "server" { "connectionmigration" } else { "keyupdate" };
    if !CASES.contains(&testcase.as_str()) && testcase != more {
        return ExitCode::from(UNSUPPORTED);
    }
    let result = if role == "server" { server(&testcase).await } else { client(&testcase).await };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("quinn-endpoint: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

fn file(folder: &str, name: &str) -> PathBuf {
    PathBuf::from(variable(folder)).join(name)
}

fn provider(testcase: &str) -> Arc<CryptoProvider> {
    let mut provider = default_provider();
    if testcase == "chacha20" {
        provider.cipher_suites = vec![cipher_suite::TLS13_CHACHA20_POLY1305_SHA256];
    }
    Arc::new(provider)
}

/// The suite of Initial packets, whatever comes later (RFC 9001 §5).
fn initial() -> Result<rustls::quic::Suite> {
    let suite = cipher_suite::TLS13_AES_128_GCM_SHA256.tls13().and_then(|suite| suite.quic_suite());
    suite.context("there is no AES-128-GCM")
}

async fn server(testcase: &str) -> Result<()> {
    let chain = CertificateDer::pem_file_iter(file("CERTS", "cert.pem"))?.collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_file(file("CERTS", "priv.key"))?;
    let mut tls = rustls::ServerConfig::builder_with_provider(provider(testcase))
        .with_protocol_versions(&[&TLS13])?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    tls.alpn_protocols = vec![b"hq-interop".to_vec()];
    tls.key_log = Arc::new(KeyLogFile::new());
    if testcase == "zerortt" {
        tls.max_early_data_size = u32::MAX;
    }
    let crypto = QuicServerConfig::with_initial(Arc::new(tls), initial()?)?;
    let mut config = ServerConfig::with_crypto(Arc::new(crypto));
    if let Ok(SocketAddr::V4(preferred)) = variable("PREFERRED_ADDRESS").parse() {
        config.preferred_address_v4(Some(preferred));
    }
    let listen: SocketAddr = variable("LISTEN").parse().context("LISTEN")?;
    let endpoint = Endpoint::server(config, listen)?;
    while let Some(incoming) = endpoint.accept().await {
        if testcase == "retry" && !incoming.remote_address_validated() {
            incoming.retry()?;
            continue;
        }
        // Somebody's damaged packet is no reason to end.
        let Ok(connecting) = incoming.accept() else { continue };
        tokio::spawn(async move {
            let connection = match connecting.into_0rtt() {
                Ok((connection, _accepted)) => connection,
                Err(connecting) => connecting.await?,
            };
            while let Ok((send, receive)) = connection.accept_bi().await {
                tokio::spawn(answer(send, receive));
            }
            anyhow::Ok(())
        });
    }
    Ok(())
}

async fn answer(mut send: SendStream, mut receive: RecvStream) -> Result<()> {
    let request = String::from_utf8(receive.read_to_end(LONGEST).await?)?;
    let path = request.trim_end().strip_prefix("GET /").context("no request")?;
    ensure!(!path.contains('/'), "{path} is in no folder of ours");
    send.write_all(&std::fs::read(file("WWW", path))?).await?;
    send.finish()?;
    send.stopped().await?;
    Ok(())
}

/// Trusts everybody, as the runner's images do: rustls refuses a chain as long as one of the cases has.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _end: &CertificateDer<'_>,
        _between: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("QUIC has TLS 1.3".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

async fn client(testcase: &str) -> Result<()> {
    let provider = provider(testcase);
    let mut tls = rustls::ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anybody(provider)))
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"hq-interop".to_vec()];
    tls.key_log = Arc::new(KeyLogFile::new());
    tls.enable_early_data = testcase == "zerortt";
    let crypto = QuicClientConfig::with_initial(Arc::new(tls), initial()?)?;
    let mut transport = TransportConfig::default();
    transport.mtu_discovery_config(None);
    transport.keep_alive_interval(Some(Duration::from_secs(2)));
    let mut config = ClientConfig::new(Arc::new(crypto));
    config.transport_config(Arc::new(transport));
    let mut endpoint =
        Endpoint::new(EndpointConfig::default(), None, socket()?, Arc::new(quinn::TokioRuntime))?;
    endpoint.set_default_client_config(config);
    let requests = variable("REQUESTS");
    let urls: Vec<&str> = requests.split_whitespace().collect();
    match testcase {
        "multiconnect" => {
            for url in &urls {
                download(&endpoint, std::slice::from_ref(url), testcase).await?;
            }
        }
        "resumption" | "zerortt" => {
            let (first, rest) = urls.split_at_checked(1).context("nothing to download")?;
            download(&endpoint, first, "transfer").await?;
            download(&endpoint, rest, testcase).await?;
        }
        _ => download(&endpoint, &urls, testcase).await?,
    }
    endpoint.wait_idle().await;
    Ok(())
}

/// A socket for both versions of IP.
fn socket() -> Result<UdpSocket> {
    let socket = socket2::Socket::new(socket2::Domain::IPV6, socket2::Type::DGRAM, None)?;
    socket.set_only_v6(false)?;
    socket.bind(&SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)).into())?;
    Ok(socket.into())
}

/// Fetches `urls` over one connection.
async fn download(endpoint: &Endpoint, urls: &[&str], testcase: &str) -> Result<()> {
    let first = urls.first().context("nothing to download")?;
    let (authority, _) = split(first)?;
    let connecting = endpoint.connect(authority.parse()?, NAME)?;
    let connection = if testcase == "zerortt" {
        let Ok((connection, _accepted)) = connecting.into_0rtt() else { bail!("no ticket permits 0-RTT") };
        connection
    } else {
        connecting.await?
    };
    if variable("CASE") == "connectionmigration" {
        // quinn does not follow preferred addresses: it moves to another port of its own.
        tokio::time::sleep(MOMENT).await;
        endpoint.rebind(socket()?)?;
    }
    let mut tasks = JoinSet::new();
    for url in urls {
        let (_, path) = split(url)?;
        tasks.spawn(fetch(connection.clone(), path.to_owned()));
    }
    if testcase == "keyupdate" {
        tokio::time::sleep(MOMENT).await;
        connection.force_key_update();
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    // Tickets come after the handshake, which loss may delay.
    tokio::time::sleep(MOMENT).await;
    connection.close(0_u32.into(), b"");
    Ok(())
}

async fn fetch(connection: Connection, path: String) -> Result<()> {
    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_all(format!("GET /{path}\r\n").as_bytes()).await?;
    send.finish()?;
    let content = receive.read_to_end(usize::MAX).await?;
    Ok(std::fs::write(file("DOWNLOADS", &path), content)?)
}

/// The authority and the path of a URL.
fn split(url: &str) -> Result<(&str, &str)> {
    url.strip_prefix("https://").and_then(|rest| rest.split_once('/')).with_context(|| url.to_owned())
}
