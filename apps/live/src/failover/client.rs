//! The near end: three connections that ask, download and exchange datagrams, and the times at which something came.

use super::NAME;
use super::contender::Form;
use super::observed::Observed;
use super::server::{Control, ENDLESS, PORT, PROTOCOL, REQUEST, block_on, transport};
use crate::chaos::event::Line;
use crate::chaos::network::SERVER;
use bytes::Bytes;
use hvq::links::Links;
use hvq::{ClientConfig, ClientTls, ConnectOptions, Connection, Endpoint, PathId, PathManager, Verify};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// From an answer to the next request, and from a datagram to the next: fifty a second.
const PACE: Duration = Duration::from_millis(20);
/// The interval at which paths are looked at.
const LOOK: Duration = Duration::from_millis(5);
/// Bytes of a read.
const BLOCK: usize = 64 << 10;

/// The times that were observed, while they are being observed.
#[derive(Clone, Default)]
struct Record(Arc<Mutex<Observed>>);

impl Record {
    fn lock(&self) -> MutexGuard<'_, Observed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Plays all three loads until `end`; `begun` is told once each had an answer.
pub(super) fn play(
    form: Form,
    chain: Vec<u8>,
    begun: &SyncSender<()>,
    end: &Control,
) -> io::Result<Observed> {
    block_on(async {
        let tls = ClientTls::builder().alpn([PROTOCOL]).verify(Verify::CaPem(chain)).build();
        let config = ClientConfig::new(tls.map_err(io::Error::other)?, transport(form));
        let links = Links::watch().await?;
        let mut lines = Vec::new();
        for _ in 0..3 {
            lines.push(connect(&config, &links).await?);
        }
        let [asking, loading, talking] = [0, 1, 2].map(|index: usize| lines[index].connection.clone());
        let record = Record::default();
        let loads = async {
            tokio::join!(
                ask(&asking, &record),
                download(&loading, &record),
                talk(&talking, &record),
                look(&asking, &record),
                tell(&record, begun)
            )
        };
        tokio::select! {
            _ = loads => {}
            () = end.ended() => {}
        }
        Ok(record.lock().clone())
    })
}

/// A connection and what keeps its paths in step with the links.
struct Managed {
    connection: Connection,
    _manager: PathManager,
    _endpoint: Endpoint,
}

async fn connect(config: &ClientConfig, links: &Links) -> io::Result<Managed> {
    let remote: SocketAddr = (SERVER, PORT).into();
    let builder = PathManager::builder().remotes([remote]).links(links.clone());
    let paths = builder.paths(&links.current());
    let endpoint = Endpoint::client(&[])?;
    let options = ConnectOptions::new(remote, NAME).racing(0, &paths);
    let connecting = endpoint.connect_with(config.clone(), options).map_err(io::Error::other)?;
    let connection = connecting.await.map_err(io::Error::other)?;
    let manager = builder.spawn(&connection).await.map_err(io::Error::other)?;
    Ok(Managed { connection, _manager: manager, _endpoint: endpoint })
}

/// Asks, each time after the answer to the one before.
async fn ask(connection: &Connection, record: &Record) {
    loop {
        let answered: io::Result<usize> = async {
            let (mut send, mut receive) = connection.open_bi().await.map_err(io::Error::other)?;
            send.write_all(&[b'r'; REQUEST]).await.map_err(io::Error::other)?;
            send.finish().map_err(io::Error::other)?;
            Ok(receive.read_to_end(REQUEST).await.map_err(io::Error::other)?.len())
        }
        .await;
        match answered {
            Ok(REQUEST) => record.lock().requests.note(),
            _ => record.lock().failures += 1,
        }
        tokio::time::sleep(PACE).await;
    }
}

async fn download(connection: &Connection, record: &Record) {
    let Ok((mut send, mut receive)) = connection.open_bi().await else { return };
    if send.write_all(&[ENDLESS]).await.is_err() || send.finish().is_err() {
        return;
    }
    while let Ok(Some(chunk)) = receive.read_chunk(BLOCK).await {
        let mut observed = record.lock();
        observed.delivered += chunk.len() as u64;
        observed.download.note();
    }
}

/// Sends a datagram every 20 ms, and notes those that come back.
async fn talk(connection: &Connection, record: &Record) {
    let sending = async {
        let mut ticks = tokio::time::interval(PACE);
        loop {
            ticks.tick().await;
            // One that the network has no room for is lost, as others are.
            let _sent = connection.send_datagram(Bytes::from_static(&[b'd'; REQUEST]));
        }
    };
    let receiving = async {
        while connection.read_datagram().await.is_ok() {
            record.lock().datagrams.note();
        }
    };
    tokio::join!(sending, receiving);
}

/// Notes when packets over each link are acknowledged.
async fn look(connection: &Connection, record: &Record) {
    let mut known: BTreeMap<PathId, u64> = BTreeMap::new();
    loop {
        for path in connection.paths() {
            let count = path.stats.counters.packets_acknowledged;
            let before = known.insert(path.id, count).unwrap_or(0);
            let line = Line::ALL.into_iter().find(|line| Some(line.device()) == path.name.as_deref());
            if let Some(line) = line.filter(|_| count > before) {
                record.lock().acknowledged_over_mut(line).note();
            }
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Tells `begun` once each load had an answer.
async fn tell(record: &Record, begun: &SyncSender<()>) {
    while !record.lock().has_begun() {
        tokio::time::sleep(LOOK).await;
    }
    // Nobody waits for it any more if the trial has failed.
    let _told = begun.send(());
}
