//! A proxy, a gateway with two ports, and an origin.

pub use crate::common::within;
use http::HeaderValue;
use hvq::scheduler::Scheduler;
use hvq::{ClientConfig, ClientTls, Identity, LocalAddress, PathOptions, Policy, TransportConfig, Verify};
use hvq_gateway::proxy::{GatewayAddress, Link, LinkOptions, Proxy, ProxyOptions, TlsIdentity};
use hvq_gateway::{Config, Gateway, Overrides};
use hvq_program::names::Names;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// A function that makes the scheduler of each connection.
type Factory = Arc<dyn Fn() -> Box<dyn Scheduler> + Send + Sync>;

const TOKEN: &str = "0123456789abcdef";

/// Everything between a program and its origin.
pub struct Fixture {
    pub proxy: Proxy,
    pub link: Arc<Link>,
    pub gateway: Option<Gateway>,
    pub folder: tempfile::TempDir,
    config: Config,
}

/// Tells whether a proxy shows the token that the gateway knows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Knows {
    TheToken,
    AnotherToken,
}

impl Fixture {
    pub async fn new() -> Self {
        Self::who(Knows::TheToken).await
    }

    /// A gateway that lets those with a token reach loopback, and a proxy with two paths to it.
    pub async fn who(knows: Knows) -> Self {
        Self::with(knows, Arc::new(|| Policy::default().scheduler()), None).await
    }

    /// One whose proxy asks schedulers that `factory` makes.
    pub async fn asking(factory: Factory) -> Self {
        Self::with(Knows::TheToken, factory, None).await
    }

    /// One whose proxy has a path to `dead` before the others.
    pub async fn behind(dead: SocketAddr) -> Self {
        Self::with(Knows::TheToken, Arc::new(|| Policy::default().scheduler()), Some(dead)).await
    }

    async fn with(knows: Knows, factory: Factory, dead: Option<SocketAddr>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("tokens"), format!("ann {TOKEN}\n")).unwrap();
        let made =
            rcgen::generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
        let (chain, key) = (made.cert.pem().into_bytes(), made.signing_key.serialize_pem().into_bytes());
        std::fs::write(folder.path().join("chain.pem"), &chain).unwrap();
        let overrides = Overrides {
            listen: vec![([127, 0, 0, 1], 0).into(), ([127, 0, 0, 1], 0).into()],
            identity: Some(Identity::Pem { chain: chain.clone(), key: key.clone() }),
            allow: vec!["127.0.0.1:*".parse().unwrap(), "localhost:*".parse().unwrap()],
            tokens: Some(folder.path().join("tokens")),
            reach: vec!["127.0.0.0/8".parse().unwrap()],
            drain: Some(Duration::from_millis(200)),
            ..Overrides::default()
        };
        let config = Config::load(None, &overrides).unwrap();
        let gateway = Gateway::start(config.clone()).await.unwrap();
        let ports = gateway.local_addrs();
        let config = Config { listen: ports.clone(), ..config };
        let local = LocalAddress::Ip(IpAddr::from(Ipv4Addr::LOCALHOST));
        let paths = ports
            .iter()
            .enumerate()
            .map(|(index, port)| PathOptions::new(format!("path{index}"), local.clone()).to(*port));
        let tls =
            ClientTls::builder().alpn([hvq_h3::ALPN]).verify(Verify::CaPem(chain.clone())).build().unwrap();
        let transport = TransportConfig::new(factory);
        let token = if knows == Knows::TheToken { TOKEN } else { "another one that is wrong" };
        let link = Link::new(LinkOptions {
            gateway: GatewayAddress { host: "localhost".to_owned(), port: ports[0].port() },
            config: ClientConfig::new(tls, Arc::new(transport)),
            names: Names::default(),
            paths: dead
                .map(|dead| PathOptions::new("dead", local.clone()).to(dead))
                .into_iter()
                .chain(paths)
                .collect(),
            token: Some(HeaderValue::from_str(&format!("Bearer {token}")).unwrap()),
            destined: |path| assert!(path.remote.is_some()),
            noticed: |_| {},
            unusable: |name, error| panic!("path {name}: {error}"),
        });
        let link = Arc::new(link.unwrap());
        let options = ProxyOptions {
            listen: ([127, 0, 0, 1], 0).into(),
            identity: Some(TlsIdentity { chain, key }),
            link: link.clone(),
        };
        let proxy = Proxy::start(options).await.unwrap();
        Self { proxy, link, gateway: Some(gateway), folder, config }
    }

    /// Stops the gateway and starts another one at the same ports.
    pub async fn restart_gateway(&mut self) {
        within(self.gateway.take().unwrap().stop()).await;
        // Sockets are closed by a task that ends a moment later.
        let start = async {
            loop {
                match Gateway::start(self.config.clone()).await {
                    Ok(gateway) => break gateway,
                    Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
                }
            }
        };
        self.gateway = Some(within(start).await);
    }

    pub fn address(&self) -> SocketAddr {
        self.proxy.local_addr()
    }

    pub fn certificate(&self) -> PathBuf {
        self.folder.path().join("chain.pem")
    }
}

/// An origin that answers each request with its method, its path and the length of its body.
pub struct Origin {
    pub address: SocketAddr,
    pub heads: Arc<Mutex<Vec<String>>>,
    accepting: JoinHandle<()>,
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Origin {
    pub async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let known = heads.clone();
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, known.clone()));
            }
        });
        Self { address, heads, accepting }
    }

    pub fn seen(&self) -> Vec<String> {
        self.heads.lock().unwrap().iter().map(|head| head.to_lowercase()).collect()
    }
}

async fn answer(mut stream: tokio::net::TcpStream, heads: Arc<Mutex<Vec<String>>>) {
    let mut rest = Vec::new();
    loop {
        let Some(end) = rest.windows(4).position(|bytes| bytes == b"\r\n\r\n") else {
            if stream.read_buf(&mut rest).await.unwrap_or(0) == 0 {
                return;
            }
            continue;
        };
        let head = String::from_utf8(rest.drain(..end + 4).collect()).unwrap();
        heads.lock().unwrap().push(head.clone());
        let said = head
            .to_lowercase()
            .lines()
            .find_map(|line| line.strip_prefix("content-length: ").map(str::to_owned));
        let length: usize = said.map_or(0, |said| said.parse().unwrap());
        while rest.len() < length {
            if stream.read_buf(&mut rest).await.unwrap_or(0) == 0 {
                return;
            }
        }
        rest.drain(..length);
        let mut words = head.split(' ');
        let text = format!("{} {} {length}", words.next().unwrap(), words.next().unwrap());
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{text}", text.len());
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}
