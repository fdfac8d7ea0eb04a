//! A server and a client on loopback, and what the tests say to each other.

#![expect(dead_code, reason = "every test program uses another part")]

use hvq::{
    ClientConfig, ClientTls, Connection, Endpoint, Identity, LocalAddress, Policy, ServerConfig, ServerTls,
    TransportConfig, Verify,
};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

pub const NAME: &str = "server.test";

/// Longer than any test takes on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A certificate for [`NAME`] that is its own authority.
pub struct Pki {
    certificate: String,
    key: String,
}

impl Pki {
    pub fn new() -> Self {
        let key = rcgen::generate_simple_self_signed([NAME.to_owned()]).unwrap();
        Self { certificate: key.cert.pem(), key: key.signing_key.serialize_pem() }
    }

    pub fn identity(&self) -> Identity {
        let (chain, key) = (self.certificate.clone(), self.key.clone());
        Identity::Pem { chain: chain.into_bytes(), key: key.into_bytes() }
    }

    pub fn verify(&self) -> Verify {
        Verify::CaPem(self.certificate.clone().into_bytes())
    }

    pub fn server(&self, transport: TransportConfig) -> ServerConfig {
        let tls = ServerTls::builder(self.identity()).alpn(["hq-test"]).build().unwrap();
        ServerConfig::new(tls, Arc::new(transport))
    }

    pub fn client(&self, transport: TransportConfig) -> ClientConfig {
        let tls = ClientTls::builder().alpn(["hq-test"]).verify(self.verify()).build().unwrap();
        ClientConfig::new(tls, Arc::new(transport))
    }
}

pub fn transport() -> TransportConfig {
    transport_of(Policy::MinRtt)
}

pub fn transport_of(policy: Policy) -> TransportConfig {
    TransportConfig::new(Arc::new(move || policy.scheduler()))
}

pub fn local(text: &str) -> LocalAddress {
    text.parse().unwrap()
}

/// A server on one or more addresses, a client, and one connection between them.
pub struct Pair {
    pub pki: Pki,
    pub server: Endpoint,
    pub client: Endpoint,
    pub near: Connection,
    pub far: Connection,
}

impl Pair {
    pub async fn new() -> Self {
        Self::with(transport(), transport()).await
    }

    pub async fn with(client: TransportConfig, server: TransportConfig) -> Self {
        Self::on(&["127.0.0.1:0"], client, server).await
    }

    pub async fn on(listen: &[&str], client_config: TransportConfig, server_config: TransportConfig) -> Self {
        let pki = Pki::new();
        let listen: Vec<_> = listen.iter().map(|text| local(text)).collect();
        let server = Endpoint::server(pki.server(server_config), &listen).unwrap();
        let client = Endpoint::client(&[local("127.0.0.1:0")]).unwrap();
        let connecting = client.connect(pki.client(client_config), server.local_addrs()[0], NAME).unwrap();
        let (near, far) = within(async { tokio::join!(connecting, server.accept()) }).await;
        Self { pki, server, client, near: near.unwrap(), far: far.unwrap() }
    }

    pub fn server_addr(&self) -> SocketAddr {
        self.server.local_addrs()[0]
    }
}

/// The result of `future`, which must come before [`PATIENCE`] is over.
pub async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("it takes too long")
}

/// Bytes that differ at every offset.
pub fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i as u32).wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect()
}

/// Sends back what comes on every bidirectional stream, until the connection ends.
pub fn echo(connection: Connection) -> tokio::task::JoinHandle<()> {
    tokio::spawn(async move {
        while let Ok((mut send, mut receive)) = connection.accept_bi().await {
            tokio::spawn(async move {
                while let Ok(Some(chunk)) = receive.read_chunk(1 << 16).await {
                    if send.write_chunk(chunk).await.is_err() {
                        return;
                    }
                }
                // The stream may be gone with the connection.
                let _finished = send.finish();
            });
        }
    })
}
