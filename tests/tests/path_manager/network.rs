//! Two namespaces with pairs of interfaces between them, a server in the one and a client in the other.

use hvq::links::Links;
use hvq::path_manager::PathManagerBuilder;
use hvq::{
    ClientConfig, ClientTls, ConnectOptions, Connection, Endpoint, Identity, LocalAddress, Multipath,
    PathManager, Policy, ServerConfig, ServerTls, TransportConfig, Verify,
};
use hvq_emulation::tun::namespace::Namespace;
use hvq_emulation::tun::wiring;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

const NAME: &str = "server.test";
const PORT: u16 = 4433;
/// Longer than anything takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A pair of interfaces of the same name at both ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Line {
    Wifi,
    Cell,
    Cable,
}

impl Line {
    pub(crate) const ALL: [Self; 3] = [Self::Wifi, Self::Cell, Self::Cable];

    pub(crate) const fn device(self) -> &'static str {
        match self {
            Self::Wifi => "wifi",
            Self::Cell => "cell",
            Self::Cable => "cable",
        }
    }

    const fn address(self, host: u8) -> Ipv4Addr {
        match self {
            Self::Wifi => Ipv4Addr::new(10, 1, 0, host),
            Self::Cell => Ipv4Addr::new(10, 2, 0, host),
            Self::Cable => Ipv4Addr::new(10, 3, 0, host),
        }
    }

    /// The address of the near end after [`renumber`](Self::renumber).
    pub(crate) const fn other(self) -> Ipv4Addr {
        self.address(3)
    }

    pub(crate) fn up(self) -> String {
        format!("link set {} up", self.device())
    }

    pub(crate) fn down(self) -> String {
        format!("link set {} down", self.device())
    }

    /// Another address for the near end, in place of its own.
    pub(crate) fn renumber(self) -> Vec<String> {
        let device = self.device();
        vec![
            format!("address delete {}/24 dev {device}", self.address(2)),
            format!("address add {}/24 dev {device}", self.other()),
        ]
    }
}

/// Both namespaces.
pub(crate) struct Network {
    near: Namespace,
    far: Namespace,
}

/// The client within the network.
pub(crate) struct Stage<'a> {
    network: &'a Network,
    pub(crate) near: Connection,
    pub(crate) manager: PathManager,
}

impl Network {
    /// Namespaces with `lines`; says what is missing if they cannot be made.
    pub(crate) fn new(lines: &[Line]) -> Option<Self> {
        let made = || -> std::io::Result<Self> {
            let network = Self { near: Namespace::new()?, far: Namespace::new()? };
            for namespace in [&network.near, &network.far] {
                wiring::apply(namespace, &[wiring::loopback()])?;
            }
            Ok(network)
        };
        match made() {
            Ok(network) => {
                lines.iter().for_each(|line| network.make(*line));
                Some(network)
            }
            Err(error) => {
                eprintln!("SKIPPED: this test needs network namespaces and iproute2: {error}");
                None
            }
        }
    }

    /// Runs lines of `ip -batch` at the near end.
    pub(crate) fn set(&self, lines: &[String]) {
        wiring::apply(&self.near, lines).unwrap();
    }

    /// Makes a pair of interfaces with their addresses.
    fn make(&self, line: Line) {
        let device = line.device();
        // `ip` is a child of this process and sees its descriptors there.
        let place = format!("/proc/{}/fd/{}", std::process::id(), self.far.as_fd().as_raw_fd());
        self.set(&[format!("link add {device} type veth peer name {device} netns {place}")]);
        for (namespace, host) in [(&self.far, 1), (&self.near, 2)] {
            let address = format!("address add {}/24 dev {device}", line.address(host));
            wiring::apply(namespace, &[address, line.up()]).unwrap();
        }
    }

