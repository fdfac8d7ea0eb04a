//! noq: a path over each link, which is opened and closed as the links come and go.
//!
//! There is a socket for each interface (`sockets.rs`), and a path for the address of each link that leads to the server
//! (`Connection::open_path`), all of them available for data. A path that cannot be opened is tried again: connection IDs for it come
//! after the handshake. `Endpoint::handle_network_change`, which forgets the local address of every path, is for one socket that goes
//! wherever the system leads it, and is not used. Limits of time are those that iroh sets.

mod sockets;

use crate::arguments::Arguments;
use crate::loads::{self, Acknowledged, Line};
use crate::news::{self, Way};
use crate::quic_pair::noq as pair;
use crate::record::{Counter, Record};
use anyhow::{Context, Result};
use hvq::links::Links;
use noq::{
    Connection, Endpoint, EndpointConfig, FourTuple, Path, PathId, PathStatus, RecvStream, TokioRuntime,
    TransportConfig,
};
use sockets::{Sockets, Table};
use std::cell::{Cell, RefCell};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::spawn_local;
use tokio::time::interval;

/// The time after which a path is asked for a sign of life.
const KEEP_ALIVE: Duration = Duration::from_secs(5);
/// The silence after which a path is given up.
const IDLE: Duration = Duration::from_secs(15);
/// The round-trip time of a path that has none yet, which is that of the library.
const INITIAL_RTT: Duration = Duration::from_millis(333);
/// The interval at which paths that are missing are opened.
const AGAIN: Duration = Duration::from_millis(50);
/// Paths at a time.
const PATHS: u32 = 8;

fn transport() -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport.max_concurrent_multipath_paths(PATHS);
    transport.keep_alive_interval(Some(KEEP_ALIVE));
    transport.default_path_keep_alive_interval(Some(KEEP_ALIVE));
    transport.default_path_max_idle_timeout(Some(IDLE));
    transport
}

/// Serves until it is given up.
pub async fn serve(arguments: &Arguments, sent: &Counter) -> Result<()> {
    pair::serve(arguments, transport(), sent).await
}

/// Plays the loads until it is given up.
pub async fn play(arguments: &Arguments, record: &Record) -> Result<()> {
    let server = arguments.server.ip();
    let mut links = Links::watch().await?;
    let ways = news::ways(&links.current(), server);
    let table = Table::new(&ways).context("no link leads to the server")?;
    let config = pair::client(arguments, transport())?;
    let (mut endpoints, mut lines, established) = (Vec::new(), Vec::new(), Rc::new(Notify::new()));
    for _ in 0..3 {
        let sockets = Box::new(Sockets::new(&ways, table.clone())?);
        let endpoint = Endpoint::new_with_abstract_socket(
            EndpointConfig::default(),
            None,
            sockets,
            Arc::new(TokioRuntime),
        )?;
        let connection = endpoint.connect_with(config.clone(), arguments.server, &arguments.name)?.await?;
        lines.push(NoqLine::new(connection, (table.clone(), arguments.server), Rc::clone(&established)));
        endpoints.push(endpoint);
    }
    let lines = <[NoqLine; 3]>::try_from(lines).ok().context("there are three connections")?;
    let followers = lines.each_ref().map(NoqLine::clone);
    let following = async {
        let (mut ways, mut ticks) = (ways, interval(AGAIN));
        loop {
            tokio::select! {
                links = links.changed() => ways = news::ways(&links, server),
                _ = ticks.tick() => {}
                () = established.notified() => {}
            }
            table.set(&ways);
            followers.iter().for_each(|line| line.follow(&ways));
        }
    };
    tokio::select! {
        played = loads::play(lines, record) => played,
        () = following => Ok(()),
    }
}

/// A connection. Clones share it.
#[derive(Clone)]
struct NoqLine {
    connection: Connection,
    table: Table,
    remote: SocketAddr,
    paths: Rc<RefCell<Vec<Opened>>>,
    /// Rings when a path is open.
    established: Rc<Notify>,
}

/// A path, with the address that it was opened from.
struct Opened {
    id: PathId,
    address: IpAddr,
    /// The peer has answered over it.
    is_established: Rc<Cell<bool>>,
}

impl NoqLine {
    fn new(connection: Connection, (table, remote): (Table, SocketAddr), established: Rc<Notify>) -> Self {
        let first =
            Opened { id: PathId::ZERO, address: table.first(), is_established: Rc::new(Cell::new(true)) };
        Self { connection, table, remote, paths: Rc::new(RefCell::new(vec![first])), established }
    }

    /// Opens a path from each address of `ways` that has none. Closes those from other addresses once one of `ways` is open: noq has
    /// nothing but the path that is closed to tell the peer over before that.
    fn follow(&self, ways: &[Way]) {
        let mut paths = self.paths.borrow_mut();
        // One that was given up meanwhile is opened again.
        paths.retain(|path| self.path(path.id).is_some());
        for way in ways {
            if paths.iter().all(|path| path.address != way.address) {
                paths.extend(self.open(way.address));
            }
        }
        let leads = |path: &Opened| ways.iter().any(|way| way.address == path.address);
        if paths.iter().any(|path| leads(path) && path.is_established.get()) {
            paths.retain(|path| leads(path) || self.path(path.id).is_some_and(|path| path.close().is_err()));
        }
    }

    /// Opens a path from `address`; `None` if the peer has not given connection IDs for it yet.
    fn open(&self, address: IpAddr) -> Option<Opened> {
        let path = FourTuple::new(self.remote, Some(address));
        let opening = self.connection.open_path(path, PathStatus::Available);
        let is_established = Rc::new(Cell::new(false));
        let opened = Opened { id: opening.path_id()?, address, is_established: Rc::clone(&is_established) };
        let bell = Rc::clone(&self.established);
        spawn_local(async move {
            if opening.await.is_ok() {
                is_established.set(true);
                bell.notify_one();
            }
        });
        Some(opened)
    }

    fn path(&self, id: PathId) -> Option<Path> {
        self.connection.path(id)
    }
}

impl Line for NoqLine {
    type Download = RecvStream;

    async fn ask(&self, request: &[u8]) -> Result<usize> {
        pair::ask(&self.connection, request).await
    }

    async fn begin(&self) -> Result<RecvStream> {
        pair::begin(&self.connection).await
    }

    async fn read(download: &mut RecvStream) -> Result<usize> {
        pair::read(download).await
    }

    fn send(&self, datagram: &[u8]) {
        // One that there is no room for is lost, as others are.
        let _sent = self.connection.send_datagram(datagram.to_vec().into());
    }

    async fn receive(&self) -> Result<()> {
        self.connection.read_datagram().await?;
        Ok(())
    }

    fn acknowledged(&self) -> Vec<Acknowledged> {
        let paths = self.paths.borrow();
        let known = paths.iter().filter_map(|Opened { id, address, .. }| {
            let rtt = self.path(*id)?.stats().rtt;
            let mark = if rtt == INITIAL_RTT { 0 } else { rtt.as_nanos() };
            Some(Acknowledged { path: format!("{id:?}"), link: self.table.link(*address)?, mark })
        });
        known.collect()
    }
}
