//! The far end: it sends back what comes, and endless bytes to those who ask for them.

use super::contender::Form;
use hvq::{
    Connection, Endpoint, Identity, LocalAddress, Multipath, PathId, Policy, ServerConfig, ServerTls,
    TransportConfig,
};
use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::time::Duration;
use tokio::sync::watch;

/// The port of the server.
pub(super) const PORT: u16 = 4_433;
/// The protocol of both ends.
pub(super) const PROTOCOL: &str = "hvq-failover";
/// The first byte of a stream that asks for endless bytes.
pub(super) const ENDLESS: u8 = b'e';
/// Bytes of a request at most.
pub(super) const REQUEST: usize = 100;
/// The highest path ID: links that go and come take new ones.
const PATHS: PathId = PathId(7);
/// Bytes of a write.
const BLOCK: usize = 16 << 10;
/// The interval at which bytes are counted.
const COUNT: Duration = Duration::from_millis(50);

/// The end of a side, and the bytes that it sent for downloads. Clones share both.
#[derive(Clone, Debug, Default)]
pub(super) struct Control {
    end: watch::Sender<bool>,
    sent: Arc<AtomicU64>,
}

impl Control {
    /// Has the side end.
    pub(super) fn end(&self) {
        self.end.send_replace(true);
    }

    /// Waits until it is to end.
    pub(super) async fn ended(&self) {
        let mut end = self.end.subscribe();
        let _always = end.wait_for(|end| *end).await;
    }

    /// UDP payload sent for downloads, in bytes.
    pub(super) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }
}

/// The transport of both ends.
pub(super) fn transport(form: Form) -> Arc<TransportConfig> {
    let (policy, multipath) = match form {
        Form::Multipath(policy) => (policy, Multipath::UpTo(PATHS)),
        Form::Migration => (Policy::MinRtt, Multipath::Off),
    };
    let mut config = TransportConfig::new(Arc::new(move || policy.scheduler()));
    config.set_multipath(multipath);
    Arc::new(config)
}

/// Runs `future` on this thread.
pub(super) fn block_on<T>(future: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(future)
}

/// Serves until `control` says to end; `ready` is told once clients may come.
pub(super) fn serve(
    form: Form,
    identity: Identity,
    ready: &SyncSender<()>,
    control: &Control,
) -> io::Result<()> {
    block_on(async {
        let tls = ServerTls::builder(identity).alpn([PROTOCOL]).build().map_err(io::Error::other)?;
        let all = LocalAddress::Socket((Ipv4Addr::UNSPECIFIED, PORT).into());
        let server = Endpoint::server(ServerConfig::new(tls, transport(form)), &[all])?;
        // Nobody waits for it any more if the trial has failed.
        let _told = ready.send(());
        let accepting = async {
            while let Some(connection) = server.accept().await {
                tokio::spawn(answer(connection, control.clone()));
            }
        };
        tokio::select! {
            () = accepting => {}
            () = control.ended() => {}
        }
        Ok(())
    })
}

async fn answer(connection: Connection, control: Control) {
    let datagrams = async {
        while let Ok(datagram) = connection.read_datagram().await {
            // One that the network has no room for is lost, as others are.
            let _sent = connection.send_datagram(datagram);
        }
    };
    let streams = async {
        while let Ok((mut send, mut receive)) = connection.accept_bi().await {
            let (connection, control) = (connection.clone(), control.clone());
            tokio::spawn(async move {
                let Ok(request) = receive.read_to_end(REQUEST).await else { return };
                if request.first() == Some(&ENDLESS) {
                    let writing = async { while send.write_all(&[0; BLOCK]).await.is_ok() {} };
                    tokio::select! {
                        () = writing => {}
                        () = count(&connection, &control) => {}
                    }
                } else if send.write_all(&request).await.is_ok() {
                    // The client may be gone meanwhile.
                    let _finished = send.finish();
                }
            });
        }
    };
    tokio::join!(datagrams, streams);
}

/// Counts the bytes that `connection` sends, on paths that end meanwhile too.
async fn count(connection: &Connection, control: &Control) {
    let mut sent: BTreeMap<PathId, u64> = BTreeMap::new();
    loop {
        sent.extend(connection.paths().into_iter().map(|path| (path.id, path.stats.counters.bytes_sent)));
        control.sent.store(sent.values().sum(), Ordering::Relaxed);
        tokio::time::sleep(COUNT).await;
    }
}