    /// Plays `story` with a client whose paths are managed by `rules`, and a server that permits so many.
    pub(crate) fn play(&self, multipath: Multipath, rules: &str, story: impl AsyncFnOnce(Stage<'_>) + Send) {
        let key = rcgen::generate_simple_self_signed([NAME.to_owned()]).unwrap();
        let (chain, key) = (key.cert.pem().into_bytes(), key.signing_key.serialize_pem().into_bytes());
        let identity = Identity::Pem { chain: chain.clone(), key };
        let (ready, is_ready) = sync_channel(1);
        let (end, ended) = tokio::sync::oneshot::channel::<()>();
        std::thread::scope(|scope| {
            let serving = scope.spawn(|| self.far.within(|| run(serve(identity, multipath, ready, ended))));
            is_ready.recv_timeout(PATIENCE).unwrap();
            let played = self.near.within(|| run(self.client(chain, rules, story)));
            drop(end);
            serving.join().unwrap().unwrap();
            played.unwrap();
        });
    }

    async fn client(&self, chain: Vec<u8>, rules: &str, story: impl AsyncFnOnce(Stage<'_>)) {
        let builder = PathManager::builder().rules(rules.parse().unwrap()).remotes(remotes());
        let tls = ClientTls::builder().alpn(["hq-test"]).verify(Verify::CaPem(chain)).build().unwrap();
        let config = ClientConfig::new(tls, transport(Multipath::UpTo(hvq::PathId(3))));
        let endpoint = Endpoint::client(&[]).unwrap();
        let near = connect(&endpoint, config, &builder).await;
        let manager = builder.spawn(&near).await.unwrap();
        let stage = Stage { network: self, near: near.clone(), manager };
        story(stage).await;
        near.close(0, b"done");
        within(endpoint.wait_idle()).await;
    }
}

impl Stage<'_> {
    /// Runs lines of `ip -batch` at the near end.
    pub(crate) async fn set(&self, lines: &[String]) {
        self.network.set(lines);
    }

    /// Makes a pair of interfaces with their addresses.
    pub(crate) async fn make(&self, line: Line) {
        self.network.make(line);
    }
}

/// The addresses of the server, one on each line.
fn remotes() -> impl Iterator<Item = SocketAddr> {
    Line::ALL.into_iter().map(|line| (line.address(1), PORT).into())
}

async fn connect(endpoint: &Endpoint, config: ClientConfig, builder: &PathManagerBuilder) -> Connection {
    let links = Links::watch().await.unwrap();
    let paths = builder.paths(&links.current());
    let first = paths.first().unwrap_or_else(|| panic!("no way out: {:?}", links.current()));
    let remote = first.remote.unwrap();
    let options = ConnectOptions::new(remote, NAME).racing(0, &paths);
    within(endpoint.connect_with(config, options).unwrap()).await.unwrap()
}

fn transport(multipath: Multipath) -> Arc<TransportConfig> {
    let mut config = TransportConfig::new(Arc::new(|| Policy::MinRtt.scheduler()));
    config.set_multipath(multipath);
    Arc::new(config)
}

/// Sends back what comes on every stream, until `ended`.
async fn serve(
    identity: Identity,
    multipath: Multipath,
    ready: std::sync::mpsc::SyncSender<()>,
    ended: tokio::sync::oneshot::Receiver<()>,
) {
    let tls = ServerTls::builder(identity).alpn(["hq-test"]).build().unwrap();
    let all = LocalAddress::Socket((Ipv4Addr::UNSPECIFIED, PORT).into());
    let server = Endpoint::server(ServerConfig::new(tls, transport(multipath)), &[all]).unwrap();
    ready.send(()).unwrap();
    let accepting = async {
        while let Some(connection) = server.accept().await {
            tokio::spawn(async move {
                while let Ok((mut send, mut receive)) = connection.accept_bi().await {
                    tokio::spawn(async move {
                        let Ok(request) = receive.read_to_end(1 << 16).await else { return };
                        // The client may be gone meanwhile.
                        let _sent = send.write_all(&request).await.and_then(|()| send.finish());
                    });
                }
            });
        }
    };
    tokio::select! {
        () = accepting => {}
        _ = ended => {}
    }
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// The result of `future`, which must come before [`PATIENCE`] is over.
pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("it takes too long")
}
